"""Bounds and known constants, against SciPy's own bounded least squares."""

import numpy as np
import pytest
from scipy import optimize

from symformer_jax.errors import InputError
from symformer_jax.refinement import bounded
from symformer_jax.refinement.problem import Status
from symformer_jax.refinement.refine import refine

# One number of starts and of points: all share one compiled fit.
NUM_STARTS, NUM_POINTS = 8, 60
# Formula, the same as a function, true constants, bounds that bind, names at a bound.
CASES = {
  "saturation": ("b1*(1 - exp(-b2*x))", lambda x, b1, b2: b1 * (1 - np.exp(-b2 * x)), (240.0, 0.55),
                 {"b1": (0.0, 200.0)}, ("b1",)),
  "line": ("b1*x + b2", lambda x, b1, b2: b1 * x + b2, (1.5, -2.0), {"b1": (0.0, 10.0), "b2": (0.0, 5.0)}, ("b2",)),
  "peak": ("b1*exp(-(x - b2)**2/b3) + b4", lambda x, b1, b2, b3, b4: b1 * np.exp(-((x - b2) ** 2) / b3) + b4,
           (5.0, 4.0, 3.0, -1.0), {"b2": (0.0, 3.5), "b3": (0.5, 20.0), "b4": (0.0, 9.0)}, ("b2", "b4")),
  "power": ("b1*x**b2", lambda x, b1, b2: b1 * x**b2, (2.0, 1.7), {"b2": (-1.0, 1.5)}, ("b2",)),
}


def make(name, rng):
  formula, function, truth, bounds, at_bound = CASES[name]
  x = rng.uniform(0.5, 9, NUM_POINTS)
  return formula, function, x, function(x, *truth) + 0.05 * rng.normal(size=60), truth, bounds, at_bound


@pytest.mark.parametrize("name", CASES)
def test_bounds_that_bind_give_what_scipy_finds(name, rng):
  formula, function, x, y, truth, bounds, at_bound = make(name, rng)
  names = [f"b{i + 1}" for i in range(len(truth))]
  box = np.array([bounds.get(n, (-np.inf, np.inf)) for n in names]).T
  start = np.clip(truth, box[0] + 0.1, box[1] - 0.1)
  expected, _ = optimize.curve_fit(function, x, y, p0=start, bounds=box, xtol=1e-15, ftol=1e-15, gtol=1e-15)
  fit = refine(formula, x, y, bounds=bounds, num_starts=NUM_STARTS, start=dict(zip(names, start, strict=True)))
  np.testing.assert_allclose([fit.constants[n] for n in names], expected, rtol=1e-5, atol=1e-6)
  assert fit.rss <= np.sum((function(x, *expected) - y) ** 2) * (1 + 1e-9)
  assert set(fit.at_bound) == set(at_bound) and fit.message == f"converged; at a bound: {', '.join(fit.at_bound)}"
  assert fit.status == Status.CONVERGED and all(fit.constants[n] in bounds[n] for n in at_bound)
  np.testing.assert_allclose(fit.predict(x), function(x, *expected), rtol=1e-5, atol=1e-5)
  # The others' errors are those of a fit with the constants at their bounds known.
  held = refine(formula, x, y, hold={n: fit.constants[n] for n in at_bound}, num_starts=NUM_STARTS,
                start={n: fit.constants[n] for n in names if n not in at_bound})
  for n in names:
    if n in at_bound:
      assert np.isnan(fit.stderr[n]) and held.stderr[n] == 0
    else:
      assert fit.stderr[n] == pytest.approx(held.stderr[n], rel=1e-6) and fit.stderr[n] > 0
  assert fit.dof == held.dof == 60 - len(names) + len(at_bound)


def test_bounds_that_do_not_bind_change_nothing(rng):
  formula, _, x, y, _, _, _ = make("saturation", rng)
  free = refine(formula, x, y, start={"b1": 100.0, "b2": 0.1}, num_starts=NUM_STARTS)
  fit = refine(formula, x, y, start={"b1": 100.0, "b2": 0.1}, num_starts=NUM_STARTS,
               bounds={"b1": (0, None), "b2": (None, 3)})
  assert fit.constants == free.constants and fit.stderr == free.stderr and fit.at_bound == ()


def test_bounds_choose_among_equal_fits_without_binding(rng):
  x = rng.uniform(0, 5, NUM_POINTS)
  y = (2.0 * x + 1.0) ** 2 + 0.01 * rng.normal(size=NUM_POINTS)
  for sign, bounds in ((-1, (None, 0)), (1, (0, None))):
    fit = refine("(a*x + b)**2", x, y, bounds={"a": bounds}, num_starts=NUM_STARTS)
    assert fit.constants == pytest.approx({"a": 2 * sign, "b": sign}, abs=0.02) and fit.at_bound == ()


def test_all_at_their_bounds(rng):
  _, _, x, y, _, _, _ = make("line", rng)
  fit = refine("b1*x + b2", x, y, bounds={"b1": (5, 6), "b2": (3, 4)}, num_starts=NUM_STARTS)
  assert fit.constants == {"b1": 5, "b2": 3} and fit.status == Status.CONVERGED and set(fit.at_bound) == {"b1", "b2"}
  assert fit.rss == pytest.approx(np.sum((5 * x + 3 - y) ** 2)) and fit.dof == 60


