"""Parts of the sources by themselves: links, columns, polynomials, populations, what is counted and left out."""

import collections
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import closed_forms, links
from symformer_jax.sources.evolution import population, stock
from symformer_jax.sources.fractions import polynomials, rational_bases as bases
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.sums import exchange, library, pair_sums, parts, plain_sums, subset_sums, terms
from symformer_jax.sources.sums.columns import Subset, Union

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


# --- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 1e-12])
def test_the_mean_and_the_line_are_those_of_weighted_least_squares(unit, rng):
  x, weights = rng.uniform(1, 4, (30, 3)), rng.uniform(0.2, 2, 30)
  x[:, 2] *= unit
  y = 2 * x[:, 0] - 3 * x[:, 2] / unit + rng.normal(size=30)
  mean, line = closed_forms.fit(Rows(x, y, weights), (0, 2))
  assert mean.value == pytest.approx(np.average(y, weights=weights))
  root, design = np.sqrt(weights), np.column_stack([x[:, 0], x[:, 2] / unit, np.ones(30)])
  expected = design @ np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
  np.testing.assert_allclose(expression.evaluate(line, x), expected, rtol=1e-9)
  assert {part.value for part in expression.walk(line) if part.token == "variable"} == {0, 2}


def test_columns_of_zeros_make_no_line():
  rows = Rows(np.zeros((5, 1)), np.arange(5.0), np.ones(5))
  assert [node.value for node in closed_forms.fit(rows, (0,))] == [2.0]
  assert closed_forms._mse(expression.number(2.0), Rows(rows.x, rows.y, np.array([1.0, 0, 0, 0, 3]))) == 4.0


# --- columns ---------------------------------------------------------------------------------------------------------


class Made:
  """Columns whose formulas are numbers."""

  def __init__(self, first, count, groups, tier):
    self.columns = np.arange(first, first + count)[None] + np.zeros((2, 1))
    self.groups, self.tiers, self._first = np.array(groups, int), np.full(count, tier), first

  def node(self, index):
    return expression.number(self._first + index)

  def scale(self, index):
    return 10.0 * (self._first + index)


def test_columns_side_by_side_and_some_of_them():
  both = Union([Made(0, 2, [0, 0], 1), Made(2, 0, [], 5), Made(2, 3, [0, 1, 1], 2)])
  assert both.columns.tolist() == [[0, 1, 2, 3, 4]] * 2 and both.columns.dtype == np.float32
  assert both.groups.tolist() == [0, 0, 1, 2, 2] and both.tiers.tolist() == [1, 1, 2, 2, 2]
  assert [both.node(i).value for i in range(5)] == [0, 1, 2, 3, 4] and both.scale(3) == 30
  with pytest.raises(IndexError):
    both.node(5)
  some = Subset(both, np.array([4, 1]))
  assert some.columns.tolist() == [[4, 1]] * 2 and some.groups.tolist() == [2, 0] and some.tiers.tolist() == [2, 1]
  assert some.node(0).value == 4 and some.scale(1) == 10
  assert Subset(both, np.arange(5)).columns is both.columns


def test_the_plainer_tiers_are_paired_in_their_order():
  columns = Union([Made(0, 3, [0, 1, 2], 1), Made(3, 3, [0, 1, 2], 2)])
  assert pair_sums.subset(columns, 6) is columns
  assert pair_sums.subset(columns, 4).columns[0].tolist() == [0, 3, 4, 5]


def test_so_many_pairs_of_each_pair_of_groups():
  groups = np.array([0, 0, 1, 1])
  found = np.array([[0, 2], [3, 1], [0, 3], [0, 1], [1, 2]])
  assert exchange.of_different_groups(found, groups, 2).tolist() == [[0, 2], [3, 1], [0, 1]]


