"""Functions with inner constants one by one: their formulas, their grids, and what sums of them leave of a target."""

import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, TwoConstantsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.curves import inner_functions, spans
from symformer_jax.sources.curves.inner_functions import ARGUMENTS, FAMILIES, KINDS, SHAPES, Functions

CONFIG = DEFAULT.two_constants
# Grids of two or three constants each.
SMALL = TwoConstantsConfig(
  exponents=(0.5, 2.0, 2), rates=(0.5, 8.0, 3), offsets=(0.1, 10.0, 2), places=(0.0, 1.0, 3), widths=(0.1, 0.4, 2),
  steepness=(1.0, 4.0, 2), log_widths=(0.5, 2.0, 2), least_scale=0.0, beyond=2.0, num_scales=3)
ONE = {
  "exponentials": lambda x, c: np.exp(c * x), "powers": lambda x, c: x**c, "logarithms": lambda x, c: np.log(x + c),
  "hyperbolas": lambda x, c: 1 / (x + c), "peaks": lambda x, c: np.exp(c * x**2),
  "powers_of_logarithms": lambda x, c: np.log(x) ** c, "powers_of_negative_logarithms": lambda x, c: (-np.log(x)) ** c,
  "iterated_logarithms": lambda x, c: np.log(c * np.log(x)),
  "complementary_logarithms": lambda x, c: np.log(-np.log(1 - x**c)), "self_powers": lambda x, c: x ** (c * x),
  "exponentials_of_inverse": lambda x, c: np.exp(c / x), "complements": lambda x, c: np.log(c - x)}
TWO = {
  "occupancies": lambda x, c, n: 1 / (1 + (x / c) ** n), "logistics": lambda x, c, s: 1 / (1 + np.exp((x - c) / s)),
  "bells": lambda x, c, s: np.exp(-(((x - c) / s) ** 2)), "resonances": lambda x, c, s: 1 / (1 + ((x - c) / s) ** 2),
  "bells_of_logarithm": lambda x, c, s: np.exp(-((np.log(x / c) / s) ** 2)),
  "stretched_exponentials": lambda x, c, n: np.exp(-((x / c) ** n)), "gammas": lambda x, c, n: x**n * np.exp(-x / c)}


def within(name):
  """A column for which functions of a family are defined."""
  if name in ("powers_of_negative_logarithms", "complementary_logarithms", "complements"):
    return np.linspace(0.1, 0.9, 9)
  return np.linspace(1.2, 3.0, 9)


@pytest.mark.parametrize(("families", "values"), [(FAMILIES, ONE), (SHAPES, TWO)])
def test_formulas_of_families(families, values):
  assert families.keys() == values.keys()
  for name, family in families.items():
    x = within(name)
    for constants in family.constants(x, SMALL)[:3]:
      node = family.node(variable(0), *np.atleast_1d(constants).tolist())
      np.testing.assert_allclose(
        expression.evaluate(node, x[:, None]), values[name](x, *np.atleast_1d(constants)), rtol=1e-9)
      tokens = {part.token for part in expression.walk(node) if part.args}
      assert tokens <= {*family.operators, "+", "*", "neg", "pow2", "sqrt", "inv"}  # of what powers may become


def both(*values):
  return [*values, *(-value for value in values)]


@pytest.mark.parametrize(("name", "x", "expected"), [
  ("exponentials", [2, 6], both(0.125, 0.5, 2)), ("peaks", [-4, 2], both(0.5 / 16, 2 / 16, 8 / 16)),
  ("powers", [2, 6], both(0.5, 2)), ("powers", [0, 6], []), ("powers_of_logarithms", [1.5, 6], both(0.5, 2)),
  ("powers_of_logarithms", [1, 6], []), ("powers_of_negative_logarithms", [0.1, 0.9], both(0.5, 2)),
  ("powers_of_negative_logarithms", [0.1, 1], []), ("powers_of_negative_logarithms", [0, 0.5], []),
  ("exponentials_of_inverse", [0.5, 1], both(0.5, 2, 8)), ("exponentials_of_inverse", [0, 1], []),
  ("self_powers", [1, np.e], both(0.5 / np.e, 2 / np.e, 8 / np.e)), ("self_powers", [0, 1], []),
  ("logarithms", [2, 6], [0.4 - 2, 40 - 2, 0]), ("logarithms", [-2, 2], [0.4 + 2, 40 + 2]),
  ("logarithms", [0, 4], [0.4, 40]), ("complements", [-3, 1], [1.4, 41]), ("complements", [-4, 0], [0.4, 40, 1]),
  ("hyperbolas", [2, 6], [0.4 - 2, 40 - 2, 0, -6.4, -46]), ("hyperbolas", [-4, 0], [4.4, 44, -0.4, -40, -1])])
def test_constants_of_families(name, x, expected):
  np.testing.assert_allclose(FAMILIES[name].constants(np.array(x, float), SMALL), expected)


