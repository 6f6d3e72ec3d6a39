"""Reading tables: what is accepted, and one clear line for each way a file can be unusable."""

import datetime
import io
import os
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from symformer_jax.commands import grids, table_files, tables
from symformer_jax.commands.tables import TableError, find_files, read_table
from symformer_jax.errors import InputError

ROWS = "".join(f"{i},{i * i}\n" for i in range(1, 8))


@pytest.fixture
def write(tmp_path):
  def write(text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)
  return write


def test_header_names_the_columns(write):
  table = read_table(write("mass,force\n" + ROWS))
  assert (table.features, table.target, table.notes) == (("mass",), "force", ())
  np.testing.assert_array_equal(table.x[:, 0], np.arange(1, 8))
  np.testing.assert_array_equal(table.y, np.arange(1, 8) ** 2)


def test_without_header_columns_get_names(write):
  table = read_table(write("".join(f"{i},{2 * i},{i * i}\n" for i in range(1, 8))))
  assert (table.features, table.target) == (("x0", "x1"), "y")
  assert len(table.y) == 7


@pytest.mark.parametrize(("name", "separator"), [("t.tsv", "\t"), ("t.csv", ";"), ("t.csv", ", ")])
def test_separators(write, name, separator):
  text = "\n".join(separator.join(row) for row in [("a", "b"), *((str(i), f"{i / 2}") for i in range(6))])
  assert read_table(write(text, name)).y[-1] == 2.5


def test_spreadsheet_marks_quotes_and_blank_lines_do_no_harm(write):
  text = '\ufeff"a","b"\n\n' + "".join(f'"{i}","{i * i}"\n' for i in range(6)) + "\n\n"
  table = read_table(write(text))
  assert table.features == ("a",) and len(table.y) == 6


def test_target_and_features_are_chosen_by_name(write):
  path = write("a,b,c\n" + "".join(f"{i},{i * i},{-i}\n" for i in range(6)))
  table = read_table(path, target="b", features=["c"])
  assert (table.features, table.target) == (("c",), "b") and table.x[2, 0] == -2


def test_dates_in_the_unit_asked_for(write):
  path = write("t,y\n2018-01-01,1\n2020-12-31,2\n2021-12-31,3\n2021-12-31 12:00,5\n2022-01-01,4\n")
  np.testing.assert_array_equal(read_table(path, time_unit="days").x[:, 0], [0, 1095, 1460, 1460.5, 1461])
  assert read_table(path).x[0, 0] == 2018
  with pytest.raises(InputError, match="--time_unit: unknown unit 'weeks'"):
    read_table(path, time_unit="weeks")


def test_text_columns_are_left_aside_and_said(write):
  table = read_table(write("planet,a,b\n" + "".join(f"P{i},{i},{i * i}\n" for i in range(6))))
  assert table.features == ("a",)
  assert table.notes == ("column 'planet' left aside: it holds no number (line 2: 'P0')",)


def test_names_are_kept_as_they_stand_but_in_one_line(write):
  table = read_table(write('axis (AU),exp,"say ""x""",a\u00a0\x1bb,"girth\n(in)"\n'
                           + "".join(f"{i},{i},{i},{i},{i * i}\n" for i in range(6))))
  assert (*table.features, table.target) == ("axis (AU)", "exp", 'say "x"', "a b", "girth (in)") and not table.notes
  assert read_table(table.path, target="girth  (in)", features=["a\u00a0b"]).features == ("a b",)


def test_a_title_stands_above_names_alone(write):
  table = read_table(write(f"Results\na,b\n{ROWS}"))
  assert table.features == ("a",) and table.notes == ("line 1 left out: 'Results' is taken for a title",)
  with pytest.raises(TableError, match="Expected 1 fields in line 2, saw 2"):  # it may be a name itself
    read_table(write(f"Results\na,2\n{ROWS}"))


def test_npz_and_parquet(tmp_path):
  x, y = np.arange(12.0).reshape(6, 2), np.arange(6.0) ** 2
  np.savez(tmp_path / "t.npz", y=y, x=x)
  table = read_table(str(tmp_path / "t.npz"))
  assert (table.features, table.target) == (("x0", "x1"), "y")
  np.testing.assert_array_equal(table.x, x)
  (tmp_path / "t.parquet").write_bytes(b"no table")
  with pytest.raises(TableError, match="needs pyarrow|cannot be read as parquet"):
    read_table(str(tmp_path / "t.parquet"))


def test_what_a_kind_of_file_does_not_know_is_said(tmp_path):
  np.savez(tmp_path / "t.npz", x=np.arange(6.0), y=np.arange(6.0) ** 2)
  (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(6)))
  assert read_table(str(tmp_path / "t.npz"), separator=";").notes == ("--separator is not used: this is no text",)
  assert read_table(str(tmp_path / "t.csv"), sheet="a").notes == ("--sheet is not used: this is no workbook",)
  for path, decimal, notes in (("t.npz", ",", ("--decimal is not used: no column in use holds text",)),
                               ("t.csv", ",", ()), ("t.npz", None, ())):
    assert read_table(str(tmp_path / path), decimal=decimal).notes == notes
  for path in ("t.npz", "t.csv"):
    assert read_table(str(tmp_path / path), time_unit="days").notes == (
      "--time_unit is not used: no column in use holds dates or times",)
  (tmp_path / "d.csv").write_text("x,day,y\n" + "".join(f"{i},2020-01-0{i + 1},{i * i}\n" for i in range(6)))
  assert not any("not used" in note for note in read_table(str(tmp_path / "d.csv"), time_unit="days").notes)
  left_out = read_table(str(tmp_path / "d.csv"), time_unit="days", features=["x"])
  assert left_out.notes == ("--time_unit is not used: no column in use holds dates or times",)
  assert read_table(str(tmp_path / "t.csv"), separator=",").notes == read_table(str(tmp_path / "t.npz")).notes == ()


