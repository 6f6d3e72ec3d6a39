"""From points to a ranked front of formulas: the sources of candidates, the loop that asks them, the selection.

`search` is the whole path for any number of data sets; `infer.py` and `estimator.py` are thin layers over it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from symformer_jax import compilation, results
from symformer_jax.decoding.strategies import STRATEGIES
from symformer_jax.engine import criteria, interruption, loop, refine as refine_lib
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.engine.loop import Search
from symformer_jax.engine.options import Recalled, SearchOptions
from symformer_jax.engine.rows import Rows, check_dataset, refuse_variables, with_weights
from symformer_jax.engine.source import Source
from symformer_jax.engine.task import Task, default_names, make_task, turn
from symformer_jax.engine.threads import one_blas_thread
from symformer_jax.errors import InputError
from symformer_jax.language import expression, printing, programs, strangers, templates, units as units_lib
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import Node
from symformer_jax.language.rules import Restrictions, names_of
from symformer_jax.language.units import DataUnits, Units
from symformer_jax.results import Callback, Equation, Guess, Progress, SearchResult, Seen, Standing, Step
from symformer_jax.selection import front as front_lib, losses, own_formulas, residuals, scoring, select, soundness
from symformer_jax.sources import closed_forms, guesses as guesses_lib, registry
from symformer_jax.sources.network import samples
from symformer_jax.templates import answer, profile


def search(
  model: Any, datasets: Sequence[Any], *, n_samples: int = 1024, strategy: str = "top_k", top_k: int = 20,
  temperature: float = 1.0, refine: str = "lm", operators: Sequence[str] | None = None,
  restrictions: Restrictions | None = None, max_time: float | None = None, accuracy: float | None = None, seed: int = 0,
  recombine: bool = True, guesses: Sequence[str] = (), key: jax.Array | None = None,
  names: Sequence[Sequence[str]] | None = None,
  callback: Callback | None = None, should_stop: Callable[[], bool] = lambda: False, effort: str = "normal",
  config: SearchConfig | None = None, loss: str = "squared", template: str | None = None,
  units: Mapping[str, str] | None = None, dimensionless_constants: bool = False,
  targets: Sequence[str] | None = None, add_operators: Sequence[str] = (),
) -> list[SearchResult]:
  """Finds formulas for data sets.

  Sources of candidates are asked in turns, cheap ones first; the model draws 256, 768 and then 1024 samples a turn.
  Where `effort` or `max_time` ask for more, what they have found is then evolved. A search ends when all turns are
  over, or when a formula meets the data exactly and a further turn found no simpler one. Ctrl-C ends the turns within
  about a second, but for the first and what is being compiled, and gives the best so far; a second one raises
  KeyboardInterrupt. Both where SIGINT has Python's own handler, and in the main thread: where a program has set one,
  `should_stop` is its place.
  Args:
    model: a loaded model (`load_model`), or anything with `name`, `vocab` and `propose`.
    datasets: each points [N, D+1] with y in the last column, or `(X [N, D], y [N])` or `(X, y, weights [N])`. Of more
      variables than the model knows, formulas are made without it; that needs `recombine`.
    n_samples: candidates drawn from the model for each data set, at most.
    strategy: how: `top_k`, `temperature` (all tokens), `nucleus`, `greedy`, `beam` or `distinct` (samples without
      replacement); the last two draw all candidates in one turn, since they compete.
    top_k: tokens among which each step of sampling chooses, with the strategy of that name.
    temperature: divides the logits: below 1 candidates are likelier, above 1 more varied.
    refine: how constants are fitted: `lm`, `bfgs`, `gd` or `none`.
    operators: names of the operators a formula may use; None for all that models know.
    restrictions: further rules, and the place for `operators` where there are some.
    max_time: seconds that the search of a data set takes. Before they are over the turn in progress is ended: the last
      of them, at most three, are for the choice of the answer. None to let `effort` decide.
    accuracy: R2 at which no further turn is begun; None for all turns.
    seed: fixes every random choice. The answer for a data set does not depend on the others.
    recombine: whether sources that need no model compete with it: rational functions, sums of library columns and of
      parts of candidates, growth, evolution; not without refinement.
    guesses: formulas in the column names that join the pool, their constants fitted; what became of each stands in
      `SearchResult.guesses`.
    key: a JAX key to use in place of the seed's; consumed.
    names: column names of each data set; x0, x1, ... by default.
    callback: called after each turn of a data set with its `Standing`: `index`, `source`, `seconds`, `best`, `r2`,
      `front`, ... Where it returns True no further turn is begun for that data set, and the best so far is the answer;
      what it raises ends the call.
    should_stop: asked several times a second; True ends the search of all data sets.
    effort: how much is tried where `max_time` is None: `quick` (about half the work of a normal search), `normal`, or
      `thorough` (about ten times as much: what has been found is evolved). Counted work: a seed fixes the answer.
    config: what steers the search: which sources, how many of what, thresholds; None for the defaults.
    loss: which errors are to be small: `squared`; `relative` (rows count as 1/y**2); `log` (log|y| is fitted); `huber`
      (far rows count less); `auto` (as errors grow with |y|, by a first look). Each becomes weights of the rows, which
      decide constants, choice, standard errors, R2 and RMSE alike; `message` says how rows count.
    template: a form that each formula is to have, such as `f(x)*exp(-k*t)`: in the column names, with unknown functions
      of columns and unknown constants (any other name). What is found for them stands in `Equation.filled`. Rules,
      guesses are those of the functions, and so are the formulas that a callback is told; accuracy and R2 are of y.
    units: those of every column and, as `y`, of the target, such as `{"x": "m", "y": "m/s"}`, 1 for none; then only
      formulas count that can have the target's dimension. Needs pint. Values are never converted.
    dimensionless_constants: whether numbers in formulas have no unit; else one that multiplies or is added may have
      any.
    targets: names of y of each data set, under which `units` may have its unit, and which no guess or template has;
      `y` by default.
    add_operators: further operators, which no model knows: tanh, sinh, cosh, abs, sign, min, max. Sources that need no
      model make formulas with them, beside those with `operators`.
  Returns:
    One result for each data set, in their order. A data set that cannot be used has status `failed`.
  Raises:
    InputError: for arguments that are wrong for every data set.
  """
  restrictions = Restrictions() if restrictions is None else restrictions
  if not isinstance(restrictions, Restrictions):
    raise InputError(f"restrictions: expected Restrictions, got {restrictions!r}")
  if operators is not None:
    restrictions = dataclasses.replace(restrictions, operators=names_of(operators, "operators"))
  if add := names_of(add_operators, "add_operators"):
    restrictions = dataclasses.replace(restrictions, add_operators=add)
  if isinstance(guesses, str) or guesses is None:
    raise InputError(f"guesses: expected a list of formulas, got {guesses!r}")
  options = SearchOptions(
    n_samples, strategy, top_k, temperature, refine, restrictions, max_time, accuracy, seed, recombine, tuple(guesses),
    effort, DEFAULT if config is None else config, loss, template,
    _read_units(units, names, targets, dimensionless_constants))
  options.check()
  if not hasattr(model, "vocab"):
    shown = repr(model) if isinstance(model, str | int | None) else f"an object of type {type(model).__name__}"
    raise InputError(f"model: expected a loaded model, as load_model gives it, got {shown}")
  _check_datasets(datasets)
  check_callback(callback)
  if not callable(should_stop):
    raise InputError(f"should_stop: expected a function without arguments, got {should_stop!r}")
  _check_seed(seed)
  compilation.use_cache()
  if not isinstance(strategy, str) or strategy not in STRATEGIES:
    raise InputError(f"strategy: unknown strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
  if names is not None and len(names) != len(datasets):
    raise InputError(f"names: expected column names for {len(datasets)} data sets, got {len(names)}")
  if targets is not None and len(targets) != len(datasets):
    raise InputError(f"targets: expected a name for each of {len(datasets)} data sets, got {len(targets)}")
  key = jax.random.key(seed) if key is None else key
  with interruption.noting_ctrl_c() as ctrl_c, one_blas_thread():
    return _search_all(model, datasets, names, targets, options, key, callback,
                       lambda: ctrl_c.is_wished() or should_stop())


def _search_all(
  model: Any, datasets: Sequence[Any], names: Sequence[Sequence[str]] | None, targets: Sequence[str] | None,
  options: SearchOptions, key: jax.Array, callback: Callback | None, should_stop: Callable[[], bool],
) -> list[SearchResult]:
  """The answers in the order of the data sets; those that a wish to stop has come before have failed."""
  found: list[SearchResult] = []
  at_once = compilation.dataset_buckets()[-1]
  is_stopped = False
  for begin in range(0, len(datasets), at_once):
    some = range(begin, min(begin + at_once, len(datasets)))
    if is_stopped:
      found += [results.failed("stopped before it was searched", model=model.name, seed=options.seed) for _ in some]
    else:
      columns = [names[i] if names is not None else None for i in some]
      called = [targets[i] if targets is not None else units_lib.TARGET for i in some]
      answers, is_stopped = _search_together(
        model, [datasets[i] for i in some], columns, called, options, key, callback, should_stop, begin=begin)
      found += answers
  return found


def _check_datasets(datasets: Any) -> None:
  """Refuses what is no list of data sets, such as an iterator or one table: an InputError."""
  is_list = hasattr(datasets, "__len__") and hasattr(datasets, "__getitem__")
  if not is_list or isinstance(datasets, str | bytes | Mapping) or hasattr(datasets, "iloc"):
    raise InputError(f"datasets: expected a list of data sets, such as [(X, y)], got {type(datasets).__name__}")


def check_callback(callback: Any) -> None:
  """Refuses what cannot be called: an InputError."""
  if callback is not None and not callable(callback):
    raise InputError(f"callback: expected a function of one argument, got {callback!r}")


def _read_units(
  units: Mapping[str, str] | None, names: Sequence[Sequence[str]] | None, targets: Sequence[str] | None,
  dimensionless_constants: bool,
) -> Units | None:
  """Units as users name them; names that no data set has are refused."""
  if not isinstance(dimensionless_constants, bool | np.bool_):
    raise InputError(f"dimensionless_constants: expected True or False, got {dimensionless_constants!r}")
  if units is None:
    if dimensionless_constants:
      raise InputError("dimensionless_constants: says nothing without units")
    return None
  read = units_lib.read_units(units, dimensionless_constants=bool(dimensionless_constants))
  if names is not None:
    read.check_names([*itertools.chain.from_iterable(names), *(targets or ()), units_lib.TARGET])
  return read


def _check_seed(seed: int) -> None:
  """What NumPy takes (nothing negative) and JAX (64 bits)."""
  if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 2**63:
    raise InputError(f"seed: expected a whole number from 0 to 2**63 - 1, got {seed!r}")


def warmup(model: Any, *, num_points: int = 100, n_samples: int = 1024, refine: str = "lm") -> float:
  """Compiles what `search` needs for so many points and samples, by a search; the seconds it took.

  Programs stay in the process, and on disk (`compilation.use_cache`).
  """
  clock = Clock()
  x = np.linspace(0.5, 4.5, num_points)
  columns = [x] + [np.full_like(x, 1.5)] * (model.vocab.num_variables - 1)
  y = np.random.default_rng(0).normal(size=num_points)  # met by no formula: no part of the path is left out
  search(model, [(np.stack(columns, axis=1), y)], n_samples=n_samples, refine=refine)
  return clock.elapsed()


def resolve_model(name: str, *, num_variables: int) -> Any:
  """The model a user names, loaded once: `auto` is the shipped one for so many variables.

  Raises:
    ModelError: for an unknown, damaged or foreign model.
  """
  # Imported late: stand-ins for a model need neither weights nor a network.
  from symformer_jax.pretrained import registry

  return _load_model(registry.pick_name(num_variables) if name == "auto" else name)


@functools.lru_cache(maxsize=4)
def _load_model(name: str) -> Any:
  from symformer_jax.pretrained import registry

  return registry.load_model(name)


# --- the search of some data sets ------------------------------------------------------------------------------------


def _search_together(
  model: Any, datasets: Sequence[Any], names: Sequence[Any], targets: Sequence[str], options: SearchOptions,
  key: jax.Array, callback: Callback | None, should_stop: Callable[[], bool], *, begin: int,
) -> tuple[list[SearchResult], bool]:
  """Searches data sets in common turns; each gets the time that all took; and whether it was stopped.

  `begin`: number of the first of them in the call.
  """
  clock, sources = Clock(), registry.make_sources(model, options)
  found: dict[int, SearchResult] = {}
  searches: dict[int, Search] = {}
  posed: dict[int, _Posed] = {}
  weighed, is_stopped = _weigh(model, datasets, names, options, key, clock, should_stop)
  for i, weighing in enumerate(weighed):
    try:
      if isinstance(weighing, InputError):
        raise weighing
      problem, tasks = _pose(weighing.dataset, names[i], options, target=targets[i])
      own = options if problem is None else problem.options_of_parts(options)
      some = [Search(task, _supporting(sources, task, model, options), own, key) for task in tasks]
      posed[i] = _Posed(problem, weighing, range(len(searches), len(searches) + len(some)))
      searches |= zip(posed[i].numbers, some, strict=True)
    except InputError as error:
      found[i] = results.failed(str(error), model=model.name, seed=options.seed)
  was_stopped = is_stopped

  def watch() -> Iterator[tuple[int, Progress]]:
    nonlocal is_stopped
    is_stopped = yield from loop.run(
      searches, sources, options, clock=clock, should_stop=lambda: was_stopped or should_stop())

  try:
    for number, progress in watch():
      i = next(i for i, each in posed.items() if number in each.numbers)
      if callback is not None and callback(_standing(begin + i, progress, searches[number])):
        loop.end({each: searches[each] for each in posed[i].numbers}, results.STOPPED)
  except KeyboardInterrupt:
    if should_stop() or not all(search.progress for search in searches.values()):
      raise  # somebody who has asked before insists
    is_stopped = True
    loop.end(searches, results.STOPPED)
  for i, each in posed.items():
    found[i] = _finish([searches[number] for number in each.numbers], each.problem, each.weighed, model, options, clock,
                       target=targets[i])
  return [found[i] for i in range(len(datasets))], is_stopped or should_stop()


class _Posed(NamedTuple):
  """What is searched for a data set: one task, or with a template one for each unknown function; their numbers."""

  problem: profile.Problem | None
  weighed: "_Weighed"
  numbers: range


def _pose(
  dataset: Any, names: Sequence[str] | None, options: SearchOptions, *, target: str
) -> tuple[profile.Problem | None, list[Task]]:
  if options.template is None:
    task = make_task(dataset, names, options, target=target)
    _refuse_target(options, task.names, target)
    return None, [turn(task) if _may_turn(options) else task]
  rows = check_dataset(dataset, names=names)
  columns = tuple(names) if names is not None else default_names(rows.x.shape[1])
  _refuse_target(options, columns, target)
  excluded = options.restrictions.for_columns(columns).excluded
  units = None if options.units is None else options.units.for_columns(columns, target, excluded=excluded)
  problem = profile.pose(templates.read(options.template, columns), rows, seed=options.seed, units=units,
                         config=options.config.templates)
  return problem, [profile.make_part_task(problem, part, options) for part in problem.parts]


def _refuse_target(options: SearchOptions, columns: Sequence[str], target: str) -> None:
  """The target in a guess or template is no unknown constant."""
  formulas = [("guesses", guess) for guess in options.guesses]
  if options.template is not None:
    formulas.append(("template", options.template))
  for argument, text in formulas:
    strangers.refuse(argument, text, columns, {target: "the target"})


def _may_turn(options: SearchOptions) -> bool:
  """Whether formulas may be written in the opposites of columns: rules and guesses are for the columns as they are, and
  the model by itself is shown these.
  """
  has_rules = dataclasses.replace(options.restrictions, excluded=()) != Restrictions()
  return not has_rules and not options.guesses and options.recombine and options.refine != "none"


def _standing(index: int, progress: Progress, search_: Search) -> Standing:
  """Where a data set stands; its front is worked out only if the callback looks at it, of what there is now."""
  task, found = search_.task, search_.pool.in_order()

  def make_front() -> tuple[Step, ...]:
    sizes = [expression.complexity(candidate.node) for candidate in found]
    on_front = front_lib.pareto_indices(sizes, [candidate.mse for candidate in found],
                                        floor=criteria.error_floor(task.variance))
    return tuple(Step(sizes[i], task.r2(found[i].mse), task.text(found[i].node)) for i in on_front)

  told = {field.name: getattr(progress, field.name) for field in dataclasses.fields(progress)}
  return Standing(**told, index=index, make_front=make_front)


def _supporting(sources: Sequence[Source], task: Task, model: Any, options: SearchOptions) -> list[Source]:
  """The sources that can make candidates for a data set.

  Raises:
    InputError: where the rules allow nothing, or none but the closed forms is left, with the reason.
  """
  if not samples.is_satisfiable(task.rule, None):
    raise InputError(f"the rules allow nothing: no formula of at most {programs.MAX_TOKENS} tokens keeps them all")
  found = [source for source in sources if source.supports(task)]
  asked_for, closed = set(options.config.sources), {registry.CLOSED_FORMS}
  if {source.name for source in found} <= closed and not asked_for <= closed:
    if len(task.names) > model.vocab.num_variables:
      refuse_variables(len(task.names), model)
    raise InputError(f"the rules allow nothing that the model {model.name!r} can write, and no other source is asked")
  return found


class _Weighed(NamedTuple):
  """A data set with the weights of the loss, and what is to be said of them; the user's own weights [N]."""

  dataset: Any
  weighing: losses.Weighing
  given: np.ndarray


