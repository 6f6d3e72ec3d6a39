"""What the default config asks of the sources and the loop: how much, of what degrees, from which starts, how long."""

import collections
import dataclasses
import itertools
import math
import statistics
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine import loop, noise, refine
from symformer_jax.engine.config import (
  DEFAULT,
  REWRITINGS,
  BudgetConfig,
  NoiseConfig,
  evolution,
  functions,
  names,
  transformer,
)
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.expression import sort_operands
from symformer_jax.language.tidy import tidy
from symformer_jax.selection import select
from symformer_jax.sources import (
  alternating,
  exchange,
  growth,
  pair_sums,
  pairs,
  parts,
  power_products,
  pursuit,
  quadratics,
  rational_bases,
  rationals,
  registry,
  ridge_functions,
  ridges,
  separable,
  single_index,
  subset_sums,
  terms,
  unknown_functions,
  varying,
)
from symformer_jax.templates import profile

NAMES = ("x", "z", "w", "v")
OPTIONS = SearchOptions()


def parse(text):
  return sort_operands(tidy(parser.parse(text, NAMES)))


def task_of(num_columns, num_rows=100, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.uniform(1, 3, (num_rows, num_columns))
  return make_task((x, rng.uniform(1, 3, num_rows)), None, OPTIONS)


def candidate(text, mse):
  return Candidate(parser.parse(text, NAMES), mse)


def nested(num_nodes, column=0):
  """A formula of so many nodes and no constant."""
  node = expression.variable(column)
  for _ in range(num_nodes - 1):
    node = expression.Node("sin", (node,))
  return node


# --- turns -----------------------------------------------------------------------------------------------------------


def turns_of(**options):
  options = SearchOptions(**options)
  without_model = [name for name in registry.SOURCES if name != registry.TRANSFORMER]
  return list(loop.schedule([registry.SOURCES[name](None, options) for name in without_model], options))


def test_what_each_source_is_asked_for_in_its_turns():
  asked = collections.defaultdict(list)
  for turn in turns_of():
    asked[turn.source.name].append(turn.num)
  formulas = {name: nums for name, nums in asked.items() if set(nums) != {1}}
  assert formulas == {
    "power_products": [128], "single_index": [128], "separable": [128], "subsets": [256], "varying": [128] * 3,
    "pairs": [512], "pairs_inside": [1024], "triples": [256] * 4, "ridges": [128] * 2, "subsets_inside": [128] * 6,
    "growth": [512] * 2}


def test_a_thorough_search_goes_on_for_forty_places():
  """Four turns of evolution, then growth and parts: six times, and four turns more."""
  first, more = (collections.Counter(turn.source.name for turn in turns_of(effort=effort))
                 for effort in ("normal", "thorough"))
  assert first == collections.Counter(turn.source.name for turn in turns_of(effort="quick"))  # both go on for none
  assert more - first == {"evolution": 6 * 4 + 4, "growth": 6 * 2, "parts": 6 * 2}


def test_a_choice_is_left_three_twentieths_of_the_time_and_three_seconds_at_most():
  for seconds, search in ((10.0, 8.5), (20.0, 17.0), (100.0, 97.0)):
    assert SearchOptions(max_time=seconds).search_seconds == pytest.approx(search)


def test_a_model_is_asked_for_a_few_hundred_samples_then_for_thousands():
  from symformer_jax.sources.transformer import Transformer

  assert Transformer(None, SearchOptions(n_samples=3000)).turns == (256, 768, 1024, 952)


@pytest.mark.parametrize(("make", "message"), [
  (lambda: transformer.TransformerConfig(round_samples=1025), "later_samples: expected at least round_samples"),
  (lambda: BudgetConfig(normal=-1), "normal: expected a whole number of at least 0, got -1"),
  (lambda: BudgetConfig(quick=0.5), "quick: expected a whole number of at least 0, got 0.5"),
  (lambda: evolution.EvolutionConfig(max_tokens=1), "max_tokens: expected 2 to 30, got 1"),
  (lambda: evolution.EvolutionConfig(max_tokens=31), "max_tokens: expected 2 to 30, got 31"),
  (lambda: evolution.EvolutionConfig(kinds=(("insrt", 1.0),)), "unknown name 'insrt'"),
  (lambda: functions.RidgesConfig(sums=((1, 2, 2),) * 4), "sums: expected at most three sizes"),
  (lambda: functions.RidgesConfig(sums=((1, 1, 2),)), "sums: expected at most three sizes"),
  (lambda: functions.RidgesConfig(sums=((1, 2, 3),)), "sums: expected at most three sizes"),
  (lambda: functions.RidgesConfig(sums=((1, 2, 0),)), "sums: expected at most three sizes"),
  (lambda: functions.SeparableConfig(degrees=()), "degrees: expected some numbers of at least 1"),
  (lambda: functions.SeparableConfig(degrees=(3, 0)), "degrees: expected some numbers of at least 1"),
  (lambda: names.check_counts(SimpleNamespace(a=0), "a"), "a: expected a whole number of at least 1, got 0"),
  (lambda: names.check_counts(SimpleNamespace(a=1.0), "a"), "a: expected a whole number of at least 1, got 1.0"),
  (lambda: NoiseConfig(asked=(("libary", 1),)), "asked: unknown name 'libary'")])
def test_numbers_that_make_no_sense_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_numbers_at_their_limits_make_sense():
  assert transformer.TransformerConfig(round_samples=1024).round_samples == 1024
  assert BudgetConfig(quick=1, normal=0).turns("normal") == 0
  assert [evolution.EvolutionConfig(max_tokens=num).max_tokens for num in (2, 30)] == [2, 30]
  assert functions.RidgesConfig(sums=((1, 2, 2),) * 3) and functions.SeparableConfig(degrees=(1,))
  assert names.check_counts(SimpleNamespace(a=1), "a") is None


# --- the loop --------------------------------------------------------------------------------------------------------


def test_all_get_eight_steps_the_nearest_forty_and_what_may_be_exact_a_hundred_and_fifty(monkeypatch):
  asked = []

  def fit_constants(some, *, method, max_steps, max_constants):
    asked.append((method, max_steps, max_constants, [len(nodes) for _, nodes in some]))
    return [[(node, 1e-12 * (i + 1)) for i, node in enumerate(nodes)] for _, nodes in some]

  monkeypatch.setattr(refine, "fit_constants", fit_constants)
  task = task_of(2)
  nodes = [parser.parse(text, NAMES) for text in ("1.5*x", "2.5*x*z", "3.5*sin(x)")]
  proposal = loop.Proposal(nodes=tuple(nodes))
  list(loop._fits([task], [proposal], "library", OPTIONS))
  assert asked == [("lm", 8, 16, [3]), ("lm", 40, 16, [3]), ("lm", 150, 16, [3])]
  asked.clear()
  list(loop._fits([task], [proposal], "library", SearchOptions(refine="bfgs")))
  assert [steps for _, steps, _, _ in asked] == [32, 40, 150]  # a method of slopes takes four times the steps


def different(num):
  """Formulas of different skeletons and three nodes each."""
  return [expression.Node("*", (expression.variable(i), expression.variable(num + 1))) for i in range(num)]


def test_ninety_six_go_on_after_the_first_steps_and_four_of_each_length():
  found = loop._nearest([Candidate(node, float(i + 1)) for i, node in enumerate(different(120))], OPTIONS)
  assert len(found) == 96
  longer = [Candidate(expression.Node("sin", (node,)), 1e3 + i) for i, node in enumerate(different(9))]
  assert len(loop._nearest([*map(Candidate, different(120), np.arange(120.0) + 1), *longer], OPTIONS)) == 100


def test_what_of_a_pool_goes_on():
  pool = Pool(1.0, 100)
  pool.insert(Candidate(node, float(i + 1)) for i, node in enumerate(different(80)))
  assert len(pool.shortlist()) == 64
  pool.insert(Candidate(expression.Node("sin", (node,)), 1e3 + i) for i, node in enumerate(different(9)))
  assert len(pool.shortlist()) == 64 + 3
  wide = Pool(1.0, 100)
  for depth in range(1, 41):
    wide.insert(Candidate(expression.Node("*", (nested(depth), expression.variable(i + 1))), 1e3 + depth)
                for i in range(5))
  wide.insert(Candidate(node, float(i + 1)) for i, node in enumerate(different(80)))
  assert len(wide.shortlist()) == 128 and len(wide.shortlist(40)) == 40
  alike = Pool(1.0, 100)
  alike.insert(candidate(f"{k}.5*x", float(k)) for k in range(1, 9))
  assert len(alike.shortlist()) == 4


def test_a_pool_of_more_than_four_thousand_keeps_its_better_half():
  for num, kept in ((4096, 4096), (4097, 2048)):
    pool = Pool(1.0, 100)
    pool.insert(Candidate(node, float(i + 1)) for i, node in enumerate(different(num)))
    assert len(pool) == kept


def test_errors_of_single_precision_and_of_double():
  pool = Pool(2.0, 100)
  pool.insert([candidate("1.5*x*z", 2e-23), candidate("1.5*x", 1.9e-11), candidate("1.5*sin(x)", 2.1e-11)])
  assert [programs.size(c.node) for c in pool.shortlist()] == [3, 5, 4]  # of the first two the simpler comes first
  assert pool.exact() is not None and Pool(2.0, 100).exact() is None
  for mse, is_exact, is_near in ((1.9e-22, True, False), (2.1e-22, False, True), (1.9e-9, False, True),
                                 (2.1e-9, False, False)):
    pool = Pool(2.0, 100)
    pool.insert([candidate("1.5*x", mse)])
    assert (pool.exact() is not None, bool(pool.nearly_exact())) == (is_exact, is_near)
  many = Pool(2.0, 100)
  many.insert(Candidate(node, 1e-10) for node in different(20))
  assert len(many.nearly_exact()) == 8
  for num_points, is_exact in ((4, True), (3, False)):
    pool = Pool(1.0, num_points)
    pool.insert([candidate("1.5*x", 0.0)])
    assert (pool.exact() is not None) is is_exact


def test_a_search_has_stalled_where_a_turn_gains_less_than_a_nat(monkeypatch):
  rows = np.linspace(1, 3, 2000)
  task = make_task((rows, rows**2), ("x",), OPTIONS)
  watch = noise.NoiseWatch(task)
  assert len(watch._rows) == 1024 and len(task.fit_rows) == 256
  for lengths, stalled in (((10.0, 9.1), True), ((10.0, 8.9), False)):
    watch, found = noise.NoiseWatch(task), iter(lengths)
    monkeypatch.setattr(noise.NoiseWatch, "_length", lambda self, candidate, found=found: next(found))
    pool = Pool(1.0, 100)
    pool.insert([candidate("1.5*x", 1.0)])
    assert not watch.has_stalled(pool) and watch.has_stalled(pool) is stalled


def test_a_node_costs_four_nats_where_the_noise_is_watched():
  x = np.linspace(1, 3, 50)
  watch = noise.NoiseWatch(make_task((x, x**2), ("x",), OPTIONS))
  short, long = (watch._length(candidate(text, 0.5)) for text in ("sin(x)", "sin(sin(x))"))
  assert long - short == pytest.approx(4)


def test_noise_looks_like_more_in_one_case_of_fifty(monkeypatch):
  limit = statistics.NormalDist().inv_cdf(1 - 0.02)
  for found, expected in ((limit - 1e-6, True), (limit + 1e-6, False)):
    monkeypatch.setattr(noise, "smoothness", lambda *rest, found=found, **named: [found])
    assert noise.looks_like_noise(np.ones(4), np.ones((4, 1)), [0]) is expected


def test_turns_that_are_taken_before_noise_ends_a_search():
  config, first = DEFAULT.noise, {"closed_forms": 1, "guesses": 1, "rationals": 1}
  task = task_of(1)

  class Watch:
    best = None

    def leaves_noise(self):
      return True

  for num_nodes, turns in ((15, {"library": 1}), (16, {"library": 3}), (20, {"library": 3}),
                           (21, {"library": 3, "ridges": 2})):
    watch = Watch()
    watch.best = Candidate(nested(num_nodes), 1.0)
    every = {**first, **turns}
    for missing in (None, *every):
      search = SimpleNamespace(_options=OPTIONS, sources=[SimpleNamespace(name=name) for name in every], progress=[
        SimpleNamespace(source=name) for name, num in every.items() for _ in range(num - (name == missing))])
      assert loop.Search._is_at_noise(search, watch) is (missing is None)
  assert config.efforts == ("quick", "normal") and task.num_rows == 128


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
def test_equations_of_these_degrees_are_tried_from_two_rows_for_each_column(degrees, monkeypatch):
  num_columns = sum(degree + 1 for degree in degrees)
  asked, bases, all_up_to = [degree for degree in degrees if degree >= 0], [], rational_bases.all_up_to
  monkeypatch.setattr(quadratics, "all_up_to", lambda num, degree: bases.append(degree) or all_up_to(num, degree))
  tried = []
  monkeypatch.setattr(quadratics, "_null_vector", lambda columns, config: tried.append(
    (columns.shape[1], bases[-len(asked):])))
  for num_rows, is_tried in ((2 * num_columns, True), (2 * num_columns - 1, False)):
    tried.clear()
    list(quadratics._exact_equations(*root_of(degrees, num_rows, seed=0), DEFAULT.quadratics))
    assert ((num_columns, asked) in tried) is is_tried


@pytest.mark.parametrize(("degree", "is_tried"), [(125, True), (126, False)])
def test_equations_have_128_columns_at_most(degree, is_tried, monkeypatch):
  seen = []
  monkeypatch.setattr(quadratics, "_null_vector", lambda columns, config: seen.append(columns.shape[1]))
  config = dataclasses.replace(DEFAULT.quadratics, degrees=((0, 0, degree),))
  x, y = root_of((0, 1, 2), 900, seed=0)
  list(quadratics._exact_equations(x, y, config))
  assert seen == ([128] if is_tried else [])


def test_what_an_equation_may_leave():
  config = DEFAULT.quadratics
  assert [config.leap(left) for left in (0.9e-11, 1.1e-11)] == [1e-5, 1e-2]
  rng = np.random.default_rng(0)
  basis = np.linalg.qr(rng.normal(size=(60, 4)))[0]
  for left, is_found in ((0.5e-4, True), (4e-4, False)):
    columns = np.column_stack([basis[:, 0], basis[:, 1], basis[:, 2], basis[:, 0] + basis[:, 1] + basis[:, 2]
                               + left * 2 * basis[:, 3]])
    assert (quadratics._null_vector(columns, dataclasses.replace(config, leaps=(0, 0))) is None) or not is_found
    assert (quadratics._null_vector(columns, config) is not None) is is_found


def test_fractions_of_these_degrees():
  config = DEFAULT.rationals
  tops = []
  for num_variables in range(1, 6):
    basis = rational_bases.bases(num_variables, config)[0]
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


@np.errstate(all="ignore")
def test_exponents_of_products_are_the_finest_of_which_there_are_not_too_many():
  config = DEFAULT.power_products
  rng = np.random.default_rng(0)

  def exponents(num, num_negative, most):
    x = rng.uniform(1, 3, (20, num)) * np.where(np.arange(num) < num_negative, -1, 1)
    grid = power_products.Grid(Rows(x, x[:, 0], np.ones(20)), range(num), config, most)
    return [sorted(each) for each in grid.exponents]

  whole = [-4, -3, -2, -1, 0, 1, 2, 3, 4]
  finest = [-4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4]
  assert exponents(5, 0, config.max_products) == [finest] * 5
  assert exponents(5, 1, config.max_products) == [whole, *[finest] * 4]
  assert exponents(6, 5, config.max_products) == [*[[-3, -2, -1, 0, 1, 2, 3, 4]] * 5,
                                                  [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4]]
  for num, expected in ((6, [-2, -1, -0.5, 0, 0.5, 1, 2, 3]), (7, [-2, -1, 0, 1, 2]), (8, [-2, -1, 0, 1, 2]),
                        (9, [-1, 0, 1, 2]), (10, [-1, 0, 1]), (11, [-1, 0, 1])):
    assert exponents(num, 0, config.max_products) == [expected] * num
  for most in (config.max_paired_products, DEFAULT.single_index.max_products):
    assert exponents(4, 0, most) == [finest] * 4
    assert exponents(5, 0, most) == [[-2, -1, -0.5, 0, 0.5, 1, 2, 3]] * 5


def test_how_many_products_are_looked_at(monkeypatch):
  task = task_of(2, num_rows=100)
  grid = power_products.Grid(task.fit_rows, (0, 1), DEFAULT.power_products, 400_000)
  assert len(grid._some) == 64
  assert len(grid._largest(np.arange(100.0))) == 48
  asked = []

  class Stub:
    def __init__(self, rows, columns, config, most):
      asked.append(most)

    def sums(self, links, besides):
      asked.append((len(links), besides))
      return [[power_products.Sum(left, parse("x")) for left in lefts]]

    def pairs(self, links):
      asked.append(len(links))
      return []

  monkeypatch.setattr(power_products, "Grid", Stub)
  for least, is_paired in ((0.9e-13, False), (1.1e-13, True)):
    asked.clear()
    lefts = [least]
    power_products.PowerProducts()._nodes(task, 99)
    assert asked[0] == 400_000 and asked[1][0] == 7 and (len(asked) > 2) is is_paired
    assert not is_paired or asked[2:] == [40_000, 4]
  lefts = [0.5] * 20
  monkeypatch.setattr(pair_sums, "allowed", lambda nodes, *rest: tuple(nodes))
  assert len(power_products.PowerProducts()._nodes(task, 99)) == 8
  for num, is_asked in ((1, False), (2, True), (11, True)):
    assert power_products.PowerProducts().supports(task_of(num)) is is_asked


def test_pairs_of_products_are_of_thirty_two_best_or_128_plainest_and_two_others(monkeypatch):
  task = task_of(3, num_rows=70)
  grid = power_products.Grid(task.fit_rows, (0, 1, 2), DEFAULT.power_products, 40_000)
  asked = []
  monkeypatch.setattr(grid, "_best", lambda some: asked.append(len(some)) or [np.arange(2000, 2048)] * len(some))
  monkeypatch.setattr(grid, "_plainest", lambda most: list(range(most)))
  sets = []
  monkeypatch.setattr(grid, "_fitted", lambda target, some: sets.append(some))
  grid.pairs([power_products.LINKS["y"]])
  assert asked == [1, 32 + 128] and len(sets[0]) == 2 * (32 + 128)


def test_a_climb_begins_at_twelve_and_takes_sixteen_steps(monkeypatch):
  x = np.random.default_rng(0).uniform(1, 3, (30, 6))
  grid = power_products.Grid(Rows(x, x[:, 0], np.ones(30)), range(6), DEFAULT.power_products, 400_000)
  [target] = grid._targets([power_products.LINKS["y"]])
  looks = itertools.count(1)
  sizes = []

  def gains(wholes, along):
    sizes.append(len(wholes))
    return np.full(len(wholes), float(next(looks)))

  monkeypatch.setattr(power_products, "_gains", gains)
  found = grid._climbed(target, [], np.arange(100, 148))
  assert len(sizes) == 16 and sizes[0] <= 13 + 13 * 6 * 13 + 1 and len(found) == 12 + 48


def test_sums_of_the_library_are_searched_for_in_three_ways(monkeypatch):
  asked = []
  monkeypatch.setattr(pursuit, "select_columns", lambda columns, *given, config, **rest: asked.append(config) or [])
  task = task_of(1, num_rows=200)
  columns = SimpleNamespace(columns=np.ones((128, 1)), groups=np.zeros(1, int), tiers=np.zeros(1, int))
  monkeypatch.setattr(terms, "Subset", lambda columns, index: columns)
  terms.sums_of(columns, task.fit_rows, links=("y",), searches=DEFAULT.terms.searches, rule=task.rule)
  assert [(c.max_columns, c.num_first, c.num_pairs) for c in asked] == [(2, 64, 16), (3, 128, 64), (6, 4096, 256)]
  assert len(terms.some_of(task.fit_rows, DEFAULT.terms)) == 128
  asked.clear()
  terms.sums_of(columns, task.fit_rows, links=("y",), searches=DEFAULT.varying.forms.searches, rule=task.rule)
  assert [(c.max_columns, c.num_first, c.num_pairs) for c in asked] == [(2, 32, 16), (2, 64, 32), (3, 64, 64)]


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
  from symformer_jax.sources import plain_sums

  monkeypatch.setattr(plain_sums, "Subset", lambda columns, index: SimpleNamespace(
    columns=columns.columns[:, index], groups=columns.groups[index]))
  plain_sums.PairSumsInside()._nodes(task, 0, 9)
  # Of y between 1 and 3 the logit and the inverse of the tangent's are undefined.
  assert asked == [(4096, 2048)] * 6 and alike == [2] * 6
  asked.clear()
  for turn in range(4):
    plain_sums.TripleSums()._nodes(task, turn, 9)
  assert asked == [(400, 400)] * 4
  library.complexities = np.where(np.arange(num) < 300, 5, 6)
  asked.clear()
  plain_sums.TripleSums()._nodes(task, 0, 9)
  plain_sums.PairSumsInside()._nodes(task, 0, 9)
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
  subset_sums.SubsetSums()._nodes(task, 0, 9)
  assert asked == [(2, 5), (4, 5), (6, 5)]  # of three nodes, of five, all; five terms
  asked.clear()
  inside = subset_sums.SubsetSumsInside()
  for turn in range(6):
    inside._nodes(task, turn, 9)
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
    assert len(growth._seeds([Candidate(nested(num), 1.0)], frozenset(), config)) == count
  fronts = [Candidate(nested(2 + i, i), 1.0 + i) for i in range(12)]  # each worse and longer: a front of its own
  assert list(growth._seeds(fronts, frozenset(), config).values()) == [1, 2, 3, 4, 5, 6, 7, 8]
  wide = [Candidate(nested(2 + i % 20, i), 1e3 - 40 * (i % 20) + i / 100) for i in range(160)]
  assert len(growth._seeds(wide, frozenset(), config)) == 64
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


# --- functions -------------------------------------------------------------------------------------------------------


def affine(name):
  return [tuple(each) for each in ridge_functions.OUTER[name].affine(DEFAULT.ridges.grids)]


def test_inner_constants_of_ridges():
  """A sum runs from 0 to 1: where the zeros, centres and ends of p*sum + q lie."""
  assert [q / p for p, q in affine("ln")] == [0.01, 0.07, 0.3, 1.5]
  assert [p for p, _ in affine("exp")] == [0.7, 2, 5, 12]
  located = affine("gauss")
  assert sorted({round(1 / p, 9) for p, _ in located}) == [0.07, 0.2, 0.6]
  assert sorted({round(-q / p, 9) + 0.0 for p, q in located}) == [0, 0.33, 0.67, 1] and len(located) == 12
  assert affine("inv_ln") == list(itertools.product((0.5, 2, 8), (1.1, 2)))
  assert affine("occupancy") == list(itertools.product((1, 3, 8), (0.05, 0.5)))
  for name, ends in (("asin", [0.5, 0.9, 0.999]), ("tan", [0.6, 1, 1.4])):
    assert [(q, p + q) for p, q in affine(name)] == [(-end, end) for end in ends]


def test_what_ridges_are_made_of():
  x = np.random.default_rng(0).uniform(1, 3, (200, 2))
  space = ridges._Space(Rows(x, x[:, 0], np.ones(200)).sample(128, seed=0), (0, 1), [], DEFAULT.ridges)
  as_text = [[sort_operands(tidy(ridges.to_node(m))) for m in some] for some in (space.arguments, space._amplitudes)]
  assert as_text[0] == [parse(text) for text in (
    "x", "z", "x*z", "x**2", "z**2", "x/z", "z/x", "1/x", "1/z", "x**3", "z**3", "sqrt(x)", "sqrt(z)")]
  assert as_text[1] == [parse(text) for text in ("1", "x", "z", "1/x", "1/z", "x*z", "x**2", "z**2", "x/z", "z/x")]
  wide = ridges._Space(Rows(np.tile(x, 2) + np.arange(4), x[:, 0], np.ones(200)).sample(128, seed=0), range(4), [],
                       DEFAULT.ridges)
  assert len(wide._amplitudes) == 16 and wide._units.shape[1] == 128
  for ratio, has_pole in ((0.9e4, False), (1.1e4, True)):
    column = np.linspace(1, ratio, 50)[:, None]
    found = ridges._Space(Rows(column, column[:, 0], np.ones(50)), (0,), [], DEFAULT.ridges).arguments
    assert (((0, -1),) not in found) is has_pole
  for num, stand in ((5, 5), (6, 0)):
    x = np.random.default_rng(0).uniform(1, 3, (60, num))
    space = ridges._Space(Rows(x, x[:, 0], np.ones(60)), range(num), [], DEFAULT.ridges)
    assert len(space._beside[0]) == stand


def test_sums_in_ridges(monkeypatch):
  x, asked = np.random.default_rng(0).uniform(1, 3, (128, 3)), []

  def best(units, settings, *, num_phases, num_directions, grids, num_starts):
    asked.append((len(units), num_phases, num_directions, num_starts))
    shape = (len(units), len(settings), settings[0].amplitudes.shape[0], num_starts)
    return {name: np.zeros(shape) for name in ridge_functions.OUTER}, {
      name: np.zeros(shape, int) for name in ridge_functions.OUTER}

  monkeypatch.setattr(ridges.ridge_gains, "best_of_all", best)
  space = ridges._Space(Rows(x, x[:, 0], np.ones(128)), range(3), [], DEFAULT.ridges)
  space.found()
  assert asked == [(24, 32, 2, 2), (128, 20, 16, 2), (1, 7, 64, 2)] and len(space.arguments) == 24
  wide = np.random.default_rng(0).uniform(1, 3, (128, 6))
  asked.clear()
  ridges._Space(Rows(wide, wide[:, 0], np.ones(128)), range(6), [], DEFAULT.ridges).found()
  assert [num for num, *_ in asked] == [32, 128, 16]


def test_seeds_and_variants_of_ridges():
  task, pool = task_of(3), Pool(1.0, 100)
  texts = ("x + z", "x*z", " + ".join(f"sin({k}.5*x)" for k in range(6)))
  pool.insert(candidate(text, 1.0) for text in texts)
  question = SimpleNamespace(task=task, pool=pool)
  assert [len(some) for some in ridges._seeds(question, DEFAULT.ridges)] == [2]  # one seed
  for num, is_seed in ((24, True), (25, False)):
    pool = Pool(1.0, 100)
    pool.insert([Candidate(nested(num), 1.0)])
    assert bool(ridges._seeds(SimpleNamespace(task=task, pool=pool), DEFAULT.ridges)) is is_seed
  found = [ridges.Ridge(0.1 * i, "exp", (0,), np.ones(1), 0.0, 0, 0) for i in range(5)]
  assert len(list(ridges._varied(found, DEFAULT.ridges))) == 2


def test_rows_for_ridges():
  for num_rows, is_asked in ((10, True), (9, False)):  # two constants, of five rows each
    assert ridges.Ridges().supports(task_of(1, num_rows=num_rows)) is is_asked


def test_tables_of_unknown_functions(monkeypatch):
  forms, task = DEFAULT.varying.forms, task_of(1)
  table = unknown_functions.Table(task, 0, DEFAULT, forms)
  assert len(table.places) == 64
  function = unknown_functions.Tabulated(np.sin(table.places), 0.0)
  assert table.task(function).num_rows == 64
  asked = []
  monkeypatch.setattr(terms, "sums_of", lambda atoms, rows, *, links, searches, rule, config: asked.append(
    (links, len(searches), config.terms.num_fitted)) or [])
  monkeypatch.setattr(rationals, "rationals_of", lambda rows, columns, *, rule, config: asked.append(config) or [])
  assert len(table.forms(function)) == 1 + 4  # a constant and four waves
  (links, num_searches, num_sums), fractions = asked
  assert (links, num_searches, num_sums) == (("y",), 3, 48)
  [basis, *others] = rational_bases.bases(1, fractions)
  assert not others and fractions.num_fitted == 12 and not fractions.num_taken_apart
  assert len(basis.numerator) == len(basis.denominator) == 4
  assert all(len(rational_bases.bases(num, fractions)[0].numerator) == math.comb(num + 3, 3) for num in (2, 3))
  asked.clear()
  rows = Rows(table.places[:, None], np.sin(table.places), np.ones(64))
  next(unknown_functions.forms_of(rows, task.rule, DEFAULT, DEFAULT.single_index.forms))
  assert asked[0][1:] == (2, 64)
  nodes = {sort_operands(argument.node) for argument in unknown_functions.library.families._each_argument(
    unknown_functions.library.families.Space(table.places[:, None], (0,), forms.library))}
  assert {parse(f"x**({p})") for p in (1, 2, -1, 0.5, 3, -2, 4)} <= {sort_operands(tidy(node)) for node in nodes}


def test_waves_that_a_function_may_be():
  x = np.linspace(0, 1, 200)
  for eighths, is_found in ((24, True), (25, False)):
    rows = Rows(x[:, None], np.sin(eighths * np.pi / 4 * x), np.ones(200))
    wave = unknown_functions._waves(rows, DEFAULT.varying.forms)[0]
    assert np.allclose(expression.evaluate(wave, rows.x), rows.y, atol=1e-9) is is_found


def test_forms_get_sixteen_steps_then_forty_eight(monkeypatch):
  asked = []

  def fit_constants(some, *, method, max_steps, max_constants):
    asked.append((max_steps, [len(nodes) for _, nodes in some]))
    return [[(node, 1.0) for node in nodes] for _, nodes in some]

  monkeypatch.setattr(refine, "fit_constants", fit_constants)
  deep = [nested(num) for num in range(1, 31)]
  table = SimpleNamespace(column=0, task=lambda function: None, forms=lambda function: [
    *deep, *(parse(f"{k}.5*x") for k in range(1, 6))])
  function = unknown_functions.Tabulated(np.arange(9.0), 2.0)
  forms = dataclasses.replace(DEFAULT.varying.forms)
  [found] = unknown_functions.find_forms([(table, function)], OPTIONS, forms)
  assert asked == [(16, [35]), (48, [16])] and len(found) == 6
  alike = [(parse(f"{k}.5*x"), 1.0) for k in range(1, 6)]
  table.forms = lambda function: [node for node, _ in alike]
  asked.clear()
  [found] = unknown_functions.find_forms([(table, function)], OPTIONS, forms)
  assert asked == [(16, [5]), (48, [2])] and len(found) == 1
  # Two nats for a node; ten times the mean square error of the polynomials beside that of the form.
  assert found[0][0] == pytest.approx(4.5 * math.log(1 + 10 * 2) + 2 * 3)


def test_sums_with_unknown_factors(monkeypatch):
  own = DEFAULT.varying
  for num_columns, num_rows, is_asked in ((2, 64, True), (2, 63, False), (6, 64, True), (7, 64, False)):
    assert varying.VaryingCoefficients(OPTIONS).supports(task_of(num_columns, num_rows=num_rows)) is is_asked
  for num, views in ((16, True), (15, False)):
    assert bool(varying._views(np.arange(num) + 20.0, own)) is views
  assert varying._views(np.linspace(1, 2.9, 20), own) == ("plain",)
  assert varying._views(np.linspace(1, 3.1, 20), own) == ("plain", "log")
  asked = []
  monkeypatch.setattr(varying.block_exchange, "best_sets", lambda products, *, max_size, config: asked.append(
    max_size) or [])
  for num_rows, size in ((160, 5), (64, 2), (159, 4)):
    rows = task_of(2, num_rows=num_rows).fit_rows
    varying.find_models(rows, (0, 1), ("y",), more={}, allows=None, config=own)
    assert set(asked) == {size}
    asked.clear()


def test_terms_beside_unknown_factors():
  own = DEFAULT.varying
  rows = task_of(3).fit_rows
  many = [parse(f"sin({k}.5*x)") for k in range(80)]
  known = varying._known_terms(rows, (0, 1, 2), many, None, own)
  assert len(known.nodes) == 64
  plain = varying._known_terms(rows, (0, 1), (), None, own)
  assert max(map(expression.complexity, plain.nodes)) == 5
  pool = Pool(1.0, 100)
  pool.insert([candidate(f"{k}.5*x + sin({k}.5*z) + {k}.5", 1.0 + k) for k in range(1, 4)])
  found = varying.seen_terms(pool, (0, 1), own)
  assert sum(node.token == "sin" for node in found[0]) == 2  # of each form two


def test_which_models_are_looked_at():
  own = DEFAULT.varying

  def model(left, nats=-1.0, text="x"):
    return varying.Model(nats, "y", 0, "plain", (parse(text),), left)

  kept = varying.best_models([model(1e-8), model(0.9e-5, text="z"), model(1.1e-5, text="w")], own)
  assert len(kept) == 2  # a thousand times the least
  assert len(varying.best_models([model(0.9e-3), model(1.1e-3, text="z")], own)) == 1  # a thousandth of the variance
  assert len(varying.best_models([model(1e-8, text=f"sin({k}.5*x)") for k in range(9)], own)) == 4
  assert len(varying.best_models([model(0.0), model(0.9e-8, text="z"), model(1.1e-8, text="w")], own)) == 2  # 1e-11


def test_products_of_sums_of_functions():
  own = DEFAULT.separable
  for num_columns, num_rows, is_asked in ((1, 99, False), (2, 99, True), (9, 256, True), (10, 256, False),
                                          (2, 42, True), (2, 41, False)):  # three rows for each of 7 polynomials
    assert separable.Separable(OPTIONS).supports(task_of(num_columns, num_rows=num_rows)) is is_asked
  assert separable._degrees(1000, 2, own) == (7, 14, 23)
  for num, count in ((6, True), (7, False)):
    assert bool(list(separable._products(list(range(num)), "y", own))) is count
  four, five = (len(alternating.partitions(range(num), config=own)) for num in (4, 5))
  assert four > five == 5 + 10 + 1 + 10  # of five columns not all partitions
  x = np.linspace(1, 3.1, 50)[:, None]
  assert len(separable._all_bases(x, [0], own)) == 2 * len(separable._degrees(50, 1, own))
  assert len(separable._all_bases(np.minimum(x, 2.9), [0], own)) == len(separable._degrees(50, 1, own))
  rows = task_of(2).fit_rows
  divisors = [divisor for divisor, name, _ in separable._targets(rows, (0, 1), ("y",), own)]
  assert divisors == [(), ((0, 1.0),), ((0, -1.0),), ((1, 1.0),), ((1, -1.0),)]


def test_models_of_products_of_sums():
  own = DEFAULT.separable

  def model(left, sums=((0,), (1,)), nats=-1.0):
    return separable.Model(nats, separable.Structure("y", (), sums), {}, (), left)

  different_ones = [((i,), (i + 1,)) for i in range(9)]
  assert len(separable.best_models([model(1e-8, each) for each in different_ones], own)) == 3
  assert len(separable.best_models([model(1e-6), model(0.9e-3, ((2,), (3,))), model(1.1e-3, ((4,), (5,)))], own)) == 2
  assert len(separable.best_models([model(1e-8), model(0.9e-5, ((2,), (3,))), model(1.1e-5, ((4,), (5,)))], own)) == 2
  for num, count in ((4, 1), (5, 0)):
    assert len(separable.best_models([model(1e-8, (tuple(range(4)), tuple(range(num))))], own)) == count


def test_sweeps_of_alternating_least_squares(monkeypatch):
  own = DEFAULT.separable
  rng = np.random.default_rng(0)
  designs = [np.column_stack([np.ones(40), rng.normal(size=40)]) for _ in range(2)]
  counts = []

  def swept(designs, rest, root, goal, coefficients, config):
    counts.append([each.copy() for each in coefficients])
    return 1.0, [*coefficients, np.zeros(0)]

  monkeypatch.setattr(alternating, "_swept", swept)
  alternating.fit_product(designs, rng.normal(size=40), np.ones(40), config=own)
  assert len(counts) == 2
  assert any(np.any(a != b) for a, b in zip(counts[0], counts[1], strict=True))
  monkeypatch.undo()
  solves, least_squares = [], alternating._least_squares
  for gain, num in ((0.9e-3, 2), (1.1e-3, 30)):
    solves.clear()
    wanted = iter(np.cumprod(np.full(200, math.sqrt(1 - gain))))

    def solved(design, goal, wanted=wanted):
      solves.append(design.shape)
      return least_squares(design, goal)
    monkeypatch.setattr(alternating, "_least_squares", solved)
    errors = iter((1 - gain) ** np.arange(99.0))
    monkeypatch.setattr(alternating.np, "sum", lambda values, errors=errors: next(errors))
    alternating._swept(designs, np.zeros((40, 0)), np.ones(40), rng.normal(size=40), [np.ones(2), np.ones(2)], own)
    monkeypatch.undo()
    assert len(solves) == 2 * num


def test_functions_of_one_product():
  for num_columns, num_rows, is_asked in ((1, 40, False), (2, 40, True), (2, 39, False)):
    assert single_index.SingleIndex().supports(task_of(num_columns, num_rows=num_rows)) is is_asked


def test_indices_are_three_at_most_and_smooth(monkeypatch):
  rng = np.random.default_rng(0)
  x = rng.uniform(1, 3, (60, 2))
  rows, asked = Rows(x, np.sin(x[:, 0] * x[:, 1]), np.ones(60)), []
  roughness = single_index._roughness
  for rough, count in ((0.029, 3), (0.031, 0)):
    divisors = []
    divided = single_index._divided
    monkeypatch.setattr(single_index, "_divided", lambda rows, by, divisors=divisors, divided=divided: divisors.append(
      by) or divided(rows, by))
    monkeypatch.setattr(single_index, "_roughness", lambda target, order, rough=rough: asked.append(len(order)) or (
      np.full(len(order), rough)))
    assert len(single_index.find_indices(rows, (0, 1), DEFAULT)) == count
    assert set(divisors) == {(), ((0, 1.0),), ((0, -1.0),), ((1, 1.0),), ((1, -1.0),)}
    assert asked.count(1) == 64
    asked.clear()
    monkeypatch.undo()
  assert roughness(np.array([1.0, 2, 4]), np.array([[0, 1, 2]])).tolist() == [(1 + 4) / 4]


# --- the selection ---------------------------------------------------------------------------------------------------


def judge_of(config, num=60):
  x = np.linspace(1, 9, num)
  rows = Rows(x[:, None], x**2 + 0.3 * np.sin(9 * x), np.ones(num))
  return select._Judge(rows, num, config, DEFAULT.choice)


def test_how_many_formulas_are_chosen_and_rewritten_and_how_many_in_a_hurry():
  nodes = [parse(f"x**2 + {k}*x") for k in range(2, 60)]
  for config, num_chosen, num_written in ((DEFAULT.selection, 24, 6), (DEFAULT.selection.hurried(), 8, 1)):
    judge = judge_of(config)
    judge._listable = lambda finalists, costs: (list(finalists), list(costs))
    assert len(judge.chosen(nodes, is_rounded=False)) == num_chosen
    assert len(judge.promising(nodes)) == num_written
  assert [config.max_rewritten for config in (DEFAULT.selection, DEFAULT.selection.hurried())] == [3, 1]
  assert DEFAULT.selection.rewrites_front and not DEFAULT.selection.hurried().rewrites_front
  assert set(REWRITINGS) - set(DEFAULT.selection.without_absolutes().rewritings) == {"absolutes"}
  assert set(REWRITINGS) == set(DEFAULT.selection.rewritings)


def test_large_tables_are_compared_on_some_rows_and_listed_by_more(monkeypatch):
  asked = []

  class Enough(Exception):
    pass

  class Many(Rows):
    def sample(self, num_rows, *, seed):
      asked.append(num_rows)
      if len(asked) == 2:
        raise Enough
      return self

  with pytest.raises(Enough):
    select.select([parse("x")], Many(np.ones((9, 1)), np.arange(9.0), np.ones(9)), ("x",), seed=0)
  assert asked == [4096, 1_000_000]


def test_points_are_worth_less_where_errors_have_a_kurtosis_above_five():
  for share, is_less in ((0.21, False), (0.19, True)):  # of so many errors of one size the kurtosis is the inverse
    num = 1000
    x = np.ones(num)
    errors = np.where(np.arange(num) < share * num, 1.0, 0.0) * np.where(np.arange(num) % 2, 1, -1)
    judge = select._Judge(Rows(x[:, None], errors, x), num, DEFAULT.selection, DEFAULT.choice)
    assert (judge.count_effective([expression.number(0.0)]) < num) is is_less


@pytest.mark.parametrize(("factor", "is_simplest"), [(1.49, True), (1.51, False)])
def test_a_formula_that_leaves_half_as_much_again_is_nearly_as_accurate(factor, is_simplest, monkeypatch):
  judge, simple, long = judge_of(DEFAULT.selection), parse("x"), parse("sin(x)*x + x")
  judge.finalists = lambda nodes: [
    select._Finalist(node, SimpleNamespace(mse=factor if node == simple else 1.0)) for node in nodes]
  seen = []
  monkeypatch.setattr(select.scoring, "evaluate", lambda node, x: seen.append(node) or x[:, 0])
  judge.count_effective([long, simple])
  assert (seen == [simple]) is is_simplest


def test_each_line_of_a_front_is_better_by_a_hundredth():
  judge = judge_of(DEFAULT.selection)
  simple, long = parse("x"), parse("sin(x)*x + x")
  for share, lines in ((0.992, [0]), (0.988, [0, 1])):
    finalists = [select._Finalist(node, SimpleNamespace(mse=mse)) for node, mse in ((simple, 1.0), (long, share))]
    assert judge.front(finalists, [1.0, 0.5]) == lines


def test_what_describes_the_data_worse_by_fifteen_nats_is_not_listed():
  judge = judge_of(DEFAULT.selection)
  finalists = [select._Finalist(node, None) for node in (parse("x"), parse("sin(x) + x"))]
  for more, count in ((14.9, 2), (15.1, 1)):
    assert len(judge._listable(finalists, [0.0, more])[0]) == count


# --- templates and evolution -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "num_columns", "count"), [
  (300, 1, 15), (40, 1, 10), (39, 1, 9), (300, 2, 28), (120, 2, 28), (111, 2, 21), (300, 3, 20)])
def test_polynomials_of_a_template(num_rows, num_columns, count):
  """One for every four rows, thirty at most, of the fourteenth degree at most."""
  x = np.random.default_rng(0).uniform(1, 3, (num_rows, num_columns))
  assert profile.polynomials(x).shape == (num_rows, count)


def test_polynomials_are_of_the_logarithm_of_what_spans_a_decade():
  for ratio, is_log in ((9.9, False), (10.1, True)):
    x = np.linspace(1, ratio, 60)
    middle = profile.polynomials(x[:, None])[:, 1]
    assert np.allclose(np.diff(middle), np.diff(middle)[0]) is not is_log


