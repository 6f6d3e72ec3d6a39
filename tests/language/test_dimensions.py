"""Dimensional analysis against pint, which evaluates formulas with quantities, and against linear algebra."""

from fractions import Fraction
import math

import numpy as np
import pytest

from symformer_jax.language import dimensions, parser, rules
from symformer_jax.language.dimensions import Dimensions, Powers
from symformer_jax.language.expression import VARIABLE, Node, number, variable, walk

pint = pytest.importorskip("pint")
COLUMNS = ("m", "s", "m/s", "radian")
TARGETS = ("m", "m/s", "1", "s**2", "m**0.5")
NAMES = ("x", "t", "v", "u")
UNARY = ("neg", "inv", "pow2", "pow3", "sqrt", "abs", "sign", "sin", "exp", "tanh")
BINARY = ("+", "+", "*", "*", "/", "-", "pow", "pow_number", "min", "max")


@pytest.fixture(scope="module")
def registry():
  return pint.UnitRegistry()


def powers(quantity) -> Powers:
  """By the base units; the tests need no other."""
  return Powers.of({name: Fraction(exponent).limit_denominator(4096)
                    for name, exponent in dict(quantity.dimensionality).items()})


def made(registry, *, are_constants_free: bool, target: str = "m") -> Dimensions:
  one = [powers(registry.Quantity(1, unit)) for unit in (*COLUMNS, target)]
  return Dimensions(tuple(one[:-1]), one[-1], are_constants_free)


def random_tree(rng: np.random.Generator, depth: int) -> Node:
  if depth == 0 or rng.random() < 0.2:
    return number(rng.integers(9, 16) / 8) if rng.random() < 0.3 else variable(int(rng.integers(len(COLUMNS))))
  if rng.random() < 0.35:
    return Node(str(rng.choice(UNARY)), (random_tree(rng, depth - 1),))
  token = str(rng.choice(BINARY))
  first, second = random_tree(rng, depth - 1), random_tree(rng, depth - 1)
  if token == "pow_number":
    token, second = "pow", number(rng.choice([-1.0, 0.5, 1.5, 2.0, 0.0, 4.0]))
  return Node(token, (first, second))


def evaluated(node: Node, registry, units_of_numbers):
  """By pint's own arithmetic; a power of something that varies by its logarithm."""
  numbers = iter(units_of_numbers)

  def value(n: Node):
    if n.token == VARIABLE:
      return registry.Quantity(np.array([1.3]), COLUMNS[n.value])
    if n.is_number:
      return registry.Quantity(np.array([n.value]), next(numbers))
    if n.token == "pow":
      base = value(n.args[0])
      if n.args[1].is_number:
        exponent = value(n.args[1])
        return base ** float(exponent.magnitude[0])
      return np.exp(value(n.args[1]) * np.log(base))
    args = [value(arg) for arg in n.args]
    functions = {
      "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
      "neg": lambda a: -a, "inv": lambda a: 1 / a, "pow2": lambda a: a**2, "pow3": lambda a: a**3, "abs": abs,
      "sign": lambda a: registry.Quantity(np.sign(a.magnitude)), "sqrt": lambda a: a**0.5, "min": np.minimum,
      "max": np.maximum, "sin": np.sin, "exp": np.exp, "tanh": np.tanh}
    return functions[n.token](*args)

  with np.errstate(all="ignore"):
    return value(node)


def has_numeric_exponents_alone(node: Node) -> bool:
  """Whether exponents are numbers or vary: of others (`x**sin(1)`) the value would have to be near a fraction."""
  return all(n.args[1].is_number or VARIABLE in {m.token for m in walk(n.args[1])}
             for n in walk(node) if n.token == "pow")


def test_without_units_of_constants_pint_decides(registry):
  """Whether `DimensionalityError` is raised, and what the dimension is."""
  rng, verdicts = np.random.default_rng(0), []
  for _ in range(600):
    node = random_tree(rng, int(rng.integers(1, 5)))
    if not has_numeric_exponents_alone(node):
      continue
    rule = made(registry, are_constants_free=False)
    try:
      expected = powers(evaluated(node, registry, [""] * 99))
    except pint.DimensionalityError:
      expected = None
    try:
      found = rule.of(node)
    except dimensions.MismatchError:
      found = None
    assert found == expected, node
    verdicts.append(found is None)
  assert 0.2 < np.mean(verdicts) < 0.8


