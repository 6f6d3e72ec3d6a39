"""What the default config makes of tables of fewer columns: which changes count, which numbers are simple, how long."""

import contextlib
import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize
from small_data import OPTIONS, task_of

from symformer_jax.engine import gaussian_process
from symformer_jax.engine.config import DEFAULT, reductions as reductions_config
from symformer_jax.language import expression
from symformer_jax.sources.reductions import (
  invariances,
  reductions,
  relations,
  smaller_tables,
  smaller_tasks,
  tried_changes,
)
from symformer_jax.sources.reductions.reduced_tables import Change, whole

CONFIG = DEFAULT.reductions


class Enough(Exception):
  """Raised by what is not to go on."""


def stop(*given, **named):
  raise Enough


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert reductions_config.ReductionsConfig() == CONFIG and reductions_config.SurrogateConfig() == CONFIG.surrogate


# --- the smooth function ---------------------------------------------------------------------------------------------


def test_where_the_ascent_of_the_likelihood_begins_and_may_go(monkeypatch):
  asked = []

  def minimize(loss, start, *, bounds, options, **rest):
    asked.append((np.exp(start), np.exp(bounds), options))
    return SimpleNamespace(x=start)

  monkeypatch.setattr(optimize, "minimize", minimize)
  rng = np.random.default_rng(0)
  gaussian_process.fit(rng.normal(size=(20, 2)), rng.normal(size=20), CONFIG.surrogate)
  [(start, bounds, options)] = asked
  # Twice the spread of a column; three times that of y, once for its slope, a thousandth for noise.
  np.testing.assert_allclose(start, [2, 2, 3, 1, 1e-3])
  # A tenth to a thousand spreads, a thousandth to a thousand; noise that double precision bears, to all there is.
  np.testing.assert_allclose(
    bounds, [[0.1, 1000]] * 2 + [[1e-3, 1000]] * 2 + [[1e-5, 1]], rtol=0.02)
  assert options == {"maxiter": 40, "maxfun": 80}


@pytest.mark.parametrize(("ratio", "is_log"), [(2.99, False), (3.0, True)])
def test_what_spans_a_factor_of_three_is_taken_in_its_logarithm(ratio, is_log, monkeypatch):
  asked = []
  monkeypatch.setattr(gaussian_process, "_fit", lambda x, y, wide, *, in_logarithms, config: asked.append(
    (wide.tolist(), in_logarithms)) or SimpleNamespace(errors=y))
  column = np.linspace(1, ratio, 9)
  gaussian_process.fit(column[:, None], column, CONFIG.surrogate)
  assert asked == [([is_log], False), ([is_log], True)][: 1 + is_log]


# --- which tables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "num_rows", "is_asked"), [
  (1, 99, False), (2, 24, True), (2, 23, False), (9, 108, True), (9, 107, False), (10, 240, False)])
def test_two_to_nine_columns_of_twelve_rows_each(num_columns, num_rows, is_asked):
  assert reductions.Reductions(OPTIONS, ()).supports(task_of(num_columns, num_rows=num_rows)) is is_asked


def test_the_function_goes_through_224_rows_and_24_formulas_come_back_a_turn(monkeypatch):
  asked = []
  monkeypatch.setattr(reductions, "find_reductions", lambda x, y, config: asked.append(x.shape) or [])
  source = reductions.Reductions(OPTIONS, ())
  assert source._smaller(task_of(2, num_rows=250), has_errors=False) == () and asked == [(224, 2)]
  monkeypatch.setattr(smaller_tasks.loop, "take_turn", lambda *given: [(None, None)])
  smaller = SimpleNamespace(is_done=False, new=lambda most: asked.append(most) or (), search=SimpleNamespace(
    takes_part=lambda source: True, close_turn=lambda *given: None, task=None))
  source._ask(smaller, SimpleNamespace(source=None), SimpleNamespace(elapsed=lambda: 0.0))
  assert asked[-1] == 24


@pytest.mark.parametrize(("typical", "large", "is_known"), [
  (0.03, 0.25, True), (0.031, 0.25, False), (0.03, 0.251, False), (0.0, 0.0, True)])
def test_slopes_say_something_where_rows_left_out_are_predicted(typical, large, is_known):
  way = SimpleNamespace(_errors=np.array([typical, 9.0]), _surrogate=SimpleNamespace(left=large), _config=CONFIG)
  assert smaller_tables._Way._is_small(way, way._errors, way._surrogate) is is_known


