"""Parts of products, of varying coefficients and of unknown functions: what is asked for, with how much of what."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions, Rule
from symformer_jax.sources.fractions import quadratics, rationals
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.monomials import Values
from symformer_jax.sources.ridges import ridges
from symformer_jax.sources.sums import library, products, terms
from symformer_jax.sources.unknowns import block_exchange, separable, single_index, unknown_functions, varying

NAMES = ("x", "z", "w")
CONFIG = DEFAULT.products


def parse(text):
  return parser.parse(text, NAMES)


def space_of(x, **changes):
  return products._Space(Values(x), range(x.shape[1]), None, dataclasses.replace(CONFIG, **changes))


def target_of(x, y, weights=None, **changes):
  rows = Rows(x, y, np.ones(len(y)) if weights is None else weights)
  return products._Target(rows, range(x.shape[1]), None, dataclasses.replace(CONFIG, **changes))


def factors_of(logs, groups=None):
  return SimpleNamespace(
    columns=logs.astype(np.float32), groups=np.arange(logs.shape[1]) if groups is None else np.array(groups),
    is_exponential=np.zeros(logs.shape[1], bool))


# --- products --------------------------------------------------------------------------------------------------------


class Target:
  """In a target's place: says what it was asked for."""

  made: list["Target"]

  def __init__(self, rows, columns, allows, config):
    self.rows, self.selected, self.wrote = rows, [], []
    self.made.append(self)

  def select(self, factors, some, config, *, beside):
    self.selected.append((some.tolist(), config, beside.tolist()))
    return [np.array([*beside, some[0]])]

  def exponents(self, factors, each):
    return [np.ones(2), np.full(2, 2.0)] if len(each) != 1 or each[0] else []

  def least_cost(self, factors, each):
    return 10.0 - sum(each)

  def cost(self, factors, each, exponents, nats_per_exponent):
    assert nats_per_exponent == CONFIG.nats_per_exponent
    return 10.0 - len(self.wrote) - sum(each)

  def written(self, factors, some, rows, seen):
    self.wrote.append([(cost, each.tolist(), exponents[0]) for cost, each, exponents in some])
    assert rows is self.rows
    return [len(some)]


@pytest.fixture
def doubles(monkeypatch):
  """Doubles of the factors, which can be said to be none of exponentials, and of the target."""
  factors = SimpleNamespace(groups=np.arange(5), is_plain=np.array([0, 1, 1, 1, 0], bool), is_linear=np.array(
    [0, 0, 1, 1, 0], bool))
  Target.made = []
  monkeypatch.setattr(products, "_Target", Target)
  monkeypatch.setattr(products, "Factors", lambda x, columns, allows, *, config: factors)
  return factors


@pytest.mark.parametrize("has_linear", [True, False])
def test_factors_are_selected_among_all_among_plain_ones_and_beside_exponentials(has_linear, doubles):
  doubles.is_linear &= has_linear
  config = dataclasses.replace(CONFIG, num_written=2)
  pursuit_config = dataclasses.replace(DEFAULT.pursuit, num_beams=77)
  rows = Rows(np.ones((20, 2)), np.arange(20.0), np.ones(20))
  found = products.find_products(rows, (0, 1), config=config, pursuit_config=pursuit_config)
  [target] = Target.made
  assert [(some, beside) for some, _, beside in target.selected] == [
    ([0, 1, 2, 3, 4], []), ([1, 2, 3], []), *([([1], [2, 3])] if has_linear else [])]
  assert [(each.max_columns, each.num_first, each.num_pairs, each.num_kept_short, each.num_beams) for _, each, _ in (
    target.selected)] == [(CONFIG.max_factors, CONFIG.num_first, CONFIG.num_pairs, CONFIG.num_pairs, 77)] + [
      (2, CONFIG.num_paired, CONFIG.num_pairs, CONFIG.num_pairs, 77)] * (2 if has_linear else 1)
  # Of each number of factors and way to round so many, the cheapest first.
  assert target.wrote == [[(10.0, [], 1.0)], [(10.0, [], 2.0)], [(9.0, [1], 1.0)], [(9.0, [1], 2.0)], *(
    [[(cost, some, each)] for cost, some in ((5.0, [2, 3]), (4.0, [2, 3, 1])) for each in (1.0, 2.0)]
    if has_linear else [])]
  assert found == [[1]] * len(target.wrote)
  assert len(target.rows) == 19  # where y is 0 nothing is known


@pytest.mark.parametrize(("num_rows", "is_asked"), [(7, True), (6, False)])
def test_products_need_rows_for_their_exponents(num_rows, is_asked, doubles):
  for unit in (1.0, -1.0, 1e-170, 1e170):
    rows = Rows(np.ones((num_rows, 2)), unit * np.arange(1.0, num_rows + 1), np.ones(num_rows))
    assert bool(products.find_products(rows, (0, 1))) == is_asked and CONFIG.max_factors == 3


def test_the_cheapest_of_each_number_of_factors_are_written(doubles, monkeypatch):
  monkeypatch.setattr(Target, "select", lambda self, factors, some, config, beside: [np.array([i]) for i in (1, 3, 2)])
  rows = Rows(np.ones((20, 2)), np.arange(1.0, 21), np.ones(20))
  products.find_products(rows, (0, 1), config=dataclasses.replace(CONFIG, num_written=2))
  assert [each for _, each, _ in Target.made[0].wrote[2]] == [[3], [3]]  # of both searches


def test_the_exponents_of_a_few_that_may_be_had_are_found_the_nearest_first(doubles, monkeypatch):
  asked = []
  monkeypatch.setattr(Target, "select", lambda self, factors, some, config, beside: [np.array([i]) for i in range(9)])

  def exponents(self, factors, each):
    asked.append(int(each[0]) if len(each) else None)
    return [] if len(each) and each[0] % 2 else [np.ones(2)]
  monkeypatch.setattr(Target, "exponents", exponents)
  doubles.is_linear[:] = False
  rows = Rows(np.ones((20, 2)), np.arange(1.0, 21), np.ones(20))
  products.find_products(rows, (0, 1), config=dataclasses.replace(CONFIG, num_written=1))
  assert asked == [None, 8, 8]  # of both searches
  asked.clear()
  products.find_products(rows, (0, 1), config=dataclasses.replace(CONFIG, num_written=2))
  assert asked == [None, 8, 8, 7, 7, 6, 6]


