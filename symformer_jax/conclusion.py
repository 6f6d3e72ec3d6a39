"""From what a search has found to its result: the choice of a front, what became of guesses, what a user is told."""

from collections.abc import Sequence
import dataclasses
import functools
import math
from typing import Any

import numpy as np

from symformer_jax import results
from symformer_jax.engine import refine as refine_lib
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.loop import Search
from symformer_jax.engine.options import Recalled, SearchOptions
from symformer_jax.engine.rows import Rows, with_weights
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, programs, strangers
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import Node
from symformer_jax.language.units import DataUnits
from symformer_jax.results import Equation, Guess, SearchResult, Seen
from symformer_jax.selection import losses, own_formulas, residuals, scoring, select
from symformer_jax.sources import closed_forms, guesses as guesses_lib, registry
from symformer_jax.templates import answer, profile


def finish(
  searches: Sequence[Search], problem: profile.Problem | None, weighed: losses.Weighed, model: Any,
  options: SearchOptions, clock: Clock, *, target: str,
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
  asked = _asked_guesses(first, options) if problem is None else []
  own = _fit_guesses(asked, first, options)
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
  guesses = own_formulas.with_unseen(guesses, asked, _why_unseen(first))
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
    tuple(names[column] for column in range(len(names)) if column not in expression.columns_of(best.node)),
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
  lines = closed_forms.fit(task.rows, task.columns, required=task.rule.required)
  yardsticks = [node for node in lines if task.rule(node)]
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


def _asked_guesses(search_: Search, options: SearchOptions) -> list[tuple[str, Node | None]]:
  """The user's formulas, none of an earlier fit, with numbers for their names; None where there was no time for it."""
  filled = search_.states.get(registry.GUESSES, [None] * len(options.guesses))
  return [(text, node) for text, node in zip(options.guesses, filled, strict=True) if not isinstance(text, Recalled)]


def _fit_guesses(
  asked: Sequence[tuple[str, Node | None]], search_: Search, options: SearchOptions
) -> list[own_formulas.Fitted]:
  """Those that were looked at, fitted to the rows that standard errors are of, also where the search ended before their
  turn.
  """
  task = search_.task.as_given()
  rows = task.rows.sample(options.config.selection.last_rows, seed=options.seed)
  return [own_formulas.fit(text, filled, rows, task.names, may_fit=options.refine != "none",
                           config=options.config.selection)
          for text, filled in asked if filled is not None]


def _why_unseen(search_: Search) -> str:
  """Why guesses were not looked at, where some were not."""
  if registry.GUESSES not in search_.states:
    return f"the search config leaves out the source {registry.GUESSES!r}"
  return "the search was stopped before" if search_.ended_by == results.STOPPED else "the time was over before"


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
  has_guessed = any(turn.source == registry.GUESSES for turn in search_.progress) and any(
    node is not None for node in search_.states[registry.GUESSES])
  if has_guessed and not any(candidate.source == registry.GUESSES for candidate in found):
    messages.append("no guess is defined on all rows")
  if search_.ended_by != results.EXACT and {candidate.source for candidate in found} <= {registry.CLOSED_FORMS}:
    messages.append("no other candidate fits; the front holds the closed-form fits alone")
  return messages


def _describe_guesses(search_: Search) -> list[str]:
  """Of each guess for a part of a template what was fitted: a name among them may have been meant for a column; or why
  it was not looked at.
  """
  asked = [each for source in search_.sources if isinstance(source, guesses_lib.Guesses)
           for each in zip(source.texts, search_.states[source.name], strict=True)]
  constants = filter(None, (guesses_lib.free_constants(text, search_.task.names)
                            for text, filled in asked if filled is not None))
  return [*(f"guess: {', '.join(names)} {'is' if len(names) == 1 else 'are'} fitted" for names in constants),
          *(f"guess {text}: not looked at: {_why_unseen(search_)}" for text, filled in asked if filled is None)]


def _different_values(nodes: Sequence[Node], rows: Rows, spread: float, tolerance: float) -> list[Node]:
  """Of formulas with the same values on the rows, to a share of the spread, the simplest, in their order."""
  kept: dict[bytes | int, int] = {}
  for i in sorted(range(len(nodes)), key=lambda i: expression.complexity(nodes[i])):
    values = scoring.evaluate(nodes[i], rows.x) / spread
    is_defined = np.isfinite(values).all()
    kept.setdefault((np.round(values / tolerance) + 0.0).tobytes() if is_defined else i, i)
  return [nodes[i] for i in sorted(kept.values())]
