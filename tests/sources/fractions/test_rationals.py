"""Rational functions come out as they are: terms, values beyond the rows, and nothing that only looks like one."""

import dataclasses

import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import scoring
from symformer_jax.sources import registry
from symformer_jax.sources.fractions import polynomials, rational_bases, rational_fits
from symformer_jax.sources.fractions.rationals import Rationals, rationals_of

NAMES = tuple("xyzwvu")


def rows_of(truth, rng, *, low=0.2, high=5.0, num_variables=1, num_rows=100, weights=None):
  x = rng.uniform(low, high, (num_rows, num_variables))
  y = truth(x) if callable(truth) else scoring.evaluate(parser.parse(truth, NAMES), x)
  return Rows(x, y, np.ones(num_rows) if weights is None else weights)


def found_in(rows, rule=None, config=DEFAULT.rationals):
  num_variables = rows.x.shape[1]
  return rationals_of(rows, range(num_variables), rule=rule or Rule(num_variables), config=config)


def shares(nodes, rows):
  """Of the variance missed."""
  return np.array([scoring.score(scoring.evaluate(node, rows.x), rows.y).mse / np.var(rows.y) for node in nodes])


def simplest_exact(nodes, rows):
  exact = [node for node, share in zip(nodes, shares(nodes, rows), strict=True) if share < 1e-18]
  return min(exact, key=expression.complexity, default=None)


def random_fraction(rng, num_variables):
  """P/Q of few terms with coefficients above 0, so that Q has no zero where x is positive: a function of x [N, D]."""
  degree = {1: 4, 2: 2, 3: 1}[num_variables]
  monomials = np.array([p for p in np.ndindex(*[degree + 1] * num_variables) if sum(p) <= degree])

  def polynomial(num_terms, powers=None):
    powers = monomials[rng.choice(len(monomials), num_terms, replace=False)] if powers is None else powers
    coefficients = rng.uniform(0.5, 2.0, len(powers))
    return lambda x: np.prod(x[:, None, :] ** powers[None], axis=2) @ coefficients

  chosen = np.vstack([monomials[:1], monomials[1:][rng.choice(len(monomials) - 1, 2, replace=False)]])
  above, below = polynomial(2), polynomial(3, chosen)
  return lambda x: above(x) / below(x)


