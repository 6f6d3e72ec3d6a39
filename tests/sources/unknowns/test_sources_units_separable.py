"""Parts of separable models and of functions of one product by themselves: structures, bases, fits, what is written."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.unknowns import separable, single_index, unknown_functions
from symformer_jax.sources.unknowns.separable import Basis, Model, Structure

NAMES = ("x", "z", "w")
CONFIG = DEFAULT.separable


def parse(text):
  return parser.parse(text, NAMES)


def sorted_structures(some):
  return sorted(some, key=repr)


# --- structures ------------------------------------------------------------------------------------------------------


def test_smaller_structures_are_without_one_function():
  whole = Structure("y", ((3, 1.0),), ((0, 1), (2,)), (0, 3))
  assert sorted_structures(whole.smaller()) == sorted_structures([
    whole._replace(factors=((1,), (2,))), whole._replace(factors=((0,), (2,))),
    whole._replace(factors=((0, 1, 3),), rest=None), whole._replace(rest=(3,)), whole._replace(rest=(0,))])
  constant = Structure("y", (), ((0,), (1, 2)), ())
  assert sorted_structures(constant.smaller()) == sorted_structures([
    Structure("y", (), ((1, 2),)), constant._replace(factors=((0,), (2,))), constant._replace(factors=((0,), (1,))),
    constant._replace(rest=None)])
  assert list(Structure("y", (), ((0,),)).smaller()) == []
  assert whole.sums == ((0, 1), (2,), (0, 3)) and constant._replace(rest=None).sums == ((0,), (1, 2))


@pytest.mark.parametrize("is_log", [False, True])
def test_bases_are_chebyshev_polynomials_over_the_range(is_log):
  x = np.array([1.0, 2, 4, 9])
  t = np.log(x) if is_log else x
  t = 2 * (t - t[0]) / (t[-1] - t[0]) - 1
  expected = np.cos(np.outer(np.arccos(t), [1, 2, 3]))
  np.testing.assert_allclose(Basis(1.0, 9.0, is_log, 3)(x), expected, atol=1e-12)


def model_of(structure, rng, degrees=(2, 3, 1), left=1e-6, nats=-5.0):
  bases = {column: Basis(1.0, 3.0, False, degree) for column, degree in enumerate(degrees)}
  coefficients = tuple(rng.normal(size=1 + sum(degrees[column] for column in columns)) for columns in structure.sums)
  return Model(nats, structure, bases, coefficients, left)


def value_of(model, x):
  """The product of the sums at points, and what is added."""
  sums = [coefficients[0] + sum(
    model.bases[column](x[:, column]) @ coefficients[begin : begin + model.bases[column].degree]
    for column, begin in zip(columns, 1 + np.cumsum([0, *(model.bases[c].degree for c in columns)]), strict=False))
    for columns, coefficients in zip(model.structure.sums, model.coefficients, strict=True)]
  num = len(model.structure.factors)
  return np.prod(sums[:num], axis=0) + sum(sums[num:])


def test_functions_of_a_model_have_the_coefficients_after_those_before(rng):
  model = model_of(Structure("y", (), ((0, 1), (2,)), (1,)), rng)
  first, second, rest = model.coefficients
  assert [(place, column, some.tolist()) for place, column, some in model.functions()] == [
    (0, 0, first[1:3].tolist()), (0, 1, first[3:6].tolist()), (1, 2, second[1:].tolist()), (2, 1, rest[1:].tolist())]
  x = rng.uniform(1, 3, (7, 3))
  values = model.values(x)
  np.testing.assert_allclose(values[0] * values[1] + values[2], value_of(model, x))


def test_products_of_sums_and_what_may_stand_beside_them():
  one, other = ((0,), (1,)), (((0, 1), (0,)), ((0, 1), (1,)))
  config = dataclasses.replace(
    CONFIG, product_links=("y", "sqrt"), overlapping_links=("y", "inv"), added_links=("y", "exp"))
  products = {Structure("y", (), each) for each in (one, *other)}
  lone = Structure("y", (), one, ())
  for link, expected in (("y", products | {lone, Structure("y", (), one, (0, 1))}),
                         ("sqrt", {Structure("sqrt", (), one)}),
                         ("inv", {Structure("inv", (), each) for each in other}),
                         ("exp", {Structure("exp", (), one, (0, 1))}), ("ln", set())):
    found = list(separable._products((0, 1), link, config))
    assert len(found) == len(expected) and {
      each._replace(factors=tuple(sorted(each.factors, key=lambda some: (-len(some), some))
                                  if len(each.factors[0]) > 1 else each.factors)) for each in found} == expected
  for most, num in ((2, 5), (1, 1)):
    assert len(list(separable._products((0, 1), "y", dataclasses.replace(config, max_multiplied=most)))) == num
  # A function of each column and a constant, of any number of columns but one.
  without = dataclasses.replace(config, max_multiplied=1)
  assert list(separable._products((0, 1), "y", without)) == [lone]
  assert list(separable._products((0, 1), "inv", without)) == list(separable._products((3,), "y", without)) == []
  assert list(separable._products((0, 1), "inv", dataclasses.replace(without, lone_links=("inv",)))) == [
    Structure("inv", (), one, ())]


@pytest.mark.parametrize(("screened", "asked", "is_near"), [
  (0.01, [0.01], False), (0.02, [0.02], True), (1.0, [], True)])
def test_what_is_one_of_many_is_near_by_what_it_leaves(monkeypatch, screened, asked, is_near):
  given = []

  def fitted(target, structure, bases, config):
    given.append(config.most_left)
    return "fitted" if config.most_left >= 0.02 else None

  monkeypatch.setattr(separable, "_fitted", fitted)
  config = dataclasses.replace(CONFIG, most_left=1e-3, screened_left=screened)
  assert separable._is_near("target", "structure", "bases", config) is is_near and given == asked


def test_of_a_divisor_and_of_products_what_is_not_near_is_fitted_no_further(monkeypatch, rng):
  asked = {"sums": [], "all": []}
  degrees = set()
  monkeypatch.setattr(separable, "_is_near", lambda target, structure, bases, config: asked["sums"].append(
    (structure.divisor, len(structure.factors))) or degrees.add((bool(structure.divisor), bases[0].degree)) or False)
  real = separable._fitted
  monkeypatch.setattr(separable, "_fitted", lambda target, structure, bases, config: asked["all"].append(
    (structure.divisor, len(structure.factors), config.num_sweeps)) or real(target, structure, bases, config))
  x = rng.uniform(0.5, 3, (90, 2))
  rows = Rows(x, np.sin(x[:, 0]) * x[:, 1] - 1, np.ones(90))
  separable.find_models(rows, (0, 1), ("y",), config=CONFIG)
  powers = (1.0, -1.0)
  assert {divisor for divisor, _ in asked["sums"]} == {
    (), *(((c, p),) for c in (0, 1) for p in powers), *(((0, p), (1, q)) for p in powers for q in powers)}
  assert all(num > 1 for divisor, num in asked["sums"] if not divisor)
  assert {degree for is_divided, degree in degrees if is_divided} == {CONFIG.degrees[1]}
  whole = [each for each in asked["all"] if each[2] == CONFIG.num_sweeps and each[:2] != ((), 1)]
  assert not whole  # but in few sweeps


def named(nats, left, factors, link="y", rest=None):
  return Model(nats, Structure(link, (), factors, rest), {}, (), left)


def test_the_shortest_description_of_each_structure_is_the_nearest():
  models = [named(3.0, 0, ((0,), (1,))), None, named(1.0, 0, ((1,), (0,))), named(2.0, 0, ((0,),)),
            named(0.0, 0, ((0,), (1,)), "inv"), named(5.0, 0, ((2,),))]
  assert separable._nearest(models, 3) == [models[4], models[2], models[3]]
  assert len(separable._nearest(models, 9)) == 4
  equal = [named(1.0, 0, ((0,),), "sqrt"), named(1.0, 0, ((0,),), "exp")]
  assert separable._nearest(equal, 2) == equal  # in their order


def test_models_that_leave_about_as_little_as_any_and_have_few_functions():
  config = dataclasses.replace(CONFIG, times_least=10.0, most_left=0.5, num_models=3, max_functions=3)
  models = [named(1.0, 1e-3, ((0, 1, 2), (0,))), named(2.0, 0.02, ((0, 1, 2),)), named(3.0, 0.2, ((0,),)),
            named(4.0, 0.21, ((1,),)), named(5.0, 0.1, ((2,),)), named(6.0, 0.1, ((0, 1),)),
            named(7.0, 0.02, ((0,), (1,)), rest=(0, 2))]
  assert separable.best_models(models, config) == [models[1], models[2], models[4]]
  assert separable.best_models([named(1.0, 0.4, ((0,),)), named(2.0, 0.6, ((1,),))], config) == [
    named(1.0, 0.4, ((0,),))]
  assert len(separable.best_models([named(1.0, 0.5, ((0,),))], config)) == 1  # just as much as it may leave
  exact = [named(1.0, 0.0, ((0,),)), named(2.0, 9 * separable.alternating.EXACT, ((1,),)),
           named(3.0, 11 * separable.alternating.EXACT, ((2,),))]
  assert separable.best_models(exact, config) == exact[:2] and separable.best_models([], config) == []


@pytest.mark.parametrize(("num_rows", "degrees"), [
  (41, ()), (42, (7,)), (60, (7, 10)), (84, (7, 14)), (6 * 23, (7, 14, 23)), (999, (7, 14, 23))])
def test_degrees_for_which_there_are_rows_enough(num_rows, degrees):
  assert separable._degrees(num_rows, 2, CONFIG) == degrees


@pytest.mark.parametrize(("num_rows", "num_columns", "num_constant", "operators", "is_asked"), [
  (42, 2, 0, None, True), (41, 2, 0, None, False), (60, 1, 1, None, True), (20, 1, 1, None, False),
  (21, 1, 0, None, True), (60, 2, 1, None, True),
  (9 * 21, 9, 0, None, True), (80, 2, 0, ("*", "sin"), False)])
def test_who_is_asked_for_separable_models(num_rows, num_columns, num_constant, operators, is_asked, rng):
  x = np.column_stack([rng.uniform(1, 2, (num_rows, num_columns)), np.ones((num_rows, num_constant))])
  options = SearchOptions(restrictions=Restrictions(operators=operators) if operators else Restrictions())
  task = make_task((x, rng.normal(size=num_rows)), None, options)
  assert separable.Separable(options).supports(task) == is_asked
  assert separable.Separable(options).turns == CONFIG.turns


def test_logarithms_of_columns_of_many_sizes_are_bases_as_well():
  x = np.column_stack([np.linspace(1, 3, 42), np.linspace(1, 3.01, 42), np.linspace(0, 9, 42)])
  config = dataclasses.replace(CONFIG, degrees=(2, 4), rows_per_constant=3)
  plain, logs, *more = separable._all_bases(x, (0, 1, 2), config)
  assert plain == {0: Basis(1.0, 3.0, False, 2), 1: Basis(1.0, 3.01, False, 2), 2: Basis(0.0, 9.0, False, 2)}
  assert logs == {**plain, 1: Basis(1.0, 3.01, True, 2)}
  assert [(each[1].degree, each[1].is_log) for each in more] == [(4, False), (4, True)]
  assert len(separable._all_bases(x, (0, 2), config)) == 2


def test_targets_are_functions_of_y_over_powers_of_columns(rng):
  x, weights = rng.uniform(1, 2, (20, 3)), rng.uniform(0.2, 2, 20)
  x[4, 1] = 0.0
  rows = Rows(x, rng.uniform(1, 2, 20), weights)
  config = dataclasses.replace(CONFIG, divided_links=("y", "inv"))
  with np.errstate(all="ignore"):
    found = {(divisor, name): target for divisor, name, target in separable._targets(
      rows, (0, 1), ("y", "inv", "exp"), config)}
  assert list(found) == [((), "y"), ((), "inv"), ((), "exp"), (((0, 1.0),), "y"), (((0, 1.0),), "inv"),
                         (((0, -1.0),), "y"), (((0, -1.0),), "inv")]
  inverse = found[((0, -1.0),), "inv"]
  np.testing.assert_allclose(inverse.y, 1 / (rows.y * x[:, 0]))
  # An error of 1/(x*y) makes one of x*y**2 times as much of y.
  expected = weights * (rows.y**2 * x[:, 0]) ** 2
  np.testing.assert_allclose(inverse.weights / inverse.weights[0], expected / expected[0])
  for divisor, name in found:
    again = separable._target(rows, Structure(name, divisor, ((0,),)))
    np.testing.assert_array_equal(again.y, found[divisor, name].y)
  divided = separable._divided(rows, ((0, 1.0),))
  np.testing.assert_allclose(divided.weights, weights * (x[:, 0] / x[:, 0].max()) ** 2)
  np.testing.assert_allclose(divided.y, rows.y / x[:, 0])
  assert not list(separable._targets(Rows(x, np.ones(20), weights), (), ("y",), config))  # it does not vary


# --- fits ------------------------------------------------------------------------------------------------------------

BASES = {column: Basis(1.0, 3.0, False, 3) for column in range(3)}


def test_a_fit_has_rows_for_its_constants_and_leaves_little(rng):
  x, weights = rng.uniform(1, 3, (28, 2)), rng.uniform(0.2, 2, 28)
  rows = Rows(x, np.sin(2 * x[:, 0]) + x[:, 1] + 0.05 * rng.normal(size=28), weights)
  structure = Structure("y", (), ((0, 1),))
  design = np.column_stack([np.ones(28), BASES[0](x[:, 0]), BASES[1](x[:, 1])])
  root = np.sqrt(weights)
  coefficients = np.linalg.lstsq(root[:, None] * design, root * rows.y, rcond=None)[0]
  left = np.average((design @ coefficients - rows.y) ** 2, weights=weights) / np.average(
    (rows.y - np.average(rows.y, weights=weights)) ** 2, weights=weights)
  config = dataclasses.replace(CONFIG, rows_per_product=4, most_left=1.01 * left)
  model = separable._fitted(rows, structure, BASES, config)
  np.testing.assert_allclose(model.coefficients[0], coefficients, rtol=1e-6)
  assert model.left == pytest.approx(left, rel=1e-6) and model.structure is structure and model.bases is BASES
  assert model.nats == pytest.approx(14 * math.log(left) + 3.5 * math.log(28), rel=1e-6)
  assert separable._fitted(rows, structure, BASES, dataclasses.replace(config, rows_per_product=5)) is None
  assert separable._fitted(rows, structure, BASES, dataclasses.replace(config, most_left=0.99 * left)) is None
  assert separable._fitted(rows, structure, BASES, dataclasses.replace(config, most_left=model.left)) is None
  exact = Rows(x, 2 * x[:, 0] + x[:, 1], weights)
  assert separable._fitted(exact, structure, BASES, config).nats == pytest.approx(
    14 * math.log(separable.alternating.EXACT) + 3.5 * math.log(28), rel=1e-2)


def test_a_product_and_what_is_added_are_fitted(rng):
  x = rng.uniform(1, 3, (60, 3))
  rows = Rows(x, (2 + x[:, 0] ** 2) * (x[:, 1] - 0.5) + x[:, 2] ** 3, np.ones(60))
  structure = Structure("y", (), ((0,), (1,)), (2,))
  model = separable._fitted(rows, structure, BASES, dataclasses.replace(CONFIG, num_sweeps=60))
  np.testing.assert_allclose(value_of(model, x), rows.y, rtol=1e-3)
  assert model.left < 1e-6 and len(model.coefficients) == 3


def test_functions_that_hardly_matter_go_one_after_the_other(rng):
  x = rng.uniform(1, 3, (60, 3))
  rows = Rows(x, np.sin(2 * x[:, 1]) + 0.01 * rng.normal(size=60), np.ones(60))
  config = dataclasses.replace(CONFIG, most_left=0.5)
  model = separable._fitted(rows, Structure("y", (), ((0, 1, 2),)), BASES, config)
  smaller = separable._without_idle(model, rows, config)
  assert smaller.structure.factors == ((1,),) and smaller.nats < model.nats
  assert separable._without_idle(smaller, rows, config) is smaller


def test_models_are_of_sums_and_of_products_and_the_shortest_come_first(rng, monkeypatch):
  x = np.column_stack([rng.uniform(1, 2, (90, 2)), np.ones(90)])
  rows = Rows(x, (x[:, 0] ** 2 - 2) * (np.sin(x[:, 1]) - 0.5), np.ones(90))
  config = dataclasses.replace(CONFIG, degrees=(2, 3, 4), max_bent=2, num_carried=1, num_reduced=2, most_left=0.4)
  asked, fitted = [], separable._fitted

  def recorded(rows, structure, bases, config):
    asked.append((structure, bases[0].degree, config.num_sweeps, config.most_left))
    return fitted(rows, structure, bases, config)
  monkeypatch.setattr(separable, "_fitted", recorded)
  found = separable.find_models(rows, (0, 1, 2), ("y", "inv"), config=config)
  assert [model.nats for model in found] == sorted(model.nats for model in found) and len(found) <= 2
  assert found[0].left < 1e-4 and sorted(found[0].structure.factors) == [(0,), (1,)]
  sums = [each for each in asked if each[0].factors == ((0, 1),) and each[2] == CONFIG.num_sweeps]
  assert {degree for _, degree, _, _ in sums} == {2, 3, 4} and {s.divisor for s, *_ in sums} > {(), ((0, 1.0),)}
  brief = [each for each in asked if each[2] == CONFIG.num_brief_sweeps]
  assert {degree for _, degree, _, _ in brief} == {2, 3} and {most for *_, most in brief} == {math.inf}
  assert all(not structure.divisor and len(structure.sums) > 1 for structure, *_ in brief)
  thorough = {structure for structure, _, sweeps, _ in asked if sweeps == CONFIG.num_sweeps
              and [len(columns) for columns in structure.factors] == [1, 1] and structure.rest is None}
  assert len(thorough) == 1  # the nearest alone
  asked.clear()
  separable.find_models(rows, (0, 1), ("y",), config=dataclasses.replace(config, max_bent=1))
  assert {degree for _, degree, sweeps, _ in asked if sweeps == CONFIG.num_brief_sweeps} == {2}


# --- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("factors", "rest"), [
  (((0, 1), (2,)), None), (((0,), (1,)), (2,)), (((0,), (1, 2)), (1, 0)), (((2,), (1,)), (1, 2, 0)),
  (((0,), (1,), (2,)), (0,)), (((0, 1, 2),), None)])
def test_functions_that_are_tabulated_make_the_model(factors, rest, rng):
  x = rng.uniform(1, 3, (50, 3))
  model = model_of(Structure("y", (), factors, rest), rng)
  rows = Rows(x, value_of(model, x), np.ones(50))
  found = separable.tabulated(model, rows, {column: x[:, column] for column in range(3)})
  assert [(place, column) for place, column, _ in found] == [
    (place, column) for place, columns in enumerate(model.structure.sums) for column in columns]
  sums = [sum(function.values for place, _, function in found if place == i)
          for i in range(len(model.structure.sums))]
  np.testing.assert_allclose(np.prod(sums[: len(factors)], axis=0) + sum(sums[len(factors):]), rows.y, atol=1e-9)
  for place, _, function in found:
    others = np.prod([each for k, each in enumerate(sums[: len(factors)]) if k != place], axis=0) if place < len(
      factors) else 1.0
    assert function.error == pytest.approx(1e-6 * np.var(rows.y) / np.mean(np.square(others * np.ones(50))))


def test_what_is_added_is_as_near_to_a_parabola_as_it_can_be(rng):
  """F*G + h is F*(G + c) + (h - c*F) for any c: that in which h has least of what F has beside a parabola."""
  x = rng.uniform(1, 3, (50, 3))
  model = model_of(Structure("y", (), ((1,), (0, 2)), (0, 1)), rng, degrees=(2, 5, 2))
  settled = separable._settled(model, x)
  np.testing.assert_allclose(value_of(settled, x), value_of(model, x), atol=1e-9)
  at = model.bases[1](x[:, 1])
  own = {place: at @ some for place, column, some in settled.functions() if column == 1}
  parabola = np.vander(x[:, 1], 3)
  rest, factor = (each - parabola @ np.linalg.lstsq(parabola, each)[0] for each in (own[2], own[0]))
  assert abs(rest @ factor) < 1e-9 * np.linalg.norm(factor)
  before = {place: some for place, column, some in model.functions() if column == 1}
  assert not np.allclose(before[2], next(some for place, column, some in settled.functions() if (place, column) == (
    2, 1)))
  for same in (Structure("y", (), ((1, 2), (0, 2)), (0, 1)), Structure("y", (), ((1,), (0,)), (2,)),
               Structure("y", (), ((1,), (0,), (2,)), (1,)), Structure("y", (), ((1,), (0,)))):
    model = model_of(same, rng)
    assert all(map(np.array_equal, separable._settled(model, x).coefficients, model.coefficients))


def test_likely_forms_of_all_functions_are_written_first(rng):
  x = rng.uniform(1, 2, (9, 3))
  structure = Structure("exp", ((2, 1.0),), ((0,), (0, 1)), (1,))
  model = Model(0.0, structure, {}, (np.zeros(1), np.zeros(1), np.array([7.0])), 0.0)
  functions = [(0, [(1.0, parse("x")), (5.0, parse("sin(x)"))]), (1, [(1.0, parse("x**2"))]),
               (1, [(3.0, parse("sqrt(z)")), (4.0, parse("z"))]), (2, [(0.0, parse("exp(z)"))])]
  found = separable._written(model, functions, 3)
  sums = [(x[:, 0], np.sqrt(x[:, 1])), (x[:, 0], x[:, 1]), (np.sin(x[:, 0]), np.sqrt(x[:, 1]))]
  assert len(found) == 3
  for node, (first, second) in zip(found, sums, strict=True):
    inner = first * (x[:, 0] ** 2 + second) + np.exp(x[:, 1])
    np.testing.assert_allclose(expression.evaluate(node, x), np.exp(inner) * x[:, 2])
  # What is added may be a constant alone; without a divisor nothing is multiplied.
  plain = model._replace(structure=Structure("y", (), ((0,), (1,)), ()))
  factors = [(0, [(0.0, parse("x**2"))]), (1, [(0.0, parse("sin(z)"))])]
  [node] = separable._written(plain, factors, 3)
  np.testing.assert_allclose(expression.evaluate(node, x), x[:, 0] ** 2 * np.sin(x[:, 1]) + 7)
  bare = plain._replace(structure=Structure("y", (), ((0,), (1,))))
  [node] = separable._written(bare, factors, 3)
  assert expression.sort_operands(node) == expression.sort_operands(parse("x**2*sin(z)"))


def long(column, num):
  """A formula of so many nodes."""
  node = expression.variable(column)
  for _ in range(num - 1):
    node = expression.Node("sin", (node,))
  return node


def test_formulas_that_are_too_long_are_not_written():
  model = Model(0.0, Structure("y", (), ((0,), (1,))), {}, (), 0.0)
  for num, count in ((31, 1), (32, 0)):  # and a product
    found = separable._written(model, [(0, [(0.0, long(0, 32))]), (1, [(0.0, long(1, num))])], 3)
    assert len(found) == count and all(programs.size(node) == programs.MAX_TOKENS for node in found)
  alone = model._replace(structure=Structure("y", (), ((0,),)))
  for num in (programs.MAX_TOKENS, programs.MAX_TOKENS + 1):
    assert len(separable._written(alone, [(0, [(0.0, long(0, num))])], 3)) == (num == programs.MAX_TOKENS)
  # Those that fit have their turn where likelier ones do not.
  forms = [(0.0, long(1, 60)), (1.0, long(1, 2))]
  [node] = separable._written(model, [(0, [(0.0, long(0, 5))]), (1, forms)], 1)
  assert programs.size(node) == 8


def test_what_the_pool_has_is_not_looked_for_again(rng, monkeypatch):
  x = rng.uniform(1, 2, (60, 2))
  task = make_task((x, rng.normal(size=60)), ("x", "z"), SearchOptions())
  models = [named(1.0, 3e-4, ((0,),)), named(2.0, 2.9e-4, ((1,),))]
  seen = []
  monkeypatch.setattr(separable, "find_models", lambda rows, columns, links, *, config: seen.append(links) or models)
  monkeypatch.setattr(separable.Separable, "_formulas", lambda self, task, near, *, is_plain: seen.append(near) or iter(
    [parse("x"), parse("z"), parse("x*z")]))
  source = separable.Separable(SearchOptions())
  assert CONFIG.times_pool == 3.0
  for share, expected in ((None, models), (0.98e-4, models[1:]), (1e-5, None)):
    best = None if share is None else SimpleNamespace(mse=share * task.variance)
    nodes = source._nodes(SimpleNamespace(task=task, pool=SimpleNamespace(best=best)), 1, 2)
    links, *near = seen
    assert links == list(CONFIG.links) and near == ([] if expected is None else [expected])
    assert len(nodes) == (0 if expected is None else 2)
    seen.clear()
  options = SearchOptions(restrictions=Restrictions(operators=("+", "*", "exp")))
  ruled = make_task((x, rng.normal(size=60)), ("x", "z"), options)
  separable.Separable(options)._nodes(SimpleNamespace(task=ruled, pool=SimpleNamespace(best=None)), 0, 2)
  assert seen[0] == [name for name in CONFIG.links if set(LINKS[name].operators) <= {"+", "*", "exp"}] != []


def test_each_model_in_turn_has_its_likeliest_formula(rng, monkeypatch):
  x = rng.uniform(1, 3, (60, 3))
  models = [model_of(Structure("y", (), ((0,), (1,))), rng), model_of(Structure("y", (), ((2,),)), rng)]
  task, asked = SimpleNamespace(fit_rows=Rows(x, value_of(models[0], x), np.ones(60))), []
  monkeypatch.setattr(separable, "Table", lambda task, column, config, forms: SimpleNamespace(
    places=np.linspace(1, 3, 5), column=column, forms=forms))

  def find_forms(some, options, config):
    asked.extend((table.column, function.values) for table, function in some)
    texts = {0: ("x", "sin(x)"), 1: ("z", "sin(z)"), 2: ("w", "sin(w)")}
    return [[(float(k), parse(text)) for k, text in enumerate(texts[table.column])] for table, _ in some]
  monkeypatch.setattr(unknown_functions, "find_forms", find_forms)
  options = SearchOptions(config=dataclasses.replace(DEFAULT, separable=dataclasses.replace(CONFIG, num_per_model=2)))
  made = separable.Separable(options)._formulas(task, models, is_plain=False)
  found = [expression.sort_operands(node) for node in made]
  assert found[0] == expression.sort_operands(parse("x*z")) and found[1] == parse("w") and found[3] == parse("sin(w)")
  assert len(found) == 4 and [column for column, _ in asked] == [0, 1, 2]
  for (_, values), (_, _, function) in zip(asked, [each for model in models for each in separable.tabulated(
      model, task.fit_rows, {column: np.linspace(1, 3, 5) for column in range(3)})], strict=True):
    np.testing.assert_allclose(values, function.values)


# --- functions of one product ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "num_columns", "is_asked"), [(40, 2, True), (39, 2, False), (60, 1, False)])
def test_who_is_asked_for_functions_of_one_product(num_rows, num_columns, is_asked, rng):
  task = make_task((rng.uniform(1, 2, (num_rows, num_columns)), rng.normal(size=num_rows)), None, SearchOptions())
  source = single_index.SingleIndex()
  assert source.supports(task) == is_asked and source.turns == DEFAULT.single_index.turns


@pytest.mark.parametrize(("exponents", "some"), [
  ([(0, 1, 2, -1, 0.5), (0, 1, 2, -2, 0.5)], {(1, 1), (-1, 1)}),
  ([(0, -2, -1, 1, 2), (0, -2, -1, 1, 2)], {(1, 1), (-1, 1), (1, 2)})])
def test_of_products_of_one_direction_the_smallest_whole_one_stands_for_all(exponents, some):
  found = single_index._directions(SimpleNamespace(exponents=exponents))
  powers, of_direction = list(itertools.product(*exponents)), {}
  for i, (a, b) in enumerate(powers):
    if a and b:
      is_whole = a == int(a) and b == int(b)
      cost = (abs(a) + abs(b) + ((a < 0) + (b < 0)) / 10 if is_whole else math.inf), i
      of_direction[b / a] = min(of_direction.get(b / a, (math.inf, math.inf)), cost)
  assert set(found) == {i for _, i in of_direction.values()} and some <= {powers[i] for i in found}
  assert found.tolist() == sorted(found.tolist())
  assert len(single_index._directions(SimpleNamespace(exponents=[]))) == 0
  assert len(single_index._directions(SimpleNamespace(exponents=[(0, 1, 2)]))) == 0


def test_ranks_of_y_over_a_column_are_of_variance_one(rng):
  x = np.array([[1.0, 0], [2, 1], [4, 1], [1, 1]])
  rows = Rows(x, np.array([3.0, 2, 4, 80]), np.ones(4))
  ranks = np.array([2, 1, 1, 3.0])  # 3, 1, 1, 80
  np.testing.assert_allclose(single_index._divided(rows, ((0, 1.0),)), (ranks - 1.75) / np.std(ranks))
  with np.errstate(all="ignore"):
    assert single_index._divided(rows, ((1, 1.0),)) is None  # a pole
    assert single_index._divided(rows, ((1, -1.0),)) is None
  assert single_index._divided(Rows(x, 3 * x[:, 0], np.ones(4)), ((0, 1.0),)) is None  # one number
  assert single_index._roughness(np.array([1.0, 3, 2]), np.array([[0, 1, 2], [0, 2, 1]])).tolist() == [1.25, 0.5]


def small_config(**changes):
  return dataclasses.replace(DEFAULT, single_index=dataclasses.replace(
    DEFAULT.single_index, exponents=((1, 2, -1),), num_rows=50, **changes))


def test_products_are_told_by_the_order_of_all_rows(rng):
  x = rng.uniform(0.5, 2, (120, 3))
  rows = Rows(x, np.sin(2 * x[:, 0] * x[:, 1] ** 2) / x[:, 2], np.ones(120))
  config = small_config(num_kept=2, most_rough=0.9, num_looked_at=8)
  with np.errstate(all="ignore"):
    found = single_index.find_indices(rows, (0, 1, 2), config)
    assert len(found) == 2 and found[0].roughness < found[1].roughness < 0.9
    best = found[0]
    assert best.divisor == ((2, -1.0),) and best.product.token == "*"
    at = expression.evaluate(best.product, x)
    np.testing.assert_allclose(at, x[:, 0] * x[:, 1] ** 2)
    ranks = np.argsort(np.argsort(rows.y * x[:, 2])) / np.std(np.arange(120))
    assert best.roughness == pytest.approx(np.mean(np.diff(ranks[np.argsort(at)]) ** 2) / 2)
    assert single_index.find_indices(rows, (0, 1, 2), small_config(most_rough=best.roughness)) == []
    assert len(single_index.find_indices(rows, (0, 1, 2), small_config(num_looked_at=1, most_rough=0.9))) == 1
    assert single_index.find_indices(rows, (0, 1), small_config(divisor_powers=())) == []


def test_products_that_are_one_number_have_no_order(rng):
  size = rng.integers(0, 2, 80)
  x = np.column_stack([2.0**size, 2.0**-size, rng.uniform(1, 2, 80)])
  rows = Rows(x, np.sin(x[:, 2]), np.ones(80))
  with np.errstate(all="ignore"):
    found = single_index.find_indices(rows, (0, 1, 2), small_config(
      most_rough=9.0, num_kept=99, num_looked_at=999))
  assert found and all(np.ptp(expression.evaluate(each.product, x)) > 0 for each in found)


def test_formulas_of_one_product_are_in_the_columns_of_the_task(rng, monkeypatch):
  x, weights = rng.uniform(0.5, 2, (60, 3)), rng.uniform(0.5, 2, 60)
  task = make_task((x, rng.normal(size=60), weights), NAMES, SearchOptions())
  rows, seen = task.fit_rows, []
  monkeypatch.setattr(unknown_functions, "forms_of", lambda table, rule, config, forms: seen.append(table) or iter(
    [parse("sin(x)"), long(0, 64)]))
  index = single_index.Index(0.0, parse("x*z"), ((2, -1.0),))
  product = rows.x[:, 0] * rows.x[:, 1]
  for divisor, times in (((2, -1.0),), 1 / rows.x[:, 2]), ((), np.ones(60)):
    [node] = single_index.SingleIndex()._formulas(task, index._replace(divisor=divisor))
    np.testing.assert_allclose(expression.evaluate(node, rows.x), np.sin(product / product.max()) * times)
    table = seen.pop()
    np.testing.assert_allclose(table.x[:, 0], product / product.max())
    np.testing.assert_allclose(table.y, rows.y / times)
    np.testing.assert_allclose(table.weights, rows.weights * (times / times.max()) ** 2)
  just = [long(0, programs.MAX_TOKENS - 4), long(0, programs.MAX_TOKENS - 3)]  # the product takes five places of one
  monkeypatch.setattr(unknown_functions, "forms_of", lambda *_: iter(just))
  assert [programs.size(node) for node in single_index.SingleIndex()._formulas(task, index._replace(divisor=()))] == [
    programs.MAX_TOKENS]
  monkeypatch.setattr(unknown_functions, "forms_of", lambda *_: iter([parse("sin(x)")]))
  monkeypatch.setattr(single_index, "find_indices", lambda *_: [index, index._replace(divisor=())])
  question = SimpleNamespace(task=task)
  assert len(single_index.SingleIndex()._nodes(question, 0, 9)) == 2
  assert len(single_index.SingleIndex()._nodes(question, 0, 1)) == 1


def test_products_need_no_exponential_in_the_first_turn(rng, monkeypatch):
  x = rng.uniform(1, 2, (60, 2))
  options = SearchOptions(restrictions=Restrictions(operators=("+", "*", "inv")))
  task, seen = make_task((x, rng.normal(size=60)), ("x", "z"), options), []
  monkeypatch.setattr(separable, "find_models", lambda rows, columns, links, *, config: seen.append(links) or [])
  for turn in (0, 1):
    separable.Separable(options)._nodes(SimpleNamespace(task=task, pool=SimpleNamespace(best=None)), turn, 2)
  assert seen == [["y", "exp", "inv"], ["y", "inv"]]
  single = dataclasses.replace(DEFAULT, separable=dataclasses.replace(CONFIG, turns=(9,)))
  separable.Separable(dataclasses.replace(options, config=single))._nodes(
    SimpleNamespace(task=task, pool=SimpleNamespace(best=None)), 0, 2)
  assert seen[2] == ["y", "inv"]
