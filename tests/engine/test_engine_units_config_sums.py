"""What the default config makes of sources of sums and fractions: degrees, exponents, how many sets are looked at."""

import collections
import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import NAMES, candidate, nested, parse, task_of

from symformer_jax.engine.config import DEFAULT, rationals as rationals_config, sums
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.language import parser
from symformer_jax.sources import exponential_products
from symformer_jax.sources.fractions import null_vectors, quadratics, rational_bases, views
from symformer_jax.sources.repairs import growth
from symformer_jax.sources.repairs.fronts import first_fronts
from symformer_jax.sources.sums import exchange, pair_sums, pairs, parts, pursuit, subset_sums, terms


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (DEFAULT.rationals, rationals_config.RationalsConfig), (DEFAULT.quadratics, rationals_config.QuadraticsConfig),
    (DEFAULT.terms, sums.TermsConfig), (DEFAULT.pursuit, sums.PursuitConfig), (DEFAULT.pairs, sums.PairsConfig),
    (DEFAULT.growth, sums.GrowthConfig)):
    assert part == make()


# --- quadratics and rationals ----------------------------------------------------------------------------------------


def root_of(degrees, num_rows, seed):
  """A root of A*y**2 + B*y + C = 0 with polynomials of a column of just these degrees."""
  rng = np.random.default_rng(seed)
  x = np.cos(np.pi * (np.arange(num_rows) + 0.5) / num_rows)
  a, b, c = (rng.uniform(0.5, 1.5, degree + 1) if degree >= 0 else np.zeros(1) for degree in degrees)
  above, linear = np.polynomial.chebyshev.chebval(x, a) + 4, np.polynomial.chebyshev.chebval(x, b)
  below = -np.polynomial.chebyshev.chebval(x, c) - 6
  return x[:, None], (-linear + np.sqrt(linear**2 - 4 * above * below)) / (2 * above)


@pytest.mark.parametrize("degrees", [
  (0, 1, 2), (1, 1, 1), (0, 2, 2), (1, 1, 2), (0, 1, 3), (1, 2, 2), (0, 2, 3), (0, -1, 4), (4, -1, 2), (0, 1, 4),
  (0, 2, 4), (2, 1, 2), (1, 2, 3), (2, 2, 2), (3, 1, 2), (2, -1, 4), (4, -1, 4), (3, 2, 2), (2, 4, 2), (0, 3, 6)])
def test_equations_of_these_degrees_are_tried_from_three_rows_for_two_columns(degrees, monkeypatch):
  num_columns = sum(degree + 1 for degree in degrees)
  asked, bases, monomials = [degree for degree in degrees if degree >= 0], [], views.monomials
  monkeypatch.setattr(views, "monomials", lambda view, degree: bases.append(degree) or monomials(view, degree))
  tried = []
  monkeypatch.setattr(null_vectors, "find", lambda columns, config: tried.append(
    (columns.shape[1], bases[-len(asked):])))
  enough = math.ceil(1.5 * num_columns)
  for num_rows, is_tried in ((enough, True), (enough - 1, False)):
    tried.clear()
    list(quadratics._exact_equations(views.plain(1), *root_of(degrees, num_rows, seed=0), DEFAULT.quadratics))
    assert ((num_columns, asked) in tried) is is_tried


@pytest.mark.parametrize(("degree", "is_tried"), [(147, True), (148, False)])
def test_equations_have_150_columns_at_most(degree, is_tried, monkeypatch):
  seen = []
  monkeypatch.setattr(null_vectors, "find", lambda columns, config: seen.append(columns.shape[1]))
  config = dataclasses.replace(DEFAULT.quadratics, degrees=((0, 0, degree),))
  x, y = root_of((0, 1, 2), 900, seed=0)
  list(quadratics._exact_equations(views.plain(1), x, y, config))
  assert seen == ([150] if is_tried else [])


def test_what_an_equation_may_leave():
  config = DEFAULT.quadratics.elimination
  assert [config.leap(left) for left in (0.9e-11, 1.1e-11)] == [1e-5, 1e-2]
  rng = np.random.default_rng(0)
  basis = np.linalg.qr(rng.normal(size=(60, 4)))[0]
  for left, is_found in ((0.5e-4, True), (4e-4, False)):
    columns = np.column_stack([basis[:, 0], basis[:, 1], basis[:, 2], basis[:, 0] + basis[:, 1] + basis[:, 2]
                               + left * 2 * basis[:, 3]])
    assert (null_vectors.find(columns, config) is not None) is is_found