@pytest.mark.parametrize("repeats", [1, 7])
def test_rows_that_differ_must_be_enough_for_the_constants_of_a_sum(repeats):
  """Doses with replicates: nine different points have room for one constant, ten for two, fifteen for three."""
  made = (pair_sums.PairSums(), plain_sums.PairSumsInside(), subset_sums.SubsetSums(), subset_sums.SubsetSumsInside(),
          plain_sums.TripleSums())
  for num, expected in ((9, [False] * 5), (10, [True] * 4 + [False]), (14, [True] * 4 + [False]), (15, [True] * 5)):
    x = np.repeat(np.linspace(1, 2, num), repeats)
    task = make_task((x, x**2), ("x",), SearchOptions())
    assert [source.supports(task) for source in made] == expected
  ruled = make_task((x, x**2), ("x",), SearchOptions(restrictions=Restrictions(forbidden=("+",))))
  assert not any(source.supports(ruled) for source in made)


def test_formulas_that_count():
  x = np.linspace(1, 2, 13)
  task = make_task((x, x**2), ("x",), SearchOptions(restrictions=Restrictions(forbidden=("sin",))))
  most = 13 // DEFAULT.terms.points_per_part
  sums = [" + ".join(f"{k}.5*x**{k + 1}.5" for k in range(2, 2 + count)) for count in range(1, 6)]
  fitting = [parser.parse(text, ("x",)) for text in sums]
  counts = [2 * count for count in range(1, 6)]  # a factor and an exponent each
  found = pair_sums.allowed([parser.parse("sin(x)", ("x",)), *fitting, fitting[0]], task, 9, DEFAULT.terms)
  expected = tuple(node for node, count in zip(fitting, counts, strict=True) if count <= most)
  assert found == expected and 0 < len(found) < 5
  assert len(pair_sums.allowed(fitting, task, 1, DEFAULT.terms)) == 1
  made = []
  pair_sums.allowed((made.append(i) or parser.parse("sin(x)", ("x",)) for i in range(99)), task, 2, DEFAULT.terms)
  assert len(made) == 2 * DEFAULT.terms.looks_per_formula
  assert pair_sums.can_add(task)
  for token in ("+", "*"):
    ruled = make_task((x, x**2), ("x",), SearchOptions(restrictions=Restrictions(forbidden=(token,))))
    assert not pair_sums.can_add(ruled)


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINKS)
def test_the_derivative_of_a_link_is_its_derivative_and_undoing_it_gives_y(name):
  link, y = LINKS[name], np.array([0.2, 0.5, 0.9])
  assert link.is_defined(y)
  step = 1e-6
  slopes = np.abs(link.transform(y + step) - link.transform(y - step)) / (2 * step)
  np.testing.assert_allclose(np.abs(link.derivative(y)), slopes, rtol=1e-6)
  node = link.undo(expression.variable(0))
  np.testing.assert_allclose(expression.evaluate(node, link.transform(y)[:, None]), y, rtol=1e-9)


@pytest.mark.parametrize(("name", "yes", "no"), [
  ("inv", [-1.0, 2], [0.0, 1]), ("ln", [-29.9, 1], [-30.0, 1]), ("exp", [1e-300, 1], [0.0, 1]),
  ("sqrt", [0.0, 1], [-0.3, 1]), ("sqrt_inv", [1e-9, 1], [0.0, 1]), ("asin", [-1.57, 1.57], [-1.5708, 2]),
  ("logit", [0.001, 0.999], [0.5, 1.0]), ("logit", [0.001, 0.999], [0.0, 0.5]), ("atan", [1.57, 0], [2, 0]),
  ("acos", [0.0, np.pi], [0.0, 4]), ("complement_exp", [-0.9, 0.99], [-1.0, 0.5]),
  # A fifth of the root mean square beyond at most (.15 of the first), and half of the rows.
  ("exp", [-0.14, 0.5, 1, 1], [-0.2, 0.5, 1, 1]), ("exp", [-0.1, -0.1, 1, 1], [-0.1, -0.1, -0.1, 1]),
  ("complement_exp", [0.5, 0.9, 1.1], [0.5, 0.9, 1.3]), ("logit", [-0.1, 0.5, 0.9, 1.1], [-0.1, 0.5, 0.9, 1.3])])
def test_where_a_link_may_be_asked(name, yes, no):
  assert LINKS[name].is_defined(np.array(yes)) and not LINKS[name].is_defined(np.array(no))


