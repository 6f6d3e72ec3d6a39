"""The loop of a search: every turn one source is asked, its formulas are fitted, and the pool keeps the best.

Anytime: after each turn there is a best formula, and nothing but the turn in progress is lost by stopping. How many
turns there are, and how much is asked in each, does not depend on the clock; the clock only ends them.
"""

import collections
from collections.abc import Callable, Generator, Iterator, Sequence
import contextlib
import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from symformer_jax import results
from symformer_jax.engine import faults, interruption, learning_curves, refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import BudgetConfig, NoiseConfig, PoolConfig
from symformer_jax.engine.digits import rounding_variance
from symformer_jax.engine.noise import NoiseWatch
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool, survivors
from symformer_jax.engine.source import Proposal, Question, Source
from symformer_jax.engine.task import Task
from symformer_jax.errors import SymFormerError
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node
from symformer_jax.refinement import solve
from symformer_jax.results import Counts, Progress

# Sources whose turns are taken whatever the time: the yardsticks, two waves a column among them, and what the user has
# given; fits of few formulas.
CLOSED_FORMS = "closed_forms"
ALWAYS_ASKED = (CLOSED_FORMS, "guesses")
# The source of smaller tables, of a single column among them.
REDUCTIONS = "reductions"


class Turn(NamedTuple):
  """One turn: `number` counts those of the source, `num` is how much is asked of it; whether it is one of the cycle."""

  source: Source
  number: int
  num: int
  is_again: bool = False


def schedule(sources: Sequence[Source], options: SearchOptions, *, is_of_one: bool = False) -> Iterator[Turn]:
  """All turns in their order: `first_turns`; then those of `BudgetConfig.cycle`, round and round, as often as the
  effort says; with `max_time` without an end.
  """
  budget, by_name = options.config.budget, {source.name: source for source in sources}
  yield from first_turns(sources, budget, is_of_one=is_of_one)
  if by_name.keys().isdisjoint(budget.finders):
    return
  most = None if options.max_time is not None else budget.turns(options.effort)
  numbers = itertools.count()
  for name in itertools.islice(itertools.cycle(budget.cycle), most):
    if name in by_name and by_name[name].turns:
      yield from (turn._replace(is_again=True) for turn in _turns(by_name[name]))
    elif name in by_name:
      yield Turn(by_name[name], next(numbers), 1, is_again=True)


def first_turns(sources: Sequence[Source], budget: BudgetConfig, *, is_of_one: bool) -> Iterator[Turn]:
  """Each source's own: source after source, the cheap ones first, as the registry has them, but those that
  `BudgetConfig.early` names, and, of tables of one column, those of `BudgetConfig.first_of_one`.
  """
  names = {source.name for source in sources}
  early = [(first, turns, after) for first, turns, after in budget.early if {first, after} <= names]
  first_of_one = [(name, turns) for name, turns in budget.first_of_one if is_of_one and name in names]
  waiting = {source.name: iter(_turns(source)) for source in sources}
  for name in ALWAYS_ASKED if first_of_one else ():
    yield from waiting.get(name, ())
  for name, turns in first_of_one:
    yield from itertools.islice(waiting[name], turns)
  for source in sources:
    yield from waiting[source.name]
    for first, turns, after in early:
      if after == source.name:
        yield from itertools.islice(waiting[first], turns)


def _turns(source: Source) -> list[Turn]:
  return [Turn(source, number, num) for number, num in enumerate(source.turns)]


def _as_written(task: Task, config: PoolConfig) -> PoolConfig:
  """The same for numbers of few digits: they are met where nothing is left but that."""
  left = config.roundings * rounding_variance(task.fit_rows.y) / task.variance if task.variance else 0.0
  return dataclasses.replace(config, met=left) if config.met < left <= config.most_met else config