@pytest.mark.parametrize(("typical", "large", "stands"), [
  (2.0, 10.0, True), (2.1, 10.0, False), (2.0, 10.1, False)])
def test_a_smaller_table_predicts_rows_half_as_well_at_least(typical, large, stands, monkeypatch):
  monkeypatch.setattr(smaller_tables.gaussian_process, "fit", lambda *given: None)
  way = SimpleNamespace(_config=CONFIG, _errors=np.array([1e-3, 2e-3]),
                        _errors_of=lambda *given: np.array([typical * 1e-3, large * 2e-3]))
  assert smaller_tables._Way._stands(way, SimpleNamespace(x=None, y=None)) is stands


@pytest.mark.parametrize(("typical", "large", "stands"), [
  (2e-5, 1e-4, True), (2.1e-5, 1e-4, False), (2e-5, 1.1e-4, False)])
def test_a_smaller_table_that_predicts_rows_to_some_digits_stands(typical, large, stands, monkeypatch):
  """A number that slopes tell to some digits leaves as much: it is fitted later."""
  monkeypatch.setattr(smaller_tables.gaussian_process, "fit", lambda *given: None)
  for is_inexact, expected in ((True, stands), (False, False)):
    way = SimpleNamespace(_config=CONFIG, _errors=np.array([1e-7, 1e-7]),
                          _errors_of=lambda *given: np.array([typical, large]))
    smaller = SimpleNamespace(x=None, y=None)
    assert smaller_tables._Way._stands(way, smaller, is_inexact=is_inexact) is expected


def test_three_changes_are_rejected_before_the_way_ends(monkeypatch):
  asked = []
  monkeypatch.setattr(invariances, "find_changes", lambda x, y, slopes, config, rejected: asked.append(len(rejected)))
  monkeypatch.setattr(smaller_tables, "_follow", lambda *given: (
    None, [SimpleNamespace(key=(len(asked),), has_number=False)]))
  x = np.random.default_rng(0).normal(size=(30, 3))
  way = smaller_tables._Way(x, x[:, 0], CONFIG)
  monkeypatch.setattr(way, "_stands", lambda smaller, is_inexact: False)
  assert way.go_on(True) is False
  assert asked == [0, 1, 2]


class Made:
  """A change of made up error and complexity."""

  def __init__(self, error, complexity=1, *, is_simple=True):
    self.error, self.complexity, self.is_simple, self.divisor = error, complexity, is_simple, ((0, 1.0),)

  def apply(self, table, slopes):
    return SimpleNamespace(columns=table.columns[1:], x=None, y=None, is_usable=True), slopes


def followed(monkeypatch, *changes, most=1, only_simple=True):
  monkeypatch.setattr(invariances, "find_changes", lambda *given: list(changes))
  table = SimpleNamespace(columns=(0, 1, 2, 3, 4), x=None, y=None)
  return smaller_tables._follow(table, None, changes, most, only_simple, CONFIG)[1]


def test_the_simplest_change_within_twenty_times_the_least_error_is_taken(monkeypatch):
  for error, is_taken in ((19e-5, True), (21e-5, False)):
    simple, sure = Made(error, 1), Made(1e-5, 2)
    assert followed(monkeypatch, sure, simple) == [simple if is_taken else sure]
  for error, is_taken in ((19e-4, True), (21e-4, False)):  # above a thousandth within twice
    simple, sure = Made(error, 1), Made(1e-3, 2)
    assert followed(monkeypatch, sure, simple) == [simple if is_taken else sure]
  for error, is_taken in ((0.9e-5, True), (1.1e-5, False)):  # below this all are as good
    simple, sure = Made(error, 1), Made(1e-9, 2)
    assert followed(monkeypatch, sure, simple) == [simple if is_taken else sure]


def test_beyond_a_thousandth_each_change_asks_for_a_new_function_and_simple_numbers(monkeypatch):
  for error, count in ((0.9e-3, 4), (1.1e-3, 1)):
    assert len(followed(monkeypatch, Made(error), most=9)) == count
    odd = Made(error, is_simple=False)
    assert bool(followed(monkeypatch, odd, only_simple=False)) is (count > 1)
    assert not followed(monkeypatch, odd)


def test_of_a_function_of_y_a_change_errs_by_a_hundredth_at_most(monkeypatch):
  y = np.linspace(0.2, 0.8, 9)
  shown = SimpleNamespace(x=None, y=None, columns=(0, 1), is_usable=True)
  table = SimpleNamespace(y=y, behind=lambda name, slopes: (shown, None))
  for error, is_found in ((0.01, True), (0.0101, False)):
    monkeypatch.setattr(invariances, "find_changes", lambda *given, error=error: [Made(error)])
    _, found, name = smaller_tables._behind_link(table, None, set(), CONFIG)
    assert bool(found) is is_found and bool(name) is is_found