@pytest.mark.parametrize("num_variables", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_fractions_hold_beyond_the_rows(seed, num_variables):
  rng = np.random.default_rng([seed, num_variables])
  truth = random_fraction(rng, num_variables)
  rows = rows_of(truth, rng, num_variables=num_variables, num_rows=60 * num_variables)
  node = simplest_exact(found_in(rows), rows)
  fresh = rng.uniform(0.1, 8.0, (200, num_variables))
  np.testing.assert_allclose(expression.evaluate(node, fresh), truth(fresh), rtol=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("num_variables", [1, 2, 3])
def test_under_noise_some_fit_is_as_near_as_the_truth(seed, num_variables):
  rng = np.random.default_rng([seed, num_variables])
  truth = random_fraction(rng, num_variables)
  clean = rows_of(truth, rng, num_variables=num_variables, num_rows=80 * num_variables)
  noise = 0.01 * np.sqrt(np.mean(clean.y**2)) * rng.normal(size=len(clean.y))
  task = make_task((clean.x, clean.y + noise), NAMES[:num_variables], SearchOptions())
  nodes = rationals_of(task.fit_rows, task.columns, rule=task.rule)
  fitted, = refine.fit_constants([(task, nodes)], method="lm", max_steps=40)
  misses = [np.mean((expression.evaluate(node, clean.x) - clean.y) ** 2) for node, _ in fitted]
  # The truth's five constants would leave 5 of N parts of the noise's variance; by chance it is up to three times that.
  assert np.nanmin(misses) < 15 / len(noise) * np.mean(noise**2)


@pytest.mark.parametrize(("truth", "num_variables", "text"), [
  ("x**3/(x**3 + 1.5)", 1, "x**3/(x**3 + 1.5)"),  # not x**4/(x**4 + 1.5*x)
  ("x**2/(x**3 + x)", 1, "x/(x**2 + 1)"), ("(x**2 - 2.5)/x", 1, "x - 2.5/x"),
  ("1.3*x/(x + 2.2) - 0.1*x**2/(x + 7)", 1, "1.3*x/(x + 2.2) - 0.1*x**2/(x + 7)"),
  ("x**3/(x**3 + 2.5) - 0.4*x", 1, "x**3/(x**3 + 2.5) - 0.4*x"), ("2.5/(x + 0.7)**2", 1, "2.5/(x + 0.7)**2"),
  ("1.4*x/(0.7 + x) + 2.2*y/(3.1 + y)", 2, "1.4*x/(x + 0.7) + 2.2*y/(y + 3.1)"),
  ("x*y/((1.5 + x)*(0.8 + y))", 2, "x*y/((x + 1.5)*(y + 0.8))"),
  ("y*(3 - 0.5*y - 2.5*x/(y + 1.5))", 2, "3*y - 0.5*y**2 - 2.5*x*y/(y + 1.5)"),
  ("x + y/(1 + 0.3*x*y)", 2, "x + y/(1 + 0.3*x*y)"),
  ("sqrt((x**2 + 2.5)/(x + 3.5))", 1, "sqrt((x**2 + 2.5)/(x + 3.5))"),
  ("2.5*sqrt(x)/(1.3 + sqrt(x))", 1, "2.5*sqrt(x)/(1.3 + sqrt(x))"),
  ("exp((x - 1.3)/(x**2 + 2.2))", 1, "exp((x - 1.3)/(x**2 + 2.2))"),
  ("log((x**2 + 1.3)/(x + 7))", 1, "log((x**2 + 1.3)/(x + 7))"),
  ("arctan(x/(y**2 + 2.2) + 1.4)", 2, "arctan(x/(y**2 + 2.2) + 1.4)"),
  ("x**4/(y + 2.5) + 3", 2, "(x**4 + 3*y + 7.5)/(y + 2.5)"), ("5*y/(5*y**3 + 1) + x", 2, "y/(y**3 + 0.2) + x"),
  ("y + z/(x**4 + 1.5)", 3, "y + z/(x**4 + 1.5)"),
])
def test_the_form_is_the_one_a_person_writes(truth, num_variables, text, rng):
  rows = rows_of(truth, rng, num_variables=num_variables)
  node = simplest_exact(found_in(rows), rows)
  rounded = expression_rounded(node)
  assert expression.complexity(rounded) <= expression.complexity(tidy(parser.parse(text, NAMES))), (
    printing.to_text(node, NAMES))


def expression_rounded(node):
  """With the factors 1 gone that rounding has left."""
  def walk(part):
    if part.is_number:
      return expression.number(float(f"{part.value:.8g}"))
    return part._replace(args=tuple(map(walk, part.args)))
  return tidy(walk(node))


def test_what_is_common_to_all_terms_cancels(rng):
  x = rng.uniform(0.5, 3, (40, 1))
  basis = rational_bases.bases(1, DEFAULT.rationals)[0]
  equation = rational_fits.Equation(basis, x, x[:, 0] ** 3 / (x[:, 0] ** 3 + 1.5), np.ones(40), x)
  coefficients = np.zeros(len(basis.numerator) + len(basis.denominator))
  coefficients[[4, len(basis.numerator) + 1, len(basis.numerator) + 4]] = 1.0, 1.5, 1.0  # x**4/(x**4 + 1.5*x)
  fraction = equation.fraction(coefficients)
  assert fraction.numerator == {(3.0,): 1.0} and fraction.denominator == {(0.0,): 1.5, (3.0,): 1.0}
  assert fraction.error < 1e-28 and fraction.is_whole


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e20, 1e-20), (1e-20, 1e20), (1e40, 1.0)])
def test_units_change_nothing(x_unit, y_unit, rng):
  plain = rows_of("1.3*x/(x + 2.2) - 0.1*x", rng)
  rows = Rows(plain.x * x_unit, plain.y * y_unit, plain.weights)
  node, there = simplest_exact(found_in(plain), plain), simplest_exact(found_in(rows), rows)
  assert expression.complexity(expression_rounded(there)) <= expression.complexity(expression_rounded(node)) + 2
  fresh = rng.uniform(0.1, 9, (50, 1))
  np.testing.assert_allclose(expression.evaluate(there, fresh * x_unit), expression.evaluate(node, fresh) * y_unit,
                             rtol=1e-6)


