"""Sums of two functions with one inner constant each, and of further functions without, many of them fitted at once.

Of a coarse grid the right pair of functions may be the thousandth; a few steps of a fit tell it from the others. What
is linear is projected out (Golub and Pereyra 1973), with Kaufman's derivatives (1975), all pairs together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.rows import Rows
from symformer_jax.sources.curves.inner_functions import KINDS

# Levenberg-Marquardt as in `compositions.composition_fits`: first and least damping, what a step that gains or fails
# makes of it.
DAMPING, LEAST_DAMPING, GAINED, FAILED = 1e-2, 1e-12, 1 / 6, 5.0
# Steps of the logarithm of a constant's distance from where the function ends: that of a difference quotient, whose
# rounding is then 1e-11 of a slope; the longest of a fit, by which a constant grows 4.5 times (and by which an exponent
# or a factor of `curve_shapes` changes).
STEP, LONGEST = 1e-5, 1.5
# A function of which what is beside it leaves a smaller share (of its length) is made of that.
INDEPENDENT = 1e-7

ORDER = tuple(KINDS)


class Slots(NamedTuple):
  """One function of each of P pairs.

  Attributes:
    kinds: places in `ORDER` [P]; arguments: values [P, N].
    bases: [P] and signs: [P], of constants = base + sign*exp(logarithm).
  """

  kinds: np.ndarray
  arguments: np.ndarray
  bases: np.ndarray
  signs: np.ndarray

  def constants(self, logarithms: np.ndarray) -> np.ndarray:
    """[P]."""
    return self.bases + self.signs * np.exp(logarithms)

  def of(self, some: np.ndarray) -> "Slots":
    """Of some pairs."""
    return Slots(*(each[some] for each in self))


def slots_of(names: Sequence[str], arguments: np.ndarray, constants: np.ndarray) -> tuple[Slots, np.ndarray]:
  """Functions of these kinds and constants [P], and the logarithms of these [P]: see `Slots`."""
  kinds = np.array([ORDER.index(name) for name in names])
  ends = {"none": np.zeros(len(names)), "low": -arguments.min(axis=1), "high": arguments.max(axis=1)}
  bases = np.array([ends[KINDS[name].end][i] for i, name in enumerate(names)])
  # Below the low end a hyperbola is on the other side of its pole.
  is_beyond = np.array([KINDS[name].end == "low" for name in names]) & (constants < bases)
  bases = np.where(is_beyond, -ends["high"], bases)
  distances = constants - bases  # 0 where rounding has brought a constant to its end: such a pair is never finite
  return Slots(kinds, arguments, bases, np.sign(distances)), np.log(np.abs(distances))


class Fits(NamedTuple):
  """Fitted pairs: logarithms of their constants [P, 2], what they leave [P], of a goal of length 1 once
  they are fitted."""

  logarithms: np.ndarray
  left: np.ndarray


class Goal:
  """What pairs are fitted to: rows, and functions [N, K] that stand beside each pair, a constant among them."""

  def __init__(self, rows: Rows, beside: np.ndarray):
    self._root = np.sqrt(rows.weights)
    self._basis = np.linalg.qr(self._root[:, None] * beside)[0]
    rest = self._without_beside(self._root * rows.y)
    self._rest = rest / np.linalg.norm(rest)

  def _without_beside(self, columns: np.ndarray) -> np.ndarray:
    return columns - columns @ self._basis @ self._basis.T

  def columns(self, slots: Sequence[Slots], logarithms: np.ndarray) -> np.ndarray:
    """Both functions, of largest size 1, times the weights' root and without what is beside them [P, 2, N]."""
    values = np.stack([self._root * _values(slot, logarithms[:, i]) for i, slot in enumerate(slots)], axis=1)
    return self._without_beside(values / np.max(np.abs(values), axis=2, keepdims=True))

  def look(self, slots: Sequence[Slots], logarithms: np.ndarray) -> "State":
    """Where pairs with these constants stand."""
    first, second = self.columns(slots, logarithms).transpose(1, 0, 2)
    one, size = _unit(first)
    across = np.sum(one * second, axis=1)
    other, rest = _unit(second - across[:, None] * one)
    along = np.stack([one @ self._rest, other @ self._rest], axis=1)
    errors = self._rest - along[:, :1] * one - along[:, 1:] * other
    factors = np.stack([(along[:, 0] - along[:, 1] * across / rest) / size, along[:, 1] / rest], axis=1)
    left = np.sum(errors**2, axis=1)
    return State(logarithms, np.stack([one, other], axis=1), factors, errors, np.where(np.isfinite(left), left, np.inf))


