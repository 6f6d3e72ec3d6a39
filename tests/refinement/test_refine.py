"""`refine` against certified fits, analytic standard errors, and bad input."""

from certified_fits import FITS
import numpy as np
import pandas as pd
import pytest
import sympy

from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.refinement import refine as refine_lib
from symformer_jax.refinement.named import NamedFormula
from symformer_jax.refinement.problem import Status
from symformer_jax.refinement.refine import refine


def check_certified(name, start):
  case = FITS[name]
  fit = refine(case.formula, case.x, case.y, start=case.start(start))
  # Six digits of every constant and three of every standard error.
  names = [f"b{i + 1}" for i in range(len(case.constants))]
  np.testing.assert_allclose([fit.constants[name] for name in names], case.constants, rtol=1e-6)
  np.testing.assert_allclose([fit.stderr[name] for name in names], case.stderr, rtol=1e-3)
  np.testing.assert_allclose(fit.rss, case.rss, rtol=1e-8)
  assert fit.status == Status.CONVERGED


@pytest.mark.parametrize("start", [0, 1], ids=["far", "near"])
@pytest.mark.parametrize("name", [name if name != "MGH10" else pytest.param(name, marks=pytest.mark.slow)
                                  for name in FITS if name != "Thurber"])
def test_certified_fits(name, start):
  check_certified(name, start)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 1], ids=["far", "near"])
def test_a_certified_rational_function_of_seven_constants(start):
  check_certified("Thurber", start)


def line(rng, num=40, sigma=0.3):
  x = rng.uniform(0, 10, num)
  return x, 1.5 * x - 2.0 + rng.normal(0, sigma, num)


def test_a_linear_model_has_the_textbook_covariance(rng):
  x, y = line(rng)
  fit = refine("a*x + b", x, y)
  design = np.stack([x, np.ones_like(x)], 1)
  expected, rss, *_ = np.linalg.lstsq(design, y)
  covariance = rss[0] / 38 * np.linalg.inv(design.T @ design)
  np.testing.assert_allclose([fit.constants["a"], fit.constants["b"]], expected, rtol=1e-9)
  np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-9)
  np.testing.assert_allclose(fit.rss, rss[0], rtol=1e-10)
  assert fit.dof == 38


def test_a_fit_prints_as_its_formula_and_constants():
  x = np.linspace(0, 3, 20)
  fit = refine("a*exp(-b*x)", x, 2.5 * np.exp(-0.5 * x), hold={"b": 0.5})
  text = repr(fit)
  assert text.startswith("RefineResult(2.5*exp(-0.5*x); a = 2.5 +- ") and "b = 0.5 +- 0; rss" in text
  assert text.endswith(", converged)") and "Node" not in text and "\n" not in text


def test_what_is_near_is_finished_to_the_last_digits(rng):
  x, weights = rng.uniform(1, 2, (30, 1)), rng.uniform(0.5, 2, 30)
  y = 2 * x[:, 0] + 1 + rng.normal(size=30)
  formula = NamedFormula(parser.parse("b1*x + b2", ("x",), allow_symbols=True), ("b1", "b2"))
  values, rows = refine_lib._finish(formula, np.array([1.9, 1.1]), (x, y, weights, ("x",)))
  root, design = np.sqrt(weights), np.column_stack([x, np.ones(30)])
  expected = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
  np.testing.assert_allclose(values, expected, rtol=1e-12)
  np.testing.assert_allclose(rows[0], design @ expected, rtol=1e-12)


def test_given_sigma_sets_the_scale_of_the_standard_errors(rng):
  x, y = line(rng)
  sigma = np.linspace(0.2, 2.0, len(x))
  fit = refine("a*x + b", x, y, sigma=sigma)
  design = np.stack([x, np.ones_like(x)], 1) / sigma[:, None]
  np.testing.assert_allclose(fit.covariance, np.linalg.inv(design.T @ design), rtol=1e-9)
  np.testing.assert_allclose(fit.rss, np.sum(((fit.predict(x) - y) / sigma) ** 2), rtol=1e-12)


def test_constants_that_cannot_be_told_apart_are_flagged(rng):
  x, y = line(rng)
  fit = refine("a*b*x + c", x, y, start={"a": 1.0, "b": 1.0, "c": 0.0})
  assert fit.is_identifiable == {"a": False, "b": False, "c": True}
  assert np.isinf(fit.stderr["a"]) and np.isfinite(fit.stderr["c"])
  np.testing.assert_allclose(fit.constants["a"] * fit.constants["b"], np.polyfit(x, y, 1)[0], rtol=1e-8)