def test_weights_count(rng):
  rows = rows_of("2.5*x/(x + 1.5)", rng)
  is_off = np.arange(100) % 10 == 0
  off = Rows(rows.x, np.where(is_off, rows.y + 0.3, rows.y), np.where(is_off, 1e-14, 1.0))
  least = min(np.average((expression.evaluate(n, rows.x) - rows.y)[~is_off] ** 2) for n in found_in(off))
  assert least < 1e-12 < min(np.average((expression.evaluate(n, rows.x) - rows.y)[~is_off] ** 2)
                             for n in found_in(dataclasses.replace(off, weights=np.ones(100))))


@pytest.mark.parametrize("truth", [
  "exp(-0.7*x) + x", "sin(x)", "x*log(x + 1.3)", "sqrt(x + 1)*exp(-x)", "exp(sin(x))", "log(cos(x) + 1.5)",
  "arctan(exp(x))"])
def test_approximations_of_other_functions_do_not_pass_for_laws(truth, rng):
  rows = rows_of(truth, rng, low=0.0, high=2.0)
  nodes = found_in(rows)
  assert nodes and np.min(shares(nodes, rows)) > 1e-20
  # Without the leap they would.
  lax = dataclasses.replace(DEFAULT.rationals, leap=1.0, too_near=0.0)
  assert np.min(shares(found_in(rows, config=lax), rows)) < 1e-18


def test_poles_among_the_rows_need_an_exact_fit(rng):
  truth = "1.5/(x - 2.03) + 0.5*x"
  rows = rows_of(truth, rng)
  node = simplest_exact(found_in(rows), rows)
  np.testing.assert_allclose(expression.evaluate(node, rows.x + 10),
                             scoring.evaluate(parser.parse(truth, NAMES), rows.x + 10), rtol=1e-7)
  noisy = Rows(rows.x, rows.y + 0.1 * rng.normal(size=100), rows.weights)
  between = np.linspace(rows.x.min(), rows.x.max(), 5000)[:, None]
  for node in found_in(noisy):
    for part in expression.walk(node):
      if part.token == "inv":
        values = expression.evaluate(part.args[0], between)
        assert np.all(values > 0) or np.all(values < 0), printing.to_text(node, NAMES)


@pytest.mark.parametrize("y", [np.zeros(30), np.full(30, 2.5), np.r_[np.zeros(29), 1.0]])
def test_what_hardly_varies_makes_no_error(y, rng):
  rows = Rows(rng.uniform(1, 2, (30, 2)), y, np.ones(30))
  assert all(np.isfinite(expression.evaluate(node, rows.x)).all() for node in found_in(rows))


@pytest.mark.parametrize("x", [np.zeros((20, 2)), np.ones((20, 2)), np.repeat(np.arange(1.0, 21)[:, None], 2, axis=1)])
def test_columns_that_say_nothing_make_no_error(x, rng):
  rows = Rows(x, rng.normal(size=20), np.ones(20))
  assert all(np.isfinite(expression.evaluate(node, rows.x)).all() for node in found_in(rows))


@pytest.mark.parametrize("num_rows", [5, 6, 9, 12])
def test_few_rows_get_few_constants(num_rows, rng):
  rows = Rows(rng.uniform(1, 2, (num_rows, 1)), rng.normal(size=num_rows), np.ones(num_rows))
  nodes = found_in(rows)
  most = 1 + num_rows // DEFAULT.rationals.rows_per_constant
  assert all(sum(part.is_number for part in expression.walk(node)) <= 2 * most for node in nodes)
  assert np.min(shares(nodes, rows), initial=1.0) > 1e-3  # noise is not met


def asked(rows, restrictions=None):
  names = NAMES[: rows.x.shape[1]]
  task = make_task((rows.x, rows.y, rows.weights), names, SearchOptions(restrictions=restrictions or Restrictions()))
  return Question(task, Pool(task.variance, len(task.fit_rows)), None)


def test_rules_are_kept(rng):
  rows = rows_of("x*y/(2.5 + x) + z", rng, num_variables=3)
  source = Rationals()
  free = asked(rows)
  for restrictions in (Restrictions(excluded=("z",)), Restrictions(max_complexity=9),
                       Restrictions(max_depth=5), Restrictions(required=("x",))):
    question = asked(rows, restrictions)
    proposal, = source.propose([question], turn=0, num=1, clock=Clock())
    assert proposal.nodes and all(question.task.rule(node) for node in proposal.nodes)
    assert not all(question.task.rule(node) for node in source.propose([free], turn=0, num=1, clock=Clock())[0].nodes)
  assert source.supports(free.task) and not source.supports(asked(rows, Restrictions(forbidden=("/",))).task)


