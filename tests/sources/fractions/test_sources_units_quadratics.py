"""Parts of quadratic equations and of forward selection by themselves: null vectors, roots, steps of the selection."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, PursuitConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.fractions import null_vectors, polynomials, quadratics, views
from symformer_jax.sources.sums import pursuit

CONFIG = DEFAULT.quadratics
ELIMINATION = CONFIG.elimination
NAMES = ("x", "z")
ONE, X, Z, XX, ZZ = (0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (2.0, 0.0), (0.0, 2.0)
PLAIN = views.plain(2)


class Rule:
  """All formulas count, or none does."""

  def __init__(self, answer):
    self._answer = answer

  def __call__(self, node):
    return self._answer

  def allows_operator(self, token):
    return True


def parse(text):
  return parser.parse(text, NAMES)


# --- polynomials -----------------------------------------------------------------------------------------------------


def test_products_and_sums_of_polynomials(rng):
  x = rng.uniform(1, 2, (7, 2))
  one, other = {X: 2.0, ONE: -1.0}, {X: 3.0, Z: 4.0, ONE: 0.5}
  a, b = polynomials.values(one, x), polynomials.values(other, x)
  product = quadratics._product(one, other)
  np.testing.assert_allclose(polynomials.values(product, x), a * b)
  assert product[X] == 2 * 0.5 - 3 and len(product) == 5
  np.testing.assert_allclose(polynomials.values(quadratics._sum(one, other, -4.0, 0.0), x), a - 4 * b)
  # Of what cancels a share is left: of the larger of both.
  assert quadratics._sum({X: 8.0, Z: 1.0}, {X: 2.002, ONE: 1.0}, -4.0, 0.9e-3) == {
    X: pytest.approx(-0.008), Z: 1.0, ONE: -4.0}
  assert quadratics._sum({X: 8.0, Z: 1.0}, {X: 2.002, ONE: 1.0}, -4.0, 1e-3) == {Z: 1.0, ONE: -4.0}
  assert quadratics._sum({X: 8.0}, {X: 2.0}, -4.0, 0.0) == {}
  assert quadratics._sum({X: 1.0}, {X: 0.2502}, -4.0, 1e-4) == {X: pytest.approx(-8e-4)}
  assert quadratics._sum({}, {X: 0.5}, -4.0, 0.9) == {X: -2.0}
  assert quadratics._discriminant(({X: 1.0}, {Z: 2.0}, {ONE: 3.0}), 0.0) == {(0.0, 2.0): 4.0, X: -12.0}


@pytest.mark.parametrize(("signs", "outside"), [((1, 1), (1, 0)), ((-1, 1), (1, 0)), ((0, 1), (0, 0))])
def test_even_powers_of_columns_that_keep_their_sign_come_out_of_a_root(signs, outside, rng):
  x = rng.uniform(0.3, 2, (9, 2)) * np.where(np.array(signs) == 0, 1, signs)
  x[0, 0] *= -1 if signs[0] == 0 else 1
  polynomial = {(3.0, 2.0): 1.0, (2.0, 1.0): 5.0, (2.0, 3.0): 1.5}
  node = quadratics._square_root(polynomial, x)
  inside = np.abs(polynomials.values(polynomial, x))
  if np.all(polynomials.values(polynomial, x) > 0):
    np.testing.assert_allclose(expression.evaluate(node, x), np.sqrt(inside), rtol=1e-9)
  [root] = [part for part in expression.walk(node) if part.token == "sqrt"]
  values = expression.evaluate(root, x) ** 2 * np.prod(x ** np.array(outside), axis=1) ** 2
  np.testing.assert_allclose(values, polynomials.values(polynomial, x), rtol=1e-9)
  four = quadratics._square_root({(4.0, 0.0): 2.0, (5.0, 0.0): 1.0}, np.abs(x))
  [root] = [part for part in expression.walk(four) if part.token == "sqrt"]
  np.testing.assert_allclose(expression.evaluate(root, np.abs(x)), np.sqrt(2 + np.abs(x[:, 0])))


# --- roots -----------------------------------------------------------------------------------------------------------

QUADRATICS = {
  "y**2 = C": ({ONE: 1.0}, {}, {X: -2.0, ONE: -1.0}), "A*y**2 = -C": ({X: 2.0, ONE: 1.0}, {}, {XX: -3.0}),
  "-A*y**2 = C": ({X: -2.0, ONE: -1.0}, {}, {XX: 3.0}), "A is 1": ({ONE: 1.0}, {Z: 1.5}, {X: -2.5}),
  "A is a monomial": ({X: 2.0}, {Z: 3.0}, {ONE: -5.0}),
  "roots are near": ({ONE: 1.0}, {Z: 1.0}, {ZZ: 0.24, X: -0.001}),
  "A is a sum": ({X: 1.0, ONE: 0.5}, {Z: 3.0, ONE: -1.0}, {XX: -5.0, X: -1.0})}
VANISHING = ({X: 1.0, ONE: -2.0}, {Z: 3.0}, {XX: -1.0})


@pytest.mark.parametrize("name", QUADRATICS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_root_of_a_quadratic_equation_is_written(name, sign, rng):
  quadratic = QUADRATICS[name]
  x = rng.uniform(1, 3, (40, 2))
  a, b, c = (polynomials.values(each, x) if each else np.zeros(40) for each in quadratic)
  root = np.sqrt(b**2 - 4 * a * c)
  y = (-b + sign * root) / (2 * a)
  node = quadratics._root(quadratic, x, y, CONFIG)
  np.testing.assert_allclose(expression.evaluate(node, x), y, rtol=1e-9)
  own = quadratics._written(quadratic, sign, x, 0.0), quadratics._written_below(quadratic, sign, x, 0.0)
  for form in own if quadratic[1] else own[:1]:
    np.testing.assert_allclose(expression.evaluate(form, x), y, rtol=1e-9)
  # Both branches, and what misses y, have none.
  mixed = np.where(np.arange(40) < 3, (-b - sign * root) / (2 * a), y)
  assert quadratics._root(quadratic, x, mixed, CONFIG) is None
  missed = y + 1.1 * np.sqrt(CONFIG.most_missed) * np.std(y) * np.where(np.arange(40) % 2, 1, -1)
  assert quadratics._root(quadratic, x, missed, CONFIG) is None


def test_where_a_vanishes_the_other_form_is_written(rng):
  quadratic, x = VANISHING, rng.uniform(1, 3, (40, 2))
  x[0, 0] = 2.0
  with np.errstate(all="ignore"):
    y = x[:, 0] ** 2 * 2 / (3 * x[:, 1] + np.sqrt(9 * x[:, 1] ** 2 + 4 * (x[:, 0] - 2) * x[:, 0] ** 2))
    node = quadratics._root(quadratic, x, y, CONFIG)
  np.testing.assert_allclose(expression.evaluate(node, x), y, rtol=1e-9)
  written = quadratics._written_below(quadratic, 1.0, x, 0.0)
  np.testing.assert_allclose(expression.evaluate(written, x), y, rtol=1e-9)
  assert quadratics._written_below(QUADRATICS["y**2 = C"], 1.0, x, 0.0) is None  # there is no B
  square = ({ONE: 1.0}, {X: 2.0}, {XX: 1.0})  # (y + x)**2
  assert quadratics._written(square, 1.0, x, 1e-9) is None and quadratics._written_below(square, 1.0, x, 1e-9) is None


def test_what_cancels_nearly_is_left_out_where_that_harms_little(rng):
  """(y - x)**2 = z, but for a coefficient that noise has left of x**2 in the discriminant."""
  x = rng.uniform(1, 3, (200, 2))
  y = x[:, 0] + np.sqrt(x[:, 1])
  quadratic = ({ONE: 1.0}, {X: -2.0}, {XX: 1.0 + 1e-4, Z: -1.0})
  noisy = y + 1e-4 * rng.normal(size=200)
  node = quadratics._root(quadratic, x, noisy, CONFIG)
  assert expression.complexity(node) <= expression.complexity(parse("x + sqrt(z)")) + 2
  # With fewer digits than it has that would be another formula: all terms stay.
  strict = dataclasses.replace(CONFIG, error_share=1e-3)
  assert expression.complexity(quadratics._root(quadratic, x, noisy, strict) or parse("x*x*x*x*x*x*x*x*x*x")) > (
    expression.complexity(node))
  y = x[:, 0] + np.sqrt(x[:, 1] - 1e-4 * x[:, 0] ** 2)
  np.testing.assert_allclose(expression.evaluate(quadratics._root(quadratic, x, y, CONFIG), x), y, rtol=1e-12)


def test_a_root_where_a_is_a_number_has_no_line(rng):
  node = quadratics._written(({ONE: 1.0}, {X: -2.0}, {Z: -1.0}), 1.0, rng.uniform(1, 2, (9, 2)), 0.0)
  assert not any(part.token == "inv" for part in expression.walk(node))
  assert expression.complexity(node) == expression.complexity(parse("x + sqrt(x**2 + z)"))


# --- equations -------------------------------------------------------------------------------------------------------


def test_the_least_singular_value_its_vector_and_what_each_term_is_worth(rng):
  matrix = rng.normal(size=(12, 4)) * [1, 1, 1, 1e-3]
  left, vector, rise = null_vectors._least(matrix)
  _, sizes, vectors = np.linalg.svd(matrix)
  assert left == pytest.approx(sizes[-1] / sizes[0])
  assert abs(vector @ vectors[-1]) == pytest.approx(1)
  # The least |matrix @ (vector + others @ a)|^2 with 0 at the term, of others but that vector.
  others = vectors[:-1].T
  inverse = np.linalg.inv(others.T @ matrix.T @ matrix @ others) * sizes[0] ** 2
  np.testing.assert_allclose(rise, [vector[i] ** 2 / (others[i] @ inverse @ others[i]) for i in range(4)], rtol=1e-6)


def test_a_term_that_is_the_null_vector_by_itself_is_worth_much():
  _, vector, rise = null_vectors._least(np.diag([1.0, 1.0, 1e-3]))
  assert np.abs(vector).tolist() == [0, 0, 1] and rise[2] > 1e10 and np.all(rise[:2] == 0)


def law_columns(rng, num=40, noise=0.0):
  """Columns of y**2, y*(1, x, z), and all up to the second degree for y = x + sqrt(x**2 + z)."""
  x = rng.uniform(1, 3, (num, 2))
  y = x[:, 0] + np.sqrt(x[:, 0] ** 2 + x[:, 1])
  y = y * (1 + noise * rng.normal(size=num))
  ones = np.ones(num)
  return np.column_stack([y**2, y, y * x[:, 0], y * x[:, 1], ones, x, x**2, x.prod(axis=1)]), x, y


def test_the_null_vector_is_of_few_terms(rng):
  columns, _, _ = law_columns(rng)
  found = null_vectors.find(columns, ELIMINATION)
  assert np.flatnonzero(found).tolist() == [0, 2, 6]  # y**2 - 2*x*y - z
  np.testing.assert_allclose(found / found[0], [1, 0, -2, 0, 0, 0, -1, 0, 0, 0], atol=1e-8)
  scaled = null_vectors.find(columns * 10.0 ** np.arange(10), ELIMINATION)
  np.testing.assert_allclose(scaled * 10.0 ** np.arange(10) / scaled[0], found / found[0], atol=1e-8)
  assert null_vectors.find(np.column_stack([columns, np.zeros(40)]), ELIMINATION) is None
  with np.errstate(all="ignore"):
    assert null_vectors.find(np.column_stack([columns, np.full(40, 1e200)]), ELIMINATION) is None
  assert null_vectors.find(columns, dataclasses.replace(ELIMINATION, max_terms=3)) is not None
  assert null_vectors.find(columns, dataclasses.replace(ELIMINATION, max_terms=2)) is None


def test_what_hardly_vanishes_or_does_so_by_small_steps_is_no_equation(rng):
  columns, _, _ = law_columns(rng, noise=1e-7)
  found = null_vectors.find(columns, ELIMINATION)
  assert np.flatnonzero(found).tolist() == [0, 2, 6]
  left = null_vectors._least(columns[:, [0, 2, 6]] / np.linalg.norm(columns[:, [0, 2, 6]], axis=0))
  size = null_vectors._least(np.linalg.qr(columns / np.linalg.norm(columns, axis=0), mode="r"))[0]
  assert null_vectors.find(columns, dataclasses.replace(ELIMINATION, vanishing=0.99 * size)) is None
  assert null_vectors.find(columns, dataclasses.replace(ELIMINATION, vanishing=size)) is not None
  # Each term is worth more than what is left, by the leap that is asked for.
  worth = math.sqrt(left[2].min()) / left[0]
  for factor, is_one in ((1.02, True), (0.98, False)):
    config = dataclasses.replace(ELIMINATION, leaps=(0.0, factor / worth))
    assert (null_vectors.find(columns, config) is not None) == is_one
    exact = dataclasses.replace(ELIMINATION, leaps=(factor / worth, 0.0), exact=1.0)
    assert (null_vectors.find(columns, exact) is not None) == is_one
  exact = ELIMINATION.exact
  assert (ELIMINATION.leap(0.9 * exact), ELIMINATION.leap(exact)) == ELIMINATION.leaps


def test_of_many_terms_a_quarter_goes_at_a_time(rng, monkeypatch):
  sizes = []
  real = null_vectors._least
  monkeypatch.setattr(null_vectors, "_least", lambda matrix: sizes.append(matrix.shape[1]) or real(matrix))
  x = rng.uniform(1, 2, (200, 1))
  y = np.sqrt(x[:, 0] + 2)
  columns = np.column_stack([y**2, *(x[:, 0] ** k for k in range(2)), rng.normal(size=(200, 29))])
  found = null_vectors.find(columns, ELIMINATION)
  assert np.flatnonzero(found).tolist() == [0, 1, 2]
  assert sizes[:4] == [32, 24, 18, 14] and sizes[4:8] == [11, 10, 9, 8] and sizes[-2:] == [3, 2]
  sizes.clear()
  assert ELIMINATION.max_terms == 12
  assert null_vectors.find(columns[:, :16], ELIMINATION) is not None and sizes[:4] == [16, 12, 11, 10]
  sizes.clear()
  # Where too many go at once half as many do.
  many = rng.normal(size=(200, 7))
  found = null_vectors.find(np.column_stack([many, many[:, :6] @ [1.0, 0.3, 0.7, -1.1, 0.9, 0.8]]), ELIMINATION)
  assert np.flatnonzero(found).tolist() == [0, 1, 2, 3, 4, 5, 7] and sizes == [8, 6, 7, 6]


def test_equations_of_low_degree_come_first_as_far_as_there_are_rows(rng):
  _, x, y = law_columns(rng, num=28)
  config = dataclasses.replace(CONFIG, degrees=((0, 1, 2), (0, -1, 2), (1, 1, 2), (0, 2, 2)))
  above, linear, rest = next(quadratics._exact_equations(PLAIN, x, y, config))
  assert (set(above), set(linear), set(rest)) == ({ONE}, {X}, {Z})
  assert linear[X] / above[ONE] == pytest.approx(-2) and rest[Z] / above[ONE] == pytest.approx(-1)
  for rows_per_term, max_columns, is_one in ((2, 128, True), (3, 128, False), (2, 10, True), (2, 9, False)):
    one = dataclasses.replace(config, degrees=((0, 1, 2),), rows_per_term=rows_per_term, max_columns=max_columns)
    assert bool(list(quadratics._exact_equations(PLAIN, x, y, one))) == (is_one and 28 / rows_per_term >= 10)
  just = dataclasses.replace(config, degrees=((0, 1, 2),), rows_per_term=2)
  assert list(quadratics._exact_equations(PLAIN, x[:20], y[:20], just)) and not list(
    quadratics._exact_equations(PLAIN, x[:19], y[:19], just))
  # A fraction is no quadratic equation: A or C is missing.
  line = x[:, 0] / (x[:, 1] + 1)
  assert not list(quadratics._exact_equations(PLAIN, x, line, dataclasses.replace(config, degrees=((0, 1, 1),))))
  # Without B.
  root = np.sqrt(x[:, 0] + 2 * x[:, 1])
  one = dataclasses.replace(config, degrees=((0, -1, 1),))
  [(above, linear, rest)] = quadratics._exact_equations(PLAIN, x, root, one)
  assert set(above) == {ONE} and linear == {} and set(rest) == {X, Z}


def test_roots_are_in_the_units_and_columns_of_the_user(rng):
  x = np.column_stack([np.full(60, 3.0), 1e4 * rng.uniform(1, 3, 60), 1e-3 * rng.uniform(1, 3, 60)])
  y = 1e5 * (x[:, 1] * 1e-4 + np.sqrt(x[:, 2] * 1e3 + 2))
  rows = Rows(x, y, np.ones(60))
  [node] = quadratics.roots_of(rows, (0, 1, 2), rule=Rule(True))
  np.testing.assert_allclose(expression.evaluate(node, x), y, rtol=1e-9)
  assert {part.value for part in expression.walk(node) if part.token == "variable"} == {1, 2}
  numbers = [part.value for part in expression.walk(node) if part.is_number]
  assert len(numbers) <= 4
  assert quadratics.roots_of(rows, (0, 1, 2), rule=Rule(False)) == []
  assert quadratics.roots_of(rows, (0,), rule=Rule(True)) == []
  for bad in (np.full(60, 2.0), np.where(np.arange(60) < 1, np.inf, y)):
    assert quadratics.roots_of(Rows(x, bad, np.ones(60)), (1, 2), rule=Rule(True)) == []
  wide = np.where(np.arange(180).reshape(60, 3) == 1, np.inf, x)
  with np.errstate(all="ignore"):
    assert quadratics.roots_of(Rows(wide, y, np.ones(60)), (0, 1, 2), rule=Rule(True)) == []


def test_the_largest_coefficient_of_a_is_one(rng):
  x = rng.uniform(1, 3, (60, 2))
  y = (-x[:, 1] + np.sqrt(x[:, 1] ** 2 + 4 * (5 * x[:, 0] + 1))) / (2 * (5 * x[:, 0] + 1))
  [node] = quadratics.roots_of(Rows(x, y, np.ones(60)), (0, 1), rule=Rule(True))
  assert any(abs(abs(part.value) - 0.2) < 1e-9 for part in expression.walk(node) if part.is_number)
  assert not any(abs(abs(part.value) - 5) < 1e-9 for part in expression.walk(node) if part.is_number)


@pytest.mark.parametrize(("forbidden", "is_asked"), [((), True), (("sqrt",), False), (("+",), False), (("*",), False),
                                                     (("sin",), True)])
def test_who_is_asked_for_roots(forbidden, is_asked, rng):
  task = make_task((rng.uniform(1, 2, (30, 2)), rng.normal(size=30)), None, SearchOptions(
    restrictions=Restrictions(forbidden=forbidden)))
  assert quadratics.Quadratics().supports(task) == is_asked and quadratics.Quadratics().turns == (1,)


# --- forward selection -----------------------------------------------------------------------------------------------


def left_by(columns, target, weights, chosen):
  root = np.sqrt(weights / weights.sum())
  design = root[:, None] * np.column_stack([columns[:, list(chosen)], np.ones(len(target))])
  left = root * target - design @ np.linalg.lstsq(design, root * target, rcond=None)[0]
  return left @ left


def chosen_from(columns, target, weights=None, groups=None, **changes):
  config = PursuitConfig(**{"max_columns": 2, "num_kept_short": 99, "num_kept": 99, **changes})
  return pursuit.select_columns(
    columns, target, np.ones(len(target)) if weights is None else weights, groups=groups, config=config)


def test_the_smallest_finite_values_in_their_order():
  values = np.array([5.0, np.inf, 1.0, np.nan, 3.0, 2.0])
  assert pursuit._smallest(values, 2).tolist() == [2, 5]
  assert pursuit._smallest(values, 6).tolist() == pursuit._smallest(values, 9).tolist() == [2, 5, 4, 0]
  assert pursuit._smallest(values, 5).tolist() == [2, 5, 4, 0]


def test_numbers_of_sets_that_are_carried_on_and_kept(rng):
  columns, target = rng.normal(size=(40, 9)), rng.normal(size=40)
  found = chosen_from(
    columns, target, max_columns=4, num_first=9, num_pairs=7, num_beams=5, num_kept_short=6, num_kept=4)
  assert [sum(len(each) == size for each in found) for size in (1, 2, 3, 4, 5)] == [6, 6, 4, 4, 0]
  for size in (1, 2):
    best = sorted(itertools.combinations(range(9), size), key=lambda each: left_by(columns, target, np.ones(40), each))
    assert [each for each in found if len(each) == size] == best[:6]


def test_extensions_of_more_sets_than_are_carried_on_are_looked_at(rng):
  columns, target = rng.normal(size=(40, 9)), rng.normal(size=40)
  by_one = sorted(range(9), key=lambda i: left_by(columns, target, np.ones(40), (i,)))
  # Of the sets of one column so many are extended: with one of them every pair has the best column.
  found = chosen_from(columns, target, num_first=3, num_pairs=2, num_looked_at=1)
  pairs = [each for each in found if len(each) == 2]
  assert len(pairs) == 2 and all(set(each) & set(by_one[:2]) for each in pairs)
  few = chosen_from(columns, target, groups=[0] * 9, num_first=1, num_pairs=3, num_looked_at=1)
  assert len([each for each in few if len(each) == 2]) == 1


def test_what_is_exact_gets_no_further_column(rng):
  columns = rng.normal(size=(40, 6))
  target = columns[:, 2] * 3 + 1
  assert max(map(len, chosen_from(columns, target, num_first=1))) == 1
  near = target + 1e-6 * columns[:, 4]
  assert (2, 4) in chosen_from(columns, near, num_first=1)
  share = 1e-12 * np.var(columns[:, 4]) / np.var(near)
  assert max(map(len, chosen_from(columns, near, num_first=1, exact=3 * share))) == 1
  # In single precision what its rounding leaves is exact as well.
  assert max(map(len, chosen_from(columns.astype(np.float32), target, num_first=1))) == 1
  # A large offset leaves rounding of its own.
  assert max(map(len, chosen_from(columns, 1e9 + 1e-3 * columns[:, 2], num_first=1, exact=0.0))) == 1


@pytest.mark.parametrize(("dtype", "least"), [(np.float64, 100 * 2.2e-16), (np.float32, 100 * 1.19e-7)])
def test_a_column_that_others_make_up_adds_nothing_but_rounding(dtype, least, rng):
  """The share of its square that is its own has to be larger."""
  least = max(least, pursuit.INDEPENDENT**2)
  one, other, target = np.linalg.qr(np.column_stack([np.ones(50), rng.normal(size=(50, 3))]))[0][:, 1:].T
  for share, is_own in ((1.5 * least, True), (0.6 * least, False)):
    columns = np.column_stack([one, np.sqrt(1 - share) * one + np.sqrt(share) * (other + target) / np.sqrt(2)])
    found = chosen_from(columns.astype(dtype), 2 * one + 1e-2 * target, num_first=1)
    assert ((0, 1) in found) == is_own


def test_weights_and_units_of_the_target_are_no_matter_but_for_the_order(rng):
  columns, target, weights = rng.normal(size=(40, 6)), rng.normal(size=40), rng.uniform(0.1, 3, 40)
  found = chosen_from(columns, target, weights, num_first=6, num_pairs=15)
  best = sorted(itertools.combinations(range(6), 2), key=lambda each: left_by(columns, target, weights, each))
  assert [each for each in found if len(each) == 2] == best
  for unit in (1e-200, 1e200):
    assert chosen_from(columns, unit * target, weights, num_first=6, num_pairs=15) == found
  assert chosen_from(columns, 0 * target) == []


def test_of_sets_of_the_same_groups_the_best_is_carried_on_and_kept(rng):
  columns, target = rng.normal(size=(40, 8)), rng.normal(size=40)
  groups = [0, 0, 0, 1, 1, 2, 2, 2]
  found = chosen_from(columns, target, groups=groups, num_first=3, num_pairs=9)
  by_group = {g: min((i for i in range(8) if groups[i] == g), key=lambda i: left_by(columns, target, np.ones(40), (i,)))
              for g in range(3)}
  assert {each for each in found if len(each) == 1} == {(i,) for i in by_group.values()}
  pairs = [each for each in found if len(each) == 2]
  assert len({tuple(sorted(groups[i] for i in each)) for each in pairs}) == len(pairs)
  # Where all columns are carried on every pair is tried, the best of each two groups kept.
  every = [each for each in chosen_from(columns, target, groups=groups, num_first=8, num_pairs=99) if len(each) == 2]
  expected = {}
  for each in sorted(itertools.combinations(range(8), 2), key=lambda each: left_by(columns, target, np.ones(40), each)):
    expected.setdefault(tuple(sorted(groups[i] for i in each)), each)
  assert every == list(expected.values())


def test_every_pair_is_tried_whatever_the_groups_where_all_columns_are_carried_on(rng):
  """The small difference of two columns, each of them useless alone, in groups with better ones."""
  common, target, *noise = rng.normal(size=(4, 60))
  columns = np.column_stack([target + noise[0], common, target + noise[1], common + 0.01 * target])
  assert (1, 3) in chosen_from(columns, target, groups=[0, 0, 1, 1], num_first=4, num_pairs=9)
  assert (1, 3) not in chosen_from(columns, target, groups=[0, 0, 1, 1], num_first=3, num_pairs=9)


def test_roots_of_fractions_have_the_sign_of_y_where_the_denominator_is_negative(rng):
  x = rng.uniform(1.2, 2, (80, 2))
  y = np.sqrt((x[:, 0] + 1) / (3 * x[:, 0] ** 4 + x[:, 1] ** 4 - 5))  # over its largest coefficient it is negative
  config = dataclasses.replace(CONFIG, degrees=((4, -1, 2),))
  for sign in (1, -1):
    [node] = quadratics.roots_of(Rows(x, sign * y, np.ones(80)), (0, 1), rule=Rule(True), config=config)
    np.testing.assert_allclose(expression.evaluate(node, x), sign * y, rtol=1e-9)


def test_the_columns_and_their_views_are_eliminated_as_the_config_says(rng, monkeypatch):
  asked, x = [], rng.uniform(1, 2, (40, 2))
  monkeypatch.setattr(quadratics, "_roots", lambda view, u, y, config: asked.append((view, u, config)) or iter(()))
  config = dataclasses.replace(DEFAULT.quadratics, links=("y",))
  assert config.elimination != config.view_elimination and config.degrees != config.view_degrees
  assert quadratics.roots_of(Rows(x, np.pi * x[:, 0], np.ones(40)), (0, 1), rule=Rule(True), config=config) == []
  (plain, u, own), *others = asked
  assert plain == PLAIN and own == config and len(others) > 1
  np.testing.assert_array_equal(u, x)
  changed = dataclasses.replace(config, degrees=config.view_degrees, elimination=config.view_elimination)
  assert all(each == changed for _, _, each in others)