def test_columns_of_one_name_in_npz_are_refused(tmp_path):
  np.savez(tmp_path / "t.npz", x=np.arange(12.0).reshape(6, 2), x0=np.ones(6), y=np.arange(6.0))
  with pytest.raises(TableError, match="two columns are called 'x0'"):
    read_table(str(tmp_path / "t.npz"))
  assert read_table(str(tmp_path / "t.npz"), features=["x1"]).x[1, 0] == 3


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_in_an_archive_are_refused(tmp_path):
  np.savez(tmp_path / "t.npz", x=np.arange(6.0), y=np.arange(6.0) ** 2)
  with zipfile.ZipFile(tmp_path / "t.npz", "a") as file:
    file.writestr("x.npy", file.read("y.npy"))
  with pytest.raises(TableError, match="cannot be read as npz of plain arrays: two arrays have one name"):
    read_table(str(tmp_path / "t.npz"))


@pytest.mark.parametrize(("separator", "end"), [(",", ""), (";", ";"), ("\t", "")])
def test_a_named_last_column_without_a_cell_is_left_aside(separator, end, tmp_path):
  lines = [["x", "y", "comment"], *([str(i), str(i**2), ""] for i in range(6))]
  (tmp_path / "t.csv").write_text("".join(separator.join(line) + end + "\n" for line in lines))
  table = read_table(str(tmp_path / "t.csv"))
  assert (table.features, table.target) == (("x",), "y") and len(table.y) == 6
  assert "column 'comment' left aside: it holds no number" in table.notes


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet", "npz"])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path, suffix):
  os.mkfifo(tmp_path / f"t.{suffix}")
  with pytest.raises(TableError, match="is no regular file"):
    read_table(str(tmp_path / f"t.{suffix}"))


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no file that cannot be read to its owner")
def test_what_the_system_says_of_a_file_is_passed_on(tmp_path):
  (tmp_path / "t.csv").symlink_to("/proc/self/mem")
  with pytest.raises(TableError, match="t.csv: cannot be read: Input/output error"):
    read_table(str(tmp_path / "t.csv"))


def test_truth_values_of_arrays_and_frames_are_said(tmp_path):
  flags = np.arange(6) > 2
  np.savez(tmp_path / "t.npz", x=flags, y=np.arange(6.0))
  note = "column 'x' is read as 1 for true and 0 for false"
  assert read_table(str(tmp_path / "t.npz")).notes == (note,)
  pytest.importorskip("pyarrow")
  pd.DataFrame({"x": flags, "y": np.arange(6.0)}).to_parquet(tmp_path / "t.parquet")
  table = read_table(str(tmp_path / "t.parquet"))
  assert table.notes == (note,) and list(table.x[:, 0]) == [0, 0, 0, 1, 1, 1]


def read_frame(frame, folder, monkeypatch, **request):
  """The table that a parquet with this frame is, without the package that reads it."""
  (folder / "t.parquet").write_bytes(b"PAR1")
  monkeypatch.setattr(pd, "read_parquet", lambda path: frame)
  return read_table(str(folder / "t.parquet"), **request)


@pytest.mark.parametrize("cell", [np.array([1, 2]), np.array([[1.5]]), pd.NA])
def test_a_column_of_lists_is_left_aside_as_others_without_numbers_are(tmp_path, monkeypatch, cell):
  cells = pd.Series([cell, *[np.array([3, 4])] * 5], dtype=object)
  frame = pd.DataFrame({"x": np.arange(6.0), "l": cells, "y": np.arange(6.0)})
  table = read_frame(frame, tmp_path, monkeypatch)
  assert table.features == ("x",) and "column 'l' left aside: it holds no number (row" in table.notes[0]
  assert read_frame(frame, tmp_path, monkeypatch, features=["x"]).notes == ()
  with pytest.raises(TableError, match=r"column 'l' holds no number: row \d has '\[+"):
    read_frame(frame, tmp_path, monkeypatch, features=["l"])
  with pytest.raises(TableError, match="expected 2 to 50 different values in column 'l', got 1"):
    read_frame(frame.assign(l=[np.array([3, 4])] * 6), tmp_path, monkeypatch, categories=["l"])


def test_an_index_that_has_the_name_of_a_column_is_it_or_is_refused(tmp_path, monkeypatch):
  frame = pd.DataFrame({"x": np.arange(6.0), "z": np.arange(6.0) ** 3, "y": np.arange(6.0)})
  table = read_frame(frame.set_index("x", drop=False), tmp_path, monkeypatch)
  assert table.features == ("x", "z") and list(table.x[:, 0]) == list(range(6))
  other = frame.set_index(pd.Index(np.arange(6.0)[::-1], name="x"))
  with pytest.raises(TableError, match="two columns are called 'x'"):
    read_frame(other, tmp_path, monkeypatch)
  assert read_frame(other, tmp_path, monkeypatch, features=["z"]).features == ("z",)
  levels = pd.MultiIndex.from_arrays([np.arange(6) % 2, np.arange(6) % 3], names=["g", None])
  assert read_frame(frame.set_index(levels), tmp_path, monkeypatch).features == ("g", "level_1", "x", "z")
  with pytest.raises(TableError, match="two columns are called 'level_1'"):
    read_frame(frame.set_index(levels).rename(columns={"x": "level_1"}), tmp_path, monkeypatch)