def _weigh(
  model: Any, datasets: Sequence[Any], names: Sequence[Any], options: SearchOptions, key: jax.Array, clock: Clock,
  should_stop: Callable[[], bool],
) -> tuple[list[_Weighed | InputError], bool]:
  """The data sets under the loss, or why one cannot be; and whether a first look was stopped."""
  weighed: list[_Weighed | InputError] = []
  for dataset, columns in zip(datasets, names, strict=True):
    try:
      rows = check_dataset(dataset, names=columns)
      weighing = losses.weigh_first(options.loss, rows)
      is_changed = options.loss != losses.SQUARED
      weighed.append(_Weighed(with_weights(dataset, weighing.weights) if is_changed else dataset, weighing,
                              rows.weights))
    except InputError as error:
      weighed.append(error)
  if options.loss not in losses.BY_A_LOOK:
    return weighed, False
  usable = {i: check_dataset(datasets[i]) for i, each in enumerate(weighed) if isinstance(each, _Weighed)}
  found, is_stopped = _look(model, usable, names, options, key, clock, should_stop)
  for i, weighing in found.items():
    weighed[i] = _Weighed(with_weights(datasets[i], weighing.weights), weighing, usable[i].weights)
  return weighed, is_stopped


def _look(
  model: Any, rows: Mapping[int, Rows], names: Sequence[Any], options: SearchOptions, key: jax.Array, clock: Clock,
  should_stop: Callable[[], bool],
) -> tuple[dict[int, losses.Weighing], bool]:
  """What first looks at data sets make of their rows: looks under the weights that a loss takes without a formula, and
  again under those that were found while these say that the look was misled; and whether they were stopped.
  """
  config, is_over, is_stopped = options.config.loss, False, False
  weigh = functools.partial(losses.weigh, options.loss, num_rows=options.config.selection.max_rows, seed=options.seed,
                            config=config)
  texts = {i: functools.partial(printing.to_text, names=names[i] or default_names(each.x.shape[1]))
           for i, each in rows.items()}
  some = {i: each.sample(options.config.selection.max_rows, seed=options.seed) for i, each in rows.items()}
  starts = {i: losses.starts(options.loss, each, config=config) for i, each in some.items()}
  nodes: dict[int, list[Node]] = {i: [] for i in rows}
  weighings: dict[int, losses.Weighing] = {}
  for number in range(config.max_looks):
    weighted = {i: dataclasses.replace(some[i], weights=weights[number])
                for i, weights in starts.items() if number < len(weights)}
    if is_over or not weighted:
      break
    searches = _look_once(model, weighted, names, options, key, clock, should_stop)
    is_stopped = any(each.ended_by == results.STOPPED for each in searches.values())
    is_over = is_stopped or any(each.ended_by == results.TIME for each in searches.values())
    for i, each in searches.items():
      nodes[i] += [candidate.node for candidate in each.pool.shortlist()]
    for i in weighted:
      if number + 1 in (len(starts[i]), config.max_looks) or is_over:
        weighings[i] = weigh(nodes[i], some[i], text=texts[i])
        if losses.is_misled(starts[i][number], weighings[i], config=config):
          starts[i].append(weighings[i].weights)
  return {i: weighings[i] if len(each) == len(some[i]) else weigh(nodes[i], each, text=texts[i])
          for i, each in rows.items()}, is_stopped


