"""What formulas a user wants: which trees count, and which wishes contradict each other."""

import pytest

from symformer_jax.errors import InputError
from symformer_jax.language import parser
from symformer_jax.language.rules import Restrictions

COLUMNS = ("x", "y", "z")


def counts(text, **wishes):
  return Restrictions(**wishes).for_columns(COLUMNS)(parser.parse(text, COLUMNS))


@pytest.mark.parametrize(("text", "wishes", "is_wanted"), [
  ("x + y", {}, True),
  ("x + y", {"required": ("x",)}, True),
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
  # Several wishes at once: each counts.
  ("sin(x)", {"operators": ("sin",), "max_depth": 1}, False),
  ("sin(x)", {"operators": ("sin",), "max_complexity": 1}, False),
])
def test_which_formulas_count(text, wishes, is_wanted):
  assert counts(text, **wishes) == is_wanted


def test_columns_beyond_the_datas_do_not_count():
  rule = Restrictions().for_columns(("x", "y"))
  assert rule(parser.parse("x + y", COLUMNS)) and not rule(parser.parse("x + z", COLUMNS))


@pytest.mark.parametrize(("wishes", "is_open"), [
  ({}, True), ({"required": ("x",), "max_complexity": 5}, True), ({"operators": ("+",)}, False),
  ({"forbidden": ("+",)}, False), ({"max_exponent": 2}, False), ({"max_depth": 3}, False),
  ({"unnested": ("sin",)}, False)])
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
  ({"required": ("w",)}, "required: no column 'w', expected some of 'x', 'y', 'z'"),
  ({"required": ("y",), "excluded": ("x", "y")}, "required: column 'y' is required and excluded at once"),
  ({"excluded": COLUMNS}, "excluded: every column is excluded"),
])
def test_wishes_that_cannot_be_met_say_why(wishes, message):
  with pytest.raises(InputError, match=message) as caught:
    Restrictions(**wishes).for_columns(COLUMNS)
  assert "\n" not in str(caught.value)


def test_the_least_that_may_be_asked_is_legal_and_columns_are_not_asked_before_there_are_data():
  Restrictions(max_exponent=1, max_depth=1, max_complexity=1).check()
  Restrictions(required=("any",), excluded=("other",)).check()
  with pytest.raises(InputError, match="max_depth"):
    Restrictions(max_depth=0, required=("any",)).check()
