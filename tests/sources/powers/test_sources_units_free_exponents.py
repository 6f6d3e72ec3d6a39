"""Parts of product units one by one, without a fit: starts, what is written of them, and plain exponents."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, ProductUnitsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.powers import product_fits, product_forms, product_rounding, product_units
from symformer_jax.sources.powers.product_fits import FUNCTIONS, POWER, Fits, Layout, Starts, Table
from symformer_jax.sources.powers.product_rounding import Rounding
from symformer_jax.sources.powers.product_units import SHAPES

OWN, NAMES = DEFAULT.product_units, ("x", "y", "z")


def points(num_columns, *, num_rows=60, low=0.5, high=3.0, seed=0):
  return np.random.default_rng(seed).uniform(low, high, (num_rows, num_columns))


def units_of(x, y=None, *, links=("y",), weights=None, config=OWN):
  y = np.random.default_rng(0).uniform(1, 3, len(x)) if y is None else y
  rows = Rows(x, y, np.ones(len(x)) if weights is None else weights)
  return product_units._Units.of(rows, range(x.shape[1]), [LINKS[name] for name in links], config)


def index(name):
  return list(FUNCTIONS).index(name)


# --- what is written -------------------------------------------------------------------------------------------------


def columns_of(x, largest=6.0):
  logs = np.log(np.abs(x))
  return product_forms.Columns(
    tuple(range(x.shape[1])), x, logs.mean(axis=0), logs.std(axis=0), largest=largest)


def one_fit(layout, parameters, *, function="exp", sign=None, is_used=None, num_columns=2):
  """Fits and starts of one formula."""
  parameters = np.asarray(parameters, float)[None]
  starts = Starts(
    parameters, np.ones(parameters.shape, bool), np.zeros(1, int), np.array([index(function)]),
    np.ones((1, len(layout.num_inner))) if is_used is None else np.array([is_used], float),
    np.ones((1, layout.num_products)) if sign is None else np.array([sign], float),
    np.zeros((1, layout.num_products, num_columns)))
  return starts, Fits(parameters, np.zeros(1), np.zeros((1, parameters.shape[1], parameters.shape[1])))


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name not in ("tanh", POWER)])
@pytest.mark.parametrize("layout", [Layout((0, 1)), Layout((1, 0)), Layout((2,)), Layout((0, 2))])
def test_terms_are_those_of_the_fit_but_for_factors(layout, function, rng):
  """Of each unit its product, and with a function that times this, of a wave the sine too, by the definition."""
  x = points(2)
  logs = np.log(x)
  logs = (logs - logs.mean(axis=0)) / logs.std(axis=0)
  values = {"exp": np.exp, "inv": lambda n: 1 / (1 + n), "sqrt": lambda n: np.sqrt(1 + n), "atan": np.arctan,
            "inv_sqrt": lambda n: 1 / np.sqrt(1 + n), "ln": np.log1p, "pure_ln": np.log, "cos": np.cos,
            "bose": lambda n: 1 / np.expm1(n)}[function]
  parameters = 0.4 * rng.normal(size=layout.num_parameters(2))
  signs = np.array([1.0] * layout.num_products)
  if function not in ("pure_ln", "bose"):
    at = max(i for i, num in enumerate(layout.num_inner) if num)  # the last product inside is taken off
    signs[at + sum(layout.num_inner[: at + 1])] = -1
    parameters[layout.places(2)[at][1][-1].stop - 1] = -4
  starts, fits = one_fit(layout, parameters, function=function, sign=signs)
  expected, at = [], 0
  for outer, inner in layout.places(2):
    product = np.exp(logs @ parameters[outer])
    if inner:
      n = sum(signs[at + 1 + k] * np.exp(logs @ parameters[place][:2] + parameters[place][2])
              for k, place in enumerate(inner))
      expected.append(product * (np.sin(n) if function == "cos" else 1))
      expected.append(product * values(n))
    else:
      expected.append(product)
    at += 1 + len(inner)
  found = [expression.evaluate(node, x) for node in columns_of(x).terms(starts, fits, 0, layout)]
  assert len(found) == len(expected)
  for one, other in zip(found, expected, strict=True):
    np.testing.assert_allclose(one / other, np.full(60, one[0] / other[0]), rtol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_power_is_of_a_sum_whose_first_product_has_no_factor(sign):
  x = points(2)
  deviations, means = np.log(x).std(axis=0), np.log(x).mean(axis=0)
  # x**2*(x*y + 0.3*sign*y**2)**1.25, the second factor in the unit of the first product's.
  factor = np.log(0.3) + 2 * means[1] - (means[0] + means[1])
  parameters = [2 * deviations[0], 0, *deviations, 1.25, 0, 2 * deviations[1], factor]
  starts, fits = one_fit(Layout((2,)), parameters, function=POWER, sign=[1.0, 1.0, sign])
  product, power = columns_of(x).terms(starts, fits, 0, Layout((2,)))
  np.testing.assert_allclose(expression.evaluate(product, x), x[:, 0] ** 2)
  inside = x[:, 0] * x[:, 1] + 0.3 * sign * x[:, 1] ** 2
  with np.errstate(invalid="ignore"):
    found = expression.evaluate(power, x)
    np.testing.assert_allclose(found, x[:, 0] ** 2 * inside**1.25, rtol=1e-9)
  assert 1.25 in [part.value for part in expression.walk(power) if part.is_number]


def test_exponents_as_large_as_is_allowed_are_written():
  x = points(2)
  deviations = np.log(x).std(axis=0)
  for largest, is_written in ((3.0, True), (2.9, False)):
    for exponent in (3.0, -3.0):
      starts, fits = one_fit(Layout((0,)), [exponent * deviations[0], 0.5 * deviations[1]])
      assert bool(columns_of(x, largest).terms(starts, fits, 0, Layout((0,)))) is is_written
      starts, fits = one_fit(Layout((2,)), [0, 0, *deviations, exponent, 0, deviations[1], 0.1], function=POWER)
      assert bool(columns_of(x, largest).terms(starts, fits, 0, Layout((2,)))) is is_written


def test_units_that_are_not_used_and_products_of_nothing_are_no_terms():
  x = points(2)
  deviations = np.log(x).std(axis=0)
  parameters = [deviations[0], 0, 0, 0, 0, 2 * deviations[1]]
  layout = Layout((0, 0, 0))
  for is_used, expected in (((1, 1, 1), ["x", "y**2"]), ((0, 1, 1), ["y**2"]), ((1, 0, 0), ["x"])):
    starts, fits = one_fit(layout, parameters, is_used=is_used)
    found = columns_of(x).terms(starts, fits, 0, layout)
    np.testing.assert_allclose([expression.evaluate(node, x) for node in found],
                               [expression.evaluate(parser.parse(text, NAMES), x) for text in expected])
  # What follows a unit with a function that is not used has its own signs.
  starts, fits = one_fit(Layout((1, 1)), [0, 0, deviations[0], 0, 0, 0, 0, 0, deviations[1], 0], function="exp",
                         sign=[1, 1, 1, -1], is_used=(0, 1))
  [found] = columns_of(x).terms(starts, fits, 0, Layout((1, 1)))
  assert expression.columns_of(found) == {1}
  assert np.all(np.diff(expression.evaluate(found, np.array([[1, 1.0], [1, 2.0], [1, 3.0]]))) < 0)


def test_factors_inside_are_no_larger_than_doubles():
  x = points(2)
  starts, fits = one_fit(Layout((1,)), [0, 0, np.log(x).std(axis=0)[0], 0, 900.0], function="atan")
  [term] = columns_of(x).terms(starts, fits, 0, Layout((1,)))
  sizes = [part.value for part in expression.walk(term) if part.is_number]
  assert max(sizes) == pytest.approx(math.exp(600), rel=1e-9)


@pytest.mark.parametrize(("exponent", "plain"), [
  (1.5 + 0.9e-6, 1.5), (1.5 + 1.1e-6, None), (-0.3333, -0.3333), (1.23456 + 1e-7, None)])
def test_exponents_of_four_digits_are_those(exponent, plain):
  assert product_forms._digits(exponent) == (exponent if plain is None else plain)


@pytest.mark.parametrize(("exponent", "is_defined"), [(2 + 0.9e-6, True), (1.5, False), (2.001, False)])
def test_columns_of_both_signs_have_whole_exponents(exponent, is_defined):
  x = points(2, low=-2.0, high=2.5)
  columns = columns_of(x)
  found = columns._product(np.array([exponent, 1.0]) * columns._deviations)
  assert (found is not None) is is_defined
  if found is not None:
    np.testing.assert_allclose(expression.evaluate(found[0], x), x[:, 0] ** 2 * x[:, 1])
    assert found[1] == pytest.approx(np.mean(2 * np.log(np.abs(x[:, 0])) + np.log(np.abs(x[:, 1]))))


def test_beside_a_column_of_both_signs_others_have_broken_exponents():
  x = np.column_stack([points(1)[:, 0], np.resize([2.0, -1.0, 3.0], 60)])
  columns = columns_of(x)
  assert columns._product(np.array([1.5, 1.0]) * columns._deviations) is not None
  assert columns._product(np.array([1.5, 0.5]) * columns._deviations) is None


@pytest.mark.parametrize(("name", "expected"), [
  ("exp", {"exp"}), ("cos", {"cos", "sin"}), ("inv_sqrt", {"inv", "sqrt", "+"}), ("bose", {"inv", "exp", "+"}),
  (POWER, {"pow"})])
def test_operators_of_functions(name, expected):
  assert product_forms.operators(name) == expected


# --- sums that are fitted --------------------------------------------------------------------------------------------


def orthogonal(num_rows, num):
  """Columns of mean 0, variance 1 and no correlation."""
  draw = np.random.default_rng(0).normal(size=(num_rows, num + 1))
  draw[:, 0] = 1
  return np.linalg.qr(draw)[0][:, 1:] * np.sqrt(num_rows)


@pytest.mark.parametrize(("share", "has_term"), [(0.29, False), (0.31, True)])
def test_a_term_that_costs_less_than_its_share_of_a_degree_of_freedom_is_left_out(share, has_term):
  """Six shares of twenty, of 23 rows and two terms beside a constant."""
  x = orthogonal(23, 3)
  z = 5 + 3 * x[:, 0] + 0.1 * x[:, 2] + 0.1 * np.sqrt(share) * x[:, 1]
  node = product_forms.fitted_sum(
    [variable(0), variable(1)], x, z, np.ones(23), most_growth=6.0, exact=0.0)
  assert expression.columns_of(node) == ({0, 1} if has_term else {0})


@pytest.mark.parametrize(("share", "has_term"), [(5.9, False), (6.1, True)])
def test_of_few_rows_there_is_one_degree_of_freedom(share, has_term):
  x = orthogonal(4, 3)
  z = 50 + 30 * x[:, 0] + 0.1 * x[:, 2] + 0.1 * np.sqrt(share) * x[:, 1]
  node = product_forms.fitted_sum([variable(0), variable(1)], x, z, np.ones(4), most_growth=6.0, exact=0.0)
  assert expression.columns_of(node) == ({0, 1} if has_term else {0})


@pytest.mark.parametrize(("share", "has_term"), [(0.9e-4, False), (1.1e-4, True)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_term_that_makes_no_more_than_is_exact_is_left_out(share, has_term, scale):
  x = orthogonal(23, 2)
  z = scale * (5 + np.sqrt(1 - share) * x[:, 0] + np.sqrt(share) * x[:, 1])
  node = product_forms.fitted_sum([variable(0), variable(1)], x, z, np.ones(23), most_growth=6.0, exact=1e-4)
  assert expression.columns_of(node) == ({0, 1} if has_term else {0})


def test_a_constant_that_does_not_count_is_left_out_and_something_is_kept():
  x = orthogonal(23, 2)
  node = product_forms.fitted_sum([variable(0), variable(1)], x, 3 * x[:, 0], np.ones(23), most_growth=6.0, exact=1e-9)
  np.testing.assert_allclose(expression.evaluate(node, x), 3 * x[:, 0], atol=1e-12)
  assert expression.complexity(node) == 3
  kept = product_forms.fitted_sum([variable(0), variable(1)], x, 3 * x[:, 0], np.ones(23), most_growth=6.0, exact=2.0)
  assert kept is not None


def test_factors_are_those_of_weighted_least_squares_whatever_their_units(rng):
  x = points(2) * [1e-20, 1e20]
  weights, z = rng.uniform(0.1, 3, 60), rng.normal(size=60) + 3
  node = product_forms.fitted_sum([variable(0), variable(1)], x, z, weights, most_growth=0.0, exact=0.0)
  design, root = np.column_stack([x * [1e20, 1e-20], np.ones(60)]), np.sqrt(weights)
  factors = np.linalg.lstsq(design * root[:, None], z * root, rcond=None)[0]
  np.testing.assert_allclose(expression.evaluate(node, x), design @ factors, rtol=1e-9)


def test_terms_that_are_nothing_or_without_a_value_make_no_sum():
  x = np.linspace(-1, 1, 21)[:, None]
  for text in ("x - x", "1/x", "log(x)"):
    with np.errstate(all="ignore"):
      node = product_forms.fitted_sum(
        [parser.parse(text, NAMES), variable(0)], x, x[:, 0] + 1, np.ones(21), most_growth=6.0, exact=1e-9)
    assert node is None


@pytest.mark.parametrize(("texts", "law"), [
  (("sin(2*x)", "cos(2*x)"), lambda x, y: 3 * np.sin(2 * x) - 4 * np.cos(2 * x) + 1),
  (("y*sin(2*x)", "y*cos(2*x)"), lambda x, y: -3 * y * np.sin(2 * x) + 4 * y * np.cos(2 * x) + 1),
  (("sin(2*x)", "cos(2*x)"), lambda x, y: 3 * np.sin(2 * x) - 4 * np.cos(2 * x)),
  (("sin(2*x)", "cos(2*x)"), lambda x, y: 3 * np.sin(2 * x) + 5),
  (("y*sin(2*x)",), lambda x, y: 3 * y * np.sin(2 * x) + 1),
  (("x*y", "y*sin(2*x)", "y*cos(2*x)"), lambda x, y: 2 * x * y + 3 * y * np.sin(2 * x)),
  (("y*sin(2*x)", "y*cos(2*x)", "x*y"), lambda x, y: 2 * x * y - 3 * y * np.cos(2 * x) + 5),
  (("y*sin(2*x)", "y*cos(2*x)"), lambda x, y: -3 * y * np.cos(2 * x) + 5)])
def test_waves_have_their_phase(texts, law):
  x = points(2)
  z = law(*x.T)
  node = product_forms.fitted_sum(
    [parser.parse(text, NAMES) for text in texts], x, z, np.ones(60), most_growth=6.0, exact=1e-11)
  np.testing.assert_allclose(expression.evaluate(node, x), z, atol=1e-9)
  assert sum(part.token in ("sin", "cos") for part in expression.walk(node)) == 1


# --- units of a table ------------------------------------------------------------------------------------------------


def test_a_table_has_logarithms_of_one_scale_and_targets_of_two_ways_to_count():
  x, weights = points(2, low=-3.0), np.random.default_rng(1).uniform(0.2, 2, 60)
  y = np.random.default_rng(2).uniform(1, 9, 60)
  units = units_of(x, y, links=("y", "exp"), weights=weights)
  table = units.table
  np.testing.assert_allclose(table.logs.mean(axis=0), 0, atol=1e-12)
  np.testing.assert_allclose(table.logs.std(axis=0), 1)
  np.testing.assert_allclose(np.exp(table.logs * units.deviations + units.means), np.abs(x))
  np.testing.assert_array_equal(table.negative, x < 0)
  assert units.is_whole.all() and table.goals.shape == table.roots.shape == (4, 60)
  np.testing.assert_allclose(np.sum(table.roots**2, axis=1), 1)
  for k, (z, counts) in enumerate(((y, weights), (np.log(y), weights * y**2))):
    away = np.abs(z - np.median(z)) / np.max(np.abs(z - np.median(z)))
    relative = counts / (away + np.quantile(away, OWN.quantile)) ** 2
    for root, goal, share in zip(table.roots[2 * k :], table.goals[2 * k :], (counts, relative), strict=False):
      np.testing.assert_allclose(root**2, share / share.sum())
      np.testing.assert_allclose(goal / root, (z - np.median(z)) / np.max(np.abs(z - np.median(z))), atol=1e-12)


def test_a_function_of_y_that_is_next_to_nothing_at_most_rows_has_weights():
  y = np.zeros(60)
  y[:5] = np.arange(1.0, 6)
  table = units_of(points(2), y).table
  assert np.all(np.isfinite(table.roots)) and table.roots[1, 10] / table.roots[1, 4] == pytest.approx(1e9, rel=1e-3)


def test_columns_of_one_sign_and_of_a_range_are_used():
  x = points(4)
  x[:, 1] *= -1
  x[:, 2] = np.resize([1.0, -1.0], 60)  # of one size
  x[:, 3] = np.where(np.arange(60) < 30, 1.0, 1.0 + 1.9e-6)  # of next to none
  units = units_of(x)
  assert units.columns == (0, 1) and units.is_whole.tolist() == [False, True]
  x[:, 3] = np.where(np.arange(60) < 30, 1.0, 1.0 + 2.2e-6)
  assert units_of(x).columns == (0, 1, 3)


def test_rows_with_zeros_are_left_out_with_their_weights():
  x = points(2)
  x[[3, 7], 1] = 0
  y, weights = np.arange(60.0), np.arange(1.0, 61)
  rows = units_of(x, y, weights=weights).rows
  kept = np.delete(np.arange(60), [3, 7])
  np.testing.assert_array_equal(rows.x, x[kept])
  np.testing.assert_array_equal([rows.y, rows.weights], [y[kept], weights[kept]])
  assert units_of(x[[3]], y[[3]]) is None  # none is left


@pytest.mark.parametrize(("options", "multiples", "largest"), [
  ({}, OWN.multiples, 6.0), ({"forbidden": ("sqrt",)}, (1.0,), 6.0), ({"forbidden": ("**",)}, (1.0,), None),
  ({"max_exponent": 2.5}, OWN.multiples, 2.5), ({"max_exponent": 9.0}, OWN.multiples, 6.0)])
def test_exponents_keep_to_the_rule(options, multiples, largest):
  rule = Restrictions(**options).for_columns(["x", "y"])
  config = units_of(points(2)).under(rule).config
  assert config.multiples == multiples and largest in (None, config.largest)
  assert dataclasses.replace(config, multiples=OWN.multiples, largest=OWN.largest) == OWN


@pytest.mark.parametrize(("name", "num"), [
  ("two", 2), ("three", 3), ("both", 3), ("beside", 2), ("inside", 3), ("alone", 2)])
def test_products_of_a_shape_are_counted(name, num):
  units = units_of(points(2, num_rows=4 * num))
  fewer = units_of(points(2, num_rows=4 * num - 1))
  assert units._has_rows(SHAPES[name]) and not fewer._has_rows(SHAPES[name])


# --- starts ----------------------------------------------------------------------------------------------------------


def starts_of(units, shape, function="exp", place=0):
  return units._starts(np.random.default_rng(0), place, SHAPES[shape], function)


@pytest.mark.parametrize("shape", SHAPES)
def test_starts_of_a_shape_have_free_exponents_where_it_has_products(shape):
  units = units_of(points(2), links=("y", "exp"))
  starts = starts_of(units, shape, "sqrt", place=1)
  layout, width = SHAPES[shape].layout, 2
  num, size = 2 * OWN.num_starts, layout.num_parameters(width)
  assert starts.parameters.shape == starts.is_free.shape == (num, size)
  assert set(starts.function.tolist()) == {index("sqrt")} and starts.target.tolist() == [2, 3] * OWN.num_starts
  np.testing.assert_array_equal(starts.is_used, np.tile(np.array(SHAPES[shape].is_used, float), (num, 1)))
  fixed = np.zeros(size, bool)
  for (outer, inner), is_used in zip(layout.places(width), SHAPES[shape].is_used, strict=True):
    fixed[outer] = not is_used or (len(inner) > 0 and not SHAPES[shape].has_factor)
  np.testing.assert_array_equal(starts.is_free, np.tile(~fixed, (num, 1)))
  assert not starts.parameters[:, fixed].any()
  assert np.all(np.any(starts.parameters[:, ~fixed] != 0, axis=0))
  assert np.all(np.abs(starts.sign) == 1) and not starts.parity.any()


@pytest.mark.parametrize("function", ["exp", POWER])
def test_factors_inside_differ_from_start_to_start(function):
  """Of a power both the exponent, of either sign, and the factor of the second product."""
  units = units_of(points(2))
  starts = starts_of(units, "inside", function)
  [(_, (first, second))] = SHAPES["inside"].layout.places(2)
  for place in (first, second):
    drawn = starts.parameters[:, place.stop - 1]
    assert len(np.unique(drawn)) == len(drawn)
  exponents = starts.parameters[:, first.stop - 1]
  if function == POWER:
    assert np.any(exponents > 0) and np.any(exponents < 0) and np.all(starts.sign[:, 1] == 1)
    assert np.std(np.log(np.abs(exponents))) == pytest.approx(OWN.spread / 2, rel=0.15)
    assert np.mean(np.log(np.abs(exponents))) == pytest.approx(0, abs=0.15)
  else:
    assert {1.0, -1.0} == set(starts.sign[:, 1].tolist()) == set(starts.sign[:, 2].tolist())


@pytest.mark.parametrize("shape", ["inside", "both"])
def test_sums_that_are_above_0_have_any_size_and_others_end_above_minus_1(shape):
  units = units_of(points(2))
  starts = starts_of(units, shape, "sqrt")
  layout, at = SHAPES[shape].layout, 0
  for _, inner in layout.places(2):
    for k, place in enumerate(inner):
      largest = np.max(starts.parameters[:, place] @ np.column_stack([units.table.logs, np.ones(60)]).T, axis=1)
      below = starts.sign[:, at + 1 + k] < 0
      room = -math.log(len(inner)) - largest[below]
      assert np.all(room >= 0) and np.min(room) < 0.3 and np.mean(room) == pytest.approx(0.8, abs=0.2)
      factors = starts.parameters[~below, place.stop - 1]
      assert np.mean(factors) == pytest.approx(0, abs=0.5) and np.std(factors) == pytest.approx(1, abs=0.3)
    at += 1 + len(inner)


def test_signs_of_products_are_drawn_as_the_target_goes_with_them():
  """Of y = x*z with columns of both signs, and one above 0: nearly all products have the odd exponents of x and z."""
  x = points(4, low=-2.0, high=2.0, num_rows=400) * [1, 1, 1, 0] + [0, 0, 0, 1] * points(4, num_rows=400)
  units = units_of(x, x[:, 0] * x[:, 2])
  drawn = units._parities(np.random.default_rng(0), 200, 0, Layout((0, 0, 0)))
  assert drawn.shape == (200, 3, 4)
  assert np.mean(np.all(drawn == [1, 0, 1, 0], axis=2)) > 0.9
  # A product's function has the sign of the outer product twice: what is drawn is that of both together.
  inner = units._parities(np.random.default_rng(0), 200, 0, Layout((1,)))
  both = (inner[:, 0] + inner[:, 1]) % 2
  assert np.mean(np.all(inner[:, 0] == [1, 0, 1, 0], axis=1)) > 0.9
  assert np.mean(np.all(both == [1, 0, 1, 0], axis=1)) > 0.9
  assert not units_of(points(2))._parities(np.random.default_rng(0), 9, 0, Layout((2,))).any()


def test_a_mixture_of_two_products_has_both_of_their_signs():
  """By the square of the share of each in the spectrum of the root of y's size."""
  x = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)] * 30) * points(2, num_rows=120, low=0.999, high=1.001)
  y = np.sign(x[:, 0]) + 0.0 * x[:, 1]
  y = np.where(x[:, 1] > 0, 4 * y, y)  # the roots are 2 and 1: 1.5 of x's sign and 0.5 of both
  weights = np.where(x[:, 1] > 0, 9.0, 1.0)  # which do not count
  drawn = units_of(x, y, weights=weights)._parities(np.random.default_rng(0), 2000, 0, Layout((0,)))[:, 0]
  shares = [np.mean(np.all(drawn == each, axis=1)) for each in ([1, 0], [1, 1])]
  assert shares[0] == pytest.approx(0.9, abs=0.03) and shares[1] == pytest.approx(0.1, abs=0.03)