def test_constants_of_steps_peaks_and_decays():
  x = np.array([2.0, 4.0, 10.0])
  places = list(itertools.product([2, 6, 10], [0.8, 3.2]))
  scales = [1, 20**0.5, 20]
  for name in SHAPES:
    expected = {"logistics": places, "bells": places, "resonances": places,
                "bells_of_logarithm": itertools.product(scales, [0.5, 2])}.get(name, itertools.product(scales, [1, 4]))
    np.testing.assert_allclose(SHAPES[name].constants(x, SMALL), list(expected))
    low = SHAPES[name].constants(np.array([0.0, 4.0, 10.0]), SMALL)
    assert low.shape == ((6, 2) if name in ("logistics", "bells", "resonances") else (0, 2))


def test_the_least_scale_is_that_of_some_rows():
  x = np.array([1e-9, *np.linspace(1, 2, 99)])
  config = TwoConstantsConfig(least_scale=0.5, beyond=1.0, num_scales=2)
  np.testing.assert_allclose(inner_functions._scales(x, config), [np.median(x), 2])


@pytest.mark.parametrize(("name", "least", "largest", "is_defined"), [
  ("columns", -9, 9, True), ("squares", -9, 9, True), ("roots", 0, 9, True), ("roots", -1e-9, 9, False),
  ("cube_roots", 0, 9, True), ("cube_roots", -1e-9, 9, False), ("inverses", 1e-9, 9, True), ("inverses", 0, 9, False),
  ("inverses", -9, -1e-9, True), ("inverses", -9, 0, False), ("legs", 1, 9, True), ("legs", 0.999, 9, False)])
def test_arguments_are_defined(name, least, largest, is_defined):
  family = inner_functions.of_arguments(["arctangents"], [name])["arctangents", name]
  assert bool(len(family.constants(np.array([least, largest], float), SMALL))) is is_defined
  assert family.operators == ("atan", *ARGUMENTS[name].operators)


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_arguments_have_the_values_of_their_formulas(kind, argument):
  x = np.linspace(1.3, 2.9, 9)
  inner = {"columns": x, "squares": x**2, "roots": x**0.5, "cube_roots": x ** (1 / 3), "inverses": 1 / x,
           "legs": np.sqrt(x**2 - 1)}[argument]
  family = inner_functions.of_arguments([kind], [argument])[kind, argument]
  constants = family.constants(x, SMALL)
  np.testing.assert_allclose(constants, KINDS[kind].family.constants(inner, SMALL))
  for constant in constants:
    node = family.node(variable(0), float(constant))
    np.testing.assert_allclose(
      expression.evaluate(node, x[:, None]), KINDS[kind].values(inner, constant), rtol=1e-9)


def test_neighbours_differ_in_one_constant_by_one_step():
  """Where there is none on one side those of the other are both."""
  constants = np.array([[1.0, 5], [3, 5], [2, 5], [1, 6], [9, 7]])
  assert inner_functions._neighbours(constants, 10) == [
    ((12, 13), (12, 13)), ((12,), (12,)), ((11,), (10,)), ((10,), (10,)), ((), ())]


# --- sums of functions -----------------------------------------------------------------------------------------------


@pytest.fixture
def data(rng):
  x, y, weights = rng.uniform(0.3, 3, 50), rng.normal(size=50) + 2, rng.uniform(0.1, 2, 50)
  rows = Rows(x[:, None], y, weights)
  families = {name: FAMILIES[name] for name in ("exponentials", "powers", "logarithms")}
  return Functions(rows, 0, Rule(1), families, SMALL), y, weights, x


def left_of(y, weights, *columns):
  """What least squares leave of the weighted square."""
  root = np.sqrt(weights)
  design = np.column_stack([np.ones(len(y)), *columns])
  design = design / np.linalg.norm(design, axis=0)
  return np.sum((root * y - root[:, None] * design @ np.linalg.lstsq(root[:, None] * design, root * y)[0]) ** 2)


def test_functions_are_those_that_are_allowed_defined_and_vary(data):
  functions, *_, x = data
  assert functions.families == {"exponentials": [*range(6)], "powers": [*range(6, 10)], "logarithms": [10, 11, 12]}
  for i, node in enumerate(functions.nodes):
    np.testing.assert_allclose(functions.values(i), expression.evaluate(node, x[:, None]))
    assert functions.sizes[i] == pytest.approx(np.max(np.abs(functions.values(i))))
    np.testing.assert_allclose(functions.all_values[i], functions.values(i) / functions.sizes[i])
  assert [float(each[0]) for each in functions.constants[6:10]] == both(0.5, 2.0)
  assert functions.neighbours[6:10] == [((7,), (8,)), ((7 - 1,), (6,)), ((6,), (9,)), ((8,), (8,))]
  rule = Rule(1, tokens=frozenset({"+", "*", "ln"}))
  few = Functions(functions.rows, 0, rule, {name: FAMILIES[name] for name in ("exponentials", "logarithms")}, SMALL)
  assert few.families == {"logarithms": [0, 1, 2]} and len(few.nodes) == 3
  none = Functions(functions.rows, 0, rule, {}, SMALL)
  assert none.all_values.shape == (0, 50) and none.families == {}


