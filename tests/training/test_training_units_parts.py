"""How a run is put together, of made up parts: what is compiled, resumed, drawn and written; nothing is trained."""

import dataclasses
import json
import types

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
import numpy as np
import pytest

from configs import tiny
from symformer_jax import configuration
from symformer_jax.data import pipeline, points
from symformer_jax.data.pipeline import Batch
from symformer_jax.errors import InputError, ModelError
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.training import (
  checkpoint,
  evaluation,
  logs,
  loop,
  losses,
  processes,
  sharding,
  speed,
  step as step_lib,
)
from symformer_jax.training.config import DecodingConfig, MeshConfig, TrainConfig
from symformer_jax.training.state import TrainState, init_state

TINY = configuration.build(TrainConfig, tiny.get_config().to_dict())


class Enough(Exception):
  """Ends what is asked as soon as it has been seen."""


def batch_of(num=2):
  return Batch(np.ones((num, 3), np.int32), np.zeros((num, 3), np.float32), np.zeros((num, 1, 2), np.float32))


# --- set up ------------------------------------------------------------------------------------------------------


def test_steps_are_compiled_for_their_layouts_and_a_new_state_takes_the_place_of_the_old(monkeypatch):
  mesh = sharding.make_mesh(MeshConfig(data=1, fsdp=2, tensor=4))
  kernel = jax.ShapeDtypeStruct((8, 8), jnp.float32)
  abstract = TrainState(jax.ShapeDtypeStruct((), jnp.int32), {"inner": {"kernel": kernel}}, {}, kernel)
  asked = {}
  monkeypatch.setattr(loop.step_lib, "make_train_step", lambda config, optimizer, *, layout: (
    "train", config, optimizer, layout))
  monkeypatch.setattr(loop.step_lib, "make_eval_step", lambda config, *, layout: ("eval", config, layout))
  monkeypatch.setattr(jax, "jit", lambda function, **options: asked.update({function[0]: options}) or function)
  train_step, eval_step, shardings = loop.jit_steps(TINY, "adam", mesh, abstract)
  assert train_step[:3] == ("train", TINY, "adam") and eval_step[:2] == ("eval", TINY)
  for layout in (train_step[3], eval_step[2]):
    assert layout["inner"]["kernel"].spec == P(None, "tensor")
  assert shardings.params["inner"]["kernel"].spec == P("fsdp", "tensor")
  batch, everywhere = NamedSharding(mesh, P(("data", "fsdp"))), NamedSharding(mesh, P())
  assert asked["train"] == {"in_shardings": (shardings, batch), "out_shardings": (shardings, everywhere),
                            "donate_argnums": 0}
  assert asked["eval"] == {"in_shardings": (shardings.params, batch, everywhere), "out_shardings": everywhere}


@pytest.fixture
def parts(monkeypatch):
  """What a run is set up from, in the place of a network, data and files; `restored` is what is on the disk."""
  state = TrainState(jnp.int32(0), {"w": jnp.zeros(2)}, {}, jax.random.key_data(jax.random.key(0)))
  seen = types.SimpleNamespace(restored=None, metas=[], curves=[], kept=[], validated=[], rooms=[])
  shardings = sharding.state_sharding(state, sharding.make_mesh(TINY.mesh))

  def restore_newest(abstract, iterator, check_meta):
    assert iterator == "iterator" and abstract.params["w"].sharding == shardings.params["w"]
    for meta in seen.metas:
      check_meta(meta)
    return seen.restored
  monkeypatch.setattr(loop, "init_state", lambda config, optimizer: state)
  monkeypatch.setattr(loop, "jit_steps", lambda *given: ("train step", "eval step", shardings))
  monkeypatch.setattr(loop.pipeline, "make_iterator", lambda *given, **named: "iterator")
  monkeypatch.setattr(loop.checkpoint, "Checkpoints", lambda workdir, *, keep: seen.kept.append((workdir, keep)) or (
    types.SimpleNamespace(restore_newest=restore_newest, check_room=seen.rooms.append)))
  monkeypatch.setattr(loop.evaluation, "make_evaluation", lambda config, step, batches: seen.validated.append(
    (config, step, batches)) or "evaluate")
  monkeypatch.setattr(loop.evaluation, "make_decoding_evaluation", lambda config: ("decode", config))
  monkeypatch.setattr(loop, "Curves", lambda workdir, **named: seen.curves.append((workdir, named)) or "curves")
  monkeypatch.setattr(loop.speed, "measure_matrix_rate", lambda dtype: {"float32": 5.0, "bfloat16": 7.0}[dtype])
  return seen


