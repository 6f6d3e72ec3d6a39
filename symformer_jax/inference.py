"""From points to a ranked front of formulas: sample, keep what differs, fit, bring back to the user's units, select.

`search` is the whole path for any number of data sets; `infer.py` and `estimator.py` are thin layers over it.
"""

from collections.abc import Sequence
import dataclasses
import difflib
import functools
import math
import time
from typing import Any

import jax
import numpy as np

from symformer_jax import results
from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import expression, interpreter, operators as operators_lib
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import VARIABLE, Node, walk
from symformer_jax.refinement import solve
from symformer_jax.results import Counts, SearchResult, Seconds
from symformer_jax.selection import finalists as finalists_lib, programs, rescale
from symformer_jax.selection.finalists import Rows
from symformer_jax.selection.tidy import tidy

MIN_POINTS = 5
# The rows shown to the model and used to fit constants are padded to one of these shapes.
POINT_BUCKETS = (64, finalists_lib.FIT_ROWS)
# Distinct candidates are padded to a power of two of at least this many.
MIN_CANDIDATES = 64
# Different starting constants kept of one token string: the fit is local.
STARTS_PER_STRING = 3
# Candidates that go on to the fit in the user's units: the best, and the best few of every complexity.
NUM_BEST, NUM_PER_COMPLEXITY = 64, 3
# Fits of one skeleton that go on: from poor starts they end in different places, or have not ended yet.
FITS_PER_SKELETON = 4
# Samples drawn between two looks at the clock, when there is a time limit.
ROUND_SAMPLES = 256


@dataclasses.dataclass(frozen=True)
class Options:
  """What to do; see `search`."""

  n_samples: int
  top_k: int
  refine: str
  max_time: float | None
  seed: int
  tokens: frozenset[str] | None


@dataclasses.dataclass(frozen=True)
class _Candidate:
  """A fitted formula in the user's units; `mse` is that of the search, in squared units of y."""

  node: Node
  mse: float


def search(
  model: Any, datasets: Sequence[Any], *, n_samples: int = 1024, top_k: int = 20, refine: str = "lm",
  operators: Sequence[str] | None = None, max_time: float | None = None, seed: int = 0,
  key: jax.Array | None = None, names: Sequence[Sequence[str]] | None = None,
) -> list[SearchResult]:
  """Finds formulas for data sets.

  Args:
    model: a loaded model (`load_model`), or anything with `name`, `vocab` and `propose`.
    datasets: each points [N, D+1] with y in the last column, or `(X [N, D], y [N])` or `(X, y, weights [N])`.
    n_samples: candidates drawn for each data set.
    top_k: tokens among which each step of sampling chooses.
    refine: how constants are fitted: `lm`, `bfgs`, `gd` or `none`.
    operators: names of the operators a formula may use; None for all.
    max_time: seconds after which no further round of samples is begun for a data set; None for no limit.
    seed: fixes every random choice. The answer for a data set does not depend on the others.
    key: a JAX key to use in place of the seed's; consumed.
    names: column names of each data set; x0, x1, ... by default.
  Returns:
    One result for each data set, in their order. A data set that cannot be used has status `failed`.
  Raises:
    InputError: for arguments that are wrong for every data set.
  """
  options = _check_options(n_samples, top_k, refine, operators, max_time, seed)
  if names is not None and len(names) != len(datasets):
    raise InputError(f"names: expected column names for {len(datasets)} data sets, got {len(names)}")
  key = jax.random.key(seed) if key is None else key
  found = []
  for i, dataset in enumerate(datasets):
    try:
      rows = check_dataset(dataset, model)
      columns = tuple(names[i]) if names is not None else tuple(f"x{d}" for d in range(rows.x.shape[1]))
      found.append(_search_one(model, rows, columns, options, key))
    except InputError as error:
      found.append(results.failed(str(error), model=model.name, seed=seed))
  return found


@functools.lru_cache(maxsize=4)
def resolve_model(name: str, *, num_variables: int) -> Any:
  """The model a user names, loaded once: `auto` is the shipped one for so many variables.

  Raises:
    ModelError: for an unknown, damaged or foreign model.
  """
  # Imported late: stand-ins for a model need neither weights nor a network.
  from symformer_jax.pretrained import registry

  return registry.load_model(name, num_variables=num_variables)


def _check_options(n_samples, top_k, refine, operators, max_time, seed) -> Options:
  for name, value in (("n_samples", n_samples), ("top_k", top_k)):
    if not isinstance(value, int | np.integer) or value < 1:
      raise InputError(f"{name}: expected a whole number of at least 1, got {value!r}")
  if refine not in solve.MAX_STEPS:
    raise InputError(f"refine: unknown method {refine!r}, expected one of {', '.join(solve.MAX_STEPS)}")
  if max_time is not None and not max_time > 0:
    raise InputError(f"max_time: expected a number of seconds above 0, got {max_time!r}")
  return Options(int(n_samples), int(top_k), refine, max_time, seed, _allowed_tokens(operators))


