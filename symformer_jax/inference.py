"""From points to a ranked front of formulas: sample, keep what differs, fit, bring back to the user's units, select.

`search` is the whole path for any number of data sets; `infer.py` and `estimator.py` are thin layers over it.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import math
from typing import Any

import jax
import numpy as np

from symformer_jax import compilation, proposals, results
from symformer_jax.clock import Clock
from symformer_jax.decoding.rules import Restrictions, Rule
from symformer_jax.decoding.strategies import COMPETING, STRATEGIES
from symformer_jax.errors import InputError
from symformer_jax.language import expression, printing
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import Node
from symformer_jax.proposals import Samples, View
from symformer_jax.refinement import solve
from symformer_jax.results import Counts, Round, SearchResult
from symformer_jax.selection import (
  bags,
  finalists as finalists_lib,
  programs,
  recombine as recombine_lib,
  rescale,
  scoring,
)
from symformer_jax.selection.finalists import Rows
from symformer_jax.selection.tidy import tidy

MIN_POINTS = 5
# The rows shown to the model and used to fit constants are padded to one of these shapes.
POINT_BUCKETS = (64, 128, finalists_lib.FIT_ROWS)
# Candidates that go on to the fit in the user's units: the best, and the best few of every complexity.
NUM_BEST, NUM_PER_COMPLEXITY = 64, 3
# Candidates whose parts are put together anew: the best of all rounds and views.
NUM_DONORS = 512
# Sums of atoms that are fitted before their parts are put together again, and the steps each gets: enough for a right
# one.
NUM_ATOM_SUMS, ATOM_STEPS = 3 * finalists_lib.NUM_PROGRAMS, 40
# Fits of one skeleton that go on: from poor starts they end in different places, or have not ended yet.
FITS_PER_SKELETON = 4
# Samples of the first round: soon done, and enough for easy data. The second fills up the third number, of which each
# further round is one.
ROUND_SAMPLES, LATER_SAMPLES = 256, 1024
# Candidates whose error is a smaller share of y's variance differ in what single precision left of their constants.
EXACT = 1e-11
# Finalists whose values agree to this share of y's spread are one formula, the simplest stands for it.
EQUAL_VALUES = 1e-9


@dataclasses.dataclass(frozen=True)
class Options:
  """What to do; see `search`."""

  n_samples: int
  strategy: str
  top_k: int
  temperature: float
  refine: str
  max_time: float | None
  accuracy: float | None
  seed: int
  restrictions: Restrictions
  recombine: bool


@dataclasses.dataclass(frozen=True)
class _Candidate:
  """A fitted formula in the user's units; `mse` is that of the search, in squared units of y."""

  node: Node
  mse: float