def test_starts_that_crawl_are_given_up_and_those_far_off_are_silent(rng):
  x = np.linspace(0, 5, 80)
  y = 2 * np.exp(-1.5 * x) + 0.3
  num_calls = 0

  def evaluate(constants):
    nonlocal num_calls
    num_calls += 1
    a, b, c = constants
    with np.errstate(all="ignore"):
      power = np.exp(-b * x)
      return np.stack([a * power + c, power, -a * x * power, np.ones_like(x)])

  # A rate of -70 overflows in squares of derivatives; falling lines, limits of an exponential, are crawled towards.
  starts = np.concatenate([[[1.0, -70.0, 0.0]], rng.normal(size=(31, 3)) * 3])
  box = np.array([[-np.inf] * 3, [np.inf, 1.0, np.inf]])
  found = bounded.descend_from_all(evaluate, starts, y, np.ones(80), box, max_steps=2000)
  (a, c), rss, *_ = np.linalg.lstsq(np.stack([np.exp(-x), np.ones(80)], axis=1), y)
  np.testing.assert_allclose(found.constants, [a, 1, c], rtol=1e-6)
  assert found.loss == pytest.approx(rss[0]) and found.is_done and list(found.is_at_bound) == [False, True, False]
  assert num_calls < 3000  # of 32 starts, half of which would take 2000 steps each
  # One step after the other or in turns: a single start is pursued to the same end.
  alone = bounded.descend_from_all(evaluate, np.array([[1.0, 0.1, 0.0]]), y, np.ones(80), box, max_steps=2000)
  np.testing.assert_allclose(alone.constants, found.constants, rtol=1e-6)


def test_one_start_in_a_narrow_valley_takes_all_its_steps():
  def evaluate(constants):  # Rosenbrock's, as two residuals
    a, b = constants
    return np.array([[1000 * (b - a * a), 1 - a], [-2000 * a, -1], [1000, 0]])

  box = (np.array([-np.inf, -np.inf]), np.array([0.9, np.inf]))
  found = bounded.descend_from_all(evaluate, np.array([[-1.2, 1.0]]), np.zeros(2), np.ones(2), box, max_steps=5000)
  np.testing.assert_allclose(found.constants, [0.9, 0.81], rtol=1e-6)
  assert found.is_done and list(found.is_at_bound) == [True, False]


def test_known_constants_are_held(rng):
  _, function, x, y, _, _, _ = make("peak", rng)
  expected, covariance = optimize.curve_fit(lambda x, b1, b3, b4: function(x, b1, 4.1, b3, b4), x, y, p0=(4, 2, 0))
  fit = refine(CASES["peak"][0], x, y, hold={"b2": 4.1}, num_starts=NUM_STARTS, start={"b1": 4.0, "b3": 2.0, "b4": 0.0})
  assert list(fit.constants) == ["b1", "b2", "b3", "b4"] and fit.constants["b2"] == 4.1 and fit.stderr["b2"] == 0
  np.testing.assert_allclose([fit.constants[n] for n in ("b1", "b3", "b4")], expected, rtol=1e-6)
  at = [0, 2, 3]
  np.testing.assert_allclose(fit.covariance[np.ix_(at, at)], covariance, rtol=1e-4)
  assert not fit.covariance[1].any() and fit.is_identifiable["b2"] and "4.1" in fit.expression and fit.dof == 57


def test_snapping_and_nothing_left_to_fit():
  x = np.linspace(0.1, 6, NUM_POINTS)
  for size, at_bound in ((3.0, ("a",)), (1.0, ())):
    [fit] = refine("a*sin(w*x) + c", [x], [size * np.sin(2 * np.pi * x) + 0.25], hold={"c": 0.25}, snap=True,
                   start={"w": 6.2}, num_starts=NUM_STARTS, bounds={"a": (0, 2)})
    assert fit.at_bound == at_bound and list(fit.snapped.constants) == ["a", "w", "c"]
    assert fit.snapped.constants["c"] == 0.25 and fit.snapped.stderr["c"] == 0
    if at_bound:
      assert fit.snapped.constants["a"] == 2 and np.isnan(fit.snapped.stderr["a"])
    else:
      assert fit.snapped.exact["w"] == "2*pi"
  fit = refine("a*x", x, 2 * x, hold={"a": 1.5}, num_starts=NUM_STARTS)
  assert fit.constants == {"a": 1.5} and fit.status == Status.NO_CONSTANTS and fit.rss == pytest.approx(
    np.sum(0.25 * x**2))


@pytest.mark.parametrize(("options", "message"), [
  ({"bounds": {"b": (0, 1)}}, "bounds: the formula has no constant 'b': expected one of a, w"),
  ({"bounds": {"a": (1, 0)}}, "bounds: the least value of 'a' must be below the largest, got 1 and 0"),
  ({"bounds": {"a": (0, float("nan"))}}, "bounds: the least value of 'a' must be below the largest"),
  ({"bounds": {"a": 3}}, "bounds: 'a' takes (least, largest), got 3"),
  ({"bounds": {"a": (0, 1)}, "start": {"a": 2.0}}, "bounds: the start of 'a' must be from 0 to 1, got 2"),
  ({"bounds": {"a": (0, 1)}, "hold": {"a": 0.5}}, "bounds: 'a' is held, expected one of them"),
  ({"hold": {"b": 1}}, "hold: the formula has no constant 'b': expected one of a, w"),
  ({"hold": {"a": float("inf")}}, "hold: 'a' must be finite, got inf"),
  ({"hold": {"a": 1.0}, "start": {"a": 2.0}}, "hold: 'a' has a start as well, expected one of them"),
])
def test_what_can_only_be_a_mistake_is_refused(options, message):
  with pytest.raises(InputError) as caught:
    refine("a*sin(w*x)", np.arange(5.0), np.arange(5.0), **options)
  assert str(caught.value).startswith(message)
