"""Products of powers of columns times the exponential of one or two such: `2*x/(y*z)*exp(-w**2/(2*z**2))`.

The logarithm of a y of one sign is then a straight line of logarithms and of one or two monomials. Of a thousand of
these one product of matrices says how much each explains of what the line leaves (orthogonal least squares: Chen,
Billings and Luo 1989); for the second, a few of the first are carried along.
"""

from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import ExponentialProductsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import monomials
from symformer_jax.sources.monomials import Monomial
from symformer_jax.sources.projections import without

# A column of which the line, or another one, leaves no more than this share of its length is the same.
_LEAST_SHARE = 1e-8
# A term that is in no row more than this share of the largest logarithm is rounding.
_ROUNDING = 1e-12
# A constant factor is no larger than the exponential of this, and no smaller than its inverse.
_LARGEST_EXPONENT = 300.0


class _Columns(NamedTuple):
  """Monomials, and what the line leaves of each.

  Attributes:
    monomials: P of them; left: [N, P], of unit length, in weighted rows.
  """

  monomials: Sequence[Monomial]
  left: np.ndarray


@np.errstate(all="ignore")  # what is not finite is left out
def products_with_exponentials(rows: Rows, columns: Sequence[int], config: ExponentialProductsConfig) -> list[Node]:
  """Those that leave next to nothing of the logarithm of y beside its straight line of logarithms, of one monomial and
  of two, for constants that are still to be fitted; none of a y of both signs.

  Of y with errors none: with five constants they follow any smooth curve, and stood for `2*x/(x + 0.5)`.

  A row's error counts by y**2 besides, as that of a logarithm is one of y.
  """
  size, varies = np.abs(rows.y), rows.varying(columns)
  if not 0 < len(varies) <= config.max_columns or np.ptp(np.sign(rows.y)) or not size.all() or np.ptp(size) == 0:
    return []
  positive = [i for i in varies if np.all(rows.x[:, i] > 0)]
  num_terms = len(positive) + 1
  if rows.num_distinct < config.rows_per_term * (num_terms + 2):
    return []
  root = np.sqrt(rows.weights) * size / size.max()
  line = root[:, None] * np.column_stack([*np.log(rows.x[:, positive]).T, np.ones(len(rows))])
  basis = np.linalg.qr(line)[0]
  target = without(root * np.log(size), basis)
  candidates = _columns(rows, varies, root, basis, config)
  if not candidates.monomials or not np.linalg.norm(target) > 0:
    return []
  written = (_written(rows, positive, [candidates.monomials[i] for i in chosen], root)
             for chosen in _best_sets(target, candidates, config))
  return list(dict.fromkeys(node for node in written if node is not None and _left(node, rows) <= config.most_left))


def _left(node: Node, rows: Rows) -> float:
  """Share of the variance of y that a formula leaves."""
  mean = np.average(rows.y, weights=rows.weights)
  errors, spread = (np.average(each**2, weights=rows.weights) for each in (
    expression.evaluate(node, rows.x) - rows.y, rows.y - mean))
  return float(errors / spread)


def _columns(
  rows: Rows, varies: Sequence[int], root: np.ndarray, basis: np.ndarray, config: ExponentialProductsConfig
) -> _Columns:
  names = monomials.up_to(varies, config.max_size, at_most=config.max_monomials, exponents=config.exponents)
  interruption.check()
  values = root[:, None] * monomials.Values(rows.x)(names)
  lengths = np.linalg.norm(values, axis=0)
  left = without(values / lengths, basis)
  shares = np.linalg.norm(left, axis=0)
  is_usable = np.isfinite(shares) & (shares > _LEAST_SHARE)
  return _Columns([name for name, usable in zip(names, is_usable, strict=True) if usable],
                  left[:, is_usable] / shares[is_usable])


def _best_sets(target: np.ndarray, candidates: _Columns, config: ExponentialProductsConfig) -> list[tuple[int, ...]]:
  """Of one monomial those that explain most of the target [N], of two the best with each of the first."""
  left = candidates.left
  explained = (left.T @ target) ** 2
  firsts = np.argsort(-explained, kind="stable")[: config.num_beams].tolist()
  pairs: dict[tuple[int, int], float] = {}  # each once: what two explain differs by rounding with the order
  for first in firsts:
    interruption.check()
    others = left - np.outer(left[:, first], left[:, first] @ left)
    shares = np.sum(others**2, axis=0)
    is_new = shares > _LEAST_SHARE**2
    further = np.where(is_new, (others.T @ target) ** 2 / np.where(is_new, shares, 1.0), 0.0)
    second = int(np.argmax(further))
    pairs[min(first, second), max(first, second)] = float(explained[first] + further[second])
  best = sorted(pairs, key=lambda pair: -pairs[pair])
  return [*((first,) for first in firsts[: config.num_kept]), *best[: config.num_kept]]


def _written(rows: Rows, positive: Sequence[int], inner: Sequence[Monomial], root: np.ndarray) -> Node | None:
  """The product, with constants of least squares, without what is rounding; None where they are out of range."""
  nodes = [*(Node("ln", (variable(i),)) for i in positive), *map(monomials.to_node, inner)]
  terms = np.column_stack([*(expression.evaluate(node, rows.x) for node in nodes), np.ones(len(rows))])
  target = root * np.log(np.abs(rows.y))
  solution = _least_squares(root[:, None] * terms, target)
  is_there = np.max(np.abs(terms * solution), axis=0) > _ROUNDING * np.max(np.abs(np.log(np.abs(rows.y))))
  is_there[-1] = True
  *factors, constant = map(float, _least_squares(root[:, None] * terms[:, is_there], target))
  if not all(map(math.isfinite, (*factors, constant))):
    return None
  left = [(node, factor) for node, factor in zip(
    (node for node, there in zip(nodes, is_there, strict=False) if there), factors, strict=True)]
  powers = [power(node.args[0], number(factor)) for node, factor in left if node.token == "ln"]
  exponents = [Node("*", (node, number(factor))) for node, factor in left if node.token != "ln"]
  sign = math.copysign(1.0, rows.y[0])
  if abs(constant) > _LARGEST_EXPONENT:  # as of years
    exponents, constant = [*exponents, number(constant)], 0.0
  exponential = [Node("exp", (chain("+", exponents),))] if exponents else []
  return tidy(chain("*", [number(sign * math.exp(constant)), *powers, *exponential]))


def _least_squares(design: np.ndarray, target: np.ndarray) -> np.ndarray:
  """Coefficients [K] of columns of any sizes [N, K]."""
  lengths = np.linalg.norm(design, axis=0)
  return np.linalg.lstsq(design / lengths, target, rcond=None)[0] / lengths
