"""What formulas a user wants: which trees count, and which wishes contradict each other."""

import dataclasses
from fractions import Fraction
import re

import pytest

from symformer_jax.errors import InputError
from symformer_jax.language import parser, size_limits
from symformer_jax.language.dimensions import Dimensions, Powers
from symformer_jax.language.rules import Restrictions, Rule

COLUMNS = ("x", "y", "z")


def counts(text, **wishes):
  return Restrictions(**wishes).for_columns(COLUMNS)(parser.parse(text, COLUMNS))


@pytest.mark.parametrize(("text", "wishes", "is_wanted"), [
  ("x + y", {}, True),
  ("x + y", {"required": ("x",)}, True),
  ("x + y", {"required": ("x", "y")}, True),
  ("x + y", {"required": ("x", "z")}, False),
  ("x + y", {"excluded": ("z",)}, True),
  ("x + y", {"excluded": ("y",)}, False),
  # An operator's other names, and what a minus and a division are made of.
  ("x - y", {"operators": ("-",)}, True),
  ("x/y", {"operators": ("/",)}, True),
  ("x/y", {"operators": ("*",)}, False),
  ("x**2", {"operators": ("**",)}, True),
  ("x**1.5", {"operators": ("^",)}, True),
  ("log(x)", {"operators": ("log",)}, True),
  ("sin(x)", {"operators": ("cos",)}, False),
  ("x + y", {"forbidden": ("-",)}, True),
  ("x*y", {"forbidden": ("/",)}, True),
  ("x/y", {"forbidden": ("/",)}, False),
  ("sin(x)", {"operators": ("sin", "cos"), "forbidden": ("sin",)}, False),
  ("cos(x)", {"operators": ("sin", "cos"), "forbidden": ("sin",)}, True),
  # Exponents are numbers up to the limit, the limit among them; squares and cubes are exponents too.
  ("x**1.5", {"max_exponent": 1.5}, True),
  ("x**1.6", {"max_exponent": 1.5}, False),
  ("x**(-1.5)", {"max_exponent": 1.5}, True),
  ("x**y", {"max_exponent": 9}, False),
  ("x**y", {}, True),
  ("x**2", {"max_exponent": 2}, True),
  ("x**2", {"max_exponent": 1}, False),
  ("x**3", {"max_exponent": 3}, True),
  ("x**3", {"max_exponent": 2}, False),
  # Levels: one of a bare column, three of a sum of three.
  ("x", {"max_depth": 1}, True),
  ("x + y", {"max_depth": 1}, False),
  ("x + y + z", {"max_depth": 3}, True),
  ("x + y + z", {"max_depth": 2}, False),
  # Operators that do not stand inside each other, wherever between them another one is.
  ("sin(x) + cos(y)", {"unnested": ("sin", "cos")}, True),
  ("sin(cos(x))", {"unnested": ("sin", "cos")}, False),
  ("sin(x + 2*sin(y))", {"unnested": ("sin",)}, False),
  ("sin(exp(x))", {"unnested": ("sin", "cos")}, True),
  ("2*x + 1", {"max_complexity": 5}, True),
  ("2*x + 1", {"max_complexity": 4}, False),
  # Sizes of arguments: of a function, whatever it is called.
  ("sin(2*x)", {"max_sizes": {"sin": 3}}, True),
  ("sin(2*x + 1)", {"max_sizes": {"sin": 3}}, False),
  ("y + exp(sin(x*y*z))", {"max_sizes": {"sin": 4}}, False),
  ("sin(2*x + 1)", {"max_sizes": {"cos": 1, "sin": -1}}, True),
  ("log(2*x)", {"max_sizes": {"log": 2}}, False),
  ("log(log(x))", {"max_sizes": {"ln": 1}}, False),
  ("maximum(x, y + 1)", {"max_sizes": {"max": 2}}, False),
  ("maximum(x, y + 1)", {"max_sizes": {"maximum": 3}}, True),
  # Base and exponent of any power, squares and cubes as well.
  ("(x + y)**1.5", {"max_sizes": {"pow": (3, 1)}}, True),
  ("(x + 2*y)**1.5", {"max_sizes": {"pow": (4, 1)}}, False),
  ("(x + 2*y)**2", {"max_sizes": {"**": (4, 1)}}, False),
  ("(x + 2*y)**2", {"max_sizes": {"^": (5, 1)}}, True),
  ("x**(y + 1)", {"max_sizes": {"pow": (9, 2)}}, False),
  ("x**(y + 1)", {"max_sizes": {"pow": (9, None)}}, True),
  # Every term and factor, in whatever order the tree has them.
  ("x + y + 2*z", {"max_sizes": {"+": 3}}, True),
  ("x + y + 2*z", {"max_sizes": {"+": 2}}, False),
  ("2*z + x + y", {"max_sizes": {"+": 2}}, False),
  ("x*(y + 1)*z", {"max_sizes": {"*": 3}}, True),
  ("x*(y + 1)*z", {"max_sizes": {"*": 2}}, False),
  # Whole numerators and denominators, a 1 included.
  ("x*y/z", {"max_sizes": {"/": (3, 1)}}, True),
  ("x*y/z", {"max_sizes": {"/": (2, 1)}}, False),
  ("x/y/z", {"max_sizes": {"/": (-1, 2)}}, False),
  ("x/y/z", {"max_sizes": {"/": (-1, 3)}}, True),
  ("1/(x + 1)", {"max_sizes": {"/": (1, 3)}}, True),
  ("exp(1/(x + 1))", {"max_sizes": {"/": (1, 2)}}, False),
  ("x*y*z", {"max_sizes": {"/": (1, 1)}}, True),
  ("sin(2*x) + (x + 1)**2", {"max_sizes": {"sin": 3, "pow": (2, 1)}}, False),
  # Several wishes at once: each counts.
  ("sin(x)", {"operators": ("sin",), "max_depth": 1}, False),
  ("sin(x)", {"operators": ("sin",), "max_complexity": 1}, False),
])
def test_which_formulas_count(text, wishes, is_wanted):
  assert counts(text, **wishes) == is_wanted


