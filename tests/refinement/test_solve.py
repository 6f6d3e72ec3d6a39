"""`fit_candidates`: SciPy as oracle, lanes that do not touch each other, one compile per shape."""

import jax
import numpy as np
import pytest
from scipy import optimize
import sympy

from symformer_jax.language import constants, expression, parser, sympy_trees
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve
from symformer_jax.refinement.problem import STATUS_TEXT, Status

VOCAB = Vocabulary(1)
LENGTH = 24
NUM_POINTS = 40

# Formula with numbers as true constants, range of x, and factors from true to starting constants: near, far.
PROBLEMS = {
  "exponential": ("2.5*exp(-1.3*x)", (0, 4), (1.1, 3.0)),
  "gaussian": ("3.2*exp(-((x - 1.7)/0.8)**2)", (-2, 5), (1.1, 1.5)),
  "rational": ("2.2*x/(1.4 + x) + 0.31*x", (0, 6), (0.9, 10.0)),
  "sines": ("1.5*sin(1.2*x) + 0.7*sin(2.9*x)", (-3, 3), (1.05, 1.2)),
  "power": ("0.37*x**2.6", (0.1, 5), (1.1, 0.5)),
  "badly scaled": ("32000000*exp(-0.00013*x) + 0.00000021*x", (0, 30000), (1.1, 2.0)),
  "logistic": ("7.2/(1 + exp(2.6 - 1.1*x))", (-1, 6), (0.9, 1.5)),
}


def encode(text):
  """`(ids [L], values [L])` of a formula whose numbers are its constants; small integers are tokens."""
  ids, mantissas = expression.encode(parser.parse(text), VOCAB)
  values = np.array(mantissas) * np.array(VOCAB.constant_scale)[ids]
  padding = (0, LENGTH - len(ids))
  return np.pad(np.array(ids, np.int32), padding), np.pad(values, padding)


def make_batch(factor_index, seed=0, noise=0.02):
  """All problems with noise: `(ids, starts, x [K, N, 1], y [K, N], functions of c)`."""
  rng = np.random.default_rng(seed)
  ids, starts, x, y, functions = [], [], [], [], []
  for text, (low, high), factors in PROBLEMS.values():
    tokens, values = encode(text)
    points = np.sort(rng.uniform(low, high, NUM_POINTS))
    function = numpy_form(text)
    truth = function(values[values != 0], points)
    ids.append(tokens)
    starts.append(values * factors[factor_index])
    x.append(points[:, None])
    y.append(truth + noise * truth.std() * rng.normal(size=NUM_POINTS))
    functions.append(function)
  return np.stack(ids), np.stack(starts), np.stack(x), np.stack(y), functions


def numpy_form(text, module="numpy"):
  """`f(c, x)` with the constants in prefix order: an oracle that shares nothing with the interpreter."""
  node = parser.parse(text)
  names = iter(range(100))

  def symbols(n):
    if n.is_number and not constants.is_small_integer(n.value):
      return expression.symbol(f"c{next(names)}")
    return n._replace(args=tuple(symbols(arg) for arg in n.args))

  expr = sympy_trees.to_sympy(symbols(node))
  names = [*(f"c{i}" for i in range(next(names))), "x0"]
  form = sympy.lambdify([sympy.Symbol(name, real=True) for name in names], expr, module)
  return lambda c, x: form(*c, x)


def scipy_loss(function, start, x, y):
  """Mean squared error at SciPy's optimum."""
  spread = y.std()
  with np.errstate(all="ignore"):
    fit = optimize.least_squares(lambda c: (function(c, x) - y) / spread, start, x_scale="jac", method="trf",
                                 ftol=1e-13, xtol=1e-13, gtol=1e-13, max_nfev=500)
  return 2 * fit.cost / len(y) * spread**2


@pytest.mark.parametrize("factor_index", [0, 1], ids=["near", "far"])
def test_reaches_the_optimum_of_scipy(factor_index):
  ids, starts, x, y, functions = make_batch(factor_index)
  dataset = np.arange(len(ids))
  values, fit = solve.polish(ids, starts, x, y, np.ones_like(y), vocab=VOCAB, dataset=dataset)
  for k, name in enumerate(PROBLEMS):
    expected = scipy_loss(functions[k], starts[k][starts[k] != 0], x[k, :, 0], y[k])
    assert fit.loss[k] <= expected * (1 + 1e-6), (name, Status(fit.status[k]))
    at_optimum = functions[k](values[k][values[k] != 0], x[k, :, 0])
    np.testing.assert_allclose(np.mean((at_optimum - y[k]) ** 2), fit.loss[k], rtol=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "rational", "logistic"])
