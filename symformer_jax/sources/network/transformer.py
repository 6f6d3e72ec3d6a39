"""The pre-trained network as a source: a data set is shown in several views, and each view draws its share of samples.

A view is some of the rows in some units: a network is trained on boxes, and sees no more than a few hundred rows. What
is drawn is fitted in the view's units, in single precision; the best comes back in the user's.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import math
from typing import Any

import jax
import numpy as np

from symformer_jax import compilation
from symformer_jax.decoding.strategies import COMPETING
from symformer_jax.engine import bags, rescale
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, survivors
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.results import Counts
from symformer_jax.sources.network import samples as samples_lib
from symformer_jax.sources.network.samples import Samples, View


@dataclasses.dataclass(frozen=True)
class Views:
  """The state: ways to show one data set, and how many samples have been drawn for it.

  Attributes:
    views: `(scaling, view)`, each with a key of its own.
  """

  views: tuple[tuple[rescale.Scaling, View], ...]
  num_drawn: int = 0


@dataclasses.dataclass(frozen=True)
class Transformer:
  """Samples of a network with fitted constants.

  Attributes:
    model: a loaded model, or anything with `name`, `vocab` and `propose`.
    options: how it draws and how constants are fitted.
  """

  model: Any
  options: SearchOptions
  name: str = "transformer"

  @property
  def turns(self) -> tuple[int, ...]:
    """Samples of each turn: a few, soon done; then blocks. Candidates that compete are drawn in one."""
    options, config = self.options, self.options.config.transformer
    if options.strategy in COMPETING:
      return (options.n_samples,)
    ends, drawn = [], 0
    while drawn < options.n_samples:
      drawn = config.round_samples if not drawn else (drawn // config.later_samples + 1) * config.later_samples
      ends.append(min(drawn, options.n_samples))
    return tuple(end - begin for begin, end in zip([0, *ends], ends, strict=False))

  def supports(self, task: Task) -> bool:
    """Whether the network knows so many columns, and its tokens make a formula that the rule allows."""
    return len(task.names) <= self.model.vocab.num_variables and self.can_keep(task.rule)

  def can_keep(self, rule: Rule) -> bool:
    """Whether some formula of the network's keeps the rule."""
    return samples_lib.is_satisfiable(rule, self.model)

  def init(self, task: Task, key: jax.Array) -> Views:
    config = self.options.config.scaling
    proposed = [scaling for scaling in rescale.propose_scalings(task.fit_rows.x, task.fit_rows.y, config=config)
                if not scaling.is_moved or task.rule.allows_operator("+")]
    drawn_bags = bags.draw_bags(task.rows, task.fit_rows, seed=self.options.seed, config=config)
    pairs = [(bag, scaling) for bag in drawn_bags for scaling in proposed]
    return Views(tuple(
      (scaling, self._view(task, bag, scaling, jax.random.fold_in(key, i))) for i, (bag, scaling) in enumerate(pairs)))

  def _view(self, task: Task, bag: Rows, scaling: rescale.Scaling, key: jax.Array) -> View:
    shown, fitted = (Rows(*scaling.apply(rows.x, rows.y), rows.weights).padded(task.num_rows)
                     for rows in (bag, task.fit_rows))
    # Scaled columns have no units: dimensions are asked of what comes back in the user's.
    return View(shown, fitted, key, dataclasses.replace(task.rule, dimensions=None))

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    """The best of `num` samples for each data set, in the user's units; those that share their shapes in one call."""
    groups: dict[tuple[int, int], list[int]] = {}
    for place, question in enumerate(questions):
      groups.setdefault((question.task.num_rows, len(question.state.views)), []).append(place)
    found: dict[int, Proposal] = {}
    for places in groups.values():
      found |= zip(places, self._propose_alike([questions[place] for place in places], num, clock), strict=True)
    return [found[place] for place in range(len(questions))]

  def _propose_alike(self, questions: list[Question], num: int, clock: Clock) -> Iterator[Proposal]:
    """For data sets with equal numbers of rows and views."""
    options, num_views = self.options, len(questions[0].state.views)
    pairs = [(place, v) for place in range(len(questions)) for v in range(num_views)]
    drawn: dict[int, list[tuple[rescale.Scaling, Samples, Counts]]] = {}
    at_once = compilation.dataset_buckets()[-1]
    for begin in range(0, len(pairs), at_once):
      some = [(place, *questions[place].state.views[v]) for place, v in pairs[begin : begin + at_once]]
      found = samples_lib.sample_and_fit_all(
        self.model, [view for _, _, view in some], num_samples=-(-num // num_views), top_k=options.top_k,
        refine=options.refine, clock=clock, first_sample=questions[0].state.num_drawn // num_views,
        strategy=options.strategy, temperature=options.temperature, config=options.config.transformer)
      for (place, scaling, _), (samples, counts) in zip(some, found, strict=True):
        drawn.setdefault(place, []).append((scaling, samples, counts))
    for place, question in enumerate(questions):
      counts = sum((counts for _, _, counts in drawn[place]), Counts())
      state = dataclasses.replace(question.state, num_drawn=question.state.num_drawn + counts.sampled)
      with clock.measure("deduplicate"):
        candidates = [c for scaling, samples, _ in drawn[place] for c in self._restored(scaling, samples, num_views)]
      yield Proposal(state, candidates=tuple(candidates), counts=counts)

  def _restored(self, scaling: rescale.Scaling, samples: Samples, num_views: int) -> Iterator[Candidate]:
    """The best in the user's units, the survivors multiplied out as well: then like terms join, though as it was found
    a formula may be shorter. The others serve for their parts."""
    config, num_donors = self.options.config.transformer, self.options.config.pool.num_donors
    lengths = [samples_lib.token_count(ids) for ids in samples.ids]
    chosen = set(survivors(
      samples.loss, lengths, num_best=config.num_best, num_per_length=config.num_per_length))
    others = [int(lane) for lane in np.argsort(samples.loss, kind="stable")[: num_donors // num_views]]
    for lane in dict.fromkeys([*sorted(chosen), *others]):
      mse = float(samples.loss[lane]) * scaling.y_factor**2
      if math.isfinite(mse):
        node = scaling.restore(samples.node(lane))
        yield Candidate(tidy(node), mse, self.name)
        if lane in chosen:
          yield Candidate(canonicalize(node), mse, self.name)