# What people write for operators that have other names in a tree without minus and division.
_ALIASES = {"-": ("+", "neg", "*"), "/": ("*", "inv"), "**": ("pow", "pow2", "pow3"), "^": ("pow", "pow2", "pow3"),
            "log": ("ln",), "arcsin": ("asin",), "arccos": ("acos",), "arctan": ("atan",)}


def _allowed_tokens(names: Sequence[str] | None) -> frozenset[str] | None:
  if names is None:
    return None
  known = {op.name: (op.name,) for op in operators_lib.MODEL_OPERATORS} | _ALIASES
  for name in names:
    if name not in known:
      close = difflib.get_close_matches(name, known, n=1)
      hint = f"; did you mean {close[0]!r}?" if close else ""
      raise InputError(f"operators: unknown operator {name!r}, expected some of {', '.join(known)}{hint}")
  return frozenset(token for name in names for token in known[name])


def check_dataset(dataset: Any, model: Any = None) -> Rows:
  """Reads one data set (see `search`) as float64 rows, those of weight 0 left out.

  Raises:
    InputError: says what makes the data unusable, here or for the model.
  """
  x, y, weights = _split_dataset(dataset)
  if len(y) != len(x) or len(weights) != len(x):
    raise InputError(f"rows differ: X has {len(x)}, y has {len(y)}, weights have {len(weights)}")
  if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.all(np.isfinite(weights))):
    raise InputError("the data hold NaN or infinity; expected finite numbers")
  if np.any(weights < 0):
    raise InputError(f"weights: expected at least 0, got {weights.min():g}")
  is_used = weights > 0
  x, y, weights = x[is_used], y[is_used], weights[is_used]
  if len(y) < MIN_POINTS:
    raise InputError(f"too few points: expected at least {MIN_POINTS}, got {len(y)}")
  if np.ptp(y) == 0:
    raise InputError(f"the target is constant: every value is {y[0]:g}")
  if model is not None and x.shape[1] > model.vocab.num_variables:
    raise InputError(f"more variables than the model knows: {model.name!r} knows {model.vocab.num_variables}, "
                     f"the data have {x.shape[1]}")
  return Rows(x, y, weights / weights.mean())