def test_fractions_of_these_degrees():
  config = DEFAULT.rationals
  for each in (config, dataclasses.replace(config, max_monomials=99)):  # however many monomials there may be
    tops = []
    for num_variables in range(1, 6):
      basis = rational_bases.bases(num_variables, each)[0]
      tops.append(tuple(int(max(map(sum, some))) for some in (basis.numerator, basis.denominator)))
    assert tops == [(6, 6), (3, 3), (3, 2), (2, 2), (2, 2)]
  six = rational_bases.bases(6, config)[0]  # of six variables the squares are too many: 28 are more than 21
  assert tuple(max(map(sum, some)) for some in (six.numerator, six.denominator)) == (1, 1)
  _, roots = rational_bases.bases(1, config)
  assert max(roots.numerator) == max(roots.denominator) == (2.0,) and roots.has_roots
  # Linear in the first or second power of each; of one power of all where there are more than eight choices; one degree
  # of four in one variable; of more than four variables neither.
  for num_variables, count in ((2, 1 + 4 + 2), (3, 1 + 8 + 3), (4, 1 + 2 + 4), (5, 1)):
    assert len(rational_bases.bases(num_variables, config)) == count
  two = rational_bases.bases(2, config)
  assert {max(powers) for basis in two[1:5] for powers in basis.numerator} == {0.0, 1.0, 2.0}
  assert {max(map(max, basis.numerator)) for basis in two[5:]} == {4.0}


# --- sums ------------------------------------------------------------------------------------------------------------


def test_sums_of_the_library_are_searched_for_in_three_ways(monkeypatch):
  asked = []
  monkeypatch.setattr(pursuit, "select_columns", lambda columns, *given, config, **rest: asked.append(config) or [])
  task = task_of(1, num_rows=200)
  columns = SimpleNamespace(columns=np.ones((128, 1)), groups=np.zeros(1, int), tiers=np.zeros(1, int))
  monkeypatch.setattr(terms, "Subset", lambda columns, index: columns)
  terms.sums_of(columns, task.fit_rows, links=("y",), searches=DEFAULT.terms.searches, rule=task.rule)
  assert [(c.max_columns, c.num_first, c.num_pairs) for c in asked] == [(2, 64, 16), (3, 128, 64), (6, 4096, 256)]
  assert len(terms.some_of(task.fit_rows, DEFAULT.terms)) == 128


def test_a_pursuit_carries_eight_sets_sixteen_pairs_and_keeps_few(monkeypatch):
  rng = np.random.default_rng(0)
  columns, target = rng.normal(size=(60, 40)), rng.normal(size=60)
  carried, extend = [], pursuit._extend

  def extended(beams, columns, groups, least, num_beams, num_looked_at):
    carried.append((num_beams, num_looked_at))
    return extend(beams, columns, groups, least, num_beams, num_looked_at)

  monkeypatch.setattr(pursuit, "_extend", extended)
  found = pursuit.select_columns(columns, target, np.ones(60))
  assert carried == [(8, 64), (16, 64), (8, 64), (8, 64), (8, 64), (8, 64)]
  assert collections.Counter(map(len, found)) == {1: 8, 2: 16, 3: 3, 4: 3, 5: 3, 6: 3}


def test_more_sums_of_one_and_two_columns_are_kept(monkeypatch):
  rng = np.random.default_rng(0)
  columns, target = rng.normal(size=(60, 40)), rng.normal(size=60)
  config = dataclasses.replace(DEFAULT.pursuit, num_first=30, num_pairs=30)
  found = pursuit.select_columns(columns, target, np.ones(60), config=config)
  assert collections.Counter(map(len, found))[1] == collections.Counter(map(len, found))[2] == 16