@pytest.mark.parametrize(("kind", "first"), [("int64", 2**60), ("uint64", 2**63), ("Int64", 2**60), ("Int64", None)])
def test_whole_numbers_of_frames_that_are_rounded_are_told_of(tmp_path, monkeypatch, kind, first):
  numbers = pd.Series([first, *range(2**60 + 1, 2**60 + 8)], dtype=kind)
  frame = pd.DataFrame({"x": numbers, "y": np.arange(8.0)})
  table = read_frame(frame, tmp_path, monkeypatch, drop_missing=True)
  assert table.notes[0] == ("column 'x' is rounded to double precision: 1152921504606846977 is read as "
                            "1152921504606846976")
  assert len(table.y) == 8 - (first is None)


def test_a_parquet_with_two_columns_of_one_name_says_so(tmp_path):
  pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
  columns = [pa.array(np.arange(6.0))] * 3
  parquet.write_table(pa.table(columns, names=["x", "x", "y"]), tmp_path / "t.parquet")
  with pytest.raises(TableError, match="t.parquet: two columns are called 'x'$"):
    read_table(str(tmp_path / "t.parquet"))


def test_what_else_a_reader_of_parquet_raises_is_one_line(tmp_path, monkeypatch):
  def fail(path):
    raise KeyError("columns")  # as of notes of pandas in the file that are damaged

  (tmp_path / "t.parquet").write_bytes(b"PAR1")
  monkeypatch.setattr(pd, "read_parquet", fail)
  with pytest.raises(TableError, match="cannot be read as parquet: KeyError: 'columns'"):
    read_table(str(tmp_path / "t.parquet"))


def test_pickles_are_refused(tmp_path):
  np.savez(tmp_path / "t.npz", x=np.array([{"a": 1}] * 6, dtype=object))
  with pytest.raises(TableError, match="cannot be read as npz of plain arrays"):
    read_table(str(tmp_path / "t.npz"))


def test_npz_that_hold_no_table_say_why(tmp_path):
  path, column = tmp_path / "t.npz", np.arange(6.0)
  def refused(message):
    with pytest.raises(TableError, match=message) as caught:
      read_table(str(path))
    assert "\n" not in str(caught.value)

  with open(path, "wb") as file:
    np.save(file, column)
  refused("cannot be read as npz of plain arrays: File is not a zip file")
  np.savez(path, x=column, y=column**2)
  with zipfile.ZipFile(path, "a") as file:
    file.writestr("readme.txt", "columns x and y")
  refused("'readme.txt' in it is no array")
  with zipfile.ZipFile(path, "w") as file:
    file.writestr("x.npy", "columns x and y")
  refused("cannot be read as npz of plain arrays")
  np.savez(path, x=column, y=np.zeros((2, 3, 4)))
  refused("array 'y' has 3 dimensions")
  np.savez(path, x=np.float64(3))
  refused("array 'x' has 0 dimensions")
  header = io.BytesIO()
  np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
  with zipfile.ZipFile(path, "w") as file:
    file.writestr("x.npy", header.getvalue())
  refused("'x.npy' does not hold what its header says")


def test_npz_that_unpack_to_more_than_a_table_are_not_unpacked(tmp_path, monkeypatch):
  monkeypatch.setattr(tables, "MAX_NPZ_BYTES", 1 << 20)
  np.savez_compressed(tmp_path / "t.npz", x=np.zeros(1 << 17), y=np.zeros(1 << 17))
  monkeypatch.setattr(np.lib.format, "read_array", lambda *args, **options: pytest.fail("values were read"))
  with pytest.raises(TableError, match="holds more than 0 GB of numbers"):
    read_table(str(tmp_path / "t.npz"))


def test_names_that_no_file_can_have_say_why():
  with pytest.raises(InputError, match="--data: cannot look for 'a+[.]+a+': File name too long") as caught:
    find_files(["a" * 5000])
  assert len(str(caught.value)) < 300
  with pytest.raises(InputError, match="--data: no such file: 'a"):
    find_files(["a\0b"])


def test_a_link_that_leads_back_to_itself_is_no_missing_file(tmp_path):
  loop = tmp_path / "loop.csv"
  loop.symlink_to(loop)
  [found] = find_files([str(loop), str(tmp_path / "*.csv")])
  with pytest.raises(TableError, match="loop.csv: is a link that leads back to itself"):
    read_table(found)


@pytest.mark.parametrize(("row", "message"), [
  ("2e90,1,1", "column 'a b': expected numbers up to 1e+60 in size, got 2e+90; take a larger unit"),
  ("1,1,-3e99", "column 'c': expected numbers up to 1e+60 in size, got 3e+99; take a larger unit")])
def test_numbers_beyond_what_a_search_takes_are_named_by_their_column(tmp_path, row, message):
  path = tmp_path / "t.csv"
  path.write_text(f"a b,b,c\n{row}\n" + "".join(f"{i},{i}e-70,{i * i}\n" for i in range(2, 9)))
  with pytest.raises(TableError) as error:
    read_table(str(path))
  assert str(error.value) == f"{path}: {message}"
  path.write_text(path.read_text().replace(row, "1,1e-70,1"))
  with pytest.raises(TableError, match="column 'b': expected numbers of at least 1e-60 in size, got at most 8e-70"):
    read_table(str(path))
  with pytest.raises(TableError, match="column 'b': expected a spread of at least 1e-60, got 7e-70; take a"):
    read_table(str(path), target="b")


def test_dropped_rows_are_counted(write):
  table = read_table(write("a,b\n1,1\n2,\n3,x\n" + ROWS), drop_missing=True)
  assert len(table.y) == 8 and table.notes == (
    "2 of 10 rows left out: no finite number in a used column (1 with a missing value; 1 with 'x')",)


COUNTED = [f"{number},{number * 3 % 5},{number**2}" for number in range(8)]