def test_a_batch_that_the_mesh_cannot_cut_is_refused_before_anything_is_read(parts, tmp_path):
  with pytest.raises(InputError, match="^data.batch_size must be a multiple of the 3 devices"):
    loop.set_up(dataclasses.replace(TINY, mesh=MeshConfig(data=3)), tmp_path)
  assert not parts.kept


def test_a_new_run_begins_at_nothing(parts, tmp_path):
  workdir = tmp_path / "runs" / "first"
  for _ in range(2):  # a folder that is there is taken
    run = loop.set_up(TINY, workdir)
  assert workdir.is_dir() and parts.kept[0] == (workdir, TINY.keep_checkpoints)
  assert int(run.state.step) == 0 and run.state.params["w"].tolist() == [0, 0] and run.window.sums == {}
  assert (run.config, run.workdir, run.iterator, run.train_step) == (TINY, workdir, "iterator", "train step")
  assert (run.evaluate, run.evaluate_decoding, run.curves) == ("evaluate", ("decode", TINY), "curves")
  assert parts.curves[0] == (workdir, {"first_step": 0, "is_writer": True}) and run.saved_step == -1
  assert parts.validated[0] == (TINY, "eval step", run.batch_sharding)
  assert parts.rooms[0].params["w"].shape == (2,)
  assert run.batch_sharding.spec == P(("data", "fsdp")) and not run.pending and run.skips_in_a_row == 0
  assert run.meter._peak == 5 * jax.device_count()
  started = loop.set_up(TINY, workdir, {"w": np.ones(2, np.float32)})
  assert started.state.params["w"].tolist() == [1, 1]
  for state in (run.state, started.state):  # on all devices
    assert state.params["w"].sharding == NamedSharding(sharding.make_mesh(TINY.mesh), P())


def test_a_run_goes_on_where_it_was(parts, tmp_path, monkeypatch):
  monkeypatch.setattr(jax, "process_index", lambda: 1)
  state = TrainState(jnp.int32(7), {"w": jnp.full(2, 3.0)}, {}, None)
  parts.restored = state, {"window": {"count": 2, "loss": 5.0}}
  parts.metas = [checkpoint.make_meta(TINY, {})]
  run = loop.set_up(dataclasses.replace(TINY, compute_dtype="bfloat16"), tmp_path, {"w": np.ones(2)})
  assert run.state is state and run.window.sums == {"count": 2, "loss": 5.0} and run.saved_step == 7
  assert parts.curves[0][1] == {"first_step": 7, "is_writer": False} and run.meter._peak == 7 * jax.device_count()
  parts.metas = [{**parts.metas[0], "vocabulary": "another"}]
  with pytest.raises(ModelError, match="another vocabulary"):
    loop.set_up(TINY, tmp_path)


def test_a_fresh_state_has_a_key_that_no_parameter_was_drawn_with(monkeypatch):
  from symformer_jax.training import state as state_lib

  drawn = []
  monkeypatch.setattr(state_lib.symformer, "init_params", lambda config, key: drawn.append(key) or {"w": jnp.ones(2)})
  adam = types.SimpleNamespace(init=lambda params: {"moments": params["w"] * 0})
  states = [init_state(dataclasses.replace(TINY, seed=seed), adam) for seed in (0, 0, 1)]
  found = [tuple(np.asarray(a).tolist()) for s in states for a in (s.key,)]
  keys = [tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in drawn]
  assert found[0] == found[1] != found[2] and keys[0] == keys[1] != keys[2] and not set(found) & set(keys)
  assert int(states[0].step) == 0 and states[0].step.dtype == jnp.int32
  assert states[0].opt_state["moments"].tolist() == [0, 0]


# --- steps -------------------------------------------------------------------------------------------------------


def examples_of_ones():
  seqs = types.SimpleNamespace(ids=None)
  return step_lib.Examples(jnp.ones((2, 4, 2)), jnp.ones((2, 4), bool), seqs, jnp.ones((2, 3)))


