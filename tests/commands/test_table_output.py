"""Tables with a column of predictions as CSV: read again they are what they were."""

import datetime
import decimal
import math

from hypothesis import example, given, settings, strategies as st
import numpy as np
import pandas as pd
import pytest

from symformer_jax.commands import cells, table_files, table_output, tables, times


def objects(*content):
  found = np.empty(len(content), object)
  found[:] = content
  return found


def text(names, columns, values):
  return "".join(table_output.to_csv(names, columns, np.array(values, float)))


def test_cells_stand_as_they_were_read():
  columns = [objects("1,5", 'say "x"', None), objects(3, 2.5, float("nan")),
             objects(datetime.datetime(2020, 1, 2, 3), datetime.date(2020, 1, 2), datetime.time(3, 4)),
             objects(True, decimal.Decimal("0.10"), cells.ErrorCell("#DIV/0!")), np.array([0.1, np.nan, 1e300]),
             np.array([0.1, 2, 3], np.float32), np.array(["2020-01-02", "NaT", "2020-01-02T03:04"], "datetime64[ns]"),
             np.array([90, -5, "NaT"], "timedelta64[s]")]
  assert text([*"abcdefgh", "p"], columns, [0.1 + 0.2, math.nan, -0.0]).splitlines() == [
    "a,b,c,d,e,f,g,h,p",
    '"1,5",3,2020-01-02 03:00:00,True,0.1,0.1,2020-01-02T00:00:00,0 days 00:01:30,0.30000000000000004',
    '"say ""x""",2.5,2020-01-02,0.10,,2.0,,-0 days 00:00:05,',
    ',,03:04:00,"#DIV/0!",1e+300,3.0,2020-01-02T03:04:00,,-0.0']


def test_lengths_of_time_are_read_as_they_were():
  lengths = [datetime.timedelta(seconds=each) for each in (-5, 90061, -90061.5, 0)]
  for column in (objects(*lengths), np.array(lengths, "timedelta64[ms]")):
    written = objects(*(line.split(",")[0] for line in text("ap", [column], [0] * 4).splitlines()[1:]))
    assert times.read(written, "seconds").values.tolist() == [-5, 90061, -90061.5, 0]


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "npz"])
def test_what_is_written_is_read_again_alike(tmp_path, suffix, rng):
  x = rng.normal(size=(table_output.CHUNK_ROWS + 7, 2))
  frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
  path = tmp_path / f"old.{suffix}"
  if suffix == "npz":
    np.savez(path, **frame)
  else:
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_excel(path, index=False)
  table = tables.read_table(str(path))
  columns = [table.x[:, 0], table.y]
  (tmp_path / "new.csv").write_text(text([*table.features, "b", "p"], columns, x[:, 0] ** 3))
  again = tables.read_table(str(tmp_path / "new.csv"), target="p")
  np.testing.assert_array_equal(again.x, np.column_stack(columns))
  np.testing.assert_array_equal(again.y, x[:, 0] ** 3)


NAMES = ["a", "#", "# a", "'a", "'a'", "% a", 'a "b"', "a;b", "a|b", "a,b", "a # b"]
TEXTS = st.text("#'\"%,;| \tx1", max_size=5) | st.sampled_from(["#5", "#N/A", "1 # x", "5 # 'x", "# 1, 2", "---", "é"])


@settings(max_examples=200)
@given(names=st.permutations(NAMES), rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
@example(names=["a", "b"], rows=[("#5", "1"), ("6", "2")])
@example(names=["'a", "b"], rows=[("x, y", "1")])
def test_texts_are_read_again_as_they_were(tmp_path_factory, names, rows):
  path = tmp_path_factory.mktemp("table") / "new.csv"
  columns = [objects(*column) for column in zip(*rows, strict=True)]
  path.write_text(text([*names[:2], "p"], columns, range(len(rows))), encoding="utf-8")
  grid = table_files.read(path, table_files.Reading(","))
  assert grid.names == (*names[:2], "p") and len(grid.columns) == 3
  assert [tuple(row) for row in zip(*grid.columns[:2], strict=True)] == [
    tuple(cell.strip() for cell in row) for row in rows]


@pytest.mark.parametrize(("cell", "expected"), [
  ("a\nb", "a\nb"), ("a\r\nb\rc", "a\nb\nc"), ("a\n# b", "a # b"), ("a\n\nb", "a b"), ("a\r\n \r\n b\n#c", "a b #c"),
  ("a\n", "a"), ("\n#", "#")])
def test_lines_within_a_cell_are_none_that_the_reader_leaves_out(tmp_path, cell, expected):
  (tmp_path / "new.csv").write_text(text(["a", "p"], [objects("x", cell, "y")], [1, 2, 3]), newline="")
  grid = table_files.read(tmp_path / "new.csv", table_files.Reading())
  assert grid.columns[0].tolist() == ["x", expected, "y"]
