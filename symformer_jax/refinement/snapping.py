"""Replaces fitted constants by exact values (1/3, 2*pi, sqrt(2)) where the data leave no doubt.

One formula at a time, in float64, on the host.

A special value q is accepted for a constant when two things hold. An F test does not reject it: with the others
refitted, the sum of squares rises by no more than chance explains. And it is far more probable than an ordinary
constant: with the likelihood of the data (Student's t in z = sqrt(F)) and the priors of `special_values`,
  odds = prior(q) t(z) / integral of ordinary density times likelihood.
For ordinary constants the odds have an expected value of 1 at most, so by Markov's inequality no more than one in
`MIN_ODDS` of them passes, whatever the noise; how many do is measured (docs/results/refinement.md). The F test alone
would accept anything for a poorly known constant.
"""

from collections.abc import Callable
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special as functions

from symformer_jax.language import interpreter
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import special_values, uncertainty
from symformer_jax.refinement.special_values import SpecialValue

# Level of the F tests: one true special value in a hundred is missed.
SIGNIFICANCE = 0.01
MIN_ODDS = 10.0
# Standard errors within which a value is tried at all: the linear estimate is rough, the refit decides.
REACH = 10.0
# Roundings of y that count as noise: where the methods stop (`problem.is_exact`).
NUM_ROUNDINGS = 10
# Degrees of freedom that stand for a known sigma: t and F are then normal and chi-squared to six digits.
MANY = 10**6
MAX_REFIT_STEPS = 50

# Values and derivatives [1 + C, N] at constants [C].
Evaluate = Callable[[np.ndarray], np.ndarray]


class Snapped(NamedTuple):
  """Constants after snapping.

  Attributes:
    values: [C]; exact: of each constant its special value, or None where it stays ordinary.
    stderr: [C], of the ordinary ones given the others; 0 for special values.
    rss: weighted sum of squares.
    p_value: of the F test of all special values together; 1 when there are none.
  """

  values: np.ndarray
  exact: tuple[SpecialValue | None, ...]
  stderr: np.ndarray
  rss: float
  p_value: float


class _Fit(NamedTuple):
  """Constants [C], which of them are free [C], and the weighted sum of squares."""

  values: np.ndarray
  is_free: np.ndarray
  rss: float


@np.errstate(over="ignore", invalid="ignore")  # a step may go too far: its sum of squares is then not finite
def snap(
  evaluate: Evaluate, values: np.ndarray, y: np.ndarray, weights: np.ndarray, *, has_sigma: bool = False,
  min_odds: float = MIN_ODDS,
) -> Snapped:
  """Snaps the constants of one fitted formula, one after the other, refitting those that are left each time.

  Args:
    evaluate: the formula, in float64; values: fitted constants [C].
    y: [N]; weights: [N], 0 for a masked point; 1 / sigma^2 where sigma is known.
    has_sigma: whether it is.
    min_odds: special against ordinary; its inverse bounds the share of ordinary constants that are snapped.
  """
  is_used = weights > 0
  noise_floor = (NUM_ROUNDINGS * np.finfo(np.float64).eps) ** 2 * float(np.mean(weights[is_used] * y[is_used] ** 2))
  problem = _Problem(evaluate, y, weights, noise_floor)
  full = problem.refit(np.array(values, np.float64), np.ones(len(values), bool))
  dof = int(np.sum(is_used)) - len(values)
  exact: list[SpecialValue | None] = [None] * len(values)
  if dof <= 0 or not math.isfinite(full.rss):
    return Snapped(full.values, tuple(exact), np.full(len(values), np.nan), full.rss, 1.0)
  # The noise stays that of the full fit: each value that is accepted must not lend the next one more room.
  problem.variance = 1.0 if has_sigma else max(full.rss / dof, problem.rounding_variance(full))
  problem.dof = MANY if has_sigma else dof
  fit, p_value, is_open = full, 1.0, np.ones(len(values), bool)
  while True:
    stderr = problem.standard_errors(fit)
    prospects = [_Prospect(int(i), fit.values[i], stderr[i], problem.dof, min_odds) for i in np.flatnonzero(is_open)]
    prospects = [p for p in prospects if p.candidates]
    if not prospects:
      return Snapped(fit.values, tuple(exact), stderr, fit.rss, p_value)
    # What is most certain is held first, and lets the others be known better.
    prospect = max(prospects, key=lambda p: p.best_log_odds)
    accepted = problem.accept(full, fit, prospect)
    is_open[prospect.index] = False
    if accepted is not None:
      exact[prospect.index], fit, p_value = accepted
      is_open = fit.is_free.copy()


