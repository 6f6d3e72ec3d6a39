"""Columns of another table: found by name in any order, by position where there are no names, or refused."""

import numpy as np
import pytest

from symformer_jax.commands import new_tables, tables, times
from symformer_jax.commands.saved_fits import SavedFit
from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.results import Equation


def make_fit(*names, **told):
  line = Equation(parser.parse(names[0], names), names, 1.0, None, None, ())
  return SavedFit((line,), line, line, **told)


@pytest.fixture
def read(tmp_path):
  def read(text, fit, *, target=None, name="new.csv", **request):
    (tmp_path / name).write_text(text)
    return new_tables.read(str(tmp_path / name), tables.Request(**request), fit, target=target)
  return read


@pytest.mark.parametrize(("names", "text", "expected", "note"), [
  (("a", "b"), "b,c,a\n2,9,1\n", [[1, 2]], ""),
  (("a", "b"), "1,2\n3,4\n", [[1, 2], [3, 4]], "'x0' is 'a', 'y' is 'b'"),
  (("a", "b"), "1,2,9\n3,4,9\n", [[1, 2], [3, 4]], "'x0' is 'a', 'x1' is 'b', column 3 is the target 'out'"),
  (("z", "y"), "1,2,9\n3,4,9\n", [[1, 2], [3, 4]], "'x0' is 'z', 'x1' is 'y', column 3 is the target 'out'"),
  (("x0", "x1"), "1,2\n3,4\n", [[1, 2], [3, 4]], "'y' is 'x1'"),
  (("x0", "x1"), "1,2,9\n3,4,9\n", [[1, 2], [3, 4]], "column 3 is the target 'out'"),
  (("x0", "x1"), "1,2,9,9\n3,4,9,9\n", [[1, 2], [3, 4]], "'y' is 'x3'"),
  (("x0", "x1"), "p,q\n1,2\n", [[1, 2]], "'p' is 'x0', 'q' is 'x1'"),
  (("x0", "x1"), "p,q,r\n1,2,9\n", [[1, 2]], "'p' is 'x0', 'q' is 'x1', column 3 is the target 'out'"),
  (("x0", "x1"), "x1,more,x0\n2,9,1\n", [[1, 2]], ""),
  (("x0", "x2"), "1,9,2\n3,9,4\n", [[1, 2], [3, 4]], "'y' is 'x2'"),
  (("x1", "y"), "9,1,2\n9,3,4\n", [[1, 2], [3, 4]], "")])  # --target=x0 of a table without names
def test_columns_are_found(read, names, text, expected, note):
  table = read(text, make_fit(*names), target="out")
  points = table.points([0, 1])
  assert points.x.tolist() == expected and points.is_usable.all()
  told = [each for each in table.notes if "by position" in each]
  assert told == ([f"columns are taken by position: {note}"] if note else [])


@pytest.mark.parametrize(("names", "text", "message"), [
  (("a", "b"), "A,c\n1,2\n", r"new.csv: no column 'a', which the formula reads: expected one of A, c$"),
  (("volume", "b"), "Volume,b\n1,2\n", r"did you mean 'Volume'\? The columns are 'Volume', 'b'$"),
  (("a", "b"), "a,a,b\n1,1,2\n", "two columns are called 'a'"),
  (("a", "b"), "1\n2\n", r"has no names of columns: expected 2 columns \('a', 'b'\), or one more .*, got 1$"),
  (("a", "b"), "1,2,3,4\n2,3,4,5\n", "expected 2 columns .*, got 4$"),
  (("x0", "x1"), "p,q,r,s\n1,2,3,4\n", "no column 'x0', which the formula reads: expected one of p, q, r, s"),
  (("x0", "x1"), "x0,q\n1,2\n", "no column 'x1'"),
  (("a", "b"), "a,b\nsoon,1\nlate,2\n", "column 'a' holds no number: line 2 has 'soon'"),
  (("a", "b"), "a\tb\n1\t1,234\n2\t2,345\n", "column 'b' may be read in two ways: .*--decimal=. or --decimal=,"),
  (("a", "b"), "a,b\n2020-01-02,1\n", "column 'a' holds dates, .*; at the fit it held numbers"),
  (("a", "b"), "a,b\n", "the table has no rows"), (("a", "b"), "", "the file is empty")])
def test_what_cannot_be_read_is_refused(read, names, text, message):
  with pytest.raises(InputError, match=message) as caught:
    read(text, make_fit(*names)).points([0, 1])
  assert "\n" not in str(caught.value)


def test_columns_that_are_not_read_may_be_missing_or_hold_anything(read):
  table = read("a,c\n1,x\n,y\n", make_fit("a", "b", "c"))
  points = table.points([0])
  np.testing.assert_equal(points.x, [[1, 0, 0], [np.nan, 0, 0]])
  assert points.is_usable.tolist() == [True, False] and list(points.read) == [0]
  assert read("q\n1\n", make_fit("a", "b")).points([]).is_usable.tolist() == [True]


