"""Candidates of several kinds, so that each kind has its share of what is fitted."""

from collections.abc import Iterable, Iterator
import itertools
from typing import Any, TypeVar

T = TypeVar("T")


def in_turn(lists: Iterable[Iterable[T]]) -> Iterator[T]:
  """The first of each list, then the second of each, ...; no more of a list is made than is asked for."""
  missing: Any = object()
  return (each for rank in itertools.zip_longest(*lists, fillvalue=missing) for each in rank if each is not missing)