def _look_once(
  model: Any, rows: Mapping[int, Rows], names: Sequence[Any], options: SearchOptions, key: jax.Array, clock: Clock,
  should_stop: Callable[[], bool],
) -> dict[int, Search]:
  """A look at each data set that can be searched: the sources that need no model; no selection. Looks end when
  `LossConfig.look_share` of the time is over.
  """
  rules = Restrictions(excluded=options.restrictions.excluded)  # others do not matter to the size of errors
  look = dataclasses.replace(
    options, loss=losses.SQUARED, restrictions=rules, units=None, recombine=True, refine="lm", accuracy=None,
    max_time=None if options.max_time is None else options.config.loss.look_share * options.max_time,
    config=dataclasses.replace(options.config, sources=options.config.loss.sources))
  sources, searches = registry.make_sources(model, look), dict[int, Search]()
  for i, each in rows.items():
    with contextlib.suppress(InputError):  # which the search itself will raise
      task = make_task((each.x, each.y, each.weights), names[i], look)
      searches[i] = Search(task, [source for source in sources if source.supports(task)], look, key)
  for _ in loop.run(searches, sources, look, clock=clock, should_stop=should_stop):
    pass
  return searches


def _choose(
  task: Task, nodes: Sequence[Node], options: SearchOptions, clock: Clock, is_late: bool,
  guesses: Sequence[Node] = (),
) -> select.Selection | None:
  """Reduces what was found for a task to a front, in less time where that is up; None where nothing fits.

  Args:
    guesses: fitted trees of which the selection is to tell.
  """
  pool, selection = options.config.pool, options.config.selection
  selection = selection if "abs" in task.rule.requested else selection.without_absolutes()
  with clock.measure("refine"):
    [fitted] = refine_lib.fit_constants(
      [(task, nodes)], method=options.refine, max_steps=pool.polish_steps, max_constants=pool.max_constants)
  with clock.measure("deduplicate"):
    forms = [form for node, _ in fitted for form in (node, canonicalize(node)) if task.rule(form)]
    finalists = _different_values(forms, task.fit_rows, math.sqrt(task.variance), pool.equal_values)
  yardsticks = [node for node in closed_forms.fit(task.rows, task.columns) if task.rule(node)]
  if not finalists and not yardsticks:
    return None
  with clock.measure("select"):
    return select.select(
      finalists, task.rows, task.names, seed=options.seed, yardsticks=yardsticks, is_allowed=task.rule,
      may_fit=options.refine != "none", num_fit_rows=pool.fit_rows,
      config=selection.hurried() if is_late else selection, choice_config=options.config.choice, guesses=guesses)


