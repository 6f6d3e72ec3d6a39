"""Products of powers, monomials and polynomials by themselves, beside trying everything by NumPy."""

import dataclasses
import functools
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import polynomials, power_products
from symformer_jax.sources.links import LINKS

NAMES = ("x", "z", "w")
CONFIG = DEFAULT.power_products


def parse(text):
  return parser.parse(text, NAMES)


def config_of(**changes):
  return dataclasses.replace(CONFIG, **changes)


def left_by(columns, rows):
  """Share of the weighted variance that columns [N, K] and a constant leave, by least squares."""
  design, root = np.column_stack([*columns, np.ones(len(rows))]), np.sqrt(rows.weights)
  factors = np.linalg.lstsq(root[:, None] * design, root * rows.y)[0]
  mean = np.average(rows.y, weights=rows.weights)
  return rows.weights @ (rows.y - design @ factors) ** 2 / (rows.weights @ (rows.y - mean) ** 2)


@pytest.fixture
def rows(rng):
  return Rows(rng.uniform(0.5, 2.5, (40, 3)), rng.uniform(0.5, 2, 40), rng.uniform(0.5, 2, 40))


def grid_of(rows, exponents, most=10_000, columns=(0, 1, 2), **changes):
  return power_products.Grid(rows, columns, config_of(exponents=exponents, **changes), most)


# --- which products there are ----------------------------------------------------------------------------------------


def test_the_first_grid_that_makes_no_more_products_than_allowed_is_taken(rows):
  grids = ((1, 2, -1), (1, 2), (1,))
  for most, expected in ((64, grids[0]), (63, grids[1]), (27, grids[1]), (26, grids[2]), (8, grids[2])):
    assert grid_of(rows, grids, most).exponents == [[0, *expected]] * 3
  nothing = grid_of(rows, grids, 7)
  assert nothing.exponents == [] and nothing.sums([LINKS["y"]], [()]) == [] and nothing.pairs([LINKS["y"]]) == []


def test_columns_and_powers_that_do_not_vary_or_are_undefined_are_left_out(rows):
  signs = np.where(np.arange(40) % 2, 1.0, -1.0)
  x = np.column_stack([np.linspace(0, 1, 40), signs, np.full(40, 2.0)])
  found = grid_of(Rows(x, rows.y, rows.weights), ((1, 2, -1, 0.5),))
  assert found.exponents == [[0, 1, 2, 0.5], [0, 1, -1]]
  only = grid_of(rows, ((1, 2),), columns=(2,))
  assert only.exponents == [[0, 1, 2]] and only.node(2) == parse("w**2")


def test_products_are_those_of_their_formulas_relative_to_the_largest(rows):
  grid = grid_of(rows, ((1, -2, 0.5),), columns=(0, 2))
  products = grid.products()
  assert products.shape == (16, 40) and products.dtype == np.float32 and grid.products() is products
  for index in range(16):
    expected = expression.evaluate(grid.node(index), rows.x) * np.ones(40)
    np.testing.assert_allclose(products[index], expected / np.abs(expected).max(), rtol=1e-5)
  powers = [tuple(part.value for part in expression.walk(grid.node(i)) if part.token == "variable") for i in range(5)]
  assert powers == [(), (2,), (2,), (2,), (0,)] and grid.node(0) == expression.number(1)


def test_columns_of_any_size_make_products(rows):
  """Powers are of mean square 1 before they are multiplied: single precision would not hold them."""
  x = rows.x * [1e12, 1e12, 1e-12]
  grid = grid_of(Rows(x, rows.y, rows.weights), ((4, -4),))
  expected = grid_of(rows, ((4, -4),)).products()
  np.testing.assert_allclose(grid.products(), expected, rtol=1e-5)
  np.testing.assert_allclose(np.mean(grid._powers(0, (1, 3)) ** 2, axis=1), 1, rtol=1e-5)


def test_few_rows_are_compared_first_and_always_the_same(rows):
  grid = grid_of(rows, ((1, 2),), num_rows=7)
  assert grid.products().shape == (27, 7)
  np.testing.assert_array_equal(grid._some.x, rows.sample(7, seed=0).x)


