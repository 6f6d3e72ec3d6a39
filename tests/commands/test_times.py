"""Dates and times as numbers: units, formats, and what could be two dates."""

import datetime

import numpy as np
import pytest

from symformer_jax.commands import times


def read(*texts):
  found = np.empty(len(texts), object)
  found[:] = texts
  return times.read(found)


@pytest.mark.parametrize(("texts", "values", "note"), [
  (["2019-07-02 12:00", "2020-07-02", "2022-01-01"], [2019.5, 2020.5, 2022.0],
   "holds dates, read as decimal years: '2019-07-02 12:00' is 2019.5 (--time_unit=days counts days)"),
  (["2020-02-28", "2020-03-01", None], [0, 2, np.nan], "holds dates, read as days since 2020-02-28"),
  (["28.02.2020", "01.03.2020"], [0, 2], "holds dates, read as days since 2020-02-28"),
  (["02/28/2020 1:00 PM", "03/01/2020 1:00 AM"], [0, 1.5 * 24], "holds dates, read as hours since 2020-02-28 13:00:00"),
  (["28/02/2020", "01/03/2020", "soon"], [0, 2, np.nan], "holds dates, read as days since 2020-02-28"),
  (["1 Mar 2020", "4 Mar 2020"], [0, 3], "holds dates, read as days since 2020-03-01"),
  (["2020-01", "2020-03"], [0, 60], "holds dates, read as days since 2020-01-01"),
  (["2020-01-01T00:00:00Z", "2020-01-01T05:00:00+02:00"], [0, 3], "holds dates, read as hours since 2020-01-01"),
  (["2020-01-01T00:00:00.5", "2020-01-01T00:01:00"], [0, 59.5],
   "holds dates, read as seconds since 2020-01-01 00:00:00.500000"),
  (["2020-01-01T00:00:00.000000000", "2020-01-01T00:00:00.000000025Z"], [0, 25e-9],
   "holds dates, read as seconds since 2020-01-01"),
  (["13.01.2020 00:00:00.123456789", "13.01.2020 00:00:01,123456799"], [0, 1 + 1e-8],
   "holds dates, read as seconds since 2020-01-13 00:00:00.123456789"),
  (["2020-01-01 00:00:01,500", "2020-01-01T00:00:03"], [0, 1.5],
   "holds dates, read as seconds since 2020-01-01 00:00:01.500000"),
  (["13.01.2020 00:00:01,5", "13.01.2020 00:00:03,25"], [0, 1.75],
   "holds dates, read as seconds since 2020-01-13 00:00:01.500000"),
  (["0:00:01,500", "0:00:03"], [1.5, 3], "holds times, read as seconds"),
  ([datetime.datetime(2020, 1, 1), "2020-01-02", datetime.date(2020, 1, 4), None], [0, 1, 3, np.nan],
   "holds dates, read as days since 2020-01-01"),
  ([datetime.datetime(2020, 1, 1), "13.01.2020"], [0, 12], "holds dates, read as days since 2020-01-01"),
  (["1:30", "2:45"], [1.5, 2.75], "holds times, read as hours"),
  (["0:00:30", "0:01:30.5"], [30, 90.5], "holds times, read as seconds"),
  (["1 days 12:00:00", "3 days 00:00:00"], [1.5, 3], "holds times, read as days"),
  ([datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 3, 12)], [0, 2.5],
   "holds dates, read as days since 2020-01-01"),
  ([datetime.time(1, 30), datetime.time(3)], [1.5, 3], "holds times, read as hours"),
])
def test_values_and_what_is_said(texts, values, note):
  found = read(*texts)
  np.testing.assert_allclose(found.values, values, rtol=1e-12)
  assert (found.note, found.fault) == (note, "")


def test_arrays_of_moments_as_numpy_counts_them():
  days = np.array(["2001-01-01", "2001-01-11", "NaT"], "datetime64[D]")
  np.testing.assert_array_equal(times.read(days).values, [0, 10, np.nan])
  np.testing.assert_array_equal(times.read(np.diff(days)).values, [10, np.nan])
  nanoseconds = np.array(["2001-01-01T00:00:00.000000003", "2001-01-01T00:00:00.000000007", "NaT"], "datetime64[ns]")
  np.testing.assert_allclose(times.read(nanoseconds).values, [0, 4e-9, np.nan])
  np.testing.assert_allclose(times.read(np.diff(nanoseconds)).values, [4e-9, np.nan])
  # Years beyond those that nanoseconds can count.
  years = np.array(["1500-01-01", "2500-01-01"], "datetime64[s]")
  np.testing.assert_array_equal(times.read(years).values, [1500, 2500])