def test_dimensions_count_whatever_else_is_open():
  length, time = Powers((("length", Fraction(1)),)), Powers((("time", Fraction(1)),))
  for rule in (Rule(3, dimensions=Dimensions((length, time, time), length)),
               Rule(3, max_depth=9, dimensions=Dimensions((length, time, time), length))):
    assert rule(parser.parse("x*y/z", COLUMNS)) and not rule(parser.parse("x + y", COLUMNS))


def test_functions_on_request_are_those_that_were_named():
  assert Rule(1, tokens=frozenset({"tanh", "sin", "+"})).requested == {"tanh"} and Rule(1).requested == frozenset()


def test_sizes_are_sorted_by_the_names_of_operators_whatever_these_are():
  assert size_limits.freeze({"sin": 3, "cos": 9}) == (("cos", 9), ("sin", 3))
  assert size_limits.freeze({"sin": 3, 2: 9}) == ((2, 9), ("sin", 3))
  assert list(size_limits._fractions(parser.parse("1/(x + y)", COLUMNS))) == [(1, 3)]


def test_columns_beyond_the_datas_do_not_count():
  rule = Restrictions().for_columns(("x", "y"))
  assert rule(parser.parse("x + y", COLUMNS)) and not rule(parser.parse("x + z", COLUMNS))


@pytest.mark.parametrize(("wishes", "is_open"), [
  ({}, True), ({"required": ("x",), "max_complexity": 5}, True), ({"operators": ("+",)}, False),
  ({"forbidden": ("+",)}, False), ({"max_exponent": 2}, False), ({"max_depth": 3}, False),
  ({"unnested": ("sin",)}, False), ({"max_sizes": {"sin": 3}}, False)])
def test_rules_that_bind_no_token_are_open(wishes, is_open):
  assert Restrictions(**wishes).for_columns(COLUMNS).is_open == is_open


