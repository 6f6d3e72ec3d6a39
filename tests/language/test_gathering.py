"""Powers gathered into one product: the same value, written as a person would."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.gathering import gather

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
