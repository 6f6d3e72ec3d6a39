"""launch.export: the checkpoint as a model, what its card says, and what a model made from it inherits."""

import dataclasses
import hashlib
import json
import math
import os
from pathlib import Path
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import tiny
from configs.data import univariate
from data_gen import bloom, config as config_lib, job as job_lib, seen, workers
from launch import card, export
from symformer_jax import configuration, files
from symformer_jax.errors import DataError, InputError, ModelError
from symformer_jax.pretrained import registry
from symformer_jax.training import checkpoint, loop
from symformer_jax.training.config import MeshConfig, TrainConfig


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
  """A small generated folder, with its manifest and hashes."""
  folder = tmp_path_factory.mktemp("made")
  config = config_lib.from_dict({**univariate.get_config().to_dict(), "simplify": "rules", "shard_equations": 64})
  job = job_lib.Job(config, str(folder), 64, 16, 3)
  writer, generator = job.prepare()
  with workers.Pool(generator, 1, skip={}) as pool:
    job_lib.fill(writer, pool)
  return folder


def train(workdir: Path, data: Path, **changes) -> TrainConfig:
  built = configuration.build(TrainConfig, tiny.get_config().to_dict())
  config = dataclasses.replace(
    built, mesh=MeshConfig(data=1), num_steps=4, eval_every=2, checkpoint_every=1, keep_checkpoints=9, **changes,
    data=dataclasses.replace(built.data, dirs=(str(data),), batch_size=16, length_buckets=(51,)),
    decoding=dataclasses.replace(built.decoding, every=0))
  run = loop.set_up(config, workdir)
  losses = iter([1.0, 2.0])
  run.evaluate = lambda params: {"loss": next(losses), "cross_entropy": 0.5}
  loop.train(run)
  loop.close(run)
  return config


def call(command, **given) -> int:
  """The command with these flags and no others."""
  command.asked.FLAGS.unparse_flags()
  for name in command.asked.FLAGS:
    command.asked.FLAGS[name].unparse()
  words = [f"--{name}={value}" for name, values in given.items()
           for value in (values if isinstance(values, list) else [values])]
  command.asked.FLAGS(["command", *words])
  return command.main([])


def export_to(out: Path, workdir: Path, **given) -> registry.LoadedModel:
  assert call(export, workdir=workdir, name="mine", out=out, **given) == 0
  return registry.load_model(str(out))


@pytest.fixture(scope="module")
def first(generated, tmp_path_factory):
  workdir = tmp_path_factory.mktemp("first")
  train(workdir, generated)
  return workdir, export_to(tmp_path_factory.mktemp("model"), workdir)


def test_the_newest_checkpoint_and_its_card(first, generated):
  workdir, model = first
  state, _ = checkpoint.read(workdir, 4)
  for got, kept in zip(jax.tree.leaves(model.params), jax.tree.leaves(state.params), strict=True):
    assert np.array_equal(got, np.asarray(kept).astype(jnp.bfloat16).astype(np.float32))
  training = model.card["training"]
  assert (training["steps"], training["examples"], training["examples_in_all"]) == (4, 64, 64)
  assert training["validation"]["step"] == 4 and training["started_from"] is None
  assert str(generated) not in json.dumps(model.card)  # where the data lay is nobody else's business
  assert [line["step"] for line in training["curve"]] == [2, 4]
  [data] = training["data"]
  manifest = next(generated.rglob("manifest.json"))
  assert data["manifest_sha256"] == hashlib.sha256(manifest.read_bytes()).hexdigest()
  assert (data["simplify"], data["seed"], data["equations"]) == ("rules", 3, {"train": 64, "validation": 16})
  [part] = seen.read(model.folder, model.card).parts
  assert part.num_equations == 64


def test_the_best_checkpoint(first, tmp_path):
  workdir, _ = first
  model = export_to(tmp_path, workdir, which="best")
  assert model.card["training"]["steps"] == 2 and model.card["training"]["validation"]["loss"] == 1.0


def test_a_model_that_started_from_another_inherits_what_that_one_met(first, generated, tmp_path):
  _, parent = first
  train(tmp_path / "run", generated, init_from=str(parent.folder))
  model = export_to(tmp_path / "model", tmp_path / "run")
  ancestor = model.card["training"]["started_from"]
  assert ancestor["weights_sha256"] == parent.card["weights_sha256"]
  assert model.card["training"]["examples_in_all"] == 128
  [own] = seen.read(model.folder, model.card).parts  # the same data, hashed once
  [before] = seen.read(parent.folder, parent.card).parts
  assert all((a.bits == b.bits).all() for a, b in zip(own.filters, before.filters, strict=True))