@pytest.mark.parametrize(("wishes", "message"), [
  ({"operators": ("sine",)}, "operators: unknown operator 'sine', expected some of .*; did you mean 'sin'"),
  ({"forbidden": ("%",)}, "forbidden: unknown operator '%'"),
  ({"unnested": ("loge",)}, "unnested: unknown operator 'loge'"),
  ({"operators": ("sin",), "forbidden": ("sin",)}, "the rules leave no operator"),
  ({"max_exponent": 0.5}, "max_exponent: expected a number of at least 1, got 0.5"),
  ({"max_exponent": float("nan")}, "max_exponent: expected a number of at least 1, got nan"),
  ({"max_depth": 0}, "max_depth: expected a whole number of at least 1, got 0"),
  ({"max_complexity": 0}, "max_complexity: expected a whole number of at least 1, got 0"),
  ({"max_complexity": 2.5}, "max_complexity: expected a whole number of at least 1, got 2.5"),
  ({"max_sizes": {"sine": 3}}, "max_sizes: unknown operator 'sine', expected some of .*; did you mean 'sin'"),
  ({"max_sizes": {"sin": 0}}, "max_sizes: 'sin': expected whole numbers of at least 1, or -1 for any, got 0$"),
  ({"max_sizes": {"pow": (9, 2.5)}}, "'pow': expected whole numbers of at least 1, or -1 for any, got .9, 2.5.$"),
  ({"max_sizes": {"pow": 9}}, "'pow': expected two sizes, of base and exponent, such as .9, 1., got 9$"),
  ({"max_sizes": {"/": (1, 2, 3)}}, "'/': expected two sizes, of numerator and denominator, .* got .1, 2, 3.$"),
  ({"max_sizes": {"sin": (3, 1)}}, "'sin': expected one size, of its argument, such as 5, got .3, 1.$"),
  ({"max_sizes": {"+": (3, 3)}}, "'[+]': expected one size, of each term, such as 5, got .3, 3.$"),
  ({"max_sizes": {"-": 3}}, "max_sizes: '-' is a sum here, of which '[+]' limits the terms"),
  ({"max_sizes": 3}, "max_sizes: expected sizes by operator, such as .'sin': 3., got 3$"),
  ({"max_sizes": ("sin", 3)}, "max_sizes: expected sizes by operator"),
  ({"max_sizes": (("sin", 3, 4),)}, "max_sizes: expected sizes by operator"),
  ({"max_sizes": (["sin", 3],)}, "max_sizes: expected sizes by operator"),
  ({"add_operators": ("tan h",)}, "add_operators: unknown operator 'tan h', expected some of tanh, sinh, cosh, abs, "),
  ({"operators": ("sine",)}, r"operators: unknown operator 'sine', expected some of \+, \*, pow, "),
  ({"required": ("w",)}, "required: no column 'w', expected some of 'x', 'y', 'z'"),
  ({"required": ("y",), "excluded": ("x", "y")}, "required: column 'y' is required and excluded at once"),
  ({"excluded": COLUMNS}, "excluded: every column is excluded"),
])
def test_wishes_that_cannot_be_met_say_why(wishes, message):
  with pytest.raises(InputError, match=message) as caught:
    Restrictions(**wishes).for_columns(COLUMNS)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("num", "nodes", "levels", "text"), [
  (1, 1, 1, "x0"), (2, 3, 2, "x0*x1"), (3, 5, 3, "x0 + x1*x2"), (4, 7, 3, "(x0 + x1)*(x2 + x3)"),
  (5, 9, 4, "(x0 + x1)*(x2 + x3*x4)")])
def test_required_columns_take_a_formula_of_some_size(num, nodes, levels, text):
  columns = tuple(f"x{i}" for i in range(num))

  def rule(**wishes):
    return Restrictions(required=columns, **wishes).for_columns(columns)
  least = rule(max_complexity=nodes, max_depth=levels)
  least.check_sizes()
  assert least(parser.parse(text, columns))
  if num > 1:
    for wishes, what in (({"max_complexity": nodes - 1}, f"{nodes} nodes, and max_complexity is {nodes - 1}"),
                         ({"max_depth": levels - 1}, f"{levels} levels, and max_depth is {levels - 1}")):
      with pytest.raises(InputError, match=f"^required: {num} columns take a formula of at least {what}$"):
        rule(**wishes).check_sizes()
  rule().check_sizes()


@pytest.mark.parametrize("argument", ["operators", "forbidden", "required", "excluded", "unnested", "add_operators"])
@pytest.mark.parametrize("value", ["sin", 3, ("sin", 3)])
def test_wishes_are_lists_of_names(argument, value):
  with pytest.raises(InputError, match=re.escape(f"{argument}: expected a list of names, got {value!r}")):
    Restrictions(**{argument: value}).check()


def test_the_least_that_may_be_asked_is_legal_and_columns_are_not_asked_before_there_are_data():
  Restrictions(max_exponent=1, max_depth=1, max_complexity=1).check()
  Restrictions(required=("any",), excluded=("other",)).check()
  with pytest.raises(InputError, match="max_depth"):
    Restrictions(max_depth=0, required=("any",)).check()


def test_sizes_are_kept_so_that_equal_rules_are_one():
  first = Restrictions(max_sizes={"sin": 3, "pow": [9, 1]})
  second = Restrictions(max_sizes={"pow": (9, 1), "sin": 3})
  assert first == second and len({first, second}) == 1
  assert dataclasses.replace(first, max_depth=3).max_sizes == second.max_sizes
  rule = first.for_columns(COLUMNS)
  assert rule.max_sizes == (("pow", (9, 1)), ("sin", (3,))) and hash(rule) == hash(second.for_columns(COLUMNS))
