"""Some things at once: what comes stays in its order, and blocks end where they are wide enough."""

import itertools

from symformer_jax.sources.sums import blocks


def test_blocks_end_where_they_are_wide_enough(monkeypatch):
  monkeypatch.setattr(blocks, "COLUMNS_AT_ONCE", 4)
  found = list(blocks.in_blocks([3, 1, 0, 5, 1, 2], lambda width: width))
  assert found == [[3, 1], [0, 5], [1, 2]]
  assert list(blocks.in_blocks([], len)) == []


def test_nothing_is_made_before_it_is_asked_for():
  made = []
  every = (made.append(i) or i for i in itertools.count())
  assert len(next(iter(blocks.in_blocks(every, lambda _: blocks.COLUMNS_AT_ONCE)))) == 1 and made == [0]
