"""Parts of reading tables, each where it just holds and where it just does not: cells, dates, grids, lines of text."""

import bz2
import datetime
import decimal
import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest

from symformer_jax.commands import cells, column_units, grids, table_files, tables, text_tables, times
from symformer_jax.commands.cells import COMMA, POINT, read_columns, read_number
from symformer_jax.errors import InputError


def objects(*content):
  found = np.empty(len(content), object)
  found[:] = content
  return found


def read(*columns, **options):
  return read_columns([objects(*texts) for texts in columns], **options)


def moments(*texts):
  return times.read(objects(*texts))


# --- dates and times ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "unit"), [
  ("2021-12-31 12:00:00", "decimal years"), ("2021-12-31 11:59:59", "days"),  # two years of 365.25 days
  ("2020-01-03 00:00:00", "days"), ("2020-01-02 23:59:59", "hours"), ("2020-01-01 02:00:00", "hours"),
  ("2020-01-01 01:59:59", "minutes"), ("2020-01-01 00:02:00", "minutes"), ("2020-01-01 00:01:59", "seconds"),
  ("2020-01-01 00:00:00", "seconds")])
def test_the_unit_is_the_largest_of_which_the_span_has_two(last, unit):
  assert f"read as {unit}" in moments("2020-01-01 00:00:00", last).note


def test_the_span_of_times_of_day_is_that_of_the_largest_of_either_sign():
  found = moments("-3:00:00", "0:00:10", None)
  np.testing.assert_allclose(found.values, [-3, 10 / 3600, np.nan])
  assert found.note == "holds times, read as hours"


def test_all_parts_of_a_time_count():
  seconds = 3600 + 2 * 60 + 3.5
  found = moments(datetime.time(1, 2, 3, 500000), datetime.timedelta(seconds=seconds), "1:02:03.5", "x")
  np.testing.assert_allclose(found.values * 60, [seconds, seconds, seconds, np.nan], rtol=1e-12)
  days = moments("1 day, 2:03:04", "-2 days 00:00", "4 days 00:00")
  np.testing.assert_allclose(days.values, [1 + (2 * 3600 + 3 * 60 + 4) / 86400, -2, 4], rtol=1e-12)


@pytest.mark.parametrize("values", [
  [18000101.0], [21991231.0], [20200101.0, np.nan, 19991231.0]])
def test_numbers_that_are_days_of_the_calendar(values):
  assert times.are_days_without_signs(np.array(values))


@pytest.mark.parametrize("values", [
  [17991231.0], [22000101.0], [20200101.5], [20201301.0], [20200101.0, 17991231.0], [20200101.0, 5.0], [], [np.nan]])
def test_numbers_that_are_none(values):
  assert not times.are_days_without_signs(np.array(values))


def test_a_column_of_times_is_one_of_which_half_are():
  np.testing.assert_array_equal(moments("2020-01-01", "2020-01-02", "x", "y").values, [0, 24, np.nan, np.nan])
  assert moments("2020-01-01", "2020-01-02", "x", "y", "z") is None
  found = moments("2020-01-01", "", None, float("nan"), "x", None)  # what is missing does not count
  assert found.values[0] == 0 and np.isnan(found.values[1:]).all()


def test_formats_that_do_as_well_in_the_first_fifty_rows_are_decided_by_all():
  days, years = [f"{i:02}.01.2020" for i in range(1, 26)], [f"2020/01/{i:02}" for i in range(1, 26)]
  found = moments(*days, *years, "26.01.2020", *[f"2020/02/{i:02}" for i in range(1, 6)])
  assert np.isnan(found.values[:25]).all() and np.isfinite(found.values[25:50]).all()


def test_the_first_date_that_is_there_is_the_example_of_decimal_years():
  found = moments(None, "2019-07-02 12:00", "2022-01-01")
  assert np.isnan(found.values[0]) and "'2019-07-02 12:00' is 2019.5" in found.note
  array = times.read(np.array(["NaT", "2019-07-02T12", "2022-01-01T00"], "datetime64[h]"))
  assert "'2019-07-02T12:00:00' is 2019.5" in array.note


def test_a_letter_between_day_and_clock_is_one_of_any_format():
  np.testing.assert_array_equal(moments("13.01.2020T10:00", "13.01.2020T13:00").values, [0, 3])


# --- cells -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "by_point", "by_comma"), [
  ("1.5e1%", 0.15, None), ("1.5e1", 15, None), ("5.", 5, None), (".5", 0.5, None), (",5", None, 0.5),
  ("-inf", -np.inf, -np.inf), ("1,23,456", 123456, None), ("12,34,567.5", 1234567.5, None), ("2D3 %", 20, 20),
  ("1 234", 1234, 1234), ("\u22125", -5, -5), ("0123", 123, 123), ("0,123,456", None, None), ("inf%", np.inf, np.inf),
  ("1.234.567,5", None, 1234567.5)])
def test_numbers_at_the_edges_of_the_rules(text, by_point, by_comma):
  assert (read_number(text, POINT), read_number(text, COMMA)) == (by_point, by_comma)


@pytest.mark.parametrize("cell", [None, pd.NA, pd.NaT, float("nan"), np.datetime64("NaT"), "", " N/A ", "#n/a", "?"])
def test_what_is_missing(cell):
  assert cells.is_missing(cell) and not cells.is_value(cell)


@pytest.mark.parametrize("cell", [0, 0.0, False, "1,5", "1.5", "2020-01-01", "12:30", datetime.date(2020, 1, 1)])
def test_what_is_there_and_may_be_a_number_or_a_time(cell):
  assert not cells.is_missing(cell) and cells.is_value(cell) and not cells.is_error(cell)


def test_words_and_errors_of_spreadsheets_are_no_values():
  assert not cells.is_value("one") and not cells.is_value("#REF!")
  assert cells.is_error(" #ref! ") and cells.is_error("#N/A") and not cells.is_error(None) and not cells.is_error("x")


