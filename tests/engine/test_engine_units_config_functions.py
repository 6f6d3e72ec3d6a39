"""What the default config makes of sources of unknown functions: inner constants, sizes, how many go on."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, candidate, nested, parse, task_of

from symformer_jax.engine import refine
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.config.ridges import RidgesConfig
from symformer_jax.engine.config.unknown_functions import SeparableConfig, SingleIndexConfig, VaryingConfig
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import sort_operands
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.curves import two_constants
from symformer_jax.sources.fractions import rational_bases, rationals
from symformer_jax.sources.repairs.fronts import first_fronts
from symformer_jax.sources.ridges import ridge_functions, ridges
from symformer_jax.sources.sums import pursuit, terms
from symformer_jax.sources.unknowns import (
  alternating,
  plain_functions,
  product_grid,
  separable,
  single_index,
  unknown_functions,
  varying,
)

# --- functions -------------------------------------------------------------------------------------------------------


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in ((DEFAULT.ridges, RidgesConfig), (DEFAULT.varying, VaryingConfig),
                     (DEFAULT.separable, SeparableConfig),
                     (DEFAULT.single_index, SingleIndexConfig)):
    assert part == make()


def affine(name):
  return [tuple(each) for each in ridge_functions.OUTER[name].affine(DEFAULT.ridges.grids)]


def test_inner_constants_of_ridges():
  """A sum runs from 0 to 1: where the zeros, centres and ends of p*sum + q lie."""
  assert [q / p for p, q in affine("ln")] == [0.01, 0.07, 0.3, 1.5]
  assert [p for p, _ in affine("exp")] == [0.7, 2, 5, 12]
  located = affine("gauss")
  assert sorted({round(1 / p, 9) for p, _ in located}) == [0.07, 0.2, 0.6]
  assert sorted({round(-q / p, 9) + 0.0 for p, q in located}) == [0, 0.33, 0.67, 1] and len(located) == 12
  assert affine("inv_ln") == list(itertools.product((0.5, 2, 8), (1.1, 2)))
  assert affine("occupancy") == list(itertools.product((1, 3, 8), (0.05, 0.5)))
  for name, ends in (("asin", [0.5, 0.9, 0.999]), ("tan", [0.6, 1, 1.4])):
    assert [(q, p + q) for p, q in affine(name)] == [(-end, end) for end in ends]


def test_what_ridges_are_made_of():
  x = np.random.default_rng(0).uniform(1, 3, (200, 2))
  space = ridges._Space(Rows(x, x[:, 0], np.ones(200)).sample(128, seed=0), (0, 1), [], DEFAULT.ridges)
  as_text = [[sort_operands(tidy(ridges.to_node(m))) for m in some] for some in (space.arguments, space._amplitudes)]
  assert as_text[0] == [parse(text) for text in (
    "x", "z", "x*z", "x**2", "z**2", "x/z", "z/x", "1/x", "1/z", "x**3", "z**3", "sqrt(x)", "sqrt(z)")]
  assert as_text[1] == [parse(text) for text in ("1", "x", "z", "1/x", "1/z", "x*z", "x**2", "z**2", "x/z", "z/x")]
  wide = ridges._Space(Rows(np.tile(x, 2) + np.arange(4), x[:, 0], np.ones(200)).sample(128, seed=0), range(4), [],
                       DEFAULT.ridges)
  assert len(wide._amplitudes) == 16 and wide._units.shape[1] == 128
  for ratio, has_pole in ((0.9e4, False), (1.1e4, True)):
    column = np.linspace(1, ratio, 50)[:, None]
    found = ridges._Space(Rows(column, column[:, 0], np.ones(50)), (0,), [], DEFAULT.ridges).arguments
    assert (((0, -1),) not in found) is has_pole
  for num, stand in ((5, 5), (6, 0)):
    x = np.random.default_rng(0).uniform(1, 3, (60, num))
    space = ridges._Space(Rows(x, x[:, 0], np.ones(60)), range(num), [], DEFAULT.ridges)
    assert len(space._beside[0]) == stand


def test_sums_in_ridges(monkeypatch):
  x, asked = np.random.default_rng(0).uniform(1, 3, (128, 3)), []

  def best(units, settings, *, num_phases, num_directions, grids, num_starts):
    asked.append((len(units), num_phases, num_directions, num_starts))
    shape = (len(units), len(settings), settings[0].amplitudes.shape[0], num_starts)
    return {name: np.zeros(shape) for name in ridge_functions.OUTER}, {
      name: np.zeros(shape, int) for name in ridge_functions.OUTER}

  monkeypatch.setattr(ridges.ridge_gains, "best_of_all", best)
  space = ridges._Space(Rows(x, x[:, 0], np.ones(128)), range(3), [], DEFAULT.ridges)
  space.found()
  assert asked == [(24, 32, 2, 2), (128, 20, 16, 2), (1, 7, 64, 2)] and len(space.arguments) == 24
  wide = np.random.default_rng(0).uniform(1, 3, (128, 6))
  asked.clear()
  ridges._Space(Rows(wide, wide[:, 0], np.ones(128)), range(6), [], DEFAULT.ridges).found()
  assert [num for num, *_ in asked] == [32, 128, 16]


def test_seeds_and_variants_of_ridges():
  task, pool = task_of(3), Pool(1.0, 100)
  texts = ("x + z", "x*z", " + ".join(f"sin({k}.5*x)" for k in range(6)))
  pool.insert(candidate(text, 1.0) for text in texts)
  question = SimpleNamespace(task=task, pool=pool)
  assert [len(some) for some in ridges._seeds(question, DEFAULT.ridges)] == [2]  # one seed
  for num, is_seed in ((24, True), (25, False)):
    pool = Pool(1.0, 100)
    pool.insert([Candidate(nested(num), 1.0)])
    assert bool(ridges._seeds(SimpleNamespace(task=task, pool=pool), DEFAULT.ridges)) is is_seed
  found = [ridges.Ridge(0.1 * i, "exp", (0,), np.ones(1), 0.0, 0, 0) for i in range(5)]
  assert len(list(ridges._varied(found, DEFAULT.ridges))) == 2


def test_rows_for_ridges():
  for num_rows, is_asked in ((10, True), (9, False)):  # two constants, of five rows each
    assert ridges.Ridges().supports(task_of(1, num_rows=num_rows)) is is_asked


def test_tables_of_unknown_functions(monkeypatch):
  forms, task = DEFAULT.varying.forms, task_of(1)
  table = unknown_functions.Table(task, 0, DEFAULT, forms)
  assert len(table.places) == 64
  function = unknown_functions.Tabulated(np.sin(2 * table.places), 0.0)  # a multiple of no known function
  assert table.task(function).num_rows == 64
  asked = []
  monkeypatch.setattr(terms, "sums_of", lambda atoms, rows, *, links, searches, rule, config: asked.append(
    (links, len(searches), config.terms.num_fitted)) or [])
  monkeypatch.setattr(rationals, "rationals_of", lambda rows, columns, *, rule, config: asked.append(config) or [])
  for name in ("powers_of_sums", "sums_of_two"):
    monkeypatch.setattr(two_constants, name, lambda rows, column, rule, config: (parse(f"{k}.5*x") for k in range(50)))
  assert len(table.forms(function)) == 1 + 4 + 24  # a constant, four waves, and twice the same formulas
  (links, num_searches, num_sums), fractions = asked
  assert (links, num_searches, num_sums) == (("y",), 3, 48)
  [basis, *others] = rational_bases.bases(1, fractions)
  assert not others and fractions.num_fitted == 12 and not fractions.num_taken_apart and fractions.links == ("y",)
  assert len(basis.numerator) == len(basis.denominator) == 4
  assert all(len(rational_bases.bases(num, fractions)[0].numerator) == math.comb(num + 3, 3) for num in (2, 3))
  asked.clear()
  rows = Rows(table.places[:, None], np.sin(table.places), np.ones(64))
  next(unknown_functions.forms_of(rows, task.rule, DEFAULT, DEFAULT.single_index.forms))
  assert asked[0][1:] == (2, 64)
  nodes = {sort_operands(argument.node) for argument in unknown_functions.library.families._each_argument(
    unknown_functions.library.families.Space(table.places[:, None], (0,), forms.library))}
  assert {parse(f"x**({p})") for p in (1, 2, -1, 0.5, 3, -2, 4)} <= {sort_operands(tidy(node)) for node in nodes}


def test_multiples_of_powers_and_functions_beside_a_constant_that_are_told_at_once():
  x, forms = np.linspace(0.1, 0.9, 40), DEFAULT.varying.forms
  halves = [exponent for exponent in np.arange(-8, 9) / 2 if exponent and abs(exponent) != 3.5]
  for exponent in (*halves, 1 / 3, 2 / 3, 4 / 3, -1 / 3, -2 / 3):
    [node] = plain_functions.multiples(x, 3 * x**exponent + 2, 0.0, forms)
    np.testing.assert_allclose(expression.evaluate(node, x[:, None]), 3 * x**exponent + 2)
  for function in (np.log, np.exp, np.sin, np.cos, np.tan, np.arcsin, np.arctan):
    [node] = plain_functions.multiples(x, 3 * function(x) + 2, 0.0, forms)
    np.testing.assert_allclose(expression.evaluate(node, x[:, None]), 3 * function(x) + 2)
  for exponent in (3.5, 5, 0.25, -4 / 3):
    assert not plain_functions.multiples(x, 3 * x**exponent + 2, 0.0, forms)


@pytest.mark.parametrize(("share", "is_known"), [(0.9e-8, True), (1.1e-8, False)])
def test_a_function_is_known_well_enough_for_that_to_a_ten_millionth_of_its_variance(share, is_known):
  """Ten times what is known of its errors counts."""
  x = np.linspace(0.1, 0.9, 40)
  values = 3 * x**2 + 2
  assert bool(plain_functions.multiples(x, values, share * np.var(values), DEFAULT.varying.forms)) is is_known


def test_waves_that_a_function_may_be():
  x = np.linspace(0, 1, 200)
  for eighths, is_found in ((24, True), (25, False)):
    rows = Rows(x[:, None], np.sin(eighths * np.pi / 4 * x), np.ones(200))
    wave = unknown_functions._waves(rows, DEFAULT.varying.forms)[0]
    assert np.allclose(expression.evaluate(wave, rows.x), rows.y, atol=1e-9) is is_found


def test_forms_get_sixteen_steps_then_forty_eight(monkeypatch):
  asked = []

  def fit_constants(some, *, method, max_steps, max_constants):
    asked.append((max_steps, [len(nodes) for _, nodes in some]))
    return [[(node, 1.0) for node in nodes] for _, nodes in some]

  monkeypatch.setattr(refine, "fit_constants", fit_constants)
  deep = [nested(num) for num in range(1, 31)]
  table = SimpleNamespace(column=0, places=np.arange(1.0, 9.0), task=lambda function: None, forms=lambda function: [
    *deep, *(parse(f"{k}.5*x") for k in range(1, 6))])
  function = unknown_functions.Tabulated(np.arange(9.0), 2.0)
  forms = dataclasses.replace(DEFAULT.varying.forms)
  [found] = unknown_functions.find_forms([(table, function)], OPTIONS, forms)
  assert asked == [(16, [35]), (48, [16])] and len(found) == 6
  alike = [(parse(f"{k}.5*x"), 1.0) for k in range(1, 6)]
  table.forms = lambda function: [node for node, _ in alike]
  asked.clear()
  [found] = unknown_functions.find_forms([(table, function)], OPTIONS, forms)
  assert asked == [(16, [5]), (48, [2])] and len(found) == 1
  # Two nats for a node; ten times the mean square error of the polynomials beside that of the form.
  assert found[0][0] == pytest.approx(4.5 * math.log(1 + 10 * 2) + 2 * 3)


def test_sums_with_unknown_factors(monkeypatch):
  own = DEFAULT.varying
  for num_columns, num_rows, is_asked in ((2, 64, True), (2, 63, False), (6, 64, True), (7, 64, False)):
    assert varying.VaryingCoefficients(OPTIONS).supports(task_of(num_columns, num_rows=num_rows)) is is_asked
  for num, views in ((16, True), (15, False)):
    assert bool(varying._views(np.arange(num) + 20.0, own)) is views
  assert varying._views(np.linspace(1, 2.9, 20), own) == ("plain",)
  assert varying._views(np.linspace(1, 3.1, 20), own) == ("plain", "log")
  asked = []
  monkeypatch.setattr(varying.block_exchange, "best_sets", lambda products, *, max_size, config: asked.append(
    max_size) or [])
  for num_rows, size in ((160, 5), (64, 2), (159, 4)):
    rows = task_of(2, num_rows=num_rows).fit_rows
    varying.find_models(rows, (0, 1), ("y",), more={}, allows=None, config=own)
    assert set(asked) == {size}
    asked.clear()


def test_terms_beside_unknown_factors():
  own = DEFAULT.varying
  rows = task_of(3).fit_rows
  many = [parse(f"sin({k}.5*x)") for k in range(80)]
  known = varying._known_terms(rows, (0, 1, 2), many, None, own)
  assert len(known.nodes) == 64
  plain = varying._known_terms(rows, (0, 1), (), None, own)
  assert max(map(expression.complexity, plain.nodes)) == 5
  pool = Pool(1.0, 100)
  pool.insert([candidate(f"{k}.5*x + sin({k}.5*z) + {k}.5", 1.0 + k) for k in range(1, 4)])
  found = varying.seen_terms(pool, (0, 1), own)
  assert sum(node.token == "sin" for node in found[0]) == 2  # of each form two


def test_which_models_are_looked_at():
  own = DEFAULT.varying

  def model(left, nats=-1.0, text="x"):
    return varying.Model(nats, "y", 0, "plain", (parse(text),), left)

  kept = varying.best_models([model(1e-8), model(0.9e-5, text="z"), model(1.1e-5, text="w")], own)
  assert len(kept) == 2  # a thousand times the least
  assert len(varying.best_models([model(0.9e-3), model(1.1e-3, text="z")], own)) == 1  # a thousandth of the variance
  assert len(varying.best_models([model(1e-8, text=f"sin({k}.5*x)") for k in range(9)], own)) == 4
  assert len(varying.best_models([model(0.0), model(0.9e-8, text="z"), model(1.1e-8, text="w")], own)) == 2  # 1e-11


def test_products_of_sums_of_functions():
  own = DEFAULT.separable
  for num_columns, num_rows, is_asked in ((1, 99, True), (2, 99, True), (9, 256, True), (10, 256, False),
                                          (2, 42, True), (2, 41, False)):  # three rows for each of 7 polynomials
    assert separable.Separable(OPTIONS).supports(task_of(num_columns, num_rows=num_rows)) is is_asked
  assert separable._degrees(1000, 2, own) == (7, 14, 23)
  for num, count in ((6, True), (7, False)):  # beyond a function of each
    assert (len(list(separable._products(list(range(num)), "y", own))) > 1) is count
  assert own.lone_links == ("y",) and not list(separable._products(list(range(7)), "inv", own))
  plain = separable.Separable(OPTIONS)._plain
  assert (plain.num_sweeps, plain.least_gain, plain.most_left, plain.screened_left) == (100, 0.03, 1e-8, 0.01)
  assert plain.divisor_powers == (1.0, -1.0, 2.0, -2.0) and plain.divided_links == ("y", "inv")
  assert plain.product_links == ("y", "inv", "sqrt") and not plain.added_links + plain.overlapping_links
  for num, is_split in ((4, True), (5, False)):
    assert any(len(structure.factors) == 2 for structure in separable._products(range(num), "inv", plain)) is is_split
  assert (own.num_sweeps, own.least_gain, own.most_left, own.screened_left) == (30, 1e-3, 1e-3, 1.0)
  four, five = (len(alternating.partitions(range(num), config=own)) for num in (4, 5))
  assert four > five == 5 + 10 + 1 + 10  # of five columns not all partitions
  x = np.linspace(1, 3.1, 50)[:, None]
  assert len(separable._all_bases(x, [0], own)) == 2 * len(separable._degrees(50, 1, own))
  assert len(separable._all_bases(np.minimum(x, 2.9), [0], own)) == len(separable._degrees(50, 1, own))
  rows = task_of(2).fit_rows
  divisors = [divisor for divisor, name, _ in separable._targets(rows, (0, 1), ("y",), own)]
  pairs = [((0, p), (1, q)) for p in (1.0, -1.0) for q in (1.0, -1.0)]
  assert divisors == [(), ((0, 1.0),), ((0, -1.0),), ((1, 1.0),), ((1, -1.0),), *pairs]
  for num, count in ((3, 3 * 4), (4, 0)):
    found = [divisor for divisor, _, _ in separable._targets(task_of(num).fit_rows, range(num), ("y",), own)]
    assert sum(len(divisor) == 2 for divisor in found) == count
  named = {(len(divisor), name) for divisor, name, _ in separable._targets(rows, (0, 1), own.links, own)}
  assert {name for length, name in named if length == 2} <= {"y", "inv"} and (1, "sqrt") in named
  without = dataclasses.replace(own, divisor_powers=())
  assert {divisor for divisor, _, _ in separable._targets(rows, (0, 1), ("y",), without)} == {()}


def test_models_of_products_of_sums():
  own = DEFAULT.separable

  def model(left, sums=((0,), (1,)), nats=-1.0):
    return separable.Model(nats, separable.Structure("y", (), sums), {}, (), left)

  different_ones = [((i,), (i + 1,)) for i in range(9)]
  assert len(separable.best_models([model(1e-8, each) for each in different_ones], own)) == 3
  assert len(separable.best_models([model(1e-6), model(0.9e-3, ((2,), (3,))), model(1.1e-3, ((4,), (5,)))], own)) == 2
  assert len(separable.best_models([model(1e-8), model(0.9e-5, ((2,), (3,))), model(1.1e-5, ((4,), (5,)))], own)) == 2
  for num, count in ((4, 1), (5, 0)):
    assert len(separable.best_models([model(1e-8, (tuple(range(4)), tuple(range(num))))], own)) == count


def test_sweeps_of_alternating_least_squares(monkeypatch):
  own = DEFAULT.separable
  rng = np.random.default_rng(0)
  designs = [np.column_stack([np.ones(40), rng.normal(size=40)]) for _ in range(2)]
  counts = []

  def swept(designs, rest, root, goal, coefficients, config):
    counts.append([each.copy() for each in coefficients])
    return 1.0, [*coefficients, np.zeros(0)]

  monkeypatch.setattr(alternating, "_swept", swept)
  alternating.fit_product(designs, rng.normal(size=40), np.ones(40), config=own)
  assert len(counts) == 2
  assert any(np.any(a != b) for a, b in zip(counts[0], counts[1], strict=True))
  monkeypatch.undo()
  solves, least_squares = [], alternating._least_squares
  for gain, num in ((0.9e-3, 2), (1.1e-3, 30)):
    solves.clear()

    def solved(design, goal, gain=gain):
      found, _ = least_squares(design, goal)
      solves.append(design.shape)
      return found, np.eye(1, 40)[0] * math.sqrt((1 - gain) ** ((len(solves) - 1) // 2))  # two solves a sweep
    monkeypatch.setattr(alternating, "_least_squares", solved)
    alternating._swept(designs, np.zeros((40, 0)), np.ones(40), rng.normal(size=40), [np.ones(2), np.ones(2)], own)
    monkeypatch.undo()
    assert len(solves) == 2 * num


def test_functions_of_one_product():
  for num_columns, num_rows, is_asked in ((1, 40, False), (2, 40, True), (2, 39, False)):
    assert single_index.SingleIndex().supports(task_of(num_columns, num_rows=num_rows)) is is_asked


@pytest.mark.parametrize(("num_columns", "exponents"), [
  (4, [-4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4]), (5, [-2, -1, -0.5, 0, 0.5, 1, 2, 3]),
  (6, [-2, -1, 0, 1, 2]), (7, [-1, 0, 1, 2]), (9, [-1, 0, 1]), (10, None)])
def test_the_more_columns_the_fewer_exponents_has_a_product_of_all(num_columns, exponents):
  own, rows = DEFAULT.single_index, task_of(num_columns).fit_rows
  found = product_grid.Grid(rows, range(num_columns), own.exponents, num_rows=own.num_rows, most=own.max_products)
  assert [sorted(each) for each in found.exponents] == [exponents] * num_columns * (exponents is not None)


def test_of_five_columns_of_both_signs_a_product_has_whole_exponents():
  own, rows = DEFAULT.single_index, task_of(5).fit_rows
  both = dataclasses.replace(rows, x=rows.x - 2)
  found = product_grid.Grid(both, range(5), own.exponents, num_rows=own.num_rows, most=own.max_products)
  assert [sorted(each) for each in found.exponents] == [[-3, -2, -1, 0, 1, 2, 3, 4]] * 5


def test_indices_are_three_at_most_and_smooth(monkeypatch):
  rng = np.random.default_rng(0)
  x = rng.uniform(1, 3, (60, 2))
  rows, asked = Rows(x, np.sin(x[:, 0] * x[:, 1]), np.ones(60)), []
  roughness = single_index._roughness
  for rough, count in ((0.029, 3), (0.031, 0)):
    divisors = []
    divided = single_index._divided
    monkeypatch.setattr(single_index, "_divided", lambda rows, by, divisors=divisors, divided=divided: divisors.append(
      by) or divided(rows, by))
    monkeypatch.setattr(single_index, "_roughness", lambda target, order, rough=rough: asked.append(len(order)) or (
      np.full(len(order), rough)))
    assert len(single_index.find_indices(rows, (0, 1), DEFAULT)) == count
    assert set(divisors) == {(), ((0, 1.0),), ((0, -1.0),), ((1, 1.0),), ((1, -1.0),)}
    assert asked.count(1) == 64
    asked.clear()
    monkeypatch.undo()
  assert roughness(np.array([1.0, 2, 4]), np.array([[0, 1, 2]])).tolist() == [(1 + 4) / 4]


def test_sums_that_a_function_may_be_are_searched_for_in_three_ways(monkeypatch):
  asked = []
  monkeypatch.setattr(pursuit, "select_columns", lambda columns, *given, config, **rest: asked.append(config) or [])
  task = task_of(1, num_rows=200)
  columns = SimpleNamespace(columns=np.ones((128, 1)), groups=np.zeros(1, int), tiers=np.zeros(1, int))
  monkeypatch.setattr(terms, "Subset", lambda columns, index: columns)
  terms.sums_of(columns, task.fit_rows, links=("y",), searches=DEFAULT.varying.forms.searches, rule=task.rule)
  assert [(c.max_columns, c.num_first, c.num_pairs) for c in asked] == [(2, 32, 16), (2, 64, 32), (3, 64, 64)]


# --- functions in formulas of the pool --------------------------------------------------------------------------------


def test_functions_are_replaced_in_sixty_four_formulas_of_three_fronts_and_sixty_four_nodes():
  config = DEFAULT.replacements
  for num, count in ((64, 1), (65, 0)):
    assert len(first_fronts([Candidate(nested(num), 1.0)], frozenset(), config)) == count
  fronts = [Candidate(nested(2 + i, i), 1.0 + i) for i in range(12)]  # each worse and longer: a front of its own
  assert list(first_fronts(fronts, frozenset(), config).values()) == [1, 2, 3]
  wide = [Candidate(nested(2 + i % 30, i), 1e3 - 40 * (i % 30) + i / 100) for i in range(90)]
  assert len(first_fronts(wide, frozenset(), config)) == 64
