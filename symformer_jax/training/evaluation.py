"""Looks at a run from outside its loss: metrics on validation batches, and what the model answers when it decodes."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import itertools
import types
from typing import Any

from absl import logging
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
import numpy as np

from symformer_jax.data import pipeline, points as points_lib, records
from symformer_jax.data.pipeline import Batch
from symformer_jax.decoding import sampling
from symformer_jax.decoding.strategies import Greedy, Strategy, TopK
from symformer_jax.language import interpreter
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.training import processes, step as step_lib
from symformer_jax.training.config import TrainConfig
from symformer_jax.training.logs import Window

Metrics = dict[str, float]


def read_validation(config: TrainConfig, num_batches: int) -> list[Batch]:
  """The same first batches of the validation splits every time, whole on every host; none where no folder has one."""
  folders = tuple(folder for folder in config.data.dirs if records.has_shards(folder, "validation"))
  if not folders:
    logging.warning("no validation: none of %s has a validation split", ", ".join(config.data.dirs))
    return []
  iterator = pipeline.make_iterator(
    dataclasses.replace(config.data, dirs=folders, repeats=(), num_streams=1), seed=0, split="validation",
    num_variables=config.model.vocabulary.num_variables)
  return list(itertools.islice(iterator, num_batches))


def make_evaluation(config: TrainConfig, eval_step: Callable, sharding: NamedSharding) -> Callable[[Any], Metrics]:
  """`params -> mean metrics` over the same validation batches and points every time."""
  batches = read_validation(config, config.num_eval_batches)

  def evaluate(params: Any) -> Metrics:
    window = Window()
    for i, batch in enumerate(batches):
      metrics = eval_step(params, processes.share_out(batch, sharding), jax.random.key(i))
      window.add(jax.device_get(metrics))
    return window.pop()

  return evaluate


def measure_by_variables(
  model: Any, dirs: Sequence[str], *, num_equations: int, batch_size: int = 64, num_points: int = 64
) -> dict[int, Metrics]:
  """Metrics of a model on the validation splits of some folders, apart for each number of columns.

  Args:
    model: with `config` and `params`.
    num_equations: of each number of columns, the first so many; fewer where there are fewer. A last batch that is not
      full is filled up from the beginning.
    num_points: rows of each table: clean, all columns in their first places, none that does not matter.
  Returns:
    By number of columns: `equations`, and the mean of each metric over batches.
  """
  longest = model.config.decoder.max_length - 1
  config = TrainConfig(model=model.config, data=pipeline.DataConfig(length_buckets=(longest,)),
                       points=points_lib.PointsConfig(num_points=num_points))
  eval_step = jax.jit(step_lib.make_eval_step(config))
  source = pipeline.BlockSource(dirs, "validation")
  equations = pipeline.concatenate(
    [source[i] for i in range(len(source))], longest - 1, model.config.vocabulary.num_variables)
  columns = (equations.domains[..., 0] != equations.domains[..., 1]).sum(axis=1)
  found = {}
  for count in sorted({int(c) for c in columns}):
    rows = np.flatnonzero(columns == count)[:num_equations]
    window = Window()
    for i, chosen in enumerate(np.resize(rows, (-(-len(rows) // batch_size), batch_size))):
      batch = Batch(equations.ids[chosen].astype(np.int32), equations.constants[chosen], equations.domains[chosen])
      window.add(jax.device_get(eval_step(model.params, batch, jax.random.key(i))))
    found[count] = {"equations": len(rows), **window.pop()}
  return found


# --- decoding ----------------------------------------------------------------------------------------------------


def make_decoding_evaluation(config: TrainConfig) -> Callable[[Any], Metrics]:
  """`params -> median R2, share above .99 and exact answers`, greedy and sampled, without refinement.

  The best of the samples on the points the model saw is judged on fresh points of the same box (SymFormer, sec. 4.2).
  Every host decodes all of it on one device of its own.
  """
  wanted = config.decoding.num_equations
  batches = read_validation(config, -(-wanted // config.data.batch_size)) if config.decoding.every else []
  if not batches:
    return lambda params: {}
  width = max(batch.ids.shape[1] for batch in batches)
  rows = zip(*(batch.widened(width) for batch in batches), strict=True)
  batch = Batch(*(np.concatenate(parts)[:wanted] for parts in rows))
  clean = points_lib.PointsConfig(num_points=config.points.num_points, draws=config.points.draws)
  draw = jax.jit(lambda key: step_lib.prepare(key, batch, config, clean)[0])
  seen, fresh = draw(jax.random.key(0)), draw(jax.random.key(1))

  def evaluate(params: Any) -> Metrics:
    model = types.SimpleNamespace(config=config.model, params=jax.device_put(processes.gather(params)))
    latents = sampling.encode(model, seen.points, seen.is_valid)
    answer = functools.partial(_answer, model, latents, seen, fresh)
    values: Metrics = {}
    for name, strategy, num in (("greedy", Greedy(), 1), ("sampled", TopK(), config.decoding.num_samples)):
      r2, is_exact = answer(strategy, num)
      values |= {f"{name}_median_r2": float(np.median(r2)), f"{name}_r2_above_.99": float(np.mean(r2 > 0.99)),
                 f"{name}_exact": float(np.mean(is_exact))}
    return values

  return evaluate


def _answer(
  model: Any, latents: jax.Array, seen: step_lib.Examples, fresh: step_lib.Examples, strategy: Strategy,
  num_samples: int,
) -> tuple[np.ndarray, np.ndarray]:
  """R2 of the best candidate of each data set on fresh points [G], and whether it is the target's tokens [G]."""
  keys = jax.random.split(jax.random.key(2), len(latents))
  rules = [Rule(model.config.vocabulary.num_variables)] * len(latents)
  found = sampling.decode_candidates(model, latents, keys, rules, num_samples=num_samples, strategy=strategy)
  ids, constants = (np.stack(parts) for parts in zip(*found, strict=True))  # [G, K, L]
  scores = [np.asarray(_r2(ids, constants, some.points, some.is_valid, vocab=model.config.vocabulary))
            for some in (seen, fresh)]
  best = np.argmax(scores[0], axis=1)[:, None]
  targets = np.where(seen.seqs.is_target, seen.seqs.targets, 0)[:, :-1]
  chosen = np.take_along_axis(ids, best[..., None], axis=1)[:, 0]
  return np.take_along_axis(scores[1], best, axis=1)[:, 0], _same_tokens(chosen, targets, model.config.vocabulary)


