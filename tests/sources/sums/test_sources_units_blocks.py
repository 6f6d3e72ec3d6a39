"""Alternating least squares, blocks, lines, parts and the library by themselves, with what they call put aside."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.sources import closed_forms
from symformer_jax.sources.in_turn import in_turn
from symformer_jax.sources.sums import families, library, parts, pursuit, requested_functions
from symformer_jax.sources.sums.columns import Union
from symformer_jax.sources.unknowns import alternating, block_exchange

NAMES = ("x", "z", "w")


def parse(text):
  return parser.parse(text, NAMES)


def separable(**changes):
  return dataclasses.replace(DEFAULT.separable, **changes)


# --- alternating least squares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 1e200, 1e-200])
def test_a_product_and_a_sum_beside_it_are_found_in_any_units(unit, rng):
  u, v, w = rng.uniform(-1, 1, (3, 60))
  weights = rng.uniform(0.5, 2, 60)
  designs = [np.column_stack([np.ones(60), u]), np.column_stack([np.ones(60), v, v**2])]
  target = unit * ((2 + u) * (3 + v + 0.5 * v**2) + 4 * w)
  config = separable(num_sweeps=60, least_gain=1e-9, num_starts=1)
  fit = alternating.fit_product(designs, target, weights, beside=w[:, None], config=config)
  first, second, added = fit.coefficients
  np.testing.assert_allclose((designs[0] @ first) * (designs[1] @ second) + w * added[0], target, rtol=1e-4)
  assert fit.left < 1e-8 and np.mean((designs[0] @ first) ** 2) == pytest.approx(1)
  without = alternating.fit_product(designs, target, weights, config=config)
  assert len(without.coefficients) == 2
  product = (designs[0] @ without.coefficients[0]) * (designs[1] @ without.coefficients[1])
  mean = np.average(target / unit, weights=weights)
  expected = weights @ ((target - product) / unit) ** 2 / (weights @ (target / unit - mean) ** 2)
  assert without.left == pytest.approx(expected, rel=1e-6) and expected > 0.1


def sweeps(monkeypatch, errors):
  """Where sweeps begin, and coefficients that say which start they are of."""
  begun = []

  def swept(designs, rest, root, goal, coefficients, config):
    begun.append([each.copy() for each in coefficients])
    number = len(begun) - 1
    return errors[number], [*(np.full(design.shape[1], float(number)) for design in designs), np.zeros(0)]
  monkeypatch.setattr(alternating, "_swept", swept)
  return begun


@pytest.mark.parametrize(("errors", "best"), [((3.0, 2.0, 1.0), 2), ((1.0, 2.0, 1.0), 0), ((3.0, 1.0, 2.0), 1)])
def test_the_first_start_is_all_ones_and_the_best_is_taken(errors, best, monkeypatch, rng):
  begun = sweeps(monkeypatch, errors)
  designs = [rng.normal(size=(9, 3)), rng.normal(size=(9, 2))]
  fit = alternating.fit_product(designs, rng.normal(size=9), np.ones(9), config=separable(num_starts=3, spread=0.5))
  assert fit.coefficients[0].tolist() == [best] * 3 and len(begun) == 3
  assert [each.tolist() for each in begun[0]] == [[1, 0, 0], [1, 0]]
  for some in begun[1:]:
    for each in some:
      assert each[0] == 1 and np.all((each[1:] != 0) & (np.abs(each[1:]) < 0.5 * 4))
    assert some[0][1] != some[0][2]  # each function has a start of its own
  begun.clear()
  alternating.fit_product(designs[:1], rng.normal(size=9), np.ones(9), config=separable(num_starts=3))
  assert len(begun) == 1  # of one factor the answer is that of least squares


def test_a_product_of_columns_is_the_last_start_where_it_is_asked_for_and_is_not_one(monkeypatch, rng):
  begun = sweeps(monkeypatch, [1.0] * 9)
  designs = [np.column_stack([np.ones(9), rng.normal(size=(9, 2))]) for _ in range(2)]
  for target, columns in ((designs[1][:, 1], [[1, 0, 0], [0, 1, 0]]), (np.ones(9) + 0.01 * rng.normal(size=9), None)):
    for is_asked in (True, False):
      begun.clear()
      alternating.fit_product(designs, target, np.ones(9), config=separable(num_starts=2, from_columns=is_asked))
      last = [[each.tolist() for each in begun[2]]] if len(begun) > 2 else []
      assert len(begun) <= 3 and last == ([columns] if is_asked and columns else [])


def test_starts_are_so_far_from_one_as_the_config_says(monkeypatch, rng):
  begun = sweeps(monkeypatch, [1.0] * 400)
  designs = [np.ones((9, 3)), np.ones((9, 2))]
  alternating.fit_product(designs, rng.normal(size=9), np.ones(9), config=separable(num_starts=400, spread=0.3))
  drawn = np.concatenate([each[1:] for some in begun[1:] for each in some])
  assert np.std(drawn) == pytest.approx(0.3, rel=0.1) and abs(np.mean(drawn)) < 0.03


def test_sweeps_end_with_one_that_gains_little(monkeypatch, rng):
  calls = []
  real = alternating._least_squares
  monkeypatch.setattr(alternating, "_least_squares", lambda design, goal: calls.append(1) or real(design, goal))
  u, v = rng.uniform(-1, 1, (2, 60))
  designs = [np.column_stack([np.ones(60), u]), np.column_stack([np.ones(60), v])]
  noisy = (2 + u) * (3 + v) + rng.normal(size=60)

  def count(**changes):
    calls.clear()
    fit = alternating.fit_product(designs, noisy, np.ones(60), config=separable(num_starts=1, **changes))
    return len(calls) // 2, fit.left
  most, least = count(num_sweeps=12, least_gain=-1.0)
  few, left = count(num_sweeps=12, least_gain=1e-3)
  assert most == 12 and 1 < few < 12 and left == pytest.approx(least, rel=1e-3)
  # A sweep that gains just so much goes on; at the first there is nothing to compare with.
  assert count(num_sweeps=12, least_gain=0.999)[0] == 2 and count(num_sweeps=1, least_gain=1e-3)[0] == 1
  calls.clear()
  alternating.fit_product(designs[:1], noisy, np.ones(60), config=separable(num_sweeps=12, least_gain=-1.0))
  assert len(calls) == 1


def test_a_sweep_that_gains_nothing_is_the_last(monkeypatch):
  calls = []
  real = alternating._least_squares
  monkeypatch.setattr(alternating, "_least_squares", lambda design, goal: calls.append(1) or real(design, goal))
  ones, goal = np.ones((8, 1)), np.arange(8.0)
  alternating.fit_product([ones, ones], goal, np.ones(8), config=separable(num_starts=1, num_sweeps=9, least_gain=0.0))
  assert len(calls) == 2 * 2


def test_what_is_not_finite_leaves_everything(rng):
  design = np.column_stack([np.ones(9), rng.normal(size=9)])
  root, goal = np.full(9, 1 / 3), rng.normal(size=9)
  with np.errstate(all="ignore"):
    found, _ = alternating._swept(
      [design, design], np.zeros((9, 0)), root, np.r_[goal[:8], np.nan], [np.eye(1, 2)[0]] * 2, separable())
  assert found == np.inf
  nothing = alternating.fit_product([np.zeros((9, 2)), design], goal, np.ones(9), config=separable())
  assert np.isfinite(nothing.left) and not np.any(nothing.coefficients[0])  # of a factor 0


def test_least_squares_by_a_normal_matrix_are_as_good_as_others(rng):
  x = np.linspace(0, 1, 40)
  design, goal = np.vander(x, 6), rng.normal(size=40)
  np.testing.assert_allclose(
    design @ alternating._least_squares(design, goal)[0], design @ np.linalg.lstsq(design, goal)[0], atol=1e-8)
  exact = design @ np.arange(1.0, 7)
  np.testing.assert_allclose(alternating._least_squares(design, exact)[0], np.arange(1.0, 7), rtol=1e-6)
  assert alternating._least_squares(np.zeros((4, 2)), np.ones(4))[0].tolist() == [0, 0]
  twice = np.column_stack([x, x])
  np.testing.assert_allclose(twice @ alternating._least_squares(twice, 3 * x)[0], 3 * x, rtol=1e-9)


def set_partitions(columns):
  """By definition: every way to name the parts, names in the order of their first members."""
  found = set()
  for labels in itertools.product(range(len(columns)), repeat=len(columns)):
    found.add(frozenset(frozenset(c for c, each in zip(columns, labels, strict=True) if each == label)
                        for label in set(labels)))
  return found


@pytest.mark.parametrize("num", [1, 2, 3, 4])
def test_of_few_columns_all_partitions_few_factors_first(num):
  columns = tuple(range(5, 5 + num))
  found = alternating.partitions(columns, config=separable(max_partitioned=4))
  whole = {each for each in set_partitions(columns) if len(each) > 1}
  once = [each for each in found if sum(map(len, each)) == num]
  assert {frozenset(map(frozenset, each)) for each in once} == whole and len(once) == len(whole)
  twice = {(frozenset(map(frozenset, each)), column) for each in set_partitions(columns) for part in each
           if len(part) > 1 for column in part}
  more = [each for each in found if sum(map(len, each)) > num]
  assert len(more) == len(twice) and {(frozenset(map(frozenset, each[:-1])), each[-1][0]) for each in more} == twice
  assert all(len(each) > 1 for each in found)
  keys = [(len(each), sum(map(len, each))) for each in found]
  assert keys == sorted(keys)


def test_of_more_columns_than_are_partitioned_one_or_two_stand_apart():
  found = alternating.partitions((3, 5, 7), config=separable(max_partitioned=2))
  assert found == [((3,), (5, 7)), ((5,), (3, 7)), ((7,), (3, 5)), ((3, 5), (7,)), ((3, 7), (5,)), ((5, 7), (3,)),
                   ((3,), (5,), (7,)), ((3, 5), (7,)), ((3, 7), (5,)), ((5, 7), (3,))]
  assert len(alternating.partitions((3, 5, 7), config=separable(max_partitioned=3))) == 4 + 3 + 6


# --- blocks ----------------------------------------------------------------------------------------------------------


def varying(**changes):
  return dataclasses.replace(DEFAULT.varying, **changes)


@pytest.mark.parametrize(("share", "is_there"), [(0.8e-9, False), (1.6e-9, True)])
def test_directions_of_a_block_that_a_constant_explains_but_for_rounding_are_none(share, is_there):
  wave = np.array([1.0, -1, 1, -1])
  found = block_exchange.products_of((1 + share * wave)[:, None], np.ones((4, 1)), wave + 7, np.ones(4))
  assert found.num_blocks == 1 and found.block_size == 1
  assert abs(found.along[0]) == pytest.approx(1.0 if is_there else 0.0, abs=1e-6)
  assert found.within.tolist() == [[pytest.approx(1.0 if is_there else 0.0)]]
  nothing = block_exchange.products_of(np.zeros((4, 1)), np.ones((4, 1)), wave + 7, np.ones(4))
  assert nothing.along.tolist() == [0] and nothing.within.tolist() == [[0]]


def blocks_of(rng, num_blocks=9, num_rows=40, size=2):
  known = rng.normal(size=(num_rows, num_blocks))
  basis = np.column_stack([np.ones(num_rows), *rng.normal(size=(size - 1, num_rows))])
  return block_exchange.products_of(known, basis, rng.normal(size=num_rows), rng.uniform(0.5, 2, num_rows))


def test_places_of_blocks_are_those_of_their_columns(rng):
  products = blocks_of(rng, 4, size=3)
  assert products.num_blocks == 4 and products.places(np.array([[2, 0], [1, 3]])).tolist() == [
    [6, 7, 8, 0, 1, 2], [3, 4, 5, 9, 10, 11]]
  assert block_exchange.left_by(products, ()) == 1.0
  diagonal = np.linalg.norm(products.within[:3, :3] - np.eye(3))
  assert diagonal < 1e-9


def test_sets_grow_from_the_best_single_blocks_until_the_target_is_met(rng, monkeypatch):
  products, calls = blocks_of(rng), []
  left = {2: 1e-3, 3: 1e-5, 4: 1e-9}

  def grown(products, begun, config):
    calls.append(list(begun))
    size = len(begun[0]) + 1
    return [(tuple(range(size)), left[size])] if size in left else []
  monkeypatch.setattr(block_exchange, "_grown", grown)
  single = sorted(range(9), key=lambda i: block_exchange.left_by(products, (i,)))

  def ask(max_size, **changes):
    calls.clear()
    return block_exchange.best_sets(products, max_size=max_size, config=varying(**changes))
  found = ask(4, num_kept=3, num_exchanged=2)
  assert [blocks for blocks, _ in found[0]] == [(i,) for i in single[:3]]
  assert [error for _, error in found[0]] == [block_exchange.left_by(products, (i,)) for i in single[:3]]
  assert calls == [[(i,) for i in single[:4]], [(0, 1)], [(0, 1, 2)]] and len(found) == 4
  assert len(ask(4, num_kept=6, num_exchanged=2)[0]) == 6 and calls[0] == [(i,) for i in single[:6]]
  assert len(ask(4, exact=1e-5)) == 4 and len(ask(4, exact=1.1e-5)) == 3 and len(ask(2)) == 2
  assert len(ask(99)) == 4 and len(calls) == 4  # none of five
  left[5] = left[6] = left[7] = left[8] = left[9] = left[10] = 0.5
  left[4] = 0.5
  assert len(ask(99)) == 9  # no more than there are blocks


def test_blocks_that_leave_as_much_stand_in_their_order(rng):
  products = block_exchange.Products(np.eye(40), np.tile([0.0625, 0.125], 20), 1)  # every other explains more
  found = block_exchange.best_sets(products, max_size=1, config=varying(num_kept=40))
  assert [blocks for blocks, _ in found[0]] == [(i,) for i in (*range(1, 40, 2), *range(0, 40, 2))]
  grown = block_exchange._grown(products, [(38,)], varying(num_rounds=0, num_completed=3, num_kept=9))
  assert [blocks for blocks, _ in grown] == [(1, 38), (3, 38), (5, 38)]


@pytest.mark.parametrize("num_rounds", [0, 1, 3])
def test_each_block_of_the_best_sets_is_exchanged_for_the_best_beside_the_others(num_rounds, rng):
  """The sets that the definition makes, round by round."""
  products = blocks_of(rng)
  config = varying(num_rounds=num_rounds, num_completed=2, num_exchanged=2, num_kept=5)
  found, asked, waiting = {}, set(), [(0, 1), (2, 5), (3, 8)]
  for _ in range(1 + num_rounds):
    waiting = [some for some in waiting if some not in asked]
    asked |= set(waiting)
    for some in waiting:
      left = {i: block_exchange.left_by(products, tuple(sorted((*some, i)))) for i in set(range(9)) - set(some)}
      for i in sorted(left, key=left.get)[:2]:
        found[tuple(sorted((*some, i)))] = left[i]
    best = sorted(found, key=found.get)[:2]
    waiting = [each[:i] + each[i + 1:] for each in best for i in range(3)]
  grown = block_exchange._grown(products, [(0, 1), (2, 5), (3, 8)], config)
  assert [blocks for blocks, _ in grown] == sorted(found, key=found.get)[:5]
  assert [error for _, error in grown] == [block_exchange.left_by(products, blocks) for blocks, _ in grown]
  two = block_exchange.Products(products.within[:4, :4], products.along[:4], 2)
  [(blocks, _)] = block_exchange._grown(two, [(0,)], config)  # a block is not completed by itself
  assert blocks == (0, 1)


def test_no_set_is_completed_twice(rng, monkeypatch):
  products, asked = blocks_of(rng), []
  real = block_exchange.left_by_one_more
  monkeypatch.setattr(block_exchange, "left_by_one_more", lambda products, sets: (
    asked.append(sets.tolist()), real(products, sets))[1])
  block_exchange._grown(products, [(0, 1), (2, 5)], varying(num_rounds=50))
  every = [tuple(some) for sets in asked for some in sets]
  assert len(every) == len(set(every)) and len(asked) < 51


# --- lines -----------------------------------------------------------------------------------------------------------


def columns_in(node):
  return {part.value for part in expression.walk(node) if part.token == expression.VARIABLE}


@pytest.mark.parametrize(("share", "is_needed"), [(0.8e-12, False), (1.6e-12, True)])
def test_a_line_that_leaves_a_billionth_of_a_thousandth_of_y_is_exact(share, is_needed):
  wave = np.where(np.arange(32) % 2, 1.0, -1.0)
  slow = np.where(np.arange(32) // 2 % 2, 1.0, -1.0)
  rows = Rows(np.column_stack([wave, slow]), wave + share * slow, np.ones(32))
  lines = closed_forms.fit(rows, (0, 1))
  assert columns_in(lines[-1]) == ({0, 1} if is_needed else {0})


def test_the_line_of_the_least_criterion_is_that_of_the_definition_where_rows_have_no_weight():
  """Sixty data sets; the rows of weight 0 count neither as rows nor by their errors."""
  for seed in range(60):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(24, 3)), rng.uniform(0.5, 2, 24)
    weights[:8] = 0
    rows = Rows(x, x @ [1.0, 0.5, 0.3] + rng.normal(size=24), weights)
    root = np.sqrt(weights)

    def criterion(some, x=x, rows=rows, root=root):
      design = root[:, None] * np.column_stack([x[:, list(some)], np.ones(24)])
      left = np.sum((root * rows.y - design @ np.linalg.lstsq(design, root * rows.y)[0]) ** 2)
      return 16 * math.log(left) + len(some) * math.log(16)
    path = [(0, 1, 2)]
    while path[-1]:  # the least needed one goes
      path.append(min(itertools.combinations(path[-1], len(path[-1]) - 1), key=lambda some: (
        criterion(some) - len(some) * math.log(16))))
    best = set(min(path, key=criterion))
    expected = [set(), {0, 1, 2}, *([best] if best not in ({0, 1, 2}, set()) else [])]
    assert [columns_in(node) for node in closed_forms.fit(rows, (0, 1, 2))] == expected


def test_closed_forms_are_candidates_with_their_weighted_errors(rng):
  x, weights = rng.uniform(1, 2, (20, 2)), rng.uniform(0.2, 2, 20)
  task = make_task((x, x[:, 0] + rng.normal(size=20), weights), NAMES[:2], SearchOptions())
  source = closed_forms.ClosedForms()
  assert source.supports(task) and source.init(task, None) is None and source.turns == (1,)
  [proposal] = source.propose([Question(task, None, None)], turn=0, num=1, clock=None)
  rows = task.fit_rows
  assert len(proposal.candidates) >= 2
  for each in proposal.candidates:
    values = expression.evaluate(each.node, rows.x) * np.ones(20)
    assert each.mse == pytest.approx(np.average((values - rows.y) ** 2, weights=rows.weights))
    assert each.source == source.name == "closed_forms"


def test_columns_that_stand_there_twice_share_their_factor():
  """As least squares of the least length has it; none is 0."""
  x = np.repeat(np.arange(6.0)[:, None], 2, axis=1)
  lines = closed_forms.fit(Rows(x, 3 * x[:, 0] + 1, np.ones(6)), (0, 1))
  assert columns_in(lines[1]) == {0, 1} and len(columns_in(lines[2])) == 1
  np.testing.assert_allclose(expression.evaluate(lines[1], x), 3 * x[:, 0] + 1)
  assert [each.value for each in closed_forms.fit(Rows(x, np.zeros(6), np.ones(6)), (0, 1))[:1]] == [0]


# --- parts -----------------------------------------------------------------------------------------------------------


def parts_of(texts, x, variables=(), **changes):
  found = parts.Parts([parse(text) for text in texts], x, variables, dataclasses.replace(DEFAULT.terms, **changes))
  return [found.node(i) for i in range(found.columns.shape[1])], found


def test_so_many_parts_of_sums_and_so_many_from_inside(rng):
  x = rng.uniform(1, 3, (20, 3))
  texts = ["x*z + sin(x) + exp(w)", "log(x + z) + x**2"]
  assert parts_of(texts, x, max_outer=2, max_inner=0)[0] == [parse("x*z"), parse("sin(x)")]
  outer = [parse(text) for text in ("x*z", "sin(x)", "exp(w)", "log(x + z)", "x**2")]
  assert parts_of(texts, x, max_outer=9, max_inner=0)[0] == outer
  assert parts_of(texts, x, max_outer=9, max_inner=1)[0] == [*outer, parse("x")]
  assert parts_of(texts, x, (1,), max_outer=1, max_inner=2)[0][:2] == [parse("z"), parse("x*z")]
  minus = [expression.Node("neg", (parse("2.5*x*z"),)), parse("2.5"),
           expression.Node("neg", (expression.Node("neg", (parse("sin(x)"),)),))]
  found = parts.Parts(minus, x, (), DEFAULT.terms)
  assert [found.node(i) for i in range(2)] == [parse("x*z"), parse("sin(x)")]


def test_parts_are_no_longer_than_allowed_and_have_the_shortest_form(rng):
  x = rng.uniform(1, 3, (20, 3))
  for most, expected in ((4, [parse("sin(x*z)")]), (3, [])):
    assert [node for node in parts_of(["sin(x*z)"], x, max_part_nodes=most)[0] if node.token == "sin"] == expected
  nodes, found = parts_of(["sqrt(x**2)*z", "x*z"], x, max_inner=0)
  assert nodes == [parse("x*z")] and found.scale(0) == np.max(x[:, 0] * x[:, 1])
  assert parts_of(["x*z", "sqrt(x**2)*z"], x, max_inner=0)[0] == [parse("x*z")]
  assert parts_of(["x*z", "z*x"], x, max_inner=0)[0] == [parse("x*z")]  # of equally short ones the first
  line = np.linspace(1, 3, 20)[:, None] * np.ones(3)
  for digits, count in ((4, 1), (6, 2)):
    found = parts.Parts([parse("sqrt(x)"), parse("sqrt(x + 0.00002)")], line, (), dataclasses.replace(
      DEFAULT.terms, max_inner=0, value_digits=digits))
    assert found.columns.shape == (20, count)


def test_parts_that_hardly_vary_or_are_undefined_are_none():
  least = pursuit.INDEPENDENT
  wave = np.where(np.arange(20) % 2, 1.0, -1.0)[:, None]
  for share, is_part in ((0.4 * least, False), (0.6 * least, True)):  # from 1 - share to 1 + share
    assert bool(parts_of(["x"], (1 + share * wave) * np.ones(3), max_inner=0)[0]) is is_part
  assert parts_of(["log(x)"], wave * np.ones(3), max_inner=0)[0] == []
  assert parts_of(["x", "sin(x)"], 0 * wave * np.ones(3), max_inner=0)[0] == []
  nodes, found = parts_of(["x"], -5 * wave * np.ones(3), max_inner=0)
  assert found.scale(0) in (5, -5) and found.columns[:, 0].tolist() == (-5 * wave[:, 0] / found.scale(0)).tolist()
  assert found.tiers.tolist() == [families.ANY] and found.groups.tolist() == [0]


# --- the library -----------------------------------------------------------------------------------------------------


def atoms_of(monkeypatch, some, x=None, **kwargs):
  monkeypatch.setattr(library.families, "make_families", lambda space: iter(some))
  monkeypatch.setattr(requested_functions, "make_families", lambda space: iter(()))
  x = np.linspace(1, 2, 9)[:, None] if x is None else x
  return library.Atoms(x, range(x.shape[1]), **kwargs)


def family_of(columns, text="x", **kwargs):
  return families.Family(np.column_stack(columns), lambda g: parse(f"{g + 2}.5*{text}"), **kwargs)


U = np.linspace(1, 2, 9)


def test_columns_of_the_library_have_their_formulas_groups_and_scales(monkeypatch):
  some = [family_of([U, U**2], tier=1), family_of([U**3, U**4], "z", tier=2, is_mixed=True), family_of([U**2, U**0]),
          family_of([U**5], "w"), family_of([2 * U**6, U**7, U**8], tier=1)]
  atoms = atoms_of(monkeypatch, some)
  assert atoms.columns.shape == (9, 8) and atoms.columns.dtype == np.float32
  assert atoms.tiers.tolist() == [1, 1, 2, 2, 0, 1, 1, 1]
  assert len(set(atoms.groups[[0, 2, 3, 4, 5]].tolist())) == 5 and atoms.groups[0] == atoms.groups[1]
  assert atoms.groups[5] == atoms.groups[6] == atoms.groups[7]
  texts = ["2.5*x", "3.5*x", "2.5*z", "3.5*z", "2.5*w", "2.5*x", "3.5*x", "4.5*x"]
  powers, factors = [1, 2, 3, 4, 5, 6, 7, 8], [1, 1, 1, 1, 1, 2, 1, 1]
  for i, (text, p, factor) in enumerate(zip(texts, powers, factors, strict=True)):
    assert expression.sort_operands(atoms.node(i)) == expression.sort_operands(parse(text))
    assert atoms.scale(i) == factor * 2.0**p
    np.testing.assert_allclose(atoms.columns[:, i], (U / 2) ** p, rtol=1e-6)
  least = np.iinfo(int).max
  assert atoms.complexities.tolist() == [3, 3, 3, 3, least, 3, 3, 3]


def test_a_family_without_a_column_leaves_the_groups_apart(monkeypatch):
  atoms = atoms_of(monkeypatch, [family_of([U]), family_of([U**0], is_mixed=True), family_of([U**2])])
  assert len(set(atoms.groups.tolist())) == 2 and [atoms.scale(i) for i in range(2)] == [2, 4]


@pytest.mark.parametrize(("size", "is_there"), [
  (1e-30, False), (1.6e-30, True), (0.9e30, True), (1e30, False), (np.nan, False)])
def test_columns_that_single_precision_holds(size, is_there, monkeypatch):
  assert atoms_of(monkeypatch, [family_of([size * U / 2])]).columns.shape[1] == is_there


@pytest.mark.parametrize(("share", "is_there"), [(0.8e-5, False), (1.6e-5, True)])
def test_columns_that_vary_by_more_than_rounding_of_single_precision(share, is_there, monkeypatch):
  assert atoms_of(monkeypatch, [family_of([1 - share * (2 - U)])]).columns.shape[1] == is_there


def test_forbidden_operators_and_columns_seen_before_are_left_out(monkeypatch):
  some = [family_of([U, U**2]), family_of([-3 * U, U**3], "log(x)"), family_of([U**4], "sin(x)")]
  assert atoms_of(monkeypatch, some).columns.shape[1] == 4
  allowed = atoms_of(monkeypatch, some, allows=lambda token: token != "ln")
  assert [allowed.scale(i) for i in range(3)] == [2, 4, 16]
  assert atoms_of(monkeypatch, some, allows=lambda token: token != "*").columns.shape[1] == 0
  equal = dataclasses.replace(DEFAULT.library, equal_values=3.0)
  assert atoms_of(monkeypatch, some[:1], config=equal).columns.shape[1] == 1  # all agree to three times their size


def test_a_column_of_two_values_stands_for_all_its_functions(monkeypatch):
  x = np.column_stack([np.repeat([1.0, 3, 3], 3), U, np.repeat([1.0, 2, 3], 3)])
  some = [family_of([x[:, 0] ** 2, U * x[:, 0], x[:, 2], 7 - x[:, 0]], "w")]
  atoms = atoms_of(monkeypatch, some, x)
  assert atoms.node(0) == parse("x") and atoms.tiers[0] == families.MONOMIAL
  assert [expression.sort_operands(atoms.node(i)) for i in range(1, len(atoms.tiers))] == [
    expression.sort_operands(parse(text)) for text in ("w*3.5", "w*4.5")]
  assert atoms_of(monkeypatch, some, x[:, 1:]).columns.shape[1] == 4  # without such a column all differ


def test_columns_of_two_values_that_part_the_rows_alike_are_one():
  first = np.array([0.5, 1, 1, 0.5])
  columns = np.column_stack([first, 1.5 - first, [1, 1, 1, 0.3], [0.2, 0.2, 0.2, 1], [0.1, 0.2, 1, 0.1]])
  seen = set()
  assert library._is_new_pair(columns, seen).tolist() == [True, False, True, False, True]
  assert library._is_new_pair(columns, seen).tolist() == [False, False, False, False, True]
  # Values that agree to the share that is asked for are one.
  near = np.array([[0.5, 1, 1 - 0.8e-3, 0.5 + 0.8e-3], [0.5, 1, 1 - 1.6e-3, 0.5]]).T
  assert library._is_new_pair(np.column_stack([first, near]), set(), 1e-3).tolist() == [True, False, True]


def test_values_that_differ_by_just_the_share_are_not_one():
  for column in ([0.5, 1.0, 1.0], [0.25, 0.75, 1.0]):
    other = np.array(column)[:, None]
    seen = set()
    again = [library._is_new_pair(other, seen, 0.25).tolist() for _ in range(2)]
    assert again == [[True], [len(set(column)) == 3]]  # of two values the second time it is known
  seen = set()
  assert [library._is_new_pair(np.array([[0.5], [1.0], [1.0]]), seen, 0.5)[0] for _ in range(2)] == [True, False]


def test_columns_that_agree_up_to_a_factor_of_either_sign_are_new_once():
  first = np.array([0.5, -1.0, 0.2])
  near = [first, -first, first + 0.3e-3, first + [0, 0, 1.6e-3], -first + [1e-2, 0, 0]]
  assert library._is_new(np.column_stack(near), set(), 1e-3).tolist() == [True, False, False, True, True]


# --- columns and lists -----------------------------------------------------------------------------------------------


def test_groups_of_columns_side_by_side_stay_apart(monkeypatch):
  one = atoms_of(monkeypatch, [family_of([U, U**2]), family_of([U**3])])
  both = Union([one, one])
  assert len(set(both.groups.tolist())) == 4 and both.groups[0] == both.groups[1] != both.groups[3] == both.groups[4]
  assert [both.scale(i) for i in range(6)] == [2, 4, 8, 2, 4, 8] and both.node(4) == one.node(1)


def test_the_first_of_each_list_then_the_second():
  asked = []

  def endless():
    for k in range(100):
      asked.append(k)
      yield k
  found = in_turn([[10, 20], endless(), [], [30]])
  assert [next(found) for _ in range(5)] == [10, 0, 30, 20, 1] and asked == [0, 1]
  assert list(in_turn([])) == [] and list(in_turn([[None], [0, False]])) == [None, 0, False]