def test_what_one_two_and_two_beside_another_leave(data):
  functions, y, weights, x = data
  values, beside = functions.all_values, np.sin(3 * x)
  np.testing.assert_allclose(functions.left_of_each(y, weights), [left_of(y, weights, each) for each in values])
  for others in ((), (beside,)):
    found = functions.left_of_pairs(y, weights, *others)
    for i, j in itertools.product(range(len(values)), repeat=2):
      if i == j:
        assert found[i, j] == np.inf
      else:
        assert found[i, j] == pytest.approx(left_of(y, weights, values[i], values[j], *others), rel=1e-4)


@pytest.mark.parametrize("has_beside", [False, True])
def test_what_is_left_around_two_is_that_of_both_and_of_a_neighbour_of_each(data, has_beside):
  functions, y, weights, x = data
  others = [np.sin(3 * x)] if has_beside else []
  pairs = np.array([[0, 7], [2, 11], [8, 12]])
  found = functions.left_around(pairs, y, weights, *others)
  for (i, j), left in zip(pairs, found, strict=True):
    values = functions.all_values
    expected = min(left_of(y, weights, values[i], *values[list(one)], values[j], *values[list(other)], *others)
                   for one, other in itertools.product(functions.neighbours[i], functions.neighbours[j]))
    assert left == pytest.approx(expected, rel=1e-4)


def test_sums_are_written_with_their_factors(data):
  functions, _, weights, x = data
  y = 2 * functions.values(1) - 3e-3 * functions.values(8) + 0.7
  node = functions.write([1, 8], y, weights)
  np.testing.assert_allclose(expression.evaluate(node, x[:, None]), y, rtol=1e-7)
  np.testing.assert_allclose(functions.factors([1, 8], y, weights), [2, -3e-3, 0.7], rtol=1e-6)
  assert functions.write([1], np.append(y[:-1], np.inf), weights) is None
  assert functions.factors([1], y, np.append(weights[:-1], np.nan)) is None
  assert functions.factors([1], y, np.zeros(50)) is None


@pytest.mark.parametrize(("share", "is_own"), [(1.1e-9, True), (0.9e-9, False)])
def test_functions_that_are_a_constant_or_one_another_are_told_by_a_thousand_millionth(share, is_own):
  pattern, other = np.resize([1.0, -1.0], 40), np.resize([1.0, 1.0, -1.0, -1.0], 40)
  functions = object.__new__(Functions)
  target, weights = pattern + 0.3 * other + np.resize([0.1, 0.2, 0.3], 40), np.ones(40)
  functions._values = np.stack([np.ones(40) + np.sqrt(share) * pattern, pattern])
  with np.errstate(all="ignore"):
    assert np.isfinite(functions.left_of_each(target, weights)[0]) == is_own
    functions._values = np.stack([pattern, np.sqrt(1 - share) * pattern + np.sqrt(share) * other])
    assert np.isfinite(functions.left_of_pairs(target, weights)[0, 1]) == is_own
    assert np.isfinite(functions.left_of_pairs(target, weights, other)[0, 1]) == np.False_
    functions._values = np.stack([pattern, other])
    beside = np.sqrt(1 - share) * pattern + np.sqrt(share) * np.resize([1.0, -1.0, -1.0, 1.0], 40)
    assert np.isfinite(functions.left_of_pairs(target, weights, beside)[0, 1]) == is_own


def test_the_least_entries_are_apart_by_three_places():
  left = np.arange(49.0).reshape(7, 7)
  assert inner_functions.nearest(left, 9) == [(0, 0), (0, 3), (0, 6), (3, 0), (3, 3), (3, 6), (6, 0), (6, 3), (6, 6)]
  assert inner_functions.nearest(left, 2) == [(0, 0), (0, 3)] and left[0, 0] == 0
  assert inner_functions.nearest(np.array([[np.inf, 5.0, np.inf]]), 3) == [(0, 1)]


# --- directions ------------------------------------------------------------------------------------------------------


def test_directions_span_what_is_defined_and_new(rng):
  vectors = rng.normal(size=(2, 4, 30))
  vectors[0, 2] = vectors[0, 0] - 2 * vectors[0, 1] + 1e-9 * vectors[0, 2]
  vectors[1, 1, 3] = np.nan
  found = spans.orthonormal(vectors)
  products = np.einsum("pkn,pln->pkl", found, found)
  np.testing.assert_allclose(products[0], np.diag([1, 1, 0, 1]), atol=1e-12)
  np.testing.assert_allclose(products[1], np.diag([1, 0, 1, 1]), atol=1e-12)
  goal = rng.normal(size=30)
  expected = [np.linalg.lstsq(vectors[p, kept].T, goal)[1][0] for p, kept in ((0, [0, 1, 3]), (1, [0, 2, 3]))]
  np.testing.assert_allclose(spans.left_of(goal, found), expected)


@pytest.mark.parametrize(("size", "is_new"), [(1.1e-7, True), (0.9e-7, False)])
@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_what_is_new_of_a_direction_is_more_than_rounding(size, is_new, unit):
  one, other = np.eye(5)[:2]
  found = spans.orthonormal(np.stack([one, unit * (one + size * other)])[None])
  np.testing.assert_allclose(found[0, 1], other * is_new, atol=1e-8)