@pytest.mark.slow  # two runs more; the test above has the same way with one
def test_other_data_of_the_model_it_started_from_stay_known(first, generated, tmp_path):
  _, parent = first
  folder = shutil.copytree(parent.folder, tmp_path / "parent")
  [part] = seen.read(folder, parent.card).parts
  other = bloom.BloomFilter(1, seen.RATE)
  other.add(np.array([7], np.uint64))
  earlier = dataclasses.replace(part, filters=(other, part.filters[1]), num_equations=1)
  card_ = {**parent.card, "seen": seen.write(folder, seen.Seen((earlier,)))}
  (folder / registry.CARD).write_text(json.dumps(card_))
  train(tmp_path / "run", generated, init_from=str(folder))
  model = export_to(tmp_path / "model", tmp_path / "run")
  assert [part.num_equations for part in seen.read(model.folder, model.card).parts] == [64, 1]


def test_without_the_data_the_card_knows_no_hashes(first, generated, tmp_path, capsys):
  generated.rename(tmp_path / "elsewhere")
  try:
    model = export_to(tmp_path / "model", first[0])
  finally:
    (tmp_path / "elsewhere").rename(generated)
  assert model.card["seen"] is None and model.card["training"]["data"] is None
  assert "note: without hashes of the training data" in capsys.readouterr().err


def test_data_that_are_asked_for_are_there(first, tmp_path):
  with pytest.raises(DataError, match="no manifest.json in .*gone: expected a folder written by data_gen.generate"):
    call(export, workdir=first[0], name="mine", out=tmp_path / "model", seen=tmp_path / "gone")
  assert not list(tmp_path.iterdir())


def test_a_model_for_its_name_only(first, tmp_path):
  workdir, plain = first
  assert export_to(tmp_path, workdir, by_name_only=True).card["by_name_only"] is True
  assert "by_name_only" not in plain.card


def test_a_model_in_8_bits_says_nearly_the_same(first, tmp_path):
  workdir, plain = first
  short = export_to(tmp_path, workdir, bits="8")
  sizes = [(model.folder / registry.WEIGHTS).stat().st_size for model in (short, plain)]
  assert sizes[0] < sizes[1]  # of so small a model most are names
  for mine, theirs in zip(jax.tree.leaves(short.params), jax.tree.leaves(plain.params), strict=True):
    np.testing.assert_allclose(mine, theirs, atol=0.01 * float(np.abs(theirs).max()))


def test_hashes_are_left_out_where_columns_have_too_many_orders(tmp_path, generated, capsys):
  assert export._write_seen(tmp_path, [str(generated)], None, 9) is None
  assert "a formula of 9 variables has too many orders" in capsys.readouterr().err
  assert not list(tmp_path.iterdir())
  assert export._write_seen(tmp_path, [str(generated)], None, 1) is not None


def test_hours_of_steps_on_the_clock():
  lines = [{"kind": "train", "step": 50, "examples_per_s": 100.0}, {"kind": "validation", "step": 50},
           {"kind": "train", "step": 150, "examples_per_s": 25.0}]
  assert export._hours(lines, 72) == round((50 * 72 / 100 + 100 * 72 / 25) / 3600, 2)
  rates = {}, {"examples_per_s": "9"}, {"examples_per_s": math.nan}
  damaged = [{"kind": "train", "step": 60, **rate} for rate in rates]
  assert export._hours([*lines[:2], *damaged, lines[2]], 72) == export._hours(lines, 72)


def test_a_card_is_completed(first, tmp_path):
  shutil.copytree(first[1].folder, tmp_path / "model")
  figures = {"rows": 3, "median_r2": 1.0, "median_relative_error": 0.1, "share_r2_above_0.99": 1.0,
             "share_r2_above_0.999": 1.0, "share_r2_above_0.9999": 0.5, "share_recovered": 0.5, "mean_seconds": 2.0}
  (tmp_path / "results" / "paper").mkdir(parents=True)
  (tmp_path / "results" / "paper" / "summary.json").write_text(json.dumps({
    "command": "c", "date": "d", "commit": "e", "hardware": "h", "models": "m", "settings": {},
    "variants": {"": {**figures, "answered": 3}}}))
  assert call(card, model=tmp_path / "model", results=tmp_path / "results", hardware="two cores",
              weakness=["long polynomials", "two words"]) == 0
  model = registry.load_model(str(tmp_path / "model"))  # its weights are still those of the card
  assert model.card["results"]["paper"]["variants"] == {"all": figures}
  assert model.card["training"]["hardware"] == "two cores"
  assert model.card["weaknesses"] == ["long polynomials", "two words"]
  assert model.card["training"]["steps"] == 4
  with pytest.raises(InputError, match="no summary.json in the folders of"):
    call(card, model=tmp_path / "model", results=tmp_path)


@pytest.mark.parametrize("text", [
  b"[]", b"{}", b'{"variants": 3}', b'{"variants": {"a": 3}}', b"\xff", b"[" * 100_000, b"", None, "pipe"])
def test_what_is_no_summary_is_named_and_the_card_stays(first, tmp_path, text):
  shutil.copytree(first[1].folder, tmp_path / "model")
  before = (tmp_path / "model" / "card.json").read_bytes()
  (tmp_path / "results" / "paper").mkdir(parents=True)
  if text is None:
    (tmp_path / "results" / "paper" / "summary.json").mkdir()
  elif text == "pipe":
    os.mkfifo(tmp_path / "results" / "paper" / "summary.json")
  else:
    (tmp_path / "results" / "paper" / "summary.json").write_bytes(text)
  why = ": it has no key 'variants'$" if text == b"{}" else ""
  with pytest.raises(InputError, match="summary.json is no summary of launch.evaluate" + why):
    call(card, model=tmp_path / "model", results=tmp_path / "results")
  assert (tmp_path / "model" / "card.json").read_bytes() == before