def test_names_of_dataframes_are_compared_as_tables_have_them(read):
  fit = make_fit("a", "b")
  line = Equation(fit.best.node, ("depth\n(m)", "b"), 1.0, None, None, ())
  points = read("depth (m),b\n3,4\n", SavedFit((line,), line, line)).points([0, 1])
  assert points.x.tolist() == [[3, 4]]


def test_the_target_where_there_is_one(read):
  fit = make_fit("a", "b")
  assert read("a,b,y\n1,2,3\n", fit).target("y").values.tolist() == [3]
  assert read("a,b\n1,2\n", fit).target("y") is None
  assert read("1,2,3\n4,5,6\n", fit, target="p").target("p").values.tolist() == [3, 6]
  assert read("1,2,3\n4,5,6\n", make_fit("x0", "x1"), target="p").target("p").values.tolist() == [3, 6]
  with pytest.raises(InputError, match="two columns are called 'y'"):
    read("a,y,y\n1,2,3\n", fit).target("y")


@pytest.mark.parametrize(("others", "text", "expected"), [
  ((), "1,2,3\n4,5,6\n", [3, 6]), ((), "1,2,3,4\n4,5,6,7\n", None), (("x2",), "1,2,3\n4,5,6\n", None),
  (("x2",), "1,2,3,4\n4,5,6,7\n", [4, 7]), (("kind", "x3"), "1,2,3,4\n4,5,6,7\n", None), (("x3",), "1,2\n4,5\n", None)])
def test_the_target_without_names_stands_behind_all_columns_of_the_fit(read, others, text, expected):
  table = read(text, make_fit("x0", "x1", other_columns=others), target="y")
  assert table.points([0, 1]).x.tolist() == [[1, 2], [4, 5]]
  found = table.target("y")
  assert (found and found.values.tolist()) == expected
  assert any("is the target 'y'" in note for note in table.notes) == (expected is not None)


def test_columns_of_arrays_in_two_dimensions_have_no_names(tmp_path):
  path, x = tmp_path / "new.npz", np.array([[1.0, 2.0, 3.0]])

  def names(fit, **arrays):
    np.savez(path, **arrays)
    return new_tables.read(str(path), tables.Request(), fit, target="y").names

  assert names(make_fit("a", "b"), x=x[:, :2]) == names(make_fit("a", "b"), u=x[:, :1], v=x[:, 1:2]) == ("a", "b")
  assert names(make_fit("a", "b"), x=x) == ("a", "b", "y")
  assert names(make_fit("x1", "x0"), x=x[:, :2]) == names(make_fit("x0", "x1"), u=x[:, :2]) == ("x0", "x1")
  assert names(make_fit("x0", "x1"), x=x) == ("x0", "x1", "x2")  # its third column has a name of its own
  assert names(make_fit("u0", "v0"), v=x[:, :1], u=x[:, 1:2]) == ("v0", "u0")
  assert names(make_fit("x0", "x1"), x=x[:, :2], y=x[:, 2]) == ("x0", "x1", "y")


def test_without_the_name_of_a_target_none_is_told(read):
  table = read("1,2,3\n4,5,6\n", make_fit("a", "b"))
  assert table.names == ("a", "b", "y") and "columns are taken by position: 'x0' is 'a', 'x1' is 'b'" in table.notes
  assert read("1,2,3\n4,5,6\n", make_fit("x0", "x1"), target="x1").target("x1").values.tolist() == [2, 5]


def test_the_target_is_counted_as_at_the_fit_under_any_name(read):
  days = times.TimeScale("days", np.datetime64("2020-01-01T00:00", "us"))
  fit = make_fit("a", target="when", time_scales={"when": days})
  assert read("a,when2\n1,2020-01-03\n", fit).target("when2").values.tolist() == [2]
  with pytest.raises(InputError, match="at the fit it held numbers"):
    read("a,when\n1,2020-01-03\n", make_fit("a", target="y")).target("when")


def test_categories_of_a_table_without_names_count_as_one_column(read):
  fit = make_fit("x0", "x1_7", "x1_8", categories={"x1": ("7", "8")})
  points = read("1,8\n2,7\n", fit).points([0, 1, 2])
  assert points.x.tolist() == [[1, 0, 1], [2, 1, 0]]


@pytest.mark.parametrize(("text", "expected"), [
  ("c,c_a\na,7\nb,8\na,9\n", [1, 0, 1]), ("c_a\n1\n0\n1\n", [1, 0, 1])])
def test_a_class_is_read_from_its_category_whatever_else_has_its_name(read, text, expected):
  """A column of that name is read where the category is not there."""
  fit = make_fit("c_a", "c_b", categories={"c": ("a", "b")})
  assert read(text, fit).points([0]).x[:, 0].tolist() == expected
