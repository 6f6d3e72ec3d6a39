"""Which rows are neighbours, and from where on errors look like more than noise."""

import statistics

import numpy as np
import pytest
from small_data import OPTIONS, parse

from symformer_jax.engine import noise
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.task import make_task


@pytest.mark.parametrize(("more", "is_noise"), [(-1e-9, True), (0.0, False)])
def test_errors_just_as_alike_as_one_in_fifty_are_no_noise(more, is_noise, monkeypatch):
  found = statistics.NormalDist().inv_cdf(1 - 0.02 / 2) + more
  monkeypatch.setattr(noise, "smoothness", lambda *given, **named: [found, 0.0])
  assert noise.looks_like_noise(np.ones(4), np.ones((4, 1)), [0], chance=0.02) is is_noise


def test_a_formula_without_a_value_on_some_row_leaves_no_noise_and_gives_no_warning():
  x = np.linspace(1, 3, 60)
  watch = noise.NoiseWatch(make_task((x, x**2), ("x",), OPTIONS))
  for text in ("log(x - 2)", "exp(exp(9*x))", "1/(x - 3)"):
    assert not watch._leaves_noise(Candidate(parse(text), 1.0))


def test_a_column_of_two_values_counts_as_much_as_one_of_many():
  """Of the rows with its value of the first column the nearest to the first row is four ranks of six away."""
  x = np.array([[0, 0.0], [1, 0.0], [1, 10.0], [1, 11.0], [1, 12.0], [0, 13.0], [1, 14.0], [1, 15.0]])
  first, second = noise.neighbours(x)[-1]
  pairs = set(zip(first.tolist(), second.tolist(), strict=True))
  assert (0, 5) in pairs and (0, 1) not in pairs


def test_neighbours_of_one_column_are_the_next_rows():
  x = np.array([3.0, 1.0, 2.0])[:, None]
  [(first, second)] = noise.neighbours(x)
  assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(1, 2), (2, 0)]
