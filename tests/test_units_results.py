"""Parts that write, read and show what was found: results, saved files, exports, lines of progress; no search."""

import dataclasses
import decimal
import fractions
import io
import json
import math
import os
import pathlib
import types
import zipfile

import jax
import numpy as np
import pandas as pd
import pytest
from rich import text as rich_text

from symformer_jax import (
  compilation,
  configuration,
  errors,
  exports,
  files,
  frames,
  installation,
  live_front,
  npz,
  progress_line,
  results,
  saved,
  testing,
  warm_start,
)
from symformer_jax.engine.options import Recalled
from symformer_jax.errors import InputError
from symformer_jax.language import parser, programs
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import (
  Constant,
  Counts,
  Equation,
  Filled,
  Progress,
  Rejected,
  SearchResult,
  Seconds,
  Seen,
  Standing,
  Step,
)

NAMES = ("x", "z")


def equation(text, r2=0.5, mse=4.0, constants=(), **more):
  return Equation(parser.parse(text, NAMES), NAMES, mse, r2, 0.1, tuple(constants), **more)


def result_of(*lines, best=0, **changed):
  values = {"status": "ok", "message": "m", "best": lines[best], "pareto": lines, "counts": Counts(1, 2, 3, 4),
            "seconds": Seconds(compile=0.123456, total=1.0), "seed": 7, "num_points": 9, "model": "fixed"}
  return SearchResult(**values | changed)


# --- results -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("r2", "text"), [
  (None, ""), (1.0, ", R2 1"), (0.5, ", R2 0.5"), (0.999999, ", R2 1 - 1.0e-06"), (0.9999989, ", R2 0.999999"),
  (1 - 2.5e-9, ", R2 1 - 2.5e-09")])
def test_r2_near_one_is_told_by_what_is_missing(r2, text):
  assert repr(equation("2*x", r2)) == f"Equation(2*x, complexity 3{text})"


def test_units_of_numbers_and_of_the_constants_among_them():
  line = equation("2*x + 2.5*z + 3", constants=[Constant(2.5, 0.1)])
  values = [node.value for node in results.expression.walk(line.node) if node.is_number]
  assert sorted(values) == [2, 2.5, 3]
  units = [{2: "m", 2.5: "s", 3: "1"}[value] for value in values]
  told = line.with_units(units)
  assert told.constants == (Constant(2.5, 0.1, unit="s"),) and told.number_units == tuple(units)
  assert told.whole_numbers == [(2.0, "m")] and line.whole_numbers == []
  assert line.with_units([None] * 3).whole_numbers == []


def test_whole_numbers_with_errors_stand_among_the_constants():
  line = equation("2*exp(-0.5*x) + 3 + z", constants=[Constant(-0.5, 0.1)])
  errors = {2: 0.2, 3: None}
  whole = results.whole_constants(line.node, [errors[value] for value in results.loosened.whole_numbers(line.node)])
  line = dataclasses.replace(line, whole=whole)
  numbers = [node.value for node in results.expression.walk(line.node) if node.is_number]
  assert [c.value for c in line.all_constants] == [value for value in numbers if value != 3]
  assert {c.value: c.stderr for c in line.all_constants} == {2: 0.2, -0.5: 0.1}
  told = line.with_units([{2: "m", 3: "s", -0.5: "1/s"}[value] for value in numbers])
  assert {c.value: c.unit for c in told.whole} == {2: "m", 3: "s"} and told.whole_numbers == [(3.0, "s")]
  assert told.to_json()["whole"] == [dataclasses.asdict(c) for c in told.whole]
  assert results.whole_constants(line.node, []) == () and equation("2*x").all_constants == ()


def test_json_has_what_there_is():
  plain = equation("2*x").to_json()
  assert not {"filled", "number_units"} & set(plain) and plain["rmse"] == 2 and plain["complexity"] == 3
  full = equation("2*x", filled=Filled((("f(x)", "2*x"),), (("k", Constant(1.0, None)),)),
    number_units=("m",)).to_json()
  assert full["filled"] == {"functions": {"f(x)": "2*x"}, "parameters": {
    "k": {"value": 1.0, "stderr": None, "exact": None, "unit": None}}} and full["number_units"] == ["m"]
  told = result_of(equation("x"), equation("2*x"), best=1, units=("m", "s", "1"),
                   seen=Seen({"x": (0.0, math.inf)}, (), None)).to_json(data="d", target="y", features=["x", "z"])
  assert told["units"] == {"x": "m", "z": "s", "y": "1"} and told["seconds"]["compile"] == 0.1235
  assert told["seen"]["ranges"] == {"x": [0.0, None]} and told["best"] == told["pareto"][1]
  assert told["best"]["tree"] and told["candidates"] == {"sampled": 1, "valid": 2, "distinct": 3, "refined": 4}
  failed = results.failed("why", model="m", seed=3).to_json(data="d", target="y", features=[])
  assert (failed["best"], failed["seen"], failed["units"], failed["n_points"]) == (None, None, None, 0)