def test_the_plainest_products_have_the_least_exponents_and_inverses_cost_half_a_power(rows):
  grid = grid_of(rows, ((1, 2, -1, 0.5),), columns=(0, 1))
  found = [grid.node(index) for index in grid._plainest(9)]
  texts = ["sqrt(z)", "z", "sqrt(x)", "x", "x**0.5*z**0.5", "1/z", "x**0.5*z", "x*z**0.5", "1/x"]
  sizes = [0.5, 1, 0.5, 1, 1, 1.5, 1.5, 1.5, 1.5]
  expected = {expression.sort_operands(parse(text)): size for text, size in zip(texts, sizes, strict=True)}
  assert {expression.sort_operands(node) for node in found} == set(expected)
  order = [expected[expression.sort_operands(node)] for node in found]
  assert order == sorted(order) and len(grid._plainest(3)) == 3
  same = grid_of(rows, ((1, 2) * 20,), columns=(0,))._plainest(40)  # of those of one size in their order
  assert same == [*range(1, 41, 2), *range(2, 41, 2)]


# --- what they explain -----------------------------------------------------------------------------------------------


def test_what_products_add_is_what_least_squares_gains(rng):
  products, root = rng.normal(size=(5, 12)), rng.uniform(0.5, 1, 12)
  basis = np.linalg.qr(rng.normal(size=(12, 2)))[0]
  goal = rng.normal(size=12)
  goal -= basis @ (basis.T @ goal)
  columns = products * root
  found = power_products._gains(np.sum(columns**2, axis=1), columns @ np.column_stack([goal, basis]))
  for gain, column in zip(found, columns, strict=True):
    design = np.column_stack([basis, column])
    assert gain == pytest.approx(goal @ goal - np.sum((goal - design @ np.linalg.lstsq(design, goal)[0]) ** 2))


def test_products_that_others_explain_add_nothing():
  """But for a share of 1e-5 of their squares."""
  along = np.array([[0.3, np.sqrt(1 - 0.8e-5)], [0.3, np.sqrt(1 - 1.6e-5)], [0.0, 0.0]])
  found = power_products._gains(np.array([1.0, 1.0, 0.0]), along)
  assert found.tolist() == [0, pytest.approx(0.09 / 1.6e-5, rel=1e-6), 0]


def test_the_best_products_are_the_most_that_are_looked_at(rows):
  gains = np.array([0.1, 0.0, 0.5, 0.3])
  for most, expected in ((2, [2, 3]), (3, [2, 3, 0]), (4, [2, 3, 0]), (9, [2, 3, 0])):
    assert grid_of(rows, ((1,),), num_looked_at=most)._largest(gains).tolist() == expected
  for seed in range(20):
    many = np.random.default_rng(seed).uniform(size=500)
    assert grid_of(rows, ((1,),), num_looked_at=7)._largest(many).tolist() == np.argsort(-many)[:7].tolist()


@pytest.mark.parametrize("size", [1.0, 1e30])
@pytest.mark.parametrize("link", ["y", "inv"])
@pytest.mark.parametrize("beside", [(), (0, 1)])
def test_sums_are_the_best_of_all_products_beside_some_columns(size, link, beside, rows):
  """Errors of a function of y count as those of y: its weights are over the square of its slope."""
  rows = dataclasses.replace(rows, y=size * rows.y)
  grid = grid_of(rows, ((1, -1, 2),), columns=(0, 1), num_looked_at=5)
  [found] = grid.sums([LINKS[link]], [beside])
  y = rows.y if link == "y" else 1 / rows.y
  weights = rows.weights if link == "y" else rows.weights * rows.y**4
  inside = Rows(rows.x, y, weights / weights.max())
  every = {}
  for p, q in itertools.product((0, 1, -1, 2), repeat=2):
    if (p, q) not in {(0, 0), *(((1, 0), (0, 1)) if beside else ())}:
      every[p, q] = left_by([rows.x[:, 0] ** p * rows.x[:, 1] ** q, *rows.x[:, list(beside)].T], inside)
  np.testing.assert_allclose([each.left for each in found], sorted(every.values())[:5], rtol=1e-6)
  for each in found:
    z = expression.evaluate(each.node, rows.x)
    rest = inside.weights @ ((z if link == "y" else 1 / z) - y) ** 2
    mean = np.average(y, weights=weights)
    assert rest / (inside.weights @ (y - mean) ** 2) == pytest.approx(each.left, rel=1e-6)


