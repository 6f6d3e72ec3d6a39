"""Formulas solved for a part of them, number by number: which operators have an inverse, and how steep they are."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.language import expression, operators
from symformer_jax.language.expression import Node


class _Inverse(NamedTuple):
  """Of an operator with one argument unknown, the other operand (if any) known; arrays [N].

  Attributes:
    solve: `(value, other)` to the unknown argument, NaN where there is none.
    slope: `(argument, other)` to the derivative of the operator by it.
  """

  solve: Callable[[np.ndarray, np.ndarray], np.ndarray]
  slope: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _root(value: np.ndarray, exponent: np.ndarray) -> np.ndarray:
  """The base of a power; of a whole odd exponent with the sign of the value, else the positive one."""
  is_odd = exponent % 2 == 1
  size = np.power(np.abs(value), 1 / exponent)
  return np.where(is_odd, np.sign(value) * size, np.where(value >= 0, size, np.nan))


def _within(value: np.ndarray, low: float, high: float) -> np.ndarray:
  return np.where((value >= low) & (value <= high), value, np.nan)


# By operator and place of the unknown argument. Of even powers the positive root is taken.
_INVERSES: dict[tuple[str, int], _Inverse] = {
  ("+", 0): _Inverse(lambda v, o: v - o, lambda a, o: np.ones_like(a)),
  ("*", 0): _Inverse(lambda v, o: v / o, lambda a, o: o + 0 * a),
  ("neg", 0): _Inverse(lambda v, o: -v, lambda a, o: -np.ones_like(a)),
  ("inv", 0): _Inverse(lambda v, o: 1 / v, lambda a, o: -1 / a**2),
  ("pow2", 0): _Inverse(lambda v, o: np.sqrt(v), lambda a, o: 2 * a),
  ("pow3", 0): _Inverse(lambda v, o: np.cbrt(v), lambda a, o: 3 * a**2),
  ("sqrt", 0): _Inverse(lambda v, o: _within(v, 0, np.inf) ** 2, lambda a, o: 0.5 / np.sqrt(a)),
  ("exp", 0): _Inverse(lambda v, o: np.log(v), lambda a, o: np.exp(a)),
  ("ln", 0): _Inverse(lambda v, o: np.exp(v), lambda a, o: 1 / a),
  ("asin", 0): _Inverse(lambda v, o: np.sin(_within(v, -np.pi / 2, np.pi / 2)), lambda a, o: 1 / np.sqrt(1 - a**2)),
  ("acos", 0): _Inverse(lambda v, o: np.cos(_within(v, 0, np.pi)), lambda a, o: -1 / np.sqrt(1 - a**2)),
  ("atan", 0): _Inverse(lambda v, o: np.tan(_within(v, -np.pi / 2, np.pi / 2)), lambda a, o: 1 / (1 + a**2)),
  ("pow", 0): _Inverse(_root, lambda a, o: o * np.power(a, o - 1)),
  ("pow", 1): _Inverse(lambda v, o: np.log(v) / np.log(o), lambda a, o: np.log(o) * np.power(o, a)),
}
_INVERSES |= {(token, 1): _INVERSES[token, 0] for token in ("+", "*")}
SUPPORTED = ("+", "-", "*", "/", "powers", "sqrt", "exp", "log", "arcsin", "arccos", "arctan")


def obstacle(node: Node, path: Sequence[int]) -> str | None:
  """The operator on a way from the root that has no inverse, as Python calls it; None where there is none."""
  for i in path:
    if (node.token, i) not in _INVERSES:
      return {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "ln": "log"}.get(node.token, node.token)
    node = node.args[i]
  return None


@np.errstate(all="ignore")  # what has no solution shows in the result
def solve(node: Node, path: Sequence[int], x: np.ndarray, y: np.ndarray) -> np.ndarray:
  """The values [N] that the part at the end of a path must have for the formula to be y [N].

  Args:
    node: a tree over x [N, D], whatever stands at the end of the path.
    path: numbers of arguments from the root; it has no `obstacle`.
  Returns:
    NaN or infinite where there is no such value.
  """
  for i in path:
    y = _INVERSES[node.token, i].solve(y, _other(node, i, x))
    node = node.args[i]
  return y


@np.errstate(all="ignore")
def slope(node: Node, path: Sequence[int], x: np.ndarray) -> np.ndarray:
  """Derivative [N] of a formula over x [N, D] by the part at the end of a path."""
  if not path:
    return np.ones(len(x))
  i, *rest = path
  inner = expression.evaluate(node.args[i], x)
  return _INVERSES[node.token, i].slope(inner, _other(node, i, x)) * slope(node.args[i], rest, x)


def _other(node: Node, i: int, x: np.ndarray) -> np.ndarray:
  """The other operand [N]; of one argument nothing that matters."""
  if operators.BY_NAME[node.token].arity == 1:
    return np.zeros(len(x))
  return expression.evaluate(node.args[1 - i], x)
