"""Bloom filters over 64-bit hashes: which equations were met, in memory that is fixed beforehand."""

import json
import math

import numpy as np

from symformer_jax.errors import DataError

SCHEMA_VERSION = 1
# Multipliers of splitmix64's last step (Steele, Lea, Flood 2014): an independent second hash from the first.
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class BloomFilter:
  """A set that may take a stranger for a member, never a member for a stranger.

  For n members and a false-positive rate p: -n ln p / ln(2)**2 bits (3.6 bytes a member for one in a million) and
  -log2 p probes each (Bloom 1970), at `h1 + i h2` (Kirsch and Mitzenmacher 2006).

  Args:
    capacity: members for which the rate holds; with fewer it is smaller.
    false_positive_rate: share of strangers taken for members.
  """

  def __init__(self, capacity: int, false_positive_rate: float):
    self.capacity, self.false_positive_rate = capacity, false_positive_rate
    num_bits = math.ceil(-max(capacity, 1) * math.log(false_positive_rate) / math.log(2) ** 2)
    self.bits = np.zeros(-(-num_bits // 8), np.uint8)
    self._steps = np.arange(math.ceil(-math.log2(false_positive_rate)), dtype=np.uint64)

  def _positions(self, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bytes and masks [E, probes] of hashes [E]."""
    second = (hashes ^ hashes >> np.uint64(30)) * _MIX[0]
    second = (second ^ second >> np.uint64(27)) * _MIX[1]
    # Arithmetic modulo 2**64 is meant.
    at = (hashes[:, None] + self._steps * (second[:, None] | np.uint64(1))) % np.uint64(8 * len(self.bits))
    return at >> np.uint64(3), np.left_shift(1, at & np.uint64(7), dtype=np.uint64).astype(np.uint8)

  def add(self, hashes: np.ndarray) -> np.ndarray:
    """Adds hashes [E], uint64; returns which seemed to be members before [E]."""
    at, masks = self._positions(hashes)
    was_member = (self.bits[at] & masks != 0).all(axis=1)
    np.bitwise_or.at(self.bits, at, masks)
    return was_member

  def contains(self, hashes: np.ndarray) -> np.ndarray:
    """Whether hashes [E], uint64, are members [E]."""
    at, masks = self._positions(hashes)
    return (self.bits[at] & masks != 0).all(axis=1)

  def to_bytes(self) -> bytes:
    """A line of JSON, then the bits."""
    header = {"schema_version": SCHEMA_VERSION, "capacity": self.capacity,
              "false_positive_rate": self.false_positive_rate}
    return json.dumps(header).encode() + b"\n" + self.bits.tobytes()


def from_bytes(data: bytes, *, name: str) -> BloomFilter:
  """The inverse of `to_bytes`.

  Raises:
    DataError: names the file when it holds something else.
  """
  head, _, rest = data.partition(b"\n")
  try:
    header = json.loads(head)
    version = header["schema_version"]
    found = BloomFilter(header["capacity"], header["false_positive_rate"])
  except (ValueError, KeyError, TypeError, OverflowError, MemoryError):  # of a size that is none
    raise DataError(f"{name} is no Bloom filter of generated equations") from None
  if version != SCHEMA_VERSION or len(rest) != len(found.bits):
    raise DataError(f"{name} is damaged: expected {len(found.bits)} bytes of schema {SCHEMA_VERSION}, "
                    f"got {len(rest)} of {version}")
  found.bits = np.frombuffer(rest, np.uint8).copy()
  return found
