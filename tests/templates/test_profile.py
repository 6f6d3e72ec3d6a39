"""Parameters of templates before any formula is known, and data for the unknown functions: against made-up laws."""

import numpy as np
import pytest

from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import templates
from symformer_jax.language.rules import Restrictions
from symformer_jax.templates import profile

NAMES = ("x", "t", "z")


def _pose(text, y, x, **options):
  return profile.pose(templates.read(text, NAMES), Rows(x, y, np.ones(len(y))), seed=0, **options)


@pytest.fixture
def x(rng):
  return np.column_stack([rng.uniform(0.2, 5, 120), rng.uniform(0, 3, 120), rng.uniform(1, 4, 120)])


# Template, its values and what its parameters are, with the unknown functions hidden in them.
LAWS = [
  ("f(x)*exp(-k*t)", lambda x, t, z: 2 * x / (x + 1.5) * np.exp(-0.7 * t), {"k": 0.7}),
  ("a*t + f(x, z)", lambda x, t, z: 3.3 * t + x * z / (x + z), {"a": 3.3}),
  ("sqrt(a*t + f(x))", lambda x, t, z: np.sqrt(1.7 * t + x**2 + 0.5), {"a": 1.7}),
  ("f(x)/(1 + k*t)**b", lambda x, t, z: np.log(1 + x) / (1 + 0.4 * t) ** 1.7, {"k": 0.4, "b": 1.7}),
  ("c/(t + f(x))", lambda x, t, z: 3 / (t + x**1.5 + 1), {"c": 3.0}),
  ("a*t + f(x) + g(z)", lambda x, t, z: -2 * t + np.sin(x) + np.exp(-z), {"a": -2.0}),
]


@pytest.mark.parametrize(("text", "law", "truth"), LAWS, ids=[law[0] for law in LAWS])
def test_parameters_are_found(text, law, truth, x, rng):
  y = law(*x.T)
  assert _pose(text, y, x).values == pytest.approx(truth, rel=1e-3)
  noisy = y + 0.01 * np.std(y) * rng.normal(size=len(y))
  assert _pose(text, noisy, x).values == pytest.approx(truth, rel=0.1)


def test_parameters_beside_an_exponent_are_found(x):
  y = 2.5 * (x[:, 0] + 1) ** x[:, 1] + 0.3 * x[:, 1]
  assert _pose("a*f(x)**t + b*t", y, x).values == pytest.approx({"a": 2.5, "b": 0.3}, rel=1e-6)


def test_a_parameter_of_any_size_is_found(x):
  for scale in (1e-20, 1e-7, 1e6, 1e20):
    wide = x * np.array([1, scale, 1])
    [k] = _pose("f(x)*exp(-k*t)", 2 * x[:, 0] * np.exp(-0.7 * x[:, 1]), wide).values.values()
    assert k * scale == pytest.approx(0.7, rel=1e-6)


def test_data_of_the_function_are_its_values_weighted_by_how_they_show(x):
  f, decay = 2 * x[:, 0] / (x[:, 0] + 1.5), np.exp(-0.7 * x[:, 1])
  [part] = _pose("f(x)*exp(-k*t)", f * decay, x).parts
  columns, target, weights = part.dataset
  assert part.names == ("x",)
  np.testing.assert_array_equal(columns[:, 0], x[:, 0])
  np.testing.assert_allclose(target, f, rtol=1e-5)
  np.testing.assert_allclose(weights, decay**2, rtol=1e-5)


@pytest.mark.parametrize("text", ["f(x)*exp(-k*t)", "sqrt(f(x) + t)", "3 - z/f(x)"])
def test_errors_of_the_function_are_told_by_what_they_are_of_y(x, rng, text):
  f, error = 2 * x[:, 0] / (x[:, 0] + 1.5), 1e-5 * rng.normal(size=len(x))

  def whole(f):
    t, z = x[:, 1:].T
    return {"f": f * np.exp(-0.7 * t), "s": np.sqrt(f + t), "3": 3 - z / f}[text[0]]

  problem = _pose(text, whole(f), x)
  task = profile.make_part_task(problem, problem.parts[0], SearchOptions())
  of_f = np.average(error**2, weights=task.rows.weights)
  of_y = np.mean((whole(f + error) - whole(f)) ** 2)
  assert 1 - task.r2(of_f) == pytest.approx(of_y / np.var(whole(f)), rel=1e-3)


def test_what_several_functions_may_leave_of_y_is_shared(x):
  problem = _pose("f(x) + g(t)", x[:, 0] ** 2 + x[:, 1], x)
  assert problem.options_of_parts(SearchOptions(accuracy=0.99)).accuracy == pytest.approx(0.995)
  assert problem.options_of_parts(SearchOptions()).accuracy is None