@pytest.mark.parametrize(("name", "begin", "request_", "is_noted"), [
  ("no", 1, {}, True), ("Nr.", 0, {}, True), ("SAMPLE", 1, {}, True), ("id", 2, {}, False),
  ("n", 1, {}, False), ("id", 1, {"excluded": ("id",)}, False), ("id", 1, {"features": ("id", "b")}, False)])
def test_a_named_column_that_counts_the_rows_is_a_feature_and_noted(write, name, begin, request_, is_noted):
  table = read_table(write("\n".join([f"{name},b,y", *COUNTED[begin:]])), **request_)
  assert table.features == (name, "b")
  assert table.notes == ((
    f"column {name!r} counts the rows, and is one of the features; --exclude={name!r} leaves it out",)
    if is_noted else ())


def test_a_counter_in_another_order_or_alone_needs_no_note(write):
  assert read_table(write("\n".join(["no,b,y", *COUNTED[:0:-1]]))).notes == ()
  below = read_table(write("\n".join(["#,b,y", *COUNTED[1:]]))).notes[-1]
  assert below.startswith("column '#' counts the rows")  # beside what is said of a first line that looks like a comment
  assert read_table(write("\n".join(["no,y", *(f"{i},{i * i}" for i in range(1, 9))]))).notes == ()


def test_dropped_rows_are_named_by_what_stands_in_them(write):
  table = read_table(write("a,b\n1,<0.01\n2,n/a\n3,<0.01\n4,> 1e3\n5,off\n" + ROWS), drop_missing=True)
  assert table.notes == (
    "5 of 12 rows left out: no finite number in a used column (2 with '<0.01', below a limit of detection; 1 with "
    "'n/a', a missing value; 1 with '> 1e3', above a limit of measurement; ...)",)


@pytest.mark.parametrize(("text", "message"), [
  ("", "the file is empty"),
  ("a,b\n", "the table has no rows"),
  ("<!DOCTYPE html><html>None</html>\n", "the table has no rows; its first line looks like HTML, not like a table$"),
  ('{"x":[1,2],"y":[2,3]}', "the table has no rows; its first line looks like JSON, not like a table$"),
  ('[\n {"x": 1, "y": 2},\n {"x": 2, "y": 3}]\n', "looks like JSON, not like a table"),
  ('<?xml version="1.0"?>\n<a>1, 2</a>\n', "looks like XML, not like a table"),
  ("a,b\nu,v\nw,z\n", "no numeric column: none of 'a', 'b' holds numbers; line 2, column 'a': 'u' is no"),
  ("a,b\n1,1\n2,\n3,9\n" + ROWS, r"line 3, column 'b': expected a finite number, got a missing value; --drop_missing"),
  ("a,b\n1,1\n\n2,abc\n" + ROWS, r"line 4, column 'b': expected a finite number, got 'abc'"),
  ("a,b\n1,1\n2,inf\n3,-inf\n" + ROWS, r"line 3, .* got 'inf' \(and 1 more such rows, among them '-inf'\);"),
  ("a,b\n1,1\n2,inf\n3,inf\n" + ROWS, r"line 3, .* got 'inf' \(and 1 more such rows\);"),
  ("a,b\n1,<0.01\n" + ROWS, r"line 2, .* got '<0.01', below a limit of detection; --drop_missing"),
  ("a,b\n1,n/a\n2,<0.01\n" + ROWS,
   r"got 'n/a', a missing value \(and 1 more such rows, among them '<0.01', below a limit of detection\);"),
  ("a,b\n1,1\n2,4\n", "too few points: expected at least 5 rows, got 2"),
  ("a,b\n" + "1,7\n2,7\n3,7\n4,7\n5,7\n", "the target 'b' is constant: every value is 7"),
  ("a,a\n" + ROWS, "two columns are called 'a'"),
  ("b\n1\n2\n3\n4\n5\n", "no column left to explain 'b'"),
  ("b,c\n" + "1,\n" * 5, "column 'c' holds no number; no other column left to explain 'b'"),
  ("month,year\nMay,1\nJune,2\n", "line 2, column 'month': 'May' is no number; no other column left to expl"),
  ("a,\"b\n" + ROWS, "cannot be read as a table: the quote in line 1 has no end"),
  ("height\n1,5\n2,5\n3,5\n4,5\n", "Expected 1 fields in line 2, saw 2; where numbers have decimal commas"),
  ("x (m) y (s)\n" + ROWS.replace(",", " "), "the names are 4, but no line has more than 2 cells"),
  ("a,b,c\n" + ROWS.replace(",", ";"), "cannot be read as a table: Expected 1 fields in line 2, saw 2"),
  ("a,b\n1,2,3\n" + ROWS, "cannot be read as a table: .*Expected 2 fields in line 2, saw 3"),
])
def test_unusable_tables_say_why(write, text, message):
  path = write(text)
  with pytest.raises(TableError, match=message) as caught:
    read_table(path)
  assert str(caught.value).startswith(path + ": ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(("options", "message"), [
  ({"target": "z"}, "--target: no column 'z', expected one of 'a', 'b'"),
  ({"features": ["q"]}, "--features: no column 'q'"),
  ({"features": ["b"]}, "'b' is both the target and a feature"),
  ({"features": ["a", "a"]}, "a column is named twice"),
  ({"decimal": "x"}, "--decimal: expected . or , got 'x'"),
  ({"separator": "x"}, "--separator: expected one of tab ; | , space, got 'x'"),
  ({"categories": ["c"]}, "--categories: no column 'c'"),
  ({"categories": ["b"], "target": "b"}, "'b' is both the target and one of --categories"),
  ({"categories": ["a"], "features": ["b"], "target": "a"}, "'a' is both the target and one of --categories"),
])
def test_unusable_choices_say_why(write, options, message):
  with pytest.raises(InputError, match=message):
    read_table(write("a,b\n" + ROWS), **options)


