"""Fits to many rows with made up fits: which rows are seen first, which ends go on, what is fitted in which call."""

import numpy as np
import pytest

from symformer_jax.language import parser
from symformer_jax.refinement import bounded, refine as refine_lib, solve
from symformer_jax.refinement.named import NamedFormula

NUM_ROWS = 3000


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


def test_far_worse_ends_and_those_beyond_the_best_four_do_not_go_on(pursued):
  _, asked = pursued(fit_of([1.0, 1.1, 1.2, 1.3, 1.4, 1.5]), [1] * 4)
  assert [start for (start,), _ in asked] == [0, 1, 2, 3]
  _, asked = pursued(fit_of([2.0, 3.0, 3.001]), [1, 1])  # one and a half times as much at the most
  assert [start for (start,), _ in asked] == [0, 1]


def test_of_many_undefined_rows_the_first_are_screened(monkeypatch):
  also, x = [], np.ones((1000, 1))
  x[500:700] = -1
  formula = NamedFormula(parser.parse("sqrt(1 + 2*a*x)", ("x",), allow_symbols=True), ("a",))
  monkeypatch.setattr(refine_lib, "_some_rows", lambda data, also: [also])
  found = refine_lib._go_on(
    formula, lambda sets, starts, *, is_persistent: [fit_of([np.inf], starts[0])],
    lambda sets: also.append(sets[0][0]) or [fit_of([1.0], [[1.0]])], (x, np.ones(1000), np.ones(1000), ("x",)),
    fit_of([1.0], [[1.0]]))
  assert found is None and [rows.tolist() for rows in also] == [list(range(500, 564))] * 3


def test_rows_with_a_value_and_no_derivative_are_not_undefined(monkeypatch):
  also, x = [], np.ones((1000, 1))
  x[500:509], x[600:650] = -1, 0
  formula = NamedFormula(parser.parse("sqrt(a*x)", ("x",), allow_symbols=True), ("a",))
  monkeypatch.setattr(refine_lib, "_some_rows", lambda data, also: [also])
  refine_lib._go_on(
    formula, lambda sets, starts, *, is_persistent: [fit_of([np.inf], starts[0])],
    lambda sets: also.append(sets[0][0].tolist()) or [fit_of([1.0], [[1.0]])], (
      x, np.ones(1000), np.ones(1000), ("x",)), fit_of([1.0], [[1.0]]))
  assert also[0] == list(range(500, 509))


def test_rows_that_are_named_are_among_those_that_are_seen():
  x = np.arange(2000.0)[:, None]
  drawn = refine_lib._some_rows((x, x[:, 0], x[:, 0], ()), also=np.array([7, 8, 9]))
  assert {0.0, 7.0, 8.0, 9.0, 1999.0} <= set(drawn[1].tolist()) and 512 < len(drawn[1]) <= 517
  np.testing.assert_array_equal(drawn[1], np.unique(drawn[1]))  # in their order, none twice
  again = refine_lib._some_rows((x, x[:, 0], x[:, 0], ()))
  assert set(again[1].tolist()) <= set(drawn[1].tolist())


@pytest.fixture
def staged(monkeypatch):
  """What is fitted in which call; the loss of a fit is that of its first start, in the data set of so many rows."""
  asked = []

  def fit_all_starts(formula, sets, starts, method, max_steps, *, is_persistent=True, num_points=0):
    rows = [len(data[1]) for data in sets]
    asked.append((rows, [each.shape for each in starts], method, max_steps, is_persistent, num_points))
    return [fit_of([num + each[0, 0] for _ in each], each) for num, each in zip(rows, starts, strict=True)]

  monkeypatch.setattr(refine_lib, "_fit_all_starts", fit_all_starts)
  monkeypatch.setattr(refine_lib, "_result", lambda formula, data, fit, has_sigma: (len(data[1]), fit, has_sigma))
  return asked


def sets_of(*nums):
  return [(np.ones((num, 1)), np.ones(num), np.ones(num), ("x",)) for num in nums]


TWO = NamedFormula(parser.parse("a*x + b", ("x",), allow_symbols=True), ("a", "b"))