def test_functions_and_what_stands_beside_are_asked_for_one_after_the_other(rows):
  grid = grid_of(rows, ((1, -1),), columns=(0, 1), num_looked_at=3)
  found = grid.sums([LINKS["y"], LINKS["exp"]], [(), (0,)])
  assert len(found) == 4
  for some, (link, beside) in zip(found, itertools.product(("y", "exp"), ((), (0,))), strict=True):
    [alone] = grid.sums([LINKS[link]], [beside])
    assert [each.node for each in some] == [each.node for each in alone] and some
  with np.errstate(all="ignore"):
    negative = power_products.Grid(dataclasses.replace(rows, y=-rows.y), (0, 1), CONFIG, 100)
    assert len(negative.sums([LINKS["y"], LINKS["exp"]], [()])) == 1  # none of a logarithm of what is below 0


def test_two_products_are_the_best_beside_the_best_and_the_plainest(rows):
  config = {"num_first": 2, "num_plain": 3, "num_second": 2, "num_looked_at": 6}
  grid = grid_of(rows, ((1, -1, 2),), columns=(0, 1), **config)
  [found] = grid.pairs([LINKS["y"]])
  powers = [(p, q) for p, q in itertools.product((0, 1, -1, 2), repeat=2)]
  values = {index: rows.x[:, 0] ** p * rows.x[:, 1] ** q for index, (p, q) in enumerate(powers)}
  alone = sorted(range(1, 16), key=lambda i: left_by([values[i]], rows))
  plainest = sorted(range(1, 16), key=lambda i: sum(abs(e) + 0.5 * (e < 0) for e in powers[i]))[:3]
  expected = []
  for first in dict.fromkeys([*alone[:2], *plainest]):
    seconds = sorted(set(range(1, 16)) - {first}, key=lambda i: left_by([values[first], values[i]], rows))
    expected += [left_by([values[first], values[i]], rows) for i in seconds[:2]]
  np.testing.assert_allclose([each.left for each in found], sorted(expected), rtol=1e-6)
  assert grid.pairs([]) == [] and len(grid.pairs([LINKS["y"], LINKS["inv"]])) == 2


def test_more_products_than_are_looked_at_at_a_time_are_all_compared(rows, monkeypatch):
  """The best stands in the last part."""
  x = np.column_stack([rows.x, rows.x[:, ::-1] ** 1.5])
  y = x[:, 0] ** -1 * x[:, 1] ** -1 * x[:, 2] ** -1 * x[:, 3] ** -1
  grid = grid_of(Rows(x, y, rows.weights), ((1, 2, -1),), columns=(0, 1, 2, 3))
  for chunk in (100, 255, 256):
    monkeypatch.setattr(power_products, "CHUNK", chunk)
    [found] = grid.sums([LINKS["y"]], [()])
    assert found[0].left < 1e-20 and len(found) == CONFIG.num_looked_at


def test_products_that_vanish_in_every_row_make_no_sum(rows):
  categories = np.column_stack([np.arange(40) % 2, 1 - np.arange(40) % 2, rows.x[:, 0]]).astype(float)
  target = power_products._Target(LINKS["y"], *[Rows(categories, rows.y, rows.weights)] * 2)
  grid = grid_of(Rows(categories, rows.y, rows.weights), ((1,),))
  found = grid._fitted(target, [[parse("x*z")], [parse("w")], [parse("w"), parse("x*z")]])
  assert len(found) == 1 and found[0].left == pytest.approx(left_by([categories[:, 2]], target.every))


# --- between the exponents of a coarse grid --------------------------------------------------------------------------


def target_of(rows):
  return power_products._Target(LINKS["y"], rows, rows)


def test_places_with_every_other_place_of_one_column():
  found = power_products._moved(np.array([[1, 2], [0, 0]]), 1, 3)
  assert found.tolist() == [[1, 0], [1, 1], [1, 2], [0, 0], [0, 1], [0, 2]]


def test_exponents_of_a_coarse_grid_have_their_places_in_the_finest(rows):
  grid = grid_of(rows, ((1, 2, -1, 0.5), (-1, 1)), 9, columns=(0, 1))
  assert grid.exponents == [[0, -1, 1]] * 2
  for index in range(9):
    places = grid._places(index)
    assert grid._product([(0, 1, 2, -1, 0.5)[place] for place in places]) == grid.node(index)


