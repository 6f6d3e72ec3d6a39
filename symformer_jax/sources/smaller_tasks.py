"""A table that is made of the user's as a data set by itself, for sources that are asked of it."""

import dataclasses

import numpy as np

from symformer_jax.engine.rows import LARGEST, SMALLEST, Rows
from symformer_jax.engine.task import Task, default_names
from symformer_jax.language.rules import Rule


@np.errstate(all="ignore")  # what is not finite is no table
def smaller_task(task: Task, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Task | None:
  """A data set of other columns and another target; None where its values are none.

  Args:
    task: the user's, whose operators formulas may have.
    x: [N, D'], y [N]: the table; weights [N]: what an error of its y counts.
  """
  if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.ptp(y) > 0
          and np.all(np.isfinite(weights) & (weights > 0))):
    return None
  fit_rows = Rows(x, y, weights / np.mean(weights))
  num_columns = x.shape[1]
  rule = dataclasses.replace(Rule(num_columns), tokens=task.rule.tokens)
  variance = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
  largest = max(np.max(np.abs(x)), np.max(np.abs(y)))
  if not SMALLEST < variance < LARGEST or largest > LARGEST:
    return None
  return Task(fit_rows, fit_rows, default_names(num_columns), rule, tuple(range(num_columns)), variance, task.num_rows)
