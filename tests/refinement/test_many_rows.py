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
  """Starts of each fit to all rows, whose losses are given."""
  asked, losses = [], []

  def go_on(screened, given):
    losses[:] = given
    data = np.ones((9, 1)), np.ones(9), np.ones(9), ("x",)
    return refine_lib._go_on(fit_all, data, np.array([[10.0], [11.0]]), screened), asked

  def fit_all(sets, starts, *, is_persistent=True):
    asked.append((np.ravel(starts[0]).tolist(), is_persistent))
    num = len(starts[0])
    found, losses[:] = losses[:num], losses[num:]
    return [fit_of(found, starts[0])]

  return go_on


def test_only_ends_that_are_nearly_as_good_go_on(pursued):
  fit, asked = pursued(fit_of([8, 1, 1.4, 1.6]), [3, 2])
  assert asked == [([1.0], False), ([2.0], False)] and fit.loss.tolist() == [3, 2]
  assert fit.values.ravel().tolist() == [1, 2]


def test_a_worse_end_goes_on_where_better_ones_are_not_defined(pursued):
  fit, asked = pursued(fit_of([8, 1, 5]), [np.inf, np.inf, 7])
  assert asked == [([1.0], False), ([2.0], False), ([0.0], False)] and fit.loss.tolist() == [np.inf, np.inf, 7]


def test_where_no_end_is_defined_all_starts_see_all_rows(pursued):
  fit, asked = pursued(fit_of([1, 2]), [np.inf, np.inf, 4, 3])
  assert asked[-1] == ([10.0, 11.0], True) and len(asked) == 3 and fit.loss.tolist() == [4, 3]


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