def test_signs_turn_with_columns_below_0():
  """A product that is below 0 everywhere by its columns has the other sign for that."""
  x = points(2) * [1, -1]
  units = units_of(x, -x[:, 0] * x[:, 1] ** 3)
  starts = starts_of(units, "inside", POWER)
  assert np.all(np.abs(starts.sign) == 1)
  first = starts.parity[:, 1, 1]  # of the second column in the first product, which a power has to have above 0
  assert set(first.tolist()) == {0.0, 1.0}
  np.testing.assert_array_equal(starts.sign[:, 1], 1 - 2 * first)


def test_of_each_function_of_y_the_nearest_is_written_and_others_with_plain_exponents(monkeypatch):
  """In turn; three fits go on of each, and of each way to count errors one to the end."""
  units = units_of(points(2), links=("y", "exp"), config=dataclasses.replace(OWN, num_starts=4, num_survivors=2))
  asked, targets = [], []

  def fit(table, starts, layout, *, num_steps):
    asked.append(num_steps)
    targets.append(starts.target.tolist())
    return Fits(starts.parameters, 0.1 + 0.01 * np.arange(len(starts.target)), np.zeros((len(starts.target), 4, 4)))

  class Rounded:
    is_plain = np.array([False, False, True, False])

    def __init__(self, table, starts, fits, *given):
      self._fits = fits

    def run(self):
      return self._fits._replace(left=np.array([0.4, 0.1, 0.3, 0.2]))

  monkeypatch.setattr(product_units.product_fits, "fit", fit)
  monkeypatch.setattr(product_units, "Rounding", Rounded)
  monkeypatch.setattr(product_units.Columns, "terms", lambda self, starts, fits, i, layout: [variable(i)])
  monkeypatch.setattr(product_units._Units, "_written", lambda self, some, z, weights: (
    some[0] if np.ptp(np.exp(z) - self.rows.y) < 1e-9 or np.ptp(z - self.rows.y) < 1e-9 else None))
  found = units.formulas([SHAPES["two"]], ("exp",))
  assert found == [variable(1), Node("exp", (variable(3),)), Node("exp", (variable(2),))]
  assert asked == [OWN.num_first_steps, OWN.num_steps, OWN.num_further_steps]
  assert targets == [[0, 1] * 4 + [2, 3] * 4, [0, 1] * 2 + [2, 3] * 2, [0, 0, 2, 2]]


