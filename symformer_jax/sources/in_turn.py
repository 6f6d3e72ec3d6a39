"""Candidates of several kinds, so that each kind has its share of what is fitted."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def in_turn(lists: Iterable[Iterable[T]]) -> Iterator[T]:
  """The first of each list, then the second of each, ...; nothing of any list is made before it is asked for."""
  missing: Any = object()
  going = [iter(each) for each in lists]
  while going:
    left = []
    for iterator in going:
      if (item := next(iterator, missing)) is not missing:
        left.append(iterator)
        yield item
    going = left