def test_of_many_columns_of_one_kind_few_are_told_of(write):
  table = read_table(write("a;b;c;d;e\n" + "".join(f"{i},5;{i},25;{i},5;{i},5;{i}\n" for i in range(6))))
  assert table.target == "e" and len(table.notes) == 4 and "'0,25' is 0.25" in table.notes[1]
  assert table.notes[3] == "1 more columns are read likewise: 'd'"


def test_each_target_is_a_table_and_no_feature(write):
  path = write('a,b,"c,d"\n' + "".join(f"{i},{i + 1},{i * i}\n" for i in range(6)))
  found = tables.read_tables(path, tables.Request('b,"c,d"'))
  assert [(table.features, table.target, table.y[2]) for table in found] == [(("a",), "b", 3), (("a",), "c,d", 4)]
  [whole] = tables.read_tables(path, tables.Request("c,d"))  # a column of that name goes before a list
  assert (whole.features, whole.target) == (("a", "b"), "c,d")
  with pytest.raises(TableError, match="--target: a column is named twice, 'b'"):
    tables.read_tables(path, tables.Request("b,b"))


def test_categories_become_columns_of_0_and_1(write):
  path = write("kind,size,y\n" + "".join(f"{kind},{i},{i * i}\n" for i, kind in enumerate(["red", "dark blue"] * 3)))
  table = read_table(path, categories=["kind"])
  assert table.features == ("kind_dark blue", "kind_red", "size")
  np.testing.assert_array_equal(table.x[:, :2], [[0, 1], [1, 0]] * 3)
  assert "column 'kind' became 2 columns of 0 and 1: 'kind_dark blue', 'kind_red'" in table.notes
  assert read_table(path, categories=["kind"], features=["kind"]).features == table.features[:2]
  missing = write("kind,y\n,5\n" + "".join(f"{'ab'[i % 2]},{i * i}\n" for i in range(6)), "m.csv")
  with pytest.raises(TableError, match="line 2, column 'kind': expected a finite number, got a missing value"):
    read_table(missing, categories=["kind"])
  assert len(read_table(missing, categories=["kind"], drop_missing=True).y) == 6
  with pytest.raises(TableError, match="expected 2 to 50 different values in column 'size', got 60"):
    read_table(write("size,y\n" + "".join(f"{i},{i}\n" for i in range(60)), "s.csv"), categories=["size"])


@pytest.mark.parametrize("header", ["c,c_a,y", "c_a,c,y"])
def test_a_category_that_makes_a_column_of_a_name_that_is_there_says_so(write, header):
  rows = "".join(f"{'ab'[i % 2]},{i},{i}\n" if header[1] == "," else f"{i},{'ab'[i % 2]},{i}\n" for i in range(6))
  path = write(f"{header}\n{rows}")
  made = "two columns are called 'c_a': --categories makes one for each value of column 'c'"
  with pytest.raises(TableError, match=made):
    read_table(path, categories=["c"])
  assert read_table(path, categories=["c"], features=["c"]).features == ("c_a", "c_b")


def test_a_target_at_both_ends_of_double_precision_varies(write):
  with pytest.raises(TableError, match=r"column 'b': expected numbers up to 1e\+60"):  # and not that it is constant
    read_table(write("a,b\n" + "".join(f"{i},{(-1)**i * 1.7e308}\n" for i in range(6))))


def test_names_are_compared_in_a_time_that_grows_with_their_number():
  class Counted(str):
    num = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
      Counted.num += 1
      return str.__eq__(self, other)

  columns = [tables._Column(Counted(f"c{i}"), None) for i in range(1000)]
  tables._Source._refuse_repeated(columns)
  assert Counted.num < 100
  with pytest.raises(InputError, match="two columns are called 'c999'"):
    tables._Source._refuse_repeated([*columns, columns[-1]])


def test_names_that_stand_twice_matter_only_where_they_are_used(write):
  path = write("a,a,b,c\n" + "".join(f"{i},{i},{i},{i * i}\n" for i in range(6)))
  assert read_table(path, features=["b"]).target == "c"
  for options in ({}, {"target": "a"}):
    with pytest.raises(TableError, match="two columns are called 'a'"):
      read_table(path, **options)


def test_workbooks(tmp_path):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  book.active.title = "notes"
  sheet = book.create_sheet("data")
  for row in [[None, "A title"], [], [None, "day", "v", "w"], [None, None, "m/s", "kg"],
              *([None, datetime.date(2020, 1, 1 + i), i / 2, f"{i},5"] for i in range(6))]:
    sheet.append(row)
  book.save(tmp_path / "t.xlsx")
  table = read_table(str(tmp_path / "t.xlsx"), sheet="data")
  assert (table.features, table.target) == (("day", "v"), "w") and table.y[3] == 3.5
  np.testing.assert_array_equal(table.x, [[i, i / 2] for i in range(6)])
  assert table.notes[:2] == (
    "row 1 left out: 'A title' is taken for a title",
    "row 4 left out: 'm/s', 'kg' above the numbers is taken for units")
  sheet = book.create_sheet("mixed")
  for row in [["day", "is_on", "w"], *([datetime.datetime(2020, 1, 1 + i) if i % 2 else f"2020-01-0{1 + i}", i > 2, i]
                                      for i in range(6))]:
    sheet.append(row)
  book.save(tmp_path / "t.xlsx")
  table = read_table(str(tmp_path / "t.xlsx"), sheet="mixed")
  np.testing.assert_array_equal(table.x, [[i, i > 2] for i in range(6)])
  assert table.notes == ("column 'day' holds dates, read as days since 2020-01-01",
                         "column 'is_on' is read as 1 for true and 0 for false")
  sheet = book.create_sheet("written by a program")  # which computes no formula
  for row in [["x", "z", "remarks", "errors"], *([i, i**2, None, "#N/A"] for i in range(6)), [7, "=A7^2"]]:
    sheet.append(row)
  book.save(tmp_path / "t.xlsx")
  table = read_table(str(tmp_path / "t.xlsx"), sheet="written by a program", drop_missing=True)
  assert (table.features, table.target) == (("x",), "z") and table.notes[0].startswith(
    "column 'remarks' left aside: it holds no number; what formulas give is in a workbook once")
  assert "column 'errors' left aside: it holds no number" in table.notes
  with pytest.raises(TableError, match="column 'remarks' holds no number; what formulas give is in a workbook once"):
    read_table(str(tmp_path / "t.xlsx"), sheet="written by a program", target="remarks")
  with pytest.raises(TableError, match="the file is empty"):
    read_table(str(tmp_path / "t.xlsx"))
  with pytest.raises(TableError, match="--sheet: no sheet 'x', expected one of 'notes', 'data'"):
    read_table(str(tmp_path / "t.xlsx"), sheet="x")
  (tmp_path / "t.xlsx").write_bytes(b"no workbook")
  with pytest.raises(TableError, match=r"t.xlsx: is no workbook \(.xlsx\): damaged, locked by a password, or another"):
    read_table(str(tmp_path / "t.xlsx"))
  with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
    archive.writestr("a.txt", "")
  with pytest.raises(TableError, match=r"t.xlsx: is no workbook \(.xlsx\)"):
    read_table(str(tmp_path / "t.xlsx"))