def is_solvable(node: Node, columns, target) -> bool:
  """Whether units of the numbers exist, by linear algebra: an unknown for each number and base dimension."""
  numbers = [n for n in walk(node) if n.is_number]
  bases = sorted({name for one in [*columns, target] for name, _ in one.exponents})
  width, places, rows = len(numbers), iter(range(len(numbers))), []

  def vector(one: Powers):
    return np.concatenate([np.zeros((len(bases), width)), [[float(dict(one.exponents).get(b, 0))] for b in bases]], 1)

  def unknown(i: int):
    found = vector(Powers())
    found[:, i] = 1
    return found

  def of(n: Node):
    if n.token == VARIABLE:
      return vector(columns[n.value])
    if n.is_number:
      return unknown(next(places))
    args = [of(arg) for arg in n.args]
    if n.token == "pow" and n.args[1].is_number:
      rows.append(args[1])
      return n.args[1].value * args[0]
    if n.token in ("+", "-", "min", "max"):
      rows.append(args[0] - args[1])
      return args[0]
    if n.token in ("*", "/"):
      return args[0] + (1 if n.token == "*" else -1) * args[1]
    factor = {"neg": 1, "abs": 1, "inv": -1, "pow2": 2, "pow3": 3, "sqrt": 0.5}.get(n.token)
    if factor is None and n.token != "sign":
      rows.extend(args)
    return vector(Powers()) if factor is None else factor * args[0]

  rows.append(of(node) - vector(target))
  system = np.array(rows)  # [equations, bases, unknowns + 1]
  return all(np.linalg.matrix_rank(system[:, b, :-1]) == np.linalg.matrix_rank(system[:, b])
             for b in range(len(bases)))


def test_free_constants_are_the_unknowns_of_a_linear_system(registry):
  rng, verdicts = np.random.default_rng(1), []
  for _ in range(600):
    node, target = random_tree(rng, int(rng.integers(1, 5))), str(rng.choice(TARGETS))
    if not has_numeric_exponents_alone(node):
      continue
    rule = made(registry, are_constants_free=True, target=target)
    verdicts.append(rule.allows(node))
    assert verdicts[-1] == is_solvable(node, rule.columns, rule.target), (node, target)
  assert 0.2 < np.mean(verdicts) < 0.8


def test_units_of_numbers_make_the_formula_what_it_is_to_be(registry):
  """pint accepts each allowed formula with the units that are named, and gets the unit of y."""
  rng, num_checked = np.random.default_rng(2), 0
  columns = [Powers.of({"m": Fraction(1)}), Powers.of({"s": Fraction(1)}),
             Powers.of({"m": Fraction(1), "s": Fraction(-1)}), Powers()]
  target = Powers.of({"m": Fraction(1)})
  for _ in range(600):
    node = random_tree(rng, int(rng.integers(1, 5)))
    if not has_numeric_exponents_alone(node) or not made(registry, are_constants_free=True).allows(node):
      continue
    units = dimensions.units_of_numbers(node, columns, target)
    assert len(units) == sum(n.is_number for n in walk(node))
    if None not in units:
      found = evaluated(node, registry, [str(unit).replace("1/", "1 / ") for unit in units])
      assert powers(found) == powers(registry.Quantity(1, "m")), node
      num_checked += any(unit.exponents for unit in units)
  assert num_checked > 20


@pytest.mark.parametrize(("text", "free", "strict"), [
  ("v*t", True, True), ("x + v*t", True, True), ("2*x", True, True), ("2*t", True, False), ("x + t", False, False),
  ("x + 2.5*t", True, False), ("x + 2.5", True, False), ("sin(x)", False, False), ("2*sin(x)", False, False),
  ("2.5*sin(x)", False, False), ("2.5*sin(3.1*x)", True, False), ("x*sin(u)", True, True),
  ("x*exp(t/2.5)", True, False),
  ("x**1.5", False, False), ("1.5*x**1.5", True, False), ("x**2/x", True, True), ("sqrt(x**2 + v**2*t**2)", True, True),
  ("x**(1/3)*x**(2/3)", True, True), ("x*2.5**u", True, True), ("x**u", False, False), ("x*u**(v*t/x)", True, True),
  ("x*u**t", False, False), ("x*u**(2.5*t)", True, False), ("5", True, False), ("u", False, False), ("x*u", True, True),
  ("x**0*x", True, True), ("t**0*u*x", True, True), ("-x", True, True), ("x*cot(u) + v*t*atan(u)", True, True),
  ("x + 2.5**1.5", True, False), ("2.5 + 3.5", True, False), ("x + 2.5**0", False, False),
  ("2.5*log(x)", False, False), ("2.5*log(x/(v*t))", True, False), ("1/(1/x + 1/(v*t))", True, True),
])
def test_formulas_for_a_length(registry, text, free, strict):
  node = parser.parse(text, NAMES)
  assert made(registry, are_constants_free=True).allows(node) == free
  assert made(registry, are_constants_free=False).allows(node) == strict


