"""What the default config makes of fractions in functions with a constant, and of such functions of fractions."""

import collections
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import task_of

from symformer_jax.engine.config import DEFAULT, FunctionFractionsConfig, LinkedFractionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import function_fractions, linked_fractions, quadratics, rational_forms

FUNCTIONS, LINKED = DEFAULT.function_fractions, DEFAULT.linked_fractions


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert FunctionFractionsConfig() == FUNCTIONS and LinkedFractionsConfig() == LINKED


def evenly(low, high, num_rows=1001):
  return np.linspace(low, high, num_rows)


# --- fractions in one function ---------------------------------------------------------------------------------------


def test_arguments_are_powers_and_products_of_columns_and_of_exponentials_sums():
  found = collections.defaultdict(list)
  for name, argument in function_fractions._arguments((0, 1), FUNCTIONS):
    found[name].append(float(expression.evaluate(argument, np.array([[2.0, 3.0]]))[0]))
  powers, roots = [2, 3, 4, 9, 1 / 2, 1 / 3], [2**0.5, 3**0.5, 2**-0.5, 3**-0.5]
  products, sums = [6, 2 / 3, 3 / 2, 1 / 6], [5, -1, 8, 9, -4, -3]
  for name, expected in (("exponentials", [*powers, *roots, *products, *sums]), ("powers", [2, 3]),
                         ("logarithms", [2, 3, 4, 9]), ("waves", [2, 3, 4, 9, 8, 27, *products])):
    assert sorted(found.pop(name)) == pytest.approx(sorted(expected))
  assert not found


def test_ninety_arguments_are_tried_on_a_hundred_and_twelve_rows(monkeypatch):
  asked = []

  def equations(rows, *given):
    asked.append(len(rows))
    yield None, SimpleNamespace(places=lambda basis, arguments, *given: asked.append(len(arguments)) or []), None

  monkeypatch.setattr(function_fractions, "_equations", equations)
  rows = task_of(4, num_rows=200).fit_rows
  assert len(list(function_fractions._arguments(range(4), FUNCTIONS))) > 90
  function_fractions.fractions_of(rows, range(4), Rule(4))
  assert asked == [112, 90]


def test_rates_of_exponentials_run_over_a_fifth_to_sixty_in_nine_tenths_of_the_rows():
  rates = function_fractions._rates(evenly(0, 1), FUNCTIONS)
  assert len(rates) == 48
  np.testing.assert_allclose(np.abs(rates[[0, -1]]), [0.2 / 0.9, 60 / 0.9])
  np.testing.assert_allclose(rates[1:] / rates[:-1], rates[1] / rates[0])


def test_exponents_offsets_and_frequencies_that_are_tried():
  exponents = function_fractions._exponents(evenly(1, 1.5), FUNCTIONS)
  np.testing.assert_allclose(exponents, np.geomspace(0.15, 8, 48))
  assert function_fractions._exponents(evenly(1, 1.499), FUNCTIONS) is None
  offsets = function_fractions._offsets(evenly(2, 4), FUNCTIONS)
  np.testing.assert_allclose(offsets + 2, 2 * np.geomspace(1e-3, 10, 48))
  np.testing.assert_allclose(
    function_fractions._frequencies(evenly(0, 1), FUNCTIONS), 0.8 / 0.9 * np.arange(1, 97))


