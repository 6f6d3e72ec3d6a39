"""From points to a ranked front of formulas: the sources of candidates, the loop that asks them, the selection.

`search` is the whole path for any number of data sets; `infer.py` and `estimator.py` are thin layers over it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

from symformer_jax import compilation, conclusion, results
from symformer_jax.arguments import check_seed, check_whole
from symformer_jax.decoding.strategies import STRATEGIES
from symformer_jax.engine import criteria, interruption, loop
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.engine.loop import Search
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import MIN_POINTS, check_dataset, refuse_variables
from symformer_jax.engine.source import Source
from symformer_jax.engine.task import Task, make_task, names_of_columns, turn
from symformer_jax.engine.threads import one_blas_thread
from symformer_jax.errors import InputError, show
from symformer_jax.first_look import weigh
from symformer_jax.language import expression, programs, strangers, templates, units as units_lib
from symformer_jax.language.rules import Restrictions, names_of
from symformer_jax.language.units import Units
from symformer_jax.results import Callback, Progress, SearchResult, Standing, Step
from symformer_jax.selection import front as front_lib, losses
from symformer_jax.sources import registry
from symformer_jax.sources.network import samples
from symformer_jax.templates import profile


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
    effort: how much is tried where `max_time` is None: `quick` (about three fifths of the work of a normal search),
      `normal`, or `thorough` (ten times as much or more: what has been found is evolved). Counted work: a seed fixes
      the answer.
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
    raise InputError(f"restrictions: expected Restrictions, got {show(restrictions)}")
  if operators is not None:
    restrictions = dataclasses.replace(restrictions, operators=names_of(operators, "operators"))
  if add := names_of(add_operators, "add_operators"):
    restrictions = dataclasses.replace(restrictions, add_operators=add)
  if isinstance(guesses, str) or not isinstance(guesses, Iterable):
    raise InputError(f"guesses: expected a list of formulas, got {show(guesses)}")
  _check_datasets(datasets)
  columns, targets = _read_names(names, len(datasets)), _read_targets(targets, len(datasets))
  options = SearchOptions(
    n_samples, strategy, top_k, temperature, refine, restrictions, max_time, accuracy, seed, recombine, tuple(guesses),
    effort, DEFAULT if config is None else config, loss, template,
    _read_units(units, columns, targets, dimensionless_constants))
  options.check()
  _check_model(model)
  check_callback(callback)
  if not callable(should_stop):
    raise InputError(f"should_stop: expected a function without arguments, got {show(should_stop)}")
  check_seed(seed)
  compilation.use_cache()
  if not isinstance(strategy, str) or strategy not in STRATEGIES:
    raise InputError(f"strategy: unknown strategy {show(strategy)}, expected one of {', '.join(STRATEGIES)}")
  key = jax.random.key(seed) if key is None else _check_key(key)
  with interruption.noting_ctrl_c() as ctrl_c, one_blas_thread():
    return _search_all(model, datasets, columns, targets, options, key, callback,
                       lambda: ctrl_c.is_wished() or should_stop())


def _search_all(
  model: Any, datasets: Sequence[Any], names: Sequence[Any] | None, targets: Sequence[str] | None,
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


def _check_model(model: Any) -> None:
  if not hasattr(model, "vocab"):
    shown = repr(model) if isinstance(model, str | int | None) else f"an object of type {type(model).__name__}"
    raise InputError(f"model: expected a loaded model, as load_model gives it, got {shown}")


def _is_list(value: Any) -> bool:
  """Whether a value has one part for each data set: no iterator, and no table."""
  has_parts = hasattr(value, "__len__") and hasattr(value, "__getitem__")
  return has_parts and not isinstance(value, str | bytes | Mapping) and not hasattr(value, "iloc")


def _check_datasets(datasets: Any) -> None:
  """Refuses what is no list of data sets, such as an iterator or one table: an InputError."""
  if not _is_list(datasets):
    raise InputError(f"datasets: expected a list of data sets, such as [(X, y)], got {type(datasets).__name__}")


def _read_names(names: Any, num_datasets: int) -> list[tuple[str, ...] | None] | None:
  """Column names of each data set, refused where they are no lists; what stands in these, each data set is asked."""
  if names is None:
    return None
  if not _is_list(names):
    raise InputError(f"names: expected the column names of each data set, such as [['a', 'b']], got {show(names)}")
  if len(names) != num_datasets:
    raise InputError(f"names: expected column names for {num_datasets} data sets, got {len(names)}")
  for i, each in enumerate(names):
    if isinstance(each, str) or not isinstance(each, Iterable | None):
      raise InputError(f"names: expected a list of column names for data set {i}, got {show(each)}")
  return [None if each is None else tuple(each) for each in names]


def _read_targets(targets: Any, num_datasets: int) -> tuple[str, ...] | None:
  if targets is None:
    return None
  found = names_of(targets, "targets")
  if len(found) != num_datasets:
    raise InputError(f"targets: expected a name for each of {num_datasets} data sets, got {len(found)}")
  return found


def _check_key(key: Any) -> Any:
  """A key of JAX, of either kind: an InputError for anything else."""
  try:
    jax.random.fold_in(key, 0)
  except (TypeError, ValueError):
    raise InputError(f"key: expected a single key of JAX, such as jax.random.key(0), got {show(key)}") from None
  return key


def check_callback(callback: Any) -> None:
  """Refuses what cannot be called: an InputError."""
  if callback is not None and not callable(callback):
    raise InputError(f"callback: expected a function of one argument, got {show(callback)}")


def is_wish(answer: Any) -> bool:
  """What a callback answers as a truth value: an InputError for an array and the like, which have none."""
  try:
    return bool(answer)
  except (TypeError, ValueError):
    raise InputError(f"callback: expected True, False or nothing as its answer, got {show(answer)}") from None


def _read_units(
  units: Mapping[str, str] | None, names: Sequence[Any] | None, targets: Sequence[str] | None,
  dimensionless_constants: bool,
) -> Units | None:
  """Units as users name them; names that no data set has are refused."""
  if not isinstance(dimensionless_constants, bool | np.bool_):
    raise InputError(f"dimensionless_constants: expected True or False, got {show(dimensionless_constants)}")
  if units is None:
    if dimensionless_constants:
      raise InputError("dimensionless_constants: says nothing without units")
    return None
  read = units_lib.read_units(units, dimensionless_constants=bool(dimensionless_constants))
  if names is not None and None not in names:
    read.check_names([*itertools.chain.from_iterable(names), *(targets or ()), units_lib.TARGET])
  return read


def warmup(model: Any, *, num_points: int = 100, n_samples: int = 1024, refine: str = "lm") -> float:
  """Compiles what `search` needs for so many points and samples, by a search; the seconds it took.

  Programs stay in the process, and on disk (`compilation.use_cache`).
  Raises:
    InputError: for what is no model, fewer points than a search takes, and what `search` refuses.
  """
  _check_model(model)
  num_points = check_whole("num_points", num_points, least=MIN_POINTS)
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
  weighed, is_stopped = weigh(model, datasets, names, options, key, clock, should_stop)
  for i, weighing in enumerate(weighed):
    try:
      if isinstance(weighing, InputError):
        raise weighing
      problem, tasks = _pose(weighing.dataset, names[i], options, target=targets[i])
      own = options if problem is None else problem.options_of_parts(options)
      with interruption.ending_when(lambda: is_stopped or loop.is_late_at_start(clock, options) or should_stop()):
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
      if callback is not None and is_wish(callback(_standing(begin + i, progress, searches[number]))):
        loop.end({each: searches[each] for each in posed[i].numbers}, results.STOPPED)
  except KeyboardInterrupt:
    if should_stop() or not all(search.progress for search in searches.values()):
      raise  # somebody who has asked before insists
    is_stopped = True
    loop.end(searches, results.STOPPED)
  for i, each in posed.items():
    found[i] = conclusion.finish([searches[number] for number in each.numbers], each.problem, each.weighed, model,
                                 options, clock, target=targets[i])
  return [found[i] for i in range(len(datasets))], is_stopped or should_stop()


class _Posed(NamedTuple):
  """What is searched for a data set: one task, or with a template one for each unknown function; their numbers."""

  problem: profile.Problem | None
  weighed: losses.Weighed
  numbers: range


def _pose(
  dataset: Any, names: Sequence[str] | None, options: SearchOptions, *, target: str
) -> tuple[profile.Problem | None, list[Task]]:
  if options.template is None:
    task = make_task(dataset, names, options, target=target)
    _refuse_target(options, task.names, target)
    return None, [turn(task) if _may_turn(options) else task]
  rows = check_dataset(dataset, names=names)
  columns = names_of_columns(names, rows.x.shape[1])
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
