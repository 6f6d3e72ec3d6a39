"""Powers gathered into one product: the same value, written as a person would."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from symformer_jax.language import expression, gathering, parser, printing
from symformer_jax.language.expression import Node, number, power, variable
from symformer_jax.language.gathering import gather
from symformer_jax.language.tidy import tidy

NAMES = ("x", "y", "z", "w")
# In every row z < x < y < w.
ROWS = np.random.default_rng(0).uniform(0, 1, (60, 4)) * 0.9 + np.array([2.0, 3.0, 1.0, 4.0])


def sign_of(node):
  values = expression.evaluate(node, ROWS)
  return int(np.all(values > 0)) - int(np.all(values < 0))


@pytest.mark.parametrize(("text", "expected"), [
  ("y**2.5*sqrt((w/y - 1)*(z/y - 1)**2)*x", "(y - z)*sqrt(w - y)*x*y"),
  ("exp(-y*w/x)*(1 - z/x)*x", "(x - z)*exp(-y*w/x)"),
  ("1/(x/y + z/y)", "y/(x + z)"),
  ("log(x/y - z/y)", "log((x - z)/y)"),
  ("(x/y)**z - 1", "(x/y)**z - 1"),
  ("x/(4*x)", "0.25"),
  ("sqrt(9*x**2)", "3*x"),
  ("sqrt((x - 2.5)**2*y)", "sqrt((x - 2.5)**2)*sqrt(y)"),
  ("-(x - x)", "0"),
  ("x*y + x**2*z", "(x*z + y)*x"),
  ("(y/x + 2)**2*x**2", "(2*x + y)**2"),
])
def test_gathered(text, expected):
  node = parser.parse(text, NAMES)
  gathered = gather(node, sign_of)
  assert printing.to_text(gathered, NAMES) == expected
  np.testing.assert_allclose(
    expression.evaluate(gathered, ROWS), expression.evaluate(node, ROWS), rtol=1e-10, atol=1e-12)


def test_odd_powers_keep_their_sign_under_a_root():
  node = parser.parse("sqrt((z - x)**3*(y - w))*x", NAMES)
  gathered = gather(node, sign_of)
  np.testing.assert_allclose(expression.evaluate(gathered, ROWS), expression.evaluate(node, ROWS), rtol=1e-10)
  assert printing.to_text(gathered, NAMES) == "(x - z)**1.5*sqrt(w - y)*x"


@pytest.mark.parametrize("text", [
  "sqrt((x - y)**2*(y - x))", "sqrt((1 - y/x)**2*(y/x - 1))", "sqrt(sqrt((x - 2.5)**2)*(x - 2.5)**2)",
  "(1e150*x)**3", "1/(1e-310*x)", "(1e200*x)**2.5", "(1e-200*x)**2", "(1e-15*x)**(-25)", "(0*x)**0.5",
  "sqrt((y - x)*(y - x))*(x - y)"])
def test_equal_bases_and_sizes_out_of_range_keep_the_value(text):
  node = parser.parse(text, NAMES)
  with np.errstate(all="ignore"):
    before, after = expression.evaluate(node, ROWS), expression.evaluate(gather(node, sign_of), ROWS)
  np.testing.assert_allclose(after, before, rtol=1e-9)


leaves = st.one_of(st.integers(0, 3).map(variable), st.sampled_from([1.0, -1.0, 2.0, 0.5, -3.0]).map(number))


def grown(children):
  one = st.sampled_from(["neg", "inv", "pow2", "pow3", "sqrt", "exp", "ln", "sin"])
  return st.one_of(
    st.builds(lambda token, a: Node(token, (a,)), one, children),
    st.builds(lambda token, a, b: Node(token, (a, b)), st.sampled_from(["+", "*"]), children, children),
    st.builds(lambda a, p: Node("pow", (a, number(p))), children, st.sampled_from([-2.0, 0.25, 1.5])))


@hypothesis.given(st.recursive(leaves, grown, max_leaves=10))
@hypothesis.settings(max_examples=300, deadline=None)
def test_the_value_stays(node):
  with np.errstate(all="ignore"):
    before, after = expression.evaluate(node, ROWS), expression.evaluate(gather(node, sign_of), ROWS)
  counts = np.isfinite(before) & (np.abs(before) < 1e6)
  # where powers cancel a root or a pole may be gone
  hypothesis.assume(np.all(counts))
  scale = np.max(np.abs(before)) + 1
  hypothesis.assume(not _cancels(node))
  np.testing.assert_allclose(after / scale, before / scale, rtol=1e-5, atol=1e-7)


def _cancels(node):
  """Whether some part is so large that its digits are lost in the whole."""
  with np.errstate(all="ignore"):
    return any(not np.all(np.abs(expression.evaluate(part, ROWS)) < 1e6) for part in expression.walk(node))


# --- parts, by hand --------------------------------------------------------------------------------------------------

X, Y = variable(0), variable(1)
NEGATIVE, POSITIVE = (tidy(parser.parse(text, NAMES)) for text in ("z - x", "x - z"))


def raised(bases, factor, exponent):
  return gathering._raised((bases, factor), exponent, sign_of)


def test_a_product_adds_exponents_and_multiplies_numbers():
  assert gathering._product([({X: 1.0, Y: 2.0}, 3.0), ({X: -1.0}, 0.5)]) == ({Y: 2.0}, 1.5)
  assert gathering._gathered(parser.parse("-(2*x)*(-3)", NAMES), sign_of) == ({X: 1.0}, 6.0)


@pytest.mark.parametrize(("exponent", "is_one"), [(1e-9, False), (1.5e-9, True), (-1e-9, False), (-1.5e-9, True)])
def test_exponents_are_told_from_0_down_to_a_billionth(exponent, is_one):
  assert gathering._product([({X: exponent}, 2.0)]) == ({X: exponent} if is_one else {}, 2.0)
  assert (gathering._written({X: exponent}, 2.0) != number(2)) == is_one


@pytest.mark.parametrize(("size", "exponent", "expected"), [
  (4.0, 0.5, 2.0), (2.0, -1.0, 0.5), (0.0, 2.0, 0.0), (0.0, 0.5, 0.0), (0.0, -1.0, None), (1e-200, 2.0, None),
  (1e200, 2.0, None)])
def test_a_number_has_a_power_where_a_double_holds_it(size, exponent, expected):
  assert gathering._number_raised(size, exponent) == expected


def test_what_no_number_holds_stays_as_it_is_written():
  assert raised({X: 1.0}, 1e200, 2.0) == ({power(gathering._written({X: 1.0}, 1e200), number(2)): 1.0}, 1.0)
  assert raised({X: 1e308}, 1.0, 10.0) == ({power(power(X, number(1e308)), number(10)): 1.0}, 1.0)


def test_whole_powers_are_those_of_each_factor():
  assert raised({X: 1.0, Y: -2.0}, -2.0, 3.0) == ({X: 3.0, Y: -6.0}, -8.0)
  assert raised({X: 1.0}, -2.0, 2.0) == ({X: 2.0}, 4.0) and raised({X: 1.0}, -2.0, -1.0) == ({X: -1.0}, -0.5)


def test_a_sum_that_is_negative_comes_out_from_under_a_root_turned_round():
  for bases, factor, found in (
      ({NEGATIVE: 1.0}, -4.0, ({POSITIVE: 0.5}, 2.0)), ({NEGATIVE: 3.0}, -1.0, ({POSITIVE: 1.5}, 1.0)),
      ({NEGATIVE: 2.0}, 4.0, ({POSITIVE: 1.0}, 2.0)), ({NEGATIVE: 2.0, POSITIVE: 1.0}, 1.0, ({POSITIVE: 1.5}, 1.0)),
      ({POSITIVE: 1.0, NEGATIVE: 2.0}, 1.0, ({POSITIVE: 1.5}, 1.0)), ({X: 3.0}, 9.0, ({X: 1.5}, 3.0))):
    assert raised(bases, factor, 0.5) == found
  # A number that is not positive, or a broken power, has nothing to turn round with.
  assert raised({NEGATIVE: 2.0}, -4.0, 0.5) == ({POSITIVE: 1.0, Node("sqrt", (number(-4),)): 1.0}, 1.0)
  assert raised({X: 2.0}, 0.0, 0.5) == ({X: 1.0, Node("sqrt", (number(0),)): 1.0}, 1.0)
  assert raised({NEGATIVE: 0.5}, 1.0, 0.5) == ({Node("sqrt", (Node("sqrt", (NEGATIVE,)),)): 1.0}, 1.0)
  # What has no one sign stays there, with the number as it is then.
  either = tidy(parser.parse("x - 2.5", NAMES))
  for own, factor in ((2.0, 4.0), (1.0, -4.0)):
    assert raised({NEGATIVE: own, either: 1.0}, factor, 0.5) == (
      {POSITIVE: own / 2, Node("sqrt", (gathering._written({either: 1.0}, 4.0),)): 1.0}, 1.0)
  node = parser.parse("sqrt(-4*(z - x)**3)", NAMES)
  np.testing.assert_allclose(expression.evaluate(gather(node, sign_of), ROWS), expression.evaluate(node, ROWS))


def test_what_all_terms_have_stands_before_their_sum():
  total = tidy(parser.parse("x + y", NAMES))
  assert gathering._sum([({X: 2.0}, 3.0), ({X: 2.0}, 4.0)]) == ({X: 2.0}, 7.0)
  assert gathering._sum([({X: 1.0, Y: 1.0}, 1.0), ({X: 2.0}, 1.0)]) == ({X: 1.0, total: 1.0}, 1.0)
  assert gathering._sum([({X: -1.0}, 1.0), ({}, 2.0)]) == (
    {X: -1.0, tidy(parser.parse("2*x + 1", NAMES)): 1.0}, 1.0)
  assert gathering._sum([({total: 1.0, X: 1.0}, 1.0), ({total: 1.0, Y: 1.0}, 1.0)]) == ({total: 2.0}, 1.0)
