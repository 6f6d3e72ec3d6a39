"""Views: which functions of columns there are for given data, and which monomials of them are of use."""

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, VIEW_FUNCTIONS, ViewsConfig
from symformer_jax.language import printing
from symformer_jax.sources.fractions import views

ALL = ViewsConfig(product_functions=VIEW_FUNCTIONS)


def texts(view):
  return tuple(printing.to_text(part.node, ("x", "y", "z")) for part in view)


def named(x, name, *, of_products=False):
  config = ViewsConfig((), (name,), False) if of_products else ViewsConfig((name,), (), False)
  return [texts(view) for view in views.views(np.asarray(x), config)]


SMALL = [[0.2, 0.5], [0.7, 0.1]]


@pytest.mark.parametrize(("name", "expected"), [
  ("cosines", [("y", "cos(x)"), ("x", "cos(y)"), ("cos(x)", "cos(y)")]),
  ("angles", [("y", "sin(x)", "cos(x)"), ("x", "sin(y)", "cos(y)"), ("sin(x)", "cos(x)", "sin(y)", "cos(y)")]),
  ("angles_beside", [("x", "y", "sin(x)", "cos(x)"), ("x", "y", "sin(y)", "cos(y)"),
                     ("x", "y", "sin(x)", "cos(x)", "sin(y)", "cos(y)")]),
  ("logarithms", [("x", "y", "log(x)"), ("x", "y", "log(y)"), ("x", "y", "log(x)", "log(y)")]),
])
def test_one_column_each_and_all_of_them(name, expected):
  assert named(SMALL, name) == expected


@pytest.mark.parametrize(("name", "expected"), [
  ("sines", "sin(x)"), ("roots", "sqrt(x)"), ("complement_roots", "x, sqrt(1 - x)"), ("circles", "x, sqrt(1 - x**2)"),
  ("hyperbolas", "x, sqrt(x**2 + 1)"), ("exponentials", "x, exp(x)"), ("logarithms", "x, log(x)"),
  ("roots_and_logarithms", "sqrt(x), log(x)"), ("complement_logarithms", "x, log(1 - x)"),
  ("mixing_logarithms", "x, log(x), log(1 - x)"), ("shifted_logarithms", "x, log(x + 1)")])
def test_functions_stand_in_the_place_of_a_column_or_beside_it(name, expected):
  [view] = views.views(np.array([[0.2], [0.7]]), ViewsConfig((name,), (), False))
  assert ", ".join(texts(view)) == expected
  # Logarithms are in sums alone, of roots no square is looked at where the column stands beside.
  assert [part.is_alone for part in view] == ["log" in text for text in texts(view)]
  powers = {each for powers in views.monomials(view, 2) for each in powers[-1:]}
  assert (2 in powers) == (name in ("sines", "roots", "exponentials"))


@pytest.mark.parametrize(("name", "inside", "outside"), [
  ("sines", -8 * np.pi, -25.2), ("angles", 8 * np.pi, 25.2), ("degrees", 720.0, -721.0),
  ("roots", 0.0, -1e-9), ("complement_roots", 1.0, 1 + 1e-9), ("circles", -1.0, -1 - 1e-9),
  ("exponentials", -20.0, 20.01), ("logarithms", 1e-9, 0.0),
  ("roots_and_logarithms", 1e-9, 0.0), ("arccotangents", -1e-9, 0.0), ("complement_logarithms", 1 - 1e-9, 1.0),
  ("mixing_logarithms", 1e-9, 0.0), ("mixing_logarithms", 1 - 1e-9, 1.0),
  ("shifted_logarithms", -1 + 1e-9, -1.0)])
def test_functions_stand_for_values_that_have_such(name, inside, outside):
  for value, is_defined in ((inside, True), (outside, False)):
    assert views.FUNCTIONS[name].is_defined(np.array([0.5, value])) is is_defined


def test_degrees_are_angles_in_radians():
  [view] = views.views(np.array([[10.0], [-90.0]]), ViewsConfig(("degrees",), (), False))
  expected = [[0.5, np.sqrt(0.75)], [-1, 0]]
  np.testing.assert_allclose(views.values(view, np.array([[30.0], [-90.0]])), expected, atol=1e-12)
  assert views.is_of_degrees(view) and not views.is_of_degrees(views.plain(2))
  assert views.FUNCTIONS["degrees"].is_defined(np.array([1.0, -6.29])) and not views.FUNCTIONS["degrees"].is_defined(
    np.array([1.0, 6.28]))


def test_powers_of_columns_have_bases_above_0():
  found = [texts(view)[-1] for view in views.views(np.array([[0.2, 3.0], [0.7, 1.5]]), ViewsConfig((), (), True))]
  assert found == ["x**y", "(x + 1)**y", "(1 - x)**y", "x**(1/y)", "y**x", "(y + 1)**x", "y**(1/x)"]
  asked = views.views(np.array(SMALL), ViewsConfig((), (), True), lambda token: token != "pow")
  assert list(asked) == []


def test_quotients_by_a_column_that_has_a_zero_are_left_out():
  assert named([[0.2, 0.5], [0.7, 0.0]], "arctangents", of_products=True) == [
    ("x", "y", "arctan(x*y)"), ("x", "y", "arctan(y/x)")]
  # So are those that are finite but have no such function.
  assert named([[0.2, -0.5], [0.7, -0.1]], "logarithms", of_products=True) == []


