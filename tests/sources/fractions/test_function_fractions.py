"""Fractions in one function with one inner constant."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, FunctionFractionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.fractions import function_fractions

CONFIG = DEFAULT.function_fractions
NAMES = ("x", "y", "z", "w")


def rows_of(text, box, *, num_rows=100, noise=0.0, seed=1):
  rng = np.random.default_rng(seed)
  x = np.column_stack([rng.uniform(low, high, round(num_rows * len(box))) for low, high in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return Rows(x, y + noise * np.std(y) * rng.normal(size=len(y)), np.ones(len(y)))


def found_for(rows, *, config=DEFAULT, rule=None):
  columns = range(rows.x.shape[1])
  return function_fractions.fractions_of(rows, columns, rule or Rule(len(columns)), config)


def left_of(form, rows):
  return float(np.mean((expression.evaluate(form, rows.x) - rows.y) ** 2) / np.var(rows.y))


@pytest.mark.parametrize(("text", "box"), [
  ("4.2 - 2.1*(1 - exp(-x/1.8))/(x/1.8) + 1.6*((1 - exp(-x/1.8))/(x/1.8) - exp(-x/1.8))", [(0.25, 30)]),
  ("y + (x - y)/(1 + (z/3.1)**1.43)", [(0, 5), (5, 10), (0.5, 8)]),
  ("x**3/(exp(0.83*x) - 1)", [(0.1, 10)]), ("x/(exp(0.4*x) - 1) + 2.2", [(0.5, 6)]),
  ("(exp(1.4*x) + 1)/(exp(1.4*x) - 1) - 1/(0.7*x)", [(0.1, 8)]), ("3.1*x**2.3/(1.7 + x**2.3) + 0.4*x", [(0.1, 4)]),
  ("(2*x + 1)*log(1.4 + x)/(x + 3)", [(0, 5)]), ("x*log(x + 2.3) - 0.4*x", [(0, 5)]),
  ("2.1*(exp(0.4*x) + exp(-0.4*x)) + 0.3*x", [(-5, 5)]),
  ("(1 - exp(-x*(1 - y)))/(1 - y*exp(-x*(1 - y)))", [(0.1, 5), (0.1, 0.9)]),
  ("(x + y)/(exp(0.7*(x - y)) + 2)", [(0, 4), (0, 4)]),
  ("0.07*exp(-x/20)/(0.07*exp(-x/20) + 1/(exp((30 - x)/10) + 1))", [(0, 60)]),
  ("9.87*sin(2*0.0172615*(x - 81)) - 7.53*cos(0.0172615*(x - 81)) - 1.5*sin(0.0172615*(x - 81))", [(1, 365)]),
  ("sqrt((9.81*x + 0.0728*x**3)*(1 - 2/(exp(2*x*y) + 1)))", [(1, 9), (0.05, 0.6)]),
  ("x*sin(5.1*x) + 2*cos(10.2*x) - x + 3", [(0, 6)]),
  # Waves below the line, of powers of a column, poles among the rows.
  ("1/cos(2.1*x) + 1.3/x**2 + x + 2", [(-5, 5)]), ("4.2*x/cos(2.1*x)", [(-5, 5)]),
  ("4/cos(x**3 - 0.6) + 2.3", [(-5, 5)]), ("1.7*x**4 - 64*cos(x**2) + 107*x**3 - x*cos(x**2)", [(-5, 5)]),
  ("1/(0.2*exp(-1.1*x)*x + x**3 + x)", [(-5, 5)]), ("5*x**2.1 - 12.6/x + 5*x**2 + 30", [(0, 5)]),
  ("x + y + 2*sqrt(x*y)*cos(17.342*z/w)", [(1, 5), (1, 5), (0.2, 1), (0.5, 1.5)])])
def test_fractions_of_laws_are_found(text, box):
  rows = rows_of(text, box)
  forms = found_for(rows)
  assert forms and min(left_of(form, rows) for form in forms) < 1e-12
  assert left_of(forms[0], rows) < 1e-6  # of the fewest terms, before constants are fitted
  assert expression.complexity(forms[0]) <= 1.6 * expression.complexity(parser.parse(text, NAMES[: len(box)])) + 4


@pytest.mark.parametrize(("text", "box"), [
  ("sin(3*x**4) + 2", [(0, 2)]), ("exp(-x**2) + 0.3*x**1.4", [(0.1, 3)]), ("x**3 - x", [(-2, 2)]),
  ("(x + 1)/(x**2 + 3)", [(-2, 2)])])
def test_other_functions_have_none(text, box):
  assert found_for(rows_of(text, box)) == []


def test_noise_has_none(rng):
  assert found_for(rows_of("x**3/(exp(0.83*x) - 1)", [(0.1, 10)], noise=1e-3)) == []
  assert found_for(Rows(rng.uniform(0, 1, (80, 2)), rng.normal(size=80), np.ones(80))) == []


@pytest.mark.parametrize(("text", "box"), [
  # Above and below the line a number and a function each, once y is multiplied by a power of the column.
  ("7.1*x**(-5)/(exp(7.993/x) - 1)", (0.4, 12)),
  ("(1 - exp(-3.1*sqrt(x)))/(sqrt(x)*(1 + exp(-3.1*sqrt(x))))", (0.02, 4)),
  ("24.9*(13.4/x)**2*exp(13.4/x)/(exp(13.4/x) - 1)**2", (1.5, 15))])
def test_products_of_y_and_powers_of_one_column(text, box):
  rows = rows_of(text, [box])
  forms = found_for(rows)
  assert min(left_of(form, rows) for form in forms) < 1e-12
  assert expression.complexity(forms[0]) <= 1.6 * expression.complexity(parser.parse(text, NAMES[:1])) + 4
  none = dataclasses.replace(DEFAULT, function_fractions=dataclasses.replace(CONFIG, multipliers=()))
  without = found_for(rows, config=none)
  assert not without or left_of(without[0], rows) > 1e-12 or (
    expression.complexity(without[0]) > expression.complexity(forms[0]))


def test_rates_are_those_of_the_denser_half_of_the_rows():
  """Quotients of columns have few rows far out: exponentials count where most rows are."""
  rng = np.random.default_rng(0)
  far = rng.uniform(0.5, 30, 200) / rng.uniform(0.3, 100, 200)
  for argument, sign in ((far, -1), (-far, 1)):
    rates = function_fractions._rates(argument, CONFIG)
    low, middle, high = np.quantile(argument, [0.05, 0.5, 0.95])
    dense = 2 * min(middle - low, high - middle)
    assert np.all(np.sign(rates) == sign) and np.all(np.diff(np.abs(rates)) > 0)
    assert np.abs(rates[[0, -1]]) == pytest.approx([0.2 / (high - low), 60 / dense])
    ratio = (60 / 0.2) ** (1 / (CONFIG.num_constants - 1))
    assert abs(rates[1] / rates[0]) == pytest.approx(ratio, rel=0.01)
  assert len(function_fractions._rates(np.linspace(0, 1, 200), CONFIG)) == CONFIG.num_constants
  # No denser half, where half of the rows have one value.
  for argument in (np.array([0.0] * 60 + [*np.linspace(0.1, 8, 40)]), np.array([1.0] * 19 + [2.0, 2.0])):
    rates = function_fractions._rates(argument, CONFIG)
    assert np.all(rates < 0) and len(rates) == 2 * CONFIG.num_constants
  assert function_fractions._rates(np.array([1.0] * 99 + [2.0]), CONFIG) is None
  rows = Rows(far[:, None], np.sqrt(1.6 - 3.1 / (np.exp(12.6 * far) + 1)), np.ones(200))
  assert min(left_of(form, rows) for form in found_for(rows)) < 1e-20


def test_columns_that_are_0_in_most_rows_have_exponentials():
  rng = np.random.default_rng(2)
  for share in (0.55, 0.6):
    x = np.where(rng.uniform(size=200) < share, 0.0, rng.uniform(0, 8, 200))
    rows = Rows(x[:, None], 2.3 * (1 - np.exp(-0.6 * x)) + 0.7 * x, np.ones(200))
    assert min(left_of(form, rows) for form in found_for(rows)) < 1e-20


def test_multiples_are_asked_of_rules_that_have_them():
  rows = rows_of("7.1*x**(-5)/(exp(7.993/x) - 1)", [(0.4, 12)])
  assert len(list(function_fractions._multiples(rows, 0, Rule(1), CONFIG))) == len(CONFIG.multipliers)
  rule = dataclasses.replace(Rule(1), tokens=frozenset({"+", "*", "inv", "exp", "pow2"}))
  assert len(list(function_fractions._multiples(rows, 0, rule, CONFIG))) < len(CONFIG.multipliers)


def test_a_sum_has_the_function_once():
  """a + (b - a)/(1 + z**c) beside (b + a*z**c)/(1 + z**c), which is as short."""
  rows = rows_of("y + (x - y)/(1 + (z/3.1)**1.43)", [(0, 5), (5, 10), (0.5, 8)])
  forms = found_for(rows)[:2]
  tokens = [[node.token for node in expression.walk(form)] for form in forms]
  assert (1, 4) in [(some.count("pow"), some.count("variable")) for some in tokens]


def test_a_multiple_of_the_line_is_taken_out():
  rows = rows_of("1/(x - 42*5**(-y)) + 1.3", [(-5, -1), (0.2, 3)])
  form = found_for(rows)[0]
  assert left_of(form, rows) < 1e-9
  assert expression.complexity(form) <= expression.complexity(parser.parse("1/(2*x - 42*exp(-3*y)) + 1.3", NAMES[:2]))
  assert all(np.isfinite(expression.evaluate(form, rows.x)))


def test_what_divides_all_terms_stands_below_none():
  rows = rows_of("(1 - exp(-0.6*x))/x + 3", [(0.2, 9)])
  text = printing.to_text(found_for(rows)[0], ["x"])
  assert text.count("exp") == 1 and "exp(0." not in text


def test_operators_that_are_forbidden_are_not_used():
  rows = rows_of("x**3/(exp(0.83*x) - 1)", [(0.1, 10)])
  rule = Restrictions(forbidden=("exp",)).for_columns(["x"])
  assert all("exp" not in printing.to_text(form, ["x"]) for form in found_for(rows, rule=rule))
  assert found_for(rows)


@pytest.mark.parametrize(("text", "box", "least"), [
  ("3*exp(-0.7*x) - 0.4", [(0, 5)], 24), ("sin(3*x) + 0.1*x", [(0, 5)], 36),
  ("x*exp(-0.7*y) + y", [(1, 5), (0, 5)], 32)])
def test_there_are_rows_enough_for_every_term(text, box, least):
  """Four for each: of one column two times two and one times two terms, of waves two times three and three."""
  assert found_for(rows_of(text, box, num_rows=least / len(box))) != []
  assert found_for(rows_of(text, box, num_rows=(least - 1) / len(box))) == []


def test_roots_stand_beside_functions_of_other_columns(rng):
  x = rng.uniform(1, 2, (40, 3))
  basis = next(each for each in function_fractions._bases([0, 1, 2], x, CONFIG.degrees[2]) if each.has_roots)
  of_two = basis.of(parser.parse("x/z", NAMES))
  assert of_two.above == ((), ((1, 0.5),), ((1, 1.0),)) and of_two.below == ((),)
  assert len(basis.of(parser.parse("y", NAMES)).above) == 6
  x[0, 1] = -1e-9
  assert not any(each.has_roots for each in function_fractions._bases([0, 1, 2], x, CONFIG.degrees[2]))
  assert any(each.has_roots for each in function_fractions._bases([0, 2], x, CONFIG.degrees[1]))


def test_monomials_are_up_to_a_total_degree():
  assert function_fractions._up_to([0, 2], 2, 1) == (
    (), ((2, 1.0),), ((0, 1.0),), ((2, 2.0),), ((0, 1.0), (2, 1.0)), ((0, 2.0),))
  assert function_fractions._up_to([0, 1, 2], 0, 1) == ((),)
  assert function_fractions._up_to([1], 1, 0.5) == ((), ((1, 0.5),), ((1, 1.0),))


def test_the_share_is_the_sine_between_the_spaces():
  """By SciPy's principal angles."""
  from scipy.linalg import subspace_angles

  rows = rows_of("x**2 + sin(x)", [(0.5, 3)])
  equation = function_fractions._Equation(rows, rows.y)
  basis = next(function_fractions._bases([0], rows.x, CONFIG.degrees[0]))
  constants, family = np.array([0.3, 1.2]), function_fractions.FAMILIES["exponentials"]
  shares = equation.shares(family, constants, rows.x[:, 0], basis)
  for function, share in zip(np.exp(constants[:, None] * rows.x[:, 0]), shares, strict=True):
    root = np.sqrt(rows.weights / rows.weights.sum()) / np.hypot(1, rows.y / np.median(np.abs(rows.y)))
    above = root[:, None] * np.column_stack([np.ones(100), function, rows.x[:, 0], rows.x[:, 0] * function])
    below = (root * rows.y)[:, None] * np.column_stack([np.ones(100), function])
    assert share == pytest.approx(np.sin(subspace_angles(above, below)[-1]) ** 2, rel=1e-6)


