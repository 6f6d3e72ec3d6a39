"""How text becomes numbers: one rule for a column and a file, said where another reader might decide otherwise."""

import decimal

from hypothesis import given, strategies as st
import numpy as np
import pytest

from symformer_jax.commands import cells
from symformer_jax.commands.cells import COMMA, POINT, read_columns, read_number


def column(*texts):
  found = np.empty(len(texts), object)
  found[:] = texts
  return found


def read(*columns, **options):
  return read_columns([column(*texts) for texts in columns], **options)


@pytest.mark.parametrize(("text", "by_point", "by_comma"), [
  ("1.5", 1.5, None), ("1,5", None, 1.5), ("1,234", 1234, 1.234), ("1.234", 1.234, 1234), ("0,123", None, 0.123),
  ("1,234,567", 1234567, None), ("1.234,5", None, 1234.5), ("1,234.5", 1234.5, None), ("12,3456", None, 12.3456),
  ("-1 234.5", -1234.5, None), ("1'234", 1234, 1234), ("1\u00a0234", 1234, 1234), ("12,34,567", 1234567, None),
  ("\u22122", -2, -2), ("12.3 %", 0.123, None), ("5%", 0.05, 0.05), ("1.5D+02", 150, None), ("1,5e-3", None, 0.0015),
  ("inf", np.inf, np.inf), ("5,", None, None), ("1,23,4", None, None), ("1_000", None, None), ("0x10", None, None),
  ("5 kg", None, None), ("%", None, None), ("\u0663", None, None)])
def test_numbers_by_either_decimal_mark(text, by_point, by_comma):
  assert (read_number(text, POINT), read_number(text, COMMA)) == (by_point, by_comma)


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([POINT, COMMA]))
def test_any_float_is_read_back_to_the_last_bit(value, mark):
  assert read_number(repr(value).replace(POINT, mark), mark) == value


@given(st.integers(-10**15, 10**15), st.integers(0, 99), st.booleans())
def test_grouped_numbers_are_read_back(whole, hundredths, is_german):
  text = f"{whole:,}.{hundredths:02}"
  if is_german:
    text = text.translate({ord(POINT): COMMA, ord(COMMA): POINT})
  assert read_number(text, COMMA if is_german else POINT) == float(f"{whole}.{hundredths:02}")


def test_arrays_of_numpy_are_read_by_their_type():
  arrays = [np.arange(3.0) / 3, np.arange(3, dtype=np.int8), np.array([True, False, True]),
            np.array(["2020-01-01", "2020-02-03", "NaT"], "M8[ns]"), np.array([60, 120, 90], "m8[s]")]
  thirds, whole, truths, dates, spans = read_columns(arrays)
  np.testing.assert_array_equal(thirds.values, np.arange(3) / 3)
  np.testing.assert_array_equal(whole.values, np.arange(3))
  np.testing.assert_array_equal(truths.values, [1, 0, 1])
  np.testing.assert_array_equal(dates.values, [0, 33, np.nan])
  np.testing.assert_array_equal(spans.values, [1, 2, 1.5])
  assert dates.is_time and spans.is_time and not truths.is_time
  assert (truths.note, spans.note) == ("is read as 1 for true and 0 for false", "holds times, read as minutes")


def test_a_column_tells_for_the_others_of_its_file():
  for telling, expected in (("1,5", 1.234), ("1.5", 1234), ("1,234,567", 1234), ("0,5", 1.234)):
    plain, open_ = read([telling, "2"], ["1,234", "2,345"])
    assert open_.values[0] == expected and not plain.fault
    assert "'1,234' is read" not in open_.note and f"'1,234' is {expected:g}" in open_.note
    assert "--decimal=" in open_.note  # of the column that does not tell itself
  [_, dotted] = read(["1,5"], ["1.234"])
  assert dotted.values[0] == 1234
  assert read(["1.234"])[0].values[0] == 1.234 and not read(["1.234"])[0].note  # as any program has it


def test_where_nothing_tells_the_separator_does_or_it_is_asked_for():
  assert read(["1,234", "2,345"], separator=",")[0].values[0] == 1234
  assert read(["1,234", "2,345"], separator=";")[0].values[0] == 1.234
  for options, texts in (({"separator": "\t"}, ["1,234"]), ({"separator": ";"}, ["1,234", "950"])):
    [found] = read(texts, **options)
    assert found.fault.startswith("may be read in two ways: '1,234' is 1.234 or 1234; --decimal=. or --decimal=,")
    assert np.isnan(found.values).all() and found.is_numeric
    assert [read(texts, decimal=mark, **options)[0].values[0] for mark in (POINT, COMMA)] == [1234, 1.234]


def test_text_with_a_number_here_and_there_tells_nothing():
  _, found = read(["x", "y", "3,5"], ["1,234", "2,345", "1"], separator=",")
  assert found.values[0] == 1234


def test_both_marks_in_one_column_are_refused():
  [found] = read(["1.5", "2,5", "3"])
  assert found.fault == "mixes decimal points and decimal commas, such as '1.5' and '2,5'"
  [found] = read(["1.5", "2,5", "3"], decimal=POINT)
  assert not found.fault and np.isnan(found.values[1]) and found.first_bad() == 1


def test_percent_is_a_hundredth_in_a_whole_column_or_refused():
  [found] = read(["5 %", "12.5 %", "0"])
  np.testing.assert_array_equal(found.values, [0.05, 0.125, 0])
  assert found.note == "is read so that '5 %' is 0.05"
  assert "with and without a percent sign, such as '7' and '5%'" in read(["5%", "7"])[0].fault
  assert "such as '0.5' and '5%'" in read(["5%", 0.5])[0].fault