def test_the_least_cost_is_what_least_squares_leaves(rng):
  x, weights = rng.uniform(1, 3, (30, 2)), rng.uniform(0.5, 2, 30)
  rows = Rows(x, x[:, 0] ** 1.3 * np.exp(0.2 * rng.normal(size=30)), weights)
  target = products._Target(rows, (0, 1), None, CONFIG)
  factors = SimpleNamespace(columns=np.log1p(x[:, :1]))
  root = np.sqrt(weights) * rows.y
  design = root[:, None] * np.column_stack([np.log(x), np.log1p(x[:, 0]), np.ones(30)])
  left = np.linalg.lstsq(design, root * np.log(rows.y), rcond=None)[1][0]
  assert target.least_cost(factors, np.array([0])) == pytest.approx(left / np.max(root**2))


def test_a_target_has_the_variables_that_are_powers(rng):
  x = np.column_stack([np.linspace(1, 1 + 1.5e-5, 9), np.linspace(1, 1 + 0.7e-5, 9), np.linspace(0, 1, 9),
                       -np.linspace(1, 2, 9), np.linspace(-1, 1, 10)[:9], np.linspace(-1, 0, 9)])
  y, weights = np.r_[2.0, -3.0 * np.ones(8)], rng.uniform(0.5, 2, 9)
  with np.errstate(all="ignore"):
    target = target_of(x, y, weights)
  assert target._variables == [0, 3, 4] and target._negative == {3}
  assert target._sign == -1.0  # that of the largest value
  np.testing.assert_allclose(target._weights, weights * (y / 3) ** 2)
  np.testing.assert_allclose(target._z, np.log(np.abs(y)))


def test_factors_are_ranked_by_what_they_add_to_the_powers(rng):
  x = rng.uniform(0.5, 3, (40, 2))
  logs = 3 * np.log(x[:, :1]) - 2 * np.log(x[:, 1:]) + 0.3 * rng.normal(size=(40, 6))
  y = x[:, 0] ** 2 * np.exp(2 * logs[:, 2] + logs[:, 4] + 0.1 * rng.normal(size=40))
  target, factors = target_of(x, y), factors_of(logs, [0, 1, 1, 2, 3, 3])
  config = dataclasses.replace(DEFAULT.pursuit, max_columns=1, num_first=9, num_kept_short=9)

  def left(i):
    design = y[:, None] * np.column_stack([np.log(x), logs[:, i], np.ones(40)])
    return np.linalg.lstsq(design, y * np.log(y))[1][0]
  nothing = np.zeros(0, int)
  found = [each.tolist() for each in target.select(factors, np.arange(6), config, beside=nothing)]
  best = {group: min((i for i in range(6) if factors.groups[i] == group), key=left) for group in range(4)}
  assert found == [[i] for i in sorted(best.values(), key=left)]
  assert len(target.select(factors, np.arange(6), dataclasses.replace(config, num_kept_short=2), beside=nothing)) == 2


def test_factors_are_selected_for_what_powers_and_factors_beside_them_leave(rng, monkeypatch):
  x, logs, weights, asked = rng.uniform(0.5, 3, (40, 2)), rng.normal(size=(40, 4)), rng.uniform(0.5, 2, 40), []
  monkeypatch.setattr(products.pursuit, "select_columns", lambda columns, target, weights, *, groups, config: (
    asked.append((columns, target, weights, groups.tolist(), config)), [(1,), (0, 1)])[1])
  target, factors = target_of(x, np.exp(rng.normal(size=40)), weights), factors_of(logs, [5, 6, 7, 8])
  found = target.select(factors, np.array([3, 1]), "config", beside=np.array([2]))
  assert [each.tolist() for each in found] == [[2, 1], [2, 3, 1]]
  [(columns, left, own, groups, config)] = asked
  root = np.sqrt(target._weights)
  design = root[:, None] * np.column_stack([np.log(x), factors.columns[:, 2], np.ones(40)])

  def rest(values):
    return values - design @ np.linalg.lstsq(design, root * values)[0] / root
  np.testing.assert_allclose(left, rest(target._z), atol=1e-9)
  for column, index in zip(columns.T, (3, 1), strict=True):
    np.testing.assert_allclose(column, rest(factors.columns[:, index]), atol=1e-4)  # single precision
  assert groups == [8, 6] and config == "config" and own is target._weights


def test_exponents_of_variables_are_what_the_factors_leave_to_them(rng):
  x = rng.uniform(0.5, 3, (40, 2))
  logs = 0.7 * np.log(x[:, :1]) + rng.normal(size=(40, 1))
  y = x[:, 0] ** 1.3 * x[:, 1] ** -0.7 * np.exp(1.5 * logs[:, 0].astype(np.float32))
  free, few, halves = target_of(x, y).exponents(factors_of(logs), np.array([0]))
  for found in (free, few):
    np.testing.assert_allclose(found, [1.3, -0.7, 1.5], atol=1e-6)
  assert halves.tolist() == [1.5, -0.5, 1.5]


@pytest.mark.parametrize(("share", "num"), [(0.5, 0), (2.0, 1)])
def test_columns_that_powers_make_up_but_for_a_small_share_are_no_factors(share, num, rng):
  x = rng.uniform(0.5, 3, (40, 2))
  powers = np.column_stack([np.log(x), np.ones(40)])
  own = rng.normal(size=40)
  own -= powers @ np.linalg.lstsq(powers, own)[0]
  column = np.log(x[:, 0])
  column += share * CONFIG.independent * own * np.linalg.norm(column) / np.linalg.norm(own)
  target = target_of(x, np.exp(0.01 * rng.normal(size=40)))
  config = dataclasses.replace(DEFAULT.pursuit, max_columns=1)
  assert len(target.select(factors_of(column[:, None]), np.arange(1), config, beside=np.zeros(0, int))) == num


