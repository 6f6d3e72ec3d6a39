"""The command that describes folders: counts, samples, damage by name, seen formulas, folders in common, figures."""

import json
import re
import shutil

import numpy as np
import pytest

from data_gen import config as config_lib, inspect as inspect_lib, writer as writer_lib
from symformer_jax.commands import runner
from symformer_jax.data import records
from symformer_jax.errors import DataError, InputError
from symformer_jax.language import printing
from symformer_jax.language.vocabulary import Vocabulary


def inspect(*arguments: str) -> int:
  for name in inspect_lib.asked.FLAGS:
    inspect_lib.asked.FLAGS[name].unparse()
  with pytest.raises(SystemExit) as stopped:
    runner.run(inspect_lib.main, flag_values=inspect_lib.asked.FLAGS, argv=["inspect", *arguments],
               takes_arguments=True)
  return stopped.value.code


def test_a_folder_is_described_and_drawn(made, tmp_path, capsys):
  code = inspect(str(made), "--samples=2", f"--plot={tmp_path}/data.png", "--seen=x")
  out = capsys.readouterr().out
  assert code == 0
  assert "4 of 4 shards finished, all intact" in out and "train: 300 equations" in out
  assert "accepted 360" in out and "[-5, 5]" in out
  assert (tmp_path / "data.png").read_bytes().startswith(b"\x89PNG")


def test_problems_met_are_told_by_name(made, tmp_path, capsys):
  shutil.copytree(made, tmp_path / "copy")
  path = tmp_path / "copy" / writer_lib.MANIFEST
  manifest = json.loads(path.read_text())
  manifest["counts"] |= {"excluded: Nguyen-1": 2, "excluded: R-1": 1}
  path.write_text(json.dumps(manifest))
  assert inspect(str(tmp_path / "copy"), "--samples=0") == 0
  out = capsys.readouterr().out
  assert "excluded 3 (" in out
  total = len(manifest["identity"]["excluded_problems"])
  assert f"of {total} test problems met and dropped:\n  Nguyen-1 2 (66.7%)  R-1 1 (33.3%)\n" in out


def test_counts_are_those_of_the_equations(made):
  vocab = Vocabulary(1)
  summary = inspect_lib.summarize(made, "train", vocab, 3)
  rows = [row for path in records.find_shards(made) for row in writer_lib.read_rows(path)]
  assert summary.num_equations == len(rows) == 300
  assert [row[0].tobytes() for row in summary.rows] == [row[0].tobytes() for row in rows[:3]]
  assert summary.counts["operator"]["+"] == sum(row[0].tolist().count(vocab.ids["+"]) for row in rows)
  assert summary.counts["length"][5] == sum(len(row[0]) == 5 for row in rows)
  assert summary.counts["constants"][2] == sum(np.asarray(vocab.is_constant)[row[0]].sum() == 2 for row in rows)
  assert summary.counts["domain"]["[0, 5]"] == sum(row[2].tolist() == [[0, 5]] for row in rows)


def test_two_folders_have_in_common_what_they_share(made, tmp_path, capsys):
  shutil.copytree(made, tmp_path / "copy")
  assert inspect(str(made), str(tmp_path / "copy"), "--samples=0") == 0
  assert "360 compute what one of" in capsys.readouterr().out
  assert inspect_lib.count_common(made, made) == (360, 360)


@pytest.mark.parametrize("pattern", ["*train.tfrecord-00001*", "*train.hashes-00002*"])
def test_a_damaged_file_is_named_in_one_line(made, tmp_path, capsys, pattern):
  folder = tmp_path / "copy"
  shutil.copytree(made, folder)
  path = next(folder.glob(pattern))
  path.write_bytes(path.read_bytes()[:-1])
  assert inspect(str(folder)) == 2
  err = capsys.readouterr().err
  assert f"{path.name} is damaged (sha256 differs); the command that made the folder makes it again" in err
  assert err.count("\n") == 1
  path.unlink()
  with pytest.raises(DataError, match=f"{path.name} is missing"):
    inspect_lib.verify(folder)


@pytest.fixture
def copy(made, tmp_path):
  shutil.copytree(made, tmp_path / "copy")
  return tmp_path / "copy"


@pytest.mark.parametrize(("change", "message"), [
  (lambda m: m["counts"].update(accepted="many"), 'counts.accepted: expected a whole number, got "many"'),
  (lambda m: m.update(counts=5), "counts: expected numbers by rule, got 5"),
  (lambda m: m["identity"].update(config=None), "identity.config: expected an object, got null"),
  (lambda m: m["identity"]["config"].update(max_float="x"),
   "identity.config: config: max_float: expected a value of type float, got 'x'"),
  (lambda m: m["identity"]["config"].update(zork=1), "identity.config: config: unknown key 'zork', expected one of"),
  (lambda m: m["identity"].update(excluded_problems=5), "identity.excluded_problems: expected a list, got 5"),
  (lambda m: m.update(identity=[]), "identity: expected an object, got []"),
  (lambda m: m.pop("lost"), "lost: expected rules by candidate, got null"),
  (lambda m: m.update(shards={}), "shards: expected a list, got {}"),
  (lambda m: m["shards"].append(3), f"shards[4]: expected {writer_lib._SHARD}, got 3"),
  (lambda m: m["shards"][0].pop("sha256"), f"shards[0]: expected {writer_lib._SHARD}, got {{"),
  (lambda m: m["shards"][0].update(equations="9"), f"shards[0]: expected {writer_lib._SHARD}, got {{"),
  (lambda m: m["shards"][1].update(split="x"), f"shards[1]: expected {writer_lib._SHARD}, got {{")])