def test_of_shares_of_a_whole_there_are_logarithms_of_all_and_of_the_rest():
  def asked(x, allows=lambda token: True):
    return list(views.views(np.array(x), ViewsConfig((), (), False, has_shares=True), allows))
  [view] = asked(SMALL)
  assert texts(view) == ("x", "y", "log(x)", "log(y)", "log(1 - (x + y))")
  assert [part.is_linear and part.is_alone for part in view] == [False, False, True, True, True]
  assert asked([[0.2, 0.5], [0.7, 0.3]]) == asked([[0.2, 0.5], [0.7, 0.0]]) == asked([[0.2], [0.7]]) == []
  assert asked(SMALL, lambda token: token != "ln") == []


def test_products_of_two():
  assert named(SMALL, "roots", of_products=True) == [
    ("x", "y", "sqrt(x*y)"), ("x", "y", "sqrt(x/y)"), ("x", "y", "sqrt(y/x)")]
  assert len(named(1 + np.arange(9).reshape(3, 3) / 4, "exponentials", of_products=True)) == 9


@pytest.mark.parametrize(("name", "value", "is_used"), [
  ("roots", 0.0, True), ("roots", -1e-9, False), ("logarithms", 1e-9, True), ("logarithms", 0.0, False),
  ("circles", -1.0, True), ("circles", 1.0, True), ("circles", 1.01, False), ("complement_roots", 1.0, True),
  ("complement_roots", 1.1, False), ("complement_logarithms", 0.99, True), ("complement_logarithms", 1.0, False),
  ("shifted_logarithms", -0.99, True), ("shifted_logarithms", -1.0, False), ("exponentials", 20.0, True),
  ("exponentials", -21.0, False), ("sines", 25.0, True), ("sines", 26.0, False), ("sines", 8 * np.pi, True),
  ("hyperbolas", 1e9, True), ("arctangents", -1e9, True), ("arccotangents", -1e-9, True), ("arccotangents", 0.0, False),
  ("roots_and_logarithms", 1e-9, True), ("roots_and_logarithms", 0.0, False),
  # Up to 20 exponentials say the same.
  ("decays", 20.0, False), ("decays", 20.1, True), ("decays", 700.0, True), ("decays", 701.0, False),
  ("decays", -1.0, False)])
def test_where_functions_are_defined(name, value, is_used):
  assert bool(named([[0.5], [value]], name)) == is_used


@pytest.mark.parametrize("name", [name for name in VIEW_FUNCTIONS if name != "degrees"])
def test_values_are_those_of_numpy(name):
  x = np.random.default_rng(0).uniform(0.1, 0.9, (7, 1)) * (100 if name == "decays" else 1)
  [view] = views.views(x, ViewsConfig((name,), (), False))
  v = x[:, 0]
  if name == "decays":
    assert texts(view) == ("x", "exp(-x)")
    np.testing.assert_allclose(views.values(view, x), np.column_stack([v, np.exp(-v)]), rtol=1e-14)
    return
  known = {"x": v, "cos(x)": np.cos(v), "sin(x)": np.sin(v), "sqrt(x)": np.sqrt(v), "exp(x)": np.exp(v),
           "log(x)": np.log(v), "sqrt(1 - x)": np.sqrt(1 - v), "sqrt(1 - x**2)": np.sqrt(1 - v**2),
           "sqrt(x**2 + 1)": np.sqrt(1 + v**2), "log(1 - x)": np.log1p(-v), "log(x + 1)": np.log1p(v),
           "x**0.3333333333333333": np.cbrt(v), "arctan(x)": np.arctan(v), "arctan(1/x)": np.arctan(1 / v)}
  np.testing.assert_allclose(views.values(view, x), np.column_stack([known[text] for text in texts(view)]), rtol=1e-14)


@pytest.mark.parametrize("config", [
  *(ViewsConfig((name,), (), False) for name in VIEW_FUNCTIONS),
  *(ViewsConfig((), (name,)) for name in DEFAULT.exact_fractions.views.product_functions)], ids=str)
def test_monomials_of_a_view_are_independent(config):
  """A sum of squares that is 1, or a root whose square is there, would be met by every y."""
  x = np.random.default_rng(1).uniform(0.05, 0.95, (400, 2))
  for view in views.views(x, config):
    u = views.values(view, x)
    monomials = np.array(views.monomials(view, 2))
    columns = np.prod((u / np.abs(u).max(axis=0))[:, None, :] ** monomials[None], axis=2)
    sizes = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), compute_uv=False)
    assert sizes[-1] > 1e-13 * sizes[0], texts(view)


def test_logarithms_stand_alone_and_roots_of_polynomials_are_linear():
  [_, _, both] = views.views(np.array(SMALL), ViewsConfig(("logarithms",), (), False))
  powers = views.monomials(both, 3)
  assert (1.0, 0.0, 1.0, 0.0) in powers and (2.0, 0.0, 0.0, 1.0) in powers
  assert not any(each[2] + each[3] > 1 for each in powers)
  [circle, *_] = views.views(np.array(SMALL), ViewsConfig(("circles",), ()))
  assert not any(each[2] > 1 for each in views.monomials(circle, 3)) and (1.0, 1.0, 1.0) in views.monomials(circle, 3)


def test_operators_that_may_not_stand_leave_their_views_out():
  found = list(views.views(np.array(SMALL), DEFAULT.exact_fractions.views, lambda token: token not in ("cos", "inv")))
  assert found and not any("cos" in text or "/" in text for view in found for text in texts(view))


@pytest.mark.parametrize(("y", "is_it"), [
  ([0.5, 1.25, 3e7], True), ([1 / 3, 0.5], False), ([0.33333333, 2.0], True), ([0.333333333, 2.0], False),
  ([-12345678e10, 0.0], True)])
def test_rounded(y, is_it):
  assert views.is_rounded(np.array(y), 8) == is_it
