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
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import monomials
from symformer_jax.sources.monomials import Monomial

# A column of which the line leaves no more than this share is one of its own terms.
_LEAST_SHARE = 1e-8
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
  """Those that leave least of the logarithm of y beside its straight line of logarithms, the best of one and of two
  monomials, for constants that are still to be fitted; none of a y of both signs.

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
  basis = np.linalg.qr(line / np.linalg.norm(line, axis=0))[0]
  target = _without(root * np.log(size), basis)
  some = _columns(rows, varies, root, basis, config)
  if not some.monomials or not np.linalg.norm(target) > 0:
    return []
  chosen = _best_sets(target, some, config)
  found = [_written(rows, positive, [some.monomials[i] for i in each], root) for each in chosen]
  return [node for node in found if node is not None]


def _columns(
  rows: Rows, varies: Sequence[int], root: np.ndarray, basis: np.ndarray, config: ExponentialProductsConfig
) -> _Columns:
  names = monomials.up_to(varies, config.max_size, at_most=config.max_monomials, exponents=config.exponents)
  interruption.check()
  values = root[:, None] * monomials.Values(rows.x)(names)
  lengths = np.linalg.norm(values, axis=0)
  left = _without(values / lengths, basis)
  shares = np.linalg.norm(left, axis=0)
  is_usable = np.isfinite(shares) & (shares > _LEAST_SHARE)
  return _Columns([name for name, usable in zip(names, is_usable, strict=True) if usable],
                  left[:, is_usable] / shares[is_usable])


def _best_sets(target: np.ndarray, some: _Columns, config: ExponentialProductsConfig) -> list[tuple[int, ...]]:
  """Of one monomial those that explain most of the target [N], of two the best with each of the first."""
  explained = (some.left.T @ target) ** 2
  firsts = np.argsort(-explained, kind="stable")[: config.num_beams].tolist()
  pairs: list[tuple[float, tuple[int, int]]] = []
  for first in firsts:
    interruption.check()
    direction = some.left[:, first]
    others = some.left - np.outer(direction, direction @ some.left)
    shares = np.sum(others**2, axis=0)
    further = np.where(shares > _LEAST_SHARE, (others.T @ target) ** 2 / np.maximum(shares, _LEAST_SHARE), 0.0)
    second = int(np.argmax(further))
    pairs.append((float(explained[first] + further[second]), (first, second)))
  pairs.sort(key=lambda pair: -pair[0])
  return [*((first,) for first in firsts[: config.num_kept]), *(pair for _, pair in pairs[: config.num_kept])]


def _written(rows: Rows, positive: Sequence[int], some: Sequence[Monomial], root: np.ndarray) -> Node | None:
  """The product, with constants of least squares; None where its size is out of range."""
  terms = np.column_stack([*np.log(rows.x[:, list(positive)]).T, monomials.Values(rows.x)(some), np.ones(len(rows))])
  lengths = np.linalg.norm(root[:, None] * terms, axis=0)
  target = root * np.log(np.abs(rows.y))
  solution = np.linalg.lstsq(root[:, None] * terms / lengths, target, rcond=None)[0] / lengths
  *factors, constant = map(float, solution)
  if not np.all(np.isfinite(solution)) or abs(constant) > _LARGEST_EXPONENT:
    return None
  powers = [power(variable(i), number(factor)) for i, factor in zip(positive, factors, strict=False)]
  exponents = [Node("*", (monomials.to_node(each), number(factor)))
               for each, factor in zip(some, factors[len(positive) :], strict=True)]
  size = number(math.copysign(math.exp(constant), rows.y[0]))
  return tidy(chain("*", [size, *powers, Node("exp", (chain("+", exponents),))]))


def _without(values: np.ndarray, basis: np.ndarray) -> np.ndarray:
  """Less what an orthonormal basis [N, K] explains; twice, for what rounding leaves."""
  for _ in range(2):
    values = values - basis @ (basis.T @ values)
  return values