# --- the source ------------------------------------------------------------------------------------------------------


def test_each_plan_is_a_turn():
  assert product_units.ProductUnits().turns == (OWN.num_formulas,) * len(OWN.plans)


def test_each_layout_has_its_turn_with_its_shapes_and_allowed_functions(monkeypatch):
  asked = []

  def formulas(self, shapes, functions):
    asked.append(([name for name in SHAPES if SHAPES[name] in shapes], tuple(functions), len(self.links)))
    return [[number(1.0), variable(0)], [number(2.0), number(3.0)]][len(asked) % 2]

  monkeypatch.setattr(product_units._Units, "formulas", formulas)
  monkeypatch.setattr(product_units.pair_sums, "allowed", lambda nodes, task, num, config: tuple(nodes))
  plans = ((("y", "ln", "exp"), ("two", "both", "three", "beside"), ("exp", "cos")),)
  source = product_units.ProductUnits(dataclasses.replace(DEFAULT, product_units=ProductUnitsConfig(plans=plans)))
  x = points(2)
  rows = Rows(x, -x[:, 0] * x[:, 1], np.ones(60))
  for rule, functions, num_links in (
    (Rule(2), ("exp", "cos"), 2), (Rule(2, tokens=frozenset({"+", "*", "exp", "cos"})), ("exp",), 1)):
    asked.clear()
    question = SimpleNamespace(task=SimpleNamespace(fit_rows=rows, columns=(0, 1), rule=rule))
    found = source._nodes(question, 0, 8)
    assert asked == [(["two", "three"], functions, num_links), (["both", "beside"], functions, num_links)]
    assert found == (number(2.0), number(1.0), number(3.0), variable(0))