@pytest.mark.parametrize("name", function_fractions.FAMILIES)
def test_families_are_the_formulas_they_are_written_as(name):
  """But for a factor, which is no constant of the function."""
  family, x = function_fractions.FAMILIES[name], np.linspace(0.3, 4, 20)[:, None]
  constants = family.constants(x[:, 0], CONFIG)
  assert len(constants) == (CONFIG.num_frequencies if name == "waves" else CONFIG.num_constants)
  assert np.all(np.diff(constants) > 0)
  values = family.table(constants, x[:, 0], 2)
  assert values.shape == (len(constants), 20, family.num(2)) and np.all(values[:, :, 0] == 1)
  for i, k in itertools.product((0, 20, 47), range(1, family.num(2))):
    node = family.node(expression.variable(0), float(constants[i]), k, 0.0)
    ratio = expression.evaluate(node, x) / values[i, :, k]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_powers_are_of_what_is_above_zero_and_varies():
  constants = function_fractions.FAMILIES["powers"].constants
  assert constants(np.array([-1.0, 2]), CONFIG) is None and constants(np.array([0.0, 2]), CONFIG) is None
  assert constants(np.array([1.0, 1.4]), CONFIG) is None and constants(np.array([1.0, 1.6]), CONFIG) is not None
  assert function_fractions.FAMILIES["exponentials"].constants(np.array([0.0] * 50 + [9.0]), CONFIG) is None