@pytest.mark.parametrize("training", [None, [1]])
def test_a_card_without_training_is_refused_in_one_line(first, tmp_path, training):
  shutil.copytree(first[1].folder, tmp_path / "model")
  path = tmp_path / "model" / "card.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | {"training": training}))
  with pytest.raises(ModelError, match="card.json says nothing of training"):
    call(card, model=tmp_path / "model", hardware="two cores")
  model = registry.load_model(str(tmp_path / "model"))
  with pytest.raises(ModelError, match="which the run started from, says nothing of training"):
    export._describe_ancestor(model)


def test_a_curve_that_is_damaged_loses_its_damaged_lines_alone(tmp_path):
  path = tmp_path / "metrics.jsonl"
  lines = '{"step": 1, "kind": "train"}', "[]", '{"step": "a", "kind": "train"}', '{"kind": "train"}', '{"step": 2, "ki'
  path.write_text("\n".join(lines))
  assert [line["step"] for line in export._read_curve(path)] == [1]
  path.write_bytes(b"\xff")
  with pytest.raises(ModelError, match="cannot read .*metrics.jsonl: 'utf-8' codec"):
    export._read_curve(path)
  with pytest.raises(ModelError, match="cannot read .*metrics.jsonl: Is a directory"):
    path.unlink() or path.mkdir() or export._read_curve(path)


def test_unusable_places_are_refused_before_anything_is_written(first, tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(InputError, match="--out: cannot make the folder '.*below': Not a directory"):
    call(export, workdir=first[0], name="mine", out=tmp_path / "file" / "below")
  for empty in ("workdir", "name", "out", "seen"):
    with pytest.raises(InputError, match=f"--{empty}: expected a value, got nothing"):
      call(export, **{"workdir": first[0], "name": "mine", "out": tmp_path / "new", empty: ""})
  for name in ("n" * 201, "two\nlines"):  # a model that `load_model` refuses
    with pytest.raises(InputError, match="--name: expected 1 to 200 signs in a line"):
      call(export, workdir=first[0], name=name, out=tmp_path / "new")
  for empty in ("model", "results"):
    with pytest.raises(InputError, match=f"--{empty}: expected a value, got nothing"):
      call(card, **{"model": first[1].folder, "results": tmp_path, empty: ""})
  assert not (tmp_path / "new").exists()


def test_a_disk_that_fills_up_leaves_the_model_that_was_there(first, generated, tmp_path, monkeypatch):
  folder = tmp_path / "model"
  call(export, workdir=first[0], name="before", out=folder, seen=generated)
  before = {path.name: path.read_bytes() for path in folder.iterdir()}
  monkeypatch.setattr(registry, "save_model", lambda *_, **__: os.pwrite(os.open("/dev/full", os.O_WRONLY), b"1", 0))
  with pytest.raises(InputError, match="--out: cannot write to '.*model': No space left on device"):
    call(export, workdir=first[0], name="after", out=folder, seen=generated, which="best")
  assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_two_processes_write_no_model_at_once(first, tmp_path):
  shutil.copytree(first[1].folder, tmp_path / "model")
  with files.claimed(tmp_path / "model", flag="--out"):
    with pytest.raises(InputError, match="--out: another process is writing to"):
      call(export, workdir=first[0], name="mine", out=tmp_path / "model")
    with pytest.raises(InputError, match="--model: another process is writing to"):
      call(card, model=tmp_path / "model", hardware="two cores")


def test_a_card_is_written_where_the_model_was_read(first, tmp_path, monkeypatch):
  (tmp_path / "univariate").mkdir()
  monkeypatch.chdir(tmp_path)
  shutil.copytree(first[1].folder, tmp_path / "shipped" / "univariate")
  monkeypatch.setattr(registry, "FOLDER", tmp_path / "shipped")
  assert call(card, model="univariate", hardware="two cores") == 0
  assert registry.load_model("univariate").card["training"]["hardware"] == "two cores"
  assert not list((tmp_path / "univariate").iterdir())


def test_an_unreadable_checkpoint_is_told_of_by_its_error_alone(tmp_path, caplog, capfd):
  (tmp_path / "checkpoints" / "5").mkdir(parents=True)
  with pytest.raises(ModelError, match="checkpoint 5 of .* cannot be read: "):
    call(export, workdir=tmp_path, name="mine", out=tmp_path / "model")
  assert caplog.text + capfd.readouterr().err == ""


def test_nothing_to_export(tmp_path):
  (tmp_path / "checkpoints" / "²").mkdir(parents=True)  # a digit, but no number
  with pytest.raises(ModelError, match="no checkpoint below"):
    export_to(tmp_path / "model", tmp_path)
