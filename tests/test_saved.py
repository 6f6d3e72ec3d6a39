"""Files of fitted formulas: all comes back, old ones are read, newer and foreign ones refused in one line."""

import dataclasses
import json
import os
import re

import numpy as np
import pytest

import symformer_jax
from symformer_jax import saved
from symformer_jax.errors import InputError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.language import expression, operators, parser
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import (
  Constant,
  Counts,
  Equation,
  Filled,
  Guess,
  Progress,
  Rejected,
  SearchResult,
  Seconds,
  Seen,
  failed,
)

NAMES = ("depth (m)\n<script>", "b")


def make_result(*, weights=None):
  texts = ["37.25", "2.5*a + 1.1", "2.1*a**1.3*sin(b)/(0.1 + b)"]
  lines = tuple(
    Equation(parser.parse(text, ["a", "b"]), NAMES, 1 / (i + 1), 0.1 * i, None if i else 2.0,
             (Constant(2.1, 0.25, "21/10"), Constant(1.3, None)))
    for i, text in enumerate(texts))
  seen = Seen({NAMES[0]: (0.5, 2.25), "b": (-1.0, 1e300)}, ("b",), 0.02, "huber", None, 3,
              (Rejected("b**9", 3, None, "a leap between rows"),))
  rounds = (Progress(0, "a + b", 0.5, "library", True, 0.25), Progress(256, "a", None, "transformer", False, 1.5))
  return SearchResult("ok", "one; two", lines[1], lines, Counts(4, 3, 2, 1), Seconds(compile=1.25, total=2.5), 7, 20,
                      "fixed", rounds, "exact", seen, weights, guesses=(
                        Guess("k*b", "2*b", {"k": 2.0}, {"k": None}, None, 0.5, 1, ""),
                        Guess("log(b)", "", {}, {}, None, None, None, "not defined on all rows")))


def fitted_by_hand(result, **params):
  estimator = SymFormerRegressor(**params)
  estimator.n_features_in_, estimator.feature_names_in_ = 2, np.array(NAMES, dtype=object)
  estimator.result_ = result
  estimator._set_front(result.pareto, result.best)
  return estimator


def test_whole_numbers_with_errors_come_back(tmp_path):
  result = make_result()
  line = dataclasses.replace(result.pareto[0], node=parser.parse("2*a + 3", ["a", "b"]), constants=(),
                             whole=(Constant(2.0, 0.1, unit="m"), Constant(3.0, None)))
  saved.save_result(dataclasses.replace(result, pareto=(line,), best=line, guesses=()), tmp_path / "r.json")
  assert symformer_jax.load_result(tmp_path / "r.json").best == line


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.0])])
def test_a_result_comes_back_whole(tmp_path, weights):
  result = make_result(weights=weights)
  symformer_jax.save_result(result, tmp_path / "r.json")
  back = symformer_jax.load_result(tmp_path / "r.json")
  assert back == result and back.best is back.pareto[1] and back.is_weighted == result.is_weighted
  assert all(type(getattr(back, f.name)) is type(getattr(result, f.name)) for f in dataclasses.fields(result))
  np.testing.assert_array_equal(back.weights, weights)
  assert "Infinity" not in (tmp_path / "r.json").read_text()


def test_a_regressor_comes_back_to_the_last_bit_whatever_its_columns_are_called(tmp_path):
  fitted = fitted_by_hand(make_result(), accuracy=float("inf"), random_state=np.int64(3))
  fitted.save(tmp_path / "fit.json")
  loaded = SymFormerRegressor.load(tmp_path / "fit.json")
  assert loaded.result_ == fitted.result_ and loaded._front == fitted._front and loaded.best_ == fitted.best_
  assert loaded.get_params() == fitted.get_params() and loaded.feature_names_in_.tolist() == list(NAMES)
  json.loads((tmp_path / "fit.json").read_text(), parse_constant=pytest.fail)  # every JSON reader takes it
  loaded.save(tmp_path / "again.json")
  assert (tmp_path / "again.json").read_text() == (tmp_path / "fit.json").read_text()