def test_products_are_written_once_and_numbers_are_none(rng, monkeypatch):
  x = rng.uniform(1, 2, (9, 2))
  rows = Rows(x, 3 * x[:, 0], np.ones(9))
  target = products._Target(rows, (0, 1), None, CONFIG)
  nodes = iter([None, expression.number(2.0), parse("x"), parse("x"), parse("z")])
  monkeypatch.setattr(target, "_product", lambda factors, chosen, exponents: next(nodes))
  seen = {parse("z")}
  [node] = target.written(None, [(0.0, None, None)] * 5, rows, seen)
  np.testing.assert_allclose(expression.evaluate(node, x), rows.y)
  assert seen == {parse("x"), parse("z")}


def test_exponents_near_a_half_number_are_one(rng):
  x = rng.uniform(0.5, 3, (40, 3))
  width = CONFIG.near_half
  y = x[:, 0] ** (1.5 + 0.9 * width) * x[:, 1] ** (1.5 - 1.1 * width) * x[:, 2] ** (-1 - 0.9 * width)
  free, few, halves = target_of(x, y).exponents(factors_of(np.zeros((40, 0))), np.zeros(0, int))
  for found in (free, few):
    np.testing.assert_allclose(found, [1.5, 1.5 - 1.1 * width, -1], atol=1e-9)
  assert halves.tolist() == [1.5, 1.5, -1]


def test_a_law_costs_its_exponents_and_rounding(rng):
  x = rng.uniform(0.5, 3, (40, 2))
  target = target_of(x, 3 * x[:, 0] ** 2)
  cost = target.cost(factors_of(np.zeros((40, 0))), np.zeros(0, int), np.array([2.0, 0.0]), 5.0)
  assert cost == pytest.approx(20 * math.log(1e-12) + 5)
  assert target.cost(factors_of(np.zeros((40, 0))), np.zeros(0, int), np.array([1.7, 0.5]), 1e9) == pytest.approx(3e9)


def test_exponents_that_are_nothing_are_not_written(rng):
  x = rng.uniform(0.5, 3, (9, 2))
  target, least = target_of(x, x[:, 0]), CONFIG.no_exponent
  factors = SimpleNamespace(forms=lambda index, exponent: [((), parse("exp(z)"))])
  for exponents, text in (((1.0, least, least), "x"), ((1.0, least, 1.0), "x*exp(z)"), ((1.0, -1.0, -least), "x/z")):
    node = target._product(factors, np.array([0]), np.array(exponents))
    assert expression.sort_operands(node) == expression.sort_operands(parse(text))
  assert expression.complexity(target._product(factors, np.array([0]), np.array([1.0, 2 * least, 0]))) > 3