def test_a_regression_of_logarithms_weighted_as_y_gives_the_nearest_exponents(rng):
  grid_exponents = np.array([0, 1, 2, -1, 0.5, -0.5, 1.5])
  for seed in range(12):
    draw = np.random.default_rng(seed)
    x, weights = draw.uniform(0.3, 3, (30, 3)), draw.uniform(0.1, 5, 30)
    x[3, 2] = 0  # of which there is no logarithm
    y = x[:, 0] ** 1.3 / x[:, 1] ** 0.8 * np.exp(draw.normal(size=30)) + 2
    y[4] = 2.0  # nothing is left of it
    grid = grid_of(Rows(x, y, weights), (tuple(grid_exponents[1:]),))
    assert grid.exponents[2] == [0, 1, 2, 0.5, 1.5]
    keep = np.arange(30) != 4
    root = (np.sqrt(weights) * (y - 2))[keep]
    design = np.column_stack([np.log(x[keep, :2]), np.ones(29)])
    fitted = np.linalg.lstsq(root[:, None] * design, root * np.log(y[keep] - 2))[0]
    nearest = [int(np.argmin(np.abs(grid_exponents - each))) for each in fitted[:2]]
    assert grid._regression(target_of(Rows(x, y, weights)), 2.0) == [*nearest, 0]


def test_an_offset_is_the_constant_of_least_squares_beside_a_product(rows):
  grid = grid_of(rows, ((1, 2, -1),), columns=(0, 1))
  root = np.sqrt(rows.weights)
  design = np.column_stack([rows.x[:, 0] ** 2 / rows.x[:, 1], np.ones(40)])
  expected = np.linalg.lstsq(root[:, None] * design, root * rows.y)[0][1]
  assert grid._offset(target_of(rows), np.array([2, 3])) == pytest.approx(expected)


FINE = (1, 2, -1, -2, 0.5, -0.5, 3, -3)


@pytest.mark.parametrize(("text", "num_climbing"), [
  ("3*x**2*sqrt(z)/w**3", 1), ("0.5*x**3/(z**2*sqrt(w)) - 700", 1), ("x**3*z**2 + 40", 12)])
def test_exponents_are_changed_one_after_the_other_until_nothing_is_gained(text, num_climbing, rows, monkeypatch):
  rows = dataclasses.replace(rows, y=expression.evaluate(parse(text), rows.x))
  rounds = []
  real = power_products._moved
  monkeypatch.setattr(power_products, "_moved", lambda places, i, num: rounds.append(i) or real(places, i, num))
  grid = grid_of(rows, (FINE, (1, -1)), 27, num_climbing=num_climbing)
  [found] = grid.sums([LINKS["y"]], [()])
  assert found[0].left < 1e-20
  assert len(found) == num_climbing + 26  # those of the coarse grid as well
  assert rounds[:3] == [0, 1, 2] and 6 <= len(rounds) <= 3 * 6
  rounds.clear()
  finest = grid_of(rows, (FINE, (1, -1)), 10_000)
  assert finest.sums([LINKS["y"]], [()])[0][0].left < 1e-20 and not rounds
  few = grid_of(rows, (FINE, (1, -1)), 27, num_climbing=1, num_climbs=2)
  few.sums([LINKS["y"]], [()])
  assert len(rounds) <= 6


def test_products_that_are_small_in_every_row_are_compared_by_their_shape(rows):
  """Where one column is large the other is small: single precision does not hold the square of 1e-27."""
  small = np.where(np.arange(40)[:, None] % 2 == [0, 1], 1.0, 1e-9)
  x = rows.x[:, :2] * small
  y = 1e54 * x[:, 0] ** 3 * x[:, 1] ** 3
  grid = grid_of(Rows(x, y, rows.weights), ((1, 2, 3), (1,)), 4, columns=(0, 1))
  assert grid.exponents == [[0, 1]] * 2 and grid.sums([LINKS["y"]], [()])[0][0].left < 1e-20


def test_products_that_explain_as_much_stand_in_the_order_of_their_exponents(rows, monkeypatch):
  """Of two equal columns the powers p and q explain what q and p do."""
  real = power_products._gains  # but for rounding, which may depend on where a product stands
  monkeypatch.setattr(power_products, "_gains", lambda wholes, along: np.round(real(wholes, along), 5))
  x = np.repeat(rows.x[:, :1], 2, axis=1)
  rows = Rows(x, rows.y, rows.weights)
  grid = grid_of(rows, (FINE, (1, -1)), 9, columns=(0, 1), num_climbing=40, num_climbs=3)
  nodes = grid._climbed(target_of(rows), [], np.arange(1, 9))[:40]
  places = {grid._product([p, q]): (i, j) for (i, p), (j, q) in itertools.product(enumerate((0, *FINE)), repeat=2)}
  order = {places[node]: at for at, node in enumerate(nodes)}
  ties = [(order[i, j], order[j, i]) for i, j in order if i < j and (j, i) in order]
  assert len(ties) > 10 and all(one < other for one, other in ties)