def test_parts_of_formulas(monkeypatch):
  x = np.random.default_rng(0).uniform(1, 3, (40, 1))
  for num, is_part in ((12, True), (13, False)):
    assert (nested(num) in parts.Parts([nested(num)], x, (), DEFAULT.terms)._nodes) is is_part
  outer, inner = ([parse(f"{token}({k}.5*x)") for k in range(600)] for token in ("sin", "cos"))
  monkeypatch.setattr(parts, "_subtrees", lambda node: inner)
  assert len(parts.Parts(outer, x, (), DEFAULT.terms)._nodes) == 512 + 256
  monkeypatch.undo()
  at_ends = np.array([[1.0], [2.0]])  # half of the largest and the largest: five digits of the half tell
  for more, count in ((0.8e-5, 1), (1.2e-5, 2)):
    found = parts.Parts([], at_ends, (), DEFAULT.terms)
    for text in ("x", f"x + {more:.7f}*(2 - x)"):
      found._add(parser.parse(text, NAMES))
    assert len(found._found) == count


def test_formulas_of_forty_nodes_and_of_six_parts_are_scored():
  assert len(terms.scored([parse("x")], task_of(1).fit_rows)) == 1
  for num, count in ((40, 1), (41, 0)):
    assert len(terms.scored([nested(num)], task_of(1).fit_rows)) == count
  rows = task_of(1, num_rows=100).fit_rows
  assert terms._max_parts(rows, 99, DEFAULT.terms) == 20  # five different points for each


def test_five_points_for_each_constant_and_eight_looks_for_each_formula():
  for num_rows, count in ((10, 1), (9, 0)):
    task = task_of(1, num_rows=num_rows)
    assert len(pair_sums.allowed([parse("1.5*x + 2.5")], task, 1, DEFAULT.terms)) == count
  looked = []
  task = task_of(1)
  pair_sums.allowed((looked.append(i) or parse("x") for i in range(99)), task, 3, DEFAULT.terms)
  assert len(looked) == 24


def test_pairs_and_triples_of_the_library(monkeypatch):
  task, asked = task_of(1, num_rows=40), []
  monkeypatch.setattr(pairs, "best_pairs", lambda columns, *given, num: asked.append(
    (columns.shape[1], num)) or (np.zeros((0, 2), int), None))
  monkeypatch.setattr(pairs, "best_triples", lambda columns, *given, num: asked.append(
    (columns.shape[1], num)) or np.zeros((0, 3), int))
  alike = []
  monkeypatch.setattr(exchange, "of_different_groups", lambda found, groups, most: alike.append(most) or found)
  num = 5000
  library = SimpleNamespace(columns=np.ones((40, num)), groups=np.zeros(num, int), tiers=np.zeros(num, int),
                            complexities=np.where(np.arange(num) < 4500, 5, 6))
  monkeypatch.setattr(terms, "library_of", lambda *given: library)
  from symformer_jax.sources.sums import plain_sums

  monkeypatch.setattr(plain_sums, "Subset", lambda columns, index: SimpleNamespace(
    columns=columns.columns[:, index], groups=columns.groups[index]))
  plain_sums.PairSumsInside()._nodes(SimpleNamespace(task=task), 0, 9)
  # Of y between 1 and 3 the logit and the inverse of the tangent's are undefined.
  assert asked == [(4096, 2048)] * 6 and alike == [2] * 6
  asked.clear()
  for turn in range(4):
    plain_sums.TripleSums()._nodes(SimpleNamespace(task=task), turn, 9)
  assert asked == [(400, 400)] * 4
  library.complexities = np.where(np.arange(num) < 300, 5, 6)
  asked.clear()
  plain_sums.TripleSums()._nodes(SimpleNamespace(task=task), 0, 9)
  plain_sums.PairSumsInside()._nodes(SimpleNamespace(task=task), 0, 9)
  assert [num for num, _ in asked] == [300] * 7
  asked.clear()
  monkeypatch.setattr(pair_sums, "subset", lambda columns, most: asked.append(most) or library)
  pair_sums.PairSums()._propose(SimpleNamespace(task=task, state=None), 9)
  assert asked == [32_768, (5000, 16_384)] and alike[-1] == 2


