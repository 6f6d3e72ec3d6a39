"""What a pool keeps, and when it says that the data are met."""

import dataclasses
import math

from hypothesis import given, strategies as st
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.pool import Candidate, Pool, survivors
from symformer_jax.language import expression, parser


def candidate(text, mse):
  return Candidate(parser.parse(text, ("x",)), mse, "test")


def test_the_better_fit_of_a_tree_stays_and_only_a_new_best_is_a_gain():
  pool = Pool(1.0, 100)
  assert pool.best is None and pool.insert([candidate("2.5*x", 0.3)])
  assert not pool.insert([candidate("2.5*x", 0.4), candidate("x + 1.5", 0.3), candidate("x", math.inf)])
  assert pool.insert([candidate("2.5*x", 0.2)])
  assert len(pool) == 2 and pool.best.mse == 0.2 and [c.mse for c in pool.in_order()] == [0.2, 0.3]


def test_beyond_its_capacity_the_best_and_the_best_of_every_complexity_stay():
  pool = Pool(1.0, 100, dataclasses.replace(DEFAULT.pool, capacity=40, num_best=5, num_per_complexity=1))
  simple = candidate("x", 0.9)
  pool.insert([simple, *(candidate(f"{k}.5*sin({k}.25*x) + {k}.125", 0.1 + k / 1000) for k in range(1, 60))])
  assert len(pool) <= 41 and simple in pool.in_order() and pool.best.mse == pytest.approx(0.101)


def test_met_is_what_double_precision_shows_of_few_constants():
  pool = Pool(2.0, 12)
  pool.insert([candidate("1.5*x", 1e-20)])
  assert pool.exact() is None  # single precision may reach so far
  pool.insert([candidate("1.5*x*sin(x) + 2.5*cos(x) + 3.5*exp(x) + 0.7", 1e-28)])
  assert pool.exact() is None  # four constants of twelve points
  pool.insert([candidate("1.5*x + 0.1*sin(x)", 1e-29), candidate("1.5*sin(x)", 1e-25)])
  assert expression.complexity(pool.exact().node) == 4


def test_nearly_exact_are_those_between(rng):
  pool = Pool(1.0, 100)
  pool.insert([candidate("1.5*x", 1e-25), candidate("2.5*sin(x)", 1e-12), candidate("3.5*cos(x)", 1e-3)])
  assert pool.nearly_exact() == [parser.parse("2.5*sin(x)", ("x",))]


@given(st.lists(st.tuples(st.floats(0, 10) | st.just(math.inf) | st.just(math.nan), st.integers(1, 5)), max_size=30))
def test_survivors_are_the_best_and_the_best_of_each_length(pairs):
  loss, lengths = np.array([p[0] for p in pairs]), [p[1] for p in pairs]
  kept = survivors(loss, lengths, num_best=3, num_per_length=1)
  assert len(kept) == len(set(kept)) and all(math.isfinite(loss[i]) for i in kept)
  finite = [value for value in loss if math.isfinite(value)]
  assert sorted(loss[kept])[:3] == sorted(finite)[:3]
  for length in set(lengths):
    own = [loss[i] for i in range(len(pairs)) if lengths[i] == length and math.isfinite(loss[i])]
    assert not own or min(own) in loss[kept]


def test_of_equal_losses_the_first_stay():
  assert survivors(np.tile([0.5, 0.1], 100), [7] * 200, num_best=5, num_per_length=6) == [1, 3, 5, 7, 9, 11]


def test_a_short_law_keeps_its_place_among_many_that_are_longer_and_nearer():
  pool = Pool(1.0, 100)
  pool.insert([Candidate(parser.parse("2.5*x0", ["x0"]), 1e-4)])
  texts = ["+".join(f"{a + k / 7:.5f}*x0**{k + 2}" for k in range(terms)) + tail
           for terms in range(1, 9) for a in (1.3, 2.3, 3.3, 4.3)
           for tail in ("", "+sin(x0)", "+exp(x0)", "+cos(x0**2)")]
  pool.insert([Candidate(parser.parse(text, ["x0"]), 1e-6 / (i + 1)) for i, text in enumerate(texts)])
  config = dataclasses.replace(DEFAULT.pool, num_finalists=48, num_best=32)
  few = Pool(1.0, 100, config)
  few.insert(pool.in_order())
  shortlist = few.shortlist()
  assert len(shortlist) <= 48 and parser.parse("2.5*x0", ["x0"]) in [c.node for c in shortlist]
  assert [c.mse for c in shortlist] == sorted(c.mse for c in shortlist)
