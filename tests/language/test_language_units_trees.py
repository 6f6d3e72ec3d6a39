"""Trees, their text and what they are solved for, by hand: what is read, moved, ordered, inverted and refused."""

import numpy as np
import pytest
import sympy

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.language import expression, inverses, parser, sympy_trees, templates
from symformer_jax.language.expression import Node, number, symbol, unknown, variable
from symformer_jax.language.vocabulary import Vocabulary

x, y, z = map(variable, range(3))


# --- trees -----------------------------------------------------------------------------------------------------------


def test_operands_of_nested_sums_are_a_list_and_back():
  nested = Node("+", (Node("+", (x, number(2))), Node("*", (y, z))))
  assert expression.flatten(nested, "+") == [x, number(2), Node("*", (y, z))]
  assert expression.flatten(nested, "*") == [nested]
  assert expression.chain("+", [x, y, z]) == Node("+", (x, Node("+", (y, z)))) and expression.chain("*", [x]) == x


def test_a_sign_is_put_in_front_or_taken_away():
  assert expression.negate(number(2)) == number(-2) and expression.negate(x) == Node("neg", (x,))
  assert expression.negate(Node("neg", (Node("sin", (x,)),))) == Node("sin", (x,))


def test_exponents_that_vary_have_no_token_of_their_own():
  assert expression.power(x, z) == Node("pow", (x, z)) and expression.power(x, number(2)) == Node("pow2", (x,))
  assert expression.power(x, number(-0.5)) == Node("inv", (Node("sqrt", (x,)),))


def test_prefix_form_has_columns_as_text_and_numbers_as_numbers():
  assert expression.to_tokens(Node("+", (Node("sin", (y,)), number(2.5)))) == ["+", "sin", "x1", 2.5]


def test_columns_are_moved_and_replaced():
  node = Node("+", (Node("sin", (x,)), Node("*", (y, number(1)))))
  assert expression.with_columns(node, {0: 2, 1: 0}) == Node("+", (Node("sin", (z,)), Node("*", (x, number(1)))))
  inner = Node("exp", (z,))
  assert expression.substitute(node, {1: inner}) == Node("+", (Node("sin", (x,)), Node("*", (inner, number(1)))))


def test_operands_are_ordered_by_tokens_then_numbers_and_numbers_come_last():
  first = Node("+", (Node("*", (x, number(3))), Node("cos", (y,))))
  second = Node("+", (Node("*", (x, number(2))), Node("sin", (y,))))
  third = Node("+", (Node("*", (x, number(4))), Node("cos", (y,))))
  assert sorted([number(1), y, second, third, x, first], key=expression.sort_key) == [
    first, third, second, x, y, number(1)]
  ordered = Node("sin", (Node("*", (x, Node("*", (y, number(2))))),))
  assert expression.sort_operands(Node("sin", (Node("*", (Node("*", (number(2), y)), x)),))) == ordered
  assert expression.sort_operands(Node("+", (second, first))) == expression.chain(
    "+", [Node("*", (x, number(2))), Node("*", (x, number(3))), Node("cos", (y,)), Node("sin", (y,))])
  assert expression.sort_operands(Node("-", (y, x))) == Node("-", (y, x))


def test_what_is_undefined_is_silent_and_what_is_not_there_is_named():
  assert np.isnan(expression.evaluate(Node("ln", (x,)), np.array([[-1.0]]))).all()
  assert expression.evaluate(y, np.ones((3, 2))).tolist() == [1.0] * 3
  with pytest.raises(ExpressionError, match="has variable 3, but there are 2 columns"):
    expression.evaluate(z, np.ones((3, 2)))


def test_ids_of_whole_numbers_carry_no_constant_and_end_where_the_formula_does():
  vocab = Vocabulary(1)
  ids, constants = expression.encode(Node("*", (x, number(3))), vocab)
  assert constants == [0.0, 0.0, 0.0] and expression.decode(ids, constants, vocab) == Node("*", (x, number(3)))


# --- SymPy -----------------------------------------------------------------------------------------------------------


def test_numbers_are_sympys_own_and_exact_on_request():
  two = sympy_trees.to_sympy(number(2))
  assert two == sympy.Integer(2) and isinstance(two, sympy.Integer)
  assert isinstance(sympy_trees.to_sympy(number(0.1)), sympy.Float)
  assert sympy_trees.to_sympy(number(0.1), is_exact=True) == sympy.Rational(1, 10)


def test_operands_from_sympy_are_in_canonical_order():
  a, b = sympy.symbols("a b", real=True)
  terms = [sympy.exp(2 * a + sympy.sin(b)), sympy.exp(3 * a + sympy.cos(b))]
  first, second = (sympy_trees.from_sympy(term, (a, b)) for term in terms[::-1])
  for make, token in ((sympy.Add, "+"), (sympy.Max, "max")):
    assert sympy_trees.from_sympy(make(*terms), (a, b), has_requested=True) == Node(token, (first, second))
  assert first == Node("exp", (Node("+", (Node("*", (x, number(3))), Node("cos", (y,)))),))