def test_weights_count():
  rows = rows_of("3.1*x**2.3/(1.7 + x**2.3) + 0.4*x", [(0.1, 4)])
  weights, y = np.ones(100), rows.y.copy()
  weights[:5], y[:5] = 1e-15, y[:5] + 1.0
  assert found_for(Rows(rows.x, y, np.ones(100))) == []
  assert left_of(found_for(Rows(rows.x, y, weights))[0], rows) < 1e-6


@pytest.mark.parametrize("text", ["x*exp(-0.7*x) - 0.4*x", "x**2*exp(-0.7*x) - 0.4*x"])
def test_a_row_of_zero_spoils_nothing(text):
  rows = rows_of(text, [(0, 5)])
  x, y = np.vstack([[0.0], rows.x[1:]]), np.array([0.0, *rows.y[1:]])
  assert left_of(found_for(Rows(x, y, rows.weights))[0], rows) < 1e-6


def test_columns_that_are_the_same_in_the_rows_looked_at_are_none(rng):
  rows = rows_of("3.1*x**2.3/(1.7 + x**2.3) + 0.4*x", [(0.1, 4)], num_rows=1000)
  rare = np.zeros((1000, 1))
  rare[next(i for i in range(1000) if rows.x[i] not in rows.sample(CONFIG.num_rows, seed=0).x)] = 1
  assert found_for(Rows(np.hstack([rows.x, rare]), rows.y, rows.weights))


