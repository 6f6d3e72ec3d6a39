"""Fits that are attempted again: through poles by chordal residuals, and with exponents of the other parity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.language import expression, parser
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import problem, solve

VOCAB = Vocabulary(1)
LENGTH, NUM_POINTS = 24, 100
# Constants 10 % off leave points between the pole that is and the one predicted.
POLES = (
  "3.6997/(x - 2.6713)", "2.8855/(2*x - 3.2439)", "x/cos(x + 0.78766)", "-tan(1.1333*x) + x", "1.3/(2.2*x + 1.9)")
# As many as there are poles: one program serves both.
EVEN = ("x**6 - 0.0625", "0.7232*x - x**8", "3.7402*x**5 - x**6", "0.7232*x - x**8", "x**6 - 0.0625")


def batch(texts, low, high, first=0.9):
  """`(ids [K, L], starts [K, L], x [K, N, 1], y [K, N])`, constants a tenth too small or too large by turns."""
  rng = np.random.default_rng(3)
  ids, values, x, y = [], [], [], []
  for text in texts:
    node = parser.parse(text)
    tokens, mantissas = expression.encode(node, VOCAB)
    padding = (0, LENGTH - len(tokens))
    ids.append(np.pad(np.array(tokens, np.int32), padding))
    values.append(np.pad(np.array(mantissas) * np.array(VOCAB.constant_scale)[tokens], padding))
    x.append(rng.uniform(low, high, (NUM_POINTS, 1)))
    y.append(expression.evaluate(node, x[-1]))
  off = np.where(np.cumsum(np.array(values) != 0, axis=1) % 2 == 1, first, 2 - first)
  arrays = [np.asarray(a, np.float32) for a in (np.array(values) * off, x, y)]
  return np.stack(ids), *arrays


def losses(arrays, **options):
  """In squared spreads of y [K]."""
  ids, starts, x, y = arrays
  _, fit = solve.fit_candidates(
    ids, starts, x, y, np.ones_like(y), vocab=VOCAB, dataset=np.arange(len(ids), dtype=np.int32), **options)
  return np.asarray(fit.loss) / y.var(axis=1)


@pytest.mark.parametrize(("texts", "num_missed"), [(POLES, 4), (EVEN, 10)], ids=["poles", "parity"])
def test_what_one_attempt_does_not_fit_several_do(texts, num_missed):
  arrays = [np.concatenate(both) for both in zip(batch(texts, -5, 5), batch(texts, -5, 5, first=1.1), strict=True)]
  assert np.sum(losses(arrays) > 1e-3) >= num_missed
  # float32 does not place a pole better than 1e-8; a tangent with six poles in sight may still be missed.
  solved = losses(arrays, is_persistent=True) < 1e-6
  assert np.sum(solved) >= len(solved) - 1


def test_several_attempts_are_never_worse():
  texts = ("2.5*exp(-1.3*x)", "1.5*sin(1.2*x) + 0.7*sin(2.9*x)", "2.2*x/(1.4 + x) + 0.31*x", "0.37*x**2.6", "x**2 + x")
  ids, starts, x, y = batch(2 * texts, 0.1, 4)
  noisy = ids, starts * 1.3, x, y + 0.05 * y.std(axis=1, keepdims=True) * np.sin(np.arange(NUM_POINTS) * 7.0)
  assert np.all(losses(noisy, is_persistent=True) <= losses(noisy) * (1 + 1e-4))


@pytest.mark.slow
def test_both_plans_attempt_alike():
  ids, starts, x, y = batch(POLES[:3] + EVEN[:1], -5, 5)
  found = [losses((ids, starts, x, y), is_persistent=True, plan=plan) for plan in ("loop", "vmap")]
  np.testing.assert_allclose(found[0], found[1], atol=1e-9)


def test_an_evaluation_alone_stays_one():
  ids, starts, x, y = batch(POLES, -5, 5)
  _, fit = solve.fit_candidates(ids, starts, x, y, np.ones_like(y), vocab=VOCAB, method="none", is_persistent=True,
                                dataset=np.arange(len(ids), dtype=np.int32))
  assert np.all(np.asarray(fit.steps) == 1)


def test_chordal_residuals_are_chords_of_the_circle(rng):
  values, targets, knee = rng.normal(size=50) * 10.0 ** rng.integers(-3, 6, 50), rng.normal(size=50), 0.7
  points = [np.exp(2j * np.arctan(a / knee)) for a in (values, targets)]
  chord, slope = problem.residuals(jnp.asarray(values), jnp.asarray(targets), jnp.asarray(knee))
  np.testing.assert_allclose(np.abs(chord), knee * np.abs(points[0] - points[1]) / 2, rtol=2e-5, atol=1e-6)
  assert np.all(np.sign(chord) == np.sign(values - targets))
  derivative = jax.vmap(jax.grad(lambda v, t: problem.residuals(v, t, jnp.asarray(knee))[0]))(
    jnp.asarray(values), jnp.asarray(targets))
  np.testing.assert_allclose(slope, derivative, rtol=1e-4, atol=1e-7)


def test_chordal_residuals_stay_finite_and_plain_ones_plain():
  values = jnp.asarray([3e38, -3e38, 1e20, 0.0, 2.0])
  targets = jnp.asarray([-3e38, -3e38, 1.0, 1e30, 1.0])
  chord, slope = problem.residuals(values, targets, jnp.asarray(1.0))
  assert np.all(np.isfinite(chord)) and np.all(np.isfinite(slope)) and np.all(np.abs(chord) <= 1)
  plain, one = problem.residuals(values, targets, jnp.asarray(jnp.inf))
  np.testing.assert_array_equal(plain, values - targets)
  assert np.all(one == 1)