@pytest.mark.parametrize("has_chart", [False, True])
def test_sheets_of_charts_have_no_cells(tmp_path, has_chart):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  for row in [["x", "y"], *([i, i**2] for i in range(6))]:
    book.active.append(row)
  chart = book.create_chartsheet("a chart")
  if has_chart:
    chart.add_chart(openpyxl.chart.LineChart())
  book.save(tmp_path / "t.xlsx")
  table = read_table(str(tmp_path / "t.xlsx"))
  assert (table.features, table.target, table.notes) == (("x",), "y", ())
  if not has_chart:  # a chart is of cells
    book.remove(book.worksheets[0])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(TableError, match="t.xlsx: the workbook has no sheet with cells$"):
      read_table(str(tmp_path / "t.xlsx"))


def test_an_error_of_a_spreadsheet_is_no_missing_value(tmp_path):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  for row in [["x", "y"], *([i, i**2] for i in range(6)), ["#DIV/0!", 3], [None, 3]]:
    book.active.append(row)
  book.save(tmp_path / "t.xlsx")
  with pytest.raises(TableError, match="row 8, column 'x': expected a finite number, got '#DIV/0!', an error of"):
    read_table(str(tmp_path / "t.xlsx"))
  assert len(read_table(str(tmp_path / "t.xlsx"), drop_missing=True).y) == 6


def test_a_stray_cell_in_the_corner_of_a_sheet_makes_no_table_of_that_size(tmp_path, monkeypatch):
  openpyxl = pytest.importorskip("openpyxl")
  book, given, from_rows = openpyxl.Workbook(), [], grids.from_rows
  for row in [["a", "b"], *([i, i * i] for i in range(6))]:
    book.active.append(row)
  book.active["XFD2000"] = 1
  book.save(tmp_path / "t.xlsx")
  monkeypatch.setattr(grids, "from_rows", lambda rows, *args, **options: given.extend(rows) or from_rows(
    rows, *args, **options))
  with pytest.raises(TableError, match="Expected 2 fields in row 2000, saw 16384"):
    read_table(str(tmp_path / "t.xlsx"))
  assert sum(map(len, given)) == 2 * 7 + 16384


def test_a_sheet_has_as_many_rows_as_spreadsheets_know():
  assert table_files.MAX_SHEET_ROWS == 1_048_576


def test_a_damaged_number_of_a_row_makes_no_sheet_without_end(tmp_path, monkeypatch):
  openpyxl = pytest.importorskip("openpyxl")
  monkeypatch.setattr(table_files, "MAX_SHEET_ROWS", 500)
  book = openpyxl.Workbook()
  for row in [["a", "b"], *([i, i * i] for i in range(6))]:
    book.active.append(row)
  book.active["B500"] = 1
  book.save(tmp_path / "t.xlsx")
  assert len(read_table(str(tmp_path / "t.xlsx"), drop_missing=True).y) == 6  # the last row is no fault
  with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
    members = {name: archive.read(name) for name in archive.namelist()}
  name = "xl/worksheets/sheet1.xml"
  members[name] = members[name].replace(b'"500"', b'"2000"').replace(b'"B500"', b'"B2000"')
  with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
    for name, content in members.items():
      archive.writestr(name, content)
  with pytest.raises(TableError, match="cannot be read as xlsx: a row beyond row 500, the last one of a sheet"):
    read_table(str(tmp_path / "t.xlsx"))


def test_hidden_rows_of_a_workbook_are_told_of_and_none_is_lost(tmp_path):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  for row in [["a", "b"], *([i, i * i] for i in range(6))]:
    book.active.append(row)
  book.active.row_dimensions[9].hidden = True  # one without cells
  for hidden, note in ((3, "a row that is hidden is read as the others are, first row 3"),
                       (5, "2 rows that are hidden are read as the others are, first row 3")):
    book.active.row_dimensions[hidden].hidden = True
    book.save(tmp_path / "t.xlsx")
    table = read_table(str(tmp_path / "t.xlsx"))
    assert len(table.y) == 6 and table.notes == (note,)
  with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
    members = {name: archive.read(name) for name in archive.namelist()}
  name = "xl/worksheets/sheet1.xml"
  members[name] = members[name].replace(b'<row r="4"', b'<row r="2"', 1)  # openpyxl leaves such a row out
  with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
    for name, content in members.items():
      archive.writestr(name, content)
  with pytest.raises(TableError, match="cannot be read as xlsx: row 2 stands after row 3"):
    read_table(str(tmp_path / "t.xlsx"))