# --- which changes ---------------------------------------------------------------------------------------------------


def test_changes_err_by_three_hundredths_at_most():
  changes = [Change(error, 0, {}) for error in (0.03, 0.031)]
  assert invariances._remaining(changes, CONFIG, frozenset()) == changes[:1]


@pytest.mark.parametrize("p", [1.0, 0.0, 2.0, -1.0, 0.5, 3.0, -2.0, 1 / 3])
def test_terms_of_y_are_these_powers_of_a_column(p):
  x = np.random.default_rng(0).uniform(1, 3, (60, 2))
  term, slope = (np.log(x[:, 0]), 1 / x[:, 0]) if p == 0 else (x[:, 0] ** p, p * x[:, 0] ** (p - 1))
  slopes = np.column_stack([2 * slope, np.cos(3 * x[:, 1])])
  found = list(invariances._summands(x, 2 * term + np.sin(3 * x[:, 1]) / 3, slopes, CONFIG))
  assert [change.dropped for change in found] == [0]


@pytest.mark.parametrize(("error", "is_term"), [(1e-3, True), (1.1e-3, False)])
def test_a_term_of_y_is_sure_to_a_thousandth(error, is_term, monkeypatch):
  monkeypatch.setattr(invariances, "share_of_two", lambda first, second: error)
  x = np.linspace(1, 3, 9)[:, None]
  assert bool(list(invariances._summands(x, x[:, 0], np.ones((9, 1)), CONFIG))) is is_term


def test_four_columns_and_y_grow_together_at_most(monkeypatch):
  sizes = []
  monkeypatch.setattr(invariances, "relation", lambda growths, config: sizes.append(growths.shape[1]))
  x = np.random.default_rng(0).uniform(1, 3, (9, 6))
  assert not list(invariances._scalings(x, x[:, 0], np.ones((9, 6)), [], CONFIG))
  assert set(sizes) == {2, 3, 4}


@pytest.mark.parametrize(("part", "counts"), [(0.06, True), (0.04, False)])
def test_a_part_below_a_twentieth_of_the_largest_is_none(part, counts):
  rng = np.random.default_rng(0)
  one, other = rng.choice([-1.0, 1.0], (2, 200))
  growths = np.column_stack([one, -one + part * other, -part * other])
  assert (relations.relation(growths, dataclasses.replace(CONFIG, needed_share=1e-300)) is not None) is counts


@pytest.mark.parametrize("denominator", [1, 2, 3, 4, 10, 100, 1000])
def test_factors_are_whole_numbers_of_these_shares(denominator):
  value = 7 / denominator
  found = relations.simplest(value + 1e-8, lambda number: abs(number - value), CONFIG)
  assert found == value and relations.is_simple(value, CONFIG)


@pytest.mark.parametrize("denominator", [1, 2, 3, 4, 6])
def test_powers_of_a_scaling_are_whole_numbers_of_these_shares(denominator, monkeypatch):
  monkeypatch.setattr(invariances, "share_left", lambda growths, powers: 0.0)
  powers = np.array([1.0, 5 / denominator])
  np.testing.assert_array_equal(invariances._simplest_powers(None, powers + 1e-4, CONFIG), powers)
  assert relations.is_simple(5 / denominator, CONFIG)


def test_a_simple_number_leaves_no_more_than_three_times_as_much_and_is_no_chance():
  for worse, found in ((2.9, 2.0), (3.1, 2.0004)):
    assert relations.simplest(2.0004, lambda value, worse=worse: 1e-3 * (worse if value != 2.0004 else 1), CONFIG
                                ) == found
  for value, found in ((2.09, 2.0), (2.11, 2.1)):  # a tenth of the distance to the next
    assert relations.simplest(value, lambda value: 0.0, CONFIG) == found
  for left, found in ((0.9e-5, 2.0), (1.1e-5, 2.0004)):  # what leaves nearly nothing
    assert relations.simplest(2.0004, lambda value, left=left: left * (value != 2.0004), CONFIG) == found


# --- logarithms ------------------------------------------------------------------------------------------------------