# --- plain exponents -------------------------------------------------------------------------------------------------


def rounding_of(parameters, *, deviations=(1.0, 1.0), is_whole=(False, False), parity=None, multiples=(0.5,), left=1e-3,
                curvature=None, is_free=None, num_rows=100, config=OWN):
  parameters = np.asarray(parameters, float)[None]
  starts = Starts(
    parameters, np.ones(parameters.shape, bool) if is_free is None else np.array([is_free]), np.zeros(1, int),
    np.zeros(1, int), np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 1, 2)) if parity is None else np.array([[parity]]))
  fits = Fits(parameters, np.array([left]), (np.eye(2) if curvature is None else np.asarray(curvature, float))[None])
  table = Table(np.zeros((num_rows, 2)), np.zeros((num_rows, 2)), np.zeros((1, num_rows)), np.zeros((1, num_rows)))
  return Rounding(
    table, starts, fits, Layout((0,)), np.asarray(deviations, float), np.asarray(is_whole), multiples, config)


@pytest.mark.parametrize(("powers", "parity", "expected"), [
  ((2.9, 1.3), (0, 0), (2.0, 1.5)), ((3.1, 1.3), (0, 0), (4.0, 1.5)), ((2.9, -1.3), (1, 0), (3.0, -1.5)),
  ((-0.9, 0.2), (1, 0), (-1.0, 0.0)), ((9.0, -9.0), (0, 0), (6.0, -6.0))])
