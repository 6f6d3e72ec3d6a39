"""Curves of one column with two and three inner constants as a source, fitted in rounds.

`25 + 75*(1 + 1.4*x**2)**0.69`, `0.05 + 4.95*(1 + 4*x**2)**(-0.3)`, `100 - 95*exp(-0.034*x**4 - 0.22*x**2)`, `2 + 5*(1 +
3*exp(-0.8*x))**(-1.7)`, `1.3*x**0.6*exp(-0.4*x) + 0.7`: one of the shapes of `curve_shapes`, a constant and perhaps a
multiple of x make y, its inverse or its logarithm. No grid of three constants is fine enough to tell which; from a
coarse one the best few of each shape are fitted in a few steps, the best of these in more. What is linear is projected
out (Golub and Pereyra 1973), with Kaufman's derivatives (1975), as in `pair_fits`.
"""

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
from symformer_jax.sources.curves.pair_fits import DAMPING, FAILED, GAINED, INDEPENDENT, LEAST_DAMPING, LONGEST
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
  starts = [_Curves(np.full(len(shape.starts), i), shape.starts) for i, shape in enumerate(shapes)]
  if not starts:
    return iter(())
  every = _Curves(*(np.concatenate(each) for each in zip(*starts, strict=True)))
  values = _values(every, shapes, len(some))
  links = [link for link in map(LINKS.__getitem__, config.links)
           if link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))]
  targets = [(link, terms.whole(link, some)) for link in links]
  goals = [(link, Rows(some.x, *target), [variable(column)] * has_line)
           for link, target in targets if target is not None for has_line in (False, True)]
  fits = [(link, goal, beside, _fits(goal, beside, shapes, every, values, config)) for link, goal, beside in goals]
  return in_turn([_written(link, goal, beside, shapes, found) for link, goal, beside, found in fits])


class _Curves(NamedTuple):
  """Places of shapes [P] and constants [P, 3]."""

  shapes: np.ndarray
  constants: np.ndarray

  def of(self, some: np.ndarray) -> "_Curves":
    return _Curves(self.shapes[some], self.constants[some])


def _fits(
  rows: Rows, beside: Sequence[Node], shapes: Sequence[Shape], curves: _Curves, values: np.ndarray,
  config: CurveFitsConfig,
) -> _Curves:
  """Fitted curves, the nearest first, one of each shape; `values` of those that are tried at the rows [P, N]."""
  goal = _Goal(rows, [expression.evaluate(node, rows.x) for node in beside])
  left = goal.look(values).left
  per_shape = (np.flatnonzero(curves.shapes == i) for i in range(len(shapes)))
  chosen = [places[np.argsort(left[places], kind="stable")[: config.num_begun]] for places in per_shape]
  curves = curves.of(np.concatenate(chosen))
  for num, num_steps in config.rounds:
    curves, left = _fit(curves, shapes, goal, num_steps)
    order = np.argsort(left, kind="stable")[:num]
    curves, left = curves.of(order), left[order]
  first = np.unique(curves.shapes, return_index=True)[1]
  return curves.of(np.array([i for i in sorted(first) if np.isfinite(left[i])], int))


def _written(
  link: Link, rows: Rows, beside: Sequence[Node], shapes: Sequence[Shape], curves: _Curves
) -> Iterator[Node]:
  """Formulas for y, their linear factors by least squares; none of what is not finite."""
  for i, constants in zip(*curves, strict=True):
    node = sum_of([shapes[i].node(constants), *beside], rows)
    if node is not None:
      yield link.undo(node)


class _State(NamedTuple):
  """Directions [P, N] of length 1, factors [P] of the values, errors [P, N], sums of their squares [P]."""

  directions: np.ndarray
  factors: np.ndarray
  errors: np.ndarray
  left: np.ndarray


