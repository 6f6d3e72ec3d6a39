"""What a loss makes of the rows: their weights, which may depend on a formula that a first look finds."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import functools
from typing import Any

import jax

from symformer_jax import results
from symformer_jax.engine import interruption, loop
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.loop import Search
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows, check_dataset, check_weights, with_weights
from symformer_jax.engine.task import default_names, make_task
from symformer_jax.errors import InputError
from symformer_jax.language import printing
from symformer_jax.language.expression import Node
from symformer_jax.language.rules import Restrictions
from symformer_jax.selection import losses
from symformer_jax.sources import registry


def weigh(
  model: Any, datasets: Sequence[Any], names: Sequence[Any], options: SearchOptions, key: jax.Array, clock: Clock,
  should_stop: Callable[[], bool],
) -> tuple[list[losses.Weighed | InputError], bool]:
  """The data sets under the loss, or why one cannot be; and whether a first look was stopped."""
  weighed: list[losses.Weighed | InputError] = []
  for dataset, columns in zip(datasets, names, strict=True):
    try:
      rows = check_dataset(dataset, names=columns)
      check_weights(rows)
      weighing = losses.weigh_first(options.loss, rows)
      is_changed = options.loss != losses.SQUARED
      weighed.append(losses.Weighed(with_weights(dataset, weighing.weights) if is_changed else dataset, weighing,
                              rows.weights))
    except InputError as error:
      weighed.append(error)
  if options.loss not in losses.BY_A_LOOK:
    return weighed, False
  usable = {i: check_dataset(datasets[i]) for i, each in enumerate(weighed) if isinstance(each, losses.Weighed)}
  found, is_stopped = _look(model, usable, names, options, key, clock, should_stop)
  for i, weighing in found.items():
    weighed[i] = losses.Weighed(with_weights(datasets[i], weighing.weights), weighing, usable[i].weights)
  return weighed, is_stopped


def _look(
  model: Any, rows: Mapping[int, Rows], names: Sequence[Any], options: SearchOptions, key: jax.Array, clock: Clock,
  should_stop: Callable[[], bool],
) -> tuple[dict[int, losses.Weighing], bool]:
  """What first looks at data sets make of their rows: looks under the weights that a loss takes without a formula, and
  again under those that were found while these say that the look was misled; and whether they were stopped.
  """
  config, is_over, is_stopped = options.config.loss, False, False
  weigh_rows = functools.partial(
    losses.weigh, options.loss, num_rows=options.config.selection.max_rows, seed=options.seed, config=config)
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
        weighings[i] = weigh_rows(nodes[i], some[i], text=texts[i])
        if losses.is_misled(starts[i][number], weighings[i], config=config):
          starts[i].append(weighings[i].weights)
  return {i: weighings[i] if len(each) == len(some[i]) else weigh_rows(nodes[i], each, text=texts[i])
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
    with (contextlib.suppress(InputError),  # which the search itself will raise
          interruption.ending_when(lambda: loop.is_late_at_start(clock, look) or should_stop())):
      task = make_task((each.x, each.y, each.weights), names[i], look)
      searches[i] = Search(task, [source for source in sources if source.supports(task)], look, key)
  for _ in loop.run(searches, sources, look, clock=clock, should_stop=should_stop):
    pass
  return searches
