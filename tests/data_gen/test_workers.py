"""The pool: order, and candidates that hang, die, exhaust memory or run too long."""

import os
import types

from data_gen.workers import Pool


class Hostile:
  """A generator some of whose candidates do what SymPy may do."""

  config = types.SimpleNamespace(time_limit_s=0.3)

  def make(self, index: int) -> str:
    if index == 3:
      os._exit(1)
    if index == 9:
      while True:  # busy: the worker's own limit in CPU seconds stops it
        pass
    if index == 12:
      return bytearray(50 << 30)
    if index == 20:
      raise KeyError("from a library")
    return f"made_{index}"


def first_outcomes(pool: Pool, count: int, start: int = 0) -> list:
  stream = pool.outcomes(start)
  return [next(stream) for _ in range(count)]


def test_a_bad_candidate_costs_itself_alone():
  expected = {3: "died", 9: "timeout", 12: "memory", 20: "error_KeyError"}
  with Pool(Hostile(), 2, skip={}, chunk=8) as pool:
    got = first_outcomes(pool, 30)
    assert got == [(i, expected.get(i, f"made_{i}")) for i in range(30)]
    assert pool.num_replaced == 1


def test_known_losses_are_not_tried_again_and_a_run_may_begin_anywhere():
  with Pool(Hostile(), 1, skip={3: "died"}, chunk=8) as pool:
    # Up to the end of the chunk that holds the last one.
    assert list(pool.outcomes(2, 5)) == [(2, "made_2"), (3, "died"), *((i, f"made_{i}") for i in range(4, 8))]
    assert pool.num_replaced == 0
