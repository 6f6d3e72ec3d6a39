"""Schedules at named steps against their closed forms."""

import math

import numpy as np
import pytest

from symformer_jax.errors import InputError
from symformer_jax.training import schedules
from symformer_jax.training.config import LossConfig, OptimizerConfig


@pytest.mark.parametrize("step", [0, 976, 977, 3907, 3908, 100_000, 380_000])
def test_paper_learning_rate_in_stairs(step):
  schedule = schedules.learning_rate(OptimizerConfig(), 381_030, 977)
  s = step // 977 * 977 + 1
  assert float(schedule(step)) == pytest.approx(384**-0.5 * min(s**-0.5, s * 4000**-1.5) / 5, rel=1e-5)


@pytest.mark.parametrize(("step", "expected"), [(0, 0), (97_699, 0), (97_700, 0), (381_030, 1)])
def test_paper_lambda_ends(step, expected):
  schedule = schedules.regression_weight(LossConfig(), 381_030)
  assert float(schedule(step)) == pytest.approx(expected, abs=1e-6)


def test_lambda_goes_from_its_start_to_its_end():
  config = LossConfig(lambda_delay=100, lambda_start=1.0, lambda_end=3.0, update_every=1)
  schedule = schedules.regression_weight(config, 1100)
  for step, expected in ((0, 1.0), (100, 1.0), (350, 2.0 - math.cos(math.pi / 4)), (600, 2.0), (1100, 3.0)):
    assert float(schedule(step)) == pytest.approx(expected, abs=1e-5)


def test_lambda_stays_at_its_end_and_may_jump_there_in_the_last_step():
  schedule = schedules.regression_weight(LossConfig(lambda_delay=100, update_every=1), 1100)
  assert float(schedule(1600)) == pytest.approx(1.0, abs=1e-6)
  schedule = schedules.regression_weight(LossConfig(lambda_delay=100, update_every=1), 101)
  assert [float(schedule(step)) for step in (99, 100, 101, 102)] == pytest.approx([0, 0, 1, 1], abs=1e-6)


def test_lambda_and_noise_follow_one_cosine():
  config = LossConfig(lambda_delay=0, update_every=1, noise_std=0.1)
  weight, noise = schedules.regression_weight(config, 1000), schedules.noise_std(config, 1000)
  for step in (0, 100, 500, 900, 1000):
    cosine = 0.5 * (1 + math.cos(math.pi * step / 1000))
    assert float(weight(step)) == pytest.approx(1 - cosine, abs=1e-6)
    assert float(noise(step)) == pytest.approx(0.1 * cosine, abs=1e-7)


def test_lambda_is_held_between_updates():
  schedule = schedules.regression_weight(LossConfig(), 381_030)
  steps = [200 * 977 + i for i in (0, 1, 976)]
  assert len({float(schedule(s)) for s in steps}) == 1
  assert float(schedule(201 * 977)) > float(schedule(steps[0]))


def test_wsd_warms_up_stays_and_ends_at_zero():
  config = OptimizerConfig(schedule="wsd", peak=1e-3, warmup_steps=100, decay_steps=200)
  schedule = schedules.learning_rate(config, 1000, 977)
  got = [float(schedule(s)) for s in (0, 50, 100, 500, 800, 900, 1000)]
  np.testing.assert_allclose(got, [0, 5e-4, 1e-3, 1e-3, 1e-3, 5e-4, 0], atol=1e-9)


def test_unknown_schedule_is_named():
  with pytest.raises(InputError, match="unknown learning rate schedule 'cosine': expected 'rsqrt' or 'wsd'"):
    schedules.learning_rate(OptimizerConfig(schedule="cosine"), 10, 1)
