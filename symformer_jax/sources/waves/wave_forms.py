"""Fractions of waves as formulas: by the tangent where they are such, or nearly.

A fraction is (a + b*cos(t) + c*sin(t))/(1 + e*cos(t)), or has cos(t) alone below the line, with t counted from where
the wave below is highest: the phase less its lag.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.language.expression import Node, chain, number
from symformer_jax.language.tidy import tidy

# A share of this size is rounding where the equation holds in every row.
ROUNDING = 1e-6


class Part(NamedTuple):
  """What a phase has multiples of, or what multiplies a fraction: values [N] at the rows that are looked at."""

  node: Node
  values: np.ndarray

  def range(self, share: float) -> float:
    """Of a share of the rows, those in the middle."""
    return float(np.subtract(*np.quantile(self.values, (0.5 + share / 2, 0.5 - share / 2))))


class Phase(NamedTuple):
  """A sum of multiples.

  Attributes:
    parts: what they are multiples of; frequencies: these.
  """

  parts: tuple[Part, ...]
  frequencies: np.ndarray

  @property
  def values(self) -> np.ndarray:
    return self.frequencies @ np.stack([part.values for part in self.parts])

  def node(self, share: float, away: float) -> Node:
    """A share of it, and a constant."""
    multiples = [Node("*", (part.node, number(float(share * frequency))))
                 for part, frequency in zip(self.parts, self.frequencies, strict=True)]
    return chain("+", [*multiples, number(away)] if abs(away) > ROUNDING else multiples)


class _Term(NamedTuple):
  """A term of a sum without its factor: formula, values [N]; the factor."""

  node: Node
  values: np.ndarray
  factor: float


# Makes the terms by a phase, its lag, coefficients of 1, cos and sin above the line [3], and e below it.
_Form = Callable[[Phase, float, np.ndarray, float], list[_Term]]


def written(
  phase: Phase, factors: Sequence[Part], below: np.ndarray, above: np.ndarray, *, nearly: float
) -> Iterator[Node]:
  """The ways to write a fraction by its coefficients, see `wave_equations`, whole and without what is small in it.

  Args:
    nearly: shares of each other at which two sizes may be the same, or one of them 0: both forms are made.
  """
  size, lag = float(np.hypot(below[1], below[2])), float(np.arctan2(below[2], below[1]))
  constant = float(below[0])
  if constant < 0:
    above, constant, lag = -above, -constant, lag + np.pi
  cos, sin = np.cos(lag), np.sin(lag)
  turned = np.stack([above[:, 0], above[:, 1] * cos + above[:, 2] * sin, above[:, 2] * cos - above[:, 1] * sin], axis=1)
  outer, ratio = [Part(number(1.0), np.ones(len(phase.values))), *factors], size / constant if constant else np.inf
  for make, divisor in _forms(constant, size, nearly):
    terms = [_Term(chain("*", [part.node, term.node]), part.values * term.values, term.factor)
             for part, some in zip(outer, turned / divisor, strict=True)
             for term in make(phase, lag, some, ratio)]
    sizes = [abs(term.factor) * float(np.median(np.abs(term.values))) for term in terms]
    for least in (ROUNDING, nearly):
      yield tidy(chain("+", [Node("*", (term.node, number(float(term.factor))))
                             for term, own in zip(terms, sizes, strict=True) if own > least * max(sizes)]))


def _forms(constant: float, size: float, nearly: float) -> Iterator[tuple[_Form, float]]:
  """Which may be right, and what is divided by, for a denominator constant + size*cos(t)."""
  if constant < nearly * size:
    yield _by_tangent, size
  if abs(constant - size) < nearly * size:
    yield _by_half_tangent, size
  if size < nearly * constant:
    yield _by_wave, constant
  if size > ROUNDING * constant and min(constant, abs(constant - size)) > ROUNDING * size:
    yield _by_fraction, constant


def _by_tangent(phase: Phase, lag: float, above: np.ndarray, ratio: float) -> list[_Term]:
  """(a + b*cos + c*sin)/cos = b + c*tan + a/cos"""
  one, cos, sin = above
  wave, tangent = _wave("cos", phase, -lag), _tangent(phase, lag, 1.0)
  values = phase.values - lag
  return [_plain(cos, values), _Term(tangent, np.tan(values), sin),
          _Term(Node("inv", (wave,)), 1 / np.cos(values), one)]


def _by_half_tangent(phase: Phase, lag: float, above: np.ndarray, ratio: float) -> list[_Term]:
  """Above 1 + cos, with u the tangent of half the phase: 1/(1 + cos) = (1 + u**2)/2, sin/(1 + cos) = u."""
  one, cos, sin = above
  tangent, values = _tangent(phase, lag, 0.5), np.tan((phase.values - lag) / 2)
  return [_plain((one + cos) / 2, values), _Term(tangent, values, sin),
          _Term(Node("pow2", (tangent,)), values**2, (one - cos) / 2)]


def _by_wave(phase: Phase, lag: float, above: np.ndarray, ratio: float) -> list[_Term]:
  """Above a constant."""
  one, cos, sin = above
  ahead = lag + float(np.arctan2(sin, cos))
  wave = _wave("cos", phase, -ahead)
  return [_plain(one, phase.values), _Term(wave, np.cos(phase.values - ahead), float(np.hypot(cos, sin)))]


def _by_fraction(phase: Phase, lag: float, above: np.ndarray, ratio: float) -> list[_Term]:
  """(a + b*cos + c*sin)/(1 + e*cos) = b/e + (a - b/e + c*sin)/(1 + e*cos)"""
  one, cos, sin = above
  inverse = Node("inv", (chain("+", [Node("*", (_wave("cos", phase, -lag), number(ratio))), number(1.0)]),))
  values = phase.values - lag
  below = 1 + ratio * np.cos(values)
  return [_plain(cos / ratio, values), _Term(inverse, 1 / below, one - cos / ratio),
          _Term(chain("*", [_wave("sin", phase, -lag), inverse]), np.sin(values) / below, sin)]


def _plain(factor: float, values: np.ndarray) -> _Term:
  return _Term(number(1.0), np.ones_like(values), factor)


def _tangent(phase: Phase, lag: float, share: float) -> Node:
  """Of a share of the phase less its lag; a cotangent where it is one."""
  away = _nearest(-share * lag, np.pi)
  if np.pi / 2 - abs(away) < ROUNDING:
    return Node("neg", (Node("inv", (Node("tan", (phase.node(share, 0.0),)),)),))
  return Node("tan", (phase.node(share, away),))


def _wave(token: str, phase: Phase, away: float) -> Node:
  return Node(token, (phase.node(1.0, _nearest(away, 2 * np.pi)),))


def _nearest(angle: float, period: float) -> float:
  """Less as many periods as bring it nearest to 0."""
  return float(angle - period * np.round(angle / period))