def test_results_know_their_loss_and_whether_rows_count_alike():
  assert result_of(equation("x")).loss == "squared" and Seen({}, (), None).loss == "squared"
  assert result_of(equation("x"), seen=Seen({}, (), None, loss="log")).loss == "log"
  for weights, is_weighted in ((None, False), ([1, 1, 0], False), ([1, 2, 0], True), ([3, 3], False)):
    assert result_of(equation("x"), weights=None if weights is None else np.array(
      weights, float)).is_weighted == is_weighted
  assert Counts(1, 2, 3, 4) + Counts(10, 20, 30, 40) == Counts(11, 22, 33, 44) and Counts() == Counts(0, 0, 0, 0)
  assert set(dataclasses.astuple(Seconds())) == {0.0}
  assert (Seen({}, (), None).exponent, Seen({}, (), None).num_light) == (0, 0)


def test_time_and_the_making_of_a_front_make_no_difference_between_turns():
  turn = Progress(1, "x", 0.5, "s", True, 1.0)
  assert turn == dataclasses.replace(turn, seconds=2.0) != dataclasses.replace(turn, gained=False)
  made = []
  standing = Standing(1, "x", 0.5, "s", True, 1.0, 0, lambda: made.append(1) or ())
  assert standing == dataclasses.replace(standing, make_front=tuple) and "make_front" not in repr(standing)
  assert standing.front == standing.front == () and made == [1]
  one, other = (result_of(equation("x"), weights=np.array([1.0, k])) for k in (2, 3))
  assert one == other and "weights" not in repr(one)


# --- files of fitted formulas ------------------------------------------------------------------------------------


def test_numbers_that_json_has_not_come_back(tmp_path):
  value = {"a": [math.inf, -math.inf, 1.5, True, None], "b": (1, np.float32(2.5), np.int64(3)), "c": np.arange(2.0)}
  saved.write(tmp_path / "f", {"format": "kind-2", **value})
  read = saved.read(tmp_path / "f", "kind", 2, lambda record, version: (dict(record), version), what="thing")
  assert read == ({"format": "kind-2", "a": [math.inf, -math.inf, 1.5, True, None], "b": [1, 2.5, 3],
    "c": [0.0, 1.0]}, 2)
  assert saved._unplain({"float": "1.5"}) == {"float": "1.5"} and math.isnan(saved._unplain({"float": "nan"}))
  assert saved._unplain({"float": "inf", "x": 1}) == {"float": "inf", "x": 1}
  text = (tmp_path / "f").read_text()
  assert text.startswith('{\n "format"') and text.endswith("}\n")


def test_files_of_newer_and_foreign_formats_are_refused(tmp_path):
  def read(text, build=lambda record, version: version):
    (tmp_path / "f").write_text(text)
    return saved.read(tmp_path / "f", "kind", 2, build, what="saved thing")
  assert read('{"format": "kind-2"}') == 2 and read('{"format": "kind-1"}') == 1
  with pytest.raises(InputError, match="f: of format 3, written by a newer version; this one reads up to 2"):
    read('{"format": "kind-3"}')
  for text in ('{"format": "other-2"}', '{"format": "kind-x"}', '{"format": "kind-\u0662"}', '{"format": "kind-"}'):
    with pytest.raises(InputError, match="f: is no saved thing: expected format 'kind-NUMBER', got "):
      read(text)
  with pytest.raises(InputError) as caught:
    read(json.dumps({"format": "k" * 500}))
  assert str(caught.value).count("k" * 100) == 1 and "k" * 101 not in str(caught.value)
  with pytest.raises(InputError, match="is no saved thing: the field 'x' is missing"):
    read('{"format": "kind-1"}', lambda record, version: record["x"])
  for length, end in ((299, "w"), (300, "...")):
    with pytest.raises(InputError) as caught:
      read('{"format": "kind-1"}', lambda record, version, length=length: [][0] if not length else int("w" * 0 + "w", 2)
           if length < 0 else (_ for _ in ()).throw(ValueError("w" * length)))
    assert str(caught.value).endswith("w" + (end if end == "..." else ""))
  with pytest.raises(InputError, match="cannot be read: No such file"):
    saved.read(tmp_path / "none", "kind", 2, lambda record, version: 0, what="saved thing")