def _shortlist(search_: Search, most: int | None) -> list[Node]:
  """What goes on, as formulas of the user's columns: with a sign more than a program may hold, some do not."""
  nodes = [search_.task.restore(candidate.node) for candidate in search_.pool.shortlist(most)]
  return [node for node in nodes if programs.size(node) <= programs.MAX_TOKENS]


def _finish(
  searches: Sequence[Search], problem: profile.Problem | None, weighed: _Weighed, model: Any, options: SearchOptions,
  clock: Clock, *, target: str,
) -> SearchResult:
  """Reduces what was found for a data set to the front; `target` is what y is called."""
  first = searches[0]
  has_little_time = options.max_time is not None and options.max_time <= options.config.selection.short_time
  is_late = any(each.ended_by == results.STOPPED or has_little_time and each.ended_by == results.TIME
                for each in searches)
  is_met = all(each.ended_by == results.EXACT for each in searches)
  most = options.config.pool.num_finalists_few if is_late or is_met else None
  shortlists = [_shortlist(search_, most) for search_ in searches]
  task = first.task.as_given()
  choose = functools.partial(_choose, options=options, clock=clock, is_late=is_late)
  rows, names = (task.rows, task.names) if problem is None else (problem.rows, problem.template.names)
  own = _fit_guesses(first, options) if problem is None else []
  chosen = (choose(task, shortlists[0], guesses=[each.node for each in own]) if problem is None
            else answer.answer(problem, shortlists, options, choose))
  if chosen is None:
    units = task.units
    wanted = "" if units is None else f", in which {target} is a {units.target.text}"
    return results.failed(
      f"no candidate fits, and no closed form keeps the rules{wanted}", model=model.name, seed=options.seed)
  guesses = own_formulas.tell(own, chosen, rows, names)
  best, front, rejected = chosen.best, chosen.front, chosen.rejected
  units = task.units if problem is None else problem.units
  if units is not None:
    front = tuple(equation.with_units(units.of_numbers(equation.node)) for equation in front)
  if options.loss == losses.LOG:
    front, guesses = _with_log_r2(front, guesses, own, rows, weighed.given)
  best = next(equation for equation in front if equation.node == best.node)
  has_model = any(source.name == registry.TRANSFORMER for search_ in searches for source in search_.sources)
  is_without = registry.TRANSFORMER in options.config.sources and not has_model
  ended_by = next((each.ended_by for each in searches if each.ended_by != results.EXACT), first.ended_by)
  ended_by = results.NO_MODEL if ended_by == results.BUDGET and is_without else ended_by
  weighing = weighed.weighing
  left = _look_at_residuals(best, front, rows, options)
  seen = Seen(
    {name: (float(low), float(high))
     for name, low, high in zip(names, rows.x.min(axis=0), rows.x.max(axis=0), strict=True)},
    tuple(names[column] for column in range(len(names)) if column not in soundness.columns_of(best.node)),
    None if best.r2 is None else math.sqrt(max(1 - best.r2, 0.0)), options.loss, weighing.exponent,
    weighing.num_light, rejected, left.num_far, left.is_growing, left.decades)
  told = dict.fromkeys(text for search_ in searches for text in _messages(search_, model, is_without))
  if problem is not None:
    told |= dict.fromkeys(text for search_ in searches for text in _describe_guesses(search_))
  messages = [*told, *_describe_units(names, units, target), *filter(None, [weighing.text]), *_describe(seen),
              *left.texts]
  return SearchResult(
    results.OK, "; ".join(messages), best, front, sum((each.counts for each in searches), results.Counts()),
    clock.seconds(), options.seed, len(rows), model.name, tuple(turn for each in searches for turn in each.progress),
    ended_by, seen, with_weights(weighed.dataset, rows.weights)[2],
    None if units is None else units.texts, guesses)