def test_a_constant_may_occur_several_times(rng):
  x = rng.uniform(0.1, 4, 30)
  fit = refine("k*x + exp(-k*x)", x, 0.7 * x + np.exp(-0.7 * x), start={"k": 1.0})
  np.testing.assert_allclose(fit.constants["k"], 0.7, rtol=1e-8)


def test_several_data_sets_get_constants_of_their_own(rng):
  x = [rng.uniform(0, 5, n) for n in (12, 20)]
  y = [3.0 * np.exp(-0.4 * x[0]), 5.0 * np.exp(-1.2 * x[1])]
  first, second = refine("a*exp(-k*x)", x, y, start={"a": 1.0, "k": 0.5})
  np.testing.assert_allclose([first.constants["k"], second.constants["k"]], [0.4, 1.2], rtol=1e-8)
  np.testing.assert_allclose(second.predict(x[1]), y[1], rtol=1e-9)


def test_columns_of_a_frame_are_variables_by_name(rng):
  pandas = pytest.importorskip("pandas")
  frame = pandas.DataFrame({"mass": rng.uniform(1, 5, 25), "speed": rng.uniform(1, 5, 25)})
  energy = 0.5 * frame["mass"] * frame["speed"] ** 2
  fit = refine("h*mass*speed**p", frame, energy, start={"p": 1.5})
  assert list(fit.constants) == ["h", "p"]
  np.testing.assert_allclose(list(fit.constants.values()), [0.5, 2.0], rtol=1e-8)
  np.testing.assert_allclose(fit.predict(frame), energy, rtol=1e-9)


@pytest.mark.parametrize("method", ["bfgs", "gd"])
def test_other_methods_reach_the_same_optimum(method, rng):
  x, y = line(rng)
  fit = refine("a*x + b", x, y, start={"a": 1.0, "b": -1.0}, method=method, num_starts=1)
  np.testing.assert_allclose([fit.constants["a"], fit.constants["b"]], np.polyfit(x, y, 1), rtol=1e-5)


def test_an_undefined_formula_says_at_how_many_points():
  x = np.array([-2.0, -1.0, 1.0, 2.0, 3.0])
  fit = refine("a*log(x)", x, np.ones(5), start={"a": 1.0})
  assert fit.status == Status.UNDEFINED and fit.rss == np.inf and fit.num_undefined == 2
  assert "not finite at some points" in fit.message and "(2 of 5 points)" in fit.message


def test_a_formula_without_constants_is_only_measured():
  x = np.arange(1.0, 6.0)
  fit = refine("x**2", x, x**2 + 1)
  assert fit.status == Status.NO_CONSTANTS and fit.rss == 5.0 and fit.constants == {}


