"""Fits to many rows: all starts see some of them, and what they come to is fitted to all; against SciPy."""

import numpy as np
import pytest
from scipy import optimize

from symformer_jax.language import parser
from symformer_jax.refinement import bounded, refine as refine_lib, solve
from symformer_jax.refinement.named import NamedFormula
from symformer_jax.refinement.problem import Status
from symformer_jax.refinement.refine import refine

NUM_STARTS, NUM_ROWS = 8, 3000


def peak(x, b1, b2, b3):
  return b1 * np.exp(-((x - b2) ** 2) / b3)


def peak_data(rng, num_rows=NUM_ROWS):
  x = rng.uniform(0, 9, num_rows)
  return x, peak(x, 5.0, 4.0, 3.0) + 0.05 * rng.normal(size=num_rows)


FORMULA, START = "b1*exp(-(x - b2)**2/b3)", {"b1": 1.0, "b2": 3.0, "b3": 1.0}


def test_what_comes_of_some_rows_is_fitted_to_all(rng):
  sets = [peak_data(rng), peak_data(rng, 700)]
  fits = refine(FORMULA, [x for x, _ in sets], [y for _, y in sets], start=START, num_starts=NUM_STARTS)
  for (x, y), fit in zip(sets, fits, strict=True):
    expected, covariance = optimize.curve_fit(peak, x, y, p0=(5, 4, 3), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    np.testing.assert_allclose(list(fit.constants.values()), expected, rtol=1e-9)
    np.testing.assert_allclose(list(fit.stderr.values()), np.sqrt(np.diag(covariance)), rtol=1e-5)
    assert fit.status == Status.CONVERGED and fit.dof == len(x) - 3


def test_bounds_bind_over_many_rows(rng):
  x, y = peak_data(rng)
  expected, _ = optimize.curve_fit(peak, x, y, p0=(4, 3, 3), bounds=((0, 0, 0.1), (9, 3.5, 20)), xtol=1e-15, ftol=1e-15)
  fit = refine(FORMULA, x, y, bounds={"b2": (0, 3.5), "b3": (0.1, 20)}, start=START, num_starts=NUM_STARTS)
  np.testing.assert_allclose(list(fit.constants.values()), expected, rtol=1e-6)
  assert fit.at_bound == ("b2",) and fit.status == Status.CONVERGED


def test_some_rows_have_the_ends_of_each_column(rng):
  x, y, weights = rng.normal(size=(NUM_ROWS, 3)), rng.normal(size=NUM_ROWS), rng.uniform(1, 2, NUM_ROWS)
  drawn = refine_lib._some_rows((x, y, weights, ("a", "b", "c")))
  num = len(drawn[1])
  assert refine_lib.SCREENING_ROWS <= num <= refine_lib.SCREENING_ROWS + 6 and drawn[3] == ("a", "b", "c")
  at = np.searchsorted(np.sort(y), drawn[1])
  rows = np.argsort(y)[at]
  assert len(set(rows.tolist())) == num and (x[rows] == drawn[0]).all() and (weights[rows] == drawn[2]).all()
  assert (drawn[0].min(axis=0) == x.min(axis=0)).all() and (drawn[0].max(axis=0) == x.max(axis=0)).all()
  few = x[:refine_lib.SCREENING_ROWS], y[:refine_lib.SCREENING_ROWS], weights[:refine_lib.SCREENING_ROWS], ()
  assert refine_lib._some_rows(few) is few


def fit_of(loss, values=None, num_undefined=None):
  num = len(loss)
  values = np.arange(float(num))[:, None] if values is None else np.array(values, float)
  return solve.Fit(values, np.array(loss, float), np.zeros(num, int), np.ones(num, int),
                   np.zeros(num, int) if num_undefined is None else np.array(num_undefined))


def test_leaders_are_different_ends_the_best_first():
  assert refine_lib._leaders(fit_of([5, 1, 1 + 1e-9, 3, 2, 9, 7])).tolist() == [1, 4, 3, 0]
  # Of those that are defined nowhere, the one that is at the most points.
  assert refine_lib._leaders(fit_of([np.inf, 2, np.inf], num_undefined=[3, 0, 1])).tolist()[:2] == [1, 2]
  assert refine_lib._leaders(fit_of([np.inf, np.inf], num_undefined=[3, 1])).tolist() == [1]


@pytest.fixture
def pursued():
  """Starts of each fit to all rows, whose losses are given, and how many rows were screened again."""
  def go_on(screened, given, again=()):
    asked, losses, screenings = [], list(given), list(again)

    def fit_all(sets, starts, *, is_persistent=True):
      asked.append((np.ravel(starts[0]).tolist(), is_persistent))
      return [fit_of([losses.pop(0) for _ in starts[0]], starts[0])]

    def screen(sets):
      asked.append(len(sets[0][1]))
      return [screenings.pop(0)]

    # Undefined at nine of a thousand rows where the constant is above 0.5.
    x = np.ones((1000, 1))
    x[500:509] = -1
    formula = NamedFormula(parser.parse("sqrt(1 + 2*a*x)", ("x",), allow_symbols=True), ("a",))
    data = x, np.ones(1000), np.ones(1000), ("x",)
    return refine_lib._go_on(formula, fit_all, screen, data, screened), asked
  return go_on


def test_only_ends_that_are_nearly_as_good_go_on(pursued):
  fit, asked = pursued(fit_of([8, 1, 1.4, 1.6]), [3, 2])
  assert asked == [([1.0], False), ([2.0], False)] and fit.loss.tolist() == [3, 2]
  assert fit.values.ravel().tolist() == [1, 2]


def test_rows_at_which_the_best_end_is_undefined_are_screened_with_the_others(pursued):
  fit, asked = pursued(fit_of([8, 1, 5]), [np.inf, 7], [fit_of([3, 9], [[0.25], [0.3]])])
  seen = len(refine_lib._some_rows((np.ones((1000, 1)), *[np.ones(1000)] * 2, ()), also=np.arange(500, 509))[1])
  assert asked[0] == ([1.0], False) and asked[2] == ([0.25], False) and fit.loss.tolist() == [7]
  assert refine_lib.SCREENING_ROWS <= asked[1] <= seen + 9


def test_where_no_good_end_is_defined_at_all_rows_there_is_none(pursued):
  fit, asked = pursued(fit_of([1, 8]), [np.inf] * 4, [fit_of([1, 8])] * 3)
  assert fit is None and len(asked) == 7
  # What is undefined at some rows is undefined at all: it is not asked again.
  fit, asked = pursued(fit_of([np.inf, np.inf], num_undefined=[3, 1]), [np.inf])
  assert fit.loss.tolist() == [np.inf] and asked == [([1.0], False)]


def test_a_given_start_sees_all_rows(rng):
  x = rng.uniform(0, 1000, 5000)
  y = 50 * np.exp(-((x - 503.3) ** 2) / 2 / 0.5**2) + 2 + 0.1 * rng.normal(size=5000)  # seen by a dozen rows
  given = {"a": 45.0, "b": 503.0, "c": 0.6, "d": 2.1}
  formula = "a*exp(-(x - b)**2/(2*c**2)) + d"
  fit = refine(formula, x, y, start=given, num_starts=NUM_STARTS)
  assert fit.constants["b"] == pytest.approx(503.3, abs=0.05) and fit.residual_std == pytest.approx(0.1, rel=0.05)
  within = refine(formula, x, y, start=given, num_starts=NUM_STARTS, bounds={"a": (0, 49.0)})
  assert within.at_bound == ("a",) and within.constants["b"] == pytest.approx(503.3, abs=0.05)


def test_the_best_fit_is_found_beside_the_edge_of_what_is_defined(rng):
  second = 0.999 * rng.uniform(0.1, 1, 5000)
  first = 0.7 * second + rng.uniform(0, 1, 5000) ** 3
  y = 2 * np.log(first - 0.7 * second) + 0.05 * rng.normal(size=5000)
  fit = refine("a*log(x0 - b*x1)", np.column_stack([first, second]), y, num_starts=NUM_STARTS)
  assert fit.constants["a"] == pytest.approx(2, abs=0.01) and fit.residual_std == pytest.approx(0.05, rel=0.1)


def test_small_data_sets_are_fitted_once_beside_large_ones(rng):
  small, large = peak_data(rng, 100), peak_data(rng)
  alone = refine(FORMULA, *small, start=START, num_starts=NUM_STARTS)
  beside, _ = refine(FORMULA, [small[0], large[0]], [small[1], large[1]], start=START, num_starts=NUM_STARTS)
  np.testing.assert_allclose(list(beside.constants.values()), list(alone.constants.values()), rtol=1e-9)


def test_data_sets_of_one_call_share_what_is_compiled(rng, monkeypatch):
  shapes, fit_starts = [], solve.fit_starts
  monkeypatch.setattr(solve, "fit_starts", lambda program, starts, x, *given, **named: shapes.append(
    (starts.shape[:2], x.shape[:2], named["is_persistent"])) or fit_starts(program, starts, x, *given, **named))
  sets = [peak_data(rng, num) for num in (700, 1500, 900)]
  refine(FORMULA, [x for x, _ in sets], [y for _, y in sets], start=START, num_starts=NUM_STARTS)
  assert shapes[0] == ((3, NUM_STARTS), (3, 576), True)
  assert set(shapes[1:]) == {((1, 1), (1, 1536), False)} and len(shapes) >= 4


def test_a_descent_within_bounds_sees_all_rows_at_last(rng, monkeypatch):
  x, y = peak_data(rng)
  formula = NamedFormula(parser.parse(FORMULA, ("x",), allow_symbols=True), ("b1", "b2", "b3"))
  data = x[:, None], y, np.ones(NUM_ROWS), ("x",)
  seen, losses = [], []

  def from_all(evaluate, starts, y, weights, box, *, max_steps):
    seen.append(("some" if len(y) < NUM_ROWS else "all", len(starts)))
    return bounded.Found(np.array([5.0, 3.0, 3.0]), 1.0, np.zeros(3, bool), True, 1.0)

  def descend(evaluate, start, y, weights, box, *, max_steps):
    seen.append((start.tolist(), evaluate(start).shape, len(y), max_steps))
    return bounded.Found(start, losses[-1], np.zeros(3, bool), True, 1.0)

  monkeypatch.setattr(bounded, "descend_from_all", from_all)
  monkeypatch.setattr(bounded, "descend", descend)
  box, starts = (np.zeros(3), np.full(3, 9.0)), np.ones((4, 3))
  for loss, rest in ((2.0, []), (np.inf, [("all", 4)])):
    seen.clear()
    losses.append(loss)
    refine_lib._descend_within(formula, data, starts, box, 7)
    assert seen == [("some", 4), ([5.0, 3.0, 3.0], (4, NUM_ROWS), NUM_ROWS, 7), *rest]
  seen.clear()
  losses.append(2.0)
  refine_lib._descend_within(formula, data, starts, box, 7, has_start=True)
  assert seen[-1][0] == [1.0, 1.0, 1.0] and seen[-1][2] == NUM_ROWS