class Search:
  """One data set on its way.

  Attributes:
    task; sources: those that can make candidates for it.
    pool: what has been found; progress: a line for each turn; counts: what was drawn.
    has_found: whether there is more than yardsticks to answer with, of the sources that are waited for.
    ended_by: why no further turn is begun, one of the words of `results`; empty before.
  """

  def __init__(self, task: Task, sources: Sequence[Source], options: SearchOptions, key: jax.Array):
    self.task, self.sources, self._options = task, tuple(sources), options
    self.pool = Pool(task.variance, len(task.fit_rows), _as_written(task, options.config.pool))
    self.counts = Counts()
    self.progress: list[Progress] = []
    self.ended_by = ""
    self.has_found = False
    self.states: dict[str, Any] = {source.name: source.init(task, key) for source in self.sources}
    self._exact: Candidate | None = None
    self._fitted_further: set[Node] = set()
    # Who asked for more is given it; tables within a turn are searched without an end of their own.
    is_watched = options.effort in options.config.noise.efforts and options.max_time != math.inf
    self._noise = NoiseWatch(task, options.config.noise) if is_watched else None
    self._ends_at_noise = options.max_time is None
    self._begun: set[tuple[str, int]] = set()
    self._asked_to_hurry = 0

  @property
  def is_of_one(self) -> bool:
    """Whether formulas are made of a single column."""
    return len(self.task.fit_rows.varying(self.task.columns)) == 1

  def question(self, source: Source) -> Question:
    has_errors = self.__dict__.get("_has_errors", False)  # as far as anybody has looked
    return Question(self.task, self.pool, self.states[source.name], has_errors)

  def takes_part(self, source: Source) -> bool:
    """Whether the source is to be asked for this data set now: where a long formula meets the data, none but those that
    would find a simpler one, till they have been.
    """
    if self.ended_by or source.name not in self.states:
      return False
    asked = self._options.config.pool.asked_if_long
    return (not self._is_long(self._exact) or _have_taken(self, asked)
            or not _have_taken(self, [(name, turns) for name, turns in asked if name == source.name]))

  def begins(self, turn: Turn) -> bool:
    """Whether the search takes the turn that it is offered: each once, but those of the cycle."""
    key = turn.source.name, turn.number
    is_taken = (turn.is_again or key not in self._begun) and self.takes_part(turn.source)
    if is_taken:
      self._begun.add(key)
    return is_taken

  def close_turn(self, source: Source, proposal: Proposal, fitted: Sequence[Candidate], seconds: float) -> Progress:
    """Takes what a turn has made, and decides whether the search is to go on."""
    candidates = [*proposal.candidates, *fitted]
    has_gained = self.pool.insert(c for c in candidates if self.task.rule(c.node))
    if proposal.is_last:
      del self.states[source.name]
    else:
      self.states[source.name] = proposal.state
    self.counts = self.counts + proposal.counts
    best = self.pool.best
    r2 = None if best is None else self.task.r2(best.mse)  # of rows that differ: see `make_task`
    self.progress.append(Progress(
      self.counts.sampled, "" if best is None else self.task.text(best.node), r2, source.name, has_gained,
      seconds=round(seconds, 4)))
    has_more = bool(self.pool.sources() - {CLOSED_FORMS})
    self.has_found = has_more and _have_taken(self, self._options.config.budget.awaited)
    exact, has_stalled = self.pool.exact(), self._noise is not None and self._noise.has_stalled(self.pool)
    if self._options.accuracy is not None and r2 is not None and r2 >= self._options.accuracy:
      self.ended_by = results.ACCURACY
    elif (candidates or self._is_long(exact)) and self._is_met(exact):
      # A turn that made nothing is none that found nothing simpler, unless it was the last of those that would.
      self.ended_by = results.EXACT
    elif has_stalled and self._ends_at_noise and self._noise is not None and (
      self._is_clear(self._noise) or (bool(candidates) and self._is_at_noise(self._noise))):
      self.ended_by = results.NOISE
    self._exact = exact
    return self.progress[-1]

  def _is_met(self, exact: Candidate | None) -> bool:
    """Whether the data are met exactly, and a further turn has found nothing simpler; with a long formula, nor have the
    sources that would.
    """
    if exact is None or self._exact is None or _is_simpler(exact, self._exact):
      return False
    return not self._is_long(exact) or _have_taken(self, self._options.config.pool.asked_if_long)

  def _is_long(self, exact: Candidate | None) -> bool:
    return exact is not None and expression.complexity(exact.node) > self._options.config.pool.long

  def _is_clear(self, watch: NoiseWatch) -> bool:
    """Whether a formula that is short and explains nearly all of many rows leaves noise (`NoiseConfig.clear`)."""
    if not watch.may_be_clear or not _have_taken(self, self._options.config.noise.asked_if_clear):
      return False
    return watch.best_leaves_noise() or (
      self._fit_further(watch) and watch.may_be_clear and watch.best_leaves_noise())

  def _is_at_noise(self, watch: NoiseWatch) -> bool:
    """Whether the sources that come first have had their turns, and what has been found leaves noise."""
    config = self._options.config.noise
    if not _have_taken(self, _asked_before_noise(watch, config)):
      return False
    if watch.leaves_noise() or (self._fit_further(watch) and watch.leaves_noise()):
      return True
    # What the short ones leave pays for no node.
    return _have_taken(self, config.asked_if_long) and watch.nearest_leaves_noise()

  def hurried(self) -> tuple[str, int] | None:
    """Source and number of a turn that comes before its place: where y seems to be a function of one column, those that
    ask for it; where y has errors, those that bear them; where what has been found leaves noise (a wrong formula for
    exact data leaves errors that are alike in neighbouring rows), those after which the search may end, of one that is
    clear before anything else.
    """
    if self.ended_by or self._exact is not None:
      return None
    watch, config, num_taken = self._noise, self._options.config.noise, len(self.progress)
    of_one = next((key for key in self._turns_of_sole_column() if key not in self._begun), None)
    if of_one is not None or watch is None or num_taken == self._asked_to_hurry:
      return of_one
    self._asked_to_hurry = num_taken  # until a further turn has been taken the answer is the same
    first = _next_of(self, config.asked_if_clear) if watch.may_be_clear else None
    if first is not None and watch.best_leaves_noise():
      return first
    of_errors = (first for asked in config.asked_under_errors if (first := _next_of(self, [asked])) is not None)
    if _have_taken(self, config.asked_before_errors) and self._has_errors and (first := next(of_errors, None)):
      return first
    if not _have_taken(self, config.asked_before_hurry):
      return None
    first = _next_of(self, _asked_before_noise(watch, config))
    return first if first is not None and watch.leaves_noise() else None

  @functools.cached_property
  def _has_errors(self) -> bool:
    return learning_curves.has_errors(
      self.task.fit_rows, self.task.columns, self._options.config.noise.learning_curve)

  def _turns_of_sole_column(self) -> list[tuple[str, int]]:
    """Of smaller tables: the one that looks for them, that of the closed forms, and those of `first_of_one`."""
    if self.task.sole_column is None or REDUCTIONS not in self.states:
      return []
    turns = self._options.config.budget.first_of_one
    num = next(len(source.turns) for source in self.sources if source.name == REDUCTIONS)
    return [(REDUCTIONS, number) for number in range(min(num, 2 + sum(each for _, each in turns)))]

  def _fit_further(self, watch: NoiseWatch) -> bool:
    """Fits the shortest descriptions to their end, each once: the loop so fits only what may be exact, and the rest of
    a fit that has not ended is smooth. Returns whether one has come nearer to the data.
    """
    found = () if watch.best is None else (watch.best, *watch.others)
    new = [candidate for candidate in found if candidate.node not in self._fitted_further]
    if not new or self._options.refine == "none":
      return False
    steps = self._options.config.pool.polish_steps
    [further] = _fit([self.task], [[candidate.node for candidate in new]], new[0].source, self._options, steps)
    self._fitted_further.update(candidate.node for candidate in (*new, *further))
    self.pool.insert(further)
    watch.look(self.pool)
    return any(after.mse < before.mse for after, before in zip(further, new, strict=True))