def test_values_that_errors_take_beyond_the_ends_of_a_link_say_next_to_nothing():
  """-0.1 is an error of a tenth at least, and what is nearer to 0 than that is no better known."""
  y = np.array([-0.1, 0.04, 0.1, 0.5, 0.96, 1.02])
  inside = np.array([0.1, 0.1, 0.1, 0.5, 0.96, 0.98])
  link, weights = LINKS["logit"], np.array([links.FAINT, links.FAINT, 1, 1, 1, links.FAINT])
  np.testing.assert_allclose(link.transform(y), np.log(1 / inside - 1))
  np.testing.assert_allclose(link.derivative(y), weights / (inside * (1 - inside)))
  # Where nothing is beyond, nothing is moved.
  np.testing.assert_array_equal(LINKS["exp"].transform(y[1:]), np.log(y[1:]))
  np.testing.assert_array_equal(LINKS["exp"].derivative(y[1:]), 1 / y[1:])


def test_a_decay_is_seen_in_its_logarithm_though_errors_are_larger_than_its_end(rng):
  x = np.linspace(0, 8, 120)
  y = 3 * np.exp(-x) + 0.03 * rng.normal(size=120)
  assert y.min() < 0 and LINKS["exp"].is_defined(y)
  z, weights = terms.whole(LINKS["exp"], Rows(x[:, None], y, np.ones(120)))
  slope, level = np.polyfit(x, z, 1, w=np.sqrt(weights))
  assert abs(slope + 1) < 0.03 and abs(np.exp(level) - 3) < 0.1


# --- terms -----------------------------------------------------------------------------------------------------------


def test_rows_where_y_says_nothing_of_its_function_are_left_out():
  """sqrt(s) = y where y = 0: the derivative of y**2 is 0 there."""
  x = np.array([0.0, 1, 2, 3, 4, 5])
  y = np.sqrt(3 * x)
  column = SimpleNamespace(
    columns=(x / 5)[:, None], groups=np.array([0]), node=lambda i: parse("x"), scale=lambda i: 5.0)
  [(size, formula)] = terms._sums(column, LINKS["sqrt"], Rows(x[:, None], y, np.ones(6)), DEFAULT.pursuit)
  assert size == 1
  np.testing.assert_allclose(expression.evaluate(formula, x[:, None]), 3 * x, atol=1e-9)
  assert terms._sums(column, LINKS["sqrt"], Rows(x[:, None], 0 * y, np.ones(6)), DEFAULT.pursuit) == []


def test_nats_of_a_formula():
  found = terms.nats(parse("2.5*x"), 0.01, num_rows=30, nats_per_node=1.5)
  assert found == pytest.approx(15 * math.log(0.01) + 4.5)
  assert math.isfinite(terms.nats(parse("x"), 0.0, num_rows=30, nats_per_node=1.5))


def test_scored_formulas_are_distinct_short_and_defined():
  x = np.array([[-1.0], [2], [3]])
  rows = Rows(x, np.array([0.0, 2, 5]), np.array([1.0, 1, 2]))
  found = terms.scored([parse("x"), parse("log(x)"), parse("x"), parse("x + x*x")], rows, max_nodes=3)
  assert found == [(parse("x"), pytest.approx((1 + 0 + 2 * 4) / 4))]


def test_factors_and_the_constant_are_those_of_weighted_least_squares(rng):
  columns, target, weights = rng.normal(size=(20, 2)), rng.normal(size=20), rng.uniform(0.1, 3, 20)
  root, design = np.sqrt(weights), np.column_stack([columns, np.ones(20)])
  expected = np.linalg.lstsq(root[:, None] * design, root * target, rcond=None)[0]
  for unit in (1.0, 1e-200, 1e200):  # only shares of the weights count
    np.testing.assert_allclose(terms.least_squares(columns, target, unit * weights), expected, rtol=1e-9)


def test_few_points_make_few_parts():
  rows = Rows(np.repeat(np.arange(10.0), 2)[:, None], np.arange(20.0), np.ones(20))
  per_part = DEFAULT.terms.points_per_part
  assert terms._max_parts(rows, 99, DEFAULT.terms) == 10 // per_part and terms._max_parts(rows, 1, DEFAULT.terms) == 1