def search(
  model: Any, datasets: Sequence[Any], *, n_samples: int = 1024, strategy: str = "top_k", top_k: int = 20,
  temperature: float = 1.0, refine: str = "lm", operators: Sequence[str] | None = None,
  restrictions: Restrictions | None = None, max_time: float | None = None, accuracy: float | None = None, seed: int = 0,
  recombine: bool = True, key: jax.Array | None = None, names: Sequence[Sequence[str]] | None = None,
  on_round: Callable[[int, Round], None] = lambda index, found: None,
  should_stop: Callable[[], bool] = lambda: False,
) -> list[SearchResult]:
  """Finds formulas for data sets.

  Samples are drawn and fitted in rounds of 256, 768 and then 1024. Ctrl-C ends the rounds and gives the best so far.
  Args:
    model: a loaded model (`load_model`), or anything with `name`, `vocab` and `propose`.
    datasets: each points [N, D+1] with y in the last column, or `(X [N, D], y [N])` or `(X, y, weights [N])`.
    n_samples: candidates drawn for each data set.
    strategy: how: `top_k`, `temperature` (all tokens), `nucleus`, `greedy`, `beam` or `distinct` (samples without
      replacement); the last two draw all candidates in one round, since they compete.
    top_k: tokens among which each step of sampling chooses, with the strategy of that name.
    temperature: divides the logits: below 1 candidates are likelier, above 1 more varied.
    refine: how constants are fitted: `lm`, `bfgs`, `gd` or `none`.
    operators: names of the operators a formula may use; None for all.
    restrictions: further rules, and the place for `operators` where there are some.
    max_time: seconds after which no further round of samples is begun for a data set; None for no limit.
    accuracy: R2 at which no further round is begun; None for all rounds.
    seed: fixes every random choice. The answer for a data set does not depend on the others.
    recombine: whether formulas made of parts of the candidates and of atoms compete as well (`selection.recombine`),
      once the rounds are over, whatever `max_time`; not without refinement.
    key: a JAX key to use in place of the seed's; consumed.
    names: column names of each data set; x0, x1, ... by default.
    on_round: called after each round with the data set's index and how far it is.
    should_stop: asked after each round; True ends the rounds of all data sets.
  Returns:
    One result for each data set, in their order. A data set that cannot be used has status `failed`.
  Raises:
    InputError: for arguments that are wrong for every data set.
  """
  restrictions = restrictions or Restrictions()
  if operators is not None:
    restrictions = dataclasses.replace(restrictions, operators=tuple(operators))
  options = _check_options(
    n_samples, strategy, top_k, temperature, refine, restrictions, max_time, accuracy, seed, recombine)
  if names is not None and len(names) != len(datasets):
    raise InputError(f"names: expected column names for {len(datasets)} data sets, got {len(names)}")
  key = jax.random.key(seed) if key is None else key
  found: list[SearchResult] = []
  at_once = compilation.dataset_buckets()[-1]
  for begin in range(0, len(datasets), at_once):
    some = range(begin, min(begin + at_once, len(datasets)))
    if any(result.ended_by == results.STOPPED for result in found):
      found += [results.failed("stopped before it was searched", model=model.name, seed=seed) for _ in some]
    else:
      columns = [names[i] if names is not None else None for i in some]
      found += _search_together(
        model, [datasets[i] for i in some], columns, options, key,
        lambda i, round_, begin=begin: on_round(begin + i, round_), should_stop)
  return found


def warmup(model: Any, *, num_points: int = 100, n_samples: int = 1024, refine: str = "lm") -> float:
  """Compiles what `search` needs for so many points and samples, by a search; the seconds it took.

  Programs stay in the process, and on disk where a compilation cache is set (commands do: `compilation.use_cache`).
  """
  clock = Clock()
  x = np.linspace(0.5, 4.5, num_points)
  columns = [x] + [np.full_like(x, 1.5)] * (model.vocab.num_variables - 1)
  y = np.sin(2 * x) + np.exp(-x) + 0.3 * np.cos(40 * x)  # no formula of few tokens: no part of the path is left out
  search(model, [(np.stack(columns, axis=1), y)], n_samples=n_samples, refine=refine)
  return clock.elapsed()


@functools.lru_cache(maxsize=4)
def resolve_model(name: str, *, num_variables: int) -> Any:
  """The model a user names, loaded once: `auto` is the shipped one for so many variables.

  Raises:
    ModelError: for an unknown, damaged or foreign model.
  """
  # Imported late: stand-ins for a model need neither weights nor a network.
  from symformer_jax.pretrained import registry

  return registry.load_model(name, num_variables=num_variables)