def test_columns_that_are_sums_of_others_take_no_part():
  rows = rows_of("y*exp(-0.7*x) + 0.4*y", [(0, 5), (1, 3)])
  twice = Rows(np.hstack([rows.x, rows.x[:, 1:]]), rows.y, rows.weights)
  assert len({node.value for node in expression.walk(found_for(twice)[0]) if node.token == "variable"}) == 2
  dummies = np.eye(3)[np.arange(200) % 3]
  some = function_fractions._independent(function_fractions._up_to([0, 1, 2], 2, 1), dummies)
  assert len(some) == 3


def test_few_different_rows_are_few():
  x = np.repeat(np.linspace(1, 2, 8), 12)[:, None]
  assert found_for(Rows(x, np.random.default_rng(0).normal(size=96), np.ones(96))) == []


def test_exponentials_of_years_are_written_from_an_origin():
  rows = rows_of("3*exp(0.4*(x - 2005)) + 2 - 0.1*(x - 1990)", [(1980, 2005)])
  form = found_for(rows)[0]
  assert left_of(form, rows) < 1e-6


def test_no_more_is_looked_at_than_asked_for(monkeypatch):
  asked = []
  real = function_fractions._Equation.shares
  monkeypatch.setattr(function_fractions._Equation, "shares", lambda self, family, constants, argument, basis: (
    asked.append((self, basis, len(constants))) or real(self, family, constants, argument, basis)))
  rows = rows_of("exp(-x**2) + 0.3*x**1.4", [(0.1, 3)])
  def looks(**changes):
    asked.clear()
    found_for(rows, config=dataclasses.replace(
      DEFAULT, function_fractions=dataclasses.replace(CONFIG, **changes)))
    return [(self, basis) for self, basis, num in asked if num > CONFIG.num_parts + 1]
  all_looks = looks()
  few = looks(num_bases_of_links=1)
  equations = list(dict.fromkeys(equation for equation, _ in all_looks))
  multiples = len(CONFIG.multipliers)
  assert len(equations) == 2 + multiples
  assert len({basis for equation, basis in all_looks if equation is equations[1]}) == 4
  assert all(len({basis for each, basis in all_looks if each is equation}) == 1 for equation in equations[2:])
  first = few[0][0]
  assert len({basis for equation, basis in few if equation is first}) == len(CONFIG.degrees[0])
  assert len(few) < len(all_looks)
  assert len({each for each, _ in looks(num_bases_of_links=99)}) == 2 + multiples
  assert len(looks(max_arguments=1)) == len(CONFIG.degrees[0]) + 4 + multiples
  assert len(looks(max_arguments=1, multipliers=())) == len(CONFIG.degrees[0]) + 4
  # A minimum that does not leap is left after the first divisions.
  num_fine = sum(num == CONFIG.num_parts + 1 for *_, num in asked)
  looks(max_arguments=1, first_leap=1.0)
  assert sum(num == CONFIG.num_parts + 1 for *_, num in asked) > num_fine


def test_few_sizes_are_written():
  rows = rows_of("x**3/(exp(0.83*x) - 1)", [(0.1, 10)])
  one = dataclasses.replace(DEFAULT, function_fractions=dataclasses.replace(CONFIG, num_sizes=1))
  assert 0 < len(found_for(rows, config=one)) < len(found_for(rows))


def test_constant_and_single_valued_data_have_none():
  x = np.linspace(1, 2, 40)[:, None]
  assert found_for(Rows(x, np.ones(40), np.ones(40))) == []
  assert found_for(Rows(np.ones((40, 1)), x[:, 0], np.ones(40))) == []


def test_configs_are_checked():
  for name in ("max_arguments", "num_bases_of_links", "num_rows", "rows_per_term", "num_constants", "num_frequencies",
               "num_around", "num_fitted", "num_parts", "num_divisions", "num_first", "num_sizes"):
    with pytest.raises(ValueError, match=name):
      FunctionFractionsConfig(**{name: 0})
  with pytest.raises(ValueError, match="links"):
    FunctionFractionsConfig(links=("sinus",))
  with pytest.raises(ValueError, match="arguments"):
    FunctionFractionsConfig(of_sums=("sines",))