def test_the_nearest_plain_exponents(powers, parity, expected):
  """Whole ones of the first column, even or odd; halves of the second; none beyond the largest."""
  deviations = np.array([0.3, 2.0])
  rounding = rounding_of(np.array(powers) * deviations, deviations=deviations, is_whole=(True, False), parity=parity)
  np.testing.assert_allclose(rounding._plain(0.5), [expected])


def test_costs_are_those_of_a_fit_of_the_others(rng):
  """What a quadratic function of the parameters rises by where one is set and the other goes where it is least."""
  curvature = np.array([[3.0, 1.2], [1.2, 0.9]])
  deviations, parameters = np.array([0.5, 2.0]), np.array([0.3, 1.7])
  rounding = rounding_of(parameters, deviations=deviations, curvature=curvature)
  goal = np.array([[1.0, 0.5]])
  found = rounding._costs(goal)[0]
  for i, other in ((0, 1), (1, 0)):
    by = goal[0, i] * deviations[i] - parameters[i]
    moves = np.linspace(-5, 5, 200_001)
    rises = curvature[i, i] * by**2 + 2 * curvature[0, 1] * by * moves + curvature[other, other] * moves**2
    assert found[i] == pytest.approx(rises.min(), rel=1e-4)
  fixed = rounding_of(parameters, deviations=deviations, curvature=np.diag([3.0, 0.0]), is_free=(True, False))
  assert fixed._costs(goal)[0, 0] == pytest.approx(3.0 * (0.5 - 0.3) ** 2, rel=1e-6)