def test_where_regression_fails_products_climb_from_the_best_of_the_coarse_grid(rows):
  """Half of the errors are as large as the values: logarithms tell nothing, the best coarse products do."""
  noise = np.where(np.arange(40) % 2, 1.0, -1.0) * np.random.default_rng(2).uniform(5, 6, 40)
  rows = dataclasses.replace(rows, y=rows.x[:, 0] ** 3 * rows.x[:, 1] ** 2 + noise)
  grid = grid_of(rows, (FINE, (1, -1)), 9, columns=(0, 1), num_climbing=4)
  [found] = grid.sums([LINKS["y"]], [()])
  every = [left_by([rows.x[:, 0] ** p * rows.x[:, 1] ** q], rows)
           for p, q in itertools.product((0, *FINE), repeat=2) if p or q]
  assert found[0].left == pytest.approx(min(every), rel=1e-9)
  lefts = sorted(each.left for each in found)
  np.testing.assert_allclose(lefts[:4], sorted(every)[:4], rtol=1e-9)


def test_products_climb_from_what_logarithms_of_y_itself_give_first(rows, monkeypatch):
  """Then of what the constant beside the best product leaves."""
  offsets, rows = [], dataclasses.replace(rows, y=3 * rows.x[:, 0] ** 2 + 7)
  real = power_products.Grid._regression
  monkeypatch.setattr(power_products.Grid, "_regression", lambda self, target, offset: (
    offsets.append(offset) or real(self, target, offset)))
  grid_of(rows, (FINE, (1, -1)), 27, num_climbs=3).sums([LINKS["y"]], [()])
  assert offsets[0] == 0 and offsets[-1] == pytest.approx(7)


# --- the source ------------------------------------------------------------------------------------------------------


def test_it_takes_from_two_to_eleven_columns_that_may_be_added_and_multiplied(rng):
  source = power_products.PowerProducts()
  for num, is_supported in ((1, False), (2, True), (11, True), (12, False)):
    task = make_task((rng.uniform(1, 2, (20, num)), np.arange(20.0)), None, SearchOptions())
    assert source.supports(task) == is_supported and source.init(task, None) is None
  ruled = SearchOptions(restrictions=Restrictions(forbidden=("+",)))
  assert not source.supports(make_task((rng.uniform(1, 2, (20, 2)), np.arange(20.0)), None, ruled))
  assert source.turns == CONFIG.turns


class _Grid:
  """In place of `Grid`: says what it is asked, and finds what it is told to."""

  asked: list = []
  left = 0.5

  def __init__(self, rows, columns, config, most):
    self._most = most

  def _found(self, links, sign):
    names = [name for link in links for name, each in LINKS.items() if each is link]
    self.asked.append((self._most, sign, names))
    long = parse("+".join(f"{k}.5*x**{k}.5*sin({k}.5*z)" for k in range(1, 9)))
    assert programs.size(long) > programs.MAX_TOKENS
    return [[power_products.Sum(self.left, lambda: long), *(
      power_products.Sum(self.left + 0.1, functools.partial(parse, f"{k}.5*x{sign}z**{i + 2}")) for k in range(1, 5))]
            for i, _ in enumerate(names)] + [[]]

  def sums(self, links, besides):
    self.asked.append(besides)
    return self._found(links, "*")

  def pairs(self, links):
    return self._found(links, "/")


@pytest.fixture
def grids(monkeypatch):
  monkeypatch.setattr(power_products, "Grid", _Grid)
  monkeypatch.setattr(_Grid, "asked", [])
  return _Grid


def ask(y, x, num=99, restrictions=None, **changes):
  options = SearchOptions(restrictions=restrictions) if restrictions else SearchOptions()
  config = dataclasses.replace(DEFAULT, power_products=config_of(**changes))
  task = make_task((x, y), NAMES, options)
  source = power_products.PowerProducts(config)
  [proposal] = source.propose([Question(task, None, None)], turn=0, num=num, clock=Clock())
  return [expression.sort_operands(node) for node in proposal.nodes]


def named(*texts):
  return [expression.sort_operands(parse(text)) for text in texts]


