"""Parts of products, ridges, varying coefficients and evolution by themselves: what is kept, counted and written."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.sources.evolution import evolution, variation
from symformer_jax.sources.evolution.population import Population
from symformer_jax.sources.monomials import Values
from symformer_jax.sources.ridges import ridges
from symformer_jax.sources.sums import products
from symformer_jax.sources.unknowns import unknown_functions, varying

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


# --- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("monomial", [((0, 2),), ((0, 1), (1, -2)), ((0, 0.5), (1, -0.5))])
@pytest.mark.parametrize("exponent", [1.0, -0.5, 2.0])
def test_ways_to_write_a_sum_have_one_value_where_they_are_defined(monomial, exponent, rng):
  x = rng.uniform(0.5, 2, (20, 2))
  size = np.abs(1 - 3 * Values(x)([monomial])[:, 0])
  forms = products._ways_to_write_sum(monomial, -3.0, exponent)
  assert len(forms) == 2 * len(monomial)
  for outside, node in forms:
    values = Values(x)([outside])[:, 0] * expression.evaluate(node, x)
    is_defined = np.isfinite(values)
    np.testing.assert_allclose(np.abs(values[is_defined]), size[is_defined] ** exponent, rtol=1e-9)


def test_distances_are_differences_and_those_over_a_third_and_their_squares(rng):
  x = rng.uniform(1, 2, (9, 2))
  v, w = x.T
  found = products._evaluated(products._distances((0, 1), 2), x)
  expected = np.stack([d**p for d in (v - w, (v - w) / v, (v - w) / w) for p in (1, 2)], axis=1)
  np.testing.assert_allclose(found, expected)
  assert products._distances((0, 1), 1) == [] and products._evaluated([], x).shape == (9, 0)


def space_of(x, allows=None, **changes):
  config = dataclasses.replace(DEFAULT.products, **changes)
  return products._Space(Values(x), range(x.shape[1]), allows, config)


@pytest.mark.parametrize("name", products.FAMILIES)
def test_logarithms_of_factors_are_those_of_what_is_written(name, rng):
  x = rng.uniform(0.3, 2, (15, 2))
  with np.errstate(all="ignore"):
    made = list(products.FAMILIES[name](space_of(x, max_columns=200)))
    for family in made[:: max(1, len(made) // 40)]:
      for index in {0, family.logs.shape[1] - 1}:
        for exponent in (1.0, 2.0):
          monomial, node = family.build(index, exponent)[0]
          values = Values(x)([monomial])[:, 0] * expression.evaluate(node, x)
          is_defined = np.isfinite(values) & np.isfinite(family.logs[:, index])
          np.testing.assert_allclose(
            np.log(np.abs(values[is_defined])), exponent * family.logs[is_defined, index], rtol=1e-8, atol=1e-8)
  assert all({part.token for part in expression.walk(family.build(0, 1.0)[0][1])} >= set(family.tokens)
             for family in made)


def test_the_usual_inner_constant_alone_is_plain_and_exponents_of_exponentials_are_free(rng):
  x = rng.uniform(0.3, 2, (15, 2))
  sums = list(products._sums(space_of(x)))
  assert [bool(family.is_plain.all()) for family in sums[:4]] == [True, True, False, False]
  [exponentials] = products._exponentials(space_of(x))
  assert exponentials.is_exponential and exponentials.is_plain.all()
  linear = [exponentials.build(int(i), 1.0)[0][1] for i in np.flatnonzero(exponentials.is_linear)]
  for column, node in zip(x.T, linear, strict=True):
    assert np.ptp(np.log(expression.evaluate(node, x)) / column) < 1e-9


def test_monomials_whose_powers_are_forbidden_are_left_out():
  some = [((0, 1),), ((0, 2), (1, 1)), ((0, -1),)]
  assert space_of(np.ones((3, 2)), lambda token: token != "pow2").allowed(some) == [some[0], some[2]]
  assert space_of(np.ones((3, 2))).allowed(some) is some


def target_of(y, x, **changes):
  rows = Rows(x, y, np.random.default_rng(1).uniform(0.5, 2, len(y)))
  return products._Target(rows, range(x.shape[1]), None, dataclasses.replace(DEFAULT.products, **changes)), rows


def test_powers_are_those_of_least_squares_of_logarithms_weighted_as_y(rng):
  x = rng.uniform(0.5, 3, (40, 3))
  y = 2 * x[:, 0] ** 1.5 / x[:, 1] * np.exp(0.1 * rng.normal(size=40))
  target, rows = target_of(y, x)
  weights = np.sqrt(rows.weights) * np.abs(y)
  design = np.column_stack([np.log(x), np.ones(40)])
  expected = np.linalg.lstsq(weights[:, None] * design, weights * np.log(y), rcond=None)[0]
  none = SimpleNamespace(columns=np.zeros((40, 0), np.float32), is_exponential=np.zeros(0, bool))
  free, few, halves = target.exponents(none, np.zeros(0, int))
  near = np.abs(expected[:3] - np.round(2 * expected[:3]) / 2) < DEFAULT.products.near_half
  np.testing.assert_allclose(free[~near], expected[:3][~near], rtol=1e-9)
  assert few[2] == 0 and halves.tolist() == [1.5, -1.0, 0.0]
  left = np.log(y) - np.log(x) @ halves
  error = np.average((left - np.average(left, weights=weights**2)) ** 2, weights=weights**2)
  assert target.cost(none, np.zeros(0, int), halves, 4.0) == pytest.approx(20 * math.log(error) + 8)
  named_twice = target.cost(none, np.zeros(0, int), np.array([1.4, -1.0, 0.0]), 4.0) - target.cost(
    none, np.zeros(0, int), np.array([1.4, -1.0, 0.0]), 0.0)
  assert named_twice == pytest.approx(12)


def test_variables_are_left_out_one_after_the_other_while_that_costs_little(rng):
  x = rng.uniform(0.5, 3, (40, 4))
  y = 2 * x[:, 0] ** 1.5 / x[:, 1] * np.exp(0.1 * rng.normal(size=40))
  target, rows = target_of(y, x)
  weights = rows.weights * y**2

  def left(chosen):
    root, design = np.sqrt(weights), np.column_stack([np.log(x[:, chosen]), np.ones(40)])
    found = np.linalg.lstsq(root[:, None] * design, root * np.log(y), rcond=None)[0]
    return np.sum(weights * (np.log(y) - design @ found) ** 2)
  kept = [0, 1, 2, 3]
  most = left(kept) * DEFAULT.products.max_loss
  while (less := min(([i for i in kept if i != out] for out in kept), key=left)) and left(less) <= most:
    kept = less
  found = target._needed(np.log(y), np.log(x), np.ones(4, bool))
  assert np.flatnonzero(found).tolist() == kept == [0, 1, 2]
  assert np.flatnonzero(target._needed(np.log(y), np.log(x), np.arange(4) != 3)).tolist() == [0, 1]


@pytest.mark.parametrize(("exponent", "is_law"), [(3.0, True), (3.5, False), (0.2, False)])
def test_exponents_of_factors_are_half_numbers_neither_0_nor_large(exponent, is_law, rng):
  x, log = rng.uniform(0.5, 3, (40, 1)), rng.normal(size=(40, 1))
  target, _ = target_of(x[:, 0] ** 2 * np.exp(exponent * log[:, 0]), x)
  factors = SimpleNamespace(columns=log.astype(np.float32), is_exponential=np.zeros(1, bool))
  found = target.exponents(factors, np.array([0]))
  assert bool(found) == is_law and all(each[1] == 3.0 for each in found)


def test_one_factor_is_the_best_beside_the_powers_and_those_that_powers_explain_are_none(rng):
  x, logs = rng.uniform(0.5, 3, (40, 2)), rng.normal(size=(40, 6))
  logs = np.column_stack([0.7 * np.log(x[:, 0]), 1e-4 * logs]).astype(np.float32)
  target, rows = target_of(x[:, 1] ** 2 * np.exp(logs[:, [2, 5]] @ [3e3, 1e3] + 0.5 * rng.normal(size=40)), x)
  factors = SimpleNamespace(columns=logs, groups=np.arange(7))
  config = dataclasses.replace(DEFAULT.pursuit, max_columns=1, num_first=9, num_kept_short=9)
  found = [each.tolist() for each in target.select(factors, np.arange(7), config, beside=np.zeros(0, int))]
  root = np.sqrt(rows.weights) * rows.y

  def left(i):
    design = root[:, None] * np.column_stack([np.log(x), logs[:, i], np.ones(40)])
    goal = root * np.log(rows.y)
    return np.sum((goal - design @ np.linalg.lstsq(design, goal, rcond=None)[0]) ** 2)
  assert found == [[i] for i in sorted(range(1, 7), key=left)]
  beside = np.array([found[0][0]])
  assert all(each[0] == beside[0] and len(each) == 2 for each in target.select(
    factors, np.arange(1, 7), config, beside=beside))


def test_the_size_of_y_is_no_matter(rng):
  x = rng.uniform(0.5, 3, (40, 2))
  y = x[:, 0] ** 1.3 * np.exp(0.1 * rng.normal(size=40))
  none = SimpleNamespace(columns=np.zeros((40, 0), np.float32), is_exponential=np.zeros(0, bool))
  one, *others = (target_of(unit * y, x)[0].exponents(none, np.zeros(0, int)) for unit in (1.0, 1e150, -1e-150))
  for other in others:
    np.testing.assert_allclose(other, one, rtol=1e-6)


def test_factors_have_the_columns_of_their_families_that_vary(rng):
  x = np.column_stack([rng.uniform(0.5, 3, (20, 2)), np.full(20, 2.0)])
  config = dataclasses.replace(DEFAULT.products, families=("exponentials",), max_exponent_size=2)
  found = products.Factors(x, (0, 1, 2), config=config)
  assert found.is_exponential.all() and np.sum(found.is_linear) == 2  # of the third none
  num_powers = len(config.exponent_powers[0])
  # Of one variable for each power; of two for each pair of powers; of the third alone none.
  assert len(found.groups) == len(set(found.groups)) <= 2 * num_powers + 3 * num_powers**2
  for index in range(0, len(found.groups), 5):
    [(monomial, node)] = found.forms(index, 1.0)
    assert monomial == ()
    np.testing.assert_allclose(np.log(expression.evaluate(node, x)), found.columns[:, index], rtol=1e-5)
  assert not len(products.Factors(x, (0, 1), lambda token: token != "exp", config=config).groups)


def test_a_product_is_written_in_its_shortest_form_that_is_defined_and_allowed(rng):
  x = rng.uniform(0.5, 3, (20, 2))
  forms = [((), parse("1 + x/z")), (((1, -1.0),), parse("x + z")), ((), parse("log(x - 9)")), ((), parse("x"))]
  factors = SimpleNamespace(forms=lambda index, exponent: forms[:3])
  for allows, text in ((None, "x*(x + z)/z"), (lambda token: token != "inv", None)):
    target = products._Target(Rows(x, x[:, 0], np.ones(20)), (0, 1), allows, DEFAULT.products)
    node = target._product(factors, np.array([0]), np.array([1.0, 1e-4, 1.0]))
    if text is None:
      assert node is None
    else:
      np.testing.assert_allclose(expression.evaluate(node, x), expression.evaluate(parse(text), x))
      assert expression.complexity(node) == min(expression.complexity(target._joined({0: 1.0}, [form]))
                                                for form in forms[:2])


def test_a_negative_variable_keeps_whole_powers_and_turns_under_roots():
  x = np.column_stack([np.linspace(1, 2, 9), np.linspace(-2, -1, 9)])
  target, _ = target_of(x[:, 0] * x[:, 1], x)
  for exponent, expected in ((2.0, x[:, 1] ** 2), (0.5, np.sqrt(-x[:, 1]))):
    node = target._joined({0: 1.0, 1: exponent - 1}, [(((1, 1.0),), expression.number(3.0))])
    np.testing.assert_allclose(expression.evaluate(node, x), 3 * x[:, 0] * expected)
  assert expression.evaluate(target._joined({0: 0.0}, []), x).tolist() == [1] * 9


# --- ridges ----------------------------------------------------------------------------------------------------------


def test_a_basis_is_orthonormal_with_zeros_for_what_depends(rng):
  a, b = rng.normal(size=(2, 12))
  found = ridges._orthonormal([1e200 * a, 2 * a, 1e-200 * b, 0 * a], 6)
  assert np.flatnonzero(np.any(found, axis=1)).tolist() == [0, 2]
  np.testing.assert_allclose(found[[0, 2]] @ found[[0, 2]].T, np.eye(2), atol=1e-12)
  both = np.stack([a, b])
  np.testing.assert_allclose(both @ found.T @ found, both, rtol=1e-9)


def ridge_of(left, arguments, amplitude=0):
  return ridges.Ridge(left, "exp", arguments, np.ones(len(arguments)), 0.0, amplitude, 0)


def test_few_ridges_of_each_sum_the_plainer_of_those_that_are_exact():
  config = dataclasses.replace(DEFAULT.ridges, num_per_sum=2)
  some = [ridge_of(0.5, (0, 1)), ridge_of(0.1, (0, 1)), ridge_of(0.3, (0, 1)), ridge_of(0.2, (2,)),
          ridge_of(1e-9, (1, 4), 3), ridge_of(9e-7, (1, 4))]
  found = [(ridge.left, ridge.arguments) for ridge in ridges._varied(some, config)]
  assert found == [(9e-7, (1, 4)), (1e-9, (1, 4)), (0.1, (0, 1)), (0.2, (2,)), (0.3, (0, 1))]


def test_monomials_without_a_pole_that_vary(rng):
  x = np.column_stack([rng.uniform(1, 2, 20), np.linspace(-1, 1, 20), np.full(20, 3.0)])
  x[3, 1] = 1e-5
  config = dataclasses.replace(
    DEFAULT.ridges, num_rows=20, argument_exponents=((1,), (-1,), (1, 1), (1, -1)), amplitude_exponents=((1,),))
  space = ridges._Space(Rows(x, rng.normal(size=20), np.ones(20)), (0, 1, 2), (), config)
  assert space.arguments == [
    ((0, 1),), ((1, 1),), ((0, -1),), ((0, 1), (1, 1)), ((0, 1), (2, 1)), ((1, 1), (2, 1)), ((0, 1), (2, -1)),
    ((2, 1), (0, -1))]
  for most, count in ((3, 3), (2, 0)):  # all columns beside a ridge, or none
    few = dataclasses.replace(config, max_beside=most)
    assert len(ridges._Space(space._rows, (0, 1, 2), (), few)._beside[0]) == count


# --- coefficients that vary ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("view", "inner"), [("plain", lambda t: t), ("log", np.log)])
def test_polynomials_are_those_of_chebyshev_over_the_range(view, inner):
  of, x = np.array([1.0, 4.0, 9.0]), np.array([1.0, 9.0, 2.0])
  t = 2 * (inner(x) - inner(1.0)) / (inner(9.0) - inner(1.0)) - 1
  np.testing.assert_allclose(varying._basis(x, view, of, 4), np.cos(np.arange(4) * np.arccos(t)[:, None]), atol=1e-9)


def test_views_of_a_variable():
  config = dataclasses.replace(DEFAULT.varying, num_functions=4, wide=3.0)
  for x, views in ((np.linspace(1, 2, 7), ()), (np.linspace(1, 2, 8), ("plain",)), (np.linspace(1, 3, 8), ("plain",)),
                   (np.linspace(1, 3.1, 8), ("plain", "log")), (np.linspace(0, 9, 8), ("plain",))):
    assert varying._views(x, config) == views


def model_of(nats, left, texts, column=0):
  return varying.Model(nats, "y", column, "plain", tuple(map(parse, texts)), left)


def test_models_that_leave_as_little_as_any_and_have_no_terms_more():
  config = dataclasses.replace(DEFAULT.varying, num_models=3)
  models = [model_of(-9, 1e-6, "x"), model_of(-8, 1e-6, "xz"), model_of(-7, 2e-3, "z"), model_of(-6, 1e-5, "w"),
            model_of(-5, 1e-6, "xz", 1), model_of(-4, 1e-6, "z")]
  assert varying.best_models(models, config) == [models[0], models[3], models[4]]
  exact = model_of(-9, 0.0, "x")
  assert varying.best_models([exact], config) == [exact]
  assert varying.best_models([model_of(0.0, 1e-6, "x")], config) == varying.best_models([], config) == []
  assert varying.best_models([model_of(-1, 1e-10, "x"), model_of(-1, 1e-6, "z")], config)[1:] == []


def factor_of(values, node, error=0.0):
  return varying.Factor(np.array(values), ((parse(node), 1.0),), error)


def test_multiples_of_one_another_become_one_factor():
  first, other = factor_of([1.0, 2, 3], "x", 1e-3), factor_of([-2.0, -4, -6], "z", 1e-3)
  alone = factor_of([1.0, 0, 0], "w")
  formed = [(first, [(1.0, parse("x"))]), (other, [(2.0, parse("z"))]), (alone, [])]
  joined, apart = varying._joined(formed, 1e-3)
  assert apart == formed and [len(factor.multiples) for factor, _ in joined] == [1, 2]
  best, forms = joined[1]  # the one known best: errors count by the factor's size
  assert best.values is other.values and forms == [(2.0, parse("z"))]
  assert dict(best.multiples) == {parse("z"): 1.0, parse("x"): pytest.approx(-0.5)}
  assert varying._joined([formed[0], formed[2]], 1e-3) == [[formed[0], formed[2]]]


def test_likely_forms_are_written_first_and_multiples_in_one_bracket(rng):
  x = rng.uniform(1, 2, (9, 3))
  factor = varying.Factor(np.ones(3), ((parse("z"), 1.0), (parse("w"), -0.5)), 0.0)
  forms = [(factor, [(5.0, parse("x")), (1.0, parse("sin(x)"))]), (factor_of([1.0], "w"), [(2.0, parse("exp(x)"))])]
  model = model_of(-1, 0.0, "zw")._replace(link="exp")
  found = varying.written(model.link, [(each.multiples, some) for each, some in forms], 2)
  bracket, rest = x[:, 1] - 0.5 * x[:, 2], np.exp(x[:, 0]) * x[:, 2]
  for node, form in zip(found, (np.sin(x[:, 0]), x[:, 0]), strict=True):
    np.testing.assert_allclose(expression.evaluate(node, x), np.exp(form * bracket + rest))


def test_forms_of_a_factor_cost_their_nodes_and_what_they_miss():
  config = dataclasses.replace(DEFAULT.varying.forms, nats_per_node=2.0, errors_of_polynomials=10.0)
  function = unknown_functions.Tabulated(np.arange(8.0), 1e-3)
  forms = [(parse("1.5*x"), 0.1), (parse("2.5*x"), 0.05), (parse("x"), 0.2), (parse("sin(x)"), math.nan)]
  found = unknown_functions._shortest(forms, function, 5, 1, config)
  assert found == [(pytest.approx(4 * math.log(mse + 0.01) + 2 * expression.complexity(parse(text))), parse(text))
                   for mse, text in ((0.05, "2.5*x"), (0.2, "x"))]
  assert len(unknown_functions._shortest(forms, function, 1, 1, config)) == 1


def test_waves_of_one_length_are_fitted_with_a_phase_and_a_constant():
  x = np.linspace(0, 4, 40)[:, None]
  rate = np.pi / 4 / 4 * 5
  rows = Rows(x, 3 * np.sin(rate * x[:, 0] - 0.4) + 7, np.ones(40))
  config = dataclasses.replace(DEFAULT.varying.forms, num_waves=6, num_fitted_waves=2)
  best, second = unknown_functions._waves(rows, config)
  np.testing.assert_allclose(expression.evaluate(best, x), rows.y, atol=1e-9)
  assert np.mean((expression.evaluate(second, x) - rows.y) ** 2) > 1e-3


def test_columns_that_rounding_alone_tells_apart_share_a_factor(rng):
  a, b = rng.normal(size=(2, 30))
  found = varying._solved(np.column_stack([a, a + 3e-13 * b]), np.ones(30), 2 * a + 1e-3 * b)
  np.testing.assert_allclose(found, [1, 1], rtol=1e-2)


def test_factors_of_terms_of_very_different_sizes_are_known(rng):
  """Squares of the one are no numbers beside squares of the other."""
  x = rng.uniform(0.5, 3, (200, 3))
  y = np.sin(x[:, 0]) * x[:, 1] + np.exp(-x[:, 0]) * x[:, 2]
  rows = Rows(x * [1, 2.0**270, 2.0**-270], y, np.ones(200))
  places = np.linspace(0.6, 2.9, 9)
  first, second = varying.factors_of(model_of(-1, 0.0, "zw"), rows, places, config=DEFAULT.varying)
  np.testing.assert_allclose(first.values * 2.0**270, np.sin(places), atol=1e-4)
  np.testing.assert_allclose(second.values * 2.0**-270, np.exp(-places), atol=1e-4)


def test_a_set_is_reduced_as_long_as_little_more_is_left(monkeypatch):
  left = {(0, 2): 2.0, (0, 1): 5.0, (1, 2): 9.0, (0,): 50.0, (2,): 70.0}
  monkeypatch.setattr(varying.block_exchange, "left_by", lambda products, blocks: left[blocks])
  for negligible, expected in ((60.0, [((0, 1, 2), 1.0), ((0, 2), 2.0), ((0,), 50.0)]),
                               (30.0, [((0, 1, 2), 1.0), ((0, 2), 2.0)]), (1.0, [((0, 1, 2), 1.0)])):
    config = dataclasses.replace(DEFAULT.varying, negligible=negligible)
    assert list(varying._reduced(None, (0, 1, 2), 1.0, config)) == expected


def test_of_each_form_few_terms_of_the_pool_are_seen_and_the_first_multiplied():
  node = parse("sin(2.5*x)*z + sin(3.5*x)*z**2 + sin(4.5*x)/z + x*w*z")
  pool = SimpleNamespace(shortlist=lambda: [SimpleNamespace(node=node)])
  for num_multiplied in (0, 1):
    config = dataclasses.replace(DEFAULT.varying, terms_per_form=2, num_multiplied=num_multiplied)
    waves, others = [], []
    for found in varying.seen_terms(pool, (1, 2), config)[1]:
      (waves if found.token == "sin" else others).append(found)
    assert len(waves) == 2 and parse("x*w") in others
    made = ["sin(4.5*x)*w", "sin(4.5*x)/w"] if num_multiplied else []  # of the first: sums have an order
    assert {expression.sort_operands(node) for node in others} == {
      expression.sort_operands(parse(text)) for text in ("x*w", *made)}


def test_factors_are_those_of_weighted_least_squares(rng):
  config = dataclasses.replace(DEFAULT.varying, num_functions=4)
  x, weights, places = rng.uniform(1, 3, (80, 2)), rng.uniform(0.2, 3, 80), np.linspace(1.2, 2.5, 7)
  rows = Rows(x, 5 * np.sin(x[:, 0]) * x[:, 1] + 0.1 * rng.normal(size=80), weights)
  low, high = x[:, 0].min(), x[:, 0].max()

  def basis(at):
    return np.polynomial.chebyshev.chebvander(2 * (at - low) / (high - low) - 1, 3)
  design, root = basis(x[:, 0]) * x[:, [1]], np.sqrt(weights)
  coefficients = np.linalg.lstsq(root[:, None] * design, root * rows.y, rcond=None)[0]
  [factor] = varying.factors_of(model_of(-1, 0.0, "z"), rows, places, config=config)
  np.testing.assert_allclose(factor.values, basis(places) @ coefficients, rtol=1e-8)
  error = np.average((rows.y - design @ coefficients) ** 2, weights=weights)
  assert factor.error == pytest.approx(error / np.average(x[:, 1] ** 2, weights=weights))
  assert factor.multiples == ((parse("z"), 1.0),)


@pytest.mark.parametrize("missing", [0, 1])
def test_enough_rows_are_just_enough(missing, rng):
  num_rows = DEFAULT.varying.min_rows - missing
  task = make_task((rng.uniform(1, 2, (num_rows, 2)), rng.normal(size=num_rows)), None, SearchOptions())
  assert varying.VaryingCoefficients(SearchOptions()).supports(task) == (not missing)


# --- evolution -------------------------------------------------------------------------------------------------------


def test_edits_that_no_operator_is_allowed_for_are_left_out():
  vocab = programs.base_vocabulary(1)
  for tokens, without in ((("+", "sin"), set()), (("sin",), {"insert"}), (("+",), {"function"}),
                          (("pow",), {"insert"}), (("+", "pow"), set())):
    weights = np.zeros(vocab.size)
    weights[[vocab.ids[token] for token in tokens]] = 1
    kinds = evolution._choices(weights, vocab, DEFAULT.evolution).kinds
    expected = [0.0 if kind in without else dict(DEFAULT.evolution.kinds)[kind] for kind in variation.KINDS]
    assert kinds.tolist() == pytest.approx(expected)


def test_constants_that_a_fit_has_lost_are_not_sane():
  found = evolution._is_sane(np.array([[1.0, -2], [0.99e15, 0], [-1.01e15, 0], [math.nan, 0], [0, math.inf]]))
  assert found.tolist() == [True, True, False, False, False]


@pytest.fixture(scope="module")
def breeder():
  x = np.linspace(0.5, 3, 40)
  options = SearchOptions()
  return evolution._Breeder(make_task((x, 2 * x + 0.5), ("x",), options), options)


def test_factors_and_the_constant_of_least_squares_are_put_where_they_were_added(breeder):
  values = np.array([[9.0, 9, 0, 5, 0, 0], [9, 0, 5, 0, 0, 9]])
  is_added = np.array([[0, 0, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0]], bool)
  found = SimpleNamespace(factors=np.array([[1.5, 2.5, 0], [3.5, 0, 0]]), constant=np.array([0.25, 0.75]))
  expected = [[9, 9, 1.5, 5, 2.5, 0.25], [9, 3.5, 5, 0, 0.75, 9]]
  assert breeder._with_factors(values, is_added, found).tolist() == expected


def test_terms_of_known_columns_alone_are_bred(breeder):
  assert breeder._bare_terms(parse("2.5*x - 3*sin(x) + 1")) == [parse("x"), parse("sin(x)")]
  assert breeder._bare_terms(parse("x + z")) == []


def test_numbers_of_formulas_go_back_to_the_tokens_of_their_genomes(breeder):
  origin = np.array([[-1, 0, -1, 2], [-1, 1, -1, -1]])
  found = breeder._of_genomes(np.array([[7.0, 1.5, 8, 2.5], [7, 3.5, 8, 0]]), origin)
  assert found.shape == (2, DEFAULT.evolution.max_tokens)
  assert found[:, :4].tolist() == [[1.5, 0, 2.5, 0], [0, 3.5, 0, 0]] and not found[:, 4:].any()


def test_what_is_better_than_the_pool_goes_out_first(breeder):
  vocab = breeder._vocab
  texts = ("2.0*x + 0.5", "1.5*x", "sin(x)*1.5 + x")
  nodes = [parser.parse(text, ("x",)) for text in texts]
  ids, values = programs.encode_programs(nodes, vocab, num_programs=3, length=48)
  lengths = np.array([expression.complexity(node) for node in nodes])
  zeros = np.zeros(3, int)
  some = Population(ids, values, np.array([1e-6, 0.3, 1e-9]), lengths, zeros, zeros, zeros, ids, values, ids)
  long, middle, short = sorted(lengths.tolist(), reverse=True)

  def answers(*known):
    pool = SimpleNamespace(in_order=lambda: [
      SimpleNamespace(node=parser.parse(text, ("x",)), mse=loss * breeder._task.variance) for text, loss in known])
    return [expression.complexity(node) for node in breeder._answers(SimpleNamespace(pool=pool), some)]
  assert answers() == [long, middle, short]
  assert answers(("x", 0.1)) == [long, middle, short]  # of those that are no better one
  assert answers(("x", 1e-7)) == [long, middle]
  assert answers(("x", 1e-10)) == [long]
