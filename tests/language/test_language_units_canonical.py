"""The canonical form, case by case: what is distributed, multiplied out, cancelled, taken out, and up to where."""

from fractions import Fraction

import numpy as np
import pytest

from symformer_jax.language import canonical, expression, parser, printing
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.expression import Node, chain, number, variable

NAMES = ("x", "y", "z")
X = np.random.default_rng(0).uniform(0.2, 0.9, (7, 3))


def written(text):
  """The canonical form as text."""
  return printing.to_text(canonicalize(parser.parse(text, NAMES, expands=False)), NAMES)


@pytest.mark.parametrize(("text", "expected"), [
  ("x**1500000000*y", "x**1500000000*y"), ("(x*y)**999999999", "x**999999999*y**999999999"),
  ("(x*y)**1000000000", "(x*y)**1000000000"), ("log(300000000*x + 600000000*y)", "log(2*y + x) + 19.519293032620475"),
  ("log(3000000000*x + 6000000000*y)", "log(3000000000*x + 6000000000*y)"),
  ("log(x/31000/31000 + y/31000/31000)", "log(x + y) - 20.683484966934568"),
  ("log(x/40000/40000 + y/40000/40000)", "log(6.25e-10*x + 6.25e-10*y)"),
  ("log(999999999*1000/7*x + 999999999*1000/7*y)", "log(142857142714.2857*x + 142857142714.2857*y)"),
  ("log(999999999*1001/7*x + 999999999*1001/7*y)", "log(142999999857*x + 142999999857*y)"),
  ("2**40*x", "1099511627776*x"), ("(1/2)**40*x", "9.094947017729282e-13*x"), ("sqrt(16)*x", "4*x"),
  ("sqrt(17)*x", "4.123105625617661*x"), ("sqrt(1/4)*x", "0.5*x"), ("4**0.25*x", "1.4142135623730951*x"),
  ("sqrt(999998000001)*x", "999999*x"), ("(-8)**(1/3)*x", "(-8)**(1/3)*x"), ("0**0*x", "x"), ("0.5**2*x", "0.25*x"),
  ("x**0.5*x**0.5", "x"), ("x**1.5*x**0.25", "x**1.75"), ("x**1.5/x**0.5", "x"), ("(x**1.5)**2", "x**3"),
  ("sqrt(x*y)**2", "x*y"), ("sqrt(x*y)**3", "(x*y)**1.5"), ("sqrt(x + y)**2", "x + y"),
  ("sqrt(x + y)**4", "2*x*y + x**2 + y**2"), ("sqrt(x + y)**3", "(x + y)**1.5"),
  ("1/(x + y)**2", "1/(2*x*y + x**2 + y**2)"), ("1/(2*x + 2*y)**2", "1/(4*x**2 + 4*y**2 + 8*x*y)"),
  ("(x + y)**(-0.5)", "1/sqrt(x + y)"), ("(4*x + 4*y)**0.5", "sqrt(4*x + 4*y)"), ("(4*x*y)**0.5", "2*sqrt(x*y)"),
  ("(-4*x)**0.5", "2*sqrt(-x)"), ("(-4*x*y)**1.5", "8*(-x*y)**1.5"), ("(x**2)**0.5", "sqrt(x**2)"),
  ("(x**3*y)**0.5", "sqrt(x**3*y)"), ("exp(x)**0.5", "exp(0.5*x)"), ("(exp(x)*y)**0.5", "sqrt(exp(x)*y)"),
  ("(x**0.5)**0.5", "x**0.25"), ("(x**x)**0.5", "x**(0.5*x)"), ("(x**x)**2", "x**(2*x)"),
  ("(x**y)**3*x**(2*y)", "x**(5*y)"), ("x**(2*y + 3)", "x**(2*y)*x**3"), ("x**(y/2 - 1)", "x**(0.5*y)/x"),
  ("(1/2)**x", "2**(-x)"), ("(2/3)**x", "0.6666666666666666**x"), ("(0.5)**x", "0.5**x"),
  ("(-2*x)**y", "(-x)**y*2**y"), ("(3*x*y)**z", "(x*y)**z*3**z"), ("exp(2)**x", "7.38905609893065**x"),
  ("exp(x)**y", "exp(x*y)"), ("exp(2*x)**y", "exp(2*x*y)"), ("(x + 1)**(2*y)", "(x + 1)**(2*y)"),
  ("(x*y)**(y + z)", "(x*y)**y*(x*y)**z"), ("1**(x + y)", "1"), ("exp(x + 1)", "2.718281828459045*exp(x)"),
  ("exp(2*log(x))", "x**2"), ("exp(2*log(x) + y)", "exp(y)*x**2"), ("exp(y*log(x))", "exp(log(x)*y)"),
  ("exp(log(x)**2)", "exp(log(x)**2)"), ("exp(log(x)/2)", "sqrt(x)"),
  ("exp(3*sin(x) + 2)", "7.38905609893065*exp(3*sin(x))"), ("log(exp(2*x)*3)", "2*x + 1.0986122886681098"),
  ("log(exp(x)*y)", "log(exp(x)*y)"), ("log(-x)", "log(-x)"), ("log(-2*x)", "log(-x) + 0.6931471805599453"),
  ("log(x**2)", "log(x**2)"), ("log(x*y)", "log(x*y)"), ("log(2*x + 4*y)", "log(2*y + x) + 0.6931471805599453"),
  ("log(-2*x - 4*y)", "log(-2*y - x) + 0.6931471805599453"), ("log(x/2 + y/3)", "log(3*x + 2*y) - 1.791759469228055"),
  ("log(1.5*x + 2.5*y)", "log(1.5*x + 2.5*y)"), ("log(2.5*x)", "log(x) + 0.9162907318741551"), ("sin(-x)", "-sin(x)"),
  ("sin(x - y)", "sin(x - y)"), ("sin(y - x)", "-sin(x - y)"), ("sin(1 - x)", "-sin(x - 1)"),
  ("sin(2*x - 3*y - z)", "-sin(3*y - 2*x + z)"), ("sin(-x - y + z)", "-sin(x - z + y)"), ("cos(-x)", "cos(x)"),
  ("cos(y - x)", "cos(x - y)"), ("tan(-2*x)", "-tan(2*x)"), ("abs(-x)", "abs(x)"), ("tanh(-x)", "-tanh(x)"),
  ("sin(arcsin(x))", "x"), ("sin(-arcsin(x))", "-x"), ("cos(arccos(x))", "x"), ("cot(arccot(x))", "x"),
  ("arcsin(sin(x))", "arcsin(sin(x))"), ("sin(arccos(x))", "sin(arccos(x))"),
  ("sin(2*arcsin(x))", "sin(2*arcsin(x))"), ("1/cot(x)**2", "tan(x)**2"), ("cot(x)**2", "(1/tan(x))**2"),
  ("x/cot(x)**0.5", "x/sqrt(1/tan(x))"), ("exp(x)**2/exp(y)", "exp(2*x)*exp(-y)"), ("exp(-x)*exp(x)", "1"),
  ("minimum(2, 3)*x", "2*x"), ("maximum(2, 3)*x", "3*x"), ("minimum(x, x)", "x"), ("minimum(y, x)", "minimum(x, y)"),
  ("maximum(x, 2)", "maximum(x, 2)"), ("(x + 1)*(x - 1)", "x**2 - 1"), ("(2*x + 2)/(x + 1)", "2"),
  ("(x + y)*(x + y)", "2*x*y + x**2 + y**2"), ("(x*y + y)/(x + 1)", "y"), ("(x**2 - x)/(1 - x)", "-x"),
  ("(x - y)/(y - x)", "-1"), ("x/(x*(x + 1))", "1/(x + 1)"), ("1/(x*(x + 1)*2)", "1/(2*x**2 + 2*x)"),
  ("y/(x*(x + 1)*3) ", "y/(3*x**2 + 3*x)"), ("1/((x + 1)*(x + 2))", "1/(3*x + x**2 + 2)"),
  ("1/((x + 1)**2*x)", "1/(2*x**2 + x**3 + x)"), ("(x + y)/x", "y/x + 1"), ("(x + y)/(2*x)", "0.5*y/x + 0.5"),
  ("x/2 + x/3", "0.8333333333333334*x"), ("x/3 + y/3", "0.3333333333333333*x + 0.3333333333333333*y"),
  ("0.1*x + 0.2*x", "0.30000000000000004*x"), ("x*0", "0"), ("x/(y - y)", "x/(y - y)"),
  ("(x**2 + x)**0.5*(x**2 + x)**0.5", "x**2 + x"), ("(x + 1)**0.5*(x + 1)**1.5", "2*x + x**2 + 1"),
  ("(x + 1)**(-1.5)*(x + 1)**0.5", "1/(x + 1)"), ("-(x + y)", "-x - y"), ("-x*y", "-x*y"), ("2*x*y*0.5", "x*y"),
  ("x/y/z", "x/(y*z)"), ("x**4 + x**5 + x**6", "x**4 + x**5 + x**6"), ("(x + 1)**3", "3*x**2 + 3*x + x**3 + 1"),
  ("(x + y)**2*(x - y)", "x**2*y - y**2*x - y**3 + x**3"), ("sign(-2*x)", "-sign(2*x)"), ("sqrt(x)*x - x**1.5", "0"),
  ("(exp(x) + 1)/exp(x)", "exp(-x) + 1"), ("(exp(x) + exp(2*x))/exp(x)", "exp(x) + 1"),
  ("(x**x + x**(2*x))/x**x", "x**x + 1"), ("(6*x + 4)/(3*x + 2)", "2"), ("(x/2 + y/4)/(2*x + y)", "0.25"),
  ("(1.5*x + 3*y)/(x + 2*y)", "1.5*x/(2*y + x) + 3*y/(2*y + x)"), ("(x*y)**(-1000000000)", "(x*y)**(-1000000000)"),
  ("x + 0", "x"), ("sin(0) + x", "x"), ("0*x + y", "y"), ("(x + 1)*(x + 1)**(-0.5)", "x/sqrt(x + 1) + 1/sqrt(x + 1)"),
  ("y*x**1e-13", "y"), ("y*x**(-1e-13)", "y"), ("sin(x + y + z - x*y - x*z)", "sin(x - x*y - x*z + y + z)"),
  ("sin(0.5*x - y)", "sin(0.5*x - y)"), ("sin(x**2 - x)", "sin(x**2 - x)"), ("sin(x - x**2)", "-sin(x**2 - x)"),
  ("sin(sin(y) - x)", "-sin(x - sin(y))"), ("sin(sin(x)**2 - cos(y))", "-sin(cos(y) - sin(x)**2)"),
  ("sin(y**2 - x)", "sin(y**2 - x)"), ("(x + 1)**(2*y)*(x + 1)**y", "(x + 1)**(3*y)"), ("x**(y - y)*2", "2"),
  ("(0.5*x)**y", "0.5**y*x**y"), ("sqrt(x)/(y + 1)", "sqrt(x)/(y + 1)"), ("sqrt(x)/(y + 1)/z", "sqrt(x)/(y*z + z)"),
  ("(x + y)**(-4)", "1/(6*x**2*y**2 + 4*x**3*y + 4*y**3*x + x**4 + y**4)")])