def test_of_forms_of_one_length_that_of_the_sign_of_y_is_written(rng):
  x = rng.uniform(1, 2, (9, 2)) * [1, 5]
  forms = [((), parse("x - z")), ((), parse("z - x")), ((), parse("z - x + 0.5*w"))]
  factors = SimpleNamespace(forms=lambda index, exponent: forms)
  for sign, text in ((1, "z - x"), (-1, "x - z")):
    node = target_of(x, sign * (x[:, 1] - x[:, 0]))._product(factors, np.array([0]), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(expression.evaluate(node, x), expression.evaluate(parse(text), x))


def test_sums_have_plain_constants_first_and_no_inverse_alone(rng):
  x = rng.uniform(0.5, 2, (9, 2))
  made = list(products._sums(space_of(x, max_columns=1000)))
  [terms_] = {family.logs.shape[1] for family in made}
  # 1 + c*m, m of one variable or two, the first of which stands above the line: three of WIDE's six, or of PLAIN.
  exponents = next(each for each in CONFIG.term_powers if (2 * len(each)) <= CONFIG.max_terms)
  positive = sum(p > 0 for p in exponents)
  assert terms_ == 2 * positive + positive * len(exponents)
  assert len(made) == 2 * int(np.clip(1000 / 2 / terms_, 1, len(CONFIG.multiples)))
  np.testing.assert_allclose(np.exp(made[2].logs[:, 0]) - 1, 0.5 * (np.exp(made[0].logs[:, 0]) - 1))
  np.testing.assert_allclose(np.abs(2 - np.exp(made[0].logs[:, 0])), np.exp(made[1].logs[:, 0]))
  for num in (2, 3):
    assert len(list(products._sums(space_of(x, max_columns=2 * num * terms_)))) == 2 * num
  assert len(list(products._sums(space_of(x, max_columns=1)))) == 2
  assert len(list(products._sums(space_of(x, max_columns=10**9)))) == 2 * len(CONFIG.multiples)


def test_sums_with_waves_are_one_and_a_wave_times_a_monomial(rng):
  x = rng.uniform(0.5, 2, (9, 1))
  u = x[:, 0]
  made = list(products._sums_with_waves(space_of(x)))
  for family, expected in zip(made, (1 + np.sin(u), 1 - np.sin(u), 1 + np.cos(u), 1 - np.cos(u)), strict=True):
    np.testing.assert_allclose(family.logs[:, 0], np.log(expected))  # of the monomial 1
    assert not family.is_plain.any() and len(set(family.groups)) == family.logs.shape[1]
  np.testing.assert_allclose(np.exp(made[0].logs[:, 1]) - 1, np.sin(u) * u ** CONFIG.plain_powers[0][0])


@pytest.mark.parametrize(("max_columns", "num_rates"), [(10**6, 16), (1, 2), (2 * 7 * 5, 5)])
def test_functions_have_inner_constants_over_the_range(max_columns, num_rates, rng):
  x = rng.uniform(0.5, 2, (9, 1))
  with np.errstate(all="ignore"):
    made = list(products._functions(space_of(x, max_columns=max_columns)))
  usual = CONFIG.usual_rates
  sines = [family for family in made if family.tokens == ("sin",)]
  counts = [family.logs.shape[1] for family in sines]
  assert sorted(set(counts)) == [len(usual), len(usual) + num_rates]
  assert counts.count(max(counts)) == len(CONFIG.plain_powers[0])
  low, high, _ = CONFIG.rates
  assert CONFIG.argument_powers[0][0] in CONFIG.plain_powers[0]
  u = x[:, 0] ** CONFIG.argument_powers[0][0]
  rates = np.r_[usual, np.geomspace(low, high, num_rates) / np.max(u)]
  np.testing.assert_allclose(np.exp(sines[0].logs), np.abs(np.sin(u[:, None] * rates)))
  for family in made:
    assert family.is_plain.tolist() == [True] + [False] * (family.logs.shape[1] - 1) and not family.groups.any()


def test_a_single_monomial_has_all_the_inner_constants_there_is_room_for(rng):
  """Seven functions of each, beside the usual constants; of none as many as of one."""
  for plain, counts in ((((1.0,),), {0, 5}), ((), {0})):
    with np.errstate(all="ignore"):
      made = list(products._functions(space_of(
        rng.uniform(0.5, 2, (9, 1)), max_columns=5 * 7, plain_powers=plain, argument_powers=((1.0, 2.0),))))
    assert {family.logs.shape[1] - len(CONFIG.usual_rates) for family in made if family.tokens == ("sin",)} == counts


def test_factors_of_too_large_a_logarithm_or_too_small_a_spread_are_left_out():
  config = dataclasses.replace(CONFIG, families=("sums",), term_powers=((1,),), multiples=(1.0,), max_term_size=1)
  for largest, num in ((np.exp(59.9), 2), (np.exp(60.1), 0)):
    assert len(products.Factors(np.linspace(2, largest, 9)[:, None], (0,), config=config).groups) == num
  for spread, num in ((0.7, 0), (1.5, 1), (2.7, 1), (3.3, 2)):  # that of 1 - x, and of 1 + x a third of it
    x = 2 + np.linspace(0, spread * products.LEAST_SPREAD, 9)[:, None]
    assert len(products.Factors(x, (0,), config=config).groups) == num
  assert products.LARGEST_LOG == 60.0 and products.LEAST_SPREAD == 1e-5


def test_variables_are_left_out_as_least_squares_would(rng):
  """Of many correlated variables the one whose loss costs least goes, time and again."""
  x = np.exp(rng.normal(size=(60, 7)) @ (np.eye(7) + 0.4 * rng.normal(size=(7, 7))))
  y = x[:, 0] ** 1.5 / x[:, 3] * np.exp(0.3 * rng.normal(size=60))
  target = target_of(x, y)
  weights = y**2 / y.max() ** 2

  def left(chosen):
    design = np.sqrt(weights)[:, None] * np.column_stack([np.log(x[:, chosen]), np.ones(60)])
    goal = np.sqrt(weights) * np.log(y)
    return np.sum((goal - design @ np.linalg.lstsq(design, goal)[0]) ** 2)
  kept = list(range(7))
  most = left(kept) * CONFIG.max_loss
  while left(less := min(([i for i in kept if i != out] for out in kept), key=left)) < most:
    kept = less
  assert np.flatnonzero(target._needed(np.log(y), np.log(x), np.ones(7, bool))).tolist() == kept and len(kept) < 5


def test_factors_of_several_families_know_their_formulas(rng):
  x = rng.uniform(0.5, 3, (20, 2))
  config = dataclasses.replace(CONFIG, families=("sums", "exponentials"), max_columns=400, max_term_size=1)
  found = products.Factors(x, (0, 1), config=config)
  for index in range(len(found.groups)):
    monomial, node = found.forms(index, 1.0)[0]
    values = Values(x)([monomial])[:, 0] * expression.evaluate(node, x)
    np.testing.assert_allclose(np.log(np.abs(values)), found.columns[:, index], rtol=1e-4, atol=1e-5)
  assert len(set(found.groups.tolist())) == len(found.groups)  # each is a function of its own
  assert {len(each) for each in (found.is_plain, found.is_exponential, found.is_linear)} == {len(found.groups)}
  num_sums = np.flatnonzero(found.is_exponential)[0]
  assert found.is_exponential[num_sums:].all() and not found.is_exponential[:num_sums].any()
  assert not found.is_linear[:num_sums].any() and found.is_linear.sum() == 2


def test_the_sign_of_y_decides_among_forms_alone(rng):
  x = rng.uniform(1, 2, (9, 2)) * [1, 5]
  x[0] = 2.0

  def written(*texts):
    factors = SimpleNamespace(forms=lambda index, exponent: [((), parse(text)) for text in texts])
    node = target_of(x, np.ones(9))._product(factors, np.array([0]), np.array([0.0, 0.0, 1.0]))
    return expression.evaluate(node, x)
  np.testing.assert_allclose(written("x - 3*z"), x @ [1, -3])  # another sign is no reason to have none
  np.testing.assert_allclose(written("x - z", "z - x"), x @ [1, -1])  # 0 has no sign


# --- coefficients that vary ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_rows", "num_columns", "operators", "is_asked"), [
  (64, 2, None, True), (64, 1, None, False), (64, 6, None, True), (64, 7, None, False), (64, 2, ("*", "sin"), False)])
def test_who_is_asked_for_coefficients_that_vary(num_rows, num_columns, operators, is_asked, rng):
  options = SearchOptions(restrictions=Restrictions(operators=operators) if operators else Restrictions())
  task = make_task((rng.uniform(1, 2, (num_rows, num_columns)), rng.normal(size=num_rows)), None, options)
  source = varying.VaryingCoefficients(options)
  assert source.supports(task) == is_asked and source.turns == DEFAULT.varying.turns


@pytest.mark.parametrize(("turn", "seen", "is_asked"), [(0, {}, True), (1, {0: ["term"]}, True), (1, {}, False),
                                                        (2, {}, True)])
