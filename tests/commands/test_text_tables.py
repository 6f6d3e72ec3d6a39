"""Odd files of text: each is read right, or refused in one line; what was decided is said."""

import re

import pytest

from symformer_jax.commands import tables, text_tables
from symformer_jax.commands.tables import TableError
from symformer_jax.errors import InputError


@pytest.fixture
def read(tmp_path):
  """Reads text as a table: `(names, first row, notes)`."""
  def read(text, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    table = tables.read_table(str(path), **options)
    return (*table.features, table.target), (*table.x[0], table.y[0]), table.notes
  return read


def lines(form, num=7, begin=1):
  """Rows of a form with i and its square."""
  return "".join(form.format(i=i, s=i * i) + "\n" for i in range(begin, begin + num))


@pytest.mark.parametrize(("text", "names", "row"), [
  (lines("{i},5;{s},25"), ("x0", "y"), (1.5, 1.25)), ("a;b\n" + lines("{i},5;{s},25"), ("a", "b"), (1.5, 1.25)),
  ('a,b\n' + lines('"{i},5","{s},25"'), ("a", "b"), (1.5, 1.25)), (lines("{i},5 {s},25"), ("x0", "y"), (1.5, 1.25)),
  ("a\tb\n" + lines("{i},5\t{s}"), ("a", "b"), (1.5, 1)), ("a;b\n" + lines("1.00{i},5;{s}"), ("a", "b"), (1001.5, 1)),
  ("a,b\n" + lines('{i},"1,00{s}.5"', num=3) + lines('{i},"1,0{s}.5"', num=4, begin=4), ("a", "b"), (1, 1001.5)),
  ("  a   b\n" + lines("  {i}     {s}.5"), ("a", "b"), (1, 1.5)), (lines("{i}\t {s}"), ("x0", "y"), (1, 1)),
  ('"a b" c\n' + lines("{i} {s} # why"), ("a b", "c"), (1, 1)), ("a|b\n" + lines("{i}|{s}"), ("a", "b"), (1, 1)),
  ("sep=;\na;b\n" + lines("{i};{s}"), ("a", "b"), (1, 1)), ("a , b\n" + lines("{i} , {s}"), ("a", "b"), (1, 1)),
  ("# a, comment\n#\na,b\n" + lines("{i},{s}") + "# the end\n", ("a", "b"), (1, 1)),
  ("\ufeffa,b,\r\n\r\n" + lines("{i},{s},\r") + "\r\n,,\r\n", ("a", "b"), (1, 1)),
  ("a,b\r" + lines("{i},{s}").replace("\n", "\r"), ("a", "b"), (1, 1)),
  ("'a','b'\n" + lines("'{i}','{s}'"), ("a", "b"), (1, 1)), ("a,,b,\n" + lines("{i},,{s},"), ("a", "b"), (1, 1)),
  (",a,b\n" + lines("{i}7,{i},{s}"), ("column 1", "a", "b"), (17, 1, 1)),
  ("a;b\n" + lines("{i};{s}").replace("\n", ";;\n"), ("a", "b"), (1, 1)),
  ("a;b;why\n" + lines("{i},5;{s};a,2,3"), ("a", "b"), (1.5, 1)),
  ("Ort;a;b\n" + lines("Bonn, Rhein;{i};{s}"), ("a", "b"), (1, 1)),
])
def test_read_right(read, text, names, row):
  found = read(text)
  assert found[:2] == (names, row)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252"])
def test_encodings_of_spreadsheets(read, encoding):
  text = ("\ufeff" if encoding == "utf-16-le" else "") + "H\u00f6he;b\n" + lines("{i};{s}")
  names, _, notes = read(text.encode(encoding))
  assert names == ("H\u00f6he", "b") and bool(notes) == (encoding == "cp1252")


@pytest.mark.parametrize(("text", "names", "row", "note"), [
  ("t,v\ns,m/s\n" + lines("{i},{s}"), ("t", "v"), (1, 1),
   "line 2 left out: 's', 'm/s' above the numbers is taken for units"),
  ("My lab\nt,v\n" + lines("{i},{s}"), ("t", "v"), (1, 1), "line 1 left out: 'My lab' is taken for a title"),
  ("# mass force\n" + lines("{i} {s}"), ("mass", "force"), (1, 1),
   "names of the columns are taken from the comment above: 'mass', 'force'"),
  ("# made by me\n" + lines("{i} {s}"), ("x0", "y"), (1, 1), "line 2 is taken for data, columns are called x0, y"),
  (lines("{i} {s} 2 {s}"), ("x0", "x1", "x2", "y"), (1, 1, 2, 1),
   "line 1 is taken for data, columns are called x0, ..., y"),
  ("d,b\n" + lines("2020010{i},{s}"), ("d", "b"), (20200101, 1),
   "column 'd' is read as plain numbers; for days write 20200101 as 2020-01-01"),
  ("d,b\n" + lines("2020130{i},{s}"), ("d", "b"), (20201301, 1), ""),
  ("d,b\n" + lines("2020010{i}.5,{s}"), ("d", "b"), (20200101.5, 1), ""),
  ("d;b\n" + lines("2020-01-01 00:00:0{i},500;{s}"), ("d", "b"), (0, 1),
   "column 'd' holds dates, read as seconds since 2020-01-01 00:00:01.500000"),
  (",a,b\n" + lines("{i},{i},{s}", begin=0), ("a", "b"), (0, 0),
   "column 1 left aside: it has no name and counts the rows"),
  ("Unnamed: 0,a,b\n" + lines("{i},{i},{s}"), ("a", "b"), (1, 1),
   "column 1 left aside: it has no name and counts the rows"),
  ('"a" "b"\n' + lines('"{i}" {i} {s}'), ("a", "b"), (1, 1),
   "column 1 left aside: it has no name, as the names of rows have none in R"),
  ("land,1990,2000\n" + lines("n{i},{i},{s}"), ("1990", "2000"), (1, 1),
   "line 1 is taken for the names of the columns, though '1990' is in it"),
  ("d,b\n" + lines("2020-01-0{i},{s}"), ("d", "b"), (0, 1), "column 'd' holds dates, read as days since 2020-01-01"),
])
def test_decisions_are_said(read, text, names, row, note):
  found = read(text)
  assert found[:2] == (names, row)
  assert any(note in each for each in found[2]) if note else not found[2]


def test_a_row_of_text_that_may_be_data_is_no_row_of_units(read):
  with pytest.raises(TableError, match="line 2, column 'v': expected a finite number, got 'unknown'"):
    read("name,v,w\nX,unknown,1\n" + lines("n{i},{i},{s}"))
  with pytest.raises(TableError, match="line 2, column 'v': expected a finite number, got 'unknown'"):
    read("name,v,w\nX,unknown,\n" + lines("n{i},{i},{s}"))


@pytest.mark.parametrize("row", [
  "<0.1,<1", "bad,bad", "bad,worse>", "5x,3y", "kg,nan", "kg,-", "kg,", "kg,kg", "kg,unknown", "(1.5),(2)", "kg,[nan]",
  "not measured,kg", "kg," + "a" * 30, "#REF!,kg", "kg,Error"])
def test_a_first_row_of_data_that_is_bad_is_no_row_of_units(read, row):
  with pytest.raises(TableError, match="line 2, column '[vw]': expected a finite number, got"):
    read(f"v,w\n{row}\n" + lines("{i},{s}"))


def test_a_quote_without_an_end_is_no_unit(read):
  with pytest.raises(TableError, match="a cell in quotes goes on from line 2 over 2 lines"):
    read('v,w\n"kg,1\n2",m\n' + lines("{i},{s}"))


@pytest.mark.parametrize(("first", "last"), [('"3.5,37.75', '5.5,"91.75'), ('3.5,"37.75', '"5.5,91.75')])
@pytest.mark.parametrize("drop_missing", [False, True])
def test_rows_between_two_stray_quotes_are_not_lost(tmp_path, first, last, drop_missing):
  path = tmp_path / "quotes.csv"
  path.write_text("v,w\n" + lines("{i},{s}", num=5) + f"{first}\n4,48\n4.5,61\n5,75\n{last}\n"
                  + lines("{i},{s}", begin=9))
  with pytest.raises(TableError, match="a cell in quotes goes on from line 7 over 5 lines that look like rows"):
    tables.read_table(str(path), drop_missing=drop_missing)


def test_text_and_names_may_go_on_for_lines(read):
  notes = '"first, second,\nthird"'
  names, first, _ = read(f'"length\n(m)",w,note\n1,1,{notes}\n' + lines("{i},{s},fine", begin=2))
  assert (names, first) == (("length (m)", "w"), (1, 1))
  with pytest.raises(TableError, match="line 2, column 'w': expected a finite number, got 'none.nsee below'"):
    read('v,w\n1,"none\nsee below"\n' + lines("{i},{s}", begin=2))
  with pytest.raises(TableError, match="a cell in quotes goes on from line 2 over 2 lines that look like rows"):
    read('v,w,note\n1,1,"fine\n2,4,good"\n' + lines("{i},{s},fine", begin=3))


@pytest.mark.parametrize("row", [
  "s,m/s", "[kg],[-]", "(m),(m)", "\u00b0C,%", "\u00b5m,W/(m*K)", "m s-1,kg m^-3", "degC,kWh", "[10^3 m],m2", "m/s,m/s",
  "\u20ac,m\u00b2", "K,[deg C]"])
def test_rows_of_units(read, row):
  names, first, notes = read(f"v,w\n{row}\n" + lines("{i},{s}"))
  assert (names, first) == (("v", "w"), (1, 1)) and "line 2 left out: " in notes[0]
  assert read(f"d,v,w\n,{row}\n" + lines("2020-01-0{i},{i},{s}"))[1] == (0, 1, 1)
  assert read(f"name,v,w\n-,{row}\n" + lines("n{i},{i},{s}"))[1] == (1, 1)


def test_the_lines_looked_at_may_end_within_a_quote(read):
  text = "a,b,c\n" + lines("{i},{s},t", num=198) + '199,1,"two\n\nlines"\n' + lines("{i},{s},t", begin=200)
  assert read(text)[0] == ("a", "b")
  with pytest.raises(TableError, match="line 204, column 'a': expected a finite number, got 'x'"):
    read(text.replace("\n201,", "\nx,"))


def test_commas_or_spaces_are_asked_for_where_both_will_do(read):
  text = lines("{i},500 20{i}")
  with pytest.raises(TableError, match="between commas or between spaces, as in '7,500 207'; --separator=, or"):
    read(text, "t.txt")
  assert read(text, "t.txt", separator="space", decimal=",")[1] == (1.5, 201)
  assert read(text, "t.txt", separator=",")[1] == (1, 500201)


def test_the_target_is_a_column_of_numbers_rather_than_of_dates(read):
  assert read("a,b,d\n" + lines("{i},{s},2020-01-0{i}"))[0] == ("a", "d", "b")
  names, row, _ = read("a,d\n" + lines("{i},200{i}-01-01"), target="d")
  assert (names, row) == (("a", "d"), (1, 2001))


@pytest.mark.parametrize("error", ["#N/A", "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!"])
def test_rows_that_begin_with_an_error_of_a_spreadsheet_are_no_comments(read, error):
  shown = "'#N/A', a missing value" if error == "#N/A" else repr(error)
  below = [f"a,b\n{error},1\n" + lines("{i},{s}"), "a b\n" + lines("{i} {s}") + f"8 {error}\n",
           "a;b\n" + lines("{i};{s}") + f" {error} ;8\n"]
  bare = [f"{error},8\n" + lines("{i},{s}"), lines("{i},{s}") + f"{error},8\n"]
  places = ["line 2, column 'a'", "line 9, column 'b'", "line 9, column 'a'", "line 1, column 'x0'",
            "line 8, column 'x0'"]
  for text, place in zip(below + bare, places, strict=True):
    with pytest.raises(TableError, match=re.escape(f"{place}: expected a finite number, got {shown}")):
      read(text)
    assert read(text, drop_missing=True)[1] == (1, 1)


def test_comments_among_the_rows_are_counted_and_name_nothing(read):
  names, row, notes = read("id,b\n" + "".join(f"#{i},{i}\n" for i in range(3)) + lines("{i},{s}"))
  assert (names, row) == (("id", "b"), (1, 1))
  assert notes == ("3 lines that begin with # left out as comments below the first row, first line 2: '#0,0'",)
  names, _, notes = read("# mass,force\n" + lines("{i},{s}") + "# the,end\n#REFERENCE 3\n")
  assert names == ("mass", "force") and notes[0].startswith("2 lines that begin with # left out")
  assert read("a,b\n" + lines("{i},{s}") + "# why\n")[2][0].startswith("a line that begins with # left out")


@pytest.mark.parametrize(("separator", "behind"), [
  (",", " # ok"), (";", "\t# bad, redo"), ("\t", " #1"), (" ", "  # a b")])
def test_comments_behind_numbers_are_left_out_and_said(read, separator, behind):
  rows = [f"{i}{separator}{i / 2}" + (behind if i in (1, 3) else "") for i in range(1, 9)]
  names, row, notes = read(f"a{separator}b\n" + "\n".join(rows))
  assert (names, row) == (("a", "b"), (1, 0.5))
  assert notes == (f"comments left out behind 2 rows, first line 2: {' '.join(behind.split())!r}",)
  assert read(f"a{separator}b\n" + lines(f"{{i}}{separator}{{s}}{behind}"))[1] == (1, 1)


@pytest.mark.parametrize("row", [
  "a #{i},{i},{s}", '"{i} #{i}",{i},{s}', "{i} #{i},{i},{s}", "{i},{s},#{i}", "{i},{s}, #{i}", "{i},{s},#N/A"])
def test_signs_in_cells_begin_no_comment(tmp_path, row):
  (tmp_path / "t.csv").write_text("a,b,c\n" + lines(row))
  grid = text_tables.read(tmp_path / "t.csv")
  assert grid.names == ("a", "b", "c") and not grid.notes
  assert [column[0] for column in grid.columns] == [
    cell.strip(' "') for cell in row.format(i=1, s=1).split(",")]


@pytest.mark.parametrize(("text", "names"), [
  ("% x y\n{}", ("x", "y")), ("% made by hand\n%\n% x y\n{}", ("x", "y")), ("% made by hand\n{}", ("x0", "y")),
  ("% made by hand\nx y\n{}", ("x", "y")), ("% y\n{}", ("%", "y")), ("%x y\n{}", ("%x", "y")),
])
def test_first_lines_of_matlab_are_comments_unless_they_are_names(read, text, names):
  found = read(text.format(lines("{i} {s}")), "t.dat")
  assert found[:2] == (names, (1, 1))


@pytest.mark.parametrize(("text", "row"), [
  ("| x | y |\n|---|:-:|\n", "| {i} | {s} |"), ("x | y\n---+---\n", "{i} | {s}"),
  ("| x | y |\n|:--|--:|\n", "| {i} | {s} |"), ("| x | y |\n|:-|:-|\n", "| {i} | {s} |")])
def test_the_rule_of_a_table_in_markdown_is_no_row(read, text, row):
  assert read(text + lines(row)) == (("x", "y"), (1, 1), ())


def test_a_cell_that_is_too_long_is_named_by_its_line(tmp_path):
  (tmp_path / "t.csv").write_text("a,b\n1,2\n\n3," + "4" * 200_000 + "\n5,6\n")
  with pytest.raises(InputError, match="^cannot be read as a table: line 4: a cell of more than 131072 letters$"):
    text_tables.read(tmp_path / "t.csv")