def test_reaches_the_optimum_of_optimistix(name):
  optimistix = pytest.importorskip("optimistix")
  ids, starts, x, y, _ = make_batch(0)
  k = list(PROBLEMS).index(name)
  _, fit = solve.polish(ids, starts, x, y, np.ones_like(y), vocab=VOCAB, dataset=np.arange(len(ids)))
  function, spread, start = numpy_form(PROBLEMS[name][0], "jax"), y[k].std(), starts[k][starts[k] != 0]
  with jax.enable_x64(True):
    # Its damping knows no scales: constants are given in units of the start.
    found = optimistix.least_squares(
      lambda c, _: (function(c * start, x[k, :, 0]) - y[k]) / spread, optimistix.LevenbergMarquardt(1e-12, 1e-12),
      np.ones(len(start)), max_steps=500, throw=False)
    residual = function(np.asarray(found.value) * start, x[k, :, 0]) - y[k]
  np.testing.assert_allclose(fit.loss[k], np.mean(np.asarray(residual) ** 2), rtol=1e-9)


def fit32(ids, starts, x, y, weights=None, **options):
  weights = np.ones_like(y) if weights is None else weights
  wide = [np.asarray(a, np.float32) for a in (starts, x, y, weights)]
  return jax.tree.map(np.asarray, solve.fit_candidates(
    ids, *wide, vocab=VOCAB, dataset=np.arange(len(ids), dtype=np.int32), max_constants=4, **options))


def test_float32_comes_within_a_millionth_of_the_spread():
  ids, starts, x, y, _ = make_batch(0)
  _, exact = solve.polish(ids, starts, x, y, np.ones_like(y), vocab=VOCAB, dataset=np.arange(len(ids)))
  _, fit = fit32(ids, starts, x, y)
  assert (fit.loss <= exact.loss + 1e-6 * y.var(axis=1)).all()
  assert (fit.status == Status.CONVERGED).all()


def test_both_plans_fit_alike():
  ids, starts, x, y, _ = make_batch(0)
  loop, vmap = (fit32(ids, starts, x, y, plan=plan) for plan in ("loop", "vmap"))
  np.testing.assert_allclose(loop[1].loss, vmap[1].loss, rtol=1e-4)
  np.testing.assert_array_equal(loop[1].status, vmap[1].status)


def poisoned(array, row, value):
  copy = array.copy()
  copy[row] = value
  return copy


@pytest.mark.parametrize("plan", ["loop", "vmap"])
def test_a_bad_lane_changes_no_other_bit_for_bit(plan):
  ids, starts, x, y, _ = make_batch(0)
  clean = fit32(ids, starts, x, y, plan=plan)
  bad = 2
  for sick in (fit32(ids, poisoned(starts, bad, np.nan), x, y, plan=plan),
               fit32(ids, poisoned(starts, bad, 1e38), x, y, plan=plan),
               fit32(ids, starts, x, poisoned(y, bad, np.inf), plan=plan)):
    others = np.arange(len(ids)) != bad
    jax.tree.map(lambda a, b, o=others: np.testing.assert_array_equal(a[o], b[o]), clean, sick)
    assert not np.isfinite(sick[1].loss[bad]) or sick[1].loss[bad] > clean[1].loss[bad]


def test_a_lane_alone_is_the_lane_in_a_batch():
  ids, starts, x, y, _ = make_batch(0)
  _, together = fit32(ids, starts, x, y)
  for k in (0, 3, 4):
    _, alone = fit32(ids[k:k + 1], starts[k:k + 1], x[k:k + 1], y[k:k + 1])
    assert alone.loss[0] == together.loss[k] and alone.steps[0] == together.steps[k]


def test_threads_change_nothing(monkeypatch):
  ids, starts, x, y, _ = make_batch(0)
  whole = fit32(ids, starts, x, y)
  monkeypatch.setattr(solve, "MIN_CANDIDATES_PER_THREAD", 1)
  monkeypatch.setattr(solve.os, "cpu_count", lambda: 3)
  jax.tree.map(np.testing.assert_array_equal, whole, fit32(ids, starts, x, y))


def test_what_fills_a_block_up_changes_nothing():
  ids, starts, x, y, _ = make_batch(0)

  def fit(num_more):
    block = [np.pad(array, [(0, num_more), *[(0, 0)] * (array.ndim - 1)], mode="edge")
             for array in (ids, starts, np.arange(len(ids)))]
    return jax.tree.map(np.asarray, solve.fit_candidates(
      *block[:2], x, y, np.ones_like(y), vocab=VOCAB, dataset=block[2], max_constants=4))

  places = np.minimum(np.arange(len(ids) + 40), len(ids) - 1)
  jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[places], b), fit(0), fit(40))


def test_of_no_candidates_there_are_no_fits():
  ids, starts, x, y, _ = make_batch(0)
  values, fit = solve.fit_candidates(ids[:0], starts[:0], x, y, np.ones_like(y), vocab=VOCAB, max_constants=4)
  assert values.shape == starts[:0].shape and fit.loss.shape == (0,)


def test_what_is_not_asked_for_is_not_fitted():
  ids, starts, x, y, _ = make_batch(0)
  _, fit = solve._fit(
    (ids, starts, None, np.arange(len(ids))), (x, y, np.ones_like(y)), np.int32(2), vocab=VOCAB, method="lm",
    max_steps=np.int32(9), max_constants=4, plan="loop", is_persistent=False)
  assert np.all(np.asarray(fit.steps)[:2] > 0) and not np.asarray(fit.steps)[2:].any()


