"""Candidates with fitted constants for many views of data at once: encode, decode, keep what differs, fit.

A view is one way to show a data set to the model: some of its rows in some units. All views of a call share the
compiled programs; what comes out for one depends on no other.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from symformer_jax import compilation
from symformer_jax.decoding import strategies
from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, TransformerConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import ExpressionError
from symformer_jax.language import expression, interpreter, programs
from symformer_jax.language.expression import Node
from symformer_jax.language.rules import Rule
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve
from symformer_jax.results import Counts


@dataclasses.dataclass(frozen=True)
class View:
  """One way to show a data set to the model.

  Attributes:
    bag: rows that are encoded; rows: those the constants are fitted to; both in the model's units and padded with
      rows of weight 0.
    key: of its samples, not consumed: rounds draw samples of other numbers.
    rule: the formulas that count.
  """

  bag: Rows
  rows: Rows
  key: jax.Array
  rule: Rule


@dataclasses.dataclass(frozen=True)
class Samples:
  """Distinct samples of the model with fitted constants, in the units of the rows they were fitted to.

  Attributes:
    ids: [K, L]; values: numbers at constant tokens [K, L]; loss: mean squared error [K], inf where undefined.
    vocab: of the ids.
  """

  ids: np.ndarray
  values: np.ndarray
  loss: np.ndarray
  vocab: Any

  def node(self, index: int) -> Node:
    """One of them as a tree."""
    return expression.decode(self.ids[index], self.values[index], self.vocab)


def sample_and_fit_all(
  model: Any, views: Sequence[View], *, num_samples: int, top_k: int, refine: str, clock: Clock,
  first_sample: int = 0, strategy: str = "top_k", temperature: float = 1.0,
  config: TransformerConfig = DEFAULT.transformer,
) -> list[tuple[Samples, Counts]]:
  """Draws samples for views of equal numbers of rows and fits their constants in one call.

  Args:
    model: a loaded model, or anything with `vocab` and `propose`.
    views: at least one.
    num_samples: drawn for each; first_sample: number of the first.
    top_k, refine, strategy, temperature: see `inference.search`.
    clock: gets the time of `encode`, `decode`, `deduplicate` and `refine`.
    config: which samples count as different.
  Returns:
    `(samples, counts)` of each view; no samples when none is a valid formula.
  """
  how = strategies.make_strategy(strategy, top_k=top_k, temperature=temperature)
  proposed = _propose(model, views, num_samples, first_sample, top_k, how, clock)
  interruption.check()
  with clock.measure("deduplicate"):
    kept, counts = [], []
    for view, (ids, mantissas) in zip(views, proposed, strict=True):
      values = np.asarray(interpreter.constant_values(ids, mantissas, model.vocab))
      valid = _valid(ids, values, model.vocab, view.rule)
      chosen = _distinct(ids, values, valid, config.starts_per_string)
      if model.vocab.encoding != "skeleton":  # constants without values yet: nothing to compare
        chosen = _different_in_value(ids, values, chosen, _columns(view, model), model.vocab, config)
      counts.append(Counts(num_samples, len(valid), len({ids[k].tobytes() for k in valid}), len(chosen)))
      kept.append((ids[chosen], values[chosen]))
  if not any(len(ids) for ids, _ in kept):
    return [(Samples(*c, np.zeros(0), model.vocab), n) for c, n in zip(kept, counts, strict=True)]
  interruption.check()
  with clock.measure("refine"):
    fitted = _fit(kept, views, model, refine)
  return [(Samples(ids, *fit, model.vocab), n) for (ids, _), fit, n in zip(kept, fitted, counts, strict=True)]


def sample_and_fit(
  model: Any, rows: Rows, key: jax.Array, *, num_samples: int, top_k: int, refine: str, is_allowed: Rule,
  clock: Clock,
) -> tuple[Samples, Counts]:
  """Draws samples for one data set as it is and fits their constants: the paper's protocol; see `sample_and_fit_all`.

  Args:
    rows: at least one of positive weight; those of weight 0 are padding.
    key: not consumed.
    is_allowed: the formulas that count; the model draws no others.
  """
  view = View(rows, rows, key, is_allowed)
  [found] = sample_and_fit_all(
    model, [view], num_samples=num_samples, top_k=top_k, refine=refine, clock=clock)
  return found


def _columns(view: View, model: Any) -> np.ndarray:
  """x of the rows to fit [N, D of the model], float32."""
  return _widened(view.rows.x, model)


def _widened(x: np.ndarray, model: Any) -> np.ndarray:
  return np.pad(x, ((0, 0), (0, model.vocab.num_variables - x.shape[1]))).astype(np.float32)


def _propose(
  model: Any, views: Sequence[View], num_samples: int, first_sample: int, top_k: int, strategy: Any, clock: Clock
) -> list[tuple[np.ndarray, np.ndarray]]:
  """Candidates of the model for each view: `(ids [K, L], mantissas [K, L])`."""
  points = np.stack([np.column_stack([_widened(v.bag.x, model), v.bag.y.astype(np.float32)]) for v in views])
  is_valid = np.stack([v.bag.weights > 0 for v in views])
  if hasattr(model, "propose"):
    with clock.measure("decode"):
      found = [model.propose(p, ok, jax.random.fold_in(v.key, first_sample), num_samples=num_samples, top_k=top_k)
               for v, p, ok in zip(views, points, is_valid, strict=True)]
      return [(np.asarray(ids), mantissas) for ids, mantissas in found]
  # Imported late: stand-ins for a model need no network.
  from symformer_jax.decoding import sampling

  with clock.measure("encode"):
    latents = jax.block_until_ready(sampling.encode(model, points, is_valid))
  with clock.measure("decode"):
    return sampling.decode_candidates(
      model, latents, jax.numpy.stack([v.key for v in views]), [v.rule for v in views], num_samples=num_samples,
      first_sample=first_sample, strategy=strategy)


def _valid(ids: np.ndarray, values: np.ndarray, vocab: Vocabulary, is_allowed: Rule) -> list[int]:
  """Candidates [K] that are whole formulas within the user's rules; a model under the grammar draws no others."""
  verdicts: dict[bytes, bool] = {}
  for k in range(len(ids)):
    text = ids[k].tobytes()
    if text not in verdicts:
      try:
        verdicts[text] = is_allowed(expression.decode(ids[k], values[k], vocab))
      except ExpressionError:
        verdicts[text] = False
  return [k for k in range(len(ids)) if verdicts[ids[k].tobytes()]]