def test_a_column_of_which_most_cells_are_text():
  [half], [more] = read(["1", "2", "x", "y", ""]), read(["1", "2", "x", "y", "z"])
  assert not half.is_mostly_text and more.is_mostly_text and half.is_numeric and more.is_numeric
  assert not cells.Column(np.full(3, np.nan), objects("a", "b", "c"), fault="why").is_mostly_text
  assert cells.Column(np.full(1, np.nan), objects("a"), fault="why").is_numeric


def test_a_note_of_decimal_marks_is_usual_where_nothing_else_was_possible():
  own, other = read(["1,5", "2"], ["1,234", "2"])
  assert own.is_usual and not other.is_usual and "--decimal=. reads it otherwise" in other.note
  [percent], [truths] = read(["5 %"]), read(["true", "false"])
  assert percent.is_usual and not truths.is_usual and truths.note == "is read as 1 for true and 0 for false"


def test_files_whose_columns_tell_different_marks_decide_none():
  by_point, by_comma, left = read(["1.5", "2.5"], ["1,5", "2,5"], ["1,234", "2,345"])
  assert by_point.values[0] == by_comma.values[0] == 1.5
  assert left.fault.startswith("may be read in two ways: '1,234' is 1.234 or 1234")


def test_days_without_signs_are_told_of_by_the_first():
  [found] = read_columns([np.array([np.nan, 20200131.0, 20210228.0])])
  assert found.note == "is read as plain numbers; for days write 20200131 as 2020-01-31"
  [asked] = read(["20200131", "20210228"])
  assert asked.note == found.note and not read(["20200132"])[0].note


def test_arrays_of_other_types_are_numbers_with_a_note_of_truths_alone():
  whole, truths = read_columns([np.array([1, 2], np.uint8), np.array([False, True])])
  assert whole.values.dtype == np.float64 and not whole.note and truths.note and not truths.is_time
  [mixed] = read([True, "0", 1])
  assert mixed.note == "is read as 1 for true and 0 for false" and list(mixed.values) == [1, 0, 1]


def test_the_separator_decides_marks_that_nothing_else_does():
  for separator, value in ((";", 1.234), (",", 1234)):
    assert read(["1,234", "2,345"], separator=separator)[0].values[0] == value
  # Dots alone are the marks of programs; dots and commas in such cells tell nothing.
  assert read(["1.234"], separator=";")[0].values[0] == 1.234
  both = read(["1,234", "2"], ["1.234", "2,345"], separator="\t")
  assert both[0].fault and both[1].fault
  assert all(column.fault for column in read(["1,234"], ["1.234"], separator=";"))


def test_half_of_the_cells_being_numbers_tell_the_mark():
  told, left = read(["1,5", "x"], ["1,234", "2,345"], separator=",")
  assert told.values[0] == 1.5 and left.values[0] == 1.234
  told, left = read(["1,5", "x", "y"], ["1,234", "2,345"], separator=",")
  assert left.values[0] == 1234


def test_numbers_that_only_one_mark_explains_tell_it():
  mixed, left = read(["1.5", "2", "1,234.5"], ["1,234", "2,345"], separator=";")
  assert list(mixed.values) == [1.5, 2, 1234.5] and left.values[0] == 1234
  mixed, left = read(["1,5", "2", "1.234,5"], ["1,234", "2,345"], separator=",")
  assert list(mixed.values) == [1.5, 2, 1234.5] and left.values[0] == 1.234


def test_a_mark_asked_for_comes_before_that_of_the_column():
  assert read(["1,234.5"], decimal=COMMA)[0].first_bad() == 0
  assert list(read(["1.234", "2.345"], decimal=COMMA)[0].values) == [1234, 2345]
  assert list(read(["12", "7"], decimal=COMMA)[0].values) == [12, 7]
  assert not read(["1.5", "7"], decimal=POINT)[0].note and not read(["12"], decimal=COMMA)[0].note
  assert read(["1,234"], decimal=POINT)[0].note == "is read so that '1,234' is 1234"


def test_truths_and_times_stand_alone():
  assert read(["true", "x"])[0].first_bad() == 0 and read([1.5, "2020-01-01"])[0].first_bad() == 1
  [truths] = read([True, "false", "TRUE "])
  assert list(truths.values) == [1, 0, 1]
  [dates] = read(["2020-01-01", None, "2020-01-05"])
  assert dates.is_time and list(dates.values[[0, 2]]) == [0, 4]


def test_percent_signs_and_currencies_of_a_whole_column():
  assert list(read(["5%", "x", "7 %"])[0].values[[0, 2]]) == [0.05, 0.07] and not read(["5%", "0"])[0].fault
  assert not read(["x%", "7"])[0].fault  # a sign behind no number
  assert "such as '7' and '5%'" in read(["x", "5%", "0", "7"])[0].fault
  assert "such as '2.5' and '5%'" in read(["5%", None, 2.5])[0].fault
  assert not read(["5%", None])[0].fault and not read(["$5", "7"])[0].fault
  assert read(["$5", "7\u20ac", "8\u00a3"])[0].fault == "mixes currencies, such as '$5' and '7\u20ac'"


def test_numbers_of_python_are_taken_as_they_are():
  [found] = read([decimal.Decimal("1.5"), 10**400, -(10**400), 1 + 2j, 2])
  np.testing.assert_array_equal(found.values, [1.5, np.inf, -np.inf, np.nan, 2])
  assert read([np.bool_(True), 0])[0].values.tolist() == [1, 0]


@pytest.mark.parametrize(("cell", "name"), [
  (None, None), (1, "1"), (1.0, "1"), (0.1 + 0.2, "0.3"), (True, "True"), (np.bool_(False), "False"), (" a  b ", "a b"),
  (datetime.date(2020, 1, 2), "2020-01-02")])
def test_the_name_of_a_class(cell, name):
  assert cells.as_category(cell) == name


# --- grids -------------------------------------------------------------------------------------------------------


def rows_of(*rows, places=None, word="row", **options):
  return grids.from_rows([list(row) for row in rows], places or range(1, len(rows) + 1), word=word, **options)


def test_a_table_may_begin_anywhere_on_a_sheet():
  grid = rows_of([None, None, None], [None, "a", "b"], [None, None, 1], [None, 2, 3])
  assert grid.names == ("a", "b") and list(grid.places) == [3, 4] and list(grid.columns[1]) == [1, 3]
  assert list(grid.columns[0]) == [None, 2]