def _check_options(
  n_samples, strategy, top_k, temperature, refine, restrictions, max_time, accuracy, seed, recombine
) -> Options:
  for name, value in (("n_samples", n_samples), ("top_k", top_k)):
    if not isinstance(value, int | np.integer) or value < 1:
      raise InputError(f"{name}: expected a whole number of at least 1, got {value!r}")
  if strategy not in STRATEGIES:
    raise InputError(f"strategy: unknown strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
  if not temperature > 0:
    raise InputError(f"temperature: expected a number above 0, got {temperature!r}")
  if refine not in solve.MAX_STEPS:
    raise InputError(f"refine: unknown method {refine!r}, expected one of {', '.join(solve.MAX_STEPS)}")
  if max_time is not None and not max_time > 0:
    raise InputError(f"max_time: expected a number of seconds above 0, got {max_time!r}")
  if accuracy is not None and not 0 < accuracy <= 1:
    raise InputError(f"accuracy: expected an R2 above 0 and up to 1, got {accuracy!r}")
  if not isinstance(recombine, bool | np.bool_):
    raise InputError(f"recombine: expected True or False, got {recombine!r}")
  restrictions.check()
  return Options(
    int(n_samples), strategy, int(top_k), float(temperature), refine, max_time, accuracy, seed, restrictions,
    bool(recombine) and refine != "none")


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


# --- rounds ----------------------------------------------------------------------------------------------------


class _Search:
  """One data set on its way: what its rounds have found so far."""

  def __init__(self, model: Any, dataset: Any, names: Sequence[str] | None, options: Options, key: jax.Array):
    self.rows = check_dataset(dataset, model)
    self.names = tuple(names) if names is not None else tuple(f"x{d}" for d in range(self.rows.x.shape[1]))
    self.rule = options.restrictions.for_columns(self.names)
    self.method, self.num_variables = options.refine, model.vocab.num_variables
    _refuse_the_impossible(self.rule, model)
    self.fit_rows = self.rows.sample(finalists_lib.FIT_ROWS, seed=options.seed)
    self.variance = scoring.weighted_variance(self.fit_rows.y, self.fit_rows.weights)
    self.num_rows = compilation.bucket(len(self.fit_rows), POINT_BUCKETS)
    self.scalings, self.views = self._make_views(options.seed, key)
    self.candidates: list[_Candidate] = []
    self.donors: list[_Candidate] = []
    self.counts = Counts()
    self.rounds: list[Round] = []
    self.ended_by = ""

  def _make_views(self, seed: int, key: jax.Array) -> tuple[list[rescale.Scaling], list[View]]:
    """Every bag of rows in every scaling; each view samples with a key of its own."""
    scalings, views = [], []
    proposed = rescale.propose_scalings(self.fit_rows.x, self.fit_rows.y)
    proposed = [s for s in proposed if not s.is_moved or self.rule.allows_operator("+")]
    for bag in bags.draw_bags(self.rows, self.fit_rows, seed=seed):
      for scaling in proposed:
        shown, fitted = (Rows(*scaling.apply(r.x, r.y), r.weights).padded(self.num_rows) for r in (bag, self.fit_rows))
        views.append(View(shown, fitted, jax.random.fold_in(key, len(views)), self.rule))
        scalings.append(scaling)
    return scalings, views

  def add(self, index: int, samples: Samples, counts: Counts) -> None:
    """Takes the best of what one view has found."""
    scaling = self.scalings[index]
    for lane in _survivors(samples.loss, [proposals.token_count(ids) for ids in samples.ids]):
      node = scaling.restore(samples.node(lane))
      mse = float(samples.loss[lane]) * scaling.y_factor**2
      # Multiplied out, like terms join; as it was found, a formula may be shorter.
      forms = dict.fromkeys([tidy(node), canonicalize(node)])
      self.candidates += [_Candidate(form, mse) for form in forms if self.rule(form)]
    self.counts = Counts(*(a + b for a, b in zip(dataclasses.astuple(self.counts), dataclasses.astuple(counts),
                                                 strict=True)))

  def add_donors(self, index: int, samples: Samples) -> None:
    """Takes more of what one view has found, for its parts."""
    scaling = self.scalings[index]
    order = np.argsort(samples.loss)[: NUM_DONORS // len(self.views)]
    self.donors += [
      _Candidate(tidy(scaling.restore(samples.node(lane))), float(samples.loss[lane]) * scaling.y_factor**2)
      for lane in order if math.isfinite(samples.loss[lane])]
    self.donors = sorted(self.donors, key=lambda c: c.mse)[:NUM_DONORS]

  def recombine(self) -> None:
    """Adds formulas made of parts of the donors to the candidates."""
    columns = sorted(set(range(self.rows.x.shape[1])) - self.rule.excluded)
    is_open = self.rule.tokens is None and self.rule.max_exponent is None
    near = recombine_lib.combine_with_atoms(
      [donor.node for donor in self.donors], self.fit_rows, columns=columns,
      allows=None if is_open else self.rule.allows_operator)
    fitted = self._fitted([node for node, _ in near if self.rule(node)][:NUM_ATOM_SUMS])
    self.donors = sorted([*self.donors, *fitted], key=lambda c: c.mse)
    made = recombine_lib.recombine([donor.node for donor in self.donors], self.fit_rows, columns=columns)
    self.candidates += [c for c in (*fitted, *(_Candidate(*each) for each in made)) if self.rule(c.node)]

  def _fitted(self, nodes: Sequence[Node]) -> list[_Candidate]:
    at_once = finalists_lib.NUM_PROGRAMS
    polished = [node for begin in range(0, len(nodes), at_once)
                for node in self.polish(nodes[begin : begin + at_once], max_steps=ATOM_STEPS)]
    return [_Candidate(*each) for each in recombine_lib.scored(polished, self.fit_rows)]

  def polish(self, nodes: Sequence[Node], *, max_steps: int) -> list[Node]:
    """The trees with constants fitted in the user's units."""
    return finalists_lib.polish(
      nodes, self.fit_rows, num_rows=self.num_rows, num_variables=self.num_variables, method=self.method,
      max_steps=max_steps)

  def close_round(self, options: Options, seconds: float) -> Round:
    """Notes where the search stands, and whether it is to go on."""
    best = min(self.candidates, key=lambda c: c.mse, default=None)
    r2 = None if best is None else 1 - best.mse / self.variance
    text = "" if best is None else printing.to_text(best.node, self.names)
    self.rounds.append(Round(self.counts.sampled, text, r2, round(seconds, 4)))
    if options.accuracy is not None and r2 is not None and r2 >= options.accuracy:
      self.ended_by = results.ACCURACY
    elif self.counts.sampled >= options.n_samples:
      self.ended_by = results.BUDGET
    elif options.max_time is not None and seconds > options.max_time:
      self.ended_by = results.TIME
    return self.rounds[-1]


def _refuse_the_impossible(rule: Rule, model: Any) -> None:
  # Imported late: stand-ins for a model need no network.
  from symformer_jax.decoding import grammar

  length = model.config.decoder.max_length - 1 if hasattr(model, "config") else finalists_lib.MAX_TOKENS
  if not grammar.is_satisfiable(grammar.make_grammar(rule, model.vocab), length, vocab=model.vocab):
    raise InputError(f"the rules allow nothing: no formula of at most {length} tokens keeps them all")


def _search_together(model, datasets, names, options: Options, key, on_round, should_stop) -> list[SearchResult]:
  """Searches data sets in common rounds; each gets the time that all took."""
  clock = Clock()
  found: dict[int, SearchResult] = {}
  searches: dict[int, _Search] = {}
  for i, dataset in enumerate(datasets):
    try:
      searches[i] = _Search(model, dataset, names[i], options, key)
    except InputError as error:
      found[i] = results.failed(str(error), model=model.name, seed=options.seed)
  _explore(model, searches, options, clock, on_round, should_stop)
  for i, search_ in searches.items():
    found[i] = _finish(model, search_, options, clock)
  return [found[i] for i in range(len(datasets))]


def _round_sizes(options: Options) -> Iterator[int]:
  """Samples of each round; they depend on the budget only in the last."""
  if options.strategy in COMPETING:
    yield options.n_samples
    return
  drawn = 0
  while drawn < options.n_samples:
    end = ROUND_SAMPLES if not drawn else (drawn // LATER_SAMPLES + 1) * LATER_SAMPLES
    yield min(end, options.n_samples) - drawn
    drawn = end


def _explore(model, searches: dict[int, _Search], options: Options, clock: Clock, on_round, should_stop) -> None:
  """Round after round for all data sets that are not done."""
  try:
    for size in _round_sizes(options):
      live = {i: s for i, s in searches.items() if not s.ended_by}
      # Data sets that share their shapes go through one call.
      groups: dict[tuple[int, int], list[_Search]] = {}
      for search_ in live.values():
        groups.setdefault((search_.num_rows, len(search_.views)), []).append(search_)
      for group in groups.values():
        _explore_group(model, group, size, options, clock)
      for i, search_ in live.items():
        on_round(i, search_.close_round(options, clock.elapsed()))
      if should_stop():
        break
  except KeyboardInterrupt:
    if not all(s.rounds for s in searches.values()):
      raise
  for search_ in searches.values():
    search_.ended_by = search_.ended_by or results.STOPPED


def _explore_group(model, group: list[_Search], size: int, options: Options, clock: Clock) -> None:
  """One round of data sets with equal numbers of rows and views."""
  num_views = len(group[0].views)
  share = -(-size // num_views)
  pairs = [(search_, v) for search_ in group for v in range(num_views)]
  at_once = compilation.dataset_buckets()[-1]
  for begin in range(0, len(pairs), at_once):
    some = pairs[begin : begin + at_once]
    found = proposals.sample_and_fit_all(
      model, [search_.views[v] for search_, v in some], num_samples=share, top_k=options.top_k, refine=options.refine,
      clock=clock, first_sample=group[0].counts.sampled // num_views, strategy=options.strategy,
      temperature=options.temperature)
    drawn = [(search_, v, *answer) for (search_, v), answer in zip(some, found, strict=True)]
    for search_, v, samples, counts in drawn:
      search_.add(v, samples, counts)
      if options.recombine:
        with clock.measure("recombine"):
          search_.add_donors(v, samples)


def _finish(model, search_: _Search, options: Options, clock: Clock) -> SearchResult:
  """Reduces what the rounds have found to the front."""
  rows, fit_rows, rule = search_.rows, search_.fit_rows, search_.rule
  if options.recombine:
    with clock.measure("recombine"):
      search_.recombine()
  with clock.measure("refine"):
    nodes = [c.node for c in _shortlist(search_.candidates, exact=EXACT * search_.variance)]
    polished = search_.polish(nodes[: finalists_lib.NUM_PROGRAMS], max_steps=finalists_lib.POLISH_STEPS)
  with clock.measure("deduplicate"):
    forms = [form for node in polished for form in (node, canonicalize(node)) if form is node or rule(form)]
    polished = _different_values(forms, fit_rows, math.sqrt(search_.variance))
  fits = [n for n in finalists_lib.closed_form_fits(fit_rows) if rule(n)]
  if not polished and not fits:
    return results.failed("no candidate fits, and no closed form keeps the rules", model=model.name,
                          seed=options.seed)
  with clock.measure("select"):
    best, front = finalists_lib.select(
      polished, rows, search_.names, seed=options.seed, yardsticks=fits, is_allowed=rule,
      may_fit=options.refine != "none")
  message = "" if polished else "no candidate fits; the front holds the closed-form fits alone"
  return SearchResult(
    results.OK, message, best, front, search_.counts, clock.seconds(), options.seed, len(rows), model.name,
    tuple(search_.rounds), search_.ended_by)


def _different_values(nodes: Sequence[Node], rows: Rows, spread: float) -> list[Node]:
  """Of formulas with the same values on the rows the simplest, in their order."""
  kept: dict[bytes | int, int] = {}
  for i in sorted(range(len(nodes)), key=lambda i: expression.complexity(nodes[i])):
    values = scoring.evaluate(nodes[i], rows.x) / spread
    is_defined = np.isfinite(values).all()
    kept.setdefault((np.round(values / EQUAL_VALUES) + 0.0).tobytes() if is_defined else i, i)
  return [nodes[i] for i in sorted(kept.values())]


def _survivors(loss: np.ndarray, lengths: Sequence[int]) -> list[int]:
  """The best lanes, and the best few of every length; none without a finite loss."""
  order = [int(i) for i in np.argsort(loss, kind="stable") if math.isfinite(loss[i])]
  kept = dict.fromkeys(order[:NUM_BEST])
  by_length: dict[int, int] = {}
  for lane in order:
    by_length[lengths[lane]] = by_length.get(lengths[lane], 0) + 1
    if by_length[lengths[lane]] <= NUM_PER_COMPLEXITY:
      kept[lane] = None
  return list(kept)


def _shortlist(candidates: Sequence[_Candidate], *, exact: float) -> list[_Candidate]:
  """The best candidates of all scalings, few of each skeleton, the best and the best per complexity first.

  Below the error `exact` the simpler one is the better.
  """
  per_skeleton: dict[tuple, int] = {}
  unique = []
  for candidate in sorted(candidates, key=lambda c: c.mse):
    form = programs.skeleton(candidate.node)
    per_skeleton[form] = per_skeleton.get(form, 0) + 1
    if per_skeleton[form] <= FITS_PER_SKELETON and programs.size(candidate.node) <= finalists_lib.MAX_TOKENS:
      unique.append(candidate)
  sizes = [expression.complexity(c.node) for c in unique]
  in_order = sorted(range(len(unique)), key=lambda i: (max(unique[i].mse, exact), sizes[i]))
  unique, sizes = [unique[i] for i in in_order], [sizes[i] for i in in_order]
  return [unique[i] for i in _survivors(np.maximum([c.mse for c in unique], exact), sizes)]