def _distinct(ids: np.ndarray, values: np.ndarray, valid: Sequence[int], starts_per_string: int) -> list[int]:
  """Of each token string the first few with different constants."""
  seen: dict[bytes, list[bytes]] = {}
  kept = []
  for k in valid:
    starts = seen.setdefault(ids[k].tobytes(), [])
    start = values[k].tobytes()
    if len(starts) < starts_per_string and start not in starts:
      starts.append(start)
      kept.append(k)
  return kept


@functools.partial(jax.jit, static_argnames=("vocab",))
def _evaluate(ids: jax.Array, values: jax.Array, x: jax.Array, *, vocab: Vocabulary) -> jax.Array:
  """Values of K formulas at the same points [K, N]."""
  return interpreter.evaluate_many(ids, values, jax.numpy.broadcast_to(x, (ids.shape[0], *x.shape)), vocab=vocab)


def _different_in_value(
  ids: np.ndarray, values: np.ndarray, chosen: list[int], x: np.ndarray, vocab: Vocabulary, config: TransformerConfig
) -> list[int]:
  """Of candidates equal in value and in the number of constants the shortest, the first of equals.

  Another number of constants is another family, which the fit may lead elsewhere.
  """
  if len(chosen) < 2:
    return chosen
  points = x[np.linspace(0, len(x) - 1, config.value_points).astype(int)]
  found = np.concatenate([np.asarray(_evaluate(block_ids, block_values, points, vocab=vocab))[:size]
                          for size, block_ids, block_values, _ in _blocks(ids[chosen], values[chosen], vocab)])
  with np.errstate(all="ignore"):
    largest = np.max(np.where(np.isfinite(found), np.abs(found), 0), axis=1, keepdims=True)
    sizes = np.where(largest > 0, largest, 1)
    digits = np.round(found / sizes, config.value_digits) + 0.0  # -0 is 0
  # The scale in logarithm: two largest values that differ by rounding alone mostly share a bin.
  scale = np.round(np.log(sizes), config.value_digits - 1)
  num_constants = np.asarray(vocab.is_constant)[ids[chosen]].sum(axis=1)
  lengths = [token_count(ids[k]) for k in chosen]
  best: dict[tuple, int] = {}
  for i in sorted(range(len(chosen)), key=lambda i: lengths[i]):
    # A formula undefined at one of the points is judged by the fit alone.
    signature = (digits[i].tobytes(), float(scale[i, 0]), int(num_constants[i]))
    best.setdefault(signature if np.isfinite(found[i]).all() else (i,), i)
  return [chosen[i] for i in sorted(best.values())]


