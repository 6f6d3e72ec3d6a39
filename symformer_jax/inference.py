"""From points to a ranked front of formulas: sample, keep what differs, fit, bring back to the user's units, select.

`search` is the whole path for any number of data sets; `infer.py` and `estimator.py` are thin layers over it.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from symformer_jax import compilation, proposals, results
from symformer_jax.decoding.strategies import COMPETING, STRATEGIES
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.errors import InputError
from symformer_jax.language.rules import Restrictions
from symformer_jax.refinement import solve
from symformer_jax.results import Round, SearchResult
from symformer_jax.rounds import DatasetSearch, Options


def search(
  model: Any, datasets: Sequence[Any], *, n_samples: int = 1024, strategy: str = "top_k", top_k: int = 20,
  temperature: float = 1.0, refine: str = "lm", operators: Sequence[str] | None = None,
  restrictions: Restrictions | None = None, max_time: float | None = None, accuracy: float | None = None, seed: int = 0,
  recombine: bool = True, key: jax.Array | None = None, names: Sequence[Sequence[str]] | None = None,
  on_round: Callable[[int, Round], None] = lambda index, found: None,
  should_stop: Callable[[], bool] = lambda: False, config: SearchConfig = DEFAULT,
) -> list[SearchResult]:
  """Finds formulas for data sets.

  Samples are drawn and fitted in rounds of 256, 768 and then 1024. Ctrl-C ends the rounds and gives the best so far.
  Args:
    model: a loaded model (`load_model`), or anything with `name`, `vocab` and `propose`.
    datasets: each points [N, D+1] with y in the last column, or `(X [N, D], y [N])` or `(X, y, weights [N])`. Of three
      or more variables, where the model knows fewer, formulas are made without it; that needs `recombine`.
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
    recombine: whether formulas made of parts of the candidates and of atoms compete as well (`sources.terms`),
      once the rounds are over, whatever `max_time`; not without refinement.
    key: a JAX key to use in place of the seed's; consumed.
    names: column names of each data set; x0, x1, ... by default.
    on_round: called after each round with the data set's index and how far it is.
    should_stop: asked after each round; True ends the rounds of all data sets.
    config: what steers the search: which sources, how many of what, thresholds.
  Returns:
    One result for each data set, in their order. A data set that cannot be used has status `failed`.
  Raises:
    InputError: for arguments that are wrong for every data set.
  """
  restrictions = restrictions or Restrictions()
  if operators is not None:
    restrictions = dataclasses.replace(restrictions, operators=tuple(operators))
  options = _check_options(
    n_samples, strategy, top_k, temperature, refine, restrictions, max_time, accuracy, seed, recombine, config)
  if names is not None and len(names) != len(datasets):
    raise InputError(f"names: expected column names for {len(datasets)} data sets, got {len(names)}")
  key = jax.random.key(seed) if key is None else key
  found: list[SearchResult] = []
  at_once = compilation.dataset_buckets()[-1]
  is_stopped = False
  for begin in range(0, len(datasets), at_once):
    some = range(begin, min(begin + at_once, len(datasets)))
    if is_stopped:
      found += [results.failed("stopped before it was searched", model=model.name, seed=seed) for _ in some]
    else:
      columns = [names[i] if names is not None else None for i in some]
      answers, is_stopped = _search_together(
        model, [datasets[i] for i in some], columns, options, key,
        lambda i, round_, begin=begin: on_round(begin + i, round_), should_stop)
      found += answers
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


def _check_options(
  n_samples, strategy, top_k, temperature, refine, restrictions, max_time, accuracy, seed, recombine, config
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
    bool(recombine) and refine != "none", config)


# --- rounds ----------------------------------------------------------------------------------------------------


def _search_together(
  model, datasets, names, options: Options, key, on_round, should_stop
) -> tuple[list[SearchResult], bool]:
  """Searches data sets in common rounds; each gets the time that all took; and whether it was stopped."""
  clock = Clock()
  found: dict[int, SearchResult] = {}
  searches: dict[int, DatasetSearch] = {}
  for i, dataset in enumerate(datasets):
    try:
      searches[i] = DatasetSearch(model, dataset, names[i], options, key)
    except InputError as error:
      found[i] = results.failed(str(error), model=model.name, seed=options.seed)
  is_stopped = _explore(model, searches, options, clock, on_round, should_stop)
  for i, search_ in searches.items():
    found[i] = search_.finish(options, clock)
  return [found[i] for i in range(len(datasets))], is_stopped


def _round_sizes(options: Options) -> Iterator[int]:
  """Samples of each round; they depend on the budget only in the last."""
  if options.strategy in COMPETING:
    yield options.n_samples
    return
  first, later = options.config.transformer.round_samples, options.config.transformer.later_samples
  drawn = 0
  while drawn < options.n_samples:
    end = first if not drawn else (drawn // later + 1) * later
    yield min(end, options.n_samples) - drawn
    drawn = end


def _explore(model, searches: dict[int, DatasetSearch], options: Options, clock: Clock, on_round, should_stop) -> bool:
  """Round after round for all data sets that are not done; whether it was stopped."""
  is_stopped = False
  try:
    for size in _round_sizes(options):
      live = {i: s for i, s in searches.items() if not s.ended_by}
      # Data sets that share their shapes go through one call.
      groups: dict[tuple[int, int], list[DatasetSearch]] = {}
      for search_ in live.values():
        groups.setdefault((search_.num_rows, len(search_.views)), []).append(search_)
      for group in groups.values():
        _explore_group(model, group, size, options, clock)
      for i, search_ in live.items():
        on_round(i, search_.close_round(options, clock.elapsed()))
      is_stopped = should_stop()
      if is_stopped:
        break
  except KeyboardInterrupt:
    is_stopped = True
    if not all(s.rounds or s.ended_by for s in searches.values()):
      raise
  for search_ in searches.values():
    search_.ended_by = search_.ended_by or results.STOPPED
  return is_stopped


def _explore_group(model, group: list[DatasetSearch], size: int, options: Options, clock: Clock) -> None:
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
      temperature=options.temperature, config=options.config.transformer)
    drawn = [(search_, v, *answer) for (search_, v), answer in zip(some, found, strict=True)]
    for search_, v, samples, counts in drawn:
      search_.add(v, samples, counts)
      if options.recombine:
        with clock.measure("recombine"):
          search_.add_donors(v, samples)