def test_several_targets_come_back_from_one_file(tmp_path):
  fitted = SymFormerRegressor(units={"depth": "m"}, random_state=0)
  fitted.n_features_in_, fitted.feature_names_in_ = 2, np.array(NAMES, dtype=object)
  first, second = make_result(), dataclasses.replace(make_result(weights=np.array([1.0, 3.0])), seed=8)
  fitted._set_targets([fitted_by_hand(first, units={"depth": "m"}), fitted_by_hand(second, units=None)])
  fitted.save(tmp_path / "fit.json")
  loaded = SymFormerRegressor.load(tmp_path / "fit.json")
  X = np.array([[1.0, 2.0], [3.0, 4.0]])
  for each in (fitted, loaded, *fitted.estimators_, *loaded.estimators_):
    del each.feature_names_in_  # plain arrays come without names
  np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
  assert loaded.predict(X).shape == (2, 2) and loaded.get_params() == fitted.get_params()
  assert loaded.result_ == fitted.result_ == [first, second]
  assert [each.units for each in loaded.estimators_] == [{"depth": "m"}, None]
  assert [each._front for each in loaded.estimators_] == [each._front for each in fitted.estimators_]
  assert [len(front) for front in loaded.equations_] == [3, 3]


def test_the_file_of_a_single_target_is_one_that_earlier_versions_read(tmp_path):
  fitted_by_hand(make_result()).save(tmp_path / "fit.json")
  assert json.loads((tmp_path / "fit.json").read_text())["format"] == "symformer-regressor-2"


def of_command(result):
  return result.to_json(data="a.csv", target="y", features=list(NAMES)) | {"selected": 0, "notes": [], "options": {}}


@pytest.mark.parametrize("units", [None, ("m", "1", "s")])
def test_what_the_command_line_wrote_is_a_result(tmp_path, units):
  result = dataclasses.replace(make_result(), units=units)
  if units:
    texts = [["s"], ["s/m", "s"], ["1", None, "s"]]
    lines = [dataclasses.replace(line, number_units=tuple(each))
             for line, each in zip(result.pareto, texts, strict=True)]
    result = dataclasses.replace(result, best=lines[1], pareto=tuple(lines))
  (tmp_path / "r.json").write_text(json.dumps(of_command(result)))
  back = symformer_jax.load_result(tmp_path / "r.json")
  assert back == result and back.best is back.pareto[1]
  symformer_jax.save_result(back, tmp_path / "again.json")
  assert symformer_jax.load_result(tmp_path / "again.json") == result


def test_what_the_command_line_wrote_before_it_wrote_trees_is_read_as_text(tmp_path):
  record = of_command(make_result())
  for line in (record["best"], *record["pareto"]):
    del line["tree"]
  (tmp_path / "r.json").write_text(json.dumps(record))
  back = symformer_jax.load_result(tmp_path / "r.json")
  assert [line.expression for line in back.pareto] == [line.expression for line in make_result().pareto]


def test_a_failed_file_of_the_command_line_and_a_regressor_of_it_are_refused_in_one_line(tmp_path):
  (tmp_path / "r.json").write_text(json.dumps(of_command(failed("no rows", model="fixed", seed=0))))
  with pytest.raises(InputError, match=r"r.json: is no saved result: a failed search: no rows$"):
    symformer_jax.load_result(tmp_path / "r.json")
  record = of_command(make_result())
  del record["pareto"]
  (tmp_path / "r.json").write_text(json.dumps(record))
  with pytest.raises(InputError, match="is no saved result: the field 'pareto' is missing$"):
    symformer_jax.load_result(tmp_path / "r.json")
  with pytest.raises(InputError, match="SymFormerRegressor: it was written by the command line: load_result reads it$"):
    SymFormerRegressor.load(tmp_path / "r.json")


def test_every_operator_and_number_comes_back():
  for op in operators.OPERATORS:
    node = Node(op.name, tuple([variable(1), number(1 / 3)][: op.arity]))
    assert saved._read_tree(json.loads(json.dumps(expression.to_tokens(node))), 2) == node
  for value in (0.1, -5e-324, 1.7e308, 1e15, -3.0):
    assert saved._read_tree(json.loads(json.dumps(expression.to_tokens(number(value)))), 1) == number(value)


# As `save` wrote it before trees and the search were part of it.
OLD = {
  "format": "symformer-regressor-1", "n_features": 2, "names": ["mass", "speed"], "feature_names": ["mass", "speed"],
  "best": 1, "params": {"model": "auto", "n_samples": 32, "random_state": 0, "guesses": []}, "front": [
    {"expression": "3.5", "latex": "3.5", "complexity": 1, "r2": 0.0, "mse": 2.0, "rmse": 1.4, "relative_error": None,
     "constants": [{"value": 3.5, "stderr": 0.1}]},
    {"expression": "0.5*speed**2*mass", "latex": "", "complexity": 6, "r2": 1.0, "mse": 0.0, "rmse": 0.0,
     "relative_error": 0.0, "constants": [{"value": 0.5, "stderr": None, "exact": "1/2"}]}]}