def test_turns_ask_for_y_for_terms_of_the_pool_and_for_functions_of_y(turn, seen, is_asked, rng, monkeypatch):
  asked = []
  monkeypatch.setattr(varying, "seen_terms", lambda pool, columns, config: seen)
  monkeypatch.setattr(varying, "find_models", lambda rows, columns, links, *, more, allows, config: asked.append(
    (links, more)) or [])
  monkeypatch.setattr(varying.VaryingCoefficients, "_formulas", lambda self, task, models: iter(
    [parse("x"), parse("z"), parse("x*z")]))
  x = rng.uniform(1, 2, (64, 2))
  for operators in (None, ("+", "*", "exp")):
    options = SearchOptions(restrictions=Restrictions(operators=operators) if operators else Restrictions())
    task = make_task((x, rng.normal(size=64)), ("x", "z"), options)
    question = SimpleNamespace(task=task, pool=None)
    nodes = varying.VaryingCoefficients(options)._nodes(question, turn, 2)
    assert len(nodes) == (2 if is_asked else 0)
    if is_asked:
      allowed = [name for name in DEFAULT.varying.links if operators is None or set(LINKS[name].tokens) <= {*operators}]
      links, more = asked.pop()
      assert links == [name for name in allowed if (name == "y") == (turn < 2)] != []
      assert more == (seen if turn == 1 else {})
  assert not asked


def model_of(nats, left=1e-6, texts=("x",), column=0, link="y", view="plain"):
  return varying.Model(nats, link, column, view, tuple(map(parse, texts)), left)


def test_of_models_of_the_same_terms_the_shortest_is_found(rng, monkeypatch):
  x = np.column_stack([rng.uniform(1, 9, 64), rng.uniform(1, 2, 64), np.ones(64)])
  rows, asked = Rows(x, rng.uniform(1, 2, 64) - 1.5, np.ones(64)), []
  made = {("plain", "y", 0): [model_of(3.0), model_of(1.0, texts=("z",))], ("log", "y", 0): [model_of(2.0, view="log")],
          ("plain", "y", 1): [model_of(1.0, texts=("w",), column=1)], ("plain", "ln", 0): [model_of(5.0, link="ln")]}
  monkeypatch.setattr(varying, "_known_terms", lambda rows, others, more, allows, config: asked.append(
    (others, more)) or "known")
  monkeypatch.setattr(varying, "_models", lambda rows, known, name, column, view, config: made.get(
    (view, name, column), []))
  config = dataclasses.replace(DEFAULT.varying, wide=3.0)
  found = varying.find_models(rows, (0, 1, 2), ("y", "sqrt", "ln"), more={}, allows=None, config=config)
  assert found == [made["plain", "y", 0][1], made["plain", "y", 1][0], made["log", "y", 0][0],
                   made["plain", "ln", 0][0]]
  assert asked == [([1, 2], ()), ([0, 2], ())]  # the third has one value
  equal = made["log", "y", 0][0]._replace(nats=3.0)
  made["log", "y", 0] = [equal]
  assert equal not in varying.find_models(rows, (0, 1), ("y",), more={}, allows=None, config=config)  # the first stays
  asked.clear()
  varying.find_models(rows, (0, 1), ("y",), more={1: ["term"]}, allows=None, config=config)
  assert asked == [([0], ["term"])]


def test_models_that_leave_just_as_much_as_they_may():
  config = dataclasses.replace(DEFAULT.varying, most_left=0.25)
  assert varying.best_models([model_of(-1.0, left=0.25)], config) and not varying.best_models(
    [model_of(-1.0, left=0.26)], config)


def test_known_terms_are_one_further_ones_that_vary_and_plain_ones(rng):
  x = np.column_stack([rng.uniform(1, 2, (40, 2)), np.full(40, 3.0)])
  rows = Rows(x, x[:, 0], np.ones(40))
  more = [parse(text) for text in ("0.2*z", "w", "log(z - 1.5)", "sin(z)")]
  with np.errstate(all="ignore"):
    for most in (2, 4, 6):
      config = dataclasses.replace(DEFAULT.varying, max_terms=most)
      known = varying._known_terms(rows, (1,), more, None, config)
      assert len(known.nodes) == known.values.shape[1] == most and known.nodes[0] == expression.number(1.0)
    assert known.nodes[1:3] == (more[0], more[3])
    np.testing.assert_allclose(known.values[:, 1], x[:, 1] / x[:, 1].max())
    np.testing.assert_allclose(known.values[:, 2], np.sin(x[:, 1]) / np.sin(x[:, 1]).max())
    assert (known.values[:, 0] == 1).all()
    nodes = varying._known_terms(rows, (1,), (), None, dataclasses.replace(DEFAULT.varying, max_term_nodes=3)).nodes
  lengths = [expression.complexity(node) for node in nodes[1:]]
  assert lengths == sorted(lengths) and max(lengths) <= 3 and len(nodes) > 3
  for size, is_in in ((0.5, True), (2.0, False)):
    large = expression.Node("*", (parse("z"), expression.number(size * library.LARGEST / x[:, 1].max())))
    assert (large in varying._known_terms(rows, (1,), [large], None, DEFAULT.varying).nodes) == is_in


def test_terms_of_the_pool_are_at_most_half_of_all():
  nodes = [parse(text) for text in ("x*sin(z)", "x*exp(z)", "x*sqrt(z)", "x*log(z)")]
  pool = SimpleNamespace(shortlist=lambda: [SimpleNamespace(node=node) for node in nodes])
  for most, donors, seen, num in ((8, 9, 9, 4), (6, 9, 9, 3), (64, 2, 9, 2), (64, 9, 3, 3)):
    config = dataclasses.replace(
      DEFAULT.varying, max_terms=most, num_donors=donors, max_seen_terms=seen, num_multiplied=0)
    assert len(varying.seen_terms(pool, (0, 1), config)[0]) == num


def test_a_set_is_reduced_where_just_so_much_more_is_left(monkeypatch):
  monkeypatch.setattr(block_exchange, "left_by", lambda products, blocks: 8.0 * (4 - len(blocks)))
  config = dataclasses.replace(DEFAULT.varying, negligible=8.0)
  assert [left for _, left in varying._reduced(None, (0, 1, 2, 3), 1.0, config)] == [1.0, 8.0]