def _have_taken(search: Search, asked: Sequence[tuple[str, int]]) -> bool:
  """Whether sources, those of them that have more to say, have had so many turns."""
  taken = [turn.source for turn in search.progress]
  return all(taken.count(name) >= turns for name, turns in asked if name in search.states)


def _next_of(search: Search, asked: Sequence[tuple[str, int]]) -> tuple[str, int] | None:
  """Source and number of the first turn that has not begun of those that are asked for, by source."""
  most = collections.Counter[str]()
  for name, turns in asked:
    most[name] = max(most[name], turns)
  keys = ((source.name, turn.number) for source in search.sources if source.name in search.states
          for turn in _turns(source)[: most[source.name]])
  return next((key for key in keys if key not in search._begun), None)


def _asked_before_noise(watch: NoiseWatch, config: NoiseConfig) -> tuple[tuple[str, int], ...]:
  """Turns, by source, that are taken before a search may end at the noise."""
  num_nodes = 0 if watch.best is None else expression.complexity(watch.best.node)
  asked = (config.asked_if_short if num_nodes <= config.short
           else config.asked if num_nodes <= config.long else config.asked_if_long)
  return (*asked, *config.asked_if_in_doubt) if watch.is_in_doubt else asked


def _is_simpler(first: Candidate, second: Candidate) -> bool:
  return expression.complexity(first.node) < expression.complexity(second.node)