def test_days_that_could_be_months_are_refused_unless_a_later_one_tells():
  found = read("01/02/2020", "03/04/2020")
  assert found.fault.startswith("holds dates that may be day and month or month and day, such as '01/02/2020'")
  assert not read("01/02/2020", "13/04/2020").fault and not read("02/02/2020", "03/03/2020").fault
  many = [f"{1 + i % 12:02}/{1 + i % 7:02}/2020" for i in range(80)]
  assert read(*many).fault and not read(*many, "30/01/2020").fault
  assert "such as '03/04/2020';" in read("02/02/2020", "03/04/2020").fault  # the other one is the same either way


def test_two_forms_of_dates_that_read_as_many_cells_are_told_of_as_such():
  assert read("2021-01-15", "16.1.2021").fault == (
    "mixes dates of two forms, such as '2021-01-15' and '16.1.2021'; write them as 2020-12-31")


@pytest.mark.parametrize("texts", [
  ["a", "b"], ["1", "2"], ["A-1", "B-2"], ["2020-01-01", "x", "y"], ["1/2", "3/4"], ["2020-13-45", "2020-99-99"],
  ["", None], ["Mayor", "June bug"]])
def test_other_columns_are_none_of_these(texts):
  found = read(*texts)
  assert found is None or np.isnan(found.values).all()


@pytest.mark.parametrize(("texts", "unit", "values", "note"), [
  (["2019-12-31", "2020-12-31", "2022-12-31"], "days", [0, 366, 1096], "holds dates, read as days since 2019-12-31"),
  (["2020-01-01", "2020-01-02"], "hours", [0, 24], "holds dates, read as hours since 2020-01-01"),
  (["2020-01-01", "2020-07-02"], "years", [2020, 2020.5], "holds dates, read as decimal years: '2020-01-01' is 2020"),
  (["0:30", "48:00"], "minutes", [30, 2880], "holds times, read as minutes"),
  (["12:00", "60:00"], "years", [0.5, 2.5], "holds times, read as days; years are for dates alone")])
def test_the_unit_that_is_asked_for(texts, unit, values, note):
  cells = np.empty(len(texts), object)
  cells[:] = texts
  found = times.read(cells, unit)
  np.testing.assert_allclose(found.values, values, rtol=1e-12)
  assert found.note == note
  if unit != "years":
    moments = np.array([0, 3_600], "datetime64[s]")
    assert times.read(moments, unit).note.startswith(f"holds dates, read as {unit} since 1970-01-01")


@pytest.mark.parametrize(("texts", "is_of_dates"), [
  (["2019-07-02 12:00", "2020-07-02", "2022-01-01", "1999-12-31"], True),
  (["2020-02-28", None, "2020-03-01", "2020-02-27"], True),
  (["2020-01-01T00:00:00.000000000", "2020-01-01T00:00:00.000000025Z"], True),
  (["0001-01-05", "0001-01-07", "0001-01-06"], True),
  (["1:30", "0:15", "26:00"], False)])
def test_a_part_is_counted_as_the_whole_was(texts, is_of_dates):
  whole = read(*texts)
  assert whole.scale.is_of_dates == is_of_dates
  for text, value in zip(texts, whole.values, strict=True):
    cells = np.array([text], object)
    if text is not None:
      part = times.read(cells, whole.scale.unit, start=whole.scale.start)
      assert part.values.tolist() == [value] and part.scale == whole.scale


def test_moments_of_another_resolution_are_counted_from_the_same_start():
  start = np.datetime64("2020-01-01", "ns")
  found = times.read(np.array(["2020-01-03", "9999-01-01"], "datetime64[s]"), "days", start=start)
  assert found.values.tolist() == [2, (datetime.date(9999, 1, 1) - datetime.date(2020, 1, 1)).days]
