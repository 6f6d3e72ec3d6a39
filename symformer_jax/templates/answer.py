"""From formulas for the unknown functions of a template to its front.

Every formula that was found is put back, and all constants of the whole are fitted together to y. Around the best of
these wholes the template is linear in each unknown function, to first order: what is left of y, over the slope, is data
for the function alone, on which its front is chosen as that of any data set. So constants are rounded and formulas
simplified inside the function, and the form stays. In the end the constants of each line are settled on y again.
"""

from collections.abc import Callable, Mapping, Sequence
import itertools
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.engine import criteria, refine
from symformer_jax.engine.config import SearchConfig, TemplatesConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import Task, make_task
from symformer_jax.errors import InputError
from symformer_jax.language import expression, inverses, printing, programs
from symformer_jax.language.expression import SYMBOL, UNKNOWN, Node, variable, walk, with_columns
from symformer_jax.language.operators import WAVES
from symformer_jax.language.templates import Template, Unknown, fill
from symformer_jax.language.tidy import tidy
from symformer_jax.refinement.local import LocalModel
from symformer_jax.results import Constant, Equation, Filled, whole_constants
from symformer_jax.selection import choice, front, rounding, scoring
from symformer_jax.selection.select import Selection
from symformer_jax.templates.profile import Part, Problem, make_part_task
from symformer_jax.templates.shared import gather_constants

# Weights of rows below this share of the largest say nothing, and their targets are out of any range.
LEAST_WEIGHT = 1e-12
# A parameter that is one of the small integers would be taken for a part of the form: moved by so much it is fitted.
NUDGE = 1e-9


class Filling(NamedTuple):
  """Formulas for the unknown functions, over the columns of the data set, and values of the parameters; by name."""

  functions: Mapping[str, Node]
  values: Mapping[str, float]


class Form:
  """A template over a table that has a column more for each part of it that is known: its numbers are not fitted.

  Attributes:
    node: its tree over that table; known: the parts that are columns there.
  """

  def __init__(self, template: Template):
    self.template, self.num_columns = template, len(template.names)
    self.known: list[Node] = []
    self.node = self._cut(template.node)

  def _cut(self, node: Node) -> Node:
    parts = list(walk(node))
    if any(part.token in (SYMBOL, UNKNOWN) for part in parts):
      return node._replace(args=tuple(self._cut(arg) for arg in node.args))
    if not any(programs.is_constant(part) for part in parts):
      return node
    if node not in self.known:
      self.known.append(node)
    return variable(self.num_columns + self.known.index(node))

  def widen(self, x: np.ndarray) -> np.ndarray:
    """The table [N, D] with the columns that are known."""
    return np.column_stack([x, *(scoring.evaluate(node, x) for node in self.known)])

  def whole(self, filling: Filling) -> Node:
    """The tree over the wide table, each parameter a constant to be fitted."""
    values = {name: value + NUDGE if _is_small(value) else value for name, value in filling.values.items()}
    return fill(self.node, filling.functions, values)

  def filling(self, whole: Node) -> Filling:
    """What stands in a tree of this form; the inverse of `whole`."""
    functions: dict[str, Node] = {}
    values: dict[str, float] = {}

    def look(form: Node, node: Node) -> None:
      if form.token == UNKNOWN:
        functions[form.value[0]] = node
      elif form.token == SYMBOL:
        values[form.value] = node.value
      for one, other in zip(form.args, node.args, strict=True) if form.args else ():
        look(one, other)

    look(self.node, whole)
    return Filling(functions, values)

  def written(self, filling: Filling) -> Node:
    """The formula over the user's columns, simplified."""
    return tidy(fill(self.template.node, filling.functions, filling.values))


def _is_small(value: float) -> bool:
  """Whether a number would be a part of the form, and not fitted."""
  return not programs.is_constant(expression.number(value))


# A choice among formulas for a task: its front, or None where nothing fits.
Choose = Callable[[Task, Sequence[Node]], Selection | None]


