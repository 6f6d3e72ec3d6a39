"""Paired differences between variants."""

import numpy as np
import pytest

from symformer_jax.evaluation import paired
from symformer_jax.evaluation.runs import Row


def rows(solved, variant="", seed=0):
  return [Row("f", f"p{i}", 1, seed, "x", predicted="x", r2=1.0 if ok else 0.5, recovered=bool(ok), variant=variant)
          for i, ok in enumerate(solved)]


def is_recovered(row):
  return row.recovered


def test_what_is_lost_and_gained_is_counted_by_problem():
  found = paired.compare(rows([1, 1, 0, 0, 1]), rows([1, 0, 0, 1, 0]), is_recovered)
  assert (found.lost, found.gained, found.num_problems) == (2, 1, 5) and found.share == pytest.approx(-0.2)


def test_the_interval_is_near_the_normal_one():
  draws = np.random.default_rng(0)
  first, second = draws.random(400) < 0.6, draws.random(400) < 0.5
  found = paired.compare(rows(first), rows(second), is_recovered)
  change = second.astype(float) - first
  half = 1.96 * change.std() / np.sqrt(400)
  assert found.interval == pytest.approx((change.mean() - half, change.mean() + half), abs=0.01)


def test_only_problems_that_both_have_count_and_seeds_are_no_problems():
  first = [*rows([1, 1]), *rows([1, 1], seed=1)]
  found = paired.compare(first, rows([0, 1, 1, 1]), is_recovered)
  assert (found.lost, found.gained, found.num_problems) == (1, 0, 2)
  assert paired.compare(first, [], is_recovered).num_problems == 0


def test_the_table_has_a_line_for_each_variant_but_the_first():
  lines = paired.table_lines({"everything": rows([1, 1]), "without a": rows([1, 0]), "without b": rows([1, 1])})
  assert [line[0] for line in lines] == ["without a", "without b"] and "1 lost, 0 gained" in lines[0][-1]
