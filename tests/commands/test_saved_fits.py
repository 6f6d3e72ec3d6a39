"""Saved formulas of every kind of file, by whom they were written; what is damaged is refused in one line."""

import json
import pathlib

from hypothesis import example, given, settings, strategies as st
import numpy as np
import pytest

from symformer_jax import save_result
from symformer_jax.commands import saved_fits
from symformer_jax.errors import InputError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.language import parser
from symformer_jax.results import Counts, Equation, SearchResult, Seconds, Seen, failed


def make_result():
  lines = tuple(Equation(parser.parse(text, ["a", "b"]), ("a", "b"), mse, 0.5, None, ())
                for text, mse in [("2*a", 3.0), ("a*b", 1.0)])
  return SearchResult("ok", "", lines[0], lines, Counts(), Seconds(), 0, 9, "fixed", (), "budget",
                      Seen({"a": (0.5, 2.25), "b": (-1.0, 7.0)}, (), 0.1, "huber"), np.ones(9))


def make_record(data="a.csv", target="y", **changes):
  found = {"selected": 1, "times": {"a": {"unit": "days", "start": "2020-01-01T00:00:00.000000"}},
           "categories": {"kind": ["blue", "red"]}, "other_columns": ["kind", "id"]}
  return make_result().to_json(data=data, target=target, features=["a", "b"]) | found | changes


def regressor(**params):
  estimator = SymFormerRegressor(**params)
  estimator.n_features_in_, estimator.feature_names_in_ = 2, np.array(["a", "b"], dtype=object)
  estimator.result_ = result = make_result()
  estimator._set_front(result.pareto, result.best)
  return estimator


@pytest.fixture
def write(tmp_path):
  def write(*records, name="fit.json"):
    (tmp_path / name).write_text("\n".join(map(json.dumps, records)))
    return str(tmp_path / name)
  return write


def test_the_same_fit_from_every_kind_of_file(write, tmp_path):
  save_result(make_result(), tmp_path / "result.json")
  regressor().save(tmp_path / "reg.json")
  fits = [saved_fits.read(write(make_record())), saved_fits.read(tmp_path / "result.json"),
          saved_fits.read(tmp_path / "reg.json")]
  for fit in fits:
    assert [line.node for line in fit.lines] == [line.node for line in make_result().pareto]
    assert fit.best is fit.lines[0] and fit.names == ("a", "b") and fit.loss == "huber"
    assert fit.ranges == {"a": (0.5, 2.25), "b": (-1.0, 7.0)}
  of_command, *of_python = fits
  assert of_command.target == "y" and of_command.taken is of_command.lines[1]
  assert of_command.time_scales["a"].describe() == "days since 2020-01-01"
  assert of_command.categories == {"kind": ("blue", "red")} and of_command.other_columns == ("kind", "id")
  assert all((fit.target, fit.taken, fit.time_scales, fit.categories) == (None, fit.best, {}, {}) for fit in of_python)


def test_the_regressor_says_which_line_it_takes(tmp_path):
  regressor(model_selection="accurate").save(tmp_path / "reg.json")
  fit = saved_fits.read(tmp_path / "reg.json")
  assert fit.taken is fit.lines[1]
  record = json.loads((tmp_path / "reg.json").read_text()) | {"format": "symformer-regressor-1", "search": None}
  (tmp_path / "old.json").write_text(json.dumps(record))
  assert saved_fits.read(tmp_path / "old.json").ranges == {}


def test_of_a_batch_a_file_and_a_target_are_chosen(write):
  path = write(make_record("x/a.csv", "y"), make_record("x/a.csv", "z", selected=0), make_record("x/b.csv"),
               make_record("x/b.csv", selected=0), name="fits.jsonl")
  assert saved_fits.read(path, file="x/b.csv").taken.mse == 3.0  # the later line
  assert saved_fits.read(path, file="a.csv", target="z").target == "z"
  for arguments, message in [
      ({}, "holds formulas for 2 files, --file takes one of them: 'x/a.csv', 'x/b.csv'"),
      ({"file": "a.csv"}, "holds formulas for 2 targets, --target takes one of them: 'y', 'z'"),
      ({"file": "a.csv", "target": "q"}, "holds formulas for 2 targets"),
      ({"file": "x/c.csv"}, "--file: no formula for 'x/c.csv': did you mean 'x/b.csv'?")]:
    with pytest.raises(InputError) as caught:
      saved_fits.read(path, **arguments)
    assert str(caught.value).startswith(f"{path}: {message}")
  assert saved_fits.read(write(make_record(), name="one.jsonl")).target == "y"
  assert saved_fits.read(write(make_record()), target="measured").target == "y"


def test_a_line_that_a_kill_has_cut_off_is_not_read(write):
  path = pathlib.Path(write(make_record("a.csv"), make_record("b.csv"), name="fits.jsonl"))
  assert saved_fits.read(str(path), file="b.csv").target == "y"  # whole but for the end of the line
  path.write_bytes(path.read_bytes()[:-20])
  assert saved_fits.read(str(path)).target == "y"
  path.write_bytes(b'{"data": "a.c')
  with pytest.raises(InputError, match="fits.jsonl: is no saved formula: its only line is cut off$"):
    saved_fits.read(str(path))


