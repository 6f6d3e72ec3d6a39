"""Parts of the data pipeline on the device, by hand: which rows are good, subsets, ranges of columns, ranks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.data import columns, points
from symformer_jax.data.points import PointsConfig
from symformer_jax.language.vocabulary import Vocabulary


def test_good_rows_come_first_in_their_order_and_the_rest_is_masked():
  y = jnp.array([[1.0, jnp.nan, 3.0, points.LARGEST_VALUE, -2 * points.LARGEST_VALUE, 6.0]])
  found, is_valid = points.select_valid(jnp.arange(6.0)[None, :, None], y, 5)
  assert is_valid.tolist() == [[True] * 4 + [False]]
  np.testing.assert_array_equal(found[0, :, 0], [0, 2, 3, 5, 0])
  np.testing.assert_array_equal(found[0, :, 1], [1, 3, points.LARGEST_VALUE, 6, 0])
  few, is_valid = points.select_valid(jnp.arange(6.0)[None, :, None], y, 3)
  assert is_valid.all() and few[0, :, 0].tolist() == [0, 2, 3]


def test_what_keeps_its_order_is_sorted_stably():
  """On the devices at hand short rows keep their order either way."""
  vocab = Vocabulary(3)
  place = functools.partial(
    columns.place, vocab=vocab, distractor_probability=0.5, max_distractors=2, spread_probability=0.5)
  for text in (
      str(jax.make_jaxpr(place)(jax.random.key(0), jnp.zeros((2, 4), int), jnp.ones((2, 3, 2)))),
      str(jax.make_jaxpr(lambda x, y: points.select_valid(x, y, 2))(jnp.ones((2, 4, 1)), jnp.ones((2, 4))))):
    assert "is_stable=True" in text and "is_stable=False" not in text


def test_parts_of_a_box_are_a_tenth_of_it_at_least():
  domains = jnp.tile(jnp.array([[[2.0, 12.0]]]), (500, 1, 1))
  x = np.asarray(points.draw_x(jax.random.key(0), domains, 200, subbox_probability=1.0))[..., 0]
  spans = np.ptp(x, axis=1)
  assert x.min() >= 2 and x.max() <= 12 and 0.3 < spans.min() < 1.3 and spans.max() > 7
  whole = np.asarray(points.draw_x(jax.random.key(0), domains, 200, subbox_probability=0.0))[..., 0]
  assert np.ptp(whole, axis=1).min() > 9 and abs(whole.mean() - 7) < 0.1


def test_subsets_are_log_uniform():
  config = PointsConfig(min_points=4, subset_probability=1.0)
  mask = np.asarray(points._random_subset(jax.random.key(0), (4000, 64), config))
  counts = mask.sum(axis=1)
  assert counts.min() == 4 and counts.max() == 64 and np.all(np.diff(mask.astype(int), axis=1) <= 0)
  # Between 4 and 65 as many below the geometric mean as above it.
  assert np.mean(counts < np.sqrt(4 * 65)) == pytest.approx(0.5, abs=0.04)
  assert np.asarray(points._random_subset(
    jax.random.key(0), (50, 64), PointsConfig(min_points=4, subset_probability=0.0))).all()


@pytest.mark.parametrize(("share", "size"), [(0.0, lambda y: np.full(3, np.sqrt(np.mean(y**2)))), (1.0, np.abs)])
def test_noise_is_measured_by_the_valid_rows(share, size):
  y = np.array([1.0, -2.0, 4.0])
  rows = np.stack([np.zeros(4), [*y, 0.0]], axis=1)
  is_valid = jnp.array([[True, True, True, False]])
  config = PointsConfig(noise_probability=1.0, max_noise=0.1, proportional_share=share)
  keys = jax.random.split(jax.random.key(0), 2000)
  found = np.asarray(jax.vmap(lambda key: points._add_noise(key, jnp.asarray(rows)[None], is_valid, config))(keys))
  errors = found[:, 0, :3, 1] - y
  np.testing.assert_array_equal(found[..., 0], 0)
  # Levels are log-uniform from 1e-4 to a tenth; the mean of their squares is (b^2 - a^2) / (2 log(b/a)).
  mean_square = (0.1**2 - 1e-8) / (2 * np.log(1000))
  np.testing.assert_allclose(np.mean(errors**2, axis=0) / size(y) ** 2, mean_square, rtol=0.25)


def test_ranks_within_each_row():
  assert columns._ranks(jnp.array([[0.3, 0.1, 0.2], [5.0, 7.0, 6.0]])).tolist() == [[2, 0, 1], [0, 2, 1]]


def test_ranges_that_do_not_matter_are_of_three_kinds_within_the_box():
  found = np.asarray(columns._draw_domains(jax.random.key(0), 1000, 3)).reshape(-1, 2)
  low, high = found.T
  assert high.min() >= 1 and high.max() <= 5 and high.max() > 4.9
  symmetric, from_zero = low == -high, low == 0
  share = (low / high)[~symmetric & ~from_zero]
  assert [np.mean(each) for each in (symmetric, from_zero)] == pytest.approx([1 / 3, 1 / 3], abs=0.04)
  assert share.min() >= 0.01 and 0.65 < share.max() <= 0.7
