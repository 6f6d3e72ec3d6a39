"""Tables and flags where it just holds and just does not: rows that are looked at, weights of 0, separators, errors."""

import dataclasses
import io
import types

from absl import flags
import numpy as np
import openpyxl
import pandas as pd
import pytest

from symformer_jax.commands import cells, column_units, grids, runner, table_files, tables, text_tables, times
from symformer_jax.errors import InputError


@pytest.mark.parametrize(("num_numbers", "is_of_units"), [(19, False), (20, True)])
def test_a_row_of_units_is_told_by_the_twenty_rows_below_it(num_numbers, is_of_units):
  rows = [(1, ["m", "kg"]), *((i, ["1.5", "2.5"]) for i in range(2, num_numbers + 2)), (99, ["text", "text"])]
  notes = []
  kept = grids._without_units(rows, "line", notes)
  assert (len(kept) == len(rows) - 1) == bool(notes) == is_of_units


def test_a_separator_that_is_given_is_the_separator(tmp_path):
  path = tmp_path / "t.csv"
  path.write_text("a;b,c;d\n1;2,3;4\n5;6,7;8\n9;1,2;3\n")
  assert table_files.read(path, table_files.Reading()).names == ("a", "b,c", "d")
  assert table_files.read(path, table_files.Reading(separator=",")).names == ("a;b", "c;d")


def test_rows_of_weight_0_are_none_of_the_data(tmp_path):
  path = tmp_path / "t.csv"
  path.write_text("x,y,w\n1,2,1\n3,4,0\n5,6,2\n7,8,1\n9,1,2\n2,7,2\n")
  [table] = tables.read_tables(str(path), tables.Request("y", weights="w"))
  assert table.x.tolist() == [[1], [5], [7], [9], [2]] and table.y.tolist() == [2, 6, 8, 1, 7]
  np.testing.assert_allclose(table.weights / table.weights.sum(), [0.125, 0.25, 0.125, 0.25, 0.25])


@pytest.mark.parametrize(("error", "text"), [
  (OSError(2, "No such thing", "f.py"), "FileNotFoundError: [Errno 2] No such thing: 'f.py'"),
  (KeyError("no key"), "KeyError: no key"), (KeyError(), "KeyError: "),
  (ValueError("a", "b"), "ValueError: ('a', 'b')")])
def test_what_goes_wrong_in_a_config_file_is_said_as_it_says_it(error, text):
  class Values(dict):
    def __call__(self, argv):
      raise error
  with pytest.raises(flags.Error) as found:
    runner._parse(Values(), ["x"])
  assert str(found.value) == text


def test_signs_that_can_be_printed_stay_beside_those_that_cannot():
  assert runner.one_line("\u00e9 \x1b[1m\n\u6c34") == "\u00e9 \\x1b[1m \u6c34"
  assert runner.one_line("x" * 1000) == "x" * 1000 and len(runner.one_line("x" * 1001)) == 1003  # with its dots


def test_points_of_a_table_have_weights_where_it_has_them():
  x, y = np.zeros((5, 1)), np.arange(5.0)
  assert len(tables.Table("t.csv", ("x",), "y", x, y).points) == 2
  weights = np.ones(5)
  given = tables.Table("t.csv", ("x",), "y", x, y, weights=weights).points
  assert given[0] is x and given[1] is y and given[2] is weights


def test_a_hundred_thousand_columns_are_a_table_and_one_more_is_none():
  row = ["1", *[""] * 99_998, "1"]
  assert len(grids.from_rows([row, row], [1, 2], word="line").names) == 100_000
  with pytest.raises(InputError, match="a line has 100001 cells, more than 100000$"):
    grids.from_rows([["1", "", *row[1:]]] * 2, [1, 2], word="line")


def test_text_of_two_bytes_is_told_by_its_first_thousand_bytes():
  for num_others, is_told in ((49, True), (50, False)):  # of 500 signs nine in ten and more have a first byte of 0
    for encoding in ("utf-16-be", "utf-16-le"):
      text = "\u0431" * num_others + "a" * (1000 - num_others)
      decoded, notes = text_tables._decode(text.encode(encoding))
      assert (decoded == text) == bool(notes) == is_told


def test_columns_without_a_cell_are_empty():
  def is_empty(*found):
    column = np.empty(len(found), object)
    column[:] = found
    return cells.Column(np.full(len(found), np.nan), column).is_empty
  assert is_empty(None, "") and is_empty()
  assert not is_empty("n/a") and not is_empty(None, "x", "") and not is_empty(np.nan)
  assert not cells.Column(np.full(2, np.nan), np.full(2, np.nan)).is_empty


def test_whole_numbers_that_are_rounded_are_told_where_nothing_else_is():
  def column(cell, **said):
    return cells.Column(np.array([float(cell)]), np.array([cell], object), **said)
  for cell, read in (("9007199254740993", "9007199254740992"), ("-9007199254740993", "-9007199254740992")):
    assert cells._with_note_of_digits(column(cell)).note == f"is rounded to double precision: {cell} is read as {read}"
    for said in ({"note": "n"}, {"fault": "f"}, {"is_time": True}):
      asked = column(cell, **said)
      assert cells._with_note_of_digits(asked) is asked
  for cell in ("9007199254740992", "9007199254740991", "1e300", "inf", "18014398509481984"):
    assert not cells._with_note_of_digits(column(cell)).note


@pytest.mark.parametrize(("number", "value"), [("1.5", 1.5), ("1,5", 1.5), ("7", 7.0)])
def test_a_number_among_days_makes_no_column_of_days(number, value):
  texts = np.array([number, "01.01.2020", "02.01.2020", "03.01.2020"], object)
  [column] = cells.read_columns([texts], decimal="," if "," in number else None)
  assert not column.is_time and column.values[0] == value and np.isnan(column.values[1:]).all()