def _blocks(
  ids: np.ndarray, values: np.ndarray, vocab: Vocabulary, dataset: np.ndarray | None = None
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
  """Candidates in blocks of few sizes: `(number, ids, values, dataset)`, with programs `0` (one step) as padding."""
  dataset = np.zeros(len(ids), np.int32) if dataset is None else dataset
  largest = compilation.candidate_buckets()[-1]
  for begin in range(0, len(ids), largest):
    some = slice(begin, min(begin + largest, len(ids)))
    extra = compilation.bucket(some.stop - begin, compilation.candidate_buckets()) - (some.stop - begin)
    block_ids = np.pad(ids[some], ((0, extra), (0, 0))).astype(np.int32)
    block_ids[some.stop - begin :, 0] = vocab.zero_id
    yield (some.stop - begin, block_ids, np.pad(values[some], ((0, extra), (0, 0))), np.pad(dataset[some], (0, extra)))


def _fit(
  kept: Sequence[tuple[np.ndarray, np.ndarray]], views: Sequence[View], model: Any, refine: str
) -> list[tuple[np.ndarray, np.ndarray]]:
  """Fitted values and losses of each view's candidates."""
  sizes = [len(ids) for ids, _ in kept]
  ids, values = (np.concatenate([part[i] for part in kept]) for i in range(2))
  dataset = np.repeat(np.arange(len(views), dtype=np.int32), sizes)
  extra = compilation.bucket(len(views), compilation.dataset_buckets()) - len(views)
  sets = [*views, *[views[-1]] * extra]
  x = np.stack([_columns(v, model) for v in sets])
  y, weights = (np.stack([getattr(v.rows, name) for v in sets]).astype(np.float32) for name in ("y", "weights"))
  found = []
  for size, block_ids, block_values, block_dataset in _blocks(ids, values, model.vocab, dataset):
    fitted, fit = solve.fit_candidates(
      block_ids, block_values, x, y, weights, vocab=model.vocab, method=refine, dataset=block_dataset,
      is_persistent=True)
    found.append((np.asarray(fitted)[:size], np.asarray(fit.loss)[:size]))
  ends = np.cumsum(sizes)[:-1]
  return list(zip(*(np.split(np.concatenate([part[i] for part in found]), ends) for i in range(2)), strict=True))


def is_satisfiable(rule: Rule, model: Any) -> bool:
  """Whether some formula of the model's tokens and length keeps the rule; of any tokens where the model is None."""
  if rule.is_open and not rule.required and rule.max_complexity is None:
    return True  # a number does
  # Imported late: stand-ins for a model need no network.
  from symformer_jax.decoding import grammar

  length = model.config.decoder.max_length - 1 if hasattr(model, "config") else programs.MAX_TOKENS
  every = programs.base_vocabulary(rule.num_columns, has_requested=bool(rule.requested))
  vocab = every if model is None else model.vocab
  return grammar.is_satisfiable(grammar.make_grammar(rule, vocab), length, vocab=vocab)


def token_count(ids: np.ndarray) -> int:
  """Tokens before the padding [L]."""
  return int(np.sum(np.cumsum(ids == 0) == 0))