def test_sums_by_exchange(monkeypatch):
  task, asked = task_of(2, num_rows=90), []
  monkeypatch.setattr(exchange, "best_subsets", lambda some, groups, *given, max_size, config: asked.append(
    (some.shape[1], max_size)) or [])
  complexities = np.array([3, 3, 4, 5, 6, 7])
  library = SimpleNamespace(columns=np.ones((90, 6)), groups=np.zeros(6, int), tiers=np.zeros(6, int),
                            complexities=complexities)
  monkeypatch.setattr(terms, "library_of", lambda *given: library)
  monkeypatch.setattr(subset_sums, "Subset", lambda columns, index: SimpleNamespace(
    columns=columns.columns[:, index], groups=columns.groups[index]))
  subset_sums.SubsetSums()._nodes(SimpleNamespace(task=task), 0, 9)
  assert asked == [(2, 5), (4, 5), (6, 5)]  # of three nodes, of five, all; five terms
  asked.clear()
  inside = subset_sums.SubsetSumsInside()
  for turn in range(6):
    inside._nodes(SimpleNamespace(task=task), turn, 9)
  # Five functions of y and y under x, 1/x, z, 1/z, of four terms each.
  assert asked == [(4, 4), (6, 4)] * (5 + 4 + 4)
  # Of both powers there are twelve of six columns; of seven each column alone, of more than twelve none.
  for num, targets in ((6, 5 + 12), (7, 5 + 7), (12, 5 + 12), (13, 5)):
    task = task_of(num, num_rows=90)
    task = dataclasses.replace(task, columns=tuple(range(num)))
    assert sum(len(inside._targets(task, task.fit_rows, turn)) for turn in range(6)) == targets


def test_how_sets_of_columns_are_exchanged(monkeypatch):
  config, rng = DEFAULT.subsets, np.random.default_rng(0)
  assert DEFAULT.subsets_inside == dataclasses.replace(
    DEFAULT.subsets_inside, num_begun=config.num_begun, num_exchanged=config.num_exchanged)
  begun, alike = [], []
  of_different = exchange.of_different_groups
  monkeypatch.setattr(exchange, "of_different_groups", lambda found, groups, most: alike.append(
    (len(found), most)) or of_different(found, groups, most))
  least = [1.0]
  monkeypatch.setattr(exchange, "_grown", lambda units, goal, device, single, some, config: begun.append(len(some)) or (
    np.zeros((9000, some.shape[1] + 1), int), np.full(9000, least[0])))
  columns, target = rng.normal(size=(30, 3)), rng.normal(size=30)
  for least[0], sizes in ((0.9e-13, 1), (1.1e-13, 2)):
    begun.clear()
    alike.clear()
    exchange.best_subsets(columns, np.zeros(3, int), target, np.ones(30), max_size=3, config=config)
    assert len(begun) == sizes
  assert alike == [(3, 4), (8192, 4)] and begun == [3, 4]
  wide = rng.normal(size=(30, 700))
  begun.clear()
  exchange.best_subsets(wide, np.arange(700), target, np.ones(30), max_size=2, config=config)
  assert begun == [512]


def test_rounds_of_exchange(monkeypatch):
  rounds = []
  complete = itertools.count()

  def completed(on_device, single, begun):
    rounds.append(len(begun))
    return (np.arange(len(begun)) * 7 + next(complete) * 10_007) % 100_003 + 1000

  def errors(units, goal, made):
    return np.sort(np.random.default_rng(len(rounds)).uniform(size=len(made)))

  monkeypatch.setattr(exchange, "_completed", completed)
  monkeypatch.setattr(exchange, "_errors", errors)
  found, _ = exchange._grown(None, None, None, None, np.arange(500)[:, None], DEFAULT.subsets)
  # Each of the best has a column that was begun with, and one that was not.
  assert len(rounds) == 1 + 3 and rounds[:2] == [500, 96] and len(found)


def test_what_grows():
  config = DEFAULT.growth
  for num, count in ((28, 1), (29, 0)):
    assert len(first_fronts([Candidate(nested(num), 1.0)], frozenset(), config)) == count
  fronts = [Candidate(nested(2 + i, i), 1.0 + i) for i in range(12)]  # each worse and longer: a front of its own
  assert list(first_fronts(fronts, frozenset(), config).values()) == [1, 2, 3, 4, 5, 6, 7, 8]
  wide = [Candidate(nested(2 + i % 20, i), 1e3 - 40 * (i % 20) + i / 100) for i in range(160)]
  assert len(first_fronts(wide, frozenset(), config)) == 64
  gains = np.linspace(0.5, 0.03, 12)
  tiers = np.array([0] * 9 + [1, 1, 1])
  assert growth._best(gains, tiers, config) == [0, 1, 2, 3, 4, 5, 9, 10]
  assert growth._best(np.array([0.021, 0.019]), np.zeros(2, int), config) == [0]