# --- parts -----------------------------------------------------------------------------------------------------------


def test_parts_are_terms_and_what_stands_inside_without_signs_and_factors(rng):
  x = rng.uniform(1, 3, (20, 3))
  found = parts.Parts([parse("2.5*x*sin(z) - 3.5*exp(1.5*x)"), parse("-x")], x, (0,), DEFAULT.terms)
  nodes = [found.node(i) for i in range(found.columns.shape[1])]
  assert parse("x") == nodes[0] and parse("x*sin(z)") in nodes and parse("exp(1.5*x)") in nodes
  assert parse("sin(z)") in nodes and not any(node.is_number for node in nodes)
  for i, node in enumerate(nodes):
    values = expression.evaluate(node, x)
    assert np.abs(found.columns[:, i]).max() == 1 and found.scale(i) == values[np.argmax(np.abs(values))]
    np.testing.assert_allclose(found.columns[:, i] * found.scale(i), values)
  assert found.groups.tolist() == list(range(len(nodes)))


def test_of_equal_parts_the_simplest_and_of_constant_or_undefined_ones_none(rng):
  x = rng.uniform(1, 3, (20, 3))
  x[:, 2] = 7.0
  nodes = [parse("exp(2*log(z))*sqrt(x)"), parse("z**2*sqrt(x)"), parse("log(-x)"), parse("w"), parse("w + 1e-9*x")]
  found = parts.Parts(nodes, x, (), DEFAULT.terms)
  assert parse("z**2*sqrt(x)") in [found.node(i) for i in range(found.columns.shape[1])]
  assert not any({"variable", 2} <= {part.token, part.value} for i in range(found.columns.shape[1])
                 for part in expression.walk(found.node(i)))
  assert parts.Parts([], x, (), DEFAULT.terms).columns.shape == (20, 0)


# --- the library -----------------------------------------------------------------------------------------------------


def test_columns_equal_up_to_a_factor_are_new_once():
  base = np.array([0.5, -1.0, 0.25])
  seen = set()
  found = library._is_new(np.stack([base, -base, base[::-1], base + 5e-10, base + 5e-9], axis=1), seen)
  assert found[[0, 1, 2, 4]].tolist() == [True, False, True, True]
  assert not library._is_new(base[:, None], seen)[0]


# --- polynomials -----------------------------------------------------------------------------------------------------

FRACTION = {(2.0, 0.0): 1.0, (0.0, 1.0): -3.0, (0.0, 0.0): 2.0}


def test_values_trees_and_units_of_polynomials(rng):
  x = rng.uniform(1, 3, (9, 2))
  expected = x[:, 0] ** 2 - 3 * x[:, 1] + 2
  np.testing.assert_allclose(polynomials.values(FRACTION, x), expected)
  np.testing.assert_allclose(expression.evaluate(polynomials.to_node(FRACTION), x), expected)
  sizes = np.array([4.0, 0.5])
  np.testing.assert_allclose(polynomials.values(polynomials.rescaled(FRACTION, sizes), sizes * x), expected)
  common = {(2.0, 1.0): 1.5, (1.0, 1.0): 2.5}
  assert polynomials.to_node(common).token == "*"
  np.testing.assert_allclose(expression.evaluate(polynomials.to_node(common), x), polynomials.values(common, x))


def multiplied(*some):
  product = {(0.0, 0.0): 1.0}
  for each in some:
    sums = collections.Counter()
    for (a, c), (b, d) in itertools.product(product.items(), each.items()):
      sums[tuple(map(sum, zip(a, b, strict=True)))] += c * d
    product = dict(sums)
  return product