def _same_tokens(ids: np.ndarray, targets: np.ndarray, vocab: Vocabulary) -> np.ndarray:
  """Whether prefix expressions [G, L] and targets [G, L'], which end in an end token unless full, are the same [G]."""
  is_symbol = np.asarray(vocab.arity) >= 0
  width = max(ids.shape[1], targets.shape[1])
  ids, targets = (np.pad(np.where(is_symbol[a], a, 0), ((0, 0), (0, width - a.shape[1]))) for a in (ids, targets))
  return np.all(ids == targets, axis=1)


@functools.partial(jax.jit, static_argnames="vocab")
def _r2(
  ids: jax.Array, constants: jax.Array, points: jax.Array, is_valid: jax.Array, *, vocab: Vocabulary
) -> jax.Array:
  """R2 of candidates [G, K, L] on points [G, N, D+1]: [G, K], -inf where one is undefined at a valid point."""
  num_sets, num_candidates, length = ids.shape
  values = interpreter.constant_values(ids, constants, vocab).reshape(-1, length)
  x = jnp.repeat(points[..., :-1], num_candidates, axis=0)
  predicted = interpreter.evaluate_many(ids.reshape(-1, length), values, x, vocab=vocab)
  predicted = predicted.reshape(num_sets, num_candidates, -1)
  y, mask = points[:, None, :, -1], is_valid[:, None]
  mean = jnp.sum(jnp.where(mask, y, 0.0), axis=-1, keepdims=True) / jnp.maximum(jnp.sum(mask, -1, keepdims=True), 1)
  error = jnp.sum(jnp.where(mask, (predicted - y) ** 2, 0.0), axis=-1)
  spread = jnp.sum(jnp.where(mask, (y - mean) ** 2, 0.0), axis=-1)
  # A constant target has no spread: only its own value counts as right.
  r2 = 1.0 - error / jnp.maximum(spread, jnp.finfo(spread.dtype).tiny)
  return jnp.where(jnp.isfinite(error), r2, -jnp.inf)