def test_a_title_is_told_by_the_twenty_five_rows_that_are_looked_at():
  rows = [["title"], *[["a", "b"]] * 12, *[["c", "d", "e"]] * 12]
  for num_wide, is_told in ((0, True), (1, True), (9, True)):
    kept, notes = list(enumerate(rows + [["c", "d", "e"]] * num_wide, 1)), []
    assert (grids._without_titles(kept, "line", notes) == kept[1:]) == bool(notes) == is_told
  kept, notes = list(enumerate([*rows[:12], *rows[13:], ["c", "d", "e"]], 1)), []  # most of them are wide
  assert grids._without_titles(kept, "line", notes) == kept and not notes


def test_units_of_names_come_before_those_of_headers():
  table = tables.Table("t.csv", ("mass (kg)", "v [m/s] ", "n", "q ()"), "E (J)", np.zeros((5, 4)), np.arange(5.0))
  assert column_units.units_of(["header"], [table], is_single=True) == {
    "mass (kg)": "kg", "v [m/s] ": "m/s", "n": "1", "q ()": "", "E (J)": "J"}
  given = ["n=s", "z=m", "y=W", "header"]
  assert column_units.units_of(given, [table], is_single=True) == {
    "mass (kg)": "kg", "v [m/s] ": "m/s", "n": "s", "q ()": "", "E (J)": "J", "z": "m", "y": "W"}
  # Of some of the files: `z` may be a column of another one, and `y` is the target of each.
  assert column_units.units_of(given[:3], [table], is_single=False) == {"n": "s", "y": "W"}
  assert column_units.units_of(given[:3], [table], is_single=True) == {"n": "s", "z": "m", "y": "W"}
  odd = dataclasses.replace(table, features=("v (fast)",))
  with pytest.raises(InputError, match=r"'v \(fast\)'.*; where it is no unit, say --units='header,v \(fast\)=1'$"):
    column_units.units_of(["header"], [odd], is_single=True)


class Source(io.BytesIO):
  """A file that gives a few bytes at a time."""

  def read(self, size=-1):
    return super().read(min(size, self.at_most))


@pytest.mark.parametrize("at_most", [1, 5, 7, 1000])
def test_hidden_rows_are_found_wherever_the_file_is_cut(at_most):
  def hidden(xml):
    source = Source(xml)
    source.at_most = at_most
    return table_files._hidden_rows(types.SimpleNamespace(_get_source=lambda: source))
  assert hidden(b'<sheetData><row r="3" hidden="1"><c r="A3"/></row><row spans="1:2" hidden="true"/><row hidden="0"/>'
                b"<x:row r='9' x='1' hidden='1'><c/></x:row><rows hidden='1'/><row hidden='1'/></sheetData>") == [
                  3, 4, 9, 10]
  assert hidden(b"<row/><row hidden='1'/>") == [2] and hidden(b"") == []
  for second in (3, 2):
    with pytest.raises(InputError, match=f"row {second} stands after row 3"):
      hidden(b'<row r="3"/><row r="%d"/>' % second)


def test_hidden_rows_with_cells_are_told(tmp_path):
  book = openpyxl.Workbook()
  for row in (["a", "b"], *[[i, i * i] for i in range(1, 4)], [], *[[i, i * i] for i in range(4, 7)]):
    book.active.append(row)
  for row in (5, 6, 8, 9):  # nothing stands in the fifth and the ninth
    book.active.row_dimensions[row].hidden = True
  book.save(tmp_path / "t.xlsx")
  grid = table_files.read(tmp_path / "t.xlsx", table_files.Reading())
  assert grid.notes == ("2 rows that are hidden are read as the others are, first row 6",) and len(grid.places) == 6


def test_whole_numbers_of_which_some_are_missing_are_numbers():
  np.testing.assert_array_equal(table_files._plain(pd.Series([1, None, 3], dtype="Int64")), [1, np.nan, 3])


def test_a_comment_behind_cells_is_looked_for_at_twenty_places():
  for num, is_found in ((19, True), (20, False)):
    cells_ = "x" + " #a" * num + " 5"
    assert text_tables._head(f"{cells_} #c") == (cells_ if is_found else f"{cells_} #c")


def test_a_separator_makes_as_many_cells_of_four_lines_in_five():
  for num, is_one in ((160, True), (159, False)):
    assert (text_tables._score(["1;2"] * num + ["x"] * (200 - num), ";") > 0) == is_one
  for num, is_one in ((2, True), (3, False)):  # of few lines two may be others
    assert (text_tables._score(["1;2"] * 4 + ["x"] * num, ";") > 0) == is_one


def test_the_separator_is_found_in_the_first_two_hundred_lines(tmp_path, monkeypatch):
  asked, find = [], text_tables._find_separator
  monkeypatch.setattr(text_tables, "_find_separator", lambda lines: asked.append(lines) or find(lines))
  (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 250)
  assert len(text_tables.read(tmp_path / "t.csv").places) == 250
  assert asked == [["a,b", *["1,2"] * 199]]


def test_forms_of_days_are_tried_on_fifty_cells(monkeypatch):
  asked, parse = [], times._parse
  monkeypatch.setattr(times, "_parse", lambda texts, form: asked.append(len(texts)) or parse(texts, form))
  found = times.read(np.array([f"{1 + i % 28:02d}.01.2020" for i in range(60)], object))
  assert np.isfinite(found.values).all() and set(asked) == {50, 60} and asked[0] == 50