def test_no_step_uses_a_key_twice(monkeypatch):
  keys = []

  def seen(key):
    keys.append(tuple(np.asarray(jax.random.key_data(key)).tolist()))

  def add_noise(key, constants, std, *, is_bounded):
    seen(key)
    assert is_bounded and constants.shape == (2, 3)
    return constants

  def accumulate(grad, params, examples, dropout_key, num_parts):
    seen(dropout_key)
    assert num_parts == 2
    raise Enough
  monkeypatch.setattr(step_lib, "prepare", lambda key, batch, config, points: seen(key) or (
    examples_of_ones(), jnp.ones(2)))
  monkeypatch.setattr(step_lib, "add_constant_noise", add_noise)
  monkeypatch.setattr(step_lib, "count_targets", lambda examples, config: losses.Counts(1, 1))
  monkeypatch.setattr(step_lib, "accumulate", accumulate)
  config = dataclasses.replace(TINY, accumulation=2, model=dataclasses.replace(TINY.model, dropout=0.1))
  train = step_lib.make_train_step(config, None)
  for step, seed in ((3, 0), (4, 0), (3, 1)):
    with pytest.raises(Enough):
      train(TrainState(jnp.int32(step), {}, {}, jax.random.key_data(jax.random.key(seed))), batch_of())
  assert len(set(keys)) == len(keys) == 9


def test_only_mantissas_are_bounded_where_noise_is_on_them(monkeypatch):
  def add_noise(key, constants, std, *, is_bounded):
    raise Enough(is_bounded)
  monkeypatch.setattr(step_lib, "prepare", lambda *given: (examples_of_ones(), jnp.ones(2)))
  monkeypatch.setattr(step_lib, "add_constant_noise", add_noise)
  for encoding in ("extended", "base", "skeleton"):
    vocabulary = dataclasses.replace(TINY.model.vocabulary, encoding=encoding)
    config = dataclasses.replace(TINY, model=dataclasses.replace(TINY.model, vocabulary=vocabulary))
    with pytest.raises(Enough, match=str(encoding == "extended")):
      step_lib.make_train_step(config, None)(
        TrainState(jnp.int32(0), {}, {}, jax.random.key_data(jax.random.key(0))), batch_of())


@pytest.mark.parametrize("loss", [lambda w: jnp.sqrt(w), lambda w: w + jnp.inf])
def test_a_step_is_finite_where_loss_and_gradient_are(monkeypatch, loss):
  monkeypatch.setattr(step_lib, "prepare", lambda *given: (examples_of_ones(), jnp.ones(2)))
  monkeypatch.setattr(step_lib, "add_constant_noise", lambda key, constants, std, *, is_bounded: constants)
  monkeypatch.setattr(step_lib, "count_targets", lambda examples, config: losses.Counts(1, 1))
  monkeypatch.setattr(step_lib, "compute_loss", lambda params, *given, **named: (
    loss(params["w"]), {"loss": loss(params["w"])}))
  sgd = types.SimpleNamespace(update=lambda gradients, state, params: (gradients, state))
  state = TrainState(jnp.int32(0), {"w": jnp.float32(0)}, {}, jax.random.key_data(jax.random.key(0)))
  _, metrics = step_lib.make_train_step(TINY, sgd)(state, batch_of())
  assert bool(jnp.isfinite(metrics["loss"])) != bool(jnp.isfinite(metrics["grad_norm"]))
  assert not metrics["is_finite"]


def test_noise_is_so_many_standard_deviations(monkeypatch):
  monkeypatch.setattr(jax.random, "normal", lambda key, shape: jnp.full(shape, 2.0))
  found = step_lib.add_constant_noise(None, jnp.array([0.0, 0.5, -3.0]), jnp.float32(0.25), is_bounded=False)
  assert found.tolist() == [0, 1, -2.5]


def test_validation_has_clean_points_as_many_as_training(monkeypatch):
  """No subsets, no noise, no placed columns: what a fresh configuration of points has."""
  points = dataclasses.replace(TINY.points, num_points=7, draws=3, distractor_probability=0.5, max_distractors=1)
  seen = []

  def prepare(key, batch, config, clean):
    seen.append((key, clean))
    raise Enough
  monkeypatch.setattr(step_lib, "prepare", prepare)
  with pytest.raises(Enough):
    step_lib.make_eval_step(dataclasses.replace(TINY, points=points))({}, batch_of(), "key")
  assert seen == [("key", type(points)(num_points=7, draws=3))] and not seen[0][1].is_placed


