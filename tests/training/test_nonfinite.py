"""A loss or gradient that is not finite: the run stops with its batch saved, or leaves the update out and counts it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.errors import InputError
from symformer_jax.training import loop
from symformer_jax.training.config import MeshConfig

BAD_STEP = 3


def _set_up(config, workdir, **changes):
  """A run whose step BAD_STEP divides 0 by 0."""
  config = dataclasses.replace(
    config, mesh=MeshConfig(data=1), num_steps=6, log_every=6, checkpoint_every=2, eval_every=0, **changes)
  run = loop.set_up(config, workdir)
  step = run.train_step

  def spoiled(state, batch):
    if int(state.step) + 1 == BAD_STEP:
      batch = batch._replace(mantissas=batch.mantissas * jnp.nan)
    return step(state, batch)

  run.train_step = spoiled
  return run


def test_the_run_stops_and_keeps_step_and_batch(config, tmp_path):
  run = _set_up(config, tmp_path)
  with pytest.raises(InputError, match=r"step 3: loss nan, .*step and batch are in .*nonfinite_0.npz"):
    loop.train(run)
  with np.load(tmp_path / "nonfinite_0.npz") as saved:
    assert saved["step"] == BAD_STEP and saved["ids"].shape[0] == config.data.batch_size
  assert [p.name for p in (tmp_path / "checkpoints").glob("*")] == ["2"]
  loop.close(run)


@pytest.mark.slow
def test_metrics_read_a_step_late_stop_before_the_next_checkpoint(config, tmp_path, monkeypatch):
  run = _set_up(config, tmp_path)
  monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
  with pytest.raises(InputError, match="step 3"):
    loop.train(run)
  assert int(run.state.step) == 4 and [p.name for p in (tmp_path / "checkpoints").glob("*")] == ["2"]
  loop.close(run)


def test_the_update_is_left_out_and_counted(config, tmp_path):
  run = _set_up(config, tmp_path, on_nonfinite="skip")
  kept = {}
  spoiled = run.train_step

  def watched(state, batch):
    before = jax.device_get(state.params)
    state, metrics = spoiled(state, batch)
    kept[int(state.step)] = all(jax.tree.leaves(jax.tree.map(np.array_equal, before, jax.device_get(state.params))))
    return state, metrics

  run.train_step = watched
  assert loop.train(run)
  assert [step for step, is_same in kept.items() if is_same] == [BAD_STEP]
  text = (tmp_path / "metrics.jsonl").read_text()
  assert '"skipped": 1' in text and "NaN" not in text
  loop.close(run)


@pytest.mark.slow
def test_too_many_in_a_row_stop_the_run(config, tmp_path):
  run = _set_up(config, tmp_path, on_nonfinite="skip", max_skips=1)
  with pytest.raises(InputError, match="step 3"):
    loop.train(run)
  loop.close(run)


@pytest.mark.parametrize(("on_nonfinite", "bounds"), [
  pytest.param("stop", (None, 1e6, 1e-6), marks=pytest.mark.slow), ("skip", (1e6, 1e-6))])
def test_a_gradient_above_the_bound_counts_as_not_finite(config, tmp_path, on_nonfinite, bounds):
  config = dataclasses.replace(
    config, mesh=MeshConfig(data=1), num_steps=2, log_every=2, checkpoint_every=0, eval_every=0, max_skips=2)
  skipped, params = {}, {}
  for bound in bounds:
    run = loop.set_up(dataclasses.replace(config, on_nonfinite=on_nonfinite, max_gradient_norm=bound),
                      tmp_path / str(bound))
    params["before"] = jax.device_get(run.state.params)
    if bound == 1e-6:
      with pytest.raises(InputError, match=r"step \d: loss [\d.]+, gradient norm [\d.]+: .*config.max_gradient_norm"):
        loop.train(run)
    else:
      assert loop.train(run)
      skipped[bound] = (tmp_path / str(bound) / "metrics.jsonl").read_text().count("skipped")
    params[bound] = jax.device_get(run.state.params)
    loop.close(run)
  assert skipped == dict.fromkeys(bounds[:-1], 0)
  if on_nonfinite == "skip":
    jax.tree.map(np.testing.assert_array_equal, params["before"], params[1e-6])
  else:
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), params[None], params[1e6])
