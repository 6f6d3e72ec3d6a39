"""Tables and flags where it just holds and just does not: rows that are looked at, weights of 0, separators, errors."""

from absl import flags
import numpy as np
import pytest

from symformer_jax.commands import grids, runner, table_files, tables


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