def is_late_at_start(clock: Clock, options: SearchOptions) -> bool:
  """Whether the time of a search that has found nothing is over: compiling takes none of it."""
  return clock.elapsed() - clock.compiled() > options.search_seconds


def run(
  searches: dict[int, Search], sources: Sequence[Source], options: SearchOptions, *, clock: Clock,
  should_stop: Callable[[], bool] = lambda: False,
) -> Generator[tuple[int, Progress], None, bool]:
  """Asks source after source for all data sets that are not done; what each finds is left in its `Search`.

  Stopping between any two steps, by Ctrl-C say, loses no more than the turn in progress. So does the end of the time,
  for which turns but the first and those of `ALWAYS_ASKED` are not waited for. Until something has been found,
  compiling takes none of the time: else a process that begins could answer with nothing but yardsticks.
  Args:
    searches: by the number of the data set.
    sources, options: see `schedule`.
    clock: started with the search.
    should_stop: asked often; True ends the search of all data sets.
  Yields:
    `(number of the data set, where it stands)` for each of them after every turn.
  Returns:
    Whether it was asked to stop.
  """

  def is_late() -> bool:
    has_found = all(search.has_found or search.ended_by for search in searches.values())
    return clock.elapsed() > options.search_seconds if has_found else is_late_at_start(clock, options)

  def is_over() -> bool:
    return is_late() or should_stop()

  for turn, live in _in_order(searches, sources, options):
    if all(search.ended_by for search in searches.values()):
      break
    has_begun = all(search.progress for search in live.values())
    is_always_asked = turn.source.name in ALWAYS_ASKED
    if not live or has_begun and not is_always_asked and is_late():
      if should_stop() or turn.is_again and is_late():
        break
      continue  # one that is always asked may have its first turn later
    try:
      with interruption.ending_when(_never if not has_begun else should_stop if is_always_asked else is_over):
        made = take_turn(turn, list(live.values()), options, clock)
    except interruption.Interrupted:
      if should_stop():
        break
      continue
    for i, (proposal, fitted) in zip(live, made, strict=True):
      yield i, live[i].close_turn(turn.source, proposal, fitted, clock.elapsed())
    if should_stop():
      break
  is_stopped = should_stop()
  end(searches, results.STOPPED if is_stopped else results.TIME if is_late() else results.BUDGET)
  return is_stopped


def _in_order(
  searches: dict[int, Search], sources: Sequence[Source], options: SearchOptions
) -> Iterator[tuple[Turn, dict[int, Search]]]:
  """All turns, those of searches of one column and of others by turns."""
  groups = ({i: search for i, search in searches.items() if search.is_of_one == is_of_one}
            for is_of_one in (True, False))
  for turns in itertools.zip_longest(*(_in_own_order(group, sources, options) for group in groups)):
    yield from (turn for turn in turns if turn is not None)


def _in_own_order(
  searches: dict[int, Search], sources: Sequence[Source], options: SearchOptions
) -> Iterator[tuple[Turn, dict[int, Search]]]:
  """All turns of the schedule, after each those that some searches hurry to, and the searches that take them; of the
  cycle none where nobody can find more.
  """
  if not searches:
    return
  asked = [source for source in sources if any(source.name in search.states for search in searches.values())]
  turns = {(source.name, turn.number): turn for source in asked for turn in _turns(source)}
  for turn in schedule(asked, options, is_of_one=next(iter(searches.values())).is_of_one):
    if turn.is_again and not any(_can_find_more(search, options) for search in searches.values()):
      return
    yield turn, {i: search for i, search in searches.items() if search.begins(turn)}
    while keys := {i: key for i, search in searches.items() if (key := search.hurried()) is not None}:
      for key, early in turns.items():
        if key in keys.values():
          yield early, {i: searches[i] for i, wanted in keys.items() if wanted == key and searches[i].begins(early)}