def test_what_a_column_adds_is_told_from_rounding():
  for share, expected in ((1.4, 1.0), (0.7, 0.0)):
    design = np.zeros((4, 2))
    design[0, 0], design[1, 1] = 1.0, share * 1e-12
    found = varying._solved(design, np.ones(4), design.sum(axis=1))
    assert found[1] == pytest.approx(expected)


def test_forms_of_all_factors_are_written_by_what_they_cost_together(rng):
  def factor(text):
    return varying.Factor(np.ones(3), ((parse(text), 1.0),), 0.0)
  twice = varying.Factor(np.ones(3), ((parse("z"), 1.0), (parse("w"), 2.0)), 0.0)
  [node] = varying.written("y", [(twice.multiples, [(0.0, parse("x"))])], 24)
  points = rng.uniform(1, 2, (5, 3))
  np.testing.assert_allclose(expression.evaluate(node, points), points[:, 0] * (points[:, 1] + 2 * points[:, 2]))
  formed = [(factor("z").multiples, [(1.0, parse("x")), (2.0, parse("sin(x)")), (9.0, parse("exp(x)"))]),
            (factor("w").multiples, [(5.0, parse("x**2")), (1.0, parse("sqrt(x)"))])]
  found = varying.written("y", formed, 4)
  x = rng.uniform(1, 2, (5, 3))
  u, z, w = x.T
  forms = ((u, np.sqrt(u)), (np.sin(u), np.sqrt(u)), (u, u**2), (np.sin(u), u**2))
  for node, (first, second) in zip(found, forms, strict=True):
    np.testing.assert_allclose(expression.evaluate(node, x), first * z + second * w)


def test_terms_are_columns_of_the_library_of_the_config(rng):
  x = rng.uniform(1, 2, (40, 2))
  own = dataclasses.replace(DEFAULT.varying.library, families=("monomials",))
  config = dataclasses.replace(DEFAULT.varying, library=own)
  nodes = varying._known_terms(Rows(x, x[:, 0], np.ones(40)), (1,), (), None, config).nodes
  assert len(nodes) > 3 and not {"exp", "ln"} & {part.token for node in nodes for part in expression.walk(node)}


def test_what_a_model_costs_follows_from_what_it_leaves_and_its_terms(rng):
  x, weights = rng.uniform(1, 3, (120, 2)), rng.uniform(0.5, 2, 120)
  rows = Rows(x, np.sin(x[:, 0]) * x[:, 1] + 0.01 * rng.normal(size=120), weights)
  known = varying._Terms((expression.number(1.0), parse("z"), parse("z**2")), np.column_stack(
    [np.ones(120), x[:, 1], x[:, 1] ** 2]))
  config = dataclasses.replace(DEFAULT.varying, num_functions=4, num_per_size=2, worth=5.0, exact=1e-6)
  found = list(varying._models(rows, known, "y", 0, "plain", config))
  assert {len(model.terms) for model in found} == {1, 2, 3}
  basis = varying._basis(x[:, 0], "plain", x[:, 0], 4)
  variance = np.average((rows.y - np.average(rows.y, weights=weights)) ** 2, weights=weights)
  for model in found:
    values = [basis * np.broadcast_to(expression.evaluate(node, x), 120)[:, None] for node in model.terms]
    design = np.column_stack([np.ones(120), *values]) * np.sqrt(weights)[:, None]
    goal = np.sqrt(weights) * rows.y
    left = np.sum((goal - design @ np.linalg.lstsq(design, goal)[0]) ** 2) / weights.sum() / variance
    assert model.left == pytest.approx(left, rel=1e-3, abs=1e-9)
    assert model.nats == pytest.approx(60 * (math.log(model.left + 1e-6) + len(model.terms) * math.log(5)))
    assert (model.link, model.column, model.view) == ("y", 0, "plain")
  few = dataclasses.replace(config, rows_per_function=10)  # so many rows for each polynomial of a factor
  assert max(len(model.terms) for model in varying._models(rows, known, "y", 0, "plain", few)) == 3
  fewer = dataclasses.replace(config, rows_per_function=16)
  assert max(len(model.terms) for model in varying._models(rows, known, "y", 0, "plain", fewer)) <= 2
  assert not list(varying._models(Rows(x, np.ones(120), weights), known, "y", 0, "plain", config))


def test_formulas_of_as_many_tokens_as_there_may_be_are_written():
  def long(num):
    node = expression.variable(0)
    for _ in range(num - 1):
      node = expression.Node("sin", (node,))
    return node
  factor = varying.Factor(np.ones(3), ((parse("z"), 1.0),), 0.0)
  forms = [(float(i), long(programs.MAX_TOKENS - 2 + i)) for i in range(2)]  # times a term
  [node] = varying.written("y", [(factor.multiples, forms)], 24)
  assert programs.size(node) == programs.MAX_TOKENS


def test_a_constant_beside_varying_factors_is_that_of_least_squares(rng):
  x, weights = rng.uniform(1, 3, (200, 2)), rng.uniform(0.5, 2, 200)
  rows = Rows(x, 5 * np.sin(x[:, 0]) * x[:, 1] + 300 + 0.1 * rng.normal(size=200), weights)
  config = dataclasses.replace(DEFAULT.varying, num_functions=6)
  root = np.sqrt(weights)
  basis = varying._basis(x[:, 0], "plain", x[:, 0], 6) * x[:, [1]]
  design = np.column_stack([basis, np.ones(200)])
  found = np.linalg.lstsq(root[:, None] * design, root * rows.y)[0]
  factor, constant = varying.factors_of(model_of(-1.0, texts=("z",)), rows, x[:5, 0], config=config)
  error = np.average((rows.y - design @ found) ** 2, weights=weights)
  assert factor.error == pytest.approx(error / np.average(x[:, 1] ** 2, weights=weights), rel=1e-6)
  np.testing.assert_allclose(factor.values, (basis[:5] @ found[:-1]) / x[:5, 1], rtol=1e-6)
  np.testing.assert_allclose(constant.values, found[-1])
  assert constant.error == 0 and constant.multiples == ((expression.number(1.0), 1.0),)