def _fit_guesses(search_: Search, options: SearchOptions) -> list[own_formulas.Fitted]:
  """The user's formulas, fitted to the rows that standard errors are of; those of an earlier fit are not asked about,
  and none where the search was stopped before their turn.
  """
  if not any(turn.source == registry.GUESSES for turn in search_.progress):
    return []
  task = search_.task.as_given()
  rows = task.rows.sample(options.config.selection.last_rows, seed=options.seed)
  return [own_formulas.fit(text, filled, rows, task.names, may_fit=options.refine != "none",
                           config=options.config.selection)
          for text, filled in zip(options.guesses, search_.states[registry.GUESSES], strict=True)
          if not isinstance(text, Recalled)]


def _with_log_r2(
  front: Sequence[Equation], guesses: Sequence[Guess], own: Sequence[own_formulas.Fitted], rows: Rows, given: np.ndarray
) -> tuple[tuple[Equation, ...], tuple[Guess, ...]]:
  """The lines, and the guesses that were fitted so, with the R2 of log|y| under the user's own weights `given` [N]."""
  def log_r2(node: Node) -> float | None:
    return scoring.log_r2(scoring.evaluate(node, rows.x), rows.y, given)

  return (tuple(dataclasses.replace(equation, log_r2=log_r2(equation.node)) for equation in front),
          tuple(dataclasses.replace(guess, log_r2=log_r2(each.node))
                for guess, each in zip(guesses, own, strict=True)))


