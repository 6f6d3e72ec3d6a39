"""Bloom filters: no member is missed, the stated rate holds, bytes come back, damage is named."""

import numpy as np
import pytest

from data_gen import bloom
from symformer_jax.errors import DataError


@pytest.mark.parametrize("rate", [1e-2, 1e-4])
def test_members_are_found_and_strangers_at_the_stated_rate(rng, rate):
  hashes = rng.integers(0, 2**64, 220_000, dtype=np.uint64)
  members, strangers = hashes[:20_000], hashes[20_000:]
  seen = bloom.BloomFilter(len(members), rate)
  # Some members seem to have been there before: on average a filter that fills up is far below its rate.
  assert seen.add(members).mean() < rate
  assert seen.contains(members).all()
  expected = rate * len(strangers)
  assert abs(seen.contains(strangers).sum() - expected) < 5 * np.sqrt(expected) + 0.1 * expected
  assert 8 * len(seen.bits) == pytest.approx(-len(members) * np.log(rate) / np.log(2) ** 2, rel=1e-3)


def test_small_and_neighbouring_hashes_are_told_apart():
  seen = bloom.BloomFilter(1000, 1e-6)
  seen.add(np.arange(0, 2000, 2, dtype=np.uint64))
  assert not seen.contains(np.arange(1, 2000, 2, dtype=np.uint64)).any()


def test_bytes_come_back_and_damage_is_named(rng):
  members = rng.integers(0, 2**64, 100, dtype=np.uint64)
  seen = bloom.BloomFilter(100, 1e-3)
  seen.add(members)
  again = bloom.from_bytes(seen.to_bytes(), name="f")
  assert again.contains(members).all() and again.false_positive_rate == 1e-3
  with pytest.raises(DataError, match="f is damaged: expected"):
    bloom.from_bytes(seen.to_bytes()[:-1], name="f")
  with pytest.raises(DataError, match="f is no Bloom filter"):
    bloom.from_bytes(b"\x00\x01", name="f")