def several(parameters, left, curvature, config=OWN):
  """Rounding of several fits of two exponents, of deviations 0.5 and 2."""
  parameters = np.asarray(parameters, float)
  num = len(parameters)
  starts = Starts(parameters, np.ones((num, 2), bool), np.zeros(num, int), np.zeros(num, int), np.ones((num, 1)),
                  np.ones((num, 1)), np.zeros((num, 1, 2)))
  table = Table(np.zeros((100, 2)), np.zeros((100, 2)), np.zeros((1, 100)), np.zeros((1, 100)))
  return Rounding(table, starts, Fits(parameters, np.asarray(left), np.asarray(curvature, float)), Layout((0,)),
                  np.array([0.5, 2.0]), np.zeros(2, bool), (0.5,), config)


def test_costs_of_one_fit_are_none_of_another_s():
  rounding = several([[0.3, 1.7]] * 2, [1e-3, 1e-3], [np.diag([3.0, 2.0]), 1e13 * np.diag([3.0, 2.0])])
  found = rounding._costs(np.array([[1.0, 0.5]] * 2))
  expected = np.array([3 * (0.5 - 0.3) ** 2, 2 * (1.0 - 1.7) ** 2])
  np.testing.assert_allclose(found, [expected, 1e13 * expected], rtol=1e-6)