def test_products_alone_and_beside_all_columns_then_two_of_a_coarser_grid(rows, grids, monkeypatch):
  limits = {"links": ("y", "inv", "exp"), "pair_links": ("inv", "sqrt"), "max_products": 77, "max_paired_products": 33,
            "num_kept": 2}
  found = ask(rows.y, rows.x, **limits)
  assert grids.asked == [[(), (0, 1, 2)], (77, "*", ["y", "inv", "exp"]), (33, "/", ["inv"])]
  # Of each function in turn, the nearest two that are no longer than programs; of two products as well.
  assert found == named("1.5*x*z**2", "1.5*x*z**3", "1.5*x*z**4", "1.5*x/z**2",
                        "2.5*x*z**2", "2.5*x*z**3", "2.5*x*z**4", "2.5*x/z**2")
  assert ask(rows.y, rows.x, num=3, **limits) == found[:3]
  grids.asked.clear()
  for left, num_asked in ((1e-13, 3), (0.9e-13, 2)):
    monkeypatch.setattr(grids, "left", left)
    ask(rows.y, rows.x, **limits)
    assert len(grids.asked) == num_asked  # nothing is added to what is met
    grids.asked.clear()


def test_formulas_are_no_longer_than_programs(rows, grids, monkeypatch):
  def nested(num):
    node = parse("x")
    for _ in range(num - 1):
      node = expression.Node("sin", (node,))
    return node
  assert programs.size(nested(64)) == programs.MAX_TOKENS
  monkeypatch.setattr(grids, "_found", lambda self, links, sign: [[
    power_products.Sum(0.5, lambda: nested(65)), power_products.Sum(0.6, lambda: nested(64))]])
  assert ask(rows.y, rows.x) == [nested(64)]


def test_functions_that_are_undefined_or_forbidden_are_not_asked_for(rows, grids):
  limits = {"links": ("y", "inv", "exp", "logit"), "pair_links": ("exp", "y")}
  ask(-rows.y, rows.x, **limits)
  assert grids.asked[1][2] == ["y", "inv"] and grids.asked[2][2] == ["y"]
  grids.asked.clear()
  ask(rows.y / 4, rows.x, restrictions=Restrictions(forbidden=("inv",)), **limits)
  assert grids.asked[1][2] == ["y", "exp"] and grids.asked[2][2] == ["exp", "y"]


# --- polynomials -----------------------------------------------------------------------------------------------------


def test_monomials_of_a_polynomial_as_trees_and_tables():
  assert polynomials.node_of((0.0, 2.0, 1.0)) == parse("z**2*w") and polynomials.node_of((0.0,)).value == 1
  x = np.array([[2.0, 3], [4, 5]])
  assert polynomials.table([(1.0, 0.0), (2.0, 1.0)], x).tolist() == [[2, 12], [4, 80]]
  assert polynomials._single(1, 3, 3) == (0, 3, 0)


def test_what_stands_beside_each_power():
  found = polynomials._by_power({(2.0, 1.0): 3.0, (2.0, 0.0): 4.0, (0.0, 1.0): 5.0}, 0)
  assert found == {2: {(0, 1): 3, (0, 0): 4}, 0: {(0, 1): 5}}
  assert polynomials._by_power({(2.0, 1.0): 3.0}, 1) == {1: {(2, 0): 3}}


def roots_in(polynomial, column, some, tolerance=1e-6):
  return polynomials._factors_in(polynomial, column, some, tolerance)


def expanded(*roots):
  """Coefficients by the power of one variable of a polynomial with these roots."""
  return {(float(len(roots) - i),): float(c) for i, c in enumerate(np.real(np.poly(roots))) if c}


def test_linear_and_quadratic_factors_of_one_variable():
  some = np.ones((1, 1))
  found = roots_in(expanded(2.0, -3.0, 1 + 2j, 1 - 2j), 0, some)
  assert sorted(map(tuple, found)) == [(pytest.approx(-2), 1), (pytest.approx(3), 1),
                                       (pytest.approx(5), pytest.approx(-2), 1)]
  [wave] = roots_in(expanded(3j, -3j), 0, some)
  assert wave == [pytest.approx(9), 0.0, 1.0]  # rounding is no linear term