def degree_of(x, monkeypatch):
  """That of the polynomials by which logarithms are told; None where nothing is asked."""
  asked = []
  monkeypatch.setattr(smaller_tables, "all_up_to", lambda num, degree: asked.append(degree) or stop())
  with contextlib.suppress(Enough):
    smaller_tables.find_logarithms(SimpleNamespace(x=x, y=np.arange(1.0, len(x) + 1)), CONFIG)
  return asked[0] if asked else None


@pytest.mark.parametrize(("num_rows", "degree"), [(23, None), (24, 2), (39, 2), (40, 3), (224, 3)])
def test_polynomials_have_four_rows_for_each_term(num_rows, degree, monkeypatch):
  assert degree_of(np.random.default_rng(0).uniform(1, 3, (num_rows, 2)), monkeypatch) == degree


@pytest.mark.parametrize(("ratio", "num_columns", "is_asked"), [
  (1.29, 2, False), (1.3, 2, True), (2.0, 5, True), (2.0, 6, False)])
def test_logarithms_are_of_columns_that_vary_and_of_five_at_most(ratio, num_columns, is_asked, monkeypatch):
  x = np.linspace(1, ratio, 300)[:, None] * np.ones(num_columns)
  assert (degree_of(x, monkeypatch) is not None) is is_asked


@pytest.mark.parametrize(("share", "chosen"), [(0.0095, (0,)), (0.0105, ())])
def test_logarithms_leave_a_hundredth_of_what_is_left_without_them(share, chosen):
  rng = np.random.default_rng(0)
  x = rng.uniform(1, 3, (36, 2))
  designs = []
  for is_log in ((0, 0), (1, 0), (0, 1), (1, 1)):
    u = np.where(is_log, np.log(x), x)
    designs.append(np.column_stack([u[:, 0] ** p * u[:, 1] ** q for p in range(3) for q in range(3 - p)]))
  y = 5 + np.log(x[:, 0])
  every = np.column_stack([*designs, y])
  rough = rng.normal(size=36)
  rough -= every @ np.linalg.lstsq(every, rough, rcond=None)[0]  # what no polynomial explains
  without = y - designs[0] @ np.linalg.lstsq(designs[0], y, rcond=None)[0]
  size = share * math.sqrt(np.sum(without**2) / np.sum(rough**2))
  table = SimpleNamespace(x=x, y=y + size * rough)
  assert smaller_tables.find_logarithms(table, CONFIG) == chosen


@pytest.mark.parametrize(("value", "near"), [
  (1, 0.09), (1 / 2, 0.045), (1 / 3, 0.03), (1 / 4, 0.0225), (0.1, 0.009), (5.37, 9e-4), (5.374, 9e-5), (1 / 6, 0.015)])
def test_what_is_nine_tenths_of_a_chance_in_ten_from_a_simple_number_is_taken_for_it(value, near):
  is_power, is_factor = value not in (0.1, 5.37, 5.374), value != 1 / 6
  some = dataclasses.replace(CONFIG, fine=math.inf)
  for change, is_simple in ((0.99 * near, True), (1.3 * near, False)):
    if is_power:
      assert (invariances._simplest_powers(np.zeros((3, 1)), np.array([value + change]), some) == value) == is_simple
    if is_factor:
      assert (relations.simplest(value + change, lambda _: 0.0, some) == value) == is_simple


# --- changes that are tried ------------------------------------------------------------------------------------------


def told(x, y, slopes):
  return tried_changes._Told(whole(x, y), slopes, np.ones(len(y)))


@pytest.mark.parametrize("power", [-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0])
def test_products_with_these_powers_are_tried(power):
  """By the exact slopes of y = log(x**p*z)."""
  x = np.random.default_rng(0).uniform(1, 3, (50, 2))
  table = told(x, power * np.log(x[:, 0]) + np.log(x[:, 1]), np.column_stack([power / x[:, 0], 1 / x[:, 1]]))
  [change] = [each for each in tried_changes._products(table, (0, 1), CONFIG.tried) if each.error < 1e-9]
  [(column, (product, _))] = change.replaced.items()
  assert (change.dropped, column) == (0, 1)
  np.testing.assert_allclose(expression.evaluate(product, x), x[:, 0] ** power * x[:, 1])


@pytest.mark.parametrize("power", [-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_y_is_divided_by_these_powers(power):
  x = np.random.default_rng(0).uniform(1, 3, (50, 1))
  y = 1.7 * x[:, 0] ** power
  table = told(x, y, power * y[:, None] / x)
  changes = tried_changes._of_one(table, 0, CONFIG.tried)
  assert [each.divisor for each in changes if each.divisor and each.error < 1e-9] == [((0, power),)]