class _Goal:
  """What curves are fitted to: rows, with a constant and other columns [N] beside."""

  def __init__(self, rows: Rows, others: Sequence[np.ndarray]):
    self.root = np.sqrt(rows.weights)
    beside = self.root[:, None] * np.column_stack([*others, np.ones(len(rows))])
    self._basis = np.linalg.qr(beside / np.linalg.norm(beside, axis=0))[0]
    rest = self.without_beside(self.root * rows.y)
    self._rest = rest / np.linalg.norm(rest)

  def without_beside(self, columns: np.ndarray) -> np.ndarray:
    return columns - columns @ self._basis @ self._basis.T

  def look(self, values: np.ndarray) -> _State:
    """Of curves with these values [P, N]."""
    columns = self.without_beside(self.root * values)
    sizes = np.linalg.norm(columns, axis=1)
    is_own = sizes > INDEPENDENT * np.linalg.norm(self.root * values, axis=1)
    directions = np.where(is_own[:, None], columns / sizes[:, None], np.nan)
    along = directions @ self._rest
    errors = self._rest - along[:, None] * directions
    left = np.sum(errors**2, axis=1)
    return _State(directions, along / sizes, errors, np.where(np.isfinite(left), left, np.inf))


def _values(curves: _Curves, shapes: Sequence[Shape], num_rows: int) -> np.ndarray:
  """At the rows, the largest of each 1 [P, N]."""
  found = np.empty((len(curves.shapes), num_rows))
  for i in np.unique(curves.shapes):
    some = curves.shapes == i
    found[some] = shapes[i].values(curves.constants[some])
  return found / np.max(np.abs(found), axis=1, keepdims=True)


def _fit(curves: _Curves, shapes: Sequence[Shape], goal: _Goal, num_steps: int) -> tuple[_Curves, np.ndarray]:
  """Curves with their constants fitted by Levenberg and Marquardt, and what each leaves [P]."""
  num_rows, constants = len(goal.root), curves.constants
  values = _values(curves, shapes, num_rows)
  state, damping = goal.look(values), np.full(len(constants), DAMPING)
  for _ in range(num_steps):
    interruption.check()
    moved = constants + _step(curves._replace(constants=constants), values, state, shapes, goal, damping)
    values_there = _values(curves._replace(constants=moved), shapes, num_rows)
    there = goal.look(values_there)
    is_better = there.left < state.left
    constants, values = (np.where(is_better[:, None], *each) for each in ((moved, constants), (values_there, values)))
    state = _State(*(np.where(is_better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                     for new, old in zip(there, state, strict=True)))
    damping = np.where(is_better, np.maximum(damping * GAINED, LEAST_DAMPING), damping * FAILED)
  return curves._replace(constants=constants), state.left


def _step(
  curves: _Curves, values: np.ndarray, state: _State, shapes: Sequence[Shape], goal: _Goal, damping: np.ndarray
) -> np.ndarray:
  """Changes of the constants [P, 3]."""
  slopes = []
  for k in range(NUM_CONSTANTS):
    moved = _values(curves._replace(constants=curves.constants + _STEP * np.eye(NUM_CONSTANTS)[k]), shapes,
                    values.shape[1])
    slope = goal.without_beside(goal.root * (moved - values)) / _STEP * state.factors[:, None]
    slopes.append(slope - np.sum(slope * state.directions, axis=1, keepdims=True) * state.directions)
  jacobian = np.nan_to_num(np.stack(slopes, axis=1), nan=0.0, posinf=0.0, neginf=0.0)
  normal = jacobian @ jacobian.transpose(0, 2, 1)
  scale = np.sqrt(np.maximum(np.einsum("pkk->pk", normal), np.finfo(np.float64).tiny))
  normal = normal / scale[:, :, None] / scale[:, None] + damping[:, None, None] * np.eye(NUM_CONSTANTS)
  towards = np.einsum("pkn,pn->pk", jacobian, np.nan_to_num(state.errors)) / scale
  return np.clip(np.linalg.solve(normal, towards[:, :, None])[:, :, 0] / scale, -LONGEST, LONGEST)