def test_a_title_is_a_single_cell_above_more():
  title = rows_of(["My lab", ""], ["by me", None], ["a", "b"], [1, 2], [3, 4])
  assert title.names == ("a", "b") and len(title.notes) == 2
  assert title.notes[0] == "row 1 left out: 'My lab' is taken for a title"
  assert title.notes[1] == "row 2 left out: 'by me' is taken for a title"
  long = rows_of(["t" * 50, ""], ["a", "b"], [1, 2])
  assert len(long.notes[0]) < len("row 1 left out: '' is taken for a title") + 44 and "ttt" in long.notes[0]


def test_titles_are_told_by_the_first_rows():
  body = [[1, 2]] * 13
  # Of 25 rows the usual width is that of 13.
  assert rows_of(*[["t", ""]] * 12, ["a", "b"], *body).names == ("a", "b")
  narrow = [["t", ""]] * 13
  assert rows_of(*narrow, ["a", "b"], *body).names != ("a", "b")


def test_a_wide_row_of_numbers_below_a_text_is_no_row_of_names():
  with pytest.raises(InputError, match="Expected 1 fields in row 2, saw 2"):
    rows_of(["a"], [1, 2], [3, 4])
  with pytest.raises(InputError, match="Expected 1 fields in row 2, saw 2"):
    rows_of(["a"], ["b", 2], [3, 4])


def test_names_come_from_a_comment_that_has_one_for_each_column():
  assert rows_of([1, 2], [3, 4], comment=["m", "f"]).names == ("m", "f")
  for comment in (["m"], ["m", "f", "g"], ["m", ""], ["1", "2"]):
    assert rows_of([1, 2], [3, 4], comment=comment).names == ("x0", "y")


def test_columns_without_names_are_counted():
  assert rows_of([1, 2, 3], [4, 5, 6]).notes == ("row 1 is taken for data, columns are called x0, x1, y",)
  assert rows_of([1, 2, 3, 4], [4, 5, 6, 7]).notes == ("row 1 is taken for data, columns are called x0, ..., y",)
  assert rows_of(["Unnamed: 1", "b"], [7, 2], [8, 3]).names == ("column 1", "b")
  assert rows_of(["Unnamed: x", "b"], [7, 2], [8, 3]).names == ("Unnamed: x", "b")
  with pytest.raises(InputError, match="Expected 0 fields in row 2, saw 2"):
    rows_of(["Unnamed: 0"], ["x", 1], ["y", 2])


def test_rows_of_other_widths_say_where_and_how_many():
  with pytest.raises(InputError, match="Expected 2 fields in line 3, saw 3$"):
    rows_of([1, 2], [3, 4], [5, 6, 7], word="line")
  with pytest.raises(InputError, match="Expected 2 fields in line 3, saw 3; where numbers have decimal commas"):
    rows_of([1, 2], [3, 4], [5, 6, 7], word="line", separator=",")
  with pytest.raises(InputError, match="Expected 2 fields in row 3, saw 4"):
    rows_of(["a", "b"], [1, 2], [1, 2, 3, 4], [1, 2, 3])
  with pytest.raises(InputError, match="the names are 3, but no line has more than 2 cells"):
    rows_of(["a", "b", "c"], [1, 2], [3, 4], word="line", separator=" ")
  # A named column without a cell: the lines have a separator before it, the rows of a sheet end.
  assert rows_of(["a", "b", "c"], [1, 2, ""], [3, 4, ""], separator=",").names == ("a", "b", "c")
  assert list(rows_of(["a", "b", "c"], [1, 2], [3, 4]).columns[2]) == ["", ""]
  assert rows_of(["a", "b", "c"], [1, 2], [3, 4, 5]).columns[2][0] == ""
  assert rows_of(["a", "b", ""], [1, 2, 3], [3, 4, 5]).names == ("a", "b", "column 3")
  with pytest.raises(InputError, match="^the file is empty$"):
    rows_of([None, ""], ["", None])


def test_names_of_rows_have_no_name_in_r():
  grid = rows_of(["a", "b"], ["x", 1, 2], ["y", 3, 4])
  assert grid.names == ("a", "b") and list(grid.columns[0]) == [1, 3] and "names of rows" in grid.notes[0]
  for separator in (" ", "\t"):
    assert rows_of(["a", "b"], [1, 5, 2], [2, 3, 4], separator=separator).names == ("a", "b")
    with pytest.raises(InputError, match="Expected 2 fields in row 2, saw 3"):
      rows_of(["a", "b"], [1, 5, 2], [7, 3, 4], separator=separator)
  for second in ([3, 4], ["y", 3, 4, 5]):
    with pytest.raises(InputError, match="Expected 2 fields in row"):
      rows_of(["a", "b"], ["x", 1, 2], second)
  with pytest.raises(InputError, match="Expected 2 fields in row 2, saw 3"):
    rows_of(["a", "b"], [1, 5, 2], [2, 3, 4], separator=";")
  with pytest.raises(InputError, match="Expected 2 fields in row 2, saw 4"):
    rows_of(["a", "b"], ["x", 1, 2, 3], ["y", 3, 4, 5])


@pytest.mark.parametrize(("numbers", "is_counting"), [
  ([0, 1, 2], True), ([1, 2, 3], True), (["0", "1", "2"], True), ([2, 3, 4], False), ([0, 1, 3], False)])
def test_a_column_without_a_name_that_counts_is_left_aside(numbers, is_counting):
  grid = rows_of(["", "a", "b"], *[[n, 7, 8 + n] for n in map(int, numbers)])
  assert grid.names == (("a", "b") if is_counting else ("column 1", "a", "b"))
  assert (grid.notes == ("column 1 left aside: it has no name and counts the rows",)) == is_counting
  # The only other column is needed.
  assert rows_of(["", "b"], *[[n, 8] for n in map(int, numbers)]).names == ("column 1", "b")
  assert rows_of(["n", "a", "b"], *[[n, 7, 8] for n in map(int, numbers)]).names == ("n", "a", "b")


