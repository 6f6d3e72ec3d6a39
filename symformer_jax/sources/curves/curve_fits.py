"""Curves of one column with two and three inner constants as a source, fitted in rounds.

`25 + 75*(1 + 1.4*x**2)**0.69`, `0.05 + 4.95*(1 + 4*x**2)**(-0.3)`, `100 - 95*exp(-0.034*x**4 - 0.22*x**2)`, `2 + 5*(1 +
3*exp(-0.8*x))**(-1.7)`, `1.3*x**0.6*exp(-0.4*x) + 0.7`: one of the shapes of `curve_shapes`, a constant and perhaps a
multiple of x make y, its inverse or its logarithm. No grid of three constants is fine enough to tell which; from a
coarse one the best few of each shape are fitted in a few steps, the best of these in more. What is linear is projected
out (Golub and Pereyra 1973), with Kaufman's derivatives (1975), as in `pair_fits`.
"""

import collections
from collections.abc import Iterator, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, CurveFitsConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, variable
from symformer_jax.language.rules import Rule
from symformer_jax.sources.curves.curve_shapes import NUM_CONSTANTS, Shape, shapes_of
from symformer_jax.sources.curves.inner_pairs import sum_of
from symformer_jax.sources.curves.pair_fits import DAMPING, FAILED, GAINED, INDEPENDENT, LEAST_DAMPING, damped_step
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums, terms

# Of a constant, for a difference quotient: its rounding is then 1e-10 of a slope.
_STEP = 1e-6


@dataclasses.dataclass(frozen=True)
class CurveFits(Stateless):
  """Of the only column that varies."""

  config: SearchConfig = DEFAULT
  name: str = "curve_fits"

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.curve_fits.turns

  def supports(self, task: Task) -> bool:
    return pair_sums.can_add(task) and len(task.fit_rows.varying(task.columns)) == 1

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    [column] = task.fit_rows.varying(task.columns)
    found = fitted_curves(task.fit_rows, column, task.rule, self.config.curve_fits)
    return pair_sums.allowed(found, task, num, self.config.terms)


@np.errstate(all="ignore")  # what is not finite is left out
def fitted_curves(rows: Rows, column: int, rule: Rule, config: CurveFitsConfig) -> Iterator[Node]:
  """`a + b*F`, also beside a multiple of x: of all functions of y in turn the nearest first, of each shape one."""
  some = rows.sample(config.num_rows, seed=0)
  shapes = [shape for shape in shapes_of(some.x[:, column], column, config)
            if all(map(rule.allows_operator, shape.operators))]
  if not shapes:
    return iter(())
  links = [link for link in map(LINKS.__getitem__, config.links)
           if link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))]
  targets = [(link, terms.whole(link, some)) for link in links]
  every = [_Goal(link, Rows(some.x, *target), (variable(column),) * has_line)
           for link, target in targets if target is not None for has_line in (False, True)]
  goals = [goal for goal in every if not goal.is_met]
  curves = _Fits(shapes, goals, len(some)).nearest(config)
  return in_turn([_written(goal, shapes, curves.of(curves.goals == i)) for i, goal in enumerate(goals)])


class _Curves(NamedTuple):
  """Places of goals and shapes [P], constants [P, 3]."""

  goals: np.ndarray
  shapes: np.ndarray
  constants: np.ndarray

  def of(self, some: np.ndarray) -> "_Curves":
    return _Curves(*(each[some] for each in self))


class _Goal:
  """What curves are fitted to: a function of y at rows, with a constant and other columns beside.

  Attributes:
    link: the function; rows: of its values; beside: the other columns' formulas.
    root: of the weights [N]; rest: of unit length, what is beside leaves of the values times that [N].
    is_met: whether that is rounding.
  """

  def __init__(self, link: Link, rows: Rows, beside: Sequence[Node]):
    self.link, self.rows, self.beside, self.root = link, rows, beside, np.sqrt(rows.weights)
    others = [expression.evaluate(node, rows.x) for node in beside]
    columns = self.root[:, None] * np.column_stack([*others, np.ones(len(rows))])
    self._basis = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[0]
    rest = self.project(rows.y)
    size = np.linalg.norm(rest)
    self.is_met = not size > INDEPENDENT * np.linalg.norm(self.root * rows.y)
    self.rest = rest / size

  def project(self, values: np.ndarray) -> np.ndarray:
    """Values [..., N] times the weights' root, without what is beside them."""
    columns = self.root * values
    return columns - columns @ self._basis @ self._basis.T


class _State(NamedTuple):
  """How curves stand.

  Attributes:
    values: the largest of each 1 [P, N]; directions: of length 1, what is beside left out [P, N]; factors: of the
      values [P]; errors [P, N]; left: sums of their squares [P].
  """

  values: np.ndarray
  directions: np.ndarray
  factors: np.ndarray
  errors: np.ndarray
  left: np.ndarray


def _written(goal: _Goal, shapes: Sequence[Shape], curves: _Curves) -> Iterator[Node]:
  """Formulas for y, their linear factors by least squares; none of what is not finite."""
  for i, constants in zip(curves.shapes, curves.constants, strict=True):
    node = _sum(goal, shapes[i], constants)
    if node is not None:
      yield goal.link.undo(node)


@np.errstate(all="ignore")  # what is not finite is left out
def _sum(goal: _Goal, shape: Shape, constants: np.ndarray) -> Node | None:
  return sum_of([shape.node(constants), *goal.beside], goal.rows)