def test_forms_by_the_case(text, expected):
  node = parser.parse(text, NAMES, expands=False)
  assert written(text) == expected
  before, after = (expression.evaluate(each, X) for each in (node, canonicalize(node)))
  both = np.isfinite(before) & np.isfinite(after)
  np.testing.assert_allclose(after[both], before[both], rtol=1e-9, atol=1e-15)


def polynomial(num_terms, name="x"):
  return " + ".join(["1", name, *(f"{name}**{k}" for k in range(2, num_terms))])


@pytest.mark.parametrize(("first", "second", "num_terms"), [
  (12, 10, 21), (11, 11, None),  # 120 products of terms are formed, 121 are not
  (3, 28, 30), (4, 28, None)])  # 30 terms are a sum, 31 are not
def test_products_of_sums_are_multiplied_out_up_to_thirty_terms(first, second, num_terms):
  found = canonicalize(parser.parse(f"({polynomial(first)})*({polynomial(second)})", NAMES))
  if num_terms is None:
    assert found.token == "*" and sorted(len(expression.flatten(arg, "+")) for arg in found.args) == [first, second]
  else:
    assert found.token == "+" and len(expression.flatten(found, "+")) == num_terms


def test_sums_are_raised_up_to_the_twelfth_power():
  assert len(expression.flatten(canonicalize(parser.parse("(x + 1)**12", NAMES)), "+")) == 13
  assert written("(x + 1)**13") == "(x + 1)**13"
  # A single term has no such bound.
  assert written("(x*y)**40") == "x**40*y**40"