def _can_find_more(search: Search, options: SearchOptions) -> bool:
  """Whether a source of the cycle that needs no other has not said its last of a data set."""
  return not search.ended_by and not search.states.keys().isdisjoint(options.config.budget.finders)


def _never() -> bool:
  return False


def end(searches: dict[int, Search], reason: str) -> None:
  """Ends those that have not ended for another reason."""
  for search in searches.values():
    search.ended_by = search.ended_by or reason


def take_turn(
  turn: Turn, searches: list[Search], options: SearchOptions, clock: Clock
) -> list[tuple[Proposal, list[Candidate]]]:
  """What the source makes for each data set, and the fits of what it has not fitted itself; of these, where the turn is
  interrupted, what there is.
  """
  tasks, name = [search.task for search in searches], turn.source.name
  questions = [search.question(turn.source) for search in searches]
  proposals = _ask(turn, questions, clock)
  with clock.measure("refine"):
    fitted: list[list[Candidate]] = [[] for _ in tasks]
    with contextlib.suppress(interruption.Interrupted):
      for some in _fits(tasks, proposals, name, options):
        fitted = [[*found, *more] for found, more in zip(fitted, some, strict=True)]
  return list(zip(proposals, fitted, strict=True))


def _ask(turn: Turn, questions: list[Question], clock: Clock) -> list[Proposal]:
  """What the source proposes for each data set: one that it fails at costs no other data set anything, where it keeps
  nothing from turn to turn, and this one nothing of what the other sources have.
  """
  try:
    return turn.source.propose(questions, turn=turn.number, num=turn.num, clock=clock)
  except SymFormerError:
    raise
  except faults.FAULTS as error:
    if len(questions) > 1 and all(question.state is None for question in questions):
      return [proposal for question in questions for proposal in _ask(turn, [question], clock)]
    faults.tell(turn.source.name, error)
    return [Proposal(state=question.state) for question in questions]


def _fits(
  tasks: Sequence[Task], proposals: Sequence[Proposal], name: str, options: SearchOptions
) -> Iterator[list[list[Candidate]]]:
  """Of what is proposed for each data set all with a few steps, the nearest with more, what may be exact to its end."""
  pool = options.config.pool
  nodes = [_fittable(proposal.nodes, task) for proposal, task in zip(proposals, tasks, strict=True)]
  # Methods that know slopes only take more steps to come as near.
  share = solve.MAX_STEPS[options.refine] / solve.MAX_STEPS["lm"]
  screened = _fit(tasks, nodes, name, options, max(1, round(pool.screen_steps * share)))
  yield screened
  nearest = _fit(tasks, [_nearest(some, options) for some in screened], name, options, pool.fit_steps)
  yield nearest
  if options.refine != "none":
    made = zip(proposals, screened, nearest, tasks, strict=True)
    near = [_fittable(_nearly_exact([*proposal.candidates, *some, *more], task, options), task)
            for proposal, some, more, task in made]
    yield _fit(tasks, near, name, options, pool.polish_steps)


def _fit(
  tasks: Sequence[Task], nodes: Sequence[Sequence[Node]], name: str, options: SearchOptions, max_steps: int
) -> list[list[Candidate]]:
  fits = refine.fit_constants(list(zip(tasks, nodes, strict=True)), method=options.refine, max_steps=max_steps,
                              max_constants=options.config.pool.max_constants)
  return [[Candidate(node, mse, name) for node, mse in some] for some in fits]


def _nearest(candidates: Sequence[Candidate], options: SearchOptions) -> list[Node]:
  """Those whose fit goes on after the first few steps."""
  config = options.config.pool
  chosen = survivors(
    np.array([c.mse for c in candidates]), [expression.complexity(c.node) for c in candidates],
    num_best=config.num_screened, num_per_length=config.num_screened_per_complexity)
  return [candidates[i].node for i in chosen]


def _fittable(nodes: Sequence[Node], task: Task) -> list[Node]:
  """Different trees that the rule allows and that a program holds."""
  return [node for node in dict.fromkeys(nodes) if task.rule(node) and programs.size(node) <= programs.MAX_TOKENS]


def _nearly_exact(candidates: Sequence[Candidate], task: Task, options: SearchOptions) -> list[Node]:
  """Those that may be exact: only a fit in double precision, to its end, can tell."""
  fitted = Pool(task.variance, len(task.fit_rows), options.config.pool)
  fitted.insert(candidates)
  return fitted.nearly_exact()
