"""One problem to one answer: the search as a user has it, or the paper's bare protocol, timed and with its reasons.

The bare protocol (SymFormer, sec. 4.2) draws samples in the trained box, fits their constants or not, and
takes the one with the lowest error on the input points: no scaling, no front, no rounding.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from symformer_jax import inference, results
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node
from symformer_jax.language.rules import Rule
from symformer_jax.refinement import restarts, solve
from symformer_jax.sources.network import samples as samples_lib
from symformer_jax.sources.network.samples import Samples

# The front's recommended formula, its most accurate one, and the bare protocol.
RECOMMENDED, MOST_ACCURATE, LOWEST_ERROR = "recommended", "most accurate", "lowest error"
# Random starts of each formula of a model that predicts no constants, as many as NSRS takes (Biggio et al., 2021).
NUM_GLOBAL_STARTS = 10
# Fitted samples that get float64 constants before the best is chosen.
NUM_POLISHED = 16


@dataclasses.dataclass(frozen=True)
class Method:
  """How an answer is found.

  Attributes:
    peer: name of another system that is asked in place of the model (`peers.PEERS`); the rest is then not read.
    choice: `recommended` or `most accurate` of the search's front, or `lowest error` of the bare samples.
    num_samples, top_k, refine, max_time, recombine, config: see `inference.search`; the bare protocol knows none of
      the last three.
  """

  choice: str = RECOMMENDED
  num_samples: int = 1024
  top_k: int = 20
  refine: str = "lm"
  max_time: float | None = None
  recombine: bool = True
  config: SearchConfig = DEFAULT
  peer: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
  """What was found.

  Attributes:
    node: the formula; None with a `message` when there is none.
    seconds: without compilation; compile_seconds: compilation alone.
    model: who answered.
    counts: candidates drawn, valid, distinct.
  """

  node: Node | None
  message: str
  seconds: float
  compile_seconds: float
  model: str
  counts: results.Counts = dataclasses.field(default_factory=results.Counts)


def answer(model: Any, points: np.ndarray, method: Method, *, seed: int) -> Answer:
  """Finds a formula for points [N, D+1]; a data set that cannot be searched gives an answer without a node."""
  if method.choice == LOWEST_ERROR:
    return _lowest_error(model, points, method, seed)
  result = inference.search(
    model, [points], n_samples=method.num_samples, top_k=method.top_k, refine=method.refine,
    max_time=method.max_time, recombine=method.recombine, seed=seed, config=method.config)[0]
  node = None
  if result.best is not None:
    chosen = result.best if method.choice == RECOMMENDED else min(result.pareto, key=lambda e: e.mse)
    node = chosen.node
  return Answer(node, result.message, result.seconds.search, result.seconds.compile, model.name, result.counts)


def _lowest_error(model: Any, points: np.ndarray, method: Method, seed: int) -> Answer:
  clock = Clock()
  num_columns = points.shape[1] - 1
  if num_columns > model.vocab.num_variables:
    message = f"the model knows {model.vocab.num_variables} variables, the problem has {num_columns}"
    return Answer(None, message, 0.0, 0.0, model.name)
  rows = Rows(points[:, :-1], points[:, -1], np.ones(len(points)))
  key = jax.random.key(seed)
  has_values = model.vocab.encoding != "skeleton"
  refine = method.refine if has_values else "none"
  samples, counts = samples_lib.sample_and_fit(
    model, rows, key, num_samples=method.num_samples, top_k=method.top_k, refine=refine,
    is_allowed=Rule(num_columns), clock=clock)
  if not has_values and method.refine != "none":
    with clock.measure("refine"):
      samples = _fit_from_anywhere(samples, rows, jax.random.fold_in(key, 1), method.refine)
  if method.refine != "none" and len(samples.ids):
    with clock.measure("refine"):
      samples = _polish_best(samples, rows, method.refine)
  node = None
  if np.isfinite(samples.loss).any():
    best = int(np.nanargmin(samples.loss))
    values = samples.values[best]
    if method.refine == "none":
      # The shortest decimals of the float32 values: the other digits of a double are noise.
      values = [float(str(value)) for value in values.astype(np.float32)]
    node = expression.decode(samples.ids[best], values, samples.vocab)
  message = "" if node is not None else "no sample is defined on all points"
  seconds = clock.seconds()
  return Answer(node, message, seconds.search, seconds.compile, model.name, counts)


def _polish_best(samples: Samples, rows: Rows, refine: str) -> Samples:
  """The best few by float32's fit, fitted to their end in float64: beside a pole float32 has no digits to spare."""
  best = np.argsort(samples.loss)[:NUM_POLISHED]
  best = np.concatenate([best, np.repeat(best[-1:], NUM_POLISHED - len(best))])  # one compiled shape
  x = np.pad(rows.x, ((0, 0), (0, samples.vocab.num_variables - rows.x.shape[1])))
  values, fit = solve.polish(samples.ids[best], samples.values[best], x, rows.y, rows.weights, vocab=samples.vocab,
                             method=refine)
  is_finite = np.isfinite(fit.loss)
  return dataclasses.replace(
    samples, ids=samples.ids[best], values=np.where(is_finite[:, None], values, samples.values[best]),
    loss=np.where(is_finite, fit.loss, samples.loss[best]))


def _fit_from_anywhere(samples: Samples, rows: Rows, key: jax.Array, refine: str) -> Samples:
  """Fits samples without constants from random starts: the global optimisation of a model that predicts none."""
  num = len(samples.ids)
  if not num:
    return samples
  # A power of two lanes, so that few shapes compile; those beyond hold the program `0`.
  extra = (1 << (num - 1).bit_length()) - num
  ids = np.pad(samples.ids, ((0, extra), (0, 0)))
  ids[num:, 0] = samples.vocab.zero_id
  x = np.pad(rows.x, ((0, 0), (0, samples.vocab.num_variables - rows.x.shape[1]))).astype(np.float32)
  fitted, fit = restarts.fit_with_restarts(
    ids, np.zeros(ids.shape, np.float32), x, rows.y.astype(np.float32), rows.weights.astype(np.float32),
    vocab=samples.vocab, key=key, num_starts=NUM_GLOBAL_STARTS, is_skeleton=True, method=refine)
  return dataclasses.replace(samples, values=np.asarray(fitted)[:num], loss=np.asarray(fit.loss)[:num])
