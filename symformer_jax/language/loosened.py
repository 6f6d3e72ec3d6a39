"""Formulas of which more numbers count as constants than were fitted: whole numbers, and phases that are not written.

A whole number of a fitted formula was found or snapped, and a phase of 0 was dropped, because the data leave that open
within their noise: how well the other constants are known depends on it as on any constant.
"""

import math

import numpy as np

from symformer_jax.language import programs
from symformer_jax.language.expression import Node, flatten, number, walk
from symformer_jax.language.operators import WAVES

# What a number of a loosened formula is: fitted before, a whole number, the phase of a wave that has none.
FITTED, WHOLE, PHASE = range(3)


def whole_numbers(node: Node) -> list[float]:
  """The whole numbers of a formula that may be parameters of it, in prefix order.

  Not exponents, nor a 1 or -1 that is a factor: these are the form.
  """
  return [value for value, kind in zip(_numbers(node), kinds_of_numbers(node), strict=True) if kind == WHOLE]


def kinds_of_numbers(node: Node) -> list[int | None]:
  """FITTED, WHOLE, or None for what is part of the form, of each number of a formula in prefix order."""
  found: list[int | None] = []

  def look(part: Node, parent: str, place: int) -> None:
    if part.is_number:
      found.append(_kind(part, parent, place))
    for i, arg in enumerate(part.args):
      look(arg, part.token, i)

  look(node, "", 0)
  return found


def loosen(node: Node) -> tuple[Node, list[int]]:
  """A tree of the same values, all of whose parameters are constants, and what each of these is [C], in prefix order.

  A whole number is the next number above it, which `programs.is_constant`; a phase is the least number above 0.
  """
  kinds: list[int] = []

  def look(part: Node, parent: str, place: int) -> Node:
    if part.is_number:
      kind = _kind(part, parent, place)
      if kind is None:
        return part
      kinds.append(kind)
      return _next_number(part.value) if kind == WHOLE else part
    args = tuple(look(arg, part.token, i) for i, arg in enumerate(part.args))
    if part.token in WAVES and not _has_phase(part.args[0]):
      kinds.append(PHASE)
      args = (Node("+", (*args, _next_number(0.0))),)
    return part._replace(args=args)

  return look(node, "", 0), kinds


def _numbers(node: Node) -> list[float]:
  return [part.value for part in walk(node) if part.is_number]


def _kind(node: Node, parent: str, place: int) -> int | None:
  if programs.is_constant(node):
    return FITTED
  is_form = parent == "pow" and place == 1 or parent in ("*", "/") and abs(node.value) == 1
  return None if is_form else WHOLE


def _has_phase(argument: Node) -> bool:
  """Whether a summand of a wave's argument reads no column."""
  return any(all(part.args or part.is_number for part in walk(term)) for term in flatten(argument, "+"))


def _next_number(value: float) -> Node:
  return number(float(np.nextafter(value, math.inf)))
