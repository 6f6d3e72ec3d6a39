"""Draws of points and columns where what is drawn is given, and where each draw takes its key from."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.data import columns, points
from symformer_jax.data.points import PointsConfig
from symformer_jax.language.vocabulary import Vocabulary


def any_key():
  return jax.random.key(0)


@pytest.fixture
def given(monkeypatch):
  """What the draws are: uniform ones a share of their range, in turn; normal ones; whether bernoulli ones are True."""
  drawn = {"shares": [], "normal": 1.0, "bernoulli": True}

  def uniform(key, shape=(), minval=0.0, maxval=1.0):
    share = jnp.asarray(drawn["shares"].pop(0), jnp.float32)
    return jnp.broadcast_to(minval + share * (maxval - minval), shape)

  monkeypatch.setattr(jax.random, "uniform", uniform)
  monkeypatch.setattr(jax.random, "normal", lambda key, shape: jnp.full(shape, drawn["normal"]))
  monkeypatch.setattr(jax.random, "bernoulli", lambda key, p, shape: jnp.full(shape, drawn["bernoulli"]))
  return drawn


DOMAINS = np.array([[[10.0, 20.0]]], np.float32)


@pytest.mark.parametrize(("ends", "begin", "width"), [
  ([0.0, 1.0], 10.0, 10.0), ([0.0, 0.0], 10.0, 1.0), ([1.0, 1.0], 19.0, 1.0), ([0.5, 0.0], 10.0, 5.5),
  ([0.5, 1.0], 14.5, 5.5)])
@pytest.mark.parametrize("normal", [0.0, 1.0, -1.0])
def test_a_part_of_a_box_lies_between_two_shares_of_it_unevenly_filled(given, ends, begin, width, normal):
  unit = np.linspace(0.01, 0.99, 9, dtype=np.float32)
  given.update(shares=[unit[:, None], np.reshape(ends, (2, 1, 1, 1))], normal=normal)
  x = points.draw_x(any_key(), DOMAINS, 9, subbox_probability=1.0)
  # A standard deviation of the density doubles its exponent, or halves it.
  exponent = {0.0: 1.0, 1.0: 2.0138, -1.0: 0.49659}[normal]
  np.testing.assert_allclose(x[0, :, 0], begin + width * unit**exponent, rtol=1e-4)


def test_data_sets_that_are_not_chosen_fill_their_box(given):
  unit = np.linspace(0.01, 0.99, 9, dtype=np.float32)
  for options in ({"subbox_probability": 0.0}, {"subbox_probability": 1.0, "log_probability": 1.0}):
    given.update(shares=[unit[:, None], np.zeros((2, 1, 1, 1))], bernoulli=False)
    np.testing.assert_allclose(points.draw_x(any_key(), DOMAINS, 9, **options)[0, :, 0], 10 + 10 * unit, rtol=1e-6)


@pytest.mark.parametrize(("domain", "middle"), [
  ((2.0, 8.0), 4.0), ((-8.0, -2.0), -4.0), ((0.0, 8.0), 4.0), ((-8.0, 0.0), -4.0), ((-8.0, -0.0), -4.0),
  ((-2.0, 8.0), 3.0), ((0.0, 0.0), 0.0)])
def test_the_middle_of_a_column_even_in_its_logarithm_is_its_geometric_mean(given, domain, middle):
  given.update(shares=[0.5])
  x = points.draw_x(any_key(), jnp.array([[domain]]), 1, subbox_probability=0.0, log_probability=1.0)
  assert float(x[0, 0, 0]) == pytest.approx(middle)


@pytest.mark.parametrize(("share", "count"), [(0.001, 4), (0.5, 16), (0.99, 62), (0.999, 63)])
@pytest.mark.parametrize("is_part", [True, False])
def test_subsets_have_from_the_least_to_all_rows(given, share, count, is_part):
  given.update(shares=[share], bernoulli=is_part)
  mask = points._random_subset(any_key(), (2, 63), PointsConfig(min_points=4))  # 16 is the geometric mean of 4 and 64
  assert mask.sum(axis=1).tolist() == [count if is_part else 63] * 2


@pytest.mark.parametrize(("share", "level"), [(0.0, 1e-4), (1.0, 0.2), (0.5, np.sqrt(1e-4 * 0.2))])
@pytest.mark.parametrize("proportional", [0.0, 1.0])
def test_noise_goes_from_a_ten_thousandth_to_the_level_asked_for(given, share, level, proportional):
  given.update(shares=[share], normal=2.0)
  y = np.array([3.0, -4.0, 0.0])
  rows = jnp.asarray(np.stack([np.ones(4), np.ones(4), [*y, 7.0]], axis=1), jnp.float32)[None]
  is_valid = jnp.array([[True, True, True, False]])
  config = PointsConfig(noise_probability=1.0, max_noise=0.2, proportional_share=proportional)
  found = np.asarray(points._add_noise(any_key(), rows, is_valid, config))[0]
  size = np.abs(y) if proportional else np.sqrt(25 / 3)
  np.testing.assert_allclose(found[:3, 2], y + 2 * level * size, rtol=1e-5)
  np.testing.assert_array_equal(found[:, :2], 1)
  # Of data without a valid row there is nothing to measure.
  given.update(shares=[share])
  nothing = points._add_noise(any_key(), jnp.zeros((1, 4, 3)), jnp.zeros((1, 4), bool), config)
  assert not np.asarray(nothing).any()
  given.update(shares=[share], bernoulli=False)
  np.testing.assert_array_equal(points._add_noise(any_key(), rows, is_valid, config), rows)


def test_the_noise_of_one_row_is_measured_by_that_row(given):
  given.update(shares=[1.0], normal=2.0)
  rows, is_valid = jnp.array([[[1.0, 3.0], [1.0, 7.0]]]), jnp.array([[True, False]])
  config = PointsConfig(noise_probability=1.0, max_noise=0.2)
  found = np.asarray(points._add_noise(any_key(), rows, is_valid, config))
  assert found[0, 0, 1] == pytest.approx(3 + 2 * 0.2 * 3)


def test_a_box_is_filled_in_part_in_all_of_its_variables_or_in_none():
  domains = np.broadcast_to(np.array([[0.0, 1.0]] * 3, np.float32), (400, 3, 2))
  x = np.asarray(points.draw_x(jax.random.key(0), domains, 300, subbox_probability=0.5))
  # A whole side of 300 points has a width above .97; three parts of a box that are as wide are one in thousands.
  widths = np.ptp(x, axis=1)
  num_whole = (widths > 0.97).sum(axis=1)
  assert 150 < (num_whole == 3).sum() < 250 and ((num_whole == 1) | (num_whole == 2)).sum() < 60
  assert 150 < (num_whole < 3).sum() < 250


def test_what_is_not_asked_for_is_not_done():
  assert dataclasses.asdict(PointsConfig()) == {
    "num_points": 100, "draws": 2, "min_points": None, "subset_probability": 0.5, "subbox_probability": 0.0,
    "noise_probability": 0.0, "max_noise": 0.1, "resample_probability": 0.0, "log_probability": 0.0,
    "proportional_share": 0.0, "distractor_probability": 0.0, "max_distractors": 2, "spread_probability": 0.0}


@pytest.mark.parametrize(("largest", "is_taken"), [(1e7, True), (1.1e7, False), (np.inf, False), (np.nan, False)])
def test_new_mantissas_are_taken_where_all_points_stay_within_the_bound(given, largest, is_taken):
  mantissas = jnp.array([[0.5, -0.25, 0.0]])
  new_y = jnp.array([[1.0, -largest, 2.0]])
  for share, size in ((0.0, 0.1), (1.0, 1.0)):
    given.update(shares=[share], bernoulli=True)
    found, y = points._resample(any_key(), mantissas, jnp.zeros((1, 3)), lambda fresh: new_y, 0.5)
    expected = [[size, -size, 0.0]] if is_taken else mantissas
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(y, new_y if is_taken else np.zeros((1, 3)))
  given.update(shares=[0.5], bernoulli=False)
  found, _ = points._resample(any_key(), mantissas, new_y, lambda fresh: 2 * new_y, 0.5)
  np.testing.assert_array_equal(found, mantissas)


def test_new_mantissas_of_one_equation_do_not_depend_on_those_of_another(given):
  mantissas = jnp.array([[0.5], [0.25]])
  given.update(shares=[1.0], bernoulli=True)
  found, y = points._resample(any_key(), mantissas, jnp.zeros((2, 2)), lambda fresh: jnp.array(
    [[1.0, 2.0], [3.0, jnp.nan]]), 0.5)
  assert found.tolist() == [[1.0], [0.25]] and y.tolist() == [[1, 2], [0, 0]]


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def plain(monkeypatch):
  """Every equation is its first column: nothing is compiled."""
  monkeypatch.setattr(points.interpreter, "constant_values", lambda ids, mantissas, vocab: mantissas)
  monkeypatch.setattr(points.interpreter, "evaluate_many", lambda ids, values, x, vocab: x[..., 0])


@pytest.fixture
def taken(monkeypatch):
  """The keys of all draws."""
  seen = []
  for name in ("uniform", "normal", "bernoulli", "randint"):
    draw = getattr(jax.random, name)

    def recorded(key, *args, draw=draw, **options):
      seen.append(jax.random.key_data(key))
      return draw(key, *args, **options)

    monkeypatch.setattr(jax.random, name, recorded)
  return seen


@pytest.mark.usefixtures("plain")
def test_no_two_draws_of_a_batch_share_a_key(taken):
  vocab = Vocabulary(2)
  ids, domains = jnp.array([[vocab.ids["x0"]]]), jnp.array([[[1.0, 2.0], [0.0, 0.0]]])
  config = PointsConfig(num_points=4, min_points=2, subbox_probability=0.5, noise_probability=0.5, log_probability=0.5,
                        resample_probability=0.5, proportional_share=0.5)

  def keys_of(draw):
    def keys(key):
      taken.clear()
      draw(key)
      return list(taken)
    return [tuple(np.asarray(key).tolist()) for key in jax.jit(keys)(any_key())]

  found = keys_of(lambda key: points.draw_points(key, ids, jnp.zeros((1, 1)), domains, vocab=vocab, config=config))
  assert len(found) == len(set(found)) == 5 + 2 + 4 + 2
  found = keys_of(lambda key: columns.place(
    key, ids, domains, vocab=vocab, distractor_probability=0.5, max_distractors=1, spread_probability=0.5))
  assert len(found) == len(set(found)) == 5 + 3


@pytest.mark.usefixtures("plain")
def test_what_is_off_draws_nothing(taken):
  """What a share of 0 would leave as it is costs no time either."""
  vocab = Vocabulary(1)
  given = jnp.array([[vocab.ids["x0"]]]), jnp.zeros((1, 1)), jnp.asarray(DOMAINS)
  for options, num_draws in (
      ({}, 1), ({"noise_probability": 0.5}, 4), ({"resample_probability": 0.5}, 3), ({"min_points": 2}, 3),
      ({"subbox_probability": 0.5}, 4), ({"log_probability": 0.5}, 2)):
    taken.clear()
    config = PointsConfig(num_points=4, **options)
    jax.eval_shape(lambda key, config=config: points.draw_points(key, *given, vocab=vocab, config=config), any_key())
    assert len(taken) == num_draws


# --- defaults --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain")
def test_the_papers_points_are_a_hundred_of_whole_tables_without_noise():
  """SymFormer, sec. 3.3; each is drawn twice, so that a bad one can be replaced."""
  config = PointsConfig()
  vocab = Vocabulary(1)
  ids, domains = jnp.array([[vocab.ids["x0"]]] * 3), jnp.tile(DOMAINS, (3, 1, 1))
  drawn, is_valid, mantissas, num_masked = points.draw_points(
    any_key(), ids, jnp.zeros((3, 1)), domains, vocab=vocab, config=config)
  assert drawn.shape == (3, 100, 2) and is_valid.all() and not mantissas.any() and not num_masked.any()
  np.testing.assert_array_equal(drawn[..., 0], drawn[..., 1])
  assert not config.is_placed and config.draws == 2 and config.min_points is None and config.subset_probability == 0.5
  assert config.max_noise == 0.1 and config.max_distractors == 2
  assert PointsConfig(distractor_probability=0.1).is_placed and PointsConfig(spread_probability=0.1).is_placed


@pytest.mark.usefixtures("plain")
def test_a_subset_is_of_rows_that_are_good():
  vocab, config = Vocabulary(1), PointsConfig(num_points=32, draws=1, min_points=30, subset_probability=1.0)
  drawn, is_valid, _, num_masked = points.draw_points(
    any_key(), jnp.array([[vocab.ids["x0"]]]), jnp.zeros((1, 1)), 2e6 * jnp.asarray(DOMAINS) - 1e7, vocab=vocab,
    config=config)  # from 1e7 to 3e7: none is
  assert int(num_masked[0]) == 32 and not is_valid.any() and not np.asarray(drawn).any()


@pytest.mark.parametrize(("kind", "low"), [(0, -1.0), (1, 0.0), (2, 0.01)])
def test_ranges_of_columns_that_do_not_matter_by_their_kind(given, monkeypatch, kind, low):
  monkeypatch.setattr(jax.random, "randint", lambda key, shape, least, most: jnp.full(shape, kind))
  for share, high in ((0.0, 1.0), (1.0, 5.0)):
    given.update(shares=[share, 0.0])
    found = columns._draw_domains(any_key(), 1, 1)
    np.testing.assert_allclose(found[0, 0], [low * high, high], rtol=1e-6)
  given.update(shares=[1.0, 1.0])
  assert float(columns._draw_domains(any_key(), 1, 1)[0, 0, 0]) == pytest.approx({0: -5.0, 1: 0.0, 2: 3.5}[kind])