@pytest.mark.parametrize(("share", "is_grown"), [(0.9e-4, True), (1.1e-4, False)])
def test_what_may_be_noise_does_not_grow(share, is_grown, monkeypatch):
  task = task_of(1)
  pool = Pool(task.variance, 100)
  pool.insert([candidate("1.5*x", share * task.variance)])
  monkeypatch.setattr(growth, "_grown", lambda *given: [])
  monkeypatch.setattr(terms, "library_of", lambda *given: SimpleNamespace(columns=np.ones((1, 1))))
  source = growth.Growth()
  found = source._propose(SimpleNamespace(task=task, pool=pool, state=growth.State()), 9)
  assert bool(found.state.grown) is is_grown
  if is_grown:  # two nats for a node, and as many are to be gained
    nats = len(task.fit_rows) / 2 * math.log(share * task.variance) + 2 * 3
    assert found.state.nats == pytest.approx(nats)
    for gained, goes_on in ((1.9, False), (2.1, True)):
      state = growth.State(frozenset(), nats + gained)
      again = source._propose(SimpleNamespace(task=task, pool=pool, state=state), 9)
      assert bool(again.state.grown) is goes_on


# --- products with exponentials --------------------------------------------------------------------------------------

EXPONENTIALS = DEFAULT.closed_forms.exponentials


@pytest.mark.parametrize(("num_columns", "num_rows", "is_asked"), [
  (1, 16, True), (1, 15, False), (9, 48, True), (9, 47, False), (10, 99, False)])
def test_products_with_exponentials_have_nine_columns_at_most_and_four_rows_a_term(
    num_columns, num_rows, is_asked, monkeypatch):
  """Terms are logarithms of columns, a constant, and two monomials."""
  asked = []
  monkeypatch.setattr(exponential_products, "_columns", lambda *given: asked.append(True) or SimpleNamespace(
    monomials=()))
  x = np.random.default_rng(0).uniform(1, 3, (num_rows, num_columns))
  exponential_products.products_with_exponentials(
    Rows(x, x[:, 0], np.ones(num_rows)), tuple(range(num_columns)), EXPONENTIALS)
  assert bool(asked) is is_asked


FINE, ROUGH = {-3, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3}, {-2, -1, -0.5, 0.5, 1, 2}


@pytest.mark.parametrize(("num_columns", "exponents"), [
  (1, [FINE]), (3, [FINE] * 3), (4, [FINE, FINE, ROUGH]), (6, [FINE, FINE, {-2, -1, 1, 2}]),
  (9, [FINE, ROUGH, {-1, 1}])])
def test_exponents_of_three_columns_are_those_that_make_fifteen_hundred_at_most(num_columns, exponents, monkeypatch):
  found = []
  monkeypatch.setattr(exponential_products.monomials, "Values", lambda x: lambda names: found.extend(names) or np.ones(
    (len(x), len(names))))
  x = np.ones((9, num_columns))
  exponential_products._columns(
    Rows(x, x[:, 0], x[:, 0]), range(num_columns), x[:, 0], np.zeros((9, 1)), EXPONENTIALS)
  sizes = range(1, 1 + max(map(len, found)))
  assert [{p for name in found if len(name) == size for _, p in name} for size in sizes] == exponents


def test_of_eight_monomials_a_second_one_is_looked_for_and_two_of_each_are_kept(monkeypatch):
  asked = []
  monkeypatch.setattr(exponential_products.interruption, "check", lambda: asked.append(True))
  candidates = SimpleNamespace(left=np.linalg.qr(np.random.default_rng(0).normal(size=(40, 30)))[0])
  found = exponential_products._best_sets(candidates.left @ np.arange(30.0), candidates, EXPONENTIALS)
  assert len(asked) == 8 and found == [(29,), (28,), (28, 29), (27, 29)]


@pytest.mark.parametrize(("share", "is_found"), [(0.9e-12, True), (1.1e-12, False)])
def test_products_with_exponentials_are_exact_to_a_part_in_a_million(share, is_found, monkeypatch):
  monkeypatch.setattr(exponential_products, "_left", lambda node, rows: share)
  x = np.random.default_rng(0).uniform(1, 3, (40, 1))
  rows = Rows(x, x[:, 0] * np.exp(-x[:, 0]), np.ones(40))
  assert bool(exponential_products.products_with_exponentials(rows, (0,), EXPONENTIALS)) is is_found