def answer(
  problem: Problem, found: Sequence[Sequence[Node]], options: SearchOptions, choose: Choose
) -> Selection | None:
  """The front of the template.

  Args:
    found: for each unknown function formulas over its own columns.
    options: of the search; choose: what reduces formulas to a front.
  Returns:
    None where nothing fits.
  """
  config = options.config.templates
  form, rows = Form(problem.template), problem.rows.sample(config.answer_rows, seed=options.seed)
  names = [*problem.template.names, *(f"known {i}" for i in range(len(form.known)))]
  free = SearchOptions(seed=options.seed, config=options.config)
  wide = (form.widen(rows.x), rows.y, rows.weights)
  fitted = _fit(form, make_task(wide, names, free), _combined(problem, found, config), options)
  if not fitted:
    return None
  best = fitted[0]
  selections = []
  for part, own in zip(problem.parts, found, strict=True):
    nodes = list(dict.fromkeys([*(_inward(each.functions[part.unknown.name], part.unknown) for each in fitted), *own]))
    around = part._replace(dataset=_linearized(best, problem, part))
    try:
      selection = choose(make_part_task(problem, around, options), nodes)
    except InputError:  # nothing to choose by: the function is a constant, and met to the last digit
      alone = Equation(nodes[0], part.names, 0.0, None, None, ())
      selection = Selection(alone, (alone,), ())
    if selection is None:
      return None
    selections.append(selection)
  return _settled(form, problem, best, selections, wide, options.config)


def _outward(node: Node, unknown: Unknown) -> Node:
  """A formula over the columns of an unknown function as one over those of the data set; `_inward` is the inverse."""
  return with_columns(node, dict(enumerate(unknown.columns)))


def _inward(node: Node, unknown: Unknown) -> Node:
  return with_columns(node, {column: i for i, column in enumerate(unknown.columns)})


def _combined(problem: Problem, found: Sequence[Sequence[Node]], config: TemplatesConfig) -> list[Filling]:
  """One formula of each unknown function, the first of each with one another; and the simplest of each, for the first
  of all functions together may be too long to be fitted.
  """
  most = config.num_combined[min(len(found), len(config.num_combined)) - 1]
  chosen = [dict.fromkeys([*nodes[:most], *sorted(nodes, key=expression.complexity)[:1]]) for nodes in found]
  functions = [[(part.unknown.name, _outward(node, part.unknown)) for node in nodes]
               for part, nodes in zip(problem.parts, chosen, strict=True)]
  return [Filling(dict(each), problem.values) for each in itertools.product(*functions)]


def _fit(form: Form, task: Task, fillings: Sequence[Filling], options: SearchOptions) -> list[Filling]:
  """With all constants fitted together to y; those that fit, by description length."""
  pool = options.config.pool
  wholes = [whole for whole in map(form.whole, fillings) if programs.size(whole) <= programs.MAX_TOKENS
            and len(programs.fitted_values(whole)) <= pool.max_constants]
  [fits] = refine.fit_constants(
    [(task, wholes)], method="lm", max_steps=pool.polish_steps, max_constants=pool.max_constants)
  floor = criteria.error_floor(task.variance)

  def cost(node: Node, mse: float) -> float:
    fit = criteria.Fit(max(mse, floor), expression.complexity(node), len(programs.fitted_values(node)), None)
    return criteria.mdl(fit, num_points=len(task.rows), variance=task.variance)

  costs = [(cost(node, mse), i) for i, (node, mse) in enumerate(fits) if np.isfinite(mse)]
  return [form.filling(fits[i][0]) for _, i in sorted(costs)]