def test_columns_without_name_and_cells_are_no_columns():
  grid = rows_of(["a", "", "b"], [1, "", 2], [3, None, 4])
  assert grid.names == ("a", "b") and list(grid.columns[1]) == [2, 4]
  assert rows_of(["a", "", "b"], [1, "", 2], [3, "x", 4]).names == ("a", "column 2", "b")


@pytest.mark.parametrize(("row", "is_units"), [
  (["kg", "m"], True), (["kg", "kg"], False), (["m/s", "m/s"], True), (["kg", ""], False), (["kg", "1"], False),
  (["m s-1", "kg"], True), (["m s", "kg"], False), (["m s-1 K A B", "kg"], True), (["m s-1 K A B C", "kg"], False),
  (["a" * 16, "kg"], True), (["a" * 17, "kg"], False), (["[-]", "[1]"], True), (["[]", "()"], True),
  (["(2)", "kg"], False), (["[ kg ]", "m"], True), (["[bad]", "m"], False), (["bad", "kg"], False), ([5, "kg"], False),
  (["BAD", "kg"], False), (["[NA]", "kg"], False), (["-", "kg"], False)])
def test_a_row_of_units_is_above_all_columns_of_numbers(row, is_units):
  grid = rows_of(["a", "b"], row, [1, 2], [3, 4])
  assert len(grid.places) == (2 if is_units else 3)
  assert bool(grid.notes) == is_units


def test_units_are_told_by_twenty_rows_below():
  body = [[1, 2]] * 20
  assert len(rows_of(["a", "b"], ["kg", "m"], *body, ["x", 2]).places) == 21
  assert len(rows_of(["a", "b"], ["kg", "m"], *body[:-1], ["x", 2]).places) == 21
  assert len(rows_of(["a", "b"], ["kg", "m"], *body[:-1], ["x", "y"]).places) == 21
  assert len(rows_of(["a", "b"], ["kg", "m"]).places) == 1  # nothing below


def test_a_row_of_units_has_none_for_days_and_text():
  day = datetime.date(2020, 1, 1)
  assert len(rows_of(["d", "b"], ["", "m"], [day, 1], [day, 2]).places) == 2
  assert len(rows_of(["d", "b"], ["", "m"], ["2020-01-01", 1], ["12:30", 2]).places) == 2
  assert len(rows_of(["d", "b"], ["", "m"], ["7", 1], ["8", 2]).places) == 3
  assert len(rows_of(["d", "b"], ["", "m"], ["x", 1], ["y", 2]).places) == 2
  assert len(rows_of(["d", "b"], ["", "m"], ["-", 1], [None, 2]).places) == 2


def test_a_name_is_one_line_of_printable_signs():
  assert grids.clean_name(" a\tb\n\x00c\u200b ") == "a b c" and grids.clean_name(1990) == "1990"
  # As Python has an argument where the locale knows no UTF-8; what is no UTF-8 either stays none.
  assert grids.clean_name("\udcce\udcb8") == "\u03b8"
  assert grids.clean_name("e\u0301") == "\u00e9"
  assert grids.clean_name("a\udcce") == grids.clean_name("a\ud800") == "a"


# --- lines of text -----------------------------------------------------------------------------------------------


def table(tmp_path, text, **options):
  path = tmp_path / "t.csv"
  path.write_bytes(text if isinstance(text, bytes) else text.encode())
  return text_tables.read(path, **options)


def test_a_hint_of_a_spreadsheet_names_the_separator_unless_one_is_given(tmp_path):
  text = '"sep=;"\na,1;b\n1;2\n3;4\n'
  assert table(tmp_path, text).names == ("a,1", "b") and list(table(tmp_path, text).places) == [3, 4]
  assert table(tmp_path, "sep=|\na;1|b\n1;2\n", separator=";").names == ("a", "1|b")
  # Where it may be wrong, messages say where it came from.
  assert table(tmp_path, text).elsewhere == "; line 1 says that ';' stands between columns"
  assert not table(tmp_path, "sep=|\na;1|b\n1;2\n", separator=";").elsewhere
  assert not table(tmp_path, "a,b\n1,2\n").elsewhere
  with pytest.raises(InputError, match="saw 3; line 1 says that ';' stands between columns$"):
    table(tmp_path, "sep=;\na;b\n1;2;3\n4;5\n")


def test_a_quote_without_an_end_in_the_last_line_is_refused_and_a_sign_of_inches_is_not(tmp_path):
  with pytest.raises(InputError, match="the quote in line 3 has no end"):
    table(tmp_path, 'a,b\n1,"2"\n3,"4\n')
  assert list(table(tmp_path, 'a,b\n1,2\n3,4"\n').columns[1]) == ["2", '4"']
  assert list(table(tmp_path, 'a,b\n1,"2"\n3,"4"\n').columns[1]) == ["2", "4"]


def test_a_line_of_a_million_numbers_is_no_table(tmp_path, monkeypatch):
  monkeypatch.setattr(grids, "MAX_COLUMNS", 5)
  assert len(table(tmp_path, "1 2 3 4 5\n" * 3).names) == 5
  with pytest.raises(InputError, match="^cannot be read as a table: a line has 6 cells, more than 5$"):
    table(tmp_path, "1 2 3 4 5 6\n")
  # Nor are as many names, of whose cells nothing is asked.
  monkeypatch.setattr(cells, "is_value", lambda cell: pytest.fail("a cell was looked at"))
  with pytest.raises(InputError, match="^cannot be read as a table: a line has 6 cells, more than 5$"):
    table(tmp_path, "a;b;c;d;e;f\n", separator=None)


def test_a_line_of_ten_million_letters_is_no_table_and_is_not_split(tmp_path, monkeypatch):
  assert text_tables.MAX_LETTERS == 10_000_000
  monkeypatch.setattr(text_tables, "MAX_LETTERS", 7)
  assert len(table(tmp_path, "1,2,3,4\n" * 3).names) == 4
  monkeypatch.setattr(text_tables, "_split", lambda *args, **options: pytest.fail("a line was split"))
  with pytest.raises(InputError, match="^cannot be read as a table: line 2 has 8 letters, more than 7$"):
    table(tmp_path, "1,2\n1,2;3 4,\n")


