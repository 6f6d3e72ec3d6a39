"""Lines of a batch that is resumed: of these options, or of before there were some of them."""

import json
import os

import pytest

from symformer_jax import file_answers, infer
from symformer_jax.commands import extras, infer_flags, result_lines, runner
from symformer_jax.errors import InputError

NOW = {"samples": 64, "units": None, "beams": 3}
DEFAULTS = {"samples": 1024, "units": None, "beams": 3}


def opened(path, options=NOW):
  return result_lines.ResultLines(path, options=options, defaults=DEFAULTS, is_new=False)


@pytest.fixture
def path(tmp_path):
  """A line from before there was a flag `beams`, and one cut off by a kill."""
  record = {"data": "a.csv", "target": "y", "status": "failed", "options": {"samples": 64, "units": None}}
  (tmp_path / "all.jsonl").write_text(json.dumps(record) + '\n{"data": "b')
  return tmp_path / "all.jsonl"


def test_lines_that_are_older_than_a_flag_count_as_its_default(path):
  lines = opened(path)
  assert lines.targets == {("a.csv", "y")} and lines.failed == {"a.csv"}
  lines.add("b.csv", "{}")
  assert path.read_text().splitlines()[1:] == ["{}"]
  with pytest.raises(InputError, match="all.jsonl' holds results of --beams=3, not --beams=4; give another file"):
    opened(path, NOW | {"beams": 4})
  # What a line does know is never taken from the defaults.
  with pytest.raises(InputError, match="holds results of --samples=64, not --samples=1024"):
    opened(path, NOW | {"samples": 1024})


@pytest.mark.parametrize(
  "line", ["1", "{}", "[]", '{"data": "a", "status": "ok"}', '{"data": 1, "status": "ok", "options": {}}'])
def test_what_is_no_result_is_named(path, line):
  path.write_text(line + "\n")
  with pytest.raises(InputError, match="line 1 of .*all.jsonl' is no result of this command"):
    opened(path)


def test_what_is_no_file_is_not_read(tmp_path):
  os.mkfifo(tmp_path / "all.jsonl")
  with pytest.raises(InputError, match="--resume: '.*all.jsonl' is no regular file"):
    opened(tmp_path / "all.jsonl")


def test_options_of_no_flags_are_the_defaults():
  infer_flags.FLAGS.unparse_flags()
  infer_flags.FLAGS(["infer"])
  assert file_answers.options() == file_answers.default_options()
  infer_flags.FLAGS.unparse_flags()


@pytest.mark.parametrize(("flags", "message"), [
  (["--out=fits", "--beam"], "--beam needs apache_beam: pip install '.[beam]'"),
  (["--out=fits.json", "--beam"], "--out: expected a folder for the results of --beam, got 'fits.json'"),
  (["--beam", "--plot=p.png", "--out=fits"], "--plot: shows one data file, of which --beam searches many"),
  (["--", "--runner=DirectRunner"], "unexpected argument '--runner=DirectRunner': expected flags only, see --help")])
def test_a_batch_on_a_cluster_is_refused_in_one_line(flags, message, monkeypatch, capsys):
  monkeypatch.setattr(extras, "find_missing", lambda extra: list(extras.MODULES[extra]))
  values = infer_flags.FLAGS
  with pytest.raises(SystemExit) as caught:
    runner.run(infer.main, flag_values=values, argv=["infer", "--data=examples/kepler.csv", *flags],
               takes_arguments=True)
  for name in values:
    values[name].unparse()
  values.unparse_flags()
  assert (caught.value.code, capsys.readouterr().err) == (2, f"error: {message}\n")


def test_a_line_is_whole_in_its_file_when_the_disk_is_waited_for(tmp_path, monkeypatch):
  held = []
  monkeypatch.setattr(result_lines.os, "fsync", lambda number: held.append(os.fstat(number).st_size))
  lines = result_lines.ResultLines(tmp_path / "all.jsonl", options=NOW, defaults=DEFAULTS, is_new=True)
  lines.add("a", '{"a": 1}')
  lines.add("b", "{}")
  assert held == [9, 12]