def test_models_with_few_factors_in_all_are_looked_at(rng, monkeypatch):
  models = [model_of(-3.0, texts=("z",)), model_of(-2.0, texts=("z", "w")), model_of(-1.0, texts=("w",), column=1)]
  task = SimpleNamespace(fit_rows=None)
  monkeypatch.setattr(varying, "Table", lambda task, column, config, forms: SimpleNamespace(places=np.arange(3.0)))
  monkeypatch.setattr(varying, "factors_of", lambda model, rows, places, *, config: [
    varying.Factor(np.random.default_rng(i + len(model.terms)).normal(size=3), ((node, 1.0),), 0.1)
    for i, node in enumerate(model.terms)])
  asked = []

  def find_forms(some, options, config):
    asked.append(len(some))
    assert all(function.error == 0.1 for _, function in some)
    return [[(0.0, parse("x"))] for _ in some]
  monkeypatch.setattr(unknown_functions, "find_forms", find_forms)
  for most, num in ((2, 1), (3, 3), (4, 4), (0, 1)):
    options = SearchOptions(config=dataclasses.replace(DEFAULT, varying=dataclasses.replace(
      DEFAULT.varying, num_factors=most)))
    found = list(varying.VaryingCoefficients(options)._formulas(task, models))
    assert asked.pop() == num and len(found) == {1: 1, 3: 2, 4: 3}[num]
    assert expression.sort_operands(found[0]) == expression.sort_operands(parse("x*z"))


# --- unknown functions -----------------------------------------------------------------------------------------------

FORMS = DEFAULT.separable.forms


def test_a_table_has_places_of_its_column_and_the_operators_of_the_user(rng, monkeypatch):
  made = []
  monkeypatch.setattr(library, "Atoms", lambda x, columns, allows, *, config: made.append(
    (x, columns, allows, config)) or "atoms")
  x = rng.uniform(1, 2, (200, 2))
  options = SearchOptions(restrictions=Restrictions(forbidden=("sin",), max_depth=3))
  task = make_task((x, x[:, 0]), None, options)
  forms = dataclasses.replace(FORMS, num_places=5)
  table = unknown_functions.Table(task, 1, DEFAULT, forms)
  distinct = np.sort(task.fit_rows.x[:, 1])
  np.testing.assert_array_equal(table.places, distinct[np.linspace(0, len(distinct) - 1, 5).round().astype(int)])
  assert table._atoms == table._atoms == "atoms"
  [(places, columns, allows, config)] = made  # once, when it is asked for
  np.testing.assert_array_equal(places[:, 0], table.places)
  assert columns == (0,) and not allows("sin") and allows("cos") and config is forms.library
  function = unknown_functions.Tabulated(np.array([1.0, 2, 4, 4, 4]), 0.1)
  own = table.task(function)
  assert own.variance == pytest.approx(1.6) and own.num_rows == 5 and own.columns == (0,) and own.names == ("x",)
  assert own.rule == dataclasses.replace(Rule(1), tokens=task.rule.tokens) and (own.rows.weights == 1).all()
  np.testing.assert_array_equal(own.fit_rows.x[:, 0], table.places)
  np.testing.assert_array_equal(own.fit_rows.y, function.values)
  # Formulas: a constant, waves, sums, fractions; those that are allowed and not too long, each once.
  asked, long = [], parse("x")
  for _ in range(programs.MAX_TOKENS):
    long = expression.Node("exp", (long,))
  just = long
  while programs.size(just) > programs.MAX_TOKENS:
    just = just.args[0]
  near = ([parse("sqrt(x)"), long], [parse("cos(x)"), parse("sin(x)")], [parse("1/x"), parse("sqrt(x)"), just])
  monkeypatch.setattr(unknown_functions, "_near", lambda rows, atoms, links, searches, rule, config, forms: (
    asked.append((rows.y, atoms, links, searches, rule, forms)) or near))
  assert table.forms(function) == [
    expression.number(3.0), parse("cos(x)"), parse("sqrt(x)"), parse("1/x"), just]
  [(y, atoms, links, searches, rule, given)] = asked
  assert (y is function.values, atoms, links, searches, rule, given) == (
    True, "atoms", ("y",), forms.searches, own.rule, forms)
  assert table.forms(unknown_functions.Tabulated(np.full(5, 2.5), 0.1)) == [expression.number(2.5)] and len(asked) == 1


def test_forms_of_a_table_are_of_functions_of_sums_as_well(rng, monkeypatch):
  x = rng.uniform(1, 2, (400, 1))
  rows, made, asked, points = Rows(x, x[:, 0], np.ones(400)), [], [], []
  monkeypatch.setattr(library, "Atoms", lambda x, columns, allows, *, config: points.append(x) or made.append(
    (len(x), columns, allows("sin"), config)))
  monkeypatch.setattr(unknown_functions, "_near", lambda rows, atoms, links, searches, rule, config, forms: (
    asked.append((rows, links, searches, rule)) or ([1, 2], [3], [4, 5])))
  rule = Restrictions(forbidden=("sin",), max_depth=2).for_columns(("a",))
  assert list(unknown_functions.forms_of(rows, rule, DEFAULT, FORMS)) == [1, 3, 4, 2, 5]
  assert made == [(DEFAULT.terms.num_rows, (0,), False, FORMS.library)]
  # The rows of the library are those on which sums are chosen.
  np.testing.assert_array_equal(points[0], terms.some_of(rows, DEFAULT.terms).x)
  own = dataclasses.replace(Rule(1), tokens=rule.tokens)
  assert asked == [(rows, DEFAULT.terms.links, FORMS.searches[:2], own)] and len(FORMS.searches) == 3


