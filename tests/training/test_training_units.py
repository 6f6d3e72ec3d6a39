"""Parts of the training by themselves: curves, windows, the optimiser, rates, growing rows. No network is compiled."""

import dataclasses
import errno
import json
import math
import os
import threading
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax import configuration, ranges
from symformer_jax.errors import InputError
from symformer_jax.training import logs, optimizer, schedules, speed, transfer
from symformer_jax.training.config import RANGES, OptimizerConfig, TrainConfig


def test_a_window_has_the_means_of_its_steps_and_counts_those_left_out():
  window = logs.Window()
  window.add({"loss": 3, "rate": 1})
  window.skip()
  window.add({"loss": 5, "rate": 2})
  again = logs.Window(window.sums)  # as a checkpoint has it
  assert again.pop() == {"loss": 4.0, "rate": 1.5, "skipped": 1} and again.pop() == {} and window.sums["count"] == 2
  again.add({"loss": 7})
  assert again.pop() == {"loss": 7.0}


def test_a_curve_goes_on_where_the_checkpoint_was(tmp_path):
  curves = logs.Curves(tmp_path, first_step=0)
  for step in (1, 2, 3):
    curves.write(step, "train", {"loss": step / 2})
  curves.close()
  path = tmp_path / "metrics.jsonl"
  path.write_bytes(path.read_bytes() + b'{"loss": 1}\n[]\n{"step": "2"}\n\xff\x00\x00\n{"step": 2, "lo')
  curves = logs.Curves(tmp_path, first_step=2)
  curves.write(3, "eval", {"loss": 9.0})
  curves.close()
  assert [json.loads(line) for line in path.read_text().splitlines()] == [
    {"step": 1, "kind": "train", "loss": 0.5}, {"step": 2, "kind": "train", "loss": 1.0},
    {"step": 3, "kind": "eval", "loss": 9.0}]
  silent = logs.Curves(tmp_path / "other", first_step=0, is_writer=False)
  silent.write(1, "train", {"loss": 1.0})
  silent.close()
  assert not (tmp_path / "other").exists()


