"""DataFrames and arrays that hold no numbers are refused, before NumPy fails at them or makes numbers of dates."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

from symformer_jax import testing
from symformer_jax.engine.rows import check_dataset
from symformer_jax.errors import InputError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.frames import check_numeric
from symformer_jax.inference import search
from symformer_jax.refinement.refine import refine


@pytest.mark.parametrize(("cells", "message"), [
  (pd.date_range("2020-01-01", periods=4), r"X: column 'b' holds dates or times \(datetime64\[.s\]\); give numbers"),
  (pd.to_timedelta(range(4), unit="h"), "X: column 'b' holds dates or times"),
  (pd.period_range("2020-01-01", periods=4), "X: column 'b' holds dates or times"),
  (["1", "x", "2", "3"], "X: column 'b' holds 'x' in row 1, which is no number; give numbers, such as pandas.get_d"),
  (pd.Categorical(list("abab")), "X: column 'b' holds 'a' in row 0"),
  ([1, 2j, 3, 4], r"X: column 'b' holds complex numbers \(Complex data not supported\); give real and"),
  (np.array([1, 2j, 3, 4], object), "X: column 'b' holds 2j in row 1"),
  (["1", "nano", "2", "3"], "X: column 'b' holds 'nano' in row 1"),
  ([1, 2, {}, 3], "X: column 'b' holds {} in row 2"),
])
def test_what_is_no_number_is_named(cells, message):
  with pytest.raises(InputError, match=message):
    check_numeric(pd.DataFrame({"a": np.arange(4), "b": cells}), "X")
  with pytest.raises(InputError, match=message.replace("X: column 'b'", "y")):
    check_numeric(pd.Series(cells), "y")


def test_numbers_in_any_dress_are_left_alone():
  frame = pd.DataFrame({"a": ["1.5", "2"], "b": pd.array([1, None], dtype="Int64"), "c": pd.Categorical([1, 2]),
                        "d": [True, False], "e": [1, None], "f": ["nan", "1"], "g": [" NaN ", "inf"]})
  for data in (frame, frame["a"], frame.to_numpy(), np.array([["1"]]), [[1]], [["1e3", b"nan"]],
               np.array([[{}]]), 3.0):
    check_numeric(data, "X")


def test_the_estimator_refuses_them_before_a_search():
  frame = pd.DataFrame({"a": np.arange(9.0), "day": pd.date_range("2020-01-01", periods=9)})
  model = SymFormerRegressor(model=testing.FixedProposer(["x0"]))
  with pytest.raises(InputError, match="X: column 'day' holds dates"):
    model.fit(frame, frame["a"])
  with pytest.raises(InputError, match="y holds dates"):
    model.fit(frame[["a"]], frame["day"])
  with pytest.raises(InputError, match="X: two columns are called 'a'"):
    model.fit(frame[["a", "a"]], frame["a"])


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp < 10**4, reason="no number has more exponents")
def test_long_doubles_that_a_double_has_as_infinity_are_refused_without_a_warning():
  X, y = np.arange(1.0, 10.0).reshape(-1, 1).astype(np.longdouble), np.arange(9.0)
  check_numeric(X * np.longdouble("1e300"), "X")
  check_numeric(np.array([np.inf, np.nan], np.longdouble), "y")
  huge = np.where(X == 4, np.longdouble("-1e4000"), X)
  model = SymFormerRegressor(model=testing.FixedProposer(["x0"]))
  for data, column in ((huge, "0"), (pd.DataFrame({"a": huge[:, 0]}), "'a'")):
    with pytest.raises(InputError, match=f"^X: column {column} holds a number in row 3 that is beyond double prec"):
      model.fit(data, y)
  with pytest.raises(InputError, match="^y holds a number in row 3 that is beyond double precision"):
    model.fit(X, huge[:, 0])


DAYS = np.arange("2020-01-01", "2020-01-13", dtype="datetime64[D]")


@pytest.mark.parametrize(("data", "message"), [
  (DAYS[:, None], r"X holds dates or times \(datetime64\[D\]\); give numbers, such as days or years, from"),
  (DAYS - DAYS[0], r"X holds dates or times \(timedelta64\[D\]\)"),
  (list(DAYS), "X holds dates or times"),
  ([[1, datetime.date(2020, 1, 1)]], r"X: column 1 holds dates or times \(date\)"),
  (np.array([1, np.datetime64("2020-01-01")], object), r"X holds dates or times \(datetime64\)"),
  (["1", "a"], "X holds 'a' in row 1, which is no number; give numbers, such as pandas.get_dummies"),
  (np.array([b"1", b"a"]), "X holds 'a' in row 1"),
  (np.array([[1, 2], [3, "four"]], object), "X: column 1 holds 'four' in row 1"),
  ([[1, 2], [10**400, 3]], "X: column 0 holds a number in row 1 that is beyond double precision"),
  (np.ma.masked_greater([[1.0], [2.0]], 1.5), "X has masked cells; leave their rows out"),
  (np.array([[1.0], [2.0]]) + 0j, r"X holds complex numbers \(Complex data not supported\); give real and imaginary"),
  ([1, 2j], "X holds complex numbers"),
])
def test_arrays_of_dates_and_text_are_refused(data, message):
  with pytest.raises(InputError, match=message):
    check_numeric(data, "X")


def test_no_way_in_takes_dates_for_numbers():
  y, x = np.arange(12.0) ** 2, np.arange(12.0)[:, None]
  proposer = testing.FixedProposer(["x0"])
  model = SymFormerRegressor(model=proposer, verbose=False)
  for X, target, named in ((DAYS[:, None], y, "X"), (x, DAYS, "y"), (x, ["a"] * 12, "y")):
    with pytest.raises(InputError, match=f"^{named} holds"):
      model.fit(X, target)
    with pytest.raises(InputError, match=f"^{named} holds"):
      refine("a*x", X, target)
    [result] = search(proposer, [(X, target)])
    assert result.message.startswith(f"{named} holds")
  with pytest.raises(InputError, match="^sample_weight holds dates"):
    model.fit(x, y, DAYS)
  [result] = search(proposer, [np.stack([DAYS, DAYS], axis=1)])
  assert result.message.startswith("the array holds dates")
  model.fit(x, 2 * x[:, 0])
  for predict in (model.predict, refine("a*x", x, y).predict):
    with pytest.raises(InputError, match="^X holds dates"):
      predict(DAYS[:, None])


@pytest.mark.parametrize(("data", "message"), [
  (None, r"X: expected an array \[N, D\], got None"), ("abc", "X: expected an array of numbers, got 'abc'"),
  ((v for v in "ab"), "X: expected an array of numbers, got <generator"),
  ({"a": [1]}, r"X: expected an array of numbers, got {'a': \[1\]}"),
  ([[1, 2], [3]], "X: expected an array of numbers: setting an array element with a sequence"),
  (pd.DataFrame({"a": [1.0, 2]}).to_records(index=False), "X holds records .*; give columns of numbers"),
  (pd.DataFrame({"a": [1.0, 2]}, dtype=pd.SparseDtype(float)), r"X: column 'a' is sparse \(Sparse\[float64, nan\]\)")],
  ids=["none", "text", "generator", "dict", "ragged", "records", "sparse"])
def test_what_is_no_array_is_named(data, message):
  with pytest.raises(InputError, match=f"^{message}") as raised:
    check_numeric(data, "X")
  assert "\n" not in str(raised.value)
  check_numeric(None, "sample_weight")
  check_numeric(2.0, "sample_weight")


def test_no_way_in_drops_imaginary_parts():
  y, x = np.arange(12.0) ** 2, np.arange(12.0)[:, None]
  proposer = testing.FixedProposer(["x0"])
  model = SymFormerRegressor(model=proposer, verbose=False).fit(x, 2 * x[:, 0])
  for X, target, named in ((x + 1j, y, "X"), (x, y + 1j, "y")):
    with pytest.raises(InputError, match=f"^{named} holds complex numbers"):
      SymFormerRegressor(model=proposer, verbose=False).fit(X, target)
    with pytest.raises(InputError, match=f"^{named} holds complex numbers"):
      refine("a*x", X, target)
    [result] = search(proposer, [(X, target)])
    assert result.message.startswith(f"{named} holds complex numbers")
  for predict in (model.predict, refine("a*x", x, y).predict):
    with pytest.raises(InputError, match="^X holds complex numbers"):
      predict(x + 1j)


@pytest.mark.parametrize(("size", "message"), [
  (1e120, "X: expected numbers up to 1e[+]60 in size, got 2e[+]120 in column {}; take a larger unit"),
  (1e-120, "X: expected numbers of at least 1e-60 in size in each column, got at most 2e-120 in column {}; take a")])
def test_a_column_of_numbers_too_large_or_small_is_named(size, message):
  x, proposer = np.linspace(1, 2, 9), testing.FixedProposer(["x0"])
  X = np.column_stack([x, size * x])
  frame = pd.DataFrame(X, columns=["time", "mass (kg)"])
  for points, names, called in ((X, None, "1"), (X, [("a", "b")], "'b'"), (frame, None, "'mass [(]kg[)]'")):
    [result] = search(proposer, [(points, x)], names=names)
    assert re.match(message.format(called), result.message)
  model = SymFormerRegressor(model=proposer, verbose=False)
  for points, called in ((X, "'x1'"), (frame, "'mass [(]kg[)]'")):
    with pytest.raises(InputError, match=message.format(called)):
      model.fit(points, x)
  with pytest.raises(InputError, match=message.format("1")):
    check_dataset((X, x), names=["a"])  # which is refused where names are read
