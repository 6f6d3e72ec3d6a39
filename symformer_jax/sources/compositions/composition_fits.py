"""How near compositions come to goals: on a grid of their constants, and with these fitted.

A composition is `outer(c*inside + d)`, and inside is `inner(a*z + b)*factor(e*v + f) + k*w` for columns z, v and w.
What is outside of it is linear, and is projected out (Golub and Pereyra 1973), so that a fit has the inner constants
alone.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import CompositionsConfig
from symformer_jax.language.expression import Node, chain, number
from symformer_jax.sources.compositions import composition_stages as stages
from symformer_jax.sources.compositions.composition_goals import Goal

# Constants by place (a, b, e, f, k, c, d): so many inside; shifts, each after the factor of what it is added to.
NUM_INSIDE, SHIFTS = 5, (1, 3, 6)
# A composition of which the constant and the column beside it leave a smaller share (squared) is theirs: what single
# precision can tell.
INDEPENDENT = 1e-5
# Levenberg-Marquardt: first damping, what a step that gains or fails makes of it; step of a difference quotient.
DAMPING, GAINED, FAILED, STEP = 1e-2, 1 / 6, 5.0, 1e-6
# Of a derivative that is but a multiple of the composition this share (squared) is left by rounding.
DEPENDENT = 1e-12
# What stands inside varies by more than this share of its size: less is rounding.
SMALLEST_RANGE = 1e-9
# Compositions whose values are computed at once: 8 MB of 128 rows.
MOST_AT_ONCE = 16_384


class Leaf(NamedTuple):
  """A column without constants of its own: its formula, its values [N]."""

  node: Node
  values: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Inside:
  """What stands inside of a composition, but for its constants.

  Attributes:
    inner: a stage, of `leaf`; factor: a stage, of the leaf that it is multiplied by; beside: a leaf that is added.
  """

  inner: str
  leaf: Leaf
  factor: str = stages.NOTHING
  factor_leaf: Leaf | None = None
  beside: Leaf | None = None

  @property
  def functions(self) -> tuple[str, str, bool, bool]:
    """What is alike of insides that are fitted together."""
    return self.inner, self.factor, self.factor_leaf is not None, self.beside is not None

  def num_waves(self, config: CompositionsConfig) -> int:
    """Waves around it, as `stages.constants` counts them: columns have many turns, functions of them few."""
    if self.inner != stages.NOTHING:
      return 0
    return config.num_plain_waves if self.beside is None else config.num_waves_of_sums

  def build(self, constants: Sequence[float]) -> Node:
    """Its formula."""
    a, b, e, f, k = constants
    node = stages.build(self.inner, self.leaf.node, a, b, self.leaf.values)
    if self.factor_leaf is not None:
      factor = stages.build(self.factor, self.factor_leaf.node, e, f, self.factor_leaf.values)
      node = Node("*", (node, factor))
    return node if self.beside is None else chain("+", [node, Node("*", (self.beside.node, number(k)))])


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
  """A composition that comes near a goal.

  Attributes:
    outer: a stage; goal: its place in the list of goals.
    constants: see the module [7]; left: share of the goal that is not met.
  """

  inside: Inside
  outer: str
  goal: int
  constants: np.ndarray
  left: float

  def build(self) -> Node:
    """Its formula, without what is linear."""
    inside, (c, d) = self.constants[:NUM_INSIDE], self.constants[NUM_INSIDE:]
    [values] = _inside_values(self.inside.functions, _leaves(self.inside)[:, None], inside[None])
    return stages.build(self.outer, self.inside.build(inside.tolist()), float(c), float(d), values)


def _inside_values(functions: tuple[str, str, bool, bool], leaves: np.ndarray, constants: np.ndarray) -> np.ndarray:
  """Values [K, N] of what stands inside, for the leaves [3, K or 1, N] of each and its constants [K, 5 or more]."""
  inner, factor, has_factor, has_beside = functions
  found = stages.values(inner, leaves[0], constants[:, 0], constants[:, 1])
  if has_factor:
    found = found * stages.values(factor, leaves[1], constants[:, 2], constants[:, 3])
  return found + constants[:, 4:5] * leaves[2] if has_beside else found


def _leaves(inside: Inside) -> np.ndarray:
  """Values of its leaves [3, N], 0 for those that it has not."""
  nothing = np.zeros_like(inside.leaf.values)
  return np.stack([inside.leaf.values, *(nothing if leaf is None else leaf.values
                                         for leaf in (inside.factor_leaf, inside.beside))])


class Block(NamedTuple):
  """What stands inside for all constants of the grid: these [V, 5], values [V, N]."""

  inside: Inside
  constants: np.ndarray
  values: np.ndarray


@np.errstate(all="ignore")  # what is not finite is left out
def block_of(inside: Inside, config: CompositionsConfig) -> Block:
  """All of the grid that is defined at the rows and varies."""
  leaves = _leaves(inside)
  [of_inner], [of_factor] = (stages.constants(name, each[None], config) for name, each in zip(
    (inside.inner, inside.factor), leaves[:2], strict=True))
  grid = np.column_stack([np.repeat(of_inner, len(of_factor), axis=0), np.tile(of_factor, (len(of_inner), 1)),
                          np.zeros(len(of_inner) * len(of_factor))])
  if inside.beside is not None:
    alone = _inside_values((*inside.functions[:3], False), leaves[:, None], grid)
    ratio = np.ptp(alone, axis=1) / np.ptp(leaves[2])
    grid, ratio = (np.repeat(each, len(config.multiples), axis=0) for each in (grid, ratio))
    grid[:, 4] = ratio * np.tile(config.multiples, len(alone))
  values = _inside_values(inside.functions, leaves[:, None], grid)
  is_usable = np.ptp(values, axis=1) > SMALLEST_RANGE * np.max(np.abs(values), axis=1)  # NaN is not above
  return Block(inside, grid[is_usable], values[is_usable])


def outer_functions(inside: Inside, names: Sequence[str]) -> Sequence[str]:
  """What may be around it: around a product of two functions nothing, for there are thousands of each such product."""
  return [stages.NOTHING] if inside.factor != stages.NOTHING else names


class Scan:
  """A look at whole grids for many goals at once: products of matrices in single precision."""

  def __init__(self, goals: Sequence[Goal], outer: Sequence[str], config: CompositionsConfig):
    self._outer, self._config = outer, config
    roots = np.stack([goal.root for goal in goals], axis=1)  # [N, G]
    along = np.stack([np.stack([goal.rest, *goal.basis], axis=1) for goal in goals], axis=2)  # [N, 3, G]
    self._along = (roots[:, None] * along).reshape(len(roots), -1).astype(np.float32)
    self._squares = (roots**2).astype(np.float32)

  def nearest(self, block: Block) -> Iterator[Found]:
    """For each goal and outer function the few places of the grid that leave least."""
    for outer in outer_functions(block.inside, self._outer):
      of_outer, left = map(np.concatenate, zip(*self._nearest_places(block, outer), strict=True))  # [V, G, 2], [V, G]
      for ranked in np.argsort(left, axis=0, kind="stable")[: self._config.num_alike]:
        for goal, v in enumerate(ranked):
          if left[v, goal] < self._config.most_left:
            constants = np.concatenate([block.constants[v], of_outer[v, goal]])
            yield Found(block.inside, outer, goal, constants, max(float(left[v, goal]), 0.0))

  def _nearest_places(self, block: Block, outer: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each place inside the constants of the outer function that leave least of each goal [V, G, 2], and what they
    leave [V, G]; some at once.
    """
    grid = stages.constants(outer, block.values, self._config, num_waves=block.inside.num_waves(self._config))
    step = max(1, MOST_AT_ONCE // grid.shape[1])
    for begin in range(0, len(grid), step):
      interruption.check()
      constants, values = (each[begin : begin + step] for each in (grid, block.values))
      left = self._left(stages.on_grid(outer, values, constants).reshape(-1, values.shape[1]))
      left = left.reshape(*constants.shape[:2], -1)  # [V, C, G]
      yield constants[np.arange(len(left))[:, None], np.argmin(left, axis=1)], np.min(left, axis=1)

  @np.errstate(all="ignore")
  def _left(self, columns: np.ndarray) -> np.ndarray:
    """What each of some columns [K, N] leaves of each goal [K, G]; infinite for one that is made of what is beside it.
    """
    size = np.max(np.abs(columns), axis=1)
    is_finite = np.isfinite(size) & (size > 0)
    columns = np.where(is_finite[:, None], columns / np.where(is_finite, size, 1)[:, None], 0)
    rest, *beside = np.square(columns @ self._along).reshape(len(columns), 3, -1).transpose(1, 0, 2)
    whole = np.square(columns) @ self._squares
    own = whole - beside[0] - beside[1]
    is_own = is_finite[:, None] & (own > INDEPENDENT * whole)
    return np.where(is_own, 1 - rest / np.where(is_own, own, 1), np.inf)


@np.errstate(all="ignore")  # a step that leads nowhere is not taken
def fit(found: Sequence[Found], goals: Sequence[Goal], num_steps: int) -> list[Found]:
  """With their constants fitted to the goals' rows, in their order: those of the same functions together."""
  fitted: dict[int, Found] = {}
  alike: dict[tuple, list[int]] = {}
  for i, each in enumerate(found):
    alike.setdefault((each.outer, each.inside.functions), []).append(i)
  for places in alike.values():
    interruption.check()
    some = [found[i] for i in places]
    constants, left = _Fit(some, [goals[each.goal] for each in some]).run(num_steps)
    fitted |= {i: dataclasses.replace(each, constants=constants[k], left=float(left[k]))
               for k, (i, each) in enumerate(zip(places, some, strict=True))}
  return [fitted[i] for i in range(len(found))]


class _State(NamedTuple):
  """Constants [K, 7]; columns without what is beside them [K, N], their sizes and their factors in the goal [K]; errors
  [K, N], the sums of their squares [K].
  """

  constants: np.ndarray
  columns: np.ndarray
  sizes: np.ndarray
  factors: np.ndarray
  errors: np.ndarray
  left: np.ndarray


class _Fit:
  """Compositions of the same functions: variable projection with Kaufman's derivatives (1975)."""

  def __init__(self, found: Sequence[Found], goals: Sequence[Goal]):
    self._outer, self._functions = found[0].outer, found[0].inside.functions
    self._begin = np.stack([each.constants for each in found])
    self._leaves = np.stack([_leaves(each.inside) for each in found], axis=1)  # [3, K, N]
    self._root = np.stack([goal.root for goal in goals])  # [K, N]
    self._basis = np.stack([goal.basis for goal in goals], axis=1)  # [2, K, N]
    self._rest = np.stack([goal.rest for goal in goals])  # [K, N]
    inner, factor, has_factor, has_beside = self._functions
    used = [inner != stages.NOTHING] * 2 + [has_factor and factor != stages.NOTHING] * 2 + [has_beside] + [
      self._outer != stages.NOTHING] * 2
    self._free: list[int] = np.flatnonzero(used).tolist()
    inside = _inside_values(self._functions, self._leaves, self._begin)
    self._sizes = [np.max(np.abs(each), axis=1) for each in (*self._leaves[:2], inside)]

  def run(self, num_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Constants [K, 7], and what they leave [K]."""
    state = self._look(self._begin)
    damping = np.full(len(self._begin), DAMPING)
    for _ in range(num_steps if len(self._free) else 0):
      constants = state.constants.copy()
      constants[:, self._free] += self._step(state, damping)
      after = self._look(constants)
      is_better = after.left < state.left
      state = _State(*(np.where(is_better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                       for new, old in zip(after, state, strict=True)))
      damping = np.where(is_better, np.maximum(damping * GAINED, 1e-12), damping * FAILED)
    return state.constants, state.left

  def _argument(self, place: int, constants: np.ndarray) -> np.ndarray:
    """Sizes [K] of what a shift is added to, and of itself: it may be 0."""
    return np.maximum(np.abs(constants[:, place]), np.abs(constants[:, place - 1]) * self._sizes[SHIFTS.index(place)])

  def _columns(self, constants: np.ndarray) -> np.ndarray:
    inside = _inside_values(self._functions, self._leaves, constants)
    columns = self._root * stages.values(self._outer, inside, constants[:, 5], constants[:, 6])
    return columns - sum(each * np.sum(each * columns, axis=1, keepdims=True) for each in self._basis)

  def _look(self, constants: np.ndarray) -> _State:
    columns = self._columns(constants)
    sizes = np.sqrt(np.sum(columns**2, axis=1))
    unit = columns / sizes[:, None]
    factors = np.sum(unit * self._rest, axis=1)
    errors = self._rest - factors[:, None] * unit
    left = np.sum(errors**2, axis=1)
    return _State(constants, columns, sizes, factors, errors, np.where(np.isfinite(left), left, np.inf))

  def _step(self, state: _State, damping: np.ndarray) -> np.ndarray:
    """Changes of the free constants [K, F]."""
    unit = state.columns / state.sizes[:, None]
    slopes = []
    for place in self._free:
      moved = state.constants.copy()
      by = STEP * (self._argument(place, moved) if place in SHIFTS else np.abs(moved[:, place]))
      moved[:, place] += by
      slope = (self._columns(moved) - state.columns) / by[:, None]
      own = slope - unit * np.sum(unit * slope, axis=1, keepdims=True)
      # The shift of an exponential's argument is a factor outside.
      is_own = np.sum(own**2, axis=1) > DEPENDENT * np.sum(slope**2, axis=1)
      slopes.append(np.where(is_own[:, None], own, 0))
    jacobian = np.stack(slopes, axis=1) * (state.factors / state.sizes)[:, None, None]  # [K, F, N]
    jacobian = np.where(np.isfinite(jacobian), jacobian, 0)
    normal = jacobian @ jacobian.transpose(0, 2, 1)
    scale = np.sqrt(np.maximum(np.einsum("kff->kf", normal), np.finfo(np.float64).tiny))
    normal = normal / scale[:, :, None] / scale[:, None] + damping[:, None, None] * np.eye(len(slopes))
    towards = np.einsum("kfn,kn->kf", jacobian, np.where(np.isfinite(state.errors), state.errors, 0)) / scale
    return np.linalg.solve(normal, towards[:, :, None])[:, :, 0] / scale
