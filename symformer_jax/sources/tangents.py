"""What constants and columns at the places of a formula can do to its values, to first order."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.language import adjoints

# Directions that are left of a derivative by those before it: less is rounding. And weights that are one direction.
LEAST, SAME = 1e-9, 1e-9


class Graft(NamedTuple):
  """A place of a formula where a column may go.

  Attributes:
    path: of the place; is_product: whether the column multiplies there.
    weight: what one unit of the column changes the formula's values by [N].
  """

  path: tuple[int, ...]
  is_product: bool
  weight: np.ndarray


def orthonormal(vectors: Sequence[np.ndarray]) -> np.ndarray:
  """Directions [C, N] of vectors [N], each beyond those before; what is not finite, or not beyond them, has none."""
  basis: list[np.ndarray] = []
  for vector in vectors:
    size = np.linalg.norm(vector)
    if not np.isfinite(size) or size == 0:
      continue
    unit = vector / size
    for _ in range(2):  # the second time takes away what rounding left
      unit = unit - sum((b * (b @ unit) for b in basis), np.zeros_like(unit))
    left = np.linalg.norm(unit)
    if left > LEAST:
      basis.append(unit / left)
  return np.array(basis)


def beyond(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
  """What orthonormal directions [C, N] leave of vectors [N] or [N, P]."""
  if len(basis):
    for _ in range(2):  # the second time takes away what rounding left
      vectors = vectors - basis.T @ (basis @ vectors)
  return vectors


@np.errstate(all="ignore")  # what is not finite is left out
def grafts(found: Sequence[adjoints.Place], root: np.ndarray, *, kinds_apart: bool = False) -> list[Graft]:
  """Places that differ in what a column does there: terms of one sum are one place.

  Args:
    found: see `adjoints.places`; root: of the rows' weights [N].
    kinds_apart: whether a factor and a summand that do the same to first order, as 1 + f beside an exponential and f
      inside, are two: only a fit tells which is meant.
  """
  kept: list[Graft] = []
  units: dict[bool, list[np.ndarray]] = {False: [], True: []}
  for place in found:
    for is_product in (False, True):
      weight = place.adjoint * place.values if is_product else place.adjoint
      size = np.linalg.norm(root * weight)
      if not np.isfinite(size) or size == 0 or (is_product and place.node.is_number):
        continue
      unit = root * weight / size
      known = units[is_product] if kinds_apart else [*units[False], *units[True]]
      if all(1 - abs(unit @ other) > SAME for other in known):
        kept.append(Graft(place.path, is_product, weight))
        units[is_product].append(unit)
  return kept
