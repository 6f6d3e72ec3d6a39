"""Points drawn on the device: only good ones count, and every switch does what it says."""

import functools

import jax
import numpy as np
import pytest

from symformer_jax.data import points
from symformer_jax.data.points import PointsConfig
from symformer_jax.language import expression, interpreter, parser
from symformer_jax.language.vocabulary import Vocabulary

VOCAB = Vocabulary(1)


def _batch(texts, domain=(-5.0, 5.0), repeat=1):
  programs = [expression.encode(parser.parse(t, ["x"]), VOCAB) for t in texts] * repeat
  length = max(len(ids) for ids, _ in programs)
  ids = np.array([i + [0] * (length - len(i)) for i, _ in programs], np.int32)
  mantissas = np.array([c + [0.0] * (length - len(c)) for _, c in programs], np.float32)
  return ids, mantissas, np.tile(np.array([[domain]], np.float32), (len(ids), 1, 1))


def _draw(batch, **options):
  config = PointsConfig(**options)
  # Compiled whole: operation by operation each of a hundred costs as much as half of that.
  draw = jax.jit(functools.partial(points.draw_points, vocab=VOCAB, config=config))
  return [np.asarray(a) for a in draw(jax.random.key(0), *batch)]


def test_points_lie_on_the_function_and_fill_the_box():
  drawn, is_valid, mantissas, num_masked = _draw(_batch(["2.5*x + 1", "sin(x)"]), num_points=200)
  x, y = drawn[..., 0], drawn[..., 1]
  assert is_valid.all() and not num_masked.any()
  np.testing.assert_allclose(y[0], 2.5 * x[0] + 1, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(y[1], np.sin(x[1]), rtol=1e-4, atol=1e-5)
  assert x.min() < -4.8 and x.max() > 4.8 and abs(x.mean()) < 0.5


def test_a_pole_is_drawn_again():
  # 1/(x - c) ** 6 passes 1e7 on 2.7 % of [-5, 5]: with two draws a row, all rows stay good.
  drawn, is_valid, _, num_masked = _draw(_batch(["1/(x - 0.3)**6"]), num_points=300)
  assert is_valid.all() and num_masked[0] == 0
  assert np.isfinite(drawn).all() and np.abs(drawn[..., 1]).max() <= 1e7


@pytest.mark.parametrize(("draws", "has_masked"), [(1, True), (2, False)])
def test_points_near_a_simple_pole_are_drawn_again_or_masked(monkeypatch, draws, has_masked):
  # With a bound of 20, |x - 0.3| < 1 / 20 is out of bounds: one point in a hundred.
  monkeypatch.setattr(points, "LARGEST_VALUE", 20.0)
  drawn, is_valid, _, num_masked = _draw(_batch(["1/(x - 0.3)"]), num_points=1000, draws=draws)
  assert (num_masked[0] > 0) == has_masked and num_masked[0] == (~is_valid).sum()
  x, y = drawn[0, is_valid[0]].T
  np.testing.assert_allclose(y, 1 / (x - 0.3), rtol=1e-3)
  assert np.abs(y).max() <= 20 and not drawn[~is_valid].any()


def test_what_cannot_be_drawn_is_masked_and_counted():
  # log(x) exists on half of the box only; one draw a row.
  drawn, is_valid, _, num_masked = _draw(_batch(["log(x)"]), num_points=400, draws=1)
  assert 120 < num_masked[0] < 280
  assert (~is_valid).sum() == num_masked[0]
  assert np.isfinite(drawn).all()
  assert (drawn[0, is_valid[0], 0] > 0).all()
  assert not drawn[~is_valid].any()


def test_subsets_are_between_the_limits_and_cover_them():
  _, is_valid, _, _ = _draw(_batch(["x"], repeat=400), num_points=32, min_points=5, subset_probability=0.5)
  counts = is_valid.sum(axis=1)
  assert counts.min() == 5 and counts.max() == 32
  assert 0.35 < (counts < 32).mean() < 0.6


def test_parts_of_the_box_stay_inside_it():
  drawn, is_valid, _, _ = _draw(_batch(["x"], (0.0, 5.0), repeat=300), num_points=64, subbox_probability=0.5)
  x = drawn[..., 0]
  assert x.min() >= 0 and x.max() <= 5
  widths = np.ptp(x, axis=1)
  assert 0.3 < (widths < 4.5).mean() < 0.7 and widths.min() >= 0.3


def test_noise_has_the_level_asked_for():
  batch = _batch(["exp(x)"], (0.0, 5.0), repeat=300)
  clean = _draw(batch, num_points=64)[0]
  noisy = _draw(batch, num_points=64, noise_probability=0.5, max_noise=0.1)[0]
  np.testing.assert_array_equal(clean[..., 0], noisy[..., 0])
  level = np.std(noisy[..., 1] - clean[..., 1], axis=1) / np.sqrt(np.mean(clean[..., 1] ** 2, axis=1))
  assert 0.4 < (level > 0).mean() < 0.6
  assert level.max() < 0.13 and level[level > 0].min() > 5e-5
  assert np.median(level[level > 0]) == pytest.approx(np.sqrt(1e-4 * 0.1), rel=0.5)


def test_new_mantissas_keep_sign_and_exponent_and_the_function():
  ids, mantissas, domains = _batch(["-2.57*x + 0.0312"], repeat=200)
  drawn, is_valid, new, _ = _draw((ids, mantissas, domains), num_points=16, resample_probability=0.5)
  is_changed = (new != mantissas).any(axis=1)
  assert 0.35 < is_changed.mean() < 0.65
  np.testing.assert_array_equal(np.sign(new), np.sign(mantissas))
  assert (np.abs(new[mantissas != 0]) >= 0.1).all() and (np.abs(new) <= 1).all()
  values = np.asarray(interpreter.constant_values(ids, new, VOCAB))
  expected = interpreter.evaluate_many(ids, values, drawn[..., :1], vocab=VOCAB, plan="vmap")
  np.testing.assert_allclose(drawn[..., 1], expected, rtol=1e-5)
  assert is_valid.all()


def test_a_resampled_equation_that_fails_keeps_its_constants():
  # sqrt(x + 5.0...) is defined on the box for its own constant and for hardly another of the same exponent.
  batch = _batch(["sqrt(x + 9.99)"], (-9.9, 0.0), repeat=200)
  drawn, is_valid, new, _ = _draw(batch, num_points=64, resample_probability=1.0)
  assert is_valid.all() and np.isfinite(drawn).all()
  assert (new == batch[1]).all(axis=1).mean() > 0.9


def test_columns_on_one_side_of_zero_may_be_even_in_their_logarithm():
  ids, mantissas, _ = _batch(["x"], repeat=300)
  for domain, is_even in (((0.005, 5.0), True), ((-5.0, -0.005), True), ((0.0, 5.0), False), ((-1.0, 5.0), False)):
    domains = np.tile(np.array([[domain]], np.float32), (300, 1, 1))
    x = _draw((ids, mantissas, domains), num_points=64, log_probability=0.5)[0][..., 0]
    assert x.min() >= domain[0] - 1e-6 and x.max() <= domain[1] + 1e-6
    # The geometric mean halves such a column; of a uniform one hardly a thirtieth lies below.
    low = np.mean(np.abs(x) < np.sqrt(0.005 * 5.0), axis=1)
    assert np.mean(low > 0.3) == pytest.approx(0.5 if is_even else 0.0, abs=0.1)


def test_noise_may_be_in_proportion_to_each_value():
  batch = _batch(["exp(x)"], (0.0, 5.0), repeat=300)
  clean = _draw(batch, num_points=64)[0]
  options = {"num_points": 64, "noise_probability": 1.0, "max_noise": 0.1}
  plain, mixed = (_draw(batch, **options, proportional_share=share)[0] for share in (0.0, 0.5))

  def is_even(noisy):
    relative = np.abs(noisy[..., 1] - clean[..., 1]) / clean[..., 1]
    small = clean[..., 1] < 10
    return np.array([np.mean(r[s]) < 2 * np.mean(r[~s]) for r, s in zip(relative, small, strict=True)])

  assert is_even(plain).mean() < 0.05
  assert is_even(mixed).mean() == pytest.approx(0.5, abs=0.12)