def test_answers_are_judged_on_other_points_than_they_were_given(monkeypatch):
  drawn, seen = [], []
  config = dataclasses.replace(
    TINY, decoding=DecodingConfig(every=5, num_equations=3, num_samples=9),
    data=dataclasses.replace(TINY.data, batch_size=2), points=dataclasses.replace(TINY.points, num_points=7, draws=3))
  wide = batch_of().widened(5)
  monkeypatch.setattr(evaluation, "read_validation", lambda config, num: [batch_of(), wide][:num])
  monkeypatch.setattr(jax, "jit", lambda function: function)

  def prepare(key, batch, given, clean):
    drawn.append((key, batch, given, clean))
    return types.SimpleNamespace(points=len(drawn), is_valid=None), None
  monkeypatch.setattr(step_lib, "prepare", prepare)
  monkeypatch.setattr(evaluation.sampling, "encode", lambda model, points, is_valid: (model.params["w"], points))
  monkeypatch.setattr(evaluation, "_answer", lambda model, latents, one, other, strategy, num: seen.append(
    (latents, one.points, other.points, num)) or seen.append(model.config is config.model) or (
      np.ones(3), np.ones(3)))
  evaluate = evaluation.make_decoding_evaluation(config)
  assert [each[1].ids.shape for each in drawn] == [(3, 5)] * 2 and drawn[0][0] != drawn[1][0]
  assert all(each[2] is config and each[3] == type(config.points)(num_points=7, draws=3) for each in drawn)
  evaluate({"w": jnp.ones(2)})
  assert seen[1::2] == [True, True] and isinstance(seen[0][0][0], jax.Array)
  assert [each[1:] for each in seen[::2]] == [(1, 2, 1), (1, 2, 9)]
  assert seen[0][0][1] == 1


def test_a_constant_target_is_right_with_its_own_value_alone():
  """R2 without a spread; a data set without a valid point has none of its own."""
  vocab = TINY.model.vocabulary
  two, three = vocab.ids["2"], vocab.ids["3"]
  ids, constants = jnp.array([[[two], [three]]] * 3), jnp.zeros((3, 2, 1))
  points = jnp.stack([jnp.ones(4), jnp.full(4, 2.0)], axis=1)[None].repeat(3, axis=0)
  is_valid = jnp.array([[True] * 4, [False] * 4, [True] + [False] * 3])
  found = np.asarray(evaluation._r2(ids, constants, points, is_valid, vocab=vocab))
  assert found[1].tolist() == [1, 1]
  for alike in found[[0, 2]]:
    assert alike[0] == 1 and alike[1] < -1e30


def test_groups_by_their_number_of_variables_are_cut_into_batches(monkeypatch):
  """Of 64 equations and tables of 64 rows, the last batch filled up from the beginning of its group."""
  model = types.SimpleNamespace(config=TINY.model, params="params")
  longest, seen = TINY.model.decoder.max_length - 2, []
  ids = np.zeros((101, longest + 1), np.uint8)
  ids[:, 0], ids[50, :longest] = 8, 8
  ids[100] = 8  # too long
  domains = np.zeros((101, 1, 2), np.float32)
  domains[:, 0, 1] = np.where(np.arange(101) < 70, 1 + np.arange(101), 0)
  block = pipeline.records.Block(ids, np.zeros(ids.shape, np.float32), domains)
  monkeypatch.setattr(pipeline, "BlockSource", lambda dirs, split: {("a",): [block]}[tuple(dirs)])
  monkeypatch.setattr(jax, "jit", lambda function: function)

  def make_eval_step(config):
    assert (config.model, config.points) == (TINY.model, points.PointsConfig(num_points=64))
    return lambda params, batch, key: seen.append((batch.domains[:, 0, 1].tolist(), key)) or {"loss": len(seen)}
  monkeypatch.setattr(step_lib, "make_eval_step", make_eval_step)
  found = evaluation.measure_by_variables(model, ["a"], num_equations=69)
  assert found == {0: {"equations": 30, "loss": 1.0}, 1: {"equations": 69, "loss": 2.5}}
  first = [*range(1, 70)]
  assert [rows for rows, _ in seen] == [[0] * 64, first[:64], [*first[64:], *first[:59]]]
  assert seen[0][1] == seen[1][1] == jax.random.key(0) and seen[2][1] == jax.random.key(1)