def _linearized(best: Filling, problem: Problem, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Data of one unknown function, all else as in the best whole: its value plus what is left of y over the slope."""
  rows, unknown = problem.rows, part.unknown
  others = {name: node for name, node in best.functions.items() if name != unknown.name}
  path = problem.template.path(unknown.name)
  values = scoring.evaluate(best.functions[unknown.name], rows.x)
  wide = np.column_stack([rows.x, values])
  tree = fill(problem.template.node, {**others, unknown.name: variable(rows.x.shape[1])}, best.values)
  with np.errstate(all="ignore"):
    slope = inverses.slope(tree, path, wide)
    target = values + (rows.y - expression.evaluate(tree, wide)) / slope
    weights = rows.weights * slope**2
  is_used = np.isfinite(target) & np.isfinite(weights)
  is_used &= weights > LEAST_WEIGHT * np.max(weights, where=is_used, initial=0.0)
  return rows.x[np.ix_(is_used, unknown.columns)], target[is_used], weights[is_used]


# --- lines of the front ----------------------------------------------------------------------------------------------


def _settled(
  form: Form, problem: Problem, best: Filling, selections: Sequence[Selection], wide: tuple, config: SearchConfig
) -> Selection:
  """The front in the data set's own terms, its constants settled on y."""
  taken, rows = tuple(selection.best for selection in selections), problem.rows
  chosen = list(itertools.product(*(selection.front for selection in selections)))
  if len(selections) > 1:
    chosen = _worthwhile(form, problem, best, chosen, taken)
  lines: dict[str, Equation] = {}
  kept: set[str] = set()
  recommended = None
  for each in chosen:
    equation = _equation(form, problem, _filling(problem, best, each), wide, config)
    if not np.isfinite(equation.mse):
      continue  # such as the mean or the line, where the template is undefined for it
    equation = lines.setdefault(equation.expression, equation)
    recommended = equation if each == taken else recommended
    if each == taken or all(choice.is_linear(line.node) for line in each):
      kept.add(equation.expression)
  if recommended is None:  # chosen to first order, where a root of what is below 0 has a value: the best whole has one
    whole = _equation(form, problem, best, wide, config)
    recommended = lines.setdefault(whole.expression, whole)
    kept.add(recommended.expression)
  floor = criteria.error_floor(scoring.weighted_variance(rows.y, rows.weights))
  shown = front.falling([line.complexity for line in lines.values()], [line.mse for line in lines.values()],
                        kept={i for i, text in enumerate(lines) if text in kept}, floor=floor)
  listed = tuple(list(lines.values())[i] for i in shown)
  return Selection(recommended, listed, tuple(itertools.chain(*(each.rejected for each in selections))))


def _filling(problem: Problem, best: Filling, lines: Sequence[Equation]) -> Filling:
  """Lines of the fronts of all functions as they stand in the template, with the parameters of the best whole."""
  functions = {part.unknown.name: _outward(line.node, part.unknown)
               for part, line in zip(problem.parts, lines, strict=True)}
  return Filling(gather_constants(problem.template, functions), best.values)


def _worthwhile(
  form: Form, problem: Problem, best: Filling, chosen: list[tuple[Equation, ...]], taken: tuple[Equation, ...]
) -> list[tuple[Equation, ...]]:
  """Of lines put together those that no simpler ones beat, and the recommended ones."""
  rows = problem.rows
  wholes = [form.written(_filling(problem, best, each)) for each in chosen]
  errors = [scoring.score(scoring.evaluate(whole, rows.x), rows.y, rows.weights).mse for whole in wholes]
  sizes = [expression.complexity(whole) for whole in wholes]
  floor = criteria.error_floor(scoring.weighted_variance(rows.y, rows.weights))
  on_front = {*front.pareto_indices(sizes, errors, floor=floor), chosen.index(taken)}
  return [chosen[i] for i in sorted(on_front)]


def _equation(form: Form, problem: Problem, filling: Filling, wide: tuple, config: SearchConfig) -> Equation:
  """A line of the front: constants settled, rounded, with their standard errors."""
  template, rows = problem.template, problem.rows
  whole = _settle(form, form.whole(filling), wide, len(problem.parts) > 1, config)
  rounded = form.filling(rounding.round_constants(whole, *wide, config=config.selection))
  functions = {name: tidy(node) for name, node in rounded.functions.items()}
  if any(not np.isfinite(scoring.evaluate(node, rows.x)).all() for node in functions.values()):
    functions = dict(rounded.functions)
  filled = Filling(functions, rounded.values)
  node = form.written(filled)
  if len(problem.parts) > 1:  # sums of constants of several functions have digits that mean nothing
    node = rounding.round_constants(node, rows.x, rows.y, rows.weights, config=config.selection)
  errors = dict(zip(_owners(form, whole), rounding.standard_errors(whole, *wide, **_given(template)), strict=True))
  parameters = tuple((name, Constant(filled.values[name], errors.get(name), unit=_unit(problem, name)))
                     for name in template.parameters)
  texts = tuple((template.call(unknown), printing.to_text(functions[unknown.name], template.names))
                for unknown in template.unknowns)
  scores = scoring.score(scoring.evaluate(node, rows.x), rows.y, rows.weights)
  constants, whole_numbers = _constants(node, form, rows)
  return Equation(node, template.names, scores.mse, scores.r2, scores.relative_error, constants,
                  Filled(texts, parameters), whole=whole_numbers)


def _unit(problem: Problem, parameter: str) -> str | None:
  """The unit of a parameter; None where units are not known or leave it open."""
  if problem.units is None:
    return None
  found = problem.units.of_part(problem.template.node, problem.template.path(parameter))
  return None if found is None else found.text


def _settle(form: Form, whole: Node, wide: tuple, has_several: bool, config: SearchConfig) -> Node:
  """Constants as y has them: the parameters alone where that costs no more than chance, else all of them.

  What the functions have been given as simple values stays so where it can. Of several functions, between which a
  factor or a summand may be moved, constants that do nothing go first.
  """
  floor = criteria.error_floor(scoring.weighted_variance(wide[1], wide[2]))
  every = LocalModel(whole, *wide, floor=floor, num_refits=10)
  own = LocalModel(whole, *wide, floor=floor, num_refits=10)
  own.is_free &= np.array(_owners(form, whole), dtype=bool)
  every.refit()
  own.refit()
  num_held = int(np.sum(every.is_free)) - int(np.sum(own.is_free))
  is_kept = own.sum_of_squares <= every.sum_of_squares + num_held * every.noise
  settled = _with_values(whole, own.theta if is_kept else every.theta)
  return rounding.remove_redundant(settled, *wide, config=config.selection) if has_several else settled


def _with_values(node: Node, values: np.ndarray) -> Node:
  """With other constants, none of which becomes a part of the form."""
  return programs.replace_values(node, [v + NUDGE if _is_small(v) else v for v in values.tolist()])


def _owners(form: Form, whole: Node) -> list[str]:
  """For each constant of a tree the parameter that it is, or nothing [C]."""
  names: list[str] = []

  def look(part: Node, node: Node) -> None:
    if part.token in (SYMBOL, UNKNOWN):
      names.extend([part.value if part.token == SYMBOL else ""] * len(programs.fitted_values(node)))
    for one, other in zip(part.args, node.args, strict=True) if part.args else ():
      look(one, other)

  look(form.node, whole)
  return names


def _given(template: Template) -> dict[str, Any]:
  """What of a formula is not open, for its errors: the numbers of the template itself, and its waves as written."""
  trees = [template.node, tidy(template.node)]
  parts = [part for tree in trees for part in walk(tree)]
  return {"held": {abs(part.value) for part in parts if part.is_number},
          "has_phases": all(part.token not in WAVES for part in parts)}


def _constants(node: Node, form: Form, rows: Rows) -> tuple[tuple[Constant, ...], tuple[Constant, ...]]:
  """Those of a written formula, and its whole numbers; what the template itself has is given, and has no error."""
  given = _given(form.template)
  errors = rounding.parameter_errors(node, rows.x, rows.y, rows.weights, **given)
  exact = rounding.exact_forms(node, rows.x, rows.y, rows.weights)
  fitted = tuple(Constant(value, None if abs(value) in given["held"] else error, form_)
                 for value, error, form_ in zip(programs.fitted_values(node), errors.fitted, exact, strict=True))
  return fitted, whole_constants(node, errors.whole)