def test_signs_from_sympy_are_outside_of_products():
  a, b = sympy.symbols("a b", real=True)
  one = sympy.Integer(-1)
  for factors, expected in (((one, a, b), Node("neg", (Node("*", (x, y)),))), ((one, one, a), x),
                            ((one, one), number(1)),
                            ((a, one, one, one), Node("neg", (x,))), ((one,), number(-1))):
    assert sympy_trees.from_sympy(sympy.Mul(*factors, evaluate=False), (a, b)) == expected


def test_functions_from_sympy_are_those_that_may_come_out():
  a = sympy.Symbol("a", real=True)
  assert sympy_trees.from_sympy(sympy.sin(a), (a,)) == Node("sin", (x,))
  assert sympy_trees.from_sympy(sympy.tanh(a), (a,), has_requested=True) == Node("tanh", (x,))
  for refused in (sympy.tanh(a), sympy.Max(a, 2)):
    with pytest.raises(ExpressionError, match="cannot express (tanh|Max) with the operators"):
      sympy_trees.from_sympy(refused, (a,))
  with pytest.raises(ExpressionError, match="cannot express gamma"):
    sympy_trees.from_sympy(sympy.gamma(a), (a,), has_requested=True)


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "node"), [
  ("1/x", Node("inv", (x,))), ("1*x", Node("*", (number(1), x))), ("2/x", Node("*", (number(2), Node("inv", (x,))))),
  ("abs(x)", Node("sqrt", (Node("pow2", (x,)),))), ("`x` + `y z`", Node("+", (x, y))), ("`y z`*x", Node("*", (y, x))),
  ("sin(x)", Node("sin", (x,))), ("x - `y z`", Node("+", (x, Node("neg", (y,))))), ("`a``b`", z)])
def test_text_is_read(text, node):
  assert parser.parse(text, ("x", "y z", "a`b")) == node


def test_functions_are_written_by_what_models_know_unless_asked_otherwise():
  for name in ("abs", "sinh", "cosh", "tanh"):
    assert parser.parse(f"{name}(x)", expands=False) == Node(name, (x,))
    assert name not in {part.token for part in expression.walk(parser.parse(f"{name}(x)"))}


@pytest.mark.parametrize(("text", "node"), [
  ("f(x)", unknown("f", (0,))), ("f(y, x)", unknown("f", (1, 0))), ("x(y)", unknown("x", (1,))),
  ("f(`a b`, x)*y", Node("*", (unknown("f", (2, 0)), y))), ("sin(x)", Node("sin", (x,))),
  ("g(`c``d`) + x", Node("+", (unknown("g", (3,)), x))), ("min(x, y)", Node("min", (x, y))),
  ("x + k", Node("+", (x, symbol("k")))), ("exp(x)*exp", Node("*", (Node("exp", (x,)), variable(4))))])
def test_words_before_brackets_are_unknown_functions_where_they_may_be(text, node):
  columns = ("x", "y", "a b", "c`d", "exp")
  assert parser.parse(text, columns, allow_symbols=True, allow_unknowns=True) == node


@pytest.mark.parametrize(("text", "message"), [
  ("f(x, x)", "f has the argument 'x' twice"), ("f(x y)", r"expected ',' or '\)' after an argument of f, got 'y'"),
  ("f(x,)", "expected a column as an argument of f, got '\\)'"), ("f(2)", "expected a column as an argument of f"),
  ("f(w)", "f has no column 'w' at position 3"), ("f(`w`)", "f has no column 'w' at position 3"),
  ("`w`", "unknown name")])
def test_arguments_of_unknown_functions_are_columns(text, message):
  with pytest.raises(ExpressionError, match=message):
    parser.parse(text, ("x", "y"), allow_symbols=True, allow_unknowns=True)


def test_where_functions_have_to_be_known_a_word_before_a_bracket_is_none():
  with pytest.raises(ExpressionError, match="unknown name 'k' at position 1"):
    parser.parse("k(x)", ("x",), allow_symbols=True)


def test_limits_of_text_are_met_exactly():
  name = "n`" + 98 * "n"  # in backticks, the one in it twice
  limit = 600 * (100 + 2 + 1)
  quoted = "`" + name.replace("`", "``") + "`"
  assert parser.parse(quoted + " " * (limit - len(quoted)), (name,)) == x
  with pytest.raises(ExpressionError, match=f"{limit + 1} characters long, at most {limit} are read"):
    parser.parse(quoted + " " * (limit - len(quoted) + 1), (name,))
  parser.parse("-" + "+".join(["x"] * 300))  # 600 tokens
  # How deep a formula is has nothing to do with what stands before.
  parser.parse("x+" * 50 + "-" * 39 + "x")
  with pytest.raises(ExpressionError, match="nested more than 40 deep"):
    parser.parse("x+" * 50 + "-" * 40 + "x")


