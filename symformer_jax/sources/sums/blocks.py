"""Some things at once, where a call takes longer than what it computes."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

# Columns of some hundred rows: more of them would not be in the processor's cache.
COLUMNS_AT_ONCE = 128

T = TypeVar("T")


def in_blocks(every: Iterable[T], width: Callable[[T], int]) -> Iterator[list[T]]:
  """Lists of what comes, in its order, each ended by the one that makes it `COLUMNS_AT_ONCE` columns or more."""
  block: list[T] = []
  num_columns = 0
  for each in every:
    block.append(each)
    num_columns += width(each)
    if num_columns >= COLUMNS_AT_ONCE:
      yield block
      block, num_columns = [], 0
  if block:
    yield block