def _look_at_residuals(
  best: Equation, front: Sequence[Equation], rows: Rows, options: SearchOptions
) -> residuals.Residuals:
  """What the residuals of the recommended formula tell of the loss; where that is a mere constant, rather those of the
  most accurate one: a few rows that lie far off may have hidden it.
  """
  if options.loss != losses.SQUARED:
    return residuals.Residuals()
  most_accurate = [min(front, key=lambda equation: equation.mse).node] if best.node.is_number else []
  return residuals.look([*most_accurate, best.node], rows, seed=options.seed, config=options.config.hints)


def _describe_units(names: Sequence[str], units: DataUnits | None, target: str) -> list[str]:
  """What units were read as: `AU` is no length to pint."""
  if units is None:
    return []
  texts = [f"{name} in {unit.full_name}" for name, unit in zip(
    (*names[:strangers.MAX_NAMED], target), (*units.columns[:strangers.MAX_NAMED], units.target), strict=True)]
  return [f"units: {', '.join(texts)}"]


def _describe(seen: Seen) -> list[str]:
  """What was seen and a user might not expect."""
  messages = []
  if seen.unused and len(seen.unused) < len(seen.ranges):
    names = ", ".join(seen.unused[:strangers.MAX_NAMED]) + (", ..." if len(seen.unused) > strangers.MAX_NAMED else "")
    messages.append(f"not in the recommended formula: {names}")
  messages += [f"left out for {each.reason}: a formula of {each.complexity} nodes"
               + ("" if each.r2 is None else f", R2 {each.r2:.4g}") for each in seen.rejected]
  return messages