def test_files_of_the_first_format_are_read(tmp_path):
  (tmp_path / "old.json").write_text(json.dumps(OLD))
  loaded = SymFormerRegressor.load(tmp_path / "old.json")
  X = np.array([[1.0, 2.0], [3.0, 4.0]])
  loaded.feature_names_in_ = None  # plain arrays come without names
  del loaded.feature_names_in_
  np.testing.assert_array_equal(loaded.predict(X), [2, 24])
  np.testing.assert_array_equal(loaded.predict(X, [0, 1]), [[3.5, 2], [3.5, 24]])
  assert loaded.result_ is None and loaded.best_.constants == (Constant(0.5, None, "1/2"),)
  loaded.save(tmp_path / "new.json")
  assert SymFormerRegressor.load(tmp_path / "new.json")._front == loaded._front


def test_rules_of_a_file_from_before_there_were_sizes_are_read(tmp_path):
  rules = {"forbidden": ["tan"], "max_depth": 5}
  (tmp_path / "old.json").write_text(changed(params=OLD["params"] | {"restrictions": rules}))
  assert SymFormerRegressor.load(tmp_path / "old.json").restrictions == Restrictions(forbidden=("tan",), max_depth=5)


def changed(**changes):
  return json.dumps(OLD | changes)


TREE = {"constants": [], "mse": 1.0, "r2": None, "relative_error": None, "expression": "mass"}


@pytest.mark.parametrize(("text", "message"), [
  (changed(format="symformer-regressor-4"), "of format 4, written by a newer version; this one reads up to 3"),
  (changed(format="symformer-regressor-3", targets=[]), "targets: expected at least one"),
  (changed(format="symformer-regressor-3"), "is no saved SymFormerRegressor: the field 'targets' is missing"),
  (changed(format="symformer-result-1"), "expected format 'symformer-regressor-NUMBER', got 'symformer-result-1'"),
  (changed(format=["x" * 5000]), "expected format 'symformer-regressor-NUMBER'"),
  (changed(best=2), "best: expected a line of the front, got 2"),
  (changed(best=True), "best: expected a line of the front, got True"),
  (changed(best=-1), "best: expected a line of the front, got -1"),
  (changed(names=[]), "names: expected those of the columns"),
  (changed(names=["mass", "mass"]), "two columns are called 'mass'"),
  (changed(n_features=3), "n_features: expected 2, got 3"),
  (changed(feature_names=["a", "b"]), "feature_names: expected those of the formulas"),
  (changed(params={"modle": "auto"}), "params: unknown key 'modle': did you mean 'model'?"),
  (changed(params={"guesses": 3}), "guesses: expected a list of formulas, got 3"),
  (changed(front=[TREE | {"tree": ["+", "x0"]}] * 2), "tree: it ends too early"),
  (changed(front=[TREE | {"tree": ["x0", "x1"]}] * 2), "tree: it goes on after its end"),
  (changed(front=[TREE | {"tree": ["x2"]}] * 2), "tree: expected a number, got 'x2'"),
  (changed(front=[TREE | {"tree": ["__import__"]}] * 2), "tree: expected a number, got '__import__'"),
  (changed(front=[TREE | {"tree": ["neg"] * 200 + [1]}] * 2), "tree: expected at most 128 tokens"),
  (changed(front=[TREE | {"tree": ["*", float("nan"), "x0"]}] * 2), "tree: expected a number, got nan"),
  (changed(front=[TREE | {"tree": ["*", float("inf"), "x0"]}] * 2), "tree: expected a finite number, got inf"),
  (changed(front=[TREE | {"mse": "1"}] * 2), "mse: expected a number, got '1'"),
  (changed(front=[TREE | {"r2": float("nan")}] * 2), "r2: expected a number, got nan"),
  (changed(front=[TREE | {"constants": [{"value": float("nan"), "stderr": None}]}] * 2), "value: expected a number"),
  (changed(front=[TREE | {"constants": [{"value": 1, "stderr": -1}]}] * 2), "stderr: expected a number of at least 0"),
  (changed(front=[TREE | {"expression": "mass.__class__"}] * 2), "unexpected character '.'"),
  (changed(search={"weights": None}), "is no saved SymFormerRegressor"),
  ("9" * 5000, "a number has 5000 digits, which is beyond double precision"),
  ("[" * 100_000, "is no saved SymFormerRegressor"), ("\x00", "is no saved SymFormerRegressor"),
])
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, text, message):
  (tmp_path / "fit.json").write_text(text)
  with pytest.raises(InputError) as caught:
    SymFormerRegressor.load(tmp_path / "fit.json")
  assert message in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_byte_order_mark_is_no_part_of_the_text_and_other_encodings_are_named(tmp_path):
  (tmp_path / "fit.json").write_text(json.dumps(OLD), encoding="utf-8-sig")
  assert SymFormerRegressor.load(tmp_path / "fit.json").feature_names_in_.tolist() == OLD["names"]
  (tmp_path / "fit.json").write_text(json.dumps(OLD), encoding="utf-16")
  with pytest.raises(InputError, match=r"fit.json: is no UTF-8 text \(byte 0\); save it as UTF-8$"):
    SymFormerRegressor.load(tmp_path / "fit.json")