@pytest.mark.parametrize(("wanted", "rest"), [
  ([{(1.0, 0.0): 1.0, (0.0, 0.0): -1.5}, {(0.0, 2.0): 1.0, (0.0, 0.0): 4.0}], {(1.0, 1.0): 1.0, (0.0, 0.0): 5.0}),
  ([{(1.0, 0.0): 1.0, (0.0, 0.0): 2.0}] * 2, {(0.0, 1.0): 2.0, (1.0, 0.0): 1.0}),
  ([{(2.0, 0.0): 1.0, (1.0, 0.0): 1.0, (0.0, 0.0): 3.0}], {(0.0, 1.0): 1.0, (1.0, 1.0): 1.0, (0.0, 0.0): 7.0})])
def test_factors_of_one_variable_are_split_off(wanted, rest, rng):
  found, left = polynomials.factors(multiplied(*wanted, rest), rng.uniform(1, 3, (9, 2)), tolerance=1e-6)
  assert len(found) == len(wanted)
  for factor in wanted:
    assert any(set(each) == set(factor) and all(each[p] == pytest.approx(factor[p], rel=1e-4) for p in factor)
               for each in found)
  assert left == {powers: pytest.approx(c, rel=1e-3) for powers, c in rest.items()}


def test_a_remainder_is_dropped_and_a_quotient_that_vanishes_is_none():
  assert polynomials._divided({(2.0,): 1.0, (1.0,): 3.0, (0.0,): 2.0 + 1e-7}, 0, [1.0, 1.0]) == {
    (1.0,): 1.0, (0.0,): pytest.approx(2.0)}
  assert polynomials._divided({(1.0,): 1.0, (0.0,): 2.0}, 0, [1.0, 0.0, 1.0]) == {(1.0,): 1.0, (0.0,): 2.0}
  assert polynomials._joined([[2.0, 1.0], [2.004, 1.0], [3.0, 1.0]]) == [
    [pytest.approx(2.002), 1.0], [pytest.approx(2.002), 1.0], [3.0, 1.0]]


# --- bases of rational functions -------------------------------------------------------------------------------------