class State(NamedTuple):
  """Logarithms [P, 2]; columns [P, 2, N] orthonormal in turn, and factors [P, 2] of the functions; errors [P, N], the
  sums of their squares [P].
  """

  logarithms: np.ndarray
  directions: np.ndarray
  factors: np.ndarray
  errors: np.ndarray
  left: np.ndarray


@np.errstate(all="ignore")  # a step that leads nowhere is not taken
def fit(slots: Sequence[Slots], logarithms: np.ndarray, goal: Goal, num_steps: int) -> Fits:
  """Pairs with their inner constants fitted, from logarithms [P, 2] on."""
  state, damping = goal.look(slots, logarithms), np.full(len(logarithms), DAMPING)
  for _ in range(num_steps):
    interruption.check()
    after = goal.look(slots, state.logarithms + _step(state, slots, goal, damping))
    is_better = after.left < state.left
    state = State(*(np.where(is_better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                    for new, old in zip(after, state, strict=True)))
    damping = np.where(is_better, np.maximum(damping * GAINED, LEAST_DAMPING), damping * FAILED)
  return Fits(state.logarithms, state.left)


def _unit(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Of length 1, 0 for what is rounding, and the lengths."""
  sizes = np.linalg.norm(vectors, axis=1)
  is_own = sizes > INDEPENDENT
  return np.where(is_own[:, None], vectors / sizes[:, None], 0.0), np.where(is_own, sizes, 1.0)


def _step(state: State, slots: Sequence[Slots], goal: Goal, damping: np.ndarray) -> np.ndarray:
  """Changes of the logarithms [P, 2]."""
  begin, slopes = goal.columns(slots, state.logarithms), []
  moved = goal.columns(slots, state.logarithms + STEP)  # a function depends on its own constant alone
  for i in range(2):
    slope = state.factors[:, i, None] * (moved[:, i] - begin[:, i]) / STEP
    along = np.einsum("pkn,pn->pk", state.directions, slope)
    slopes.append(slope - np.einsum("pk,pkn->pn", along, state.directions))
  return damped_step(np.stack(slopes, axis=1), state.errors, damping)


def damped_step(slopes: np.ndarray, errors: np.ndarray, damping: np.ndarray) -> np.ndarray:
  """The step of Levenberg and Marquardt [P, K], none longer than `LONGEST`, of slopes [P, K, N], errors [P, N] and
  damping [P]; what is not finite counts as 0.
  """
  jacobian = np.where(np.isfinite(slopes), slopes, 0)
  normal = jacobian @ jacobian.transpose(0, 2, 1)
  scale = np.sqrt(np.maximum(np.einsum("pkk->pk", normal), np.finfo(np.float64).tiny))
  normal = normal / scale[:, :, None] / scale[:, None] + damping[:, None, None] * np.eye(slopes.shape[1])
  towards = np.einsum("pkn,pn->pk", jacobian, np.where(np.isfinite(errors), errors, 0)) / scale
  return np.clip(np.linalg.solve(normal, towards[:, :, None])[:, :, 0] / scale, -LONGEST, LONGEST)


def _values(slots: Slots, logarithms: np.ndarray) -> np.ndarray:
  """At the rows [P, N]."""
  constants, found = slots.constants(logarithms)[:, None], np.empty_like(slots.arguments)
  for kind in np.unique(slots.kinds):
    some = slots.kinds == kind
    found[some] = KINDS[ORDER[kind]].values(slots.arguments[some], constants[some])
  return found