def test_all_columns_but_the_last_are_those_of_a_formula():
  vocab = Vocabulary(2)
  ids = jnp.array([[[vocab.ids[token] for token in ("+", "x1", "x1")]]])
  x0, x1 = jnp.array([[5.0, 1.0, 2.0, 0.0], [1.0, 2.0, 4.0, 3.0]])
  points = jnp.stack([x0, x1, 2 * x1], axis=1)[None]
  found = evaluation._r2(ids, jnp.zeros((1, 1, 3)), points, jnp.ones((1, 4), bool), vocab=vocab)
  assert found.tolist() == [[1.0]]


# --- processes ---------------------------------------------------------------------------------------------------


def test_arrays_go_to_the_devices_of_one_process_and_are_parts_of_those_of_several(monkeypatch):
  whole, batch, calls = NamedSharding(sharding.make_mesh(MeshConfig(data=1)), P()), batch_of(), []
  monkeypatch.setattr(jax, "device_put", lambda tree, to: calls.append(("put", to)) or tree)
  monkeypatch.setattr(jax, "device_get", lambda tree: calls.append(("get",)) or tree)
  monkeypatch.setattr(jax, "make_array_from_callback", lambda shape, to, read: calls.append(("read", to)) or (
    read((slice(1, 2),))))
  monkeypatch.setattr(jax, "make_array_from_process_local_data", lambda to, rows: calls.append(("rows", to)) or rows)
  monkeypatch.setattr(processes.multihost_utils, "process_allgather", lambda tree, **named: calls.append(("all",)))

  def asked():
    calls.clear()
    processes.to_devices(batch, whole)
    shared = processes.share_out(batch, whole)
    processes.gather({"a": 1})
    return list(calls), shared
  assert asked()[0] == [("put", whole), ("put", whole), ("get",)]
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  found, shared = asked()
  assert found == [("rows", whole)] * 3 + [("read", whole)] * 3 + [("all",)] and shared.ids.shape == (1, 3)


# --- what is written ---------------------------------------------------------------------------------------------


def test_curves_are_on_the_disk_as_soon_as_they_are_written(tmp_path, monkeypatch):
  boards = []

  class Board:
    def __init__(self, folder, *, purge_step):
      boards.append((folder, purge_step))

    def add_scalar(self, name, value, step):
      boards.append((name, value, step))

    def close(self):
      boards.append("closed")
  monkeypatch.setattr(logs, "SummaryWriter", Board)
  curves = logs.Curves(str(tmp_path), first_step=4)
  curves.write(5, "train", {"loss": 1.5, "rate": 2.5})
  assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"step": 5, "kind": "train", "loss": 1.5, "rate": 2.5}
  curves.close()
  assert curves._file.closed and boards == [
    (str(tmp_path / "tensorboard"), 4), ("train/loss", 1.5, 5), ("train/rate", 2.5, 5), "closed"]


def test_windows_are_not_shared():
  sums = {"count": 1, "loss": 2.0}
  window = logs.Window(sums)
  window.add({"loss": jnp.float32(4)})
  assert sums == {"count": 1, "loss": 2.0} and window.sums == {"count": 2, "loss": 6.0}
  window.skip()
  window.skip()
  assert isinstance(window.sums["loss"], float) and window.pop() == {"loss": 3.0, "skipped": 2} and window.pop() == {}


def manager_of(monkeypatch, restore, steps):
  class Manager:
    directory = "the folder"

    def __init__(self, folder):
      pass

    def __enter__(self):
      return self

    def __exit__(self, *_):
      pass

    def all_steps(self):
      return list(steps)
  Manager.restore = staticmethod(restore)
  monkeypatch.setattr(checkpoint.ocp, "CheckpointManager", Manager)
  found = object.__new__(checkpoint.Checkpoints)
  found._manager = Manager("folder")
  return found


def test_what_is_said_of_damage_is_one_line_of_two_hundred_characters(monkeypatch, caplog, tmp_path):
  def restore(step, args):
    raise OSError("x" * 300 + "\nmore")
  with pytest.raises(ModelError, match="no checkpoint of the folder can be read"):
    manager_of(monkeypatch, restore, (1, 3, 2)).restore_newest(TrainState(1, {}, {}, None), None, lambda meta: None)
  said = [line.rpartition(" ")[2] for line in caplog.text.splitlines()]
  assert [line.split("checkpoint ")[1][0] for line in caplog.text.splitlines()] == ["3", "2", "1"]  # the newest first
  assert said == ["x" * 200] * 3
  with pytest.raises(ModelError) as error:
    checkpoint.read(tmp_path, 3)
  assert str(error.value) == f"checkpoint 3 of {tmp_path} cannot be read: {'x' * 200}"