def test_one_compile_serves_a_second_data_set():
  first, second = make_batch(0), make_batch(1, seed=5)
  fit32(*first[:4])
  before = solve._fit._cache_size()
  fit32(*second[:4])
  assert solve._fit._cache_size() == before


def test_the_number_of_steps_is_no_part_of_the_program():
  batch = make_batch(0)[:4]
  _, long = fit32(*batch, max_steps=50)
  before = solve._fit._cache_size()
  _, short = fit32(*batch, max_steps=2)
  assert solve._fit._cache_size() == before
  assert short.steps.max() <= 2 < long.steps.max()


def test_masked_points_do_not_count():
  ids, starts, x, y, _ = make_batch(0)
  weights = np.ones_like(y)
  weights[:, ::3] = 0
  wrong = np.where(weights > 0, y, np.nan)
  _, masked = fit32(ids, starts, x, wrong, weights)
  _, clean = fit32(ids, starts, x, y, weights)
  np.testing.assert_array_equal(masked.loss, clean.loss)
  assert np.isfinite(masked.loss).all()


def fit_one(text, start, x, y, is_free=None, **options):
  """Fits one formula in float64; all calls share one shape and one compiled fit."""
  ids, values = encode(text)
  start = np.where(values != 0, start, 0)
  is_free = np.array(VOCAB.is_constant)[ids] if is_free is None else is_free
  padding = (0, NUM_POINTS - len(x))
  x, y, weights = (np.pad(a, padding) for a in (x, y, np.ones(len(x))))
  options = {"max_constants": 4, **options}
  values, fit = solve.polish(
    ids[None], start[None], x[:, None], y, weights, vocab=VOCAB, is_free=is_free[None], **options)
  return values[0], jax.tree.map(lambda a: a[0], fit)


def test_a_formula_undefined_at_some_points_is_fitted_by_the_others_and_has_no_loss():
  x = np.array([-1.0, 0.5, 1.0, 2.0, 3.0, 4.0])
  y = np.where(x > 0, 2.0 * np.log(np.abs(x)), 0)
  values, fit = fit_one("1.5*log(x)", 1.5, x, y)
  assert fit.status == Status.UNDEFINED and fit.num_undefined == 1 and np.isinf(fit.loss)
  np.testing.assert_allclose(values[values != 0], [2.0], rtol=1e-9)


def test_points_that_become_defined_join_the_fit():
  x = np.linspace(0, 4, 12)
  # The start log(x - 0.5) has no value at the left end; the optimum log(x + 1.5) has one everywhere.
  _, fit = fit_one("log(x + 1.5)", -0.5, x, np.log(x + 1.5))
  assert fit.status == Status.CONVERGED and fit.num_undefined == 0 and fit.loss < 1e-20


def test_an_exponent_over_negative_bases_becomes_an_integer():
  x = np.linspace(-2, 2, 20)
  ids, values = encode("1.5*x**6.8")
  start = np.where(np.isclose(values, 6.8), 7.3, values)
  fitted, fit = fit_one("1.5*x**6.8", start, x, 2.0 * x**7)
  assert sorted(fitted[fitted != 0]) == pytest.approx([2.0, 7.0]) and fit.loss < 1e-20


def test_freed_integers_are_fitted_and_others_kept():
  ids, _ = encode("3*x + 2")
  x = np.linspace(0, 1, 10)
  is_free = ids == VOCAB.zero_id + 3
  # The start at the freed token is what `values` says: 0.
  fitted, fit = fit_one("3*x + 2", 0.0, x, 3.25 * x + 2, is_free=is_free)
  np.testing.assert_allclose(fitted, np.where(is_free, 3.25, 0), rtol=1e-9)
  assert fit.loss < 1e-20


def test_more_constants_than_slots_are_left_as_they_are():
  x = np.linspace(0.5, 2, 20)
  text = "1.5*x + 0.7*sin(x)"
  _, values = encode(text)
  fitted, fit = fit_one(text, values, x, 2.5 * x + 0.7 * np.sin(x), max_constants=1)
  np.testing.assert_allclose(fitted[fitted != 0], [2.5, 0.7], rtol=1e-9)
  assert fit.values.shape == (1,)


def test_no_constants_and_no_method_only_measure():
  x = np.linspace(0, 1, 8)
  _, fit = fit_one("x**2", 0.0, x, x**2 + 0.5)
  assert fit.status == Status.NO_CONSTANTS and fit.loss == pytest.approx(0.25) and fit.steps == 1
  values, fit = fit_one("1.5*x", 1.5, x, 2.5 * x, method="none")
  assert values.max() == 1.5 and fit.loss == pytest.approx(np.mean(x**2))


def test_every_status_says_what_to_do():
  assert set(STATUS_TEXT) == set(Status)


def test_unknown_method_is_refused():
  with pytest.raises(ValueError, match="unknown method 'sgd': expected one of lm, bfgs, gd, none"):
    fit_one("x", 0.0, [1.0], np.ones(1), method="sgd")