@pytest.mark.parametrize("kwargs, message", [
  ({"start": {"c": 1.0}}, "start names 'c', the formula's constants are a, b"),
  ({"start": {"a": np.nan}}, "start of 'a' must be finite, got nan"),
  ({"start": {"a": "one"}}, "start of 'a' must be finite, got 'one'"),
  ({"start": [1.0]}, r"start: expected values by name, such as \{'a': 1.5\}, got \[1.0\]"),
  ({"hold": {"a": None}}, "hold: 'a' must be finite, got None"),
  ({"formula": 3}, "formula: expected text, got 3"),
  ({"method": "newton"}, "unknown method 'newton': expected one of lm, bfgs, gd"),
  ({"sigma": 0.0}, "sigma must be positive and finite"),
  ({"y": np.ones(4)}, r"X has 5 rows, so y must have shape \(5,\), got \(4,\)"),
  ({"y": np.array([1, 2, np.nan, 4, 5])}, "y must be finite, got nan in row 2"),
  ({"formula": "a*x +"}, "expected a number, a name or"),
  ({"X": np.arange(0.0), "y": np.arange(0.0)}, "X has no rows, expected at least one"),
  ({"X": [], "y": []}, "X has no rows, expected at least one"),
  ({"X": [np.arange(5.0), np.ones((5, 2))], "y": [np.arange(5.0)] * 2},
   "X of data set 1: expected the columns of the first, 'x', 'x0', in this order, got 'x0', 'x1'"),
  ({"formula": "a*x**3 + b*x**2 + c*x + d + e/(x + f)"},
   "the formula has 6 constants to fit, and X only 5 rows that differ: give more rows, or fewer constants"),
  ({"X": np.ones(5)}, "the formula has 2 constants to fit, and X only 1 rows that differ"),
  ({"X": [np.arange(5.0), np.ones(5)], "y": [np.arange(5.0)] * 2}, "and X of data set 1 only 1 rows that differ"),
  ({"X": pd.DataFrame({"x": np.arange(5.0), "u": 1e-200 * np.arange(5)})}, "at most 4e-200 in column 'u'; take a"),
  ({"X": 1e-310 * np.arange(5)}, "X: expected numbers of at least 1e-60 in size in each column, got at most 4e-310"),
  ({"X": 1e200 * np.arange(5)}, r"X: expected numbers up to 1e\+60 in size, got 4e\+200 in column 0; take a la"),
  ({"y": 1e250 * np.arange(5)}, r"y: expected numbers up to 1e\+60 in size, got 4e\+250; take a larger unit"),
  ({"y": 1e-160 * np.arange(5)}, "y: expected a spread of at least 1e-60, got 4e-160; take a smaller unit"),
  ({"y": np.full(5, 1e-200)}, "y: expected numbers of at least 1e-60 in size, got at most 1e-200; take a smaller unit"),
  ({"sigma": np.ones(4)}, r"sigma: expected a number or shape \(5,\), as y has, got \(4,\)"),
  ({"sigma": np.ones((5, 2))}, r"sigma: expected a number or shape \(5,\), as y has, got \(5, 2\)"),
  ({"sigma": "e"}, "sigma: expected an array of numbers, got 'e'"),
  ({"y": [[1], [2, 3], 4, 5, 6]}, "y: expected an array of numbers: "),
  ({"X": [[1, [2]], [3, 4]], "y": [1, 2]}, "X: expected an array of numbers: setting an array element"),
  ({"X": [np.arange(5.0)] * 2, "y": [np.arange(5.0)] * 2, "sigma": [0.1]},
   "2 data sets were given for X, but 1 for sigma"),
  ({"X": [np.arange(5.0)] * 2, "y": None}, "2 data sets were given for X, but none for y"),
  ({"num_starts": 1.5}, "num_starts: expected a whole number of at least 1, got 1.5"),
  ({"num_starts": "3"}, "num_starts: expected a whole number of at least 1, got '3'"),
  ({"num_starts": -5}, "num_starts: expected a whole number of at least 1, got -5"),
  ({"num_starts": 10**9}, "num_starts: expected at most 100000, got 1000000000"),
  ({"max_steps": "9"}, "max_steps: expected a whole number of at least 1, got '9'"),
  ({"max_steps": -1}, "max_steps: expected a whole number of at least 1, got -1"),
  ({"max_steps": 0}, "max_steps: expected a whole number of at least 1, got 0"),
  ({"max_steps": 2.5}, "max_steps: expected a whole number of at least 1, got 2.5"),
  ({"max_steps": 2**40}, "max_steps: expected at most 10000000, got 1099511627776"),
  ({"seed": -1}, r"seed: expected a whole number from 0 to 2\*\*63 - 1, got -1"),
  ({"seed": 1.5}, "seed: expected a whole number from 0 to"),
  ({"seed": "a"}, "seed: expected a whole number from 0 to"),
  ({"method": ["lm"]}, r"unknown method \['lm'\]: expected one of lm, bfgs, gd"),
  ({"sigma": 1e-160}, r"sigma: expected numbers from 1e-60 to 1e\+60, got 1e-160 to 1e-160; take another unit of y"),
])
def test_bad_input_is_one_clear_line(kwargs, message):
  arguments = {"formula": "a*x + b", "X": np.arange(5.0), "y": np.arange(5.0), **kwargs}
  with pytest.raises(InputError, match=message):
    refine(**arguments)


def test_errors_of_y_in_one_column_are_those_of_its_rows():
  x, sigma = np.arange(5.0), np.array([1, 2, 1, 2, 1.0])
  flat, column = (refine("a*x + b", x, x**2, sigma=each, num_starts=1) for each in (sigma, sigma[:, None]))
  assert flat.constants == column.constants and flat.stderr == column.stderr


@pytest.mark.parametrize(("formula", "options", "status"), [
  ("a*x**1000", {}, Status.UNDEFINED), ("a*x + b", {"start": {"a": 1e300}}, Status.DIVERGED),
  ("a*x + b", {"hold": {"a": 1e200}}, Status.DIVERGED), ("a*x + b", {"bounds": {"a": (1e200, 1e300)}}, Status.DIVERGED),
  ("a*b*x**1000", {"start": {"a": 1e300, "b": 1e-300}, "sigma": 1e-60}, Status.UNDEFINED)])
def test_what_overflows_is_said_by_the_status_and_not_by_numpy(formula, options, status):
  x = np.linspace(1, 5, 30)
  fit = refine(formula, x, x, **options)  # warnings are errors here
  assert fit.status == status and fit.rss == np.inf