@pytest.mark.parametrize(("tokens", "message"), [
  (["+", "x0"], "it ends too early"), (["x0", "x1"], "it goes on after its end"), ("x0", "expected at most 128 tokens"),
  (["neg"] * 128 + ["x0"], "expected at most 128 tokens"), (["+", "x0", True], "tree: expected a number, got True"),
  (["x2"], "tree: expected a number, got 'x2'")])
def test_trees_of_files_are_whole(tokens, message):
  with pytest.raises(ValueError, match=message):
    saved._read_tree(tokens, 2)
  assert saved._read_tree(["+", "x0", 2.5], 2) == Node("+", (variable(0), number(2.5)))
  assert saved._read_tree(["neg"] * 127 + ["x1"], 2).token == "neg"


def full_record():
  line = equation("2.5*x + 3", constants=[Constant(2.5, 0.1, "5/2", "m")], number_units=("m", "1"), filled=Filled(
    (("f(x)", "x"),), (("k", Constant(0.5, None)),)))
  seen = Seen({"x": (0.0, 1.0)}, ("z",), 0.1, "huber", None, 3, (Rejected("x", 1, None, "why"),))
  result = result_of(equation("x"), line, best=1, units=("m", "s", "1"), seen=seen, weights=np.array([1.0, 2.0]),
                     rounds=(Progress(1, "x", None, "s", False, 1.0),), ended_by="exact")
  return saved.front_record(saved.Front(result.pareto, result.best, result)), result


def test_a_front_comes_back_from_its_record():
  record, result = full_record()
  back = saved.read_front(json.loads(json.dumps(saved._plain(record))))
  assert back.result == result and back.best is back.lines[1] and back.lines == result.pareto
  assert back.result.weights.tolist() == [1, 2] and back.result.units == ("m", "s", "1")
  plain = result_of(equation("x"), weights=np.array([1.0, 1.0]))
  record = saved.front_record(saved.Front(plain.pareto, plain.best, plain))
  assert record["search"]["weights"] is None and record["search"]["units"] is None
  assert saved.front_record(saved.Front(plain.pareto, plain.best, None))["search"] is None


@pytest.mark.parametrize(("path", "value", "message"), [
  (["names"], [], "names: expected"), (["names"], "xz", "names: expected"), (["names"], ["x", 3], "names: expected"),
  (["front"], {}, "front: expected a list"), (["best"], 2, "best: expected a line of the front, got 2"),
  (["best"], -1, "best: expected"), (["best"], True, "best: expected"),
  (["front", 0, "mse"], "1", "mse: expected a number"),
  (["front", 0, "r2"], True, "r2: expected a number"),
  (["front", 1, "number_units"], ["m"], "number_units: expected 2"),
  (["front", 1, "constants", 0, "exact"], 3, "expected text, got 3"),
  (["search", "units"], ["m", "s"], "units: expected 3"),
  (["search", "units"], ["m", None, "1"], "units: expected text"),
  (["search", "seed"], 1.5, "seed: expected a whole number"),
  (["search", "seed"], True, "seed: expected a whole number"), (["search", "model"], 3, "model: expected text"),
  (["search", "weights"], [1, "x"], "weights: expected a number"),
  (["search", "weights"], [1, math.nan], "weights: expected a number"),
  *((["search", "weights"], weights, "weights: expected numbers of at least 0, and one above")
    for weights in ([1, -1], [-1, -1], [math.inf, 1], [0, 0])),
  (["search", "counts"], {"drawn": 1}, "unknown key counts.drawn"),
  (["search", "rounds"], [{"x": 1}], "unknown key rounds.x"),
  (["search", "seconds"], {"x": 1}, "unknown key seconds.x"),
  (["search", "seen", "rejected"], [{"x": 1}], "unknown key rejected.x"),
  (["search", "seen", "x"], 1, "unknown key seen.x")])
def test_damaged_records_are_named_by_their_place(path, value, message):
  record = json.loads(json.dumps(saved._plain(full_record()[0])))
  place = record
  for key in path[:-1]:
    place = place[key]
  place[path[-1]] = value
  with pytest.raises((ValueError, TypeError), match=message):
    saved.read_front(record)


def test_optional_parts_of_older_records():
  record = json.loads(json.dumps(saved._plain(full_record()[0])))
  record["search"] |= {"seen": None}
  del record["search"]["units"], record["front"][0]["tree"], record["front"][1]["filled"]
  back = saved.read_front(record)
  assert back.result.seen is None and back.result.units is None and back.lines[0].node == variable(0)
  assert back.lines[1].filled is None