def test_without_its_package_a_workbook_says_what_to_install(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "openpyxl", None)
  (tmp_path / "t.xlsx").write_bytes(b"")
  with pytest.raises(TableError, match=r"reading .xlsx needs openpyxl: pip install '.\[xlsx\]'"):
    read_table(str(tmp_path / "t.xlsx"))


@pytest.mark.parametrize(("kind", "message"), [
  ("c16", "'x' is complex; give real and imaginary parts"), ("M8[s]", "'x' holds dates; give numbers"),
  ("m8[s]", "'x' holds times; give numbers"), ("f8,f8", "'x' is no array of numbers")])
def test_arrays_that_are_no_numbers_are_refused(tmp_path, kind, message):
  np.savez(tmp_path / "t.npz", x=np.zeros(6, kind), y=np.arange(6.0))
  with pytest.raises(TableError, match=f"array {message}"):
    read_table(str(tmp_path / "t.npz"))


WEIGHED = "a,e,b\n1,1,2\n2,2,4\n3,4,9\n4,0.5,1\n5,1,7\n6,1,8\n"


def test_weights_and_standard_deviations_weigh_rows_and_are_no_features(write):
  path = write(WEIGHED)
  weighed, table = read_table(path, weights="e"), read_table(path, sigma="e")
  assert weighed.features == table.features == ("a",) and weighed.target == table.target == "b"
  assert not weighed.notes and not table.notes and len(read_table(path).points) == 2
  e = np.array([1, 2, 4, 0.5, 1, 1])
  np.testing.assert_allclose(weighed.weights / weighed.weights.sum(), e / e.sum())
  np.testing.assert_allclose(table.weights / table.weights.sum(), e**-2 / (e**-2).sum())
  # A column that is asked for is a feature all the same; the last column is no target when it weighs.
  assert read_table(path, sigma="e", features=["a", "e"]).features == ("a", "e")
  assert read_table(path, weights="b").target == "e"


def test_rows_of_weight_0_are_left_out_and_extreme_ones_kept(write):
  table = read_table(write(WEIGHED.replace("2,2,4", "2,0,4")), weights="e")
  assert len(table.y) == 5 and table.notes == ("1 of 6 rows left out: their weight is 0",)
  tiny = read_table(write("a,e,b\n" + "".join(f"{i},{1 + i / 10}e-200,{i * i}\n" for i in range(6))), sigma="e")
  np.testing.assert_allclose(tiny.weights, (1 + np.arange(6) / 10) ** -2.0)


@pytest.mark.parametrize(("changed", "options", "message"), [
  ("2,2,4", {"weights": "z"}, "--weights: no column 'z', expected one of 'a', 'e', 'b'"),
  ("2,2,4", {"sigma": "z"}, "--sigma: no column 'z'"),
  ("2,2,4", {"sigma": "b", "target": "b"}, "'b' is both the target and the column of --sigma"),
  ("2,0,4", {"sigma": "e"}, "line 3, column 'e': --sigma expects numbers above 0, got 0"),
  ("2,-2,4", {"sigma": "e"}, "line 3, column 'e': --sigma expects numbers above 0, got -2"),
  ("2,-2,4", {"weights": "e"}, "line 3, column 'e': --weights expects numbers of at least 0, got -2"),
  ("2,,4", {"weights": "e"}, "line 3, column 'e': expected a finite number, got a missing value; --drop_missing"),
  ("2,much,4", {"sigma": "e"}, "line 3, column 'e': expected a finite number, got 'much'"),
  ("2,inf,4", {"sigma": "e"}, "line 3, column 'e': expected a finite number, got 'inf'"),
])
def test_unusable_weights_say_why(write, changed, options, message):
  with pytest.raises(TableError, match=message):
    read_table(write(WEIGHED.replace("2,2,4", changed)), **options)


def test_weights_leave_enough_rows_that_vary(write):
  with pytest.raises(TableError, match="--weights: every number of column 'e' is 0"):
    read_table(write("a,e,b\n" + "".join(f"{i},0,{i}\n" for i in range(6))), weights="e")
  with pytest.raises(TableError, match="too few points: expected at least 5 rows, got 4"):
    read_table(write("a,e,b\n" + "".join(f"{i},{int(i > 1)},{i}\n" for i in range(6))), weights="e")
  for size, flag in (("1e-320", "sigma"), ("1e308", "weights")):
    text = "a,e,b\n" + "".join(f"{i},{size if i == 2 else 1e-20},{i}\n" for i in range(6))
    with pytest.raises(TableError, match=f"line 4, column 'e': --{flag} expects numbers of less different size, got "
                                         f"{float(size):g}, beside which 5 of 6 rows have weight 0".replace("+", ".")):
      read_table(write(text.replace("1e-20", "1") if flag == "sigma" else text), **{flag: "e"})
  with pytest.raises(TableError, match="the target 'b' is constant: every value is 1"):
    read_table(write("a,e,b\n" + "".join(f"{i},{int(i > 0)},{int(i > 0)}\n" for i in range(8))), weights="e")
  with pytest.raises(InputError, match="--weights and --sigma: expected one of them"):
    read_table(write(WEIGHED), weights="e", sigma="e")