def test_monomials_up_to_a_degree():
  assert bases.all_up_to(2, 2) == [
    (0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (2.0, 0.0), (1.0, 1.0), (0.0, 2.0)]
  basis = bases._nested([(0.0,), (0.5,), (1.0,)], [(0.0,), (0.5,)], (2, 1), 0.5)
  assert basis.has_roots and basis.starts == ((0, 3), (0, 3, 4), (0, 1, 3), (0, 1, 3, 4), (0, 1, 2, 3), (0, 1, 2, 3, 4))
  linear = bases._linear_in_each((1, 2))
  assert linear.numerator == linear.denominator == ((0.0, 0.0), (1.0, 0.0), (0.0, 2.0), (1.0, 2.0))
  assert linear.starts == ((0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 6), (0, 1, 2, 3, 4, 5, 6, 7)) and not linear.has_roots


def test_the_first_basis_goes_up_to_the_degrees_of_the_config():
  config = DEFAULT.rationals
  for num_variables, (above, below) in enumerate(config.degrees, start=1):
    basis = bases.bases(num_variables, config)[0]
    for monomials, most in ((basis.numerator, above), (basis.denominator, below)):
      degree = max(d for d in range(1, most + 1) if d == 1 or math.comb(num_variables + d, d) <= config.max_monomials)
      assert max(map(sum, monomials)) == degree and len(monomials) == math.comb(num_variables + degree, degree)


def test_small_sets_are_fractions_without_a_common_factor():
  basis = bases.Basis(((0.0,), (1.0,)), ((0.0,), (1.0,)), ())
  two, three = bases.small_sets(basis, 6)[:2]
  assert two.tolist() == [[0, 2], [0, 3], [1, 2]]  # x over x cancels
  assert three.tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
  assert len(bases.small_sets(basis, 5)) == 0


# --- populations -----------------------------------------------------------------------------------------------------


def population_of(loss, complexity, *, signature=None, family=None, layer=None):
  count = len(loss)
  ids = np.arange(count)[:, None]
  given = [np.zeros(count, int) if each is None else np.array(each) for each in (family, layer)]
  forms = np.arange(count) if signature is None else np.array(signature)
  return population.Population(ids, ids, np.array(loss, float), np.array(complexity), forms, *given, ids, ids, ids)


def kept(some, num):
  return population.survivors(some, num_per_niche=num).ids[:, 0].tolist()


def test_losses_that_agree_to_a_millionth_are_those_of_one_function():
  cell = DEFAULT.evolution.equal_loss
  for factor, expected in ((1.0, [0]), (math.exp(0.9 * cell), [0]), (math.exp(2.1 * cell), [0, 1])):
    assert kept(population_of([0.3, 0.3 * factor], [3, 4]), 5) == expected
  assert kept(population_of([1e-31, 1e-33], [3, 4]), 5) == [0]  # rounding
  assert kept(population_of([0.1, 0.2, 0.3, math.nan, math.inf], [3, 3, 3, 3, 3]), 2) == [0, 1]
  assert kept(population_of([0.1, 0.1], [3, 3], layer=[0, 1]), 2) == [0, 1]


def test_groups_are_of_one_layer_and_one_family():
  layer, family = np.array([0, 0, 1, 1]), np.array([0, 3, 0, 3])
  assert len(set(population.group_of(layer, family).tolist())) == 4
  assert population.group_of(np.array([2]), np.array([5]))[0] == 2 * population.NUM_FAMILIES + 5
  some = population_of([0.1, 0.2], [3, 4]).in_layer(2)
  assert some.layer.tolist() == [2, 2] and len(some.join(some)) == 4 and len(population.empty(5, 7)) == 0


def test_excess_is_finite_and_by_group():
  loss, complexity, group = np.array([1e-40, 1.0, 0.5, np.inf]), np.array([3, 4, 3, 3]), np.array([0, 0, 1, 1])
  found = population.excess_of(loss, complexity, group)
  limit = math.log(1 / population.SMALLEST_LOSS)
  assert found.tolist() == pytest.approx([0, limit, 0, limit - math.log(0.5)])


# --- units of genomes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "scale"), [(0.05, 1.0), (0.049, 0.049), (20.0, 1.0), (20.1, 20.1), (0.0, 1.0)])
def test_columns_far_from_one_get_a_unit(size, scale):
  task = make_task((np.column_stack([np.full(9, size), np.arange(9.0)]), np.arange(9.0)), ("x", "z"), SearchOptions())
  units = stock.make_units(task, (1, 0))
  assert units.columns == (1, 0) and units.scales[1] == pytest.approx(scale)
  x = task.rows.x
  node = parser.parse("1.5*x*z + x", ("x", "z"))
  inside = x[:, [1, 0]] / np.array(units.scales)
  np.testing.assert_allclose(expression.evaluate(units.to_genome(node), inside), expression.evaluate(node, x))
  np.testing.assert_allclose(expression.evaluate(units.to_user(units.to_genome(node)), x), expression.evaluate(node, x))
  assert units.knows(node) and not stock.Units((1,), (1.0,)).knows(node)


@pytest.mark.parametrize(("name", "sizes"), [("+", [1, 1, 3, 3]), ("sin", [1, 2, 3, 4])])
def test_random_trees_are_of_about_the_size_asked_for(name, sizes):
  """Of operators of two arguments alone a tree has an odd number of nodes."""
  vocab = programs.base_vocabulary(1)
  weights = np.zeros(vocab.size)
  weights[[vocab.ids[name], vocab.first_variable_id]] = 1
  rng = np.random.default_rng(0)
  for size, expected in enumerate(sizes, start=1):
    found = stock._random_tree(rng, size, weights, vocab, np.asarray(vocab.arity), 1.0)
    assert programs.size(found) == expected


def test_terms_that_are_nothing_beside_y_go():
  rows = Rows(np.linspace(1, 2, 9)[:, None], np.linspace(0, 100, 9), np.ones(9))
  units = stock.Units((0,), (1.0,))
  for factor, is_kept in ((0.9e-9, False), (1.1e-9, True)):  # times 2 at most; y ranges over 100
    found = stock.answer(parse(f"3*x + {factor / 2!r}*x**2 / 2"), units, rows)
    assert (len(expression.flatten(found, "+")) == 2) is is_kept
  assert stock.answer(parse("1e-30*x"), units, rows) != expression.number(0.0)
