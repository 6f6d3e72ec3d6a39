"""One data set on its way: what the model is shown of it, the best of what is found, round by round, and the front."""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any

import jax
import numpy as np

from symformer_jax import compilation, proposals, results
from symformer_jax.clock import Clock
from symformer_jax.decoding.rules import Restrictions, Rule
from symformer_jax.errors import InputError
from symformer_jax.language import expression, printing
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import Node
from symformer_jax.proposals import Samples, View
from symformer_jax.results import Counts, Round, SearchResult
from symformer_jax.selection import atoms, bags, finalists, programs, recombine, rescale, scoring
from symformer_jax.selection.rows import Rows, check_dataset, refuse_variables
from symformer_jax.selection.tidy import tidy

# The rows shown to the model and used to fit constants are padded to one of these shapes.
POINT_BUCKETS = (64, 128, finalists.FIT_ROWS)
# Candidates that go on to the fit in the user's units: the best, and the best few of every complexity.
NUM_BEST, NUM_PER_COMPLEXITY = 64, 3
# Candidates whose parts are put together anew: the best of all rounds and views.
NUM_DONORS = 512
# Sums of atoms that are fitted before their parts are put together again, and the steps each gets: enough for a right
# one.
NUM_ATOM_SUMS, ATOM_STEPS = 3 * finalists.NUM_PROGRAMS, 40
# Fits of one skeleton that go on: from poor starts they end in different places, or have not ended yet.
FITS_PER_SKELETON = 4
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


class DatasetSearch:
  """One data set on its way: what its rounds have found so far."""

  def __init__(self, model: Any, dataset: Any, names: Sequence[str] | None, options: Options, key: jax.Array):
    self.rows = check_dataset(dataset)
    num_columns = self.rows.x.shape[1]
    is_known = num_columns <= model.vocab.num_variables
    if not (is_known or options.recombine and num_columns >= atoms.MANY_VARIABLES):
      refuse_variables(num_columns, model)
    self.names = tuple(names) if names is not None else tuple(f"x{d}" for d in range(num_columns))
    self.rule = options.restrictions.for_columns(self.names)
    self.model_name, self.method = model.name, options.refine
    self.num_variables = max(model.vocab.num_variables, num_columns)
    _refuse_the_impossible(self.rule, model if is_known else None)
    self.fit_rows = self.rows.sample(finalists.FIT_ROWS, seed=options.seed)
    self.variance = scoring.weighted_variance(self.fit_rows.y, self.fit_rows.weights)
    self.num_rows = compilation.bucket(len(self.fit_rows), POINT_BUCKETS)
    self.scalings, self.views = self._make_views(options.seed, key) if is_known else ([], [])
    self.candidates: list[_Candidate] = []
    self.donors: list[_Candidate] = []
    self.counts = Counts()
    self.rounds: list[Round] = []
    self.ended_by = "" if is_known else results.NO_MODEL

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
    near = recombine.combine_with_atoms(
      [donor.node for donor in self.donors], self.fit_rows, columns=columns,
      allows=None if is_open else self.rule.allows_operator)
    fitted = self._fitted([node for node, _ in near if self.rule(node)][:NUM_ATOM_SUMS])
    self.donors = sorted([*self.donors, *fitted], key=lambda c: c.mse)
    made = recombine.recombine([donor.node for donor in self.donors], self.fit_rows, columns=columns)
    self.candidates += [c for c in (*fitted, *(_Candidate(*each) for each in made)) if self.rule(c.node)]

  def _fitted(self, nodes: Sequence[Node]) -> list[_Candidate]:
    at_once = finalists.NUM_PROGRAMS
    polished = [node for begin in range(0, len(nodes), at_once)
                for node in self.polish(nodes[begin : begin + at_once], max_steps=ATOM_STEPS)]
    return [_Candidate(*each) for each in recombine.scored(polished, self.fit_rows)]

  def polish(self, nodes: Sequence[Node], *, max_steps: int) -> list[Node]:
    """The trees with constants fitted in the user's units."""
    return finalists.polish(
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

  def finish(self, options: Options, clock: Clock) -> SearchResult:
    """Reduces what the rounds have found to the front."""
    if options.recombine:
      with clock.measure("recombine"):
        self.recombine()
    with clock.measure("refine"):
      nodes = [c.node for c in _shortlist(self.candidates, exact=EXACT * self.variance)]
      polished = self.polish(nodes[: finalists.NUM_PROGRAMS], max_steps=finalists.POLISH_STEPS)
    with clock.measure("deduplicate"):
      forms = [form for node in polished for form in (node, canonicalize(node)) if form is node or self.rule(form)]
      polished = _different_values(forms, self.fit_rows, math.sqrt(self.variance))
    fits = [n for n in finalists.closed_form_fits(self.rows) if self.rule(n)]
    if not polished and not fits:
      return results.failed("no candidate fits, and no closed form keeps the rules", model=self.model_name,
                            seed=options.seed)
    with clock.measure("select"):
      best, front = finalists.select(
        polished, self.rows, self.names, seed=options.seed, yardsticks=fits, is_allowed=self.rule,
        may_fit=options.refine != "none")
    messages = []
    if self.ended_by == results.NO_MODEL:
      messages.append("more variables than the model knows: searched without it")
    if not polished:
      messages.append("no candidate fits; the front holds the closed-form fits alone")
    return SearchResult(
      results.OK, "; ".join(messages), best, front, self.counts, clock.seconds(), options.seed, len(self.rows),
      self.model_name, tuple(self.rounds), self.ended_by)


def _refuse_the_impossible(rule: Rule, model: Any | None) -> None:
  """For a model's formulas, or for any where it knows too few variables."""
  # Imported late: stand-ins for a model need no network.
  from symformer_jax.decoding import grammar

  length = model.config.decoder.max_length - 1 if hasattr(model, "config") else finalists.MAX_TOKENS
  vocab = programs.base_vocabulary(rule.num_columns) if model is None else model.vocab
  if not grammar.is_satisfiable(grammar.make_grammar(rule, vocab), length, vocab=vocab):
    raise InputError(f"the rules allow nothing: no formula of at most {length} tokens keeps them all")


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
    if per_skeleton[form] <= FITS_PER_SKELETON and programs.size(candidate.node) <= finalists.MAX_TOKENS:
      unique.append(candidate)
  sizes = [expression.complexity(c.node) for c in unique]
  in_order = sorted(range(len(unique)), key=lambda i: (max(unique[i].mse, exact), sizes[i]))
  unique, sizes = [unique[i] for i in in_order], [sizes[i] for i in in_order]
  return [unique[i] for i in _survivors(np.maximum([c.mse for c in unique], exact), sizes)]
