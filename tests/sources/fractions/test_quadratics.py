"""Roots of quadratic equations: which formulas are found, exactly and with digits lost, and which data have none."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import registry
from symformer_jax.sources.fractions import quadratics

NAMES = ("x", "y", "z", "w")
ROOTS = (
  ("(x + y)/2 + sqrt((x - y)**2/4 + z**2)", ((-5, 5), (-5, 5), (-4, 4))),
  ("(x + y)/2 - sqrt((x - y)**2/4 + z**2)", ((-5, 5), (-5, 5), (-4, 4))),
  ("(-y + sqrt(y**2 + 4*x*z))/(2*x)", ((1, 3), (-3, 3), (0.5, 4))),
  ("(-y - sqrt(y**2 + 4*x*z))/(2*x)", ((-3, -1), (-3, 3), (-4, -0.5))),
  ("x + y + 1.3 - sqrt((x + y + 1.3)**2 - 4*x*y)", ((0.1, 4), (0.1, 3))),
  ("w - 3*y*sqrt(z - x**2)", ((0.1, 1), (-3, -0.2), (2, 5), (-2, 2))),
  ("2*x - sqrt(x**2 + 3) + 1", ((-3, 3),)),
  ("sqrt((x + y + z)*(x + y - z)*(x - y + z)*(y + z - x))/4", ((3, 4),) * 3),
  ("-x/sqrt((y**2 - 4)**2 + z**2*y**2)", ((1, 5), (0.5, 4), (0.1, 1.5))),
  ("(1 + 2*x)/(1 + 2*x*sqrt(1 - y))", ((0.1, 2), (0, 0.9))),
  ("sqrt((1 + (2*y*x)**2)/((1 - x**2)**2 + (2*y*x)**2))", ((0.2, 2.5), (0.1, 0.8))),
  ("1e6*x - 2e4*sqrt(y)", ((1e-3, 5e-3), (1e3, 5e3))),
  # of functions of columns
  ("y*cos(x) + sqrt(z**2 - y**2*sin(x)**2)", ((0.1, 6), (1, 2), (3, 6))),
  ("x*cos(y)*(x*sin(y) + sqrt(x**2*sin(y)**2 + 2*z))", ((1, 4), (0.2, 1.3), (0.5, 3))),
  ("(sqrt(2*y/(x + y)) - 1)/sqrt(x)", ((1, 4), (1, 6))),
  ("(x*cos(z) - sqrt(y**2 - (x*sin(z))**2))/(x*cos(z) + sqrt(y**2 - (x*sin(z))**2))",
   ((1, 1.4), (1.45, 2.5), (0, 1.5))),
  ("sqrt((0.3*y*sin(pi*x/180))**2 + y*z) - 0.3*y*sin(pi*x/180)", ((20, 70), (1, 15), (0.5, 6))),
)
SQUARES = (
  ("((cos(x) - sqrt(y**2 - sin(x)**2))/(cos(x) + sqrt(y**2 - sin(x)**2)))**2", ((0, 1.5), (1.3, 2.6))),
  ("(x + sqrt(y + x**3))**2", ((0.5, 2), (1, 3))),
)


class AnyRule:
  def __call__(self, node):
    return True

  def allows_operator(self, token):
    return True


def table(text, box, *, noise=0.0, num_rows=256, seed=0):
  rng = np.random.default_rng(seed)
  x = np.column_stack([rng.uniform(*side, num_rows) for side in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return Rows(x, y + noise * np.std(y) * rng.standard_normal(num_rows), np.ones(num_rows))


def find(rows, **changes):
  return quadratics.roots_of(rows, range(rows.x.shape[1]), rule=changes.pop("rule", AnyRule()), **changes)


@pytest.mark.parametrize(("text", "box"), SQUARES)
def test_y_is_the_square_of_a_root(text, box):
  rows = table(text, box)
  [node] = find(rows)
  other = table(text, box, seed=1)
  np.testing.assert_allclose(expression.evaluate(node, other.x), other.y, rtol=1e-6, atol=1e-9 * np.std(other.y))
  alone = dataclasses.replace(DEFAULT.quadratics, links=("y",))
  # Multiplied out it is a root itself, of an equation of the fourth degree that some processors' rounding lets through.
  for each in find(rows, config=alone):
    np.testing.assert_allclose(expression.evaluate(each, rows.x), rows.y, rtol=1e-6, atol=1e-9 * np.std(rows.y))
  rounded = Rows(rows.x, np.round(rows.y, 6), rows.weights)
  assert find(rounded) == []
  for each in find(Rows(rows.x, -rows.y, rows.weights)):  # of what is below 0 there is no root, that is squared
    np.testing.assert_allclose(-expression.evaluate(each, rows.x), rows.y, rtol=1e-6, atol=1e-9 * np.std(rows.y))


def test_the_unit_of_y_does_not_matter_under_noise():
  rows = table(*ROOTS[0], noise=1e-5)
  for unit in (1.0, 1e4, 1e-4):
    [node] = find(Rows(rows.x, unit * rows.y, rows.weights))
    np.testing.assert_allclose(expression.evaluate(node, rows.x), unit * rows.y, atol=1e-3 * unit * np.std(rows.y))


def test_squares_are_of_more_than_one_column_and_as_the_rules_are():
  rows = table("(x + sqrt(2 + x**3))**2", ((0.5, 2),))
  assert find(rows) == []
  rule = Restrictions(forbidden=("pow2",)).for_columns(NAMES[:2])
  assert find(table(*SQUARES[1]), rule=rule) == []


@pytest.mark.parametrize(("text", "box"), ROOTS)
def test_a_root_is_found_and_is_the_same_elsewhere(text, box):
  [node] = find(table(text, box))
  other = table(text, box, seed=1)
  np.testing.assert_allclose(expression.evaluate(node, other.x), other.y, rtol=1e-6, atol=1e-9 * np.std(other.y))


def test_a_discriminant_of_many_terms_stays_a_square_less_a_product():
  text = "(x + 1.3*y*z + 0.7*z**2 - sqrt((x + 1.3*y*z + 0.7*z**2)**2 - 3*x*y))/2"
  rows = table(text, ((2, 5), (0.5, 2), (1, 3)))
  [node] = find(rows)
  np.testing.assert_allclose(expression.evaluate(node, rows.x), rows.y, rtol=1e-7)
  assert expression.complexity(node) <= 42
  few = find(table("(x + sqrt(x**2 - 3*x*y))/2", ((5, 9), (0.5, 1))))[0]  # as a power of x it is shorter
  assert not any(each.token == "pow2" and each.args[0].token == "*" for each in expression.walk(few))


@pytest.mark.parametrize(("inside", "sign", "beside"), [
  ("5 - y/(3*x + 3*y)", 1.0, 3.6), ("(x*y + 2)/x", -1.0, 4.0), ("(x - y**2)/(x*y - 1)", 1.0, -0.7)])
def test_what_a_root_divides_by_may_have_both_signs(inside, sign, beside):
  drawn = table(inside, ((-5, 5), (-5, 5)))
  is_defined = drawn.y > 0
  x, y = drawn.x[is_defined], beside + sign * np.sqrt(drawn.y[is_defined])
  [node] = find(Rows(x, y, np.ones(len(y))))
  np.testing.assert_allclose(expression.evaluate(node, x), y, rtol=1e-6)
  assert expression.complexity(node) <= expression.complexity(parser.parse(f"1.5 - 2*sqrt({inside})", NAMES[:2])) + 2


@pytest.mark.parametrize(("text", "box"), [ROOTS[0], ROOTS[2], ROOTS[4], ROOTS[6]])
def test_with_six_digits_the_same_formula_comes_near(text, box):
  [node] = find(table(text, box, noise=1e-6))
  clean = table(text, box)
  assert np.mean((expression.evaluate(node, clean.x) - clean.y) ** 2) < 1e-8 * np.var(clean.y)
  # Only exact coefficients are factored.
  assert expression.complexity(node) <= 1.4 * expression.complexity(find(clean)[0])


@pytest.mark.parametrize("text", ["exp(x)", "sin(3*x)", "log(x)", "x**2.3", "arctan(x)"])
@pytest.mark.parametrize("box", [(0.9, 1.0), (0.5, 4.0)])
def test_what_approximates_another_function_is_no_exact_answer(text, box):
  rows = table(text, (box,))
  for node in find(rows):
    assert np.mean((expression.evaluate(node, rows.x) - rows.y) ** 2) > 1e-22 * np.var(rows.y)


def test_noise_and_both_branches_have_no_root():
  rng = np.random.default_rng(5)
  x = rng.uniform(1, 3, (200, 2))
  assert find(Rows(x, rng.standard_normal(200), np.ones(200))) == []
  both = x[:, 0] + rng.choice([-1.0, 1.0], 200) * np.sqrt(x[:, 1])
  assert find(Rows(x, both, np.ones(200))) == []


@pytest.mark.parametrize("y", [np.full(50, 2.0), np.full(50, np.inf), np.zeros(50)])
def test_degenerate_targets(y):
  x = np.linspace(1, 2, 50)[:, None]
  assert find(Rows(x, y, np.ones(50))) == []


def test_columns_that_do_not_vary_and_few_rows():
  rows = table("x + sqrt(y)", ((0, 3), (1, 4)))
  wide = Rows(np.column_stack([np.full(256, 7.0), rows.x]), rows.y, rows.weights)
  [node] = quadratics.roots_of(wide, (0, 1, 2), rule=AnyRule())
  np.testing.assert_allclose(expression.evaluate(node, wide.x), wide.y, rtol=1e-9)
  assert find(table("x + sqrt(y)", ((0, 3), (1, 4)), num_rows=8)) == []


def test_the_rules_count():
  text, box = ROOTS[0]
  rows = table(text, box)
  data = (rows.x, rows.y)
  task = make_task(data, NAMES[:3], SearchOptions(restrictions=Restrictions(excluded=("z",))))
  assert find(rows, rule=task.rule) == []
  source = registry.SOURCES["quadratics"](None, SearchOptions())
  assert source == quadratics.Quadratics(DEFAULT) and "quadratics" in registry.WITHOUT_MODEL
  assert source.supports(make_task(data, NAMES[:3], SearchOptions()))
  assert not source.supports(make_task(data, NAMES[:3], SearchOptions(restrictions=Restrictions(forbidden=("sqrt",)))))