def test_packed_files_are_no_text_and_unmarked_text_of_two_bytes_is(tmp_path):
  text = "a,b\n" + "".join(f"{i},{i + 1}\n" for i in range(600))
  for encoding in ("utf-16-le", "utf-16-be"):
    grid = table(tmp_path, text.encode(encoding))
    assert grid.names == ("a", "b") and len(grid.places) == 600
    assert grid.notes == ("the text has no byte order mark and was read as UTF-16",)
  for data, kind in ((gzip.compress(text.encode()), "compressed by gzip, no text"),
                     (b"PK\x03\x04" + bytes(9), "an archive or a workbook .whose name ends in .xlsx., no text"),
                     (bz2.compress(text.encode()), "compressed by bzip2, no text"),
                     (lzma.compress(text.encode()), "compressed by xz, no text"),
                     (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(9), "an old workbook .save it as .xlsx., no text"),
                     (text.encode("utf-32"), "in UTF-32 .save it as UTF-8."),
                     (text.encode("utf-32-be"), "no text: most of its first bytes are 0; save it as UTF-8"),
                     (bytes(4000), "no text: most of its first bytes are 0; save it as UTF-8")):
    with pytest.raises(InputError, match=f"^is {kind}$"):
      table(tmp_path, data)


def test_the_lines_of_a_file_are_counted_from_one(tmp_path):
  grid = table(tmp_path, "\n\na,b\n\n1,2\r3,4\r\n5,6")
  assert list(grid.places) == [5, 6, 7] and grid.word == "line" and grid.separator == ","


def test_a_rule_below_names_is_no_row(tmp_path):
  assert len(table(tmp_path, "a | b\n-|-\n1 | 2\n").places) == 2  # a dash alone is a missing value
  assert len(table(tmp_path, "a | b\n--|--\n1 | 2\n3 | 4\n").places) == 2
  assert len(table(tmp_path, "a | b\n---|---\n1 | 2\n3 | 4\n").places) == 2
  assert list(table(tmp_path, "a|b\n---|x\n1|2\n3|4\n").places) == [2, 3, 4]
  assert table(tmp_path, "a|b\n").names == ("a", "b")
  assert list(table(tmp_path, "a|b\n-----\n1|2\n3|4\n").places) == [3, 4]


def test_bytes_of_no_text_are_refused_where_they_begin(tmp_path):
  with pytest.raises(InputError, match=r"is no UTF-8 text \(byte 4\)"):
    table(tmp_path, b"a,b\n\xff\x00\n")
  with pytest.raises(InputError, match=r"is no UTF-8 text \(byte 4\)"):
    table(tmp_path, b"a,b\n\xff\x1f\n")
  with pytest.raises(InputError, match="is no UTF-8 text"):
    table(tmp_path, b"\xff\xfea")  # half a sign of UTF-16
  with pytest.raises(InputError, match="is no UTF-8 text"):
    table(tmp_path, b"a,b\n\x81\n")  # Windows has no such letter
  for sign in (b" ", b"\t", b"\f"):
    grid = table(tmp_path, b"H\xf6he;b\n1" + sign + b";2\n3;4\n")
    assert grid.names == ("H\u00f6he", "b") and grid.notes == ("the text is no UTF-8 and was read as Windows-1252",)
  assert table(tmp_path, "a,b\n1,2\n".encode("utf-16-le").join([b"\xff\xfe", b""])).names == ("a", "b")
  assert table(tmp_path, "a,b\n1,2\n".encode("utf-16-be").join([b"\xfe\xff", b""])).names == ("a", "b")


@pytest.mark.parametrize(("text", "names"), [
  ("% x y\n1 2\n3 4\n", ("x", "y")), ("% y\n1 2\n3 4\n", ("%", "y")), ("% x y z\n1 2\n3 4\n", ("x0", "y")),
  ("%\n% y\n1 2\n3 4\n", ("x0", "y")), ("%x\n% y\n1 2\n3 4\n", None), ("% only\n% comments\n", None)])
def test_comments_of_matlab(tmp_path, text, names):
  if names is None:
    assert table(tmp_path, text).names[0].startswith("%")
  else:
    assert table(tmp_path, text).names == names


def test_comments_behind_cells_take_lines_as_usual(tmp_path):
  body = "".join(f"{i},{i}\n" for i in range(1, 6))
  one = table(tmp_path, "a,b\n" + body + "6,6 # why\n")
  assert one.notes == ("comments left out behind line 7: '# why'",) and one.columns[1][-1] == "6"
  two = table(tmp_path, "a,b\n" + body + "6,6 # why\n7,7 # not\n")
  assert two.notes == ("comments left out behind 2 rows, first line 7: '# why'",)
  odd = table(tmp_path, "a,b\n" + body + "6,x # why\n7,7\n")  # not behind a number
  assert not odd.notes and odd.columns[1][5] == "x # why"
  missing = table(tmp_path, "a,b\n" + body + "6,NA # why\n")
  assert missing.columns[1][-1] == "NA" and missing.notes
  quoted = table(tmp_path, "a,b\n" + body + '6,"6 # why"\n')
  assert quoted.columns[1][-1] == "6 # why" and not quoted.notes
  short = table(tmp_path, "a,b\n" + body + "6 # total\n7,7 # why\n")  # a row of another width stays as it is
  assert short.notes[0] == "comments left out behind line 8: '# why'" and short.columns[1][-1] == "7"
  asked = table(tmp_path, "a;b\n1;2 # why\n3;4\n", separator=";")
  assert list(asked.columns[1]) == ["2", "4"]


def test_of_comments_behind_cells_twenty_places_are_looked_at():
  for num, is_found in ((20, True), (21, False)):
    line = "a,1" + "".join(f" #{'N/A' if i < num - 1 else ' why'}" for i in range(num))
    assert (text_tables._head(line) != line) == is_found
  assert text_tables._head("a,1 # why # not") == "a,1"