def test_a_failed_search_is_not_saved(tmp_path):
  for wrong in (None, "f", [full_record()[1]]):
    with pytest.raises(InputError, match=f"result: expected what search returns .*, got {type(wrong).__name__}"):
      saved.save_result(wrong, tmp_path / "f")
  with pytest.raises(InputError, match="a failed search has nothing to save: why"):
    saved.save_result(results.failed("why", model="m", seed=0), tmp_path / "f")
  result = full_record()[1]
  saved.save_result(result, tmp_path / "f")
  assert saved.load_result(tmp_path / "f") == result
  assert json.loads((tmp_path / "f").read_text())["format"] == "symformer-result-1"
  (tmp_path / "g").write_text(json.dumps(result.to_json(data="d", target="y", features=list(NAMES))))
  of_command = saved.load_result(tmp_path / "g")
  assert of_command.weights is None and of_command.best == result.best and of_command.units == result.units
  with pytest.raises(InputError, match="it was written by the command line: load_result reads it"):
    saved.read(tmp_path / "g", "kind", 1, lambda record, version: 0, what="thing")


# --- configurations ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Inner:
  size: int = 3
  share: float = 0.5


@dataclasses.dataclass(frozen=True)
class Outer:
  inner: Inner = dataclasses.field(default_factory=Inner)
  name: str | None = None
  sizes: tuple = ()
  is_on: bool = False
  either: int | str = 0
  made: int = dataclasses.field(init=False, default=5)


@pytest.mark.parametrize(("values", "message"), [
  ({"inne": {}}, "unknown key config.inne: did you mean 'inner'"), ({"made": 3}, "unknown key config.made"),
  ({"inner": 3}, "config.inner: expected its own keys and values, got 3"),
  ({"inner": {"size": 1.5}}, "config.inner.size: expected a value of type int, got 1.5"),
  ({"inner": {"size": True}}, "config.inner.size: expected a value of type int, got True"),
  ({"is_on": 1}, "config.is_on: expected a value of type bool, got 1"),
  ({"name": 3}, "config.name: expected a value of"),
  ({"either": 1.5}, "config.either: expected a value of type int or str, got 1.5"),
  ({"inner": {"size": None}}, "config.inner.size: expected a value of type int, got None")])
def test_values_of_a_config_have_their_kinds(values, message):
  with pytest.raises(InputError, match=message):
    configuration.build(Outer, values)


def test_a_config_is_built_from_what_is_given():
  built = configuration.build(Outer, {"inner": {"share": 2}, "name": None, "sizes": [1, [2, 3]], "either": "a"})
  assert built == Outer(Inner(3, 2), None, (1, (2, 3)), False, "a") and hash(built)
  assert configuration.build(Outer, {"name": "n", "is_on": True, "inner": {"size": np.int64(4)}}).inner.size == 4
  assert configuration.to_dict(built) == {
    "inner": {"size": 3, "share": 2}, "name": None, "sizes": [1, [2, 3]], "is_on": False, "either": "a", "made": 5}


def test_names_that_are_near_are_suggested():
  assert errors.suggest("sise", ["size", "site", "other"]) == "did you mean 'size'?"
  assert errors.suggest("qqq", ["size", "site"]) == "expected one of size, site"