def test_unusable_paths_say_why(tmp_path, write):
  with pytest.raises(TableError, match="no such file"):
    read_table(str(tmp_path / "no.csv"))
  with pytest.raises(TableError, match="is a folder"):
    read_table(str(tmp_path))
  with pytest.raises(TableError, match="unknown kind of file '.xls', expected one of .csv"):
    read_table(write("a", "t.xls"))
  (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
  with pytest.raises(TableError, match="is no UTF-8 text"):
    read_table(str(tmp_path / "binary.csv"))


def test_text_with_a_number_here_and_there_is_text(write):
  kinds = ["very big", "10%", "x**2", "small", "big"]
  path = write("n,x,y\n" + "".join(f"{kind},{i},{i * i}\n" for i, kind in enumerate(kinds)))
  table = read_table(path)
  assert table.features == ("x",)
  assert table.notes == ("column 'n' left aside: it holds mostly text (line 2: 'very big')",)
  with pytest.raises(TableError, match="got 'very big' .*; --drop_missing leaves such rows out, --categories makes"):
    read_table(path, features=["n"], target="y")
  assert len(read_table(path, categories=["n"]).features) == 6
  # Numbers with a word among them are numbers.
  with pytest.raises(TableError, match="got 'big'; --drop_missing leaves such rows out$"):
    read_table(write("n,x,y\n" + "".join(f"{n},{n},{n}\n" for n in [1, 2, 3, "big", 5, 6])), features=["n"])


def test_a_first_sheet_without_a_table_names_the_others(tmp_path):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  book.active.title = "notes"
  sheet = book.create_sheet("data")
  for row in [["x", "y"], *([i, i * i] for i in range(6))]:
    sheet.append(row)
  path, elsewhere = str(tmp_path / "t.xlsx"), "; sheet 'notes' was read, --sheet takes another one: 'data'$"
  for rows, message in (([], "the file is empty"), ([["A"]], "the table has no rows"),
                        ([["name", "remark"], ["a", "b"], ["c", "d"]], "no numeric column: .*")):
    book["notes"].delete_rows(1, 9)
    for row in rows:
      book["notes"].append(row)
    book.save(path)
    with pytest.raises(TableError, match=message + elsewhere):
      read_table(path)
  with pytest.raises(TableError, match="--target: no column 'y', .*" + elsewhere):
    read_table(path, target="y")
  with pytest.raises(TableError, match="no numeric column: .* is no number$"):
    read_table(path, sheet="notes")


def test_a_file_is_one_however_its_folder_is_spelled(tmp_path, monkeypatch):
  (tmp_path / "sub").mkdir()
  for name in ("a.csv", "b.csv"):
    (tmp_path / name).write_text("")
  (tmp_path / "link.csv").symlink_to("a.csv")
  monkeypatch.chdir(tmp_path)
  found = find_files(["b.csv", "./a.csv", "a.csv", "sub/../b.csv", str(tmp_path / "*.csv")])
  assert found == ["b.csv", "./a.csv", str(tmp_path / "link.csv")]  # a link is a name of its own


def test_a_table_is_found_from_a_folder_that_has_been_deleted(tmp_path, monkeypatch):
  (tmp_path / "a.csv").write_text("")
  (tmp_path / "gone").mkdir()
  monkeypatch.chdir(tmp_path / "gone")
  (tmp_path / "gone").rmdir()
  assert find_files(["../a.csv", ".././a.csv"]) == ["../a.csv"]


def test_a_name_with_a_comma_in_it_is_asked_for_in_quotes(tmp_path):
  for comma in (",", ", "):
    path = tmp_path / f"a{comma}[1].csv"
    path.write_text("")
    with pytest.raises(InputError, match="no such file: '.*/a'; a name with a comma in it stands in double quotes, as"):
      find_files(str(path).split(comma))
    assert find_files([str(path)]) == [str(path)]
    path.unlink()
    with pytest.raises(InputError, match="no such file: '.*/a'$"):
      find_files(str(path).split(comma))


def test_globs_find_files_once_in_order(tmp_path, write):
  b, a = write("x", "b.csv"), write("x", "a.csv")
  assert find_files([str(tmp_path / "*.csv"), b]) == [a, b]
  with pytest.raises(InputError, match=r"no file matches '.*\*\.tsv'"):
    find_files([str(tmp_path / "*.tsv")])
  with pytest.raises(InputError, match="no such file: 'nothing.csv'"):
    find_files(["nothing.csv"])
  with pytest.raises(InputError, match="--data: expected a file between two commas, got nothing"):
    find_files([b, ""])


def test_read_as_pandas_reads(write, rng):
  frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "c"])
  path = write(frame.to_csv(index=False))
  table = read_table(path)
  np.testing.assert_array_equal(np.column_stack([table.x, table.y]), frame.to_numpy())


@pytest.mark.parametrize(("times", "is_told"), [(1, False), (2, True), (5, True)])
def test_rows_that_stand_there_again_are_told_of(write, times, is_told):
  table = read_table(write("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(8)) * times))
  note = f"{8 * (times - 1)} of {8 * times} rows are the same as others in every column used: each counts as one more"
  assert table.notes == ((note,) if is_told else ())


def test_a_few_equal_rows_are_no_news(write):
  assert read_table(write("x,y\n" + "".join(f"{i},{i * i}\n" for i in (0, 1, 2, 3, 4, 5, 6, 7, 7, 7)))).notes == ()


def test_a_table_says_how_dates_and_categories_became_numbers(write):
  path = write("when,kind,span,y\n" + "".join(f"2020-01-0{i},{'ab'[i % 2]},{i}:30,{i * i}\n" for i in range(1, 8)))
  table = read_table(path, categories=["kind"])
  assert {name: scale.describe() for name, scale in table.time_scales.items()} == {
    "when": "days since 2020-01-01", "span": "hours"}
  assert table.categories == {"kind": ("a", "b")}
  of_dates = read_table(path, target="when", features=["y"])
  assert list(of_dates.time_scales) == ["when"] and of_dates.categories == {}