@pytest.mark.parametrize(("share", "is_linear"), [(0.8e-4, True), (1.6e-4, False)])
def test_roots_are_real_but_for_what_rounding_splits(share, is_linear):
  found = roots_in(expanded(2 + 2j * share, 2 - 2j * share), 0, np.ones((1, 1)))
  assert {len(each) for each in found} == ({2} if is_linear else {3}) and len(found) == 1 + is_linear


@pytest.mark.parametrize(("change", "is_factor"), [(0.8e-3, True), (2.5e-3, False)])
def test_roots_that_are_the_same_in_all_rows_are_factors(change, is_factor):
  """x - 2 - c*z, z from 0 to 1: roots lie within a tolerance of their median, a share of it."""
  some = np.column_stack([np.ones(5), np.linspace(0, 1, 5)])
  found = roots_in({(1.0, 0.0): 1.0, (0.0, 0.0): -2.0, (0.0, 1.0): -2 * change}, 0, some, tolerance=1e-3)
  assert found == ([[pytest.approx(-2 - change), 1.0]] if is_factor else [])


def test_roots_that_differ_by_just_the_tolerance_are_those_of_a_factor():
  some = np.array([[1.0, 0], [1, 0], [1, 1]])  # x - 2 - z
  for tolerance, expected in ((0.5, [[-2.0, 1.0]]), (0.49, [])):
    assert roots_in({(1.0, 0.0): 1.0, (0.0, 0.0): -2.0, (0.0, 1.0): -1.0}, 0, some, tolerance) == expected


@pytest.mark.parametrize("size", [1.0, 5.0])
def test_a_linear_term_below_the_tolerance_is_none(size):
  """A share of the root's size."""
  for share, expected in ((0.8e-3, 0.0), (1.6e-3, -1.6e-3 * size)):
    [found] = roots_in({(2.0,): 1.0, (1.0,): -share * size, (0.0,): size**2}, 0, np.ones((1, 1)), tolerance=1e-3)
    assert found == [pytest.approx(size**2), pytest.approx(expected), 1.0]


def test_a_row_without_a_root_has_no_factor():
  """Where z is 0 nothing depends on x."""
  some = np.array([[1.0, 1.0], [1.0, 0.0]])
  with np.errstate(invalid="ignore"):
    assert roots_in({(1.0, 1.0): 1.0, (0.0, 1.0): 2.0, (0.0, 0.0): 0.0}, 0, some) == []


def test_factors_whose_roots_are_a_hundredth_apart_are_joined_at_their_mean():
  joined = polynomials._joined
  assert joined([[2.0, 1.0], [2.019, 1.0]]) == [[pytest.approx(2.0095), 1.0]] * 2
  assert joined([[2.0, 1.0], [2.03, 1.0]]) == [[2.0, 1.0], [2.03, 1.0]]
  assert joined([[4.0, 0.0, 1.0], [4.0, 0.0, 1.0]]) == [[4.0, 0.0, 1.0]] * 2
  assert joined([[4.0, 0.0, 1.0], [4.0, 1.0], [4.01, 1.0]]) == [
    [4.0, 0.0, 1.0], [pytest.approx(4.005), 1.0], [pytest.approx(4.005), 1.0]]
  assert joined([[198.0, 1.0], [200.0, 1.0]]) == [[199.0, 1.0]] * 2  # by just a hundredth of the second as well
  assert joined([[100.0, 1.0], [101.015, 1.0]]) == [[100.0, 1.0], [101.015, 1.0]]


def test_coefficients_that_a_division_has_left_are_dropped():
  for share, is_kept in ((1e-9, False), (1.6e-9, True)):
    # (x + 1)*(x**2 + share): the quotient keeps what is no rounding.
    found = polynomials._divided({(3.0,): 1.0, (2.0,): 1.0, (1.0,): share, (0.0,): share}, 0, [1.0, 1.0])
    assert set(found) == ({(2.0,), (0.0,)} if is_kept else {(2.0,)})
  some = {(2.0, 1.0): 1.0, (0.0, 1.0): -4.0}
  assert polynomials._divided(some, 0, [-2.0, 1.0]) == {(1.0, 1.0): 1.0, (0.0, 1.0): 2.0}
  assert polynomials._divided({(4.0,): 1.0, (0.0,): -16.0}, 0, [4.0, 0.0, 1.0]) == {(2.0,): 1.0, (0.0,): -4.0}


