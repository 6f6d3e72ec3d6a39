"""Columns: functions of the variables at the points of a data set, of which sums are made."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from symformer_jax.language.expression import Node


class Columns(Protocol):
  """Functions of the variables: values [N, P] relative to the largest of each, all finite; the group and
  the tier of each [P].
  """

  columns: np.ndarray
  groups: np.ndarray
  tiers: np.ndarray

  def node(self, index: int) -> Node:
    """The formula of a column."""

  def scale(self, index: int) -> float:
    """The largest value of that formula, by which its column is divided."""


class Union:
  """Several such, side by side, in single precision."""

  def __init__(self, groups: Sequence[Columns]):
    self._groups = groups
    self.columns = np.concatenate([group.columns.astype(np.float32) for group in groups], axis=1)
    self.tiers = np.concatenate([group.tiers for group in groups])
    ends = np.cumsum([0, *(np.max(group.groups, initial=-1) + 1 for group in groups)])
    self.groups = np.concatenate([group.groups + end for group, end in zip(groups, ends, strict=False)])

  def node(self, index: int) -> Node:
    group, index = self._find(index)
    return group.node(index)

  def scale(self, index: int) -> float:
    group, index = self._find(index)
    return group.scale(index)

  def _find(self, index: int) -> tuple[Columns, int]:
    for group in self._groups:
      if index < group.columns.shape[1]:
        return group, index
      index -= group.columns.shape[1]
    raise IndexError(index)


class Subset:
  """Some of them."""

  def __init__(self, whole: Columns, indices: np.ndarray):
    self._whole, self._indices = whole, indices
    # All of them need no copy of what may be many megabytes.
    is_all = len(indices) == whole.columns.shape[1]
    self.columns = whole.columns if is_all else whole.columns[:, indices]
    self.groups, self.tiers = whole.groups[indices], whole.tiers[indices]

  def node(self, index: int) -> Node:
    return self._whole.node(int(self._indices[index]))

  def scale(self, index: int) -> float:
    return self._whole.scale(int(self._indices[index]))