def test_too_long_products_and_quotients_are_sorted_and_no_longer_taken_apart():
  first, second = polynomial(11), polynomial(11, "y")
  for text in (f"({second})*({first})", f"({first})*({second})"):
    assert written(text) == f"({written(first)})*({written(second)})"
  assert written(f"({first})*({second})/(({first})*({second}))") == "1"
  assert written(f"sqrt(({first})*({second}))**2") == written(f"({first})*({second})")
  # By their tokens first, then by their numbers.
  first_term, second_term = "3*x + cos(y) + " + polynomial(9, "y"), "2*x + " + polynomial(10, "y")
  assert written(f"({second_term})*({first_term})") == f"({written(first_term)})*({written(second_term)})"
  root = Node("*", tuple(Node("sqrt", (parser.parse(text, NAMES),)) for text in (first, second)))
  longer = Node("*", (variable(2), root))
  assert canonicalize(Node("*", (root, longer))) == canonicalize(Node("*", (longer, root)))
  below = parser.parse(f"1/({first})*(1/({second}))", NAMES)
  quotient = canonicalize(Node("/", (variable(2), below)))
  assert quotient == Node("*", (Node("inv", (canonicalize(below),)), variable(2)))


def test_what_is_left_of_a_difference_is_rounding_below_a_ten_trillionth():
  def sums(*factors):
    return printing.to_text(canonicalize(chain("+", [Node("*", (number(f), variable(0))) for f in factors])))

  assert sums(1 + 1.5e-13, -1.0) != "0" and sums(1 + 0.9e-13, -1.0) == "0"
  # Exactly that share: 1 of 1e13.
  assert sums(1e13, -(1e13 - 1)) == "0"
  exponents = canonicalize(Node("*", (Node("pow", (variable(0), number(1 + 1.5e-13))), Node("inv", (variable(0),)))))
  assert exponents.token == "pow" and exponents.args[1].value == pytest.approx(1.5e-13, rel=0.01)
  exponents = canonicalize(Node("*", (Node("pow", (variable(0), number(1 + 0.9e-13))), Node("inv", (variable(0),)))))
  assert exponents == number(1)