def test_polynomials_are_looked_at_in_few_rows_from_the_first_to_the_last():
  """x - 2 is a factor where z is below 1, which the last row is not."""
  x = np.column_stack([np.linspace(3, 4, 50), np.r_[np.zeros(49), 1.0]])
  polynomial = {(1.0, 0.0): 1.0, (0.0, 0.0): -2.0, (0.0, 1.0): -1.0}
  for some in (x, x[::-1]):
    assert polynomials.factors(polynomial, some, tolerance=1e-6, num_rows=3) == ([], polynomial)
  middle = np.column_stack([np.linspace(3, 4, 50), np.r_[np.zeros(10), 1.0, np.zeros(39)]])
  found, rest = polynomials.factors(polynomial, middle, tolerance=1e-6, num_rows=3)
  assert found == [{(0.0, 0.0): pytest.approx(-2), (1.0, 0.0): 1.0}] and (1.0, 0.0) not in rest


def test_polynomials_have_what_is_common_to_their_terms_as_a_factor():
  node = polynomials.to_node({(2.0, -1.0): 2.5, (1.0, 0.0): 1.5})
  x = np.random.default_rng(0).uniform(1, 2, (9, 2))
  np.testing.assert_allclose(expression.evaluate(node, x), 2.5 * x[:, 0] ** 2 / x[:, 1] + 1.5 * x[:, 0])
  factors = {part for part in expression.flatten(node, "*") if not part.is_number}
  assert parse("x") in factors and parse("1/z") in factors


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "yes", "no"), [
  ("y", [-1.0, 0], None), ("inv", [-1.0, 1], [0.0, 2]), ("pow2", [0.0, 1], [-1e-9, 1]), ("pow3", [-1.0, 0], None),
  ("exp", [1e-9, 1], [0.0, -1]), ("acos", [0.0, np.pi], [-1e-9, 1]), ("acos", [0.0, np.pi], [0.0, 3.15]),
  ("asin", [-1.57, 0], [np.pi / 2, 0]), ("ln", [29.9, 0], [30.0, 0]), ("atan", [-1.57, 0], [np.pi / 2, 0]),
  ("complement_exp", [-0.9, 0.99], [0.2, 1.0]), ("complement_exp", [0.1, 0.2], [-1.5, 0.2]),
  ("atan_inv", [-1.57, 1.57], [np.pi / 2, 1]), ("atan_inv", [-1.57, 1e-9], [0, 1])])
def test_where_functions_of_y_may_be_asked(name, yes, no):
  assert LINKS[name].is_defined(np.array(yes)) is True
  assert no is None or LINKS[name].is_defined(np.array(no)) is False


@pytest.mark.parametrize("name", LINKS)
def test_a_formula_needs_the_operators_that_undo_the_function(name):
  node = LINKS[name].undo(expression.variable(0))
  assert {part.token for part in expression.walk(node) if part.args} == set(LINKS[name].operators)
  x = np.array([[0.3], [0.8]])
  by_hand = {"y": x, "inv": 1 / x, "ln": np.log(x), "exp": np.exp(x), "sqrt": np.sqrt(x), "sqrt_inv": x**-0.5,
             "pow2": x**2, "pow3": x**3, "asin": np.arcsin(x), "acos": np.arccos(x), "logit": 1 / (1 + np.exp(x)),
             "atan": np.arctan(x), "atan_inv": np.arctan(1 / x), "complement_exp": 1 - np.exp(x)}
  np.testing.assert_allclose(expression.evaluate(node, x), by_hand[name][:, 0])


def test_roots_are_no_steeper_than_at_a_millionth_of_the_largest():
  y = np.array([0.0, 1e-7, 3e-6, 4.0])
  np.testing.assert_allclose(LINKS["pow2"].derivative(y), 0.5 / np.sqrt([4e-6, 4e-6, 4e-6, 4]))
  np.testing.assert_allclose(LINKS["pow3"].derivative(-y), 1 / (3 * np.array([4e-6, 4e-6, 4e-6, 4]) ** (2 / 3)))


def test_a_target_that_no_row_says_anything_of_is_none(rows):
  grid = grid_of(rows, ((1,),), columns=(0,))
  assert len(grid._targets([LINKS["y"], LINKS["inv"]])) == 2
  grid._some = SimpleNamespace(x=rows.x, y=np.ones(40), weights=rows.weights)  # no row that is looked at first differs
  assert grid._targets([LINKS["y"]]) == []
  grid._some, grid._rows = rows, dataclasses.replace(rows, y=np.ones(40))
  assert grid._targets([LINKS["y"]]) == []