def test_a_disk_that_takes_no_more_ends_the_curve(tmp_path, monkeypatch):
  """TensorBoard's thread ends without a word; the next line says it, and nothing is written again at exit."""
  others = []
  monkeypatch.setattr(threading, "excepthook", others.append)
  curves = logs.Curves(tmp_path, first_step=0)
  writer = curves._board.file_writer.event_writer
  curves.write(1, "train", {"loss": 1.0})

  def fail(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
  for target in (fail, lambda: 1 / 0):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
  assert [each.exc_type for each in others] == [ZeroDivisionError]  # not the writer's
  with pytest.raises(OSError, match="No space left on device"):
    curves.write(2, "train", {"loss": 1.0})
  assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1
  close = writer.close
  monkeypatch.setattr(writer, "flush", fail)
  curves.abandon()
  writer.close()  # as the process does when it ends
  monkeypatch.delattr(writer, "flush")
  close()
  curves = logs.Curves(tmp_path, first_step=1, is_writer=False)
  curves.abandon()


def test_curves_are_not_read_where_they_have_no_end(tmp_path):
  os.mkfifo(tmp_path / "pipe")
  for place in ("pipe", "/dev/zero"):
    (tmp_path / "metrics.jsonl").unlink(missing_ok=True)
    (tmp_path / "metrics.jsonl").symlink_to(place)
    with pytest.raises(OSError, match=r"is no regular file: .*metrics\.jsonl"):
      logs.Curves(tmp_path, first_step=0)


def test_a_curve_that_ends_gives_threads_back_their_hook(tmp_path):
  before = threading.excepthook
  curves = logs.Curves(tmp_path, first_step=0)
  assert threading.excepthook != before
  curves.close()
  assert threading.excepthook is before


def updated(config, gradients, params):
  made = optimizer.make_optimizer(config)
  state = made.init(params)
  return made.update(gradients, state, params)


PARAMS = {"matrix": jnp.full((2, 2), 10.0), "bias": jnp.full(2, 10.0)}


def test_weights_decay_in_matrices_alone_and_gradients_are_clipped():
  options = OptimizerConfig(schedule="wsd", peak=0.1, warmup_steps=0, weight_decay=0.5)
  zero = jax.tree.map(jnp.zeros_like, PARAMS)
  updates, _ = updated(TrainConfig(optimizer=options), zero, PARAMS)
  np.testing.assert_allclose(updates["matrix"], -0.1 * 0.5 * 10, rtol=1e-6)
  np.testing.assert_array_equal(updates["bias"], 0)
  clipped = TrainConfig(optimizer=dataclasses.replace(options, clip_norm=3.0, weight_decay=0.0))
  _, state = updated(clipped, jax.tree.map(lambda p: 100 * p, PARAMS), PARAMS)
  moments = [leaf for leaf in jax.tree.leaves(state) if leaf.shape == (2, 2)]
  # A tenth of the clipped gradient is the first moment: its six entries have the norm 3.
  np.testing.assert_allclose(np.max(moments[0]), 0.1 * 3 / 6**0.5, rtol=1e-5)
  # The second has one part in a thousand, unless the configuration says otherwise.
  np.testing.assert_allclose(moments[1], 0.001 * 9 / 6, rtol=1e-4)
  _, state = updated(TrainConfig(optimizer=dataclasses.replace(options, b2=0.9)), PARAMS, PARAMS)
  np.testing.assert_allclose([leaf for leaf in jax.tree.leaves(state) if leaf.shape == (2, 2)][1], 0.1 * 100, rtol=1e-4)


def test_an_update_that_is_not_finite_is_left_out_where_that_is_asked_for():
  options = OptimizerConfig(schedule="wsd", peak=0.1, warmup_steps=0)
  bad = jax.tree.map(lambda p: p * jnp.nan, PARAMS)
  updates, _ = updated(TrainConfig(optimizer=options, on_nonfinite="skip"), bad, PARAMS)
  assert all(not np.any(leaf) for leaf in jax.tree.leaves(updates))
  updates, _ = updated(TrainConfig(optimizer=options), bad, PARAMS)
  assert all(np.isnan(leaf).all() for leaf in jax.tree.leaves(updates))


def test_stairs_hold_a_schedule_between_their_steps():
  assert [schedules.in_stairs(lambda step: step, 3)(step) for step in range(7)] == [0, 0, 0, 3, 3, 3, 6]
  assert schedules.in_stairs("as it is", 1) == "as it is"


def test_products_are_counted_wherever_they_stand():
  def twice(a, b):
    return jax.jit(lambda a, b: a @ b)(a, b) @ b

  def often(a, b):
    return jax.lax.scan(lambda carry, _: (carry @ b, None), a, length=5)[0]
  a, b = jnp.ones((3, 4)), jnp.ones((4, 4))
  one = 2 * 3 * 4 * 4
  for function, count in ((lambda a, b: a @ b, 1), (twice, 2), (often, 5)):
    assert speed._product_flops(jax.make_jaxpr(function)(a, b).jaxpr) == count * one


def test_rates_are_those_of_the_window(monkeypatch):
  config = types.SimpleNamespace(data=types.SimpleNamespace(batch_size=8))
  now = iter([100.0, 102.0, 102.5])
  monkeypatch.setattr(speed.time, "perf_counter", lambda: next(now))
  monkeypatch.setattr(speed, "flops_per_example", lambda config, length: length * 1e9)
  meter = speed.Meter(config, 1e12)
  meter.add(16, 0.25)
  meter.add(32, 0.25)
  flops = 8 * 48e9 / 2
  assert meter.pop() == pytest.approx({
    "examples_per_s": 8.0, "gflops_per_s": flops / 1e9, "utilization": flops / (1e12 * jax.device_count()),
    "input_wait": 0.25})
  assert not any((meter._examples, meter._flops, meter._wait_s)) and meter._since == 102.5


def test_the_rate_of_products_is_that_of_the_best_try(monkeypatch):
  now = iter(np.cumsum([9.0, 4, 6, 2] + [1, 3] * speed.NUM_TRIES))
  monkeypatch.setattr(speed, "MATRIX_SIZES", {jax.default_backend(): 8})
  # Of this module alone: elsewhere, too, time is asked when a program is compiled.
  monkeypatch.setattr(speed, "time", types.SimpleNamespace(perf_counter=lambda: next(now)))
  assert speed.measure_matrix_rate("float32") == pytest.approx(2 * 8**3 / 2)


def test_new_rows_are_the_first_one_and_a_tenth_of_the_draw():
  kept, drawn = np.array([[1.0, 2], [3, 4]]), np.array([[10.0, 10], [20, 20], [30, 40]])
  np.testing.assert_allclose(transfer._extend(kept, drawn, 0, 1), [[1, 2], [3, 4], [3 + 3, 4 + 4]])
  np.testing.assert_allclose(transfer._extend(kept.T, drawn.T, 1, 1), [[1, 3, 6], [2, 4, 8]])


def test_what_ends_a_sublayer_begins_as_nothing_where_it_is_new():
  path = tuple(types.SimpleNamespace(key=key) for key in ("block", "out", "kernel"))
  drawn = np.full((3, 2), 7.0)
  np.testing.assert_array_equal(transfer._grow_leaf(path, np.ones((2, 1)), drawn.copy()), [[1, 0], [1, 0], [0, 0]])
  other = tuple(types.SimpleNamespace(key=key) for key in ("block", "inner", "kernel"))
  np.testing.assert_array_equal(transfer._grow_leaf(other, np.ones((2, 1)), drawn.copy()), [[1, 7], [1, 7], [7, 7]])
  np.testing.assert_array_equal(transfer._grow_leaf(path, None, drawn.copy()), np.zeros((3, 2)))


def build(name, value):
  """A training config with one number, of a part or of the whole, set."""
  part, _, field = name.rpartition(".")
  return configuration.build(TrainConfig, {part: {field: value}} if part else {field: value})


@pytest.mark.parametrize(("name", "value", "message"), [
  ("seed", -1, r"seed: expected a whole number from 0 to 2\*\*63 - 1, got -1"),
  ("seed", 2**64, r"seed: expected a whole number from 0 to 2\*\*63 - 1, got 18446744073709551616"),
  pytest.param("num_steps", 10**5000, "num_steps must lie between 1 and 2147483647, got a value of type int",
               id="digits"),
  ("optimizer.b2", 1.0, "optimizer.b2 must be at least 0 and below 1, got 1.0"),
  ("optimizer.peak", 1e39, r"optimizer.peak must be above 0 and at most 3.4e\+38, got 1e\+39"),
  ("optimizer.clip_norm", 0.0, r"optimizer.clip_norm must be above 0 and at most 3.4e\+38, or None for no clipping, "
   "got 0.0"),
  ("optimizer.warmup_steps", 0, "optimizer.warmup_steps must be at least 1 with optimizer.schedule='rsqrt', got 0"),
  ("points.draws", 2**24, "points.num_points times points.draws must be at most 16777216, got 1677721600"),
  ("points.min_points", 101, "points.min_points must be at most the 100 of points.num_points, got 101"),
  ("decoding.num_samples", 10**12, "decoding.num_samples must lie between 1 and 10000000, got 1000000000000"),
  ("mesh.data", 0, "mesh.data must be at least 1, or -1 for all devices that are left, got 0"),
  ("data.length_buckets", [], r"data.length_buckets must rise to at most the 52 of .*max_length, got \(\)"),
  ("data.length_buckets", [51, 10], r"data.length_buckets must rise to .*, got \(51, 10\)"),
  ("data.length_buckets", [10, 53], r"data.length_buckets must rise to .*, got \(10, 53\)"),
  ("data.repeats", [1, 0], "data.repeats must lie between 1 and 65536, got 0")])
def test_what_a_run_would_fail_at_is_refused_before_it(name, value, message):
  with pytest.raises(InputError, match=f"^config: {message}$"):
    build(name, value)


@pytest.mark.parametrize(("name", "value", "message"), [
  ("data.dirs", [["a"]], r"data.dirs: expected a value of type str, got \('a',\)"),
  ("data.length_buckets", [51, "9"], "data.length_buckets: expected a value of type int, got '9'"),
  ("points.max_noise", "x" * 999, "points.max_noise: expected a value of type float, got 'x{49}[.]{3}x{49}'")])
def test_what_is_no_such_value_is_refused_by_name(name, value, message):
  with pytest.raises(InputError, match=f"^config.{message}$"):
    build(name, value)


def test_every_number_of_a_run_has_its_range():
  assert set(RANGES) == {name for name in ranges.numbers_of(TrainConfig)
                         if name != "seed" and not name.startswith("model.")}
  for name, allowed in RANGES.items():
    is_whole = isinstance(allowed.least, int) and isinstance(allowed.most, int) and allowed.most > 1
    values = [allowed.least - 1, allowed.most * 2] if is_whole else [-math.inf, -1.0, math.inf, math.nan]
    for value in values:
      said = f"config.{name}: expected a number" if value != value else f"config: {name} must (lie|be) .*"
      with pytest.raises(InputError, match=f"^{said}, got "):
        build(name, [value] if name in ("data.length_buckets", "data.repeats") else value)
  assert build("eval_every", 0).eval_every == 0 and build("mesh.data", -1).mesh.data == -1
  assert build("data.length_buckets", [2, 52]).data.length_buckets == (2, 52)
  assert build("points.min_points", 100).points.min_points == 100