def _few_of_each(places: np.ndarray, shapes: np.ndarray, most: int) -> np.ndarray:
  """The first so many places of each shape."""
  taken = collections.Counter[int]()
  kept = []
  for place, shape in zip(places.tolist(), shapes.tolist(), strict=True):
    taken[shape] += 1
    if taken[shape] <= most:
      kept.append(place)
  return np.array(kept, int)


class _Fits:
  """Fits of all curves for all goals at once: a step of a few is as dear as one of hundreds."""

  def __init__(self, shapes: Sequence[Shape], goals: Sequence[_Goal], num_rows: int):
    self._shapes, self._goals, self._num_rows = shapes, goals, num_rows

  def nearest(self, config: CurveFitsConfig) -> _Curves:
    """Fitted curves, the nearest of each goal first, one of each shape."""
    curves = self._begun(config.num_begun)
    for num, num_steps in config.rounds:
      curves, left = self._fit(curves, num_steps)
      order = np.argsort(left, kind="stable")
      of_goals = [order[(curves.goals[order] == i) & np.isfinite(left[order])] for i in range(len(self._goals))]
      chosen = [_few_of_each(places, curves.shapes[places], config.num_alike)[:num] for places in of_goals]
      curves = curves.of(np.concatenate(chosen or [np.zeros(0, int)]))
    keys = np.stack([curves.goals, curves.shapes])
    return curves.of(np.sort(np.unique(keys, axis=1, return_index=True)[1]))

  def _begun(self, num: int) -> _Curves:
    """So many starts of each shape, the nearest to each goal."""
    places = np.repeat(np.arange(len(self._shapes)), [len(shape.starts) for shape in self._shapes])
    starts = np.concatenate([shape.starts for shape in self._shapes])
    values, begun = self._values(places, starts), []
    for i, goal in enumerate(self._goals):
      left = _state(values, goal.project(values), goal.rest).left
      for k in range(len(self._shapes)):
        of_shape = np.flatnonzero(places == k)
        chosen = of_shape[np.argsort(left[of_shape], kind="stable")[:num]]
        begun.append(_Curves(np.full(len(chosen), i), places[chosen], starts[chosen]))
    return _Curves(*map(np.concatenate, zip(*begun, strict=True))) if begun else _Curves(
      np.zeros(0, int), np.zeros(0, int), np.zeros((0, NUM_CONSTANTS)))

  def _values(self, shapes: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """At the rows, the largest of each 1 [P, N]."""
    found = np.empty((len(shapes), self._num_rows))
    for i in np.unique(shapes):
      some = shapes == i
      found[some] = self._shapes[i].values(constants[some])
    return found / np.max(np.abs(found), axis=1, keepdims=True)

  def _project(self, values: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Values [..., P, N], each by its goal."""
    found = np.empty_like(values)
    for i in np.unique(goals):
      found[..., goals == i, :] = self._goals[i].project(values[..., goals == i, :])
    return found

  def _look(self, curves: _Curves) -> _State:
    values = self._values(curves.shapes, curves.constants)
    rests = np.stack([goal.rest for goal in self._goals])[curves.goals]
    return _state(values, self._project(values, curves.goals), rests)

  def _fit(self, curves: _Curves, num_steps: int) -> tuple[_Curves, np.ndarray]:
    """Curves with their constants fitted by Levenberg and Marquardt, and what each leaves [P]."""
    if not len(curves.shapes):
      return curves, np.zeros(0)
    state, damping = self._look(curves), np.full(len(curves.shapes), DAMPING)
    for _ in range(num_steps):
      interruption.check()
      moved = curves._replace(constants=curves.constants + self._step(curves, state, damping))
      there = self._look(moved)
      is_better = there.left < state.left
      curves = curves._replace(constants=np.where(is_better[:, None], moved.constants, curves.constants))
      state = _State(*(np.where(is_better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                       for new, old in zip(there, state, strict=True)))
      damping = np.where(is_better, np.maximum(damping * GAINED, LEAST_DAMPING), damping * FAILED)
    return curves, state.left

  def _step(self, curves: _Curves, state: _State, damping: np.ndarray) -> np.ndarray:
    """Changes of the constants [P, 3]."""
    moved = curves.constants + _STEP * np.eye(NUM_CONSTANTS)[:, None]  # [3, P, 3]
    values = self._values(np.tile(curves.shapes, NUM_CONSTANTS), moved.reshape(-1, NUM_CONSTANTS))
    slopes = (values.reshape(NUM_CONSTANTS, *state.values.shape) - state.values) / _STEP
    slopes = self._project(slopes, curves.goals) * state.factors[:, None]
    slopes -= np.sum(slopes * state.directions, axis=-1, keepdims=True) * state.directions
    return damped_step(slopes.transpose(1, 0, 2), state.errors, damping)


def _state(values: np.ndarray, columns: np.ndarray, rests: np.ndarray) -> _State:
  """Of curves with these values; columns: these projected [P, N]; `rests` of the goals [N] or [P, N]."""
  sizes = np.linalg.norm(columns, axis=1)
  directions = np.where(sizes[:, None] > INDEPENDENT, columns / sizes[:, None], np.nan)
  along = np.sum(directions * rests, axis=1)
  errors = rests - along[:, None] * directions
  left = np.sum(errors**2, axis=1)
  return _State(values, directions, along / sizes, errors, np.where(np.isfinite(left), left, np.inf))