@pytest.mark.parametrize(("num_rows", "is_asked"), [(12, True), (11, False)])
def test_four_rows_are_asked_for_each_term_of_a_fraction_in_a_function(num_rows, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(function_fractions._Equation, "shares", lambda self, family, constants, *given: asked.append(
    len(constants)) or np.ones(len(constants)))
  x = evenly(1, 3, num_rows)
  equation = function_fractions._Equation(Rows(x[:, None], x, np.ones(num_rows)), x)
  basis = function_fractions.Basis(((), ((0, 1.0),)), ((),), 0)  # (a + b*x)/c
  list(equation.places(basis, [("powers", expression.variable(0))], Rule(1), FUNCTIONS))
  assert bool(asked) is is_asked


@pytest.mark.parametrize("config", [FUNCTIONS, LINKED])
def test_a_minimum_is_one_beside_four_constants_on_each_side_and_above_rounding(config):
  shares = np.full(21, 9.0)
  shares[7:14] = [3, 2, 2, 0.1, 2, 2, 3]  # of nine the median is 2, of eleven 3
  assert dict(function_fractions.minima(shares, config.num_around, config.rounding))[10] == 2
  for size, is_seen in ((0.9e-26, False), (1.1e-26, True)):
    found = dict(function_fractions.minima(shares / 2 * size, config.num_around, config.rounding))
    assert (10 in found) is is_seen


def places_of(*shares, around=1.0):
  family = SimpleNamespace(operators=())
  return [function_fractions.Place(share, around, None, family, None, 0.0) for share in shares]


@pytest.mark.parametrize(("share", "is_found"), [(0.9e-9, True), (1.1e-9, False)])
def test_eight_minima_are_fitted_and_a_leap_leaves_a_thousand_millionth(share, is_found, monkeypatch):
  asked = []
  equation = SimpleNamespace(
    places=lambda *given: places_of(*[share] * 20), with_best_constant=lambda place, config: asked.append(1) or place,
    written=lambda place, config: ["form"])
  monkeypatch.setattr(function_fractions, "_equations", lambda *given: [(None, equation, lambda form: form)] * 2)
  found = function_fractions.fractions_of(task_of(1).fit_rows, (0,), Rule(1))
  assert found == ["form"] * is_found and len(asked) == 2 * 8  # what leaves more than rounding ends nothing


@pytest.mark.parametrize(("share", "num_bases"), [(0.9e-26, 1), (1.1e-26, 2)])
def test_a_fraction_that_leaves_rounding_ends_the_turn(share, num_bases, monkeypatch):
  asked = []
  equation = SimpleNamespace(
    places=lambda *given: asked.append(1) or places_of(share, around=1e-9),
    with_best_constant=lambda place, config: place, written=lambda place, config: ["form"])
  monkeypatch.setattr(function_fractions, "_equations", lambda *given: [(None, equation, lambda form: form)] * 2)
  assert function_fractions.fractions_of(task_of(1).fit_rows, (0,), Rule(1)) == ["form"]
  assert len(asked) == num_bases


@pytest.mark.parametrize(("share", "num_forms"), [(0.9e-6, 3), (1.1e-6, 0)])
def test_three_sizes_are_written_of_what_misses_a_millionth(share, num_forms, monkeypatch):
  x = evenly(1, 3, 60)
  size = np.sqrt(share * np.var(x))
  sign = np.where(np.arange(60) % 2, 1.0, -1.0)
  sign -= np.polyval(np.polyfit(x, sign, 1), x)
  sign /= np.sqrt(np.mean(sign**2))
  equation = function_fractions._Equation(Rows(x[:, None], x, np.ones(60)), x + size * sign)
  # Every row counts alike here.
  equation._root, equation._variance = np.full(60, 60**-0.5), np.var(equation.y)
  place = function_fractions.Place(0.0, 1.0, function_fractions.Basis((((0, 1.0),),), ((),), 0),
                                   function_fractions.FAMILIES["powers"], expression.variable(0), 2.0)
  monkeypatch.setattr(function_fractions.null_vectors, "nested", lambda columns: [np.array([1.0, 1.0])] * 9)
  monkeypatch.setattr(function_fractions, "_forms", lambda *given, has_powers: ["form"])
  assert list(equation.written(place, FUNCTIONS)) == ["form"] * num_forms


# --- functions of a fraction -----------------------------------------------------------------------------------------


def test_constants_of_functions_of_y_that_are_tried():
  families = linked_fractions.FAMILIES
  np.testing.assert_allclose(families["powers"].constants(evenly(1, 1.101), LINKED), np.geomspace(0.08, 12, 40))
  assert families["powers"].constants(evenly(1, 1.099), LINKED) is None
  np.testing.assert_allclose(
    families["exponentials"].constants(evenly(1, 3), LINKED), np.geomspace(0.2, 60, 40) / 2)
  for name, most in (("cosines", np.pi), ("sines", np.pi / 2), ("tangents", np.pi / 2)):
    np.testing.assert_allclose(
      families[name].constants(evenly(0, 4), LINKED), most / 4 * np.linspace(0.1, 1, 40))


@pytest.mark.parametrize(("part", "num_terms"), [(1.2e-5, 2), (0.8e-5, 1)])
def test_a_hundred_thousandth_of_the_largest_coefficient_is_none(part, num_terms):
  """Of P = 1 + part*u, u being of the same length, and f(y) = P."""
  u = np.tile([1.0, -1.0], 30)
  y = 1 + part * u
  equation = linked_fractions._Equation(y, np.column_stack([np.ones(60), u]), np.ones((60, 1)), LINKED)
  family = SimpleNamespace(of=lambda constants, y: y[None])
  assert equation._needed(family, 1.0).above.shape[1] == num_terms


def test_with_what_is_left_after_fourteen_divisions_a_constant_is_right_where_that_is_rounding():
  for left, is_right in ((0.9e-26, True), (1.1e-26, False)):
    equation = SimpleNamespace(_config=LINKED, shares=lambda family, constants, left=left: np.full(
      len(constants), left))
    found = linked_fractions._Equation._nearest(equation, linked_fractions.Place(1.0, None, 0.0, 1.0))
    assert (found is not None) is is_right


@pytest.mark.parametrize(("left", "num_asked"), [(0.99e-8, 14), (1.01e-8, 4)])
def test_a_right_constant_leaves_a_hundred_millionth_after_four_divisions(left, num_asked):
  asked = []
  equation = SimpleNamespace(_config=LINKED, shares=lambda family, constants: asked.append(1) or np.full(
    len(constants), left))
  assert linked_fractions._Equation._nearest(equation, linked_fractions.Place(1.0, None, 0.0, 1.0)) is None
  assert len(asked) == num_asked


# --- numbers of fractions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("off", "is_found"), [(0.9e-9, True), (1.5e-9, False)])
def test_coefficients_are_simple_to_a_thousand_millionth(off, is_found):
  odd = 0.7654321
  coefficients = [7.3 * odd * (1 + off), odd, 2.9 * odd * (1 - off), 4.1 * odd * (1 + off)]
  found = rational_forms._simplest_divisors(coefficients, 0.123456, DEFAULT.rationals)
  assert any(abs(each - odd) < 1e-12 for each in found) is is_found


def test_roots_of_a_denominator_are_looked_for_at_five_rows(monkeypatch):
  asked = []
  monkeypatch.setattr(rational_forms.polynomials, "factors", lambda denominator, x, *, tolerance, num_rows: (
    asked.append(num_rows) or ([], {})))
  fraction = SimpleNamespace(denominator={(1.0,): 1.0}, numerator={(0.0,): 1.0})
  rational_forms.Fractions(fraction, np.ones((9, 1)), tolerance=1e-5, config=DEFAULT.rationals)
  assert asked == [5]


def test_what_leaves_just_what_is_exact_leaps_as_what_does_not():
  assert [DEFAULT.quadratics.elimination.leap(left) for left in (0.99e-11, 1e-11)] == [1e-5, 1e-2]


@pytest.mark.parametrize(("digits", "has_views"), [(8, False), (9, True)])
def test_roots_are_of_functions_of_columns_where_y_has_more_than_eight_digits(digits, has_views, monkeypatch):
  asked = []
  monkeypatch.setattr(quadratics, "_roots_over_views", lambda *given, has_views: asked.append(has_views) or [])
  x = np.random.default_rng(0).uniform(1, 3, (40, 1))
  y = np.array([float(f"{value:.{digits}g}") for value in np.sqrt(x[:, 0])])
  quadratics.roots_of(Rows(x, y, np.ones(40)), (0,), rule=Rule(1))
  assert asked == [has_views]


@pytest.mark.parametrize(("share", "times", "is_root"), [
  (0.99e-6, 3.9, True), (1.01e-6, 3.9, False), (0.99e-6, 4.1, False)])
def test_a_root_misses_a_millionth_of_the_variance_and_what_is_written_four_times_that(
    share, times, is_root, monkeypatch):
  x = np.linspace(1, 2, 60)
  sign = np.resize([1.0, -1.0], 60)
  size = np.sqrt(share * np.var(x))
  y = x + size * sign  # the root of y**2 - x**2, but for errors
  tolerances = []
  monkeypatch.setattr(quadratics, "_written", lambda quadratic, sign, x, tolerance: tolerances.append(tolerance) or (
    expression.variable(0)))
  errors = y - np.sqrt(times) * size * sign
  monkeypatch.setattr(quadratics.expression, "evaluate", lambda node, x: errors)
  for name in ("_written_below", "_written_beside"):
    monkeypatch.setattr(quadratics, name, lambda *given: None)
  found = quadratics._root(({(0.0,): 1.0}, {}, {(2.0,): -1.0}), x[:, None], y, DEFAULT.quadratics)
  assert (found is not None) is is_root and tolerances[:1] == [1e-3] * (share < 1e-6)