def test_functions_that_are_forbidden_take_no_places(rng):
  """exp((x - 1.3)/(x**2 + 2.2)) is exact under an exponential, and where that is forbidden under nothing."""
  rows = rows_of("exp((x - 1.3)/(x**2 + 2.2))", rng)
  [proposal] = Rationals().propose([asked(rows, Restrictions(forbidden=("exp",)))], turn=0, num=1, clock=Clock())
  tokens = {part.token for node in proposal.nodes for part in expression.walk(node)}
  assert {"ln", "atan"} <= tokens and "exp" not in tokens


def test_columns_keep_their_places(rng):
  x = np.column_stack([np.full(90, 3.0), rng.uniform(1, 5, (90, 2))])
  rows = Rows(x, 2.5 * x[:, 1] / (x[:, 2] + 1.5), np.ones(90))
  node = simplest_exact(rationals_of(rows, (0, 1, 2), rule=Rule(3)), rows)
  assert {part.value for part in expression.walk(node) if part.token == expression.VARIABLE} == {1, 2}


def test_company_changes_nothing(rng):
  questions = [asked(rows_of(text, rng)) for text in ("2.5*x/(x + 1.5)", "exp(-x)", "x**2 - 1/x")]
  source = Rationals()
  together = source.propose(questions, turn=0, num=1, clock=Clock())
  assert together == [source.propose([question], turn=0, num=1, clock=Clock())[0] for question in questions[::1]]
  assert registry.SOURCES["rationals"](None, SearchOptions()) == source
  assert "rationals" in registry.WITHOUT_MODEL


@pytest.mark.parametrize("num_variables", range(1, 13))
def test_bases_are_small_and_nested(num_variables):
  config = DEFAULT.rationals
  for basis in rational_bases.bases(num_variables, config):
    size = len(basis.numerator) + len(basis.denominator)
    assert len(basis.numerator) <= config.max_monomials and len(basis.denominator) <= config.max_monomials
    assert set(basis.numerator[0]) == set(basis.denominator[0]) == {0.0}
    assert len(set(basis.numerator)) == len(basis.numerator) and len(set(basis.starts)) == len(basis.starts)
    assert max(map(len, basis.starts)) == size  # the largest is everything
    powers = np.array(basis.numerator + basis.denominator)
    for sets in rational_bases.small_sets(basis, config.max_sets):
      assert np.all(powers[sets].min(axis=1) == 0)


@pytest.mark.parametrize("seed", range(10))
def test_factors_multiply_to_their_polynomial(seed):
  rng = np.random.default_rng(seed)
  x = rng.uniform(0.5, 3, (40, 2))
  shift, other, root = rng.uniform(0.3, 3, 3)
  truth = {(1.0, 0.0): 1.0, (0.0, 0.0): shift}
  second, rest = {(0.0, 2.0): 1.0, (0.0, 0.0): other}, {(1.0, 1.0): root, (0.0, 0.0): 2.0}
  product = {}
  for p, a in truth.items():
    for q, b in second.items():
      for r, c in rest.items():
        powers = tuple(np.add(np.add(p, q), r).tolist())
        product[powers] = product.get(powers, 0.0) + a * b * c
  found, left = polynomials.factors(product, x, tolerance=1e-6)
  assert len(found) == 2 and len(left) == 2
  values = np.prod([polynomials.values(factor, x) for factor in [*found, left]], axis=0)
  np.testing.assert_allclose(values, polynomials.values(product, x), rtol=1e-8)
  np.testing.assert_allclose(sorted(factor[(0.0, 0.0)] for factor in found), sorted([shift, other]), rtol=1e-7)


@pytest.mark.parametrize("size", [1e52, 1e-52])
def test_units_beyond_measure_make_no_fractions_and_no_error(size, rng):
  x = rng.uniform(1, 5, (60, 1))
  y = (1 + 2 * x[:, 0] ** 6) / (3 + x[:, 0] ** 6)
  assert rationals_of(Rows(size * x, y, np.ones(60)), [0], rule=Rule(1)) == []