def test_of_several_functions_each_has_data_with_the_others_as_they_were_found(x):
  f, g = 1 + x[:, 0] ** 2, np.cos(x[:, 1]) + 2
  first, second = _pose("f(x)*g(t)", f * g, x).parts
  # A factor may be moved between them.
  for part, truth in ((first, f), (second, g)):
    ratio = part.dataset[1] / truth
    assert np.ptp(ratio) < 1e-4 * abs(np.mean(ratio))


@pytest.mark.parametrize(("text", "law"), [
  ("f(x) + g(x)*t", lambda f, g, t: f + g * t), ("t*g(x) + f(x)", lambda f, g, t: f + g * t),
  ("sqrt(f(x) + t*g(x))", lambda f, g, t: np.sqrt(f + g * t))])
def test_functions_of_one_column_are_told_by_what_stands_beside_them(x, text, law):
  f, g = 0.4 * x[:, 0] ** 2 + 1, np.exp(-0.5 * x[:, 0]) + 0.3
  for part in _pose(text, law(f, g, x[:, 1]), x).parts:
    np.testing.assert_allclose(part.dataset[1], f if part.unknown.name == "f" else g, rtol=2e-3)


def test_rows_in_which_a_function_does_not_show_count_for_the_other(rng):
  x = np.column_stack([rng.uniform(0.2, 5, 200), rng.integers(0, 2, 200), np.ones(200)])
  f, g = 0.4 * x[:, 0] ** 2 + 1, np.exp(-0.5 * x[:, 0]) + 0.3
  first, second = _pose("f(x) + g(x)*t", f + g * x[:, 1], x).parts
  np.testing.assert_allclose(first.dataset[1], f, rtol=1e-4)
  assert len(second.dataset[1]) == np.sum(x[:, 1] == 1)


def test_rows_without_a_value_are_left_out_and_too_many_of_them_refused(x):
  y = np.sqrt(x[:, 0] + x[:, 1])
  y[:3] = -1  # no root is negative
  assert len(_pose("sqrt(f(x) + t)", y, x).parts[0].dataset[1]) == 117
  with pytest.raises(InputError, match=r"^template: f\(x\) has a value in 0 of 120 rows, expected at least 5: '"):
    _pose("sqrt(f(x) + t)", -y - 9, x)


def test_too_many_parameters_on_a_grid_are_refused(x):
  with pytest.raises(InputError, match="expected at most 2 parameters that do not stand as a factor .*, got a, b, c"):
    _pose("f(x)*exp(-a*t) + t**b*exp(-c*z)", x[:, 0], x)


def test_rules_for_columns_are_those_of_the_function_that_has_them(x):
  problem = _pose("f(x)*exp(-k*t)", x[:, 0] ** 2 * np.exp(-x[:, 1]), x)
  rules = Restrictions(required=("x", "t"), excluded=("z",))
  task = profile.make_part_task(problem, problem.parts[0], SearchOptions(restrictions=rules))
  assert task.rule.required == {0} and task.rule.excluded == frozenset()
  with pytest.raises(InputError, match="required: no column 'w'"):
    profile.make_part_task(problem, problem.parts[0], SearchOptions(restrictions=Restrictions(required=("w",))))


def test_columns_of_any_size_make_no_warning(rng):
  for scale in (1e-50, 1e50):
    x = rng.uniform(1, 2, (30, 3)) * scale
    for text in ("f(x)*exp(-k*t)", "f(x)**2 + z*t**a", "exp(f(x)*t)", "log(f(x) + k*t)"):
      try:
        assert all(np.isfinite(value) for value in _pose(text, x[:, 0] * x[:, 1] / scale, x).values.values())
      except InputError as error:
        assert "has a value in" in str(error)


def test_polynomials_are_as_many_as_the_rows_bear(rng):
  x = rng.uniform(1, 2, (40, 3))
  for columns in (x[:, :1], x[:, :2], x):
    basis = profile.polynomials(columns)
    assert basis.shape[1] <= 10 and np.linalg.matrix_rank(basis) == basis.shape[1]
    np.testing.assert_array_equal(basis[:, 0], 1)
    # Linear functions are among them, and over decades logarithms.
    np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, columns[:, 0], rcond=None)[0], columns[:, 0])
  wide = 10 ** rng.uniform(0, 6, (40, 1))
  basis = profile.polynomials(wide)
  np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, np.log(wide[:, 0]), rcond=None)[0], np.log(wide[:, 0]))