# --- inverses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("token", "value", "argument"), [
  ("sqrt", 0.0, 0.0), ("sqrt", -0.1, np.nan), ("asin", np.pi / 2, 1.0), ("asin", -np.pi / 2, -1.0),
  ("asin", 1.2, np.sin(1.2)), ("asin", -1.2, -np.sin(1.2)), ("asin", -1.6, np.nan), ("asin", 1.6, np.nan),
  ("acos", 0.0, 1.0), ("acos", np.pi, -1.0), ("acos", 0.5, np.cos(0.5)), ("acos", 3.2, np.nan), ("acos", -0.1, np.nan),
  ("atan", 1.2, np.tan(1.2)), ("atan", -1.2, -np.tan(1.2)), ("atan", -1.6, np.nan), ("atan", 1.6, np.nan)])
def test_functions_are_solved_on_their_branch(token, value, argument):
  found = inverses.solve(Node(token, (x,)), (0,), np.zeros((1, 1)), np.array([value]))
  np.testing.assert_allclose(found, argument, atol=1e-15)


@pytest.mark.parametrize(("exponent", "value", "base"), [
  (2.5, 0.0, 0.0), (2.5, -1.0, np.nan), (2.5, 4.0, 4**0.4), (3.0, -8.0, -2.0), (-3.0, -0.125, -2.0), (4.0, 16.0, 2.0),
  (4.0, -16.0, np.nan), (1.0, -3.0, -3.0), (1.5, -1.0, np.nan), (-1.0, -4.0, -0.25)])
def test_bases_of_powers(exponent, value, base):
  node = Node("pow", (x, number(exponent)))
  np.testing.assert_allclose(inverses.solve(node, (0,), np.zeros((1, 1)), np.array([value])), base, atol=1e-15)


def test_a_product_is_as_steep_as_its_other_factor_where_this_one_is_0():
  assert inverses.slope(Node("*", (x, y)), (0,), np.array([[0.0, 3.0], [2.0, 5.0]])).tolist() == [3.0, 5.0]
  assert inverses.obstacle(Node("sin", (x,)), (0,)) == "sin" and inverses.obstacle(Node("ln", (x,)), (0,)) is None
  assert inverses.obstacle(Node("exp", (Node("cosh", (x,)),)), (0, 0)) == "cosh"


# --- templates -------------------------------------------------------------------------------------------------------

NAMES = ("x", "t", "z")


def test_paths_lead_to_functions_and_parameters():
  found = templates.read("f(x)*exp(-k*t) + a*z", NAMES)
  for name in ("f", "k", "a"):
    node = found.node
    for i in found.path(name):
      node = node.args[i]
    assert node in (unknown("f", (0,)), symbol("k"), symbol("a")) and name in (node.value, node.value[0])
  # What is not given stays unknown.
  assert templates.fill(found.node, {}, {}) == found.node
  assert templates.fill(found.node, {}, {"k": 2.0}) != found.node


@pytest.mark.parametrize("text", [
  "f(x) + g(x)*t", "f(x) - t*g(x)", "sqrt(f(x) + t*g(x))", "z*exp(t*g(x) - f(x))", "f(x)*t + g(x)*z",
  "f(x)*t + g(x)*t*z", "f(x, t) + g(x)*z", "f(x) + g(t) + h(z)", "f(x)*t + g(x)*z + h(x)",
  "f(x) - t*" + "*".join(["z"] * 18)])
def test_functions_that_can_be_told_apart_are_taken(text):
  assert templates.read(text, NAMES).text == text


@pytest.mark.parametrize(("text", "message"), [
  ("f(x) + g(x)*x", "g(x) cannot be told from f(x)"), ("f(x) + g(x)*t*x", "g(x) cannot be told from f(x)"),
  ("f(x)*x + g(x)*t", "g(x) cannot be told from f(x)"), ("f(x, t) + g(x)*t", "g(x) cannot be told from f(x, t)"),
  ("f(x) + g(x)*t + a*z", "g(x) cannot be told from f(x)"), ("f(x) - sqrt(g(x))*t", "g(x) cannot be told from f(x)"),
  ("a*exp(f(x)) + t", "the parameter a cannot be told from f(x)"),
  ("t + (a - sqrt(f(x)))", "the parameter a cannot be told from f(x)"),
  ("f(x) + " + "*".join(["t"] * 20), "expected at most 40 names, numbers and operators, got 41"),
  ("cosh(f(x))*t", "f stands 2 times, expected once; sinh and cosh are sums of two exp")])
def test_functions_that_cannot_be_told_apart_are_refused(text, message):
  with pytest.raises(InputError) as caught:
    templates.read(text, NAMES)
  assert message in str(caught.value)


def test_forty_names_numbers_and_operators_are_read():
  assert len(list(expression.walk(templates.read("f(x) - " + "*".join(["t"] * 19), NAMES).node))) == 40


def test_what_stands_twice_is_no_hyperbolic_function():
  with pytest.raises(InputError, match="template: f stands 2 times, expected once$"):
    templates.read("f(x)*t + f(t)", NAMES)
  with pytest.raises(InputError, match="sums of two exp$"):
    templates.read("sinh(f(x))*t", NAMES)