def _messages(search_: Search, model: Any, is_without: bool) -> list[str]:
  """What a user should know of how an answer was found; `is_without`: the model was wanted and could not be asked."""
  task, messages, found = search_.task, [], search_.pool.in_order()
  if is_without and len(task.names) > model.vocab.num_variables:
    messages.append("more variables than the model knows: searched without it")
  elif is_without:
    messages.append("the model can write no formula that keeps the rules: searched without it")
  if task.is_chosen:
    names = ", ".join(task.names[column] for column in task.columns)
    messages.append(f"of {len(task.names)} columns those that explain most were searched: {names}")
  has_guessed = any(turn.source == registry.GUESSES for turn in search_.progress)
  if has_guessed and not any(candidate.source == registry.GUESSES for candidate in found):
    messages.append("no guess is defined on all rows")
  if search_.ended_by != results.EXACT and {candidate.source for candidate in found} <= {registry.CLOSED_FORMS}:
    messages.append("no candidate fits; the front holds the closed-form fits alone")
  return messages


def _describe_guesses(search_: Search) -> list[str]:
  """Of each guess for a part of a template what was fitted: a name among them may have been meant for a column."""
  texts = [text for source in search_.sources if isinstance(source, guesses_lib.Guesses) for text in source.texts]
  constants = filter(None, (guesses_lib.free_constants(text, search_.task.names) for text in texts))
  return [f"guess: {', '.join(names)} {'is' if len(names) == 1 else 'are'} fitted" for names in constants]


def _different_values(nodes: Sequence[Node], rows: Rows, spread: float, tolerance: float) -> list[Node]:
  """Of formulas with the same values on the rows, to a share of the spread, the simplest, in their order."""
  kept: dict[bytes | int, int] = {}
  for i in sorted(range(len(nodes)), key=lambda i: expression.complexity(nodes[i])):
    values = scoring.evaluate(nodes[i], rows.x) / spread
    is_defined = np.isfinite(values).all()
    kept.setdefault((np.round(values / tolerance) + 0.0).tobytes() if is_defined else i, i)
  return [nodes[i] for i in sorted(kept.values())]