@pytest.mark.parametrize(("part", "value", "message"), [
  ("weights", [{"float": "inf"}] * 3, "weights: expected numbers of at least 0"),
  ("weights", [{"float": "nan"}] * 3, "weights: expected a number, got nan"),
  ("num_points", -1, "num_points: expected a number of rows, got -1"),
  ("seen", {"ranges": {"b": [9, 1]}, "rejected": []}, "ranges: expected the least value first, got 9 and 1"),
  ("seen", {"ranges": {"b": [{"float": "nan"}] * 2}, "rejected": []}, "ranges: expected a number, got nan"),
  ("seen", {"ranges": {"b": [0, 1e999]}, "rejected": []}, "ranges: expected a finite number, got inf"),
  ("weights", [0, 0], "weights: expected numbers of at least 0, and one above"),
  ("seen", {"ranges": {}, "rejected": [], "unused": 3}, "unused: expected names of columns, got 3")])
def test_damaged_parts_of_a_search_are_refused_in_one_line(tmp_path, part, value, message):
  saved.save_result(make_result(), tmp_path / "r.json")
  record = json.loads((tmp_path / "r.json").read_text())
  record["search"][part] = value
  (tmp_path / "r.json").write_text(json.dumps(record))
  with pytest.raises(InputError, match=f"is no saved result: {message}"):
    saved.load_result(tmp_path / "r.json")


@pytest.mark.parametrize(("name", "message"), [
  ("", "'': it is a folder"), ("missing/fit.json", "No such file or directory"), (".", "it is a folder"),
  ("a" * 5000, "File name too long"), ("a\0b", "null byte")])
def test_where_nothing_can_be_written_is_said_in_one_line(tmp_path, monkeypatch, name, message):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(InputError, match=re.escape(message)) as raised:
    saved.write(name, {"a": 1.0})
  assert len(str(raised.value)) < 300 and "\n" not in str(raised.value)
  assert not list(tmp_path.iterdir())


def test_a_pipe_stays_what_it_is(tmp_path):
  place = tmp_path / "fit.json"
  os.mkfifo(place)
  for save in (fitted_by_hand(make_result()).save, lambda path: saved.save_result(make_result(), path)):
    with pytest.raises(InputError, match=f"^cannot write '{place}': is no regular file$"):
      save(place)
  assert place.is_fifo() and os.listdir(tmp_path) == ["fit.json"]


def test_what_has_no_end_is_not_read(tmp_path):
  os.mkfifo(tmp_path / "fit.json")
  for path in (tmp_path / "fit.json", "/dev/zero"):
    with pytest.raises(InputError, match="cannot be read: is no regular file"):
      SymFormerRegressor.load(path)


@pytest.mark.parametrize(("part", "value"), [
  ("seconds", {"hours": 1}), ("counts", {"hours": 1}), ("rounds", [{"hours": 1}]),
  ("seen", {"ranges": {}, "rejected": [], "hours": 1})])
def test_an_unknown_key_of_a_search_is_named_with_its_place(tmp_path, part, value):
  saved.save_result(make_result(), tmp_path / "r.json")
  record = json.loads((tmp_path / "r.json").read_text())
  record["search"][part] = value
  (tmp_path / "r.json").write_text(json.dumps(record))
  with pytest.raises(InputError, match=f"is no saved result: unknown key {part}.hours: "):
    saved.load_result(tmp_path / "r.json")


@pytest.mark.parametrize("units", [["m", None, "s"], ["m", "s"]])
def test_units_that_are_no_text_for_each_column_are_refused(tmp_path, units):
  saved.save_result(make_result(), tmp_path / "r.json")
  record = json.loads((tmp_path / "r.json").read_text())
  record["search"]["units"] = ["m", "", "s"]
  (tmp_path / "r.json").write_text(json.dumps(record))
  assert saved.load_result(tmp_path / "r.json").units == ("m", "", "s")
  record["search"]["units"] = units
  (tmp_path / "r.json").write_text(json.dumps(record))
  with pytest.raises(InputError, match="is no saved result: units: expected "):
    saved.load_result(tmp_path / "r.json")