def test_comments_among_rows_are_said(tmp_path):
  one = table(tmp_path, "# names\na,b\n1,2\n# " + "w" * 60 + "\n3,4\n")
  assert one.notes[0].startswith("a line that begins with # left out as comments below the first row, line 4: '# www")
  assert len(one.notes[0]) < 140 and list(one.places) == [3, 5]
  two = table(tmp_path, "# names\na,b\n1,2\n# x\n3,4\n# y\n")
  assert two.notes == ("2 lines that begin with # left out as comments below the first row, first line 4: '# x'",)


def test_a_comment_ends_a_line_between_spaces_but_is_no_first_cell(tmp_path):
  assert text_tables._cells_between_spaces('1 "a ""b"" c" 3 # why 4') == ["1", 'a "b" c', "3"]
  assert text_tables._cells_between_spaces("#1 2") == ["#1", "2"]
  assert text_tables._cells_between_spaces('"" 2') == ["", "2"]


def test_the_names_in_the_last_comment(tmp_path):
  for comment, names in (("# x,y\n", ("x", "y")), ("# why\n#x,y\n", ("x", "y")), ("# x,y\n# \n", ("x0", "y")),
                         ("#,y\n", ("#", "y"))):
    assert table(tmp_path, comment + "1,2\n3,4\n").names == names


def test_a_quote_without_its_end_is_refused_at_its_line(tmp_path):
  with pytest.raises(InputError, match="cannot be read as a table: the quote in line 3 has no end"):
    table(tmp_path, 'a,b\n1,2\n"3,4\n5,6\n')
  whole = table(tmp_path, 'a,b\n1,"x\n\ny"\n3,4\n')
  assert list(whole.places) == [2, 5] and whole.columns[1][0] == "x\ny"


def test_spaces_after_separators_are_no_part_of_cells(tmp_path):
  grid = table(tmp_path, 'a, "b, c"\n1, "2"\n3, 4\n')
  assert grid.names == ("a", "b, c") and list(grid.columns[1]) == ["2", "4"]
  tabs = table(tmp_path, 'a\t "b\n1\t 2\n3\t 4\n')
  assert tabs.names == ("a", '"b') and list(tabs.columns[1]) == ["2", "4"]


def test_single_quotes_are_quotes_where_the_file_begins_with_one(tmp_path):
  assert table(tmp_path, "'a','b'\n'1','2'\n").names == ("a", "b")
  assert table(tmp_path, "a,b\n'1','2'\n").columns[0][0] == "'1'"


@pytest.mark.parametrize(("lines", "separator"), [
  (["a;b", "1,5;2"], ";"), (["a b", "1 2"], " "), (["a\tb", "1\t2"], "\t"), (["a,b", "1,2"], ","),
  (["a|b;c", "1|2;3"], ";"), (["abc", "def"], ","), (["a,b c", "1,2"], ",")])
def test_the_separator_that_makes_most_numbers(lines, separator):
  assert text_tables._find_separator(lines) == separator


def test_a_separator_scores_by_its_regular_lines_and_numbers():
  score = text_tables._score
  assert score(["a,b", "1,2"], ",") == 2.5 and score(["a,b", "1,x"], ",") == 2.0 and score(["1,2"], ",") == 2.5
  assert score(["title", "1,2", "3,4"], ",") == 2.0  # names are not as many
  assert score(["1", "2"], ",") == 0 and score(["a,b", ","], ",") == 1.5
  # Eight of ten lines are enough, and two lines of few may differ.
  assert score(["1,2"] * 8 + ["1"] * 2, ",") == 2.5 and score(["1,2"] * 12 + ["1"] * 3, ",") == 2.5
  assert score(["1,2"] * 11 + ["1"] * 3, ",") == 0 and score(["1,2"] * 3 + ["1"] * 2, ",") == 2.5
  assert score(["1,2"] * 4 + ["1"] * 3, ",") == 0
  # Of two widths in as many lines the larger one counts.
  assert score(["1", "1,2"], ",") == 2.0 and score(['1,"2'] * 2, ",") > 0


def test_the_first_two_hundred_lines_tell_the_separator(tmp_path):
  lines = ["1;2"] * 160 + ["x"] * 40
  assert table(tmp_path, "\n".join([*lines, *["x"] * 20]), separator=None).separator == ";"
  assert text_tables.NUM_SNIFFED == 200


# --- files and tables --------------------------------------------------------------------------------------------


def test_what_an_archive_unpacks_to_is_bounded_and_said(tmp_path):
  with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
    archive.writestr("[Content_Types].xml", b"0" * 600)
    archive.writestr("b", b"0" * 424)
  table_files._check_unpacked(tmp_path / "t.xlsx", 1024)
  with pytest.raises(InputError, match="unpacks to more than 0 GB"):
    table_files._check_unpacked(tmp_path / "t.xlsx", 1023)
  assert table_files.Reading().max_bytes == tables.MAX_NPZ_BYTES == 4 * 2**30


def test_large_parts_of_a_workbook_that_are_almost_nothing_when_packed_are_refused(tmp_path, monkeypatch):
  path = tmp_path / "t.xlsx"
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("[Content_Types].xml", b"x")
    archive.writestr("xl/sheet1.xml", b" " * 100_000)
  with zipfile.ZipFile(path) as archive:
    ratio = 100_000 / archive.getinfo("xl/sheet1.xml").compress_size
  assert table_files.LARGE_PART == 100 * 2**20 and table_files.MAX_RATIO == 200 < ratio
  table_files._check_unpacked(path, 1 << 20)  # it is small
  monkeypatch.setattr(table_files, "LARGE_PART", 99_999)
  with pytest.raises(InputError, match="^cannot be read as xlsx: 'xl/sheet1.xml' unpacks to more than 200 times its"):
    table_files._check_unpacked(path, 1 << 20)
  monkeypatch.setattr(table_files, "MAX_RATIO", ratio)
  table_files._check_unpacked(path, 1 << 20)


