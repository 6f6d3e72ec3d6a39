"""One problem to one answer: the search as a user has it, or the paper's bare protocol, timed and with its reasons.

The bare protocol (SymFormer, sec. 4.2) draws samples in the trained box, fits their constants or not, and
takes the one with the lowest error on the input points: no scaling, no front, no rounding.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from symformer_jax import inference, results
from symformer_jax.language import expression
from symformer_jax.language.expression import Node
from symformer_jax.selection.finalists import Rows

# The front's recommended formula, its most accurate one, and the bare protocol.
RECOMMENDED, MOST_ACCURATE, LOWEST_ERROR = "recommended", "most accurate", "lowest error"


@dataclasses.dataclass(frozen=True)
class Method:
  """How an answer is found.

  Attributes:
    choice: `recommended` or `most accurate` of the search's front, or `lowest error` of the bare samples.
    num_samples, top_k, refine, max_time: see `inference.search`; the bare protocol knows no time limit.
  """

  choice: str = RECOMMENDED
  num_samples: int = 1024
  top_k: int = 20
  refine: str = "lm"
  max_time: float | None = None


@dataclasses.dataclass(frozen=True)
class Answer:
  """What was found.

  Attributes:
    node: the formula; None with a `message` when there is none.
    seconds: without compilation; compile_seconds: compilation alone.
    counts: candidates drawn, valid, distinct.
  """

  node: Node | None
  message: str
  seconds: float
  compile_seconds: float
  counts: results.Counts


def answer(model: Any, points: np.ndarray, method: Method, *, seed: int) -> Answer:
  """Finds a formula for points [N, D+1]; a data set that cannot be searched gives an answer without a node."""
  if method.choice == LOWEST_ERROR:
    return _lowest_error(model, points, method, seed)
  result = inference.search(
    model, [points], n_samples=method.num_samples, top_k=method.top_k, refine=method.refine,
    max_time=method.max_time, seed=seed)[0]
  node = None
  if result.best is not None:
    chosen = result.best if method.choice == RECOMMENDED else min(result.pareto, key=lambda e: e.mse)
    node = chosen.node
  return Answer(node, result.message, result.seconds.search, result.seconds.compile, result.counts)


def _lowest_error(model: Any, points: np.ndarray, method: Method, seed: int) -> Answer:
  clock = inference.Clock()
  num_columns = points.shape[1] - 1
  if num_columns > model.vocab.num_variables:
    message = f"the model knows {model.vocab.num_variables} variables, the problem has {num_columns}"
    return Answer(None, message, 0.0, 0.0, results.Counts())
  rows = Rows(points[:, :-1], points[:, -1], np.ones(len(points)))
  samples, counts = inference.sample_and_fit(
    model, rows, jax.random.key(seed), num_samples=method.num_samples, top_k=method.top_k, refine=method.refine,
    is_allowed=inference.Rule(num_columns), clock=clock)
  node = None
  if np.isfinite(samples.loss).any():
    best = int(np.nanargmin(samples.loss))
    # The shortest decimals of the float32 values: the other digits of a double are noise.
    values = [float(str(value)) for value in samples.values[best].astype(np.float32)]
    node = expression.decode(samples.ids[best], values, samples.vocab)
  message = "" if node is not None else "no sample is defined on all points"
  seconds = clock.seconds()
  return Answer(node, message, seconds.search, seconds.compile, counts)