def test_config_files_of_this_installation_are_found(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert os.path.isabs(configuration.find_config("configs/small.py"))
  (tmp_path / "small.py").write_text("")
  assert configuration.find_config("small.py") == "small.py"
  for path in ("launch/train.py", "configs", "none.py", "x" * 5000, "a\0b"):
    with pytest.raises(InputError, match="no config file"):
      configuration.find_config(path)


# --- files -------------------------------------------------------------------------------------------------------


def test_long_paths_are_shown_by_their_ends():
  assert files.shorten("a" * 200) == "a" * 200 and len(files.shorten("a" * 201)) == 203
  assert files.shorten("abcdefghij", 4) == "ab...ij"


def test_files_are_replaced_whole_with_the_permissions_of_others(tmp_path):
  files.write_text(tmp_path / "f.json", "\u00e9")
  (tmp_path / "g").write_text("")
  assert (tmp_path / "f.json").read_bytes() == "\u00e9".encode()
  assert (tmp_path / "f.json").stat().st_mode == (tmp_path / "g").stat().st_mode
  with pytest.raises(KeyError), files.replacing(tmp_path / "f.json") as temporary:
    assert temporary.suffix == ".json" and temporary.name.startswith(".f-") and temporary.parent == tmp_path
    temporary.write_text("half")
    raise KeyError
  assert sorted(path.name for path in tmp_path.iterdir()) == ["f.json", "g"]
  mask = os.umask(0o077)
  try:
    files.write_text(tmp_path / "h", "")
    assert os.umask(0o077) == 0o077 and (tmp_path / "h").stat().st_mode & 0o777 == 0o600
  finally:
    os.umask(mask)


def test_places_that_take_no_file_are_refused(tmp_path):
  (tmp_path / "d").mkdir()
  assert files.check_writable(tmp_path / "f", flag="--out") == tmp_path / "f" and not (tmp_path / "f").exists()
  for place, message in ((tmp_path / "d", "is a folder, expected a file name"),
                         (tmp_path / "none" / "f", "does not exist"), (tmp_path / ("x" * 300), "cannot write")):
    with pytest.raises(InputError, match=f"--out: .*{message}"):
      files.check_writable(place, flag="--out")
  assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]
  with files.open_beside(tmp_path / "f.json") as file:
    file.write(b"x")
    [beside] = [path.name for path in tmp_path.iterdir() if path.is_file()]
    assert beside.startswith(".f-") and beside.endswith(".json")
  with files.no_empty_folders(tmp_path / "e" / "f"):
    files.make_folder(tmp_path / "e" / "f", flag="--out")
  assert not (tmp_path / "e").exists()
  made = files.make_folder(tmp_path / "a" / "b", flag="--out")
  with files.no_empty_folders(made), files.no_empty_folders(made / "c"):  # what was there stays, and what has a file
    files.make_folder(made / "c", flag="--out").joinpath("g").write_text("")
  (made / "c" / "g").unlink()
  (made / "c").rmdir()
  assert made.is_dir() and files.make_folder(made, flag="--out") == made
  (tmp_path / "f").write_text("")
  with pytest.raises(InputError, match="--out: cannot make the folder"):
    files.make_folder(tmp_path / "f", flag="--out")
  (tmp_path / ".f-12345678.json").write_text("")
  files.remove_leftovers(tmp_path)
  assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "d", "f"]


def archive(**arrays):
  stream = io.BytesIO()
  np.savez(stream, **arrays)
  stream.seek(0)
  return stream


def test_arrays_are_read_after_their_headers():
  told = {}
  found = npz.read(archive(x=np.arange(6.0).reshape(2, 3), n=np.arange(3, dtype=np.int8)), told.update)
  assert {name: (header.shape, header.num_bytes) for name, header in told.items()} == {"x": ((2, 3), 48),
    "n": ((3,), 3)}
  assert found["x"].tolist() == [[0, 1, 2], [3, 4, 5]]

  def refuse(headers):
    raise InputError("too large")
  with pytest.raises(InputError, match="^too large$"):
    npz.read(archive(x=np.zeros(3)), refuse)


@pytest.mark.parametrize(("name", "content", "message"), [
  ("x.txt", b"abc", "'x.txt' in it is no array"), ("x.npy", b"abc", "cannot be read as npz of plain arrays"),
  ("x.npy", b"\x93NUMPY\x03\x00", "is of format .3, 0., expected .1, 0. or .2, 0.")])
def test_archives_of_other_things_are_refused(name, content, message):
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, "w") as made:
    made.writestr(name, content)
  with pytest.raises(InputError, match=message):
    npz.read(stream, lambda headers: None)
  for data, said in ((np.array([{}], object), "holds Python objects"),):
    with pytest.raises(InputError, match=said):
      npz.read(archive(x=data), lambda headers: None)


@pytest.mark.parametrize("shape", ["open('x')", "(3,", "(9e999,)", "{[]: 1}", "(" * 200, "('a',)"])
def test_a_header_that_is_none_is_said_in_words_about_the_file(shape):
  header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, "w") as made:
    made.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
  with pytest.raises(InputError, match="^cannot be read as npz of plain arrays: 'x.npy' has no header of an array$"):
    npz.read(stream, lambda headers: None)


def test_arrays_that_hold_more_or_less_than_they_say_are_refused():
  whole = io.BytesIO()
  np.save(whole, np.arange(3.0))
  for content in (whole.getvalue() + b"x", whole.getvalue()[:-1]):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
      made.writestr("x.npy", content)
    with pytest.raises(InputError, match="does not hold what its header says"):
      npz.read(stream, lambda headers: None)
  second = io.BytesIO()
  with zipfile.ZipFile(second, "w") as made:
    made.writestr("x.npy", whole.getvalue())
    made.writestr("y.npy", whole.getvalue())
  assert set(npz.read(second, lambda headers: None)) == {"x", "y"}
  version2 = io.BytesIO()
  np.lib.format.write_array(version2, np.arange(2.0), version=(2, 0))
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, "w") as made:
    made.writestr("x.npy", version2.getvalue())
  assert npz.read(stream, lambda headers: None)["x"].tolist() == [0, 1]