def test_each_fit_may_lose_so_much_for_each_of_its_exponents(monkeypatch):
  """Two exponents of the first are set, one of the second and of the third, none of the last."""
  asked, growth = [], OWN.most_growth / 98

  def fit(table, starts, layout, *, num_steps):
    asked.append((starts.parameters.tolist(), starts.is_free.tolist()))
    return Fits(starts.parameters + 0.25 * starts.is_free, 1e-3 * (1 + growth * np.array([1.98, 1.02, 0.98])),
                7 * np.ones((3, 2, 2)))

  monkeypatch.setattr(product_rounding.product_fits, "fit", fit)
  begun = [[0.3, 1.7], [0.4, 1.8], [0.6, 1.9], [0.7, 2.1]]
  rounding = several(begun, [1e-3] * 4, np.ones((4, 2, 2)))
  which = np.array([[True, True], [True, False], [False, True], [False, False]])
  goal = np.array([[1.0, 1.5]] * 4)
  assert rounding._fix(which, goal).tolist() == [True, False, True, False]
  assert asked == [([[0.5, 3.0], [0.5, 1.8], [0.6, 3.0]], [[False, False], [False, True], [True, False]])]
  np.testing.assert_allclose(rounding.fits.parameters, [[0.5, 3.0], begun[1], [0.85, 3.0], begun[3]])
  np.testing.assert_allclose(rounding.fits.curvature[:, 0, 0], [7, 1, 7, 1])
  assert rounding.is_plain.tolist() == [True, False, False, False]
  assert rounding._starts.is_free.tolist() == [[False, False], [True, True], [True, False], [True, True]]
  asked.clear()
  assert not rounding._fix(np.zeros((4, 2), bool), goal).any() and not asked