class _Prospect:
  """A constant and the special values it may be, simplest first."""

  def __init__(self, index: int, value: float, stderr: float, dof: int, min_odds: float):
    self.index, self._dof, self._min_log_odds = int(index), dof, math.log(min_odds)
    self.candidates: list[SpecialValue] = []
    if not (math.isfinite(value) and 0 < stderr < math.inf):
      return
    self._log_ordinary = _log_ordinary(value, stderr, dof)
    near = [s for s in special_values.nearest(value) if abs(s.value - value) <= REACH * stderr]
    # Worth a refit is what would pass if it fitted perfectly.
    self.candidates = [s for s in near if self.is_probable(s, 0.0)]
    self.best_log_odds = max(
      (self.log_odds(s, abs(s.value - value) / stderr) for s in self.candidates), default=-math.inf)

  def log_odds(self, special: SpecialValue, z: float) -> float:
    """Special value against ordinary constant; z: distance in standard errors."""
    return -special.bits * math.log(2) + float(_log_t(np.asarray(z), self._dof)) - self._log_ordinary

  def is_probable(self, special: SpecialValue, z: float) -> bool:
    return self.log_odds(special, z) >= self._min_log_odds


class _Problem:
  """A formula with its data, and the noise as the full fit has it."""

  def __init__(self, evaluate: Evaluate, y: np.ndarray, weights: np.ndarray, noise_floor: float):
    self.evaluate, self.noise_floor = evaluate, noise_floor
    self.is_used = weights > 0
    self.y, self.weights = y[self.is_used], weights[self.is_used]
    self.variance, self.dof = 0.0, 1

  def _look(self, values: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum of squares, weighted residual [N] and Jacobian [N, C] at the used points."""
    rows = np.asarray(self.evaluate(values))[:, self.is_used]
    root = np.sqrt(self.weights)
    residual = (rows[0] - self.y) * root
    return float(residual @ residual), residual, rows[1:1 + len(values)].T * root[:, None]

  def refit(self, values: np.ndarray, is_free: np.ndarray) -> _Fit:
    """Damped Gauss-Newton steps of the free constants, until a step no longer matters beside the noise."""
    rss, residual, jacobian = self._look(values)
    damping = 0.0
    for _ in range(MAX_REFIT_STEPS):
      if not is_free.any() or not (math.isfinite(rss) and np.isfinite(jacobian).all()):
        break
      free = jacobian[:, is_free]
      norms = np.linalg.norm(free, axis=0)
      norms = np.where(norms > 0, norms, 1)
      matrix = np.vstack([free / norms, math.sqrt(damping) * np.eye(len(norms))])
      step = np.linalg.lstsq(matrix, np.pad(-residual, (0, len(norms))), rcond=None)[0] / norms
      trial = values.copy()
      trial[is_free] += step
      seen = self._look(trial)
      gain = rss - seen[0]
      if gain > 0:
        values, (rss, residual, jacobian) = trial, seen
        damping /= 10
      elif damping > 1:  # nothing is left to gain in this direction
        break
      else:
        damping = max(10 * damping, 1e-3)
      if 0 <= gain <= max(1e-9 * rss, 1e-4 * self.variance, 1e-2 * self.noise_floor):
        break
    return _Fit(values, is_free, rss if math.isfinite(rss) else math.inf)

  def rounding_variance(self, fit: _Fit) -> float:
    """What rounding alone leaves of a residual: that of y, and that of each constant, which all points share."""
    _, _, jacobian = self._look(fit.values)
    following = (np.finfo(np.float64).eps * jacobian * fit.values) ** 2
    return self.noise_floor + float(np.sum(following))

  def standard_errors(self, fit: _Fit) -> np.ndarray:
    """[C]; 0 for constants that are held, inf for those that the data do not determine."""
    _, residual, jacobian = self._look(fit.values)
    stderr = np.zeros(len(fit.values))
    found = uncertainty.estimate(jacobian[:, fit.is_free], residual, np.ones(len(residual)), has_sigma=True)
    stderr[fit.is_free] = found.stderr * math.sqrt(self.variance)
    return stderr

  def accept(self, full: _Fit, fit: _Fit, prospect: _Prospect) -> tuple[SpecialValue, _Fit, float] | None:
    """The simplest special value that passes, the fit with it, and the p value of all of them; None if none does."""
    is_free = fit.is_free.copy()
    is_free[prospect.index] = False
    for special in prospect.candidates:
      values = fit.values.copy()
      values[prospect.index] = special.value
      held = self.refit(values, is_free)
      if not math.isfinite(held.rss):
        continue
      rise = max(held.rss - fit.rss, 0.0) / self.variance
      together = f_test((held.rss - full.rss) / self.variance, int(np.sum(~is_free)), self.dof)
      is_fitting = min(f_test(rise, 1, self.dof), together) > SIGNIFICANCE
      if is_fitting and prospect.is_probable(special, math.sqrt(rise)):
        return special, held, together
    return None


def _log_ordinary(value: float, stderr: float, dof: int) -> float:
  """Logarithm of the probability density of the data (in units of stderr) under an ordinary constant."""
  # Beyond twelve standard errors the likelihood is negligible, unless dof is 1 or 2.
  edges = np.linspace(-12, 12, 241)
  likelihood = np.exp(_log_t((edges[1:] + edges[:-1]) / 2, dof))
  # Of either sign the same; above 0 what is near to 1 would be rounded away.
  masses = np.diff(special_values.ordinary_cdf(stderr * edges - abs(value)))
  return math.log(float(likelihood @ np.maximum(masses, 1e-300)))


def _log_t(z: np.ndarray, dof: int) -> np.ndarray:
  """Logarithm of Student's density."""
  norm = math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2) - 0.5 * math.log(dof * math.pi)
  return norm - (dof + 1) / 2 * np.log1p(z * z / dof)


