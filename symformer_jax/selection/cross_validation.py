"""How well formulas predict rows that their constants were not fitted to."""

from collections.abc import Sequence

import numpy as np

from symformer_jax.engine.config import DEFAULT, ChoiceConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node
from symformer_jax.selection import frequencies, rounding, scoring


def draw_folds(rows: Rows, num_folds: int, *, seed: int, config: ChoiceConfig = DEFAULT.choice) -> np.ndarray:
  """The fold [N] of each row: by chance; some blocks each where the rows are a series (one evenly spaced column)."""
  num_folds = min(num_folds, len(rows))
  folds = np.empty(len(rows), int)
  if frequencies.even_step(rows.x, config=config) is None:
    folds[np.random.default_rng(seed).permutation(len(rows))] = np.arange(len(rows)) * num_folds // len(rows)
  else:
    num_blocks = min(num_folds * config.blocks_per_fold, len(rows))
    folds[np.argsort(rows.x[:, 0])] = np.arange(len(rows)) * num_blocks // len(rows) % num_folds
  return folds


def squared_errors(node: Node, rows: Rows, folds: np.ndarray) -> np.ndarray:
  """Squared error [N] of each row, predicted with constants fitted to the other folds; infinite where undefined.

  Args:
    node: a formula with constants fitted to all rows, from which those of the folds start.
    folds: see `draw_folds`.
  """
  errors = np.empty(len(rows))
  for fold in np.unique(folds):
    out = folds == fold
    fitted = rounding.refit_constants(node, rows.x[~out], rows.y[~out], rows.weights[~out])
    with np.errstate(all="ignore"):
      errors[out] = (scoring.evaluate(fitted, rows.x[out]) - rows.y[out]) ** 2
  return np.where(np.isfinite(errors), errors, np.inf)


def simplest_within_one_error(
  errors: Sequence[np.ndarray], complexities: Sequence[int], weights: np.ndarray
) -> int:
  """The simplest formula that is worse than the best by no more than one standard error of the difference.

  Breiman et al. (1984) take the error of the best; that of the paired differences is what the rows say about the two.
  Args:
    errors: squared errors [N] of each formula; the first of equals wins. weights: of the rows [N].
  """
  means = [float(np.average(e, weights=weights)) for e in errors]
  best = min(range(len(errors)), key=lambda i: means[i])
  if not np.isfinite(means[best]):
    return best
  within = [i for i in range(len(errors)) if is_within_one_error(errors[i], errors[best], weights)]
  return min(within, key=lambda i: (complexities[i], means[i]))


def is_within_one_error(errors: np.ndarray, best: np.ndarray, weights: np.ndarray) -> bool:
  """Whether the mean of the first [N] is above that of the second by no more than one standard error.

  Of a weighted mean that is the one of weighted terms: where large rows have little weight, their large errors say
  little.
  """
  difference = errors - best
  mean = float(np.average(difference, weights=weights))
  if not np.isfinite(mean):
    return False
  terms = weights / np.mean(weights) * (difference - mean)
  return bool(mean <= np.sqrt(np.mean(terms**2) / max(len(difference) - 1, 1)))