# --- frames ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "message"), [
  (pd.DataFrame({"a": [1, 2], "b": ["1.5", "x"]}),
  "X: column 'b' holds 'x' in row 1, which is no number; give numbers, such"),
  (pd.DataFrame({"a": [1, None], "b": [3, [4]]}, index=[5, 6]),
  "X: column 'b' holds .4. in row 6, which is no number; give"),
  (pd.DataFrame([[1, 2]], columns=["a", "a"]), "X: two columns are called 'a'"),
  (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), "X: column 't' holds dates or times"),
  (pd.DataFrame({"t": pd.to_timedelta([1], "s")}), "X: column 't' holds dates or times"),
  (pd.DataFrame({"t": pd.period_range("2020", periods=1, freq="M")}), "X: column 't' holds dates or times"),
  (pd.DataFrame({"z": [1j]}), "X: column 'z' holds complex numbers"),
  (pd.Series(["x"], name="y"), "^X holds 'x' in row 0"),
  (np.array(["2020-01-01"], "M8[D]"), "X holds dates or times"), ([[1, "x"]], "X: column 1 holds 'x' in row 0"),
  (np.array([b"\xe9"]), "X holds '\u00e9' in row 0"), (["a"], "^X holds 'a' in row 0"),
  ([[1, 2], [3, "w"]], "column 1 holds 'w' in row 1"),
  (np.array([np.datetime64("2020-01-01"), 1], object), "X holds dates or times .datetime64.")])
def test_what_is_no_number_is_named_with_its_place(data, message):
  with pytest.raises(InputError, match=message):
    frames.check_numeric(data, "X")


@pytest.mark.parametrize("data", [
  pd.DataFrame({"a": ["1.5", "inf", "-NaN", None], "b": [1, 2.5, True, None]}), [["1", "nan"], ["2.5", "-inf"]],
  np.array([b"1.5", b"nan"]), pd.Series([1, 2]), 5, np.zeros((2, 2, 2)),
  pd.Series([fractions.Fraction(1, 2), decimal.Decimal("1.5")], dtype=object), np.array([[["x"]]]),
  pd.DataFrame({"a": pd.array([1, None], "Int64")}), np.array([True])])
def test_numbers_in_any_dress_are_left_to_others(data):
  frames.check_numeric(data, "X")


def test_long_cells_are_cut_to_sixty_signs():
  with pytest.raises(InputError) as caught:
    frames.check_numeric(pd.Series(["w" * 100]), "y")
  assert "w" * 59 in str(caught.value) and "w" * 60 not in str(caught.value)


# --- exports, warm starts ----------------------------------------------------------------------------------------


class Exported(exports.ExportsMixin):
  _front = (equation("x"), equation("2*x"), equation("2*x + z"))

  def _equation(self, index):
    return self._front[1 if index is None else index]


def test_exports_are_of_a_line_or_of_a_list_of_them():
  exported = Exported()
  assert exported.latex() == exported._front[1].latex and exported.latex([0, 2]) == [
    exported._front[0].latex, exported._front[2].latex]
  assert exported.latex(np.array([0])) == [exported._front[0].latex]
  assert exported.numpy()([[3, 1]]).tolist() == [6] and exported.numpy(2)([[3, 1]]).tolist() == [7]
  assert exported.excel(2, cells=["A1", "B1"]) == exported.source("excel", 2, cells=["A1", "B1"])
  assert "A1" in exported.excel(2, cells=["A1", "B1"]) and "A1" not in exported.excel(2)
  assert "double" in exported.c() and "function" in exported.julia() and len(exported.c([0, 1])) == 2
  assert exported.latex_table().count("\\\\") > exported.latex_table([0]).count("\\\\")
  assert "3.14159" in exported_digits(None) and "3.14159" not in exported_digits(3)


def exported_digits(digits):
  class One(Exported):
    _front = (equation("3.14159*x"),)

    def _equation(self, index):
      return self._front[0]
  return One().latex_table(digits=digits)