def test_exponents_that_have_to_be_plain_are_so_where_nothing_is_left_defined(monkeypatch):
  monkeypatch.setattr(product_rounding.product_fits, "fit", lambda table, starts, layout, *, num_steps: Fits(
    starts.parameters, np.full(1, np.inf), np.eye(2)[None]))
  rounding = rounding_of([1.4, 0.9], is_whole=(True, True))
  np.testing.assert_allclose(rounding.run().parameters, [[2.0, 0.0]])


def test_an_exponent_that_data_say_nothing_of_costs_nothing():
  rounding = rounding_of([0.3, 1.7], curvature=np.zeros((2, 2)))
  assert np.all(np.isfinite(found := rounding._costs(np.array([[0.5, 2.0]])))) and np.all(found < 1e-30)


def test_where_all_at_once_cost_too_much_the_surest_comes_first(monkeypatch):
  """Each exponent that is set leaves as much more as it is moved; both at once, or the second alone, is too much."""
  asked = []

  def fit(table, starts, layout, *, num_steps):
    asked.append((starts.parameters[0].tolist(), starts.is_free[0].tolist()))
    moved = np.abs(starts.parameters - [0.45, 1.3]) @ [0.2, 1.0]
    return Fits(starts.parameters, 1e-3 * (1 + moved), 1e-2 * np.eye(2)[None])

  monkeypatch.setattr(product_rounding.product_fits, "fit", fit)
  rounding = rounding_of([0.45, 1.3], curvature=1e-2 * np.eye(2))
  assert not rounding.is_plain.any()
  fits = rounding.run()
  assert asked == [([0.5, 1.5], [False, False]), ([0.5, 1.3], [False, True])]
  np.testing.assert_allclose(fits.parameters, [[0.5, 1.3]])
  assert not rounding.is_plain.any()


def test_columns_of_both_signs_get_whole_exponents_whatever_that_costs(monkeypatch):
  def fit(table, starts, layout, *, num_steps):
    return Fits(starts.parameters, np.full(1, 0.4), np.eye(2)[None])

  monkeypatch.setattr(product_rounding.product_fits, "fit", fit)
  rounding = rounding_of([1.4, 0.9], is_whole=(True, False), parity=(1.0, 0.0))
  np.testing.assert_allclose(rounding.run().parameters, [[1.0, 0.9]])
  whole = rounding_of([1.4, 0.8], multiples=(1.0,))  # that is all the rules allow
  np.testing.assert_allclose(whole.run().parameters, [[1.0, 1.0]])
  assert whole.is_plain.all() and not rounding.is_plain.any()
  assert product_fits is product_rounding.product_fits


def test_degrees_of_freedom_are_rows_without_free_parameters():
  assert rounding_of([0.3, 0.4], num_rows=100)._freedom.tolist() == [98]
  assert rounding_of([0.3, 0.4], num_rows=100, is_free=(True, False))._freedom.tolist() == [99]
  assert rounding_of([0.3, 0.4], num_rows=1)._freedom.tolist() == [1]


def test_nodes_of_terms_are_written_once():
  assert product_forms._sum([variable(0)], [0, 1], np.array([2.0, 3.0])) == Node(
    "+", (Node("*", (variable(0), number(2.0))), number(3.0)))