def test_what_is_near_a_table_are_few_sums_waves_and_fractions(monkeypatch):
  rows, rule = Rows(np.ones((4, 1)), np.arange(4.0), np.ones(4)), Rule(1)

  def sums_of(atoms, rows, *, links, searches, rule, config):
    assert (atoms, links, searches, config.terms.num_fitted) == ("atoms", ("y",), "searches", FORMS.num_sums)
    assert config.pursuit == DEFAULT.pursuit
    return rule

  def rationals_of(rows, columns, *, rule, config):
    assert columns == (0,) and config is FORMS.rationals
    return rule
  monkeypatch.setattr(terms, "sums_of", sums_of)
  monkeypatch.setattr(rationals, "rationals_of", rationals_of)
  monkeypatch.setattr(unknown_functions, "_waves", lambda rows, config: config)
  assert unknown_functions._near(rows, "atoms", ("y",), "searches", rule, DEFAULT, FORMS) == (rule, FORMS, rule)


@pytest.mark.parametrize(("number", "is_found"), [(1, True), (6, True), (7, False)])
def test_waves_are_of_an_eighth_of_a_turn_to_so_many(number, is_found):
  x = np.linspace(0, 4, 60)[:, None]
  rows = Rows(x, 3 * np.cos(number * np.pi / 16 * x[:, 0] - 0.4) + 7, np.ones(60))
  config = dataclasses.replace(FORMS, num_waves=6, num_fitted_waves=1)
  [best] = unknown_functions._waves(rows, config)
  assert np.allclose(expression.evaluate(best, x), rows.y, atol=1e-9) == is_found


def test_the_shortest_description_comes_first_whatever_the_formula():
  function = unknown_functions.Tabulated(np.arange(8.0), 0.0)
  forms = [(parse("sin(x)"), 0.1), (parse("x"), 0.2), (parse("exp(x)"), 1e-3), (parse("z"), 0.15)]
  found = unknown_functions._shortest(forms, function, 9, 1, FORMS)
  assert [nats for nats, _ in found] == sorted(nats for nats, _ in found) and len(found) == 4
  assert found[0][1] == parse("exp(x)")


def test_forms_are_screened_and_the_near_ones_fitted(monkeypatch):
  asked, shortest = [], []

  def fit_constants(pairs, *, method, max_steps, max_constants):
    asked.append(([(task, list(nodes)) for task, nodes in pairs], method, max_steps, max_constants))
    return [[(node, 0.5) for node in nodes] for _, nodes in pairs]
  monkeypatch.setattr(refine, "fit_constants", fit_constants)
  monkeypatch.setattr(unknown_functions, "_shortest", lambda some, function, most, alike, config: shortest.append(
    (function, most, alike)) or [(float(i), node) for i, (node, _) in enumerate(some)][:2])
  tables = [SimpleNamespace(
    places=np.arange(1.0, 9.0), column=i + 1, task=lambda function, i=i: f"task {i}", forms=lambda function, i=i: [
      parse("x"), parse("sin(x)"), parse("exp(x)")][i:]) for i in range(2)]
  found = unknown_functions.find_forms([(tables[0], "f"), (tables[1], "g")], SearchOptions(refine="bfgs"), FORMS)
  most = DEFAULT.pool.max_constants
  assert asked == [
    ([("task 0", [parse("x"), parse("sin(x)"), parse("exp(x)")]), ("task 1", [parse("sin(x)"), parse("exp(x)")])],
     "bfgs", FORMS.screen_steps, most),
    ([("task 0", [parse("x"), parse("sin(x)")]), ("task 1", [parse("sin(x)"), parse("exp(x)")])],
     "bfgs", FORMS.fit_steps, most)]
  assert shortest == [("f", FORMS.num_near, FORMS.fits_per_form), ("g", FORMS.num_near, FORMS.fits_per_form),
                      ("f", FORMS.num_forms, 1), ("g", FORMS.num_forms, 1)]
  assert found == [[(0.0, parse("z")), (1.0, parse("sin(z)"))], [(0.0, parse("sin(w)")), (1.0, parse("exp(w)"))]]


# --- what every source is asked --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("module", "source", "asked"), [
  (quadratics, quadratics.Quadratics(), "roots_of"), (rationals, rationals.Rationals(), "rationals_of")])
def test_formulas_of_a_data_set_keep_its_rule(module, source, asked, monkeypatch):
  given = []
  monkeypatch.setattr(module, asked, lambda rows, columns, *, rule, config: given.append(
    (rows, columns, rule, config)) or ["formula"])
  task = SimpleNamespace(fit_rows="rows", columns="columns", rule="rule")
  proposals = source.propose([Question(task, None, None)] * 2, turn=0, num=1, clock=Clock())
  assert [each.nodes for each in proposals] == [("formula",)] * 2
  assert given == [("rows", "columns", "rule", getattr(DEFAULT, source.name))] * 2


@pytest.mark.parametrize(("source", "method"), [
  (ridges.Ridges(), "_nodes"), (single_index.SingleIndex(), "_nodes"), (terms.LibrarySums(), "_nodes"),
  (separable.Separable(SearchOptions()), "_nodes"), (varying.VaryingCoefficients(SearchOptions()), "_nodes"),
  (terms.PartSums(), "_propose")])
def test_every_question_has_its_proposal(source, method, monkeypatch):
  given = []

  def made(self, question, *numbers):
    given.append((question, numbers))
    return Proposal(nodes=(question.task,)) if method == "_propose" else (question.task,)
  monkeypatch.setattr(type(source), method, made)
  questions = [Question(k, None, None) for k in range(2)]
  proposals = source.propose(questions, turn=7, num=3, clock=Clock())
  assert [each.nodes for each in proposals] == [(0,), (1,)] and [question for question, _ in given] == questions
  assert {numbers for _, numbers in given} <= {(7, 3), (3,), (7,)} and source.init(None, None) is None


def test_of_forms_that_cost_as_much_the_nearer_stays_the_first():
  """Their formulas have no order of their own."""
  function, forms = unknown_functions.Tabulated(np.arange(5.0), 0.1), [(parse("sin(x)"), 0.0), (parse("cos(x)"), 0.0)]
  found = unknown_functions._shortest(forms, function, 9, 1, FORMS)
  assert [node for _, node in found] == [node for node, _ in forms] and found[0][0] == found[1][0]