def test_formulas_of_an_earlier_fit_that_keep_the_rules_are_guesses():
  one = Filled((("f(x)", "x + 0.5*z"),), ())
  two = Filled((("f(x)", "x"), ("g(z)", "z")), ())
  front = [equation("2*x"), equation("sin(x)"), equation("z*x", filled=one), equation("z", filled=two)]
  assert warm_start.guesses_of(front, NAMES, Restrictions()) == ["2*x", "sin(x)", "x + 0.5*z"]
  assert all(isinstance(text, Recalled) for text in warm_start.guesses_of(front, NAMES, Restrictions()))
  assert warm_start.guesses_of(front, NAMES, Restrictions(forbidden=("sin",))) == ["2*x", "x + 0.5*z"]
  assert warm_start.guesses_of(front, NAMES, Restrictions(required=("z",))) == ["x + 0.5*z"]
  for last, size in (("x", programs.MAX_TOKENS - 1), ("sin(x)", programs.MAX_TOKENS),
    ("sin(sin(x))", programs.MAX_TOKENS + 1)):
    line = equation(" + ".join(["x"] * (programs.MAX_TOKENS // 2 - 1) + [last]))
    assert programs.size(line.node) == size
    assert bool(warm_start.guesses_of([line], NAMES, Restrictions())) == (size <= programs.MAX_TOKENS)


# --- programs and compilation ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number_", "size"), [(0, 1), (1, 1), (2, 8), (8, 8), (9, 64), (64, 64), (65, 128),
  (129, 192)])
def test_the_smallest_bucket_that_holds_so_many(number_, size):
  assert compilation.bucket(number_, (1, 8, 64)) == size


def test_buckets_of_a_platform(monkeypatch):
  assert compilation.dataset_buckets() == (1,) and compilation.candidate_buckets() == (256,)
  monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
  assert compilation.dataset_buckets() == (1, 8, 64)
  assert compilation.candidate_buckets() == (256, 1024, 4096, 16384, 65536, 262144)


def test_programs_are_kept_in_a_folder_that_may_be_there(monkeypatch, tmp_path):
  changed, resets = {}, []
  config = types.SimpleNamespace(jax_compilation_cache_dir=None, update=changed.__setitem__)
  monkeypatch.setattr(compilation, "jax", types.SimpleNamespace(config=config, __version__="9.9"))
  monkeypatch.setattr(compilation.compilation_cache, "reset_cache", lambda: resets.append(1))
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
  for _ in range(2):  # the folder is there the second time
    changed.clear()
    compilation.use_cache()
    assert changed == {"jax_compilation_cache_dir": str(tmp_path / "symformer_jax" / "jax-9.9"),
                       "jax_persistent_cache_min_compile_time_secs": 0.0}
  changed.clear()
  for name, value in ((compilation.CACHE_VARIABLE, "OFF"), ("JAX_COMPILATION_CACHE_DIR", "x")):
    with monkeypatch.context() as patch:
      patch.setenv(name, value)
      compilation.use_cache()
  config.jax_compilation_cache_dir = "chosen"
  compilation.use_cache()
  assert not changed and len(resets) == 2


def test_the_programs_lie_beside_the_package_and_come_first(monkeypatch, tmp_path):
  monkeypatch.setattr(installation.sys, "path", ["a"])
  installation.add_to_path()
  installation.add_to_path()
  assert installation.sys.path == [str(installation.folder()), "a"] and (installation.folder() / "configs").is_dir()
  assert installation.folder() == pathlib.Path(installation.__file__).parents[1]


def test_the_stand_in_for_a_model_draws_its_formulas_in_turn():
  model = testing.FixedProposer(["2.5*x0", "x0"], max_length=8)
  ids, mantissas = model.propose(None, None, jax.random.key(0), num_samples=3, top_k=5)
  assert ids.shape == mantissas.shape == (3, 8) and (ids[0] == ids[2]).all() and (ids[0] != ids[1]).any()
  exact = testing.FixedProposer(["2.5*x0"], max_length=8, noise=0.0).propose(
    None, None, jax.random.key(0), num_samples=1, top_k=5)[1]
  changes = testing.FixedProposer(["2.5*x0"], max_length=8).propose(
    None, None, jax.random.key(0), num_samples=2000, top_k=5)[1] / np.where(exact, exact, 1)
  at = int(np.flatnonzero(exact[0])[0])
  assert 0.045 < np.std(changes[:, at]) < 0.055 and abs(np.mean(changes[:, at]) - 1) < 0.01
  assert model.vocab.num_variables == 1 and model.name == "fixed"
  assert testing.FixedProposer(["x0"]).propose(None, None, jax.random.key(0), num_samples=1, top_k=1)[0].shape == (1,
    32)


# --- what shows where a search stands ----------------------------------------------------------------------------


def standing(seconds=1.0, best="sin(x)", r2=0.5, sampled=256, front=()):
  return Standing(sampled, best, r2, "library", True, seconds, 0, lambda: front)


def test_a_plain_line_is_printed_each_ten_seconds():
  stream = io.StringIO()
  line = progress_line.ProgressLine(stream=stream, max_time=30.0)
  shown = []
  for seconds in (9.9, 10.0, 19.9, 20.0, 29.0):
    before = len(stream.getvalue())
    line(standing(seconds))
    shown.append(len(stream.getvalue()) > before)
  assert shown == [False, True, False, True, False]
  assert stream.getvalue().startswith("10.0 s, 20.0 s left, library, 256 samples: R2 0.500000, sin(x)\n")
  quiet = io.StringIO()
  progress_line.ProgressLine(is_quiet=True, stream=quiet)(standing(99))
  assert not quiet.getvalue()


def test_what_a_line_says():
  assert progress_line.describe(standing(sampled=0)) == "1.0 s, library: R2 0.500000, sin(x)"
  assert progress_line.describe(standing(r2=None)) == "1.0 s, library, 256 samples"
  assert progress_line.describe_time(5.0, 3.0) == "5.0 s, 0.0 s left"
  assert progress_line.describe(standing(best="1.23456789*x")).endswith("1.235*x")
  long = progress_line.describe(standing(best=" + ".join(["sin(x)"] * 40)))
  assert len(long) <= 100 and long.endswith("sin(x) ...")
  narrow = progress_line.describe(standing(best="x"), width=20)
  assert len(narrow) <= 20 and narrow.endswith(" ...")


@pytest.mark.parametrize(("text", "width", "cut"), [
  ("abc", 3, "abc"), ("abcd + efgh", 10, "abcd ..."), ("abcd - efghijk", 10, "abcd ..."),
  ("abc - efghijk", 10, "abc ..."), ("a**b*cdefgh", 10, "a**b ..."),
  ("abcdefghijk", 10, "abcdef ..."), ("abc*defghij", 10, "abc ..."), ("abcde", 4, " ..."), ("abcde", 3, " ...")])
def test_lines_are_cut_before_an_operator(text, width, cut):
  assert progress_line._cut(text, width) == cut


class Terminal(io.StringIO):
  def isatty(self):
    return True


def test_where_there_is_a_terminal_the_front_is_drawn(monkeypatch):
  monkeypatch.setenv("TERM", "xterm")
  assert isinstance(live_front.show_progress(stream=Terminal()), live_front.LiveFront)
  assert isinstance(live_front.show_progress(stream=io.StringIO()), progress_line.ProgressLine)
  assert isinstance(live_front.show_progress(stream=Terminal(), is_quiet=True), progress_line.ProgressLine)
  monkeypatch.setenv("TERM", "dumb")
  plain = live_front.show_progress(stream=Terminal(), max_time=20.0)
  assert isinstance(plain, progress_line.ProgressLine)
  plain(standing(12.0))
  assert "8.0 s left" in plain._stream.getvalue()


def test_the_drawn_front_fits_the_terminal(monkeypatch):
  monkeypatch.setenv("TERM", "xterm")
  monkeypatch.setenv("COLUMNS", "60")
  monkeypatch.setenv("LINES", "12")
  stream = Terminal()
  steps = tuple(Step(i, 0.5, f"{i}.123456789*[x]") for i in range(1, 10))
  with live_front.show_progress(stream=stream, max_time=30.0, names=("a", "b")) as shown:
    shown(standing(front=steps))
    drawn = stream.getvalue()
  text = rich_text.Text.from_ansi(drawn).plain
  assert "a: 1.0 s, 29.0 s left, library, 256 samples" in text
  assert "4.12346*[x]" in text and "3.12346*[x]" not in text and "9.12346" in text  # six lines of twelve
  lines = text.splitlines()
  row = next(line for line in lines if "9.12346" in line)
  assert row.split("\u2502")[1] == "           9 " and row.split("\u2502")[2] == "    0.500000 "
  with live_front.show_progress(stream=Terminal(), names=("a",)) as single:
    assert single._title(standing(sampled=0)) == "1.0 s, library"
  wide = Terminal()
  with live_front.show_progress(stream=wide) as shown:
    shown(standing(front=(Step(1, 0.5, "x" * 99),)))
  cut = rich_text.Text.from_ansi(wide.getvalue()).plain
  long = Terminal()
  with live_front.show_progress(stream=long, names=("n" * 99, "b")) as shown:
    shown(standing(front=steps))
  title = rich_text.Text.from_ansi(long.getvalue()).plain.splitlines()[0]
  assert title.strip() == "n" * 59 + "\u2026"
  assert "\u2026" in cut and max(map(len, cut.splitlines())) <= 60 and "x" * 27 in cut and "x" * 29 not in cut