def test_a_failed_search_and_a_file_without_a_search_are_no_results(tmp_path):
  with pytest.raises(InputError, match="a failed search has nothing to save: no rows"):
    saved.save_result(failed("no rows", model="fixed", seed=0), tmp_path / "r.json")
  saved.save_result(make_result(), tmp_path / "r.json")
  record = json.loads((tmp_path / "r.json").read_text()) | {"search": None}
  (tmp_path / "r.json").write_text(json.dumps(record))
  with pytest.raises(InputError, match="is no saved result: it does not say how the formulas were found"):
    symformer_jax.load_result(tmp_path / "r.json")


# Of errors that say what Python could not do with a value, and not what was expected of the file.
PYTHONS_WORDS = re.compile("not supported between|indices must|subscriptable|object (is not|has no)|__init__|unpack|"
                           "not iterable|unhashable|sequence element|not in list|NoneType|must be str|domain error|"
                           "too large")


def places(value, place=()):
  """All places of a JSON value."""
  yield place
  inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
  for key, part in inner:
    yield from places(part, (*place, key))


def replaced(record, place, value):
  """A JSON value with another one at a place, or without the place where that is the value."""
  if not place:
    return value
  record = json.loads(json.dumps(record))
  part = record
  for key in place[:-1]:
    part = part[key]
  if value is place:
    del part[place[-1]]
  else:
    part[place[-1]] = value
  return record


def a_regressors():
  line = dataclasses.replace(make_result().pareto[0], filled=Filled((("f(a)", "2*a"),), (("k", Constant(1.0, None)),)))
  fitted = fitted_by_hand(dataclasses.replace(make_result(), pareto=(line, *make_result().pareto[1:])),
                          restrictions=Restrictions(max_sizes={"sin": 3}), units={"b": "s"})
  return fitted.save, SymFormerRegressor.load


def of_targets():
  fitted = SymFormerRegressor()
  fitted.n_features_in_, fitted.feature_names_in_ = 2, np.array(NAMES, dtype=object)
  fitted._set_targets([fitted_by_hand(make_result())])
  return fitted.save, SymFormerRegressor.load


def of_the_command():
  return lambda path: path.write_text(json.dumps(of_command(make_result()))), symformer_jax.load_result


@pytest.mark.parametrize("kind", [a_regressors, of_targets, of_the_command])
def test_whatever_is_damaged_is_said_in_words_about_the_file(tmp_path, kind):
  save, load = kind()
  save(tmp_path / "fit.json")
  record = json.loads((tmp_path / "fit.json").read_text())
  for place in places(record):
    for value in (None, 3, -1, 10**400, 2.5, "x", [], [3], {"a": 1}, *([place] if place else ())):
      (tmp_path / "fit.json").write_text(json.dumps(replaced(record, place, value)))
      try:
        load(tmp_path / "fit.json")
      except InputError as error:
        assert not PYTHONS_WORDS.search(str(error)), f"{place}, {value!r}: {error}"


@pytest.mark.parametrize(("text", "message"), [
  ("[3]", "the file: expected names and values, got [3]"), (changed(best=None), "best: expected a line of the front"),
  (changed(best="1"), "best: expected a line of the front, got '1'"), (changed(front=[3]), "front: expected names and"),
  (changed(front={}), "front: expected a list, got {}"), (changed(params=None), "params: expected names and values"),
  (changed(feature_names=3), "feature_names: expected those of the formulas"),
  (changed(front=[TREE | {"constants": None}] * 2), "constants: expected a list, got None"),
  (changed(front=[TREE | {"constants": [{"value": 1, "stderr": 0, "exact": 3}]}] * 2), "exact: expected text, got 3"),
  (changed(front=[TREE | {"whole": 3}] * 2), "whole: expected a list, got 3"),
  (changed(front=[TREE | {"whole": [{"value": 77, "stderr": 1}]}] * 2), "whole: expected the whole numbers of"),
  (changed(params={"config": 3}), "params.config: expected its own keys and values, got 3"),
  (changed(params={"restrictions": {"forbiden": []}}), "unknown key params.restrictions.forbiden: did you mean"),
  (changed(params={"restrictions": {"max_sizes": [3]}}), "max_sizes: expected pairs of an operator and a size, got 3"),
  (changed(format="symformer-regressor-3", targets=3), "targets: expected a list, got 3")])
def test_a_damaged_part_is_named(tmp_path, text, message):
  (tmp_path / "fit.json").write_text(text)
  with pytest.raises(InputError, match=re.escape(f"is no saved SymFormerRegressor: {message}")):
    SymFormerRegressor.load(tmp_path / "fit.json")