def test_archives_of_numbers_are_bounded_and_their_kinds_told(tmp_path):
  np.savez(tmp_path / "t.npz", x=np.arange(8.0).reshape(4, 2), y=np.arange(4), name=np.array(["a", "b", "c", "d"]),
           label=np.array([b"\xe9", b"b", b"c", b"d"]))
  read_npz = table_files._read_npz
  grid = read_npz(tmp_path / "t.npz", table_files.Reading())
  assert grid.names == ("x0", "x1", "name", "label", "y") and list(grid.places) == [1, 2, 3, 4]
  assert list(grid.columns[1]) == [1, 3, 5, 7] and list(grid.columns[3]) == ["\u00e9", "b", "c", "d"]
  num_bytes = 64 + 32 + 16 + 4
  read_npz(tmp_path / "t.npz", table_files.Reading(max_bytes=num_bytes))
  with pytest.raises(InputError, match="holds more than 0 GB of numbers"):
    read_npz(tmp_path / "t.npz", table_files.Reading(max_bytes=num_bytes - 1))
  np.savez(tmp_path / "cube.npz", x=np.zeros((2, 2, 2)))
  with pytest.raises(InputError, match="array 'x' has 3 dimensions, expected 1"):
    read_npz(tmp_path / "cube.npz", table_files.Reading())
  np.savez(tmp_path / "odd.npz", x=np.zeros(3), y=np.zeros(4))
  with pytest.raises(InputError, match="arrays differ in length: x 3, y 4"):
    read_npz(tmp_path / "odd.npz", table_files.Reading())


def test_frames_become_columns_by_their_types(tmp_path, monkeypatch):
  frame = pd.DataFrame({
    "n": pd.array([1, None], "Int64"), "b": [True, False], "s": ["x", None], "": [1.5, 2.5],
    "t": pd.to_datetime(["2020-01-01T02:00+02:00", None], utc=True), "z": [1 + 2j, 3j]})
  plain = {name: table_files._plain(frame[name]) for name in frame}
  np.testing.assert_array_equal(plain["n"], [1, np.nan])
  assert plain["b"].dtype == object and plain["z"].dtype == object and plain["s"][0] == "x"
  assert plain["t"][0] == np.datetime64("2020-01-01T00:00") and plain["t"].dtype.kind == "M"
  monkeypatch.setattr(pd, "read_parquet", lambda path: frame.rename_axis("row"))
  grid = table_files._read_parquet(tmp_path / "t.parquet", table_files.Reading())
  assert grid.names == ("row", "n", "b", "s", "column 5", "t", "z") and list(grid.places) == [1, 2]


def test_sheets_of_a_workbook(tmp_path):
  openpyxl = pytest.importorskip("openpyxl")
  book = openpyxl.Workbook()
  book.active.title = "one"
  for row in (["a ", "b"], [1, 2.5], [" x", datetime.datetime(2020, 1, 1)], [None, None]):
    book.active.append(row)
  other = book.create_sheet("two")
  other.append(["c", "d"])
  other.append([3, 4])
  path = tmp_path / "t.xlsx"
  book.save(path)

  def read_sheet(sheet=None, place=path):
    return table_files.read(place, table_files.Reading(sheet=sheet))
  first = read_sheet()
  assert first.names == ("a", "b") and first.word == "row" and list(first.places) == [2, 3]
  assert list(first.columns[0]) == [1, "x"] and first.columns[1][1] == datetime.datetime(2020, 1, 1)
  assert first.notes == ("sheet 'one' is read, not 'two'; --sheet chooses",)
  assert first.elsewhere == "; sheet 'one' was read, --sheet takes another one: 'two'"
  second = read_sheet("two")
  assert second.names == ("c", "d") and second.notes == () and second.elsewhere == ""
  with pytest.raises(InputError, match="--sheet: no sheet 'q', expected one of 'one', 'two'"):
    read_sheet("q")
  empty = openpyxl.Workbook()
  empty.save(tmp_path / "e.xlsx")
  with pytest.raises(InputError, match="^the file is empty$"):
    read_sheet(place=tmp_path / "e.xlsx")
  empty.create_sheet("two")
  empty.save(tmp_path / "e.xlsx")
  with pytest.raises(InputError, match="^the file is empty; sheet 'Sheet' was read, --sheet takes another one: 'two'$"):
    read_sheet(place=tmp_path / "e.xlsx")
  (tmp_path / "n.xlsx").write_text("no archive")
  with pytest.raises(InputError, match=r"^is no workbook \(.xlsx\): "):
    read_sheet(place=tmp_path / "n.xlsx")


def test_what_is_no_file_to_read_is_said(tmp_path):
  for name, message in (("none.csv", "no such file"), (".", "is a folder, expected a file"),
                        ("t.odt", "unknown kind of file '.odt', expected one of .csv, .tsv")):
    if name == "t.odt":
      (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=message):
      table_files.read(tmp_path / name, table_files.Reading())


def test_columns_of_words_are_refused_or_split(tmp_path):
  path = csv_file(tmp_path, "k,e,b\n" + "".join(f"{'ab'[i % 2]},,{i}\n" for i in range(6)))
  with pytest.raises(tables.TableError,
    match="column 'k' holds no number: line 2 has 'a'; --categories makes columns of 0"):
    tables.read_table(path, features=["k"])
  with pytest.raises(tables.TableError, match="column 'e' holds no number$"):
    tables.read_table(path, features=["e"])
  found = tables.read_table(path, features=["k"], categories=["k"])
  assert found.features == ("k_a", "k_b") and found.x.tolist()[:2] == [[1, 0], [0, 1]]
  assert found.notes == ("column 'k' became 2 columns of 0 and 1: 'k_a', 'k_b'",)
  with pytest.raises(tables.TableError, match="--categories: 'k' is none of --features"):
    tables.read_table(path, features=["e"], categories=["k"])
  with pytest.raises(tables.TableError, match="'k' is both the target and one of --categories"):
    tables.read_table(path, target="k", categories=["k"])
  left = tables.read_table(path, categories=["k"])
  assert left.notes[-1] == "column 'e' left aside: it holds no number" and left.target == "b"
  with pytest.raises(tables.TableError,
    match="line 2, column 'k': 'a' is no number; no other column left to explain 'b'"):
    tables.read_table(path)