def test_a_checkpoint_is_read_to_the_first_device_of_this_process(monkeypatch, tmp_path):
  one, asked = jax.devices()[0], []
  state = TrainState(jnp.int32(4), {"w": jnp.ones(2)}, {}, None)
  monkeypatch.setattr(jax, "local_devices", lambda: [one])
  monkeypatch.setattr(checkpoint, "init_state", lambda config, optimizer: state)
  monkeypatch.setattr(checkpoint.ocp.args, "StandardRestore", lambda tree: asked.append(tree) or (
    checkpoint.ocp.args.JsonRestore(tree)))
  meta = {"config": configuration.to_dict(TINY)}
  manager_of(monkeypatch, lambda step, args: {"meta": meta, "state": state._asdict()}, (4,))
  assert checkpoint.read(tmp_path, 4) == (state, meta)
  assert asked[0]["params"]["w"].sharding.device_set == {one} and asked[0]["params"]["w"].shape == (2,)


def test_a_setting_of_a_checkpoints_model_that_nobody_knows_is_said_to_be_its_own():
  meta = checkpoint.make_meta(TINY, {})
  meta["config"]["model"]["depth"] = 3
  with pytest.raises(InputError, match="unknown key the checkpoint's model.depth: expected"):
    checkpoint.check_same_run(meta, TINY)


def test_another_process_may_have_removed_what_is_damaged(tmp_path, monkeypatch):
  path = tmp_path / "12" / "metrics" / "metrics"
  path.parent.mkdir(parents=True)
  path.write_text("{")
  remove = checkpoint.shutil.rmtree

  def twice(folder, **options):
    remove(folder)
    remove(folder, **options)
  monkeypatch.setattr(checkpoint.shutil, "rmtree", twice)
  checkpoint._drop_damaged_metrics(tmp_path)
  assert (tmp_path / "12").exists() and not path.parent.exists()


def test_shapes_for_restoring_have_the_layout_of_the_run():
  mesh = sharding.make_mesh(MeshConfig())
  state = TrainState(jnp.int32(1), {"w": jnp.ones((2, 3))}, {}, jnp.zeros(2))
  layouts = jax.tree.map(lambda leaf: NamedSharding(mesh, P()), state)
  found = checkpoint.abstract_like(state, layouts)
  assert found.params["w"] == jax.ShapeDtypeStruct((2, 3), jnp.float32, sharding=NamedSharding(mesh, P()))
  assert found.step.dtype == jnp.int32 and found.step.shape == ()


def test_a_product_is_tried_once_before_it_is_timed_and_on_a_device_of_this_process(monkeypatch):
  calls, clock = [], iter(np.arange(100.0))
  product = types.SimpleNamespace(lower=lambda *given: product, compile=lambda: lambda a, b: calls.append("product"))
  monkeypatch.setattr(jax, "jit", lambda function: product)
  monkeypatch.setattr(jax, "block_until_ready", lambda value: value)
  monkeypatch.setattr(speed, "time", types.SimpleNamespace(
    perf_counter=lambda: calls.append("time") or next(clock)))
  monkeypatch.setattr(speed, "MATRIX_SIZES", {"cpu": 4})
  one = jax.devices()[0]
  monkeypatch.setattr(jax, "local_devices", lambda: [one])
  monkeypatch.setattr(jax, "device_put", lambda matrix, device: calls.append((matrix.shape, matrix.dtype)) or (
    calls.append(device is one)))
  assert speed.measure_matrix_rate("bfloat16") == 2 * 4**3
  assert calls == [((4, 4), jnp.bfloat16), True, "product", *["time", "product", "time"] * 5]


@pytest.mark.parametrize("ask", [
  lambda folder: checkpoint.Checkpoints(folder, keep=1), checkpoint.best_step,
  lambda folder: checkpoint.read(folder, 1)])
def test_a_folder_whose_name_orbax_does_not_take_is_refused_before_there_is_something_to_save(tmp_path, ask):
  with pytest.raises(InputError, match=r"/\\udcff/checkpoints': expected a name in UTF-8 for a folder of checkpoints"):
    ask(tmp_path / "\udcff")
  assert not list(tmp_path.iterdir())
