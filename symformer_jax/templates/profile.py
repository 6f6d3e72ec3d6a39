"""Data for the unknown functions of a template: its parameters are found before any formula is.

An unknown function of a column is first a sum of Chebyshev polynomials. For given parameters these are a linear least
squares, so that only the parameters are left to be found (variable projection, Golub and Pereyra 1973): on a grid, then
by descent from its best points. With them the template is solved for each function, row by row; a row counts as much
as an error of its y shows in the function.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import optimize

from symformer_jax.engine.config import DEFAULT, TemplatesConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import MIN_POINTS, Rows
from symformer_jax.engine.task import Task, make_task
from symformer_jax.errors import InputError
from symformer_jax.language import expression, inverses
from symformer_jax.language.expression import VARIABLE, Node, has_column, variable, walk
from symformer_jax.language.templates import Template, Unknown, fill
from symformer_jax.language.units import TARGET, DataUnits, Units

# Squares of larger numbers are not finite: such rows count as those without a value.
LARGEST = 1e150


class Part(NamedTuple):
  """Data of an unknown function: `(x [N, D'], target [N], weights [N])` of rows that have a value, and column names.

  `variance`: of y, in squared units of the function, as its errors show in y; None where that is not finite.
  """

  unknown: Unknown
  dataset: tuple[np.ndarray, np.ndarray, np.ndarray]
  names: tuple[str, ...]
  variance: float | None


@dataclasses.dataclass(frozen=True)
class Problem:
  """A data set under a template.

  Attributes:
    template, rows: as given; values: first values of the parameters by name; parts: data of each unknown function.
    units: of columns and y; None where they are not known.
  """

  template: Template
  rows: Rows
  values: Mapping[str, float]
  parts: tuple[Part, ...]
  units: DataUnits | None = None

  def units_of(self, unknown: Unknown) -> Units | None:
    """The units of an unknown function's columns and, as the target's, its own."""
    if self.units is None:
      return None
    own = self.units.of_part(self.template.node, self.template.path(unknown.name))
    assert own is not None  # `pose` refuses others
    columns = ((self.template.names[column], self.units.columns[column]) for column in unknown.columns)
    return Units((*columns, (TARGET, own)), self.units.are_constants_free)

  def options_of_parts(self, options: SearchOptions) -> SearchOptions:
    """Of the search of each unknown function: what all of them may leave of y is shared among them."""
    if options.accuracy is None:
      return options
    return dataclasses.replace(options, accuracy=1 - (1 - options.accuracy) / len(self.parts))


def pose(
  template: Template, rows: Rows, *, seed: int, units: DataUnits | None = None,
  config: TemplatesConfig = DEFAULT.templates,
) -> Problem:
  """Finds the parameters of a template, and data for its unknown functions.

  Raises:
    InputError: where it has too many parameters, or fits no rows: the values that it can take are not those of y; and
      where units forbid it or leave open which an unknown function has.
  """
  if units is not None:
    _check_units(template, units)
  values = _Profile(template, rows.sample(config.max_rows, seed=seed), config).fit()
  rows_of_parts = rows
  estimates: dict[str, np.ndarray] = {}
  if len(template.unknowns) > 1:
    rows_of_parts = rows.sample(config.max_part_rows, seed=seed)
    estimates = _Profile(template, rows_of_parts, config).estimates(values)
  parts = tuple(_part(template, rows_of_parts, values, estimates, unknown) for unknown in template.unknowns)
  return Problem(template, rows, values, parts, units)


def _check_units(template: Template, units: DataUnits) -> None:
  if not units.dimensions.allows(template.node):
    raise InputError(f"template: {template.text!r} cannot be a {units.target.text}: it adds what has different units, "
                     "or takes a function of what has one")
  for unknown in template.unknowns:
    if units.of_part(template.node, template.path(unknown.name)) is None:
      raise InputError(f"template: the units leave open which {template.call(unknown)} has in {template.text!r}: "
                       "leave them out, or one of the unknown functions")
    if TARGET in (template.names[column] for column in unknown.columns):
      raise InputError(f"template: with units no column of {template.call(unknown)} is called {TARGET!r}")


def _part(
  template: Template, rows: Rows, values: Mapping[str, float], estimates: Mapping[str, np.ndarray], unknown: Unknown
) -> Part:
  target, slope = solve_for(template, rows.x, rows.y, values, estimates, unknown.name)
  with np.errstate(over="ignore"):
    weights = rows.weights * slope**2
  is_used = np.isfinite(target) & np.isfinite(weights) & (weights > 0)
  if np.sum(is_used) < MIN_POINTS:
    raise InputError(f"template: {template.call(unknown)} has a value in {np.sum(is_used)} of {len(rows)} rows, "
                     f"expected at least {MIN_POINTS}: {template.text!r} cannot take the values of y")
  x = rows.x[np.ix_(is_used, unknown.columns)]
  names = tuple(template.names[column] for column in unknown.columns)
  return Part(unknown, (x, target[is_used], weights[is_used]), names, _variance(rows, slope, is_used))


@np.errstate(over="ignore", under="ignore")
def _variance(rows: Rows, slope: np.ndarray, is_used: np.ndarray) -> float | None:
  """That of y over the mean square of the slope by a function [N], in the rows that are used [N]."""
  y, weights = rows.y[is_used], rows.weights[is_used]
  squares = float(np.average(slope[is_used] ** 2, weights=weights))
  variance = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
  found = variance / squares if squares else math.inf
  return found if 0 < found < math.inf else None


def solve_for(
  template: Template, x: np.ndarray, y: np.ndarray, values: Mapping[str, float],
  estimates: Mapping[str, np.ndarray], name: str,
) -> tuple[np.ndarray, np.ndarray]:
  """`(value of an unknown function [N], slope of the template by it [N])` in each row; NaN where it has none.

  Args:
    values: of the parameters; estimates: values [N] of the unknown functions; of this one none is needed.
  """
  node, columns = as_columns(template, x.shape[1])
  path = template.path(name)
  numbers = fill(node, {}, values)
  zero = np.zeros(len(x))
  wide = np.column_stack([x, *(estimates.get(each.name, zero) for each in template.unknowns)])
  target = inverses.solve(numbers, path, wide, y)
  wide[:, columns[name]] = target
  return target, inverses.slope(numbers, path, wide)


def as_columns(template: Template, num_columns: int) -> tuple[Node, dict[str, int]]:
  """The tree with a column more for each unknown function, and which that is."""
  columns = {unknown.name: num_columns + i for i, unknown in enumerate(template.unknowns)}
  return fill(template.node, {name: variable(column) for name, column in columns.items()}, {}), columns


def make_part_task(problem: Problem, part: Part, options: SearchOptions) -> Task:
  """The task of an unknown function.

  The user's rules and guesses are those of the function, the rules for columns those that it has.
  Raises:
    InputError: see `make_task`.
  """
  template, rules = problem.template, options.restrictions
  rules.for_columns(template.names)
  if options.guesses and len(problem.parts) > 1:
    raise InputError(f"guesses: of several unknown functions none is guessed, got {options.guesses[0]!r}")
  own = dataclasses.replace(rules, required=tuple(name for name in rules.required if name in part.names),
                            excluded=tuple(name for name in rules.excluded if name in part.names))
  try:
    task = make_task(part.dataset, part.names, dataclasses.replace(
      options, restrictions=own, units=problem.units_of(part.unknown)))
    return dataclasses.replace(task, whole_variance=part.variance)
  except InputError as error:
    said = str(error)
    if said.startswith("y: "):  # which are not the user's
      said = f"its values, by {template.text!r} solved for it: {said.removeprefix('y: ')}"
    raise InputError(f"template: {template.call(part.unknown)}: {said}") from None


# --- parameters ------------------------------------------------------------------------------------------------------


class _Profile:
  """How well a template with polynomials for its functions fits rows, by its parameters."""

  def __init__(self, template: Template, rows: Rows, config: TemplatesConfig):
    self.template, self.rows, self._config = template, rows, config
    self.bases = {unknown.name: polynomials(rows.x[:, unknown.columns], config=config) for unknown in template.unknowns}
    self._root = np.sqrt(rows.weights)
    self._mean = np.average(rows.y, weights=rows.weights)
    self._is_linear = {name: self._has_linear(name) for name in template.parameters}
    # What moves a function by about 1: less of it would be lost among the digits of y.
    self._steps = {name: 1 / min(self._sizes_beside(name)) for name in template.parameters}

  @property
  def _linear(self) -> list[str]:
    return [name for name in self.template.parameters if self._is_linear[name]]

  @np.errstate(all="ignore")  # values far from the right ones overflow, and are told by that
  def fit(self) -> dict[str, float]:
    """Values of all parameters."""
    nonlinear = [name for name in self.template.parameters if not self._is_linear[name]]
    config = self._config
    if len(nonlinear) > config.max_nonlinear:
      raise InputError(f"template: expected at most {config.max_nonlinear} parameters that do not stand as a factor in "
                       f"a sum with the unknown function, got {', '.join(nonlinear)}")
    if not nonlinear:
      return self._with_linear({})
    grids = [self._sizes(name, config.num_sizes if len(nonlinear) == 1 else config.num_coarse) for name in nonlinear]
    points = np.array(list(itertools.product(*grids)))
    errors = np.array([np.sum(self._residual(dict(zip(nonlinear, point, strict=True))) ** 2) for point in points])
    descents = [self._descend(nonlinear, points[i]) for i in np.argsort(errors)[: config.num_descents]]
    _, best = min(descents, key=lambda each: each[0])
    return self._with_linear(dict(zip(nonlinear, best.tolist(), strict=True)))

  def _descend(self, names: Sequence[str], start: np.ndarray) -> tuple[float, np.ndarray]:
    # In shares of the start: SciPy's differences take numbers for about 1.
    found = optimize.least_squares(
      lambda shares: self._residual(dict(zip(names, shares * start, strict=True))), np.ones(len(start)),
      max_nfev=self._config.max_evaluations, xtol=1e-12, ftol=1e-14, gtol=None)
    return float(found.cost), found.x * start

  def _with_linear(self, values: dict[str, float]) -> dict[str, float]:
    found = values | self._solve(values)[1]
    return {name: found[name] for name in self.template.parameters}

  def _sizes(self, name: str, num: int) -> np.ndarray:
    """Values to try, near 1 and near 1 over the size of the columns that stand next to the parameter."""
    lowest, highest = self._config.decades
    logs = np.concatenate([np.linspace(lowest, highest, num) - math.log10(size) for size in self._sizes_beside(name)])
    spaced = np.unique(np.round((logs - lowest) * (num - 1) / (highest - lowest)))  # near ones once
    grid = 10 ** (lowest + spaced * (highest - lowest) / (num - 1))
    return np.concatenate([-grid[::-1], grid])

  def _residual(self, values: Mapping[str, float]) -> np.ndarray:
    """In units of y, weighted [N]; a row that has no value counts as much as its distance from the mean."""
    return self._solve(values)[0]

  def _solve(self, values: Mapping[str, float]) -> tuple[np.ndarray, dict[str, float], dict[str, np.ndarray]]:
    """`(residual [N], linear parameters, values [N] of the functions)` for values of the others."""
    names = [unknown.name for unknown in self.template.unknowns]
    linear, estimates, before = dict.fromkeys(self._linear, 0.0), self._start(), math.inf
    num_rounds = 1 if len(names) == 1 else self._config.num_rounds
    for name in itertools.chain.from_iterable(itertools.repeat(names, num_rounds)):
      residual, linear, estimates[name] = self._solve_one(name, values, linear, estimates)
      if name == names[-1]:
        error = float(residual @ residual)
        if not error < before * (1 - 1e-6):
          break
        before = error
    return residual, linear, estimates

  def _start(self) -> dict[str, np.ndarray]:
    """The functions are 1: of a product each is then the other's mean at first."""
    return {unknown.name: np.ones(len(self.rows)) for unknown in self.template.unknowns}

  def _solve_one(
    self, name: str, values: Mapping[str, float], linear: Mapping[str, float], estimates: Mapping[str, np.ndarray]
  ) -> tuple[np.ndarray, dict[str, float], np.ndarray]:
    """The best polynomials for one function, the others as they are, and the linear parameters with it."""
    def target_at(linear: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
      return solve_for(self.template, self.rows.x, self.rows.y, {**values, **linear}, estimates, name)

    zero = dict.fromkeys(linear, 0.0)
    target, slope = target_at(zero)
    moved = [(target_at({**zero, each: self._steps[each]})[0] - target) / self._steps[each] for each in linear]
    scale = self._root * slope
    design = np.column_stack([self.bases[name], *(-each for each in moved)])
    rows, y = scale[:, None] * design, scale * target
    is_used = (np.abs(y) < LARGEST) & (np.abs(rows) < LARGEST).all(axis=1)
    residual = self._root * (self.rows.y - self._mean)
    num = self.bases[name].shape[1]
    if np.sum(is_used) <= design.shape[1]:
      return residual, dict(linear), estimates[name]
    norms = np.linalg.norm(rows[is_used], axis=0)
    norms[~(np.isfinite(norms) & (norms > 0))] = 1.0
    solution = np.linalg.lstsq(rows[is_used] / norms, y[is_used], rcond=1e-12)[0] / norms
    residual[is_used] = y[is_used] - rows[is_used] @ solution
    residual = np.where(np.isfinite(residual), residual, self._root * (self.rows.y - self._mean))
    return residual, dict(zip(linear, solution[num:].tolist(), strict=True)), self.bases[name] @ solution[:num]

  @np.errstate(all="ignore")
  def estimates(self, values: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Values [N] of the unknown functions for values of all parameters."""
    self._is_linear = dict.fromkeys(self._is_linear, False)
    return self._together(values, self._solve(values)[2])

  def _together(self, values: Mapping[str, float], estimates: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Gauss-Newton steps of all functions at once: in turn they come near slowly where one makes up for another."""
    least = math.inf
    found = estimates
    for _ in range(self._config.num_rounds):
      residual, slopes = self._linearized(values, estimates)
      design = np.concatenate([slopes[name][:, None] * self.bases[name] for name in estimates], axis=1)
      is_used = np.isfinite(residual) & np.isfinite(design).all(axis=1)
      # A row without a value counts as much as its distance from the mean.
      counted = np.where(is_used, residual, self._root * (self.rows.y - self._mean))
      error = float(counted @ counted)
      if not error < least * (1 - 1e-6) or np.sum(is_used) <= design.shape[1]:
        break
      found, least = estimates, error
      steps = np.split(np.linalg.lstsq(design[is_used], residual[is_used], rcond=1e-9)[0],
                       np.cumsum([basis.shape[1] for basis in self.bases.values()])[:-1])
      estimates = {name: estimates[name] + basis @ step
                   for (name, basis), step in zip(self.bases.items(), steps, strict=True)}
    return found

  def _linearized(
    self, values: Mapping[str, float], estimates: Mapping[str, np.ndarray]
  ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What is left of y [N] with these functions, and the slope by each of them [N]; both weighted."""
    node, columns = as_columns(self.template, self.rows.x.shape[1])
    numbers = fill(node, {}, values)
    wide = np.column_stack([self.rows.x, *(estimates[name] for name in columns)])
    slopes = {name: self._root * inverses.slope(numbers, self.template.path(name), wide) for name in columns}
    return self._root * (self.rows.y - expression.evaluate(numbers, wide)), slopes

  @np.errstate(all="ignore")
  def _has_linear(self, name: str) -> bool:
    """Whether each unknown function, solved for, goes up evenly with a parameter and is as steep for any."""
    rng = np.random.default_rng(0)
    others = {other: float(rng.uniform(0.5, 1.5)) for other in self.template.parameters if other != name}
    return all(self._is_even(name, unknown.name, others, 1 / size)
               for unknown in self.template.unknowns for size in self._sizes_beside(name))

  def _is_even(self, name: str, unknown: str, others: Mapping[str, float], step: float) -> bool:
    """Whether a function goes up evenly with a parameter at 0, one step up and two and a half down."""
    (zero, steep), (one, steep_one), (far, steep_far) = (
      solve_for(self.template, self.rows.x, self.rows.y, {**others, name: at * step}, self._start(), unknown)
      for at in (0.0, 1.0, -2.5))
    is_used = np.isfinite(zero) & np.isfinite(steep)
    if not is_used.any():
      return False
    expected = (zero - 2.5 * (one - zero))[is_used]
    return all(np.allclose(each[is_used], steep[is_used], rtol=1e-8, atol=0) for each in (steep_one, steep_far)) and (
      np.allclose(far[is_used], expected, rtol=1e-8, atol=1e-8 * np.max(np.abs(expected))))

  def _sizes_beside(self, name: str) -> list[float]:
    """1, and the sizes of the columns that stand next to a parameter."""
    columns = _beside(self.template.node, name)
    sizes = [float(np.median(np.abs(self.rows.x[:, column]))) for column in columns]
    return [1.0, *(size for size in sizes if size > 0)]


def _beside(node: Node, name: str) -> list[int]:
  """Columns of the smallest part that holds a parameter and any column; none where there is no such part."""
  held = [part for part in walk(node) if any(each.value == name for each in walk(part))]
  with_columns = [part for part in held if has_column(part)]
  if not with_columns:
    return []
  return sorted({each.value for each in walk(with_columns[-1]) if each.token == VARIABLE})


def polynomials(x: np.ndarray, *, config: TemplatesConfig = DEFAULT.templates) -> np.ndarray:
  """Chebyshev polynomials of columns [N, D'], and their products up to a degree, as columns [N, P]; the first is 1."""
  num_rows, num_columns = x.shape
  most = min(num_rows // config.rows_per_polynomial, config.max_polynomials)
  degree = 1
  while math.comb(num_columns + degree + 1, num_columns) <= most and degree < config.max_degree:
    degree += 1
  scaled = np.stack([_scaled(x[:, i], config.wide) for i in range(num_columns)], axis=1)
  single = np.polynomial.chebyshev.chebvander(scaled, degree)  # [N, D', 1 + degree]
  exponents = sorted(_compositions(num_columns, degree), key=sum)
  return np.stack([np.prod(single[:, np.arange(num_columns), each], axis=1) for each in exponents], axis=1)


def _compositions(num: int, total: int) -> list[tuple[int, ...]]:
  """All so many whole numbers from 0 whose sum is at most `total`."""
  if num == 1:
    return [(first,) for first in range(total + 1)]
  return [(first, *rest) for first in range(total + 1) for rest in _compositions(num - 1, total - first)]


def _scaled(column: np.ndarray, wide: float) -> np.ndarray:
  """A column [N] brought to [-1, 1]; one over decades by its logarithm."""
  low, high = np.min(column), np.max(column)
  if low > 0 and high / low > wide:
    column = np.log(column)
    low, high = np.min(column), np.max(column)
  return np.zeros(len(column)) if high == low else 2 * (column - low) / (high - low) - 1