@pytest.mark.parametrize("wanted", [{"target": "k"}, {"target": "b", "weights": "k"}, {"target": "b", "sigma": "k"}])
def test_no_target_and_no_weight_is_said_to_be_split(tmp_path, wanted):
  path = csv_file(tmp_path, "k,n,b\n" + "".join(f"{'ab'[i % 2]},{i * i},{i}\n" for i in range(6)))
  with pytest.raises(tables.TableError, match="column 'k' holds no number: line 2 has 'a'$"):
    tables.read_table(path, **wanted)
  path = csv_file(tmp_path, "k,n,b\n" + "".join(f"{'aaaaa1'[i]},{i * i},{i}\n" for i in range(6)))
  with pytest.raises(tables.TableError, match=r"more such rows\); --drop_missing leaves such rows out$"):
    tables.read_table(path, **wanted)


def test_one_target_of_a_file(tmp_path):
  path = csv_file(tmp_path, "a,b,c\n" + "".join(f"{i},{i * i},{i**3}\n" for i in range(6)))
  assert tables.read_table(path).target == "c" and tables.read_table(path, target="a").target == "a"
  assert tables.read_table(path, target="a").features == ("b", "c")
  assert [table.target for table in tables.read_tables(path, tables.Request("a,b"))] == ["a", "b"]
  for request, message in ((tables.Request(weights="a", sigma="b"), "expected one of them, a row has one weight"),
                           (tables.Request(decimal=";"), "--decimal: expected . or ,"),
                           (tables.Request(time_unit="weeks"), "--time_unit: unknown unit 'weeks'"),
                           (tables.Request(separator="x"), "--separator: expected one of tab ; | , space"),
                           (tables.Request("a", features=["a"]), "'a' is both the target and a feature"),
                           (tables.Request("a,a"), "--target: a column is named twice, 'a'"),
                           (tables.Request("q"), "--target: no column 'q', expected one of 'a', 'b', 'c'"),
                           (tables.Request("a", weights="a"), "'a' is both the target and the column of --weights")):
    with pytest.raises(InputError, match=message.replace("|", r"\|")):
      tables.read_tables(path, request)


def csv_file(tmp_path, text):
  (tmp_path / "t.csv").write_text(text)
  return str(tmp_path / "t.csv")


def test_five_rows_are_points_enough(tmp_path):
  rows = "".join(f"{i},{i * i}\n" for i in range(5))
  assert len(tables.read_table(csv_file(tmp_path, "a,b\n" + rows)).y) == 5
  with pytest.raises(tables.TableError, match="expected at least 5 rows, got 4"):
    tables.read_table(csv_file(tmp_path, "a,b\n" + rows[:-5]))


@pytest.mark.parametrize(("num", "is_usable"), [(1, False), (2, True), (50, True), (51, False)])
def test_a_category_has_two_to_fifty_classes(tmp_path, num, is_usable):
  path = csv_file(tmp_path, "k,b\n" + "".join(f"c{i % num},{i}\n" for i in range(60)))
  if not is_usable:
    with pytest.raises(tables.TableError, match=f"expected 2 to 50 different values in column 'k', got {num}"):
      tables.read_table(path, categories=["k"])
    return
  found = tables.read_table(path, categories=["k"])
  assert found.x.shape == (60, num) and (found.x.sum(axis=1) == 1).all() and found.features[0] == "k_c0"


def test_three_columns_of_one_mark_are_told_of_and_the_others_counted(tmp_path):
  def notes(num):
    names = ";".join(f"c{i}" for i in range(num))
    body = "".join(";".join([f"{i},5"] * num) + "\n" for i in range(6))
    return tables.read_table(csv_file(tmp_path, names + "\n" + body)).notes
  assert len(notes(3)) == 3 and all("is read so that '0,5' is 0.5" in note for note in notes(3))
  assert len(notes(4)) == 4 and notes(4)[-1] == "1 more columns are read likewise: 'c3'"
  assert notes(5)[-1] == "2 more columns are read likewise: 'c3', 'c4'"


def test_weights_are_shares_of_the_largest():
  place = "row {}".format
  weigh = tables._Weigher("w", "--weights").weigh
  np.testing.assert_array_equal(weigh(np.array([0.0, 2, 4]), place), [0, 0.5, 1])
  sigma = tables._Weigher("s", "--sigma").weigh
  np.testing.assert_array_equal(sigma(np.array([1.0, 2, 4]), place), [1, 0.25, 0.0625])
  with pytest.raises(InputError, match="row 1, column 's': --sigma expects numbers above 0, got 0"):
    sigma(np.array([1.0, 0, 0]), place)
  with pytest.raises(InputError, match="row 2, column 'w': --weights expects numbers of at least 0, got -1"):
    weigh(np.array([1.0, 0, -1]), place)
  with pytest.raises(InputError, match="--weights: every number of column 'w' is 0"):
    weigh(np.zeros(3), place)


def test_bad_cells_are_counted_by_their_rows(tmp_path):
  rows = "".join(f"{i},{i},{i * i}\n" for i in range(6))
  one = csv_file(tmp_path, "a,b,c\n" + rows + "x,y,1\n")
  with pytest.raises(tables.TableError, match="line 8, column 'a': expected a finite number, got 'x'; --drop_missing"):
    tables.read_table(one)
  assert tables.read_table(one, drop_missing=True).notes == (
    "1 of 7 rows left out: no finite number in a used column (1 with 'x')",)
  two = csv_file(tmp_path, "a,b,c\n" + rows + "1,,1\n1,inf,z\n")
  with pytest.raises(tables.TableError, match=r"got a missing value \(and 1 more such rows, among them 'inf'\);"):
    tables.read_table(two)
  assert tables.read_table(two, drop_missing=True).notes[0].startswith("2 of 8 rows left out")


def test_long_cells_and_names_are_cut_in_messages(tmp_path):
  rows = "".join(f"{i},{i * i}\n" for i in range(6))
  with pytest.raises(tables.TableError) as caught:
    tables.read_table(csv_file(tmp_path, "a,b\n" + rows + "x" * 200 + ",1\n"))
  assert len(str(caught.value).partition("got ")[2].partition(";")[0]) == 63


def test_names_in_the_units_of_headers():
  pairs = column_units.read_pairs(["x = m", "a=b=s", "header"])
  assert pairs == ({"x": "m", "a=b": "s"}, True) and column_units.read_pairs(["x=m"]) == ({"x": "m"}, False)