@pytest.mark.parametrize(("text", "units"), [
  ("9.81*t**2", ["m/s**2"]), ("3.5*t + 2.5", ["m/s", "m"]), ("2*t", ["m/s"]), ("x*exp(1.5*t)", ["1/s"]),
  ("2.5*sin(1.5*x + 0.3)", ["m", "1/m", "1"]), ("x + v*(t + 0.5)", ["s"]), ("1.5*2.5*t", [None, None]),
  ("(2.5*t)**2", ["m**(1/2)/s"]), ("7.5*x**1.5", ["1/m**(1/2)", "1"]), ("4.4/(t + 2.2)", ["m*s", "s"]),
  ("(2.5*t)**1.5", ["m**(2/3)/s", "1"]), ("3.5*(2.5*t)**1.5", [None, None, "1"]), ("2.5*(-x)", ["1"]),
  ("2.5*abs(x)", ["1"]), ("x*sign(2.5*t)", [None]), ("x*sign(t)*2.5", ["1"]),
  ("x*(1.5 + u)", ["1"]), ("x**(1.5 + 0.5)*3.5", ["1", "1", "1/m"]), ("x/(0.5*t)*2", [None, None]),
])
def test_units_of_numbers(text, units):
  columns = [Powers.of({"m": Fraction(1)}), Powers.of({"s": Fraction(1)}),
             Powers.of({"m": Fraction(1), "s": Fraction(-1)}), Powers()]
  node = parser.parse(text, NAMES)
  found = dimensions.units_of_numbers(node, columns, columns[0])
  assert [None if unit is None else str(unit) for unit in found] == units


@pytest.mark.parametrize(("node", "units"), [
  (Node("/", (number(2.5), variable(1))), ["m*s"]), (Node("/", (Node("pow2", (variable(0),)), number(2.5))), ["m"]),
  (Node("*", (Node("pow", (number(2.5), number(0))), number(3.5))), [None, "1", "m"]),
  (Node("-", (variable(0), number(2.5))), ["m"]), (Node("max", (number(2.5), variable(0))), ["m"]),
  (Node("pow4", (Node("*", (number(2.5), variable(1))),)), ["m**(1/4)/s"])])
def test_units_of_numbers_of_other_trees(node, units):
  length, time = (Powers.of({name: Fraction(1)}) for name in "ms")
  found = dimensions.units_of_numbers(node, [length, time], length)
  assert [None if unit is None else str(unit) for unit in found] == units


def test_powers_multiply_divide_and_vanish():
  length, time = (Powers.of({name: Fraction(1)}) for name in "ms")
  assert str(length / time**2) == "m/s**2" and str(length * length) == "m**2" and length / length == Powers()
  assert length ** Fraction(0) == Powers() and Powers() * length == length * Powers() == length
  assert str(Powers() / time ** Fraction(3, 2)) == "1/s**(3/2)"
  for token, power in (("pow2", 2), ("pow3", 3), ("pow4", 4), ("pow5", 5), ("pow6", 6), ("inv", -1)):
    assert dimensions.combine(token, [length]) == length ** Fraction(power)
  assert dimensions.combine("sqrt", [length]) == length ** Fraction(1, 2)
  assert dimensions.combine("/", [length, time]) == length / time != dimensions.combine("*", [length, time])
  assert dimensions.combine("+", [None, None]) is None and dimensions.combine("min", [None, time]) == time
  assert dimensions.combine("neg", [time]) == time and dimensions.combine("sign", [time]) == Powers()


@pytest.mark.parametrize(("value", "exponent"), [
  (1 / 3, Fraction(1, 3)), (1 / 12, Fraction(1, 12)), (1 / 13, Fraction(1 / 13)), (0.5 + 0.9e-9, Fraction(1, 2)),
  (0.5 + 1.5e-9, Fraction(0.5 + 1.5e-9)), (1e-9, Fraction(0)), (1.5e-9, Fraction(1.5e-9)), (2, Fraction(2))])
def test_exponents_near_a_fraction_are_the_fraction(value, exponent):
  assert dimensions.exponent_of(number(value)) == exponent
  assert dimensions.exponent_of(Node("+", (number(value), number(1)))) in (exponent + 1, Fraction(value + 1))
  assert dimensions.exponent_of(variable(0)) is None


def test_a_dimension_that_no_product_of_columns_has_is_seen(registry):
  length, time = (powers(registry.Quantity(1, unit)) for unit in ("m", "s"))
  strict = Dimensions((length * time, length), time ** Fraction(3, 2), are_constants_free=False)
  assert strict.is_possible([0, 1]) and not strict.is_possible([1])
  assert Dimensions((length,), time).is_possible([0])
  assert not Dimensions((), time, are_constants_free=False).is_possible([])
  assert Dimensions((), Powers(), are_constants_free=False).is_possible([])


def test_a_rule_asks_for_dimensions(registry):
  rule = rules.Rule(4, dimensions=made(registry, are_constants_free=True))
  assert rule(parser.parse("v*t", NAMES)) and not rule(parser.parse("x + t", NAMES))
  assert hash(rule) == hash(rules.Rule(4, dimensions=made(registry, are_constants_free=True)))


def test_an_exponent_that_is_not_finite_is_no_power(registry):
  rule = made(registry, are_constants_free=True)
  for exponent in (math.inf, math.nan):
    assert not rule.allows(Node("pow", (variable(0), number(exponent))))