def test_lines_end_where_those_of_a_resumed_batch_do(write):
  path = pathlib.Path(write(name="fits.jsonl"))
  name = "a\u2028b\x85c.csv"
  path.write_text(json.dumps(make_record(name), ensure_ascii=False) + "\r\n", encoding="utf-8", newline="")
  assert saved_fits.read(str(path), file=name).target == "y"


DAMAGED = [
  (make_record(selected=2), "selected: expected a line of pareto, got 2"),
  (make_record(selected=True), "selected: expected a line of pareto, got True"),
  (make_record(features=["x", "x"]), "is no saved formula: two columns are called 'x'"),
  (make_record(features=["x", "x\n"]), "is no saved formula: two columns are called 'x'"),
  (make_record(target="a"), "target: 'a' is a feature as well"),
  (make_record(n_points=-1), "num_points: expected a number of rows, got -1"),
  ({name: value for name, value in make_record().items() if name != "pareto"}, "the field 'pareto' is missing"),
  (make_record(target=3), "target: expected text, got 3"), (make_record(times=[]), "times: expected names and values"),
  (make_record(times={"a": {"unit": "weeks", "start": None}}), "times: unknown unit 'weeks'"),
  (make_record(times={"a": {"unit": "days"}}), "the field 'start' is missing"),
  *((make_record(times={"a": {"unit": "days", "start": start}}), "times: expected a moment such as 2020-01-01T")
    for start in ("now", "2020-01-01", "NaT", 3, "", "2020-01-01T00:00:00.000000Z", "9999-01-01T00:00:00.000000000")),
  (make_record(times={"a": {"unit": "days", "start": "2020-13-01T00:00:00.000000"}}), "is no saved formula: "),
  (make_record(categories={"kind": "red"}), "categories: expected lists of names"),
  (make_record(categories={"kind": [1]}), "categories: expected lists of names"),
  (make_record(other_columns=[1]), "other_columns: expected lists of names"),
  (failed("too few points", model="m", seed=0).to_json(data="a", target="y", features=[]), "a failed search: too few"),
  ({"format": "symformer-result-9"}, "of format 9, written by a newer version"),
  ({"format": "symformer-regressor-9"}, "of format 9, written by a newer version"),
  ({"format": "symformer-regressor-3", "targets": [{}, {}]}, "holds formulas for 2 targets without their names"),
  ({"format": "other-1"}, "expected format 'symformer-result-NUMBER'"), ({}, "the field 'format' is missing"),
  ([], "the file: expected names and values")]


@pytest.mark.parametrize(("record", "message"), DAMAGED, ids=range(len(DAMAGED)))
def test_what_is_damaged_is_refused_in_one_line(write, record, message):
  with pytest.raises(InputError) as caught:
    saved_fits.read(path := write(record))
  assert message in str(caught.value) and str(caught.value).startswith(path) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("records", "message"), [
  ([], "it is empty"),
  ([make_record(), {}], "expected results of symformer in all of its lines, not so in line 2"),
  ([make_record(), 7, {}], "formula: line 2: the file: expected names and values, got 7")])
def test_lines_that_are_no_results(write, records, message):
  with pytest.raises(InputError, match=message):
    saved_fits.read(write(*records, name="fits.jsonl"))
  with pytest.raises(InputError, match="holds one fit that names no file"):
    saved_fits.read(write({"format": "symformer-result-1"}), file="a.csv")


def test_the_line_that_is_damaged_is_named(write):
  path = pathlib.Path(write(make_record(), name="fits.jsonl"))
  path.write_text(path.read_text() + "\n\n[1, }\n")
  with pytest.raises(InputError, match="fits.jsonl: is no saved formula: line 3, column 5: Expecting value$"):
    saved_fits.read(str(path))
  path.write_bytes(b"\n\xff\n")
  with pytest.raises(InputError, match=r"formula: line 2 is no UTF-8 text \(byte 0\); save it as UTF-8$"):
    saved_fits.read(str(path))


@pytest.mark.parametrize("name", ["fit.json", "fits.jsonl"])
def test_a_byte_order_mark_is_no_part_of_the_text(write, name):
  path = pathlib.Path(write(make_record(), name=name))
  path.write_text(path.read_text() + "\n", encoding="utf-8-sig")
  assert saved_fits.read(str(path)).target == "y"


JSON = st.recursive(
  st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
  lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=5)


@settings(max_examples=100)
@given(name=st.sampled_from(sorted(make_record())), value=JSON)
@example(name="times", value={"a": {"unit": {}, "start": []}})
@example(name="categories", value={"kind": None})
@example(name="data", value=None)
def test_whatever_stands_in_a_field_is_read_or_refused(tmp_path_factory, name, value):
  path = tmp_path_factory.mktemp("fit") / "fit.json"
  path.write_text(json.dumps(make_record() | {name: value}))
  try:
    assert saved_fits.read(str(path)).best in saved_fits.read(str(path)).lines
  except InputError as error:
    assert "\n" not in str(error)
