"""Lists in turn."""

import itertools

from symformer_jax.sources.in_turn import in_turn


def test_each_list_has_its_turn_until_it_ends():
  assert list(in_turn([[1, 2, 3], [], [None, 5]])) == [1, None, 2, 5, 3]
  assert list(in_turn([])) == []


def test_no_more_is_made_than_is_asked_for():
  made = []

  def endless():
    for i in itertools.count():
      made.append(i)
      yield i

  assert list(itertools.islice(in_turn([endless(), "ab"]), 3)) == [0, "a", 1] and made == [0, 1]


def test_nothing_is_made_before_its_turn():
  made = []

  def numbers(first):
    for number in range(first, first + 2):
      made.append(number)
      yield number

  found = in_turn([numbers(0), numbers(10), iter(())])
  assert not made
  assert [next(found), next(found), next(found)] == [0, 10, 1] == made
  assert list(found) == [11] and made == [0, 10, 1, 11]