def test_few_rows_or_few_starts_are_fitted_in_one_call(staged):
  for nums, num_starts in (((9, 512, 30), 5), ((9, 513, 30), 4)):
    found = refine_lib._fit_sets(TWO, sets_of(*nums), np.ones((num_starts, 2)), "gd", 7, has_sigma=True)
    assert staged.pop() == (list(nums), [(num_starts, TWO.num_slots)] * 3, "gd", 7, True, 0) and not staged
    assert [(num, fit.loss[0], has_sigma) for num, fit, has_sigma in found] == [(num, num + 1, True) for num in nums]


@pytest.mark.parametrize("has_start", [False, True])
@pytest.mark.parametrize("is_found", [False, True])
def test_many_rows_are_fitted_in_stages(has_start, is_found, staged, monkeypatch):
  def go_on(formula, fit_all, screen, data, screened):
    assert len(screened.loss) == 5 and screened.loss[0] < 600 and len(data[1]) in (600, 700)
    [fit] = fit_all([data], [screened.values[2:3]], is_persistent=False)
    screen([refine_lib._some_rows(data)])
    return fit if is_found else None

  monkeypatch.setattr(refine_lib, "_go_on", go_on)
  starts = np.arange(10.0).reshape(5, 2)
  found = refine_lib._fit_sets(TWO, sets_of(600, 512, 700), starts, "gd", 7, has_sigma=False, has_start=has_start)
  slots = TWO.num_slots
  assert staged[0][0][1] == 512 and staged[0][1:] == ([(5, slots)] * 3, "gd", 7, True, 0)
  few = staged[0][0][0]
  assert 512 <= few <= 514
  expected = []
  for num in (600, 700):
    expected += [([num], [(1, slots)], "gd", 7, False, 700)] * (1 + has_start)
    expected.append(([few], [(5, slots)], "gd", 7, True, 0))
    expected += [] if is_found else [([num], [(5, slots)], "gd", 7, True, 700)]
  assert staged[1:] == expected
  # The user's own start first, then what has come of the others; small data sets as they were.
  for num, fit, _ in found:
    rest = starts if not is_found or num == 512 else starts[2:3]
    wanted = np.concatenate([starts[:1], rest]) if has_start and num > 512 else rest
    np.testing.assert_array_equal(fit.values[:, :2], wanted)
    assert fit.loss.shape == fit.status.shape == (len(wanted),) and fit.loss[0] == num + wanted[0, 0]


def test_a_descent_within_bounds_sees_all_rows_at_last(rng, monkeypatch):
  formula = NamedFormula(parser.parse("b1*exp(-(x - b2)**2/b3)", ("x",), allow_symbols=True), ("b1", "b2", "b3"))
  data = rng.uniform(0, 9, (NUM_ROWS, 1)), rng.normal(size=NUM_ROWS), np.ones(NUM_ROWS), ("x",)
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
    refine_lib._descend_within(formula, data, starts, box, 7, has_start=False)
    assert seen == [("some", 4), ([5.0, 3.0, 3.0], (4, NUM_ROWS), NUM_ROWS, 7), *rest]
  seen.clear()
  losses.append(2.0)
  refine_lib._descend_within(formula, data, starts, box, 7, has_start=True)
  assert seen[-1][0] == [1.0, 1.0, 1.0] and seen[-1][2] == NUM_ROWS


@pytest.mark.parametrize(("num_rows", "num_starts"), [(512, 3), (513, 1)])
def test_what_is_free_within_bounds_starts_as_often_as_is_compiled_for(num_rows, num_starts, monkeypatch):
  asked = []

  class SeenError(Exception):
    pass

  def fit_sets(formula, sets, values, *given, **named):
    asked.append(np.asarray(values).tolist())
    raise SeenError
  monkeypatch.setattr(refine_lib, "_descend_within", lambda *given, **named: bounded.Found(
    np.array([5.0, 1.0]), 1.0, np.array([True, False]), True, 1.0))
  monkeypatch.setattr(refine_lib, "_fit_sets", fit_sets)
  with pytest.raises(SeenError):
    refine_lib._fit_within(TWO, sets_of(num_rows)[0], np.zeros((3, 2)), {"a": (0.0, 5.0)}, "lm", 9,
                           np.random.default_rng(0), has_sigma=False, has_start=False)
  assert asked == [[[1.0]] * num_starts]