def f_test(rise: float, num_held: int, dof: int) -> float:
  """p value of a rise of the sum of squares, in units of the residual variance, by holding `num_held` constants."""
  return float(functions.betainc(dof / 2, num_held / 2, dof / (dof + max(rise, 0.0))))


_run = jax.jit(interpreter.run)
_translate = jax.jit(interpreter.translate, static_argnames=("vocab", "num_slots"))


def snap_program(
  ids: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray, weights: np.ndarray, *, vocab: Vocabulary,
  max_constants: int = 16, has_sigma: bool = False, min_odds: float = MIN_ODDS,
) -> tuple[np.ndarray, Snapped]:
  """Snaps the constant tokens of one fitted candidate.

  Args:
    ids: prefix expression [L]; values: fitted numbers at constant tokens [L], as `solve.polish` returns them.
    x: points [N, D]; y: [N]; weights: [N].
    max_constants: C, static; constants beyond it are left as they are.
    has_sigma, min_odds: see `snap`.
  Returns:
    `(values [L], Snapped)`, the latter by constant in prefix order.
  """
  positions = np.flatnonzero(np.asarray(vocab.is_constant)[ids])[:max_constants]
  columns = np.ascontiguousarray(np.asarray(x, np.float64).T)
  values = np.asarray(values, np.float64)

  def evaluate(constants: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
      program = _translate(jnp.asarray(ids), jnp.asarray(values), vocab=vocab, num_slots=max_constants)
      padded = np.pad(constants, (0, max_constants - len(constants)))
      return np.asarray(_run(program, padded, columns))

  y, weights = np.asarray(y, np.float64), np.asarray(weights, np.float64)
  snapped = snap(evaluate, values[positions], y, weights, has_sigma=has_sigma, min_odds=min_odds)
  placed = values.copy()
  placed[positions] = snapped.values
  return placed, snapped