@pytest.mark.parametrize(("value", "exponent", "expected"), [
  (3, 40, 3**40), (3, 41, 3.0**41), (2, -2, 0.25), (16, 0.5, 4), (0.25, 0.5, 0.5), (8, 1 / 3, 2.0)])
def test_powers_of_numbers(value, exponent, expected):
  found = canonical._number_power(value, exponent)
  assert found == pytest.approx(expected, rel=1e-15)


def test_exact_numbers_stay_exact_as_long_as_they_are_short():
  kinds = {value: type(canonical._tidy(value)) for value in (10**9 - 1, 10**9, 1 - 10**9, -(10**9))}
  assert kinds == {10**9 - 1: int, 10**9: float, 1 - 10**9: int, -(10**9): float}
  assert type(canonical._number_power(16, 0.5)) is int and type(canonical._number_power(16.0, 0.5)) is float
  short, long = (Fraction(1, 10**9 - 1), Fraction(10**12 - 1, 17)), (
    Fraction(1, 10**9), Fraction(10**12, 17), Fraction(-(10**12), 17))
  assert [type(canonical._tidy(value)) for value in (*short, *long)] == [Fraction] * 2 + [float] * 3
  # Of 1 and -1 alone are such powers short.
  assert type(canonical._number_power(-1, 40)) is int and type(canonical._number_power(-1, 41)) is float


@pytest.mark.parametrize(("node", "expected"), [
  (Node("-", (variable(0), variable(1))), "x - y"), (Node("/", (variable(0), variable(1))), "x/y"),
  (Node("pow", (variable(0), number(1))), "x"), (Node("pow", (variable(0), number(0))), "1"),
  (Node("pow", (Node("ln", (number(-1),)), number(0))), "1"),
  (Node("pow", (Node("+", (variable(0), number(1))), number(-2))), "1/(2*x + x**2 + 1)"),
  (Node("pow4", (Node("+", (variable(0), number(1))),)), "6*x**2 + 4*x**3 + 4*x + x**4 + 1"),
  (Node("pow6", (variable(0),)), "x**6")])
def test_forms_of_trees_that_the_parser_does_not_make(node, expected):
  assert printing.to_text(canonicalize(node), NAMES) == expected