@pytest.mark.parametrize("flags", [[], ["--seen=x"]])
def test_a_damaged_field_of_a_manifest_is_named_before_the_report(copy, capsys, change, message, flags):
  path = copy / writer_lib.MANIFEST
  manifest = json.loads(path.read_text())
  change(manifest)
  path.write_text(json.dumps(manifest))
  assert inspect(str(copy), *flags) == 2
  out, err = capsys.readouterr()
  assert not out and err.startswith(f"error: manifest {path} is damaged: {message}") and err.count("\n") == 1


def test_shards_that_a_manifest_does_not_name_are_told_of(copy, capsys):
  path = copy / writer_lib.MANIFEST
  manifest = json.loads(path.read_text())
  last = manifest["shards"].pop()
  path.write_text(json.dumps(manifest))
  assert inspect(str(copy)) == 2
  out, err = capsys.readouterr()
  assert not out and err == f"error: {copy}: {last['file']} is there, and manifest.json does not name it\n"
  path.write_text(json.dumps(manifest | {"shards": []}))
  with pytest.raises(DataError, match="00002-of-00003, .* are there, and manifest.json does not name them"):
    inspect_lib.verify(copy)


@pytest.mark.parametrize("damage", [
  lambda data: b"garbage" * 99, lambda data: data[:-9] + b"\0" * 9, lambda data: data[:-9] + b"\xff" * 9,
  lambda data: data.replace(b'"capacity": 360', b'"capacity": 1e400'),
  lambda data: data.replace(b'"capacity": 360', b'"capacity": 36000000000000000')])
@pytest.mark.parametrize("kind", writer_lib.SEEN)
def test_a_damaged_filter_is_named(copy, capsys, damage, kind):
  path = copy / writer_lib.seen_name(kind)
  data = path.read_bytes()
  path.write_bytes(damage(data))
  assert path.read_bytes() != data and inspect(str(copy)) == 2
  out, err = capsys.readouterr()
  assert not out and err.startswith(f"error: {path} is ") and err.count("\n") == 1


def test_a_folder_without_data_is_refused(tmp_path, capsys):
  assert inspect(str(tmp_path)) == 2
  assert "no manifest.json in" in capsys.readouterr().err
  with pytest.raises(InputError, match="expected one or more folders"):
    inspect_lib.main(["inspect"])
  for place, message in (("nowhere/a.png", "--plot: the folder '.*nowhere' of .* does not exist"),
                         ("a.jpg", "--plot: expected a name ending in .png, got ")):
    assert inspect(".", f"--plot={tmp_path}/{place}") == 2
    assert re.match(f"error: {message}", capsys.readouterr().err)


@pytest.mark.parametrize(("arguments", "message"), [
  (["a", "--plot="], "--plot: expected a value, got nothing"), (["a", "--seen="], "--seen: expected a value"),
  (["a", ""], "expected folders written by data_gen.generate, got one without a name")])
def test_nothing_is_no_name(capsys, arguments, message):
  assert inspect(*arguments) == 2 and message in capsys.readouterr().err


def test_what_is_no_formula_is_said_before_the_report(made, capsys):
  for formula, message in (("x+(", "expected a number"), ("x*y", "unknown name 'y'")):
    assert inspect(str(made), f"--seen={formula}") == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"error: {message}") and err.count("\n") == 1


def test_an_output_without_room_is_told_of(made, capsys, monkeypatch):
  def fail(*_):
    raise OSError(28, "No space left on device")
  monkeypatch.setattr(inspect_lib, "inspect", fail)
  assert inspect(str(made)) == 1
  assert capsys.readouterr().err == "error: cannot write: No space left on device\n"


def test_hashes_and_filters_tell_what_was_generated(made, tmp_path):
  config = config_lib.from_dict(json.loads((made / "manifest.json").read_text())["identity"]["config"])
  vocab = Vocabulary(1)
  rows = [row for path in records.find_shards(made) for row in writer_lib.read_rows(path)][::37]
  texts = [printing.to_text(inspect_lib.to_tree(row, vocab), ("x",), digits=7) for row in rows]
  bare = tmp_path / "bare"  # the filters alone, as they go with a model
  shutil.copytree(made, bare, ignore=shutil.ignore_patterns("*.hashes-*", "*.tfrecord-*"))
  # Text has no arccot and no cot: read back, they are other tokens of the same function.
  is_plain = [not {vocab.ids["acot"], vocab.ids["cot"]} & set(row[0].tolist()) for row in rows]
  assert sum(is_plain) >= 5
  for text, has_skeleton in zip(texts, is_plain, strict=True):
    functions, skeletons = inspect_lib.count_seen(text, made, config)
    assert functions >= 1 and (skeletons >= 1 or not has_skeleton), text
    assert inspect_lib.count_seen(text, bare, config) == (1, min(skeletons, 1)), text
  for folder in (made, bare):
    assert inspect_lib.count_seen("sin(cos(sin(x)))*log(x) + 1.2345", folder, config) == (0, 0)


def test_a_reader_that_leaves_is_no_error_of_the_folder(made, monkeypatch, capsys):
  def leave(folder):
    raise BrokenPipeError(32, "Broken pipe")

  monkeypatch.setattr(inspect_lib, "inspect", leave)
  assert inspect(str(made)) == runner.SOME_FAILED
  assert capsys.readouterr().err == ""
