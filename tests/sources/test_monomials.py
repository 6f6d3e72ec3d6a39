"""Monomials: how many there are, what they are worth, how they are written."""

import math

import numpy as np
import pytest

from symformer_jax.language import printing
from symformer_jax.selection import scoring
from symformer_jax.sources import monomials

WIDE, PLAIN = (-2, -1, 1, 2), (-1, 1)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_there_is_one_for_every_choice(size):
  found = monomials.monomials((0, 2, 3, 5), size, WIDE)
  assert len(set(found)) == len(found) == math.comb(4, size) * 4**size
  assert all({column for column, _ in each} <= {0, 2, 3, 5} and len(each) == size for each in found)


def test_sizes_keep_to_a_number():
  found = monomials.up_to(range(6), 4, at_most=300, exponents=(WIDE, PLAIN))
  by_size = {size: {p for each in found if len(each) == size for _, p in each} for size in range(1, 5)}
  # 6*4, 15*16 and then only 20*8; 15*16 of four.
  assert by_size == {1: set(WIDE), 2: set(WIDE), 3: set(PLAIN), 4: set(PLAIN)}
  assert [len(each) for each in monomials.up_to(range(60), 3, at_most=300, exponents=(WIDE, PLAIN))] == [1] * 240


def test_as_many_as_are_allowed_are_made():
  assert len(monomials.up_to(range(6), 1, at_most=24, exponents=(WIDE,))) == 24
  assert not monomials.up_to(range(6), 1, at_most=23, exponents=(WIDE,))


def test_values_are_those_of_the_formula(rng):
  x = rng.uniform(-3, 3, (40, 3))
  some = [(), *monomials.up_to(range(3), 3, at_most=1000, exponents=((-2, -1, -0.5, 0.5, 1, 3),))]
  values = monomials.Values(x)(some)
  for index in range(len(some)):
    node = monomials.to_node(some[index])
    np.testing.assert_allclose(
      values[:, index], scoring.evaluate(node, x) * np.ones(40), rtol=1e-12, err_msg=printing.to_text(node, "xyz"))
