"""Products of powers of several columns: all of a grid of exponents, at some rows."""

from collections.abc import Sequence
import math

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node
from symformer_jax.sources.monomials import Values, to_node


class Grid:
  """Products of powers of the columns.

  Args:
    rows: where they have to be defined; columns: of x, those that vary are used.
    exponents: beside 0, those of all columns; the first of these that make no more products than `most` are taken.
    num_rows: that the products are computed at, drawn with the seed 0.
  Attributes:
    exponents: for each of these columns, those whose powers are defined and differ from row to row; none where all
      make too many products.
  """

  def __init__(
    self, rows: Rows, columns: Sequence[int], exponents: Sequence[Sequence[float]], *, num_rows: int, most: int,
  ):
    self._rows, self._some = rows, rows.sample(num_rows, seed=0)
    self._columns = rows.varying(columns)
    usable = (self._usable(some) for some in exponents)
    self.exponents = next((some for some in usable if math.prod(map(len, some)) <= most), [])

  def _usable(self, exponents: Sequence[float]) -> list[list[float]]:
    return [[0.0, *(e for e in exponents if self._is_usable(column, e))] for column in self._columns]

  def _is_usable(self, column: int, exponent: float) -> bool:
    values = Values(self._rows.x)([((column, exponent),)])[:, 0]
    return bool(np.all(np.isfinite(values)) and np.ptp(values) > 0)

  def products(self) -> np.ndarray:
    """All of them [P, N], single precision, of largest size 1; the exponents of the last column change fastest."""
    found = np.ones((1, len(self._some)), np.float32)
    for column, exponents in zip(self._columns, self.exponents, strict=True):
      interruption.check()
      found = (found[:, None] * self._powers(column, exponents)).reshape(-1, found.shape[1])
    return found / np.max(np.abs(found), axis=1, keepdims=True)

  def _powers(self, column: int, exponents: Sequence[float]) -> np.ndarray:
    """[E, N] of mean square 1: single precision does not hold products of columns of any size."""
    powers = Values(self._some.x)([((column, e),) for e in exponents])
    return (powers / np.sqrt(np.mean(powers**2, axis=0))).T.astype(np.float32)

  def node(self, index: int) -> Node:
    """The formula of a product."""
    places = np.unravel_index(index, [len(each) for each in self.exponents])
    powers = [exponents[place] for exponents, place in zip(self.exponents, places, strict=True)]
    return to_node(tuple((column, e) for column, e in zip(self._columns, powers, strict=True) if e))