def _split_dataset(dataset: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  if isinstance(dataset, tuple) and len(dataset) in (2, 3):
    x, y, *rest = (np.asarray(part, np.float64) for part in dataset)
    x = x[:, None] if x.ndim == 1 else x
  else:
    points = np.asarray(dataset, np.float64)
    if points.ndim != 2 or points.shape[1] < 2:
      raise InputError(f"expected points [N, D+1] with y in the last column, got an array of shape {points.shape}")
    x, y, rest = points[:, :-1], points[:, -1], []
  if x.ndim != 2 or y.ndim != 1 or x.shape[1] < 1:
    raise InputError(f"expected X [N, D] and y [N], got shapes {x.shape} and {y.shape}")
  return x, y, rest[0] if rest else np.ones(len(y))


# --- one data set ----------------------------------------------------------------------------------------------


def _search_one(model, rows: Rows, names: tuple[str, ...], options: Options, key: jax.Array) -> SearchResult:
  clock = Clock()
  fit_rows = rows.sample(finalists_lib.FIT_ROWS, seed=options.seed)
  num_rows = next(b for b in POINT_BUCKETS if b >= len(fit_rows))
  is_allowed = Rule(rows.x.shape[1], options.tokens)
  candidates, counts = _explore(model, fit_rows, num_rows, options, key, is_allowed, clock)
  with clock.measure("refine"):
    fits = [n for n in finalists_lib.closed_form_fits(fit_rows) if is_allowed(n)]  # a bare constant always is
    nodes = [c.node for c in _shortlist(candidates)]
    room = finalists_lib.NUM_PROGRAMS
    polished = finalists_lib.polish(
      nodes[:room], fit_rows, num_rows=num_rows, num_variables=model.vocab.num_variables, method=options.refine)
    best, front = finalists_lib.select(
      polished, rows, names, seed=options.seed, yardsticks=fits, is_allowed=is_allowed,
      may_fit=options.refine != "none")
  message = "" if candidates else "no candidate of the model fits; the front holds the closed-form fits alone"
  return SearchResult(results.OK, message, best, front, counts, clock.seconds(), options.seed, len(rows), model.name)


@dataclasses.dataclass(frozen=True)
class Rule:
  """Which formulas count: those over columns that exist, with allowed operators.

  Attributes:
    num_columns: D of the data.
    tokens: operators allowed; None for all.
  """

  num_columns: int
  tokens: frozenset[str] | None = None

  def __call__(self, node: Node) -> bool:
    return all(n.value < self.num_columns if n.token == VARIABLE else self._allows_token(n) for n in walk(node))

  def _allows_token(self, node: Node) -> bool:
    return not node.args or self.tokens is None or node.token in self.tokens


def _explore(
  model, rows: Rows, num_rows: int, options: Options, key: jax.Array, is_allowed: Rule,
  clock: "Clock",
) -> tuple[list[_Candidate], Counts]:
  """Samples and fits candidates in every scaling, in rounds when there is a time limit."""
  scalings = rescale.propose_scalings(rows.x, rows.y)
  share = -(-options.n_samples // len(scalings))
  round_samples = share if options.max_time is None else min(share, ROUND_SAMPLES)
  candidates: list[_Candidate] = []
  counts = Counts()
  for r in range(-(-share // round_samples)):
    for s, scaling in enumerate(scalings):
      if counts.sampled and options.max_time is not None and clock.elapsed() > options.max_time:
        return candidates, counts
      round_key = jax.random.fold_in(jax.random.fold_in(key, r), s)
      found, new = _explore_round(model, rows, num_rows, scaling, round_samples, options, round_key, is_allowed, clock)
      candidates += found
      counts = Counts(*(a + b for a, b in zip(dataclasses.astuple(counts), dataclasses.astuple(new), strict=True)))
  return candidates, counts


def _explore_round(model, rows, num_rows, scaling, num_samples, options, key, is_allowed, clock):
  """One call of the model and one of the optimizer: `(candidates, counts)`."""
  x, y = scaling.apply(rows.x, rows.y)
  samples, counts = sample_and_fit(
    model, Rows(x, y, rows.weights).padded(num_rows), key, num_samples=num_samples, top_k=options.top_k,
    refine=options.refine, is_allowed=is_allowed, clock=clock)
  candidates = []
  for lane in _survivors(samples.loss, [_length(ids) for ids in samples.ids]):
    node = scaling.restore(samples.node(lane))
    mse = float(samples.loss[lane]) * scaling.y_factor**2
    # Multiplied out, like terms join; as it was found, a formula may be shorter.
    candidates += [_Candidate(form, mse) for form in dict.fromkeys([tidy(node), canonicalize(node)])]
  return candidates, counts


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


def sample_and_fit(
  model: Any, rows: Rows, key: jax.Array, *, num_samples: int, top_k: int, refine: str,
  is_allowed: Rule, clock: "Clock",
) -> tuple[Samples, Counts]:
  """Draws samples for one data set as it is and fits their constants: the core of `search`, and the paper's protocol.

  Args:
    model, num_samples, top_k, refine: see `search`.
    rows: at least one of positive weight; those of weight 0 are padding.
    key: consumed.
    is_allowed: the formulas that count; the model draws no others.
    clock: gets the time of `decode` and `refine`.
  Returns:
    `(samples, counts)`; no samples when none is a valid formula.
  """
  x = np.pad(rows.x, ((0, 0), (0, model.vocab.num_variables - rows.x.shape[1]))).astype(np.float32)
  y, weights = rows.y.astype(np.float32), rows.weights.astype(np.float32)
  with clock.measure("decode"):
    ids, mantissas = _propose(
      model, np.column_stack([x, y]), weights > 0, key, num_samples, top_k, is_allowed)
    values = np.asarray(interpreter.constant_values(ids, mantissas, model.vocab))
    ids = np.asarray(ids)
  valid = _valid(ids, values, model.vocab, is_allowed)
  distinct = _distinct(ids, values, valid)
  counts = Counts(num_samples, len(valid), len({ids[k].tobytes() for k in valid}), len(distinct))
  ids, values = ids[distinct], values[distinct]
  if not distinct:
    return Samples(ids, values, np.zeros(0), model.vocab), counts
  with clock.measure("refine"):
    # A power of two lanes, so that few shapes compile. A padding lane holds the program `0`: one step.
    extra = max(MIN_CANDIDATES, 1 << (len(distinct) - 1).bit_length()) - len(distinct)
    lane_ids = np.pad(ids, ((0, extra), (0, 0))).astype(np.int32)
    lane_ids[len(distinct) :, 0] = model.vocab.zero_id
    fitted, fit = solve.fit_candidates(lane_ids, np.pad(values, ((0, extra), (0, 0))), x, y, weights,
                                       vocab=model.vocab, method=refine)
    fitted, loss = np.asarray(fitted)[: len(distinct)], np.asarray(fit.loss)[: len(distinct)]
  return Samples(ids, fitted, loss, model.vocab), counts


def _propose(model, points, is_valid, key, num_samples, top_k, rule: Rule):
  """Candidates of the model: `(ids [K, L], mantissas [K, L])`; points [N, D+1], is_valid [N]."""
  if hasattr(model, "propose"):
    return model.propose(points, is_valid, key, num_samples=num_samples, top_k=top_k)
  # Imported late: stand-ins for a model need no network.
  from symformer_jax.decoding import grammar, sampling

  return sampling.sample_candidates(
    model, points, is_valid, key, num_samples=num_samples, strategy=sampling.TopK(top_k),
    is_permitted=grammar.permitted_tokens(model.vocab, num_columns=rule.num_columns, tokens=rule.tokens))


def _valid(ids: np.ndarray, values: np.ndarray, vocab, is_allowed) -> list[int]:
  """Candidates [K] that are whole formulas within the user's rules."""
  verdicts: dict[bytes, bool] = {}
  for k in range(len(ids)):
    text = ids[k].tobytes()
    if text not in verdicts:
      try:
        verdicts[text] = is_allowed(expression.decode(ids[k], values[k], vocab))
      except ExpressionError:
        verdicts[text] = False
  return [k for k in range(len(ids)) if verdicts[ids[k].tobytes()]]


def _distinct(ids: np.ndarray, values: np.ndarray, valid: Sequence[int]) -> list[int]:
  """Of each token string the first few with different constants."""
  seen: dict[bytes, list[bytes]] = {}
  kept = []
  for k in valid:
    starts = seen.setdefault(ids[k].tobytes(), [])
    start = values[k].tobytes()
    if len(starts) < STARTS_PER_STRING and start not in starts:
      starts.append(start)
      kept.append(k)
  return kept


def _length(ids: np.ndarray) -> int:
  """Tokens before the padding."""
  return int(np.sum(np.cumsum(ids == 0) == 0))


def _survivors(loss: np.ndarray, lengths: Sequence[int]) -> list[int]:
  """The best lanes, and the best few of every length; none without a finite loss."""
  order = [int(i) for i in np.argsort(loss) if math.isfinite(loss[i])]
  kept = dict.fromkeys(order[:NUM_BEST])
  by_length: dict[int, int] = {}
  for lane in order:
    by_length[lengths[lane]] = by_length.get(lengths[lane], 0) + 1
    if by_length[lengths[lane]] <= NUM_PER_COMPLEXITY:
      kept[lane] = None
  return list(kept)


def _shortlist(candidates: Sequence[_Candidate]) -> list[_Candidate]:
  """The best candidates of all scalings, few of each skeleton, the best and the best per complexity first."""
  per_skeleton: dict[tuple, int] = {}
  unique = []
  for candidate in sorted(candidates, key=lambda c: c.mse):
    form = programs.skeleton(candidate.node)
    per_skeleton[form] = per_skeleton.get(form, 0) + 1
    if per_skeleton[form] <= FITS_PER_SKELETON and programs.size(candidate.node) <= finalists_lib.MAX_TOKENS:
      unique.append(candidate)
  sizes = [expression.complexity(c.node) for c in unique]
  return [unique[i] for i in _survivors(np.array([c.mse for c in unique]), sizes)]


class Clock:
  """Wall-clock time by part, and what of it went into compiling."""

  _compile_s = 0.0
  _is_listening = False

  def __init__(self):
    self._listen()
    self.start, self.compiled_before = time.perf_counter(), Clock._compile_s
    self.parts: dict[str, float] = {}

  @classmethod
  def _listen(cls) -> None:
    if not cls._is_listening:
      jax.monitoring.register_event_duration_secs_listener(cls._on_event)
      cls._is_listening = True

  @classmethod
  def _on_event(cls, event: str, duration_s: float, **_: Any) -> None:
    if event.startswith("/jax/core/compile/"):
      cls._compile_s += duration_s

  def elapsed(self) -> float:
    return time.perf_counter() - self.start

  def measure(self, part: str) -> "_Part":
    return _Part(self, part)

  def seconds(self) -> Seconds:
    total, compiled = self.elapsed(), Clock._compile_s - self.compiled_before
    return Seconds(compile=compiled, decode=self.parts.get("decode", 0.0), refine=self.parts.get("refine", 0.0),
                   search=max(total - compiled, 0.0), total=total)


class _Part:
  """Adds the time of a `with` block to one part of a clock."""

  def __init__(self, clock: Clock, name: str):
    self.clock, self.name = clock, name

  def __enter__(self) -> None:
    self.start = time.perf_counter()

  def __exit__(self, *_: object) -> None:
    self.clock.parts[self.name] = self.clock.parts.get(self.name, 0.0) + time.perf_counter() - self.start