@pytest.mark.parametrize(("text", "decimal", "value"), [
  ("$1,234.50", POINT, 1234.5), ("-$5", POINT, -5), ("$ -5", POINT, -5), ("12 \u20ac", POINT, 12),
  ("1.234,5 \u20ac", COMMA, 1234.5), ("\u00a31\u00a0000", POINT, 1000), ("+\u00a55e3", POINT, 5000),
  ("$", POINT, None), ("$5$", POINT, None), ("-$-5", POINT, None), ("US$5", POINT, None), ("5%$", POINT, None),
  ("\u2212$5", POINT, -5)])
def test_money(text, decimal, value):
  assert read_number(text, decimal) == value


def test_money_of_one_currency_in_a_column():
  [found] = read(["$1,250.50", "-$3", "$7"])
  np.testing.assert_array_equal(found.values, [1250.5, -3, 7])
  assert found.note == "is read so that '$1,250.50' is 1250.5"
  for dollars in ("$5", "\u2212$5"):
    assert read([dollars, "7 \u20ac"])[0].fault == f"mixes currencies, such as {dollars!r} and '7 \u20ac'"
  [text] = read(["costs $", "$ a piece"])
  assert not text.is_numeric


def test_what_is_no_number_is_found():
  [found] = read(["1", "NA", "x", "-", None, float("nan"), 2.5, 3, 10**400])
  np.testing.assert_array_equal(found.values, [1, *[np.nan] * 5, 2.5, 3, np.inf])
  assert found.first_bad() == 2
  assert not read(["a", "b"])[0].is_numeric and read(["", "NA"])[0].first_bad() is None
  [truths] = read(["True", "false", ""])
  np.testing.assert_array_equal(truths.values, [1, 0, np.nan])
  # A cell of a workbook among numbers that are none is no number either.
  for mixed in ([1, 2, True, 4], ["1", False, "2.5"]):
    assert read(mixed)[0].fault.startswith("mixes truth values, such as '")
    assert read(mixed)[0].fault.endswith("', and numbers")
  assert read([1, 2, "true", 4])[0].first_bad() == 2 and not read([1, True, 0, None])[0].fault
  assert read([1, "true", 0])[0].values.tolist() == [1, 1, 0]
  # Wider numbers than those of double precision are infinite, without a word of NumPy's.
  assert read_columns([np.array([1, 2]) * np.longdouble("1e4000")])[0].values.tolist() == [np.inf] * 2
  assert cells.as_category(1.0) == cells.as_category("1") == "1" and cells.as_category("NA") is None


@pytest.mark.parametrize("rows", [["9007199254740993", "5"], [2**53 + 1, 5], np.array([2**53 + 1, 5])])
def test_whole_numbers_that_lose_digits_are_told_of(rows):
  [found] = read_columns([rows if isinstance(rows, np.ndarray) else np.array(rows, object)])
  assert found.values.tolist() == [2**53, 5]
  assert found.note == "is rounded to double precision: 9007199254740993 is read as 9007199254740992"
  for whole in ([str(2**53), "5"], ["9007199254740994", "1e300"], ["inf", "5"], [10**400, 5]):
    assert not read(whole)[0].note


def test_numbers_so_small_that_they_are_read_as_0_are_told_of():
  for cell in ("1e-400", "-0.5E-400", " .00" + "0" * 400 + "1 ", decimal.Decimal("1e-400")):
    [found] = read_columns([column("0", "3", cell, "2e-400")])
    assert found.values.tolist() == [0, 3, 0, 0]
    assert found.note.startswith("is rounded to double precision: ") and found.note.endswith(" is read as 0")
    assert str(cell).strip()[:6] in found.note
  zeros = column("0", "0.00", "-0", "0e5", "0E-12", " 0 ", "1e-300", 0, 0.0, False, None, decimal.Decimal("0.00"))
  assert "rounded" not in read_columns([zeros])[0].note
  assert "rounded" not in read(["0 %", "0.0%", "1 %"])[0].note and not read(["0", "0e5", "1e-300"])[0].note


def test_decimals_of_which_different_ones_are_read_as_one_number_are_told_of():
  found = read([f"1.{i:020d}" for i in range(3)], ["0.5", "0.50", "0.50000000000000000000"], ["1", "2", "3"])
  assert [column.note for column in found] == [
    "is rounded to double precision: 1.00000000000000000000 and 1.00000000000000000001 are read as the same number",
    "", ""]
  [found] = read(["7", "2459000.1234567890000", "7.0", "2459000.1234567890010"])
  assert "2459000.1234567890000 and 2459000.1234567890010 are" in found.note
  # Not of one number in several spellings, nor of long ones each of which has a value of its own.
  for texts in (["0.1", "1e-1", "0.1000000000000000000", "0.1"], ["0.12345678901234567890", "0.5", "0.5"],
                ["5", "1 000.000000000000000", "1 000.000000000000001"], ["0.3", "nan", "inf", "inf"]):
    assert "rounded" not in read(texts)[0].note
  mixed = column("0.1", "0.10000000000000000001", 0.1, None, decimal.Decimal("0.1"))
  assert read_columns([mixed])[0].note.endswith("0.1 and 0.10000000000000000001 are read as the same number")


@pytest.mark.parametrize(("cell", "said"), [
  ("<0.01", "below a limit of detection"), (" < 5,2", "below a limit of detection"),
  ("\u22640.5", "below a limit of detection"), ("<=3", "below a limit of detection"),
  (">100", "above a limit of measurement"), ("\u2265 1e3", "above a limit of measurement"),
  ("<", ""), ("<low", ""), ("0.01", ""), ("", ""), (None, ""), (0.5, "")])
def test_limits_are_known_by_their_sign_before_a_number(cell, said):
  assert cells.describe_limit(cell) == said