def test_as_many_constants_as_rows_are_fitted_without_standard_errors():
  x = np.arange(3.0)
  fit = refine("a*x**2 + b*x + c", x, 2 * x**2 - x + 0.5)
  np.testing.assert_allclose(list(fit.constants.values()), [2, -1, 0.5], rtol=1e-9)
  assert fit.dof == 0 and np.isnan(list(fit.stderr.values())).all()
  held = refine("a*x**2 + b*x + c", x[:2], x[:2], hold={"a": 0.0})
  np.testing.assert_allclose(held.constants["b"], 1, rtol=1e-9)


def test_a_frame_is_predicted_by_its_names_and_an_array_by_its_places(rng):
  frame = pd.DataFrame(rng.uniform(1, 2, (9, 2)), columns=["a", "b"])
  fit = refine("k*a + m*b", frame, 2 * frame["a"] - frame["b"])
  values = 2 * frame["a"] - frame["b"]
  for X in (frame, frame.to_numpy(), frame.to_numpy().tolist()):
    np.testing.assert_allclose(fit.predict(X), values, rtol=1e-9)
  expected = "^X: expected the columns of the fit, 'a', 'b', in this order, got "
  for X, got in ((frame[["b", "a"]], "'b', 'a'"), (frame[["a"]], "'a'"), (frame.rename(columns={"b": "q"}), "'a', 'q'"),
                 (frame.assign(c=1.0), "'a', 'b', 'c'")):
    with pytest.raises(InputError, match=f"{expected}{got}$"):
      fit.predict(X)
  for X, shape in ((np.ones((2, 1)), r"\(2, 1\)"), (np.ones(2), r"\(2,\)"), (np.ones((2, 3)), r"\(2, 3\)")):
    with pytest.raises(InputError, match=rf"^X: expected points \[N, 2\] of the .*, 'a', 'b', got shape {shape}$"):
      fit.predict(X)
  plain = refine("k*x0 + m*x1", frame.to_numpy(), values)  # whose columns have no names
  np.testing.assert_allclose(plain.predict(frame), values, rtol=1e-9)
  with pytest.raises(InputError, match="'x0', 'x1', got shape"):
    plain.predict(frame[["a"]])


def test_a_formula_of_constants_alone_is_refused_by_the_columns_there_are():
  x = np.linspace(0, 1, 9)
  with pytest.raises(InputError, match=r"formula: 'a\*exp\(-b\*t\)\+c' has no column of the table: x, x0$"):
    refine("a*exp(-b*t)+c", x, x)


def test_x_beside_numbered_columns_is_taken_for_a_mistake():
  with pytest.raises(InputError, match="'x' is no column: the 2 columns of an array are x0 ... x1"):
    refine("a*x", np.ones((5, 2)), np.ones(5))


def test_intervals_cover_the_truth_as_often_as_they_say():
  rng = np.random.default_rng(3)
  x = np.linspace(0.1, 4, 30)
  y = [2.0 * np.exp(-0.7 * x) + rng.normal(0, 0.05, 30) for _ in range(2000)]
  fits = refine("a*exp(-k*x)", [x] * 2000, y, start={"a": 1.5, "k": 1.0}, num_starts=1)
  quantile = 2.048  # Student's t at 97.5 %, 28 degrees of freedom
  for name, truth in (("a", 2.0), ("k", 0.7)):
    covered = np.mean([abs(f.constants[name] - truth) <= quantile * f.stderr[name] for f in fits])
    assert 0.93 <= covered <= 0.97


def test_a_fit_is_exported_with_its_columns_alone():
  x = np.linspace(0, 4, 30)
  fit = refine("a*exp(-b*x0) + c", x, 2.5 * np.exp(-1.5 * x) + 0.25, start={"a": 2.0, "b": 1.0, "c": 0.0})
  variable = sympy.Symbol("x", real=True)
  values = [float(fit.sympy().subs(variable, value)) for value in x]
  np.testing.assert_allclose(values, fit.predict(x), rtol=1e-12)
  assert fit.names == ("x",) and "double formula(double x)" in fit.source("c") and "x0" not in fit.source("numpy")
  assert fit.source("excel", cells=["B2"]).count("B2") == 1 and r" x\right)" in fit.latex()
  frame = pd.DataFrame({"t (s)": x, "x": x**2})
  fit = refine("a*`t (s)`", frame, 3 * x, start={"a": 1.0})
  assert fit.latex().endswith(r" \, \mathrm{t\ (s)}") and "formula(t_s, x)" in fit.source("julia")
