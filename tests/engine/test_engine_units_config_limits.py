"""What the default config leaves out of equations, of sums with unknown factors and of products of sums: the limits."""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, nested, parse, task_of

from symformer_jax import conclusion, first_look, results
from symformer_jax.engine.config import (
  DEFAULT,
  VaryingConfig,
  loop,
  rationals as rationals_config,
  selection,
  sums,
  templates as templates_config,
)
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.sources.fractions import exact_fractions, null_vectors, quadratics, rational_fits, views
from symformer_jax.sources.sums import subset_sums
from symformer_jax.sources.unknowns import alternating, block_exchange, separable, unknown_functions, varying
from symformer_jax.templates import profile

PLAIN, OF_VIEWS = DEFAULT.quadratics.elimination, DEFAULT.quadratics.view_elimination
OF_FRACTIONS = DEFAULT.exact_fractions.elimination
ORTHONORMAL = np.linalg.qr(np.random.default_rng(0).normal(size=(90, 30)))[0]


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (DEFAULT.exact_fractions, rationals_config.ExactFractionsConfig), (DEFAULT.varying, VaryingConfig),
    (DEFAULT.quadratics, rationals_config.QuadraticsConfig), (DEFAULT.templates, templates_config.TemplatesConfig),
    (DEFAULT.pool, loop.PoolConfig), (DEFAULT.selection, selection.SelectionConfig),
    (DEFAULT.subsets_inside, sums.SubsetsInsideConfig), (DEFAULT.loss, selection.LossConfig)):
    assert part == make()


# --- equations -------------------------------------------------------------------------------------------------------


def any_leap(config):
  """The same where no leap is asked for."""
  return dataclasses.replace(config, leaps=(1e9, 1e9))


def least_share(columns):
  sizes = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), compute_uv=False)
  return sizes[-1] / sizes[0]


@pytest.mark.parametrize(("config", "vanishing"), [(PLAIN, 1e-4), (OF_VIEWS, 1e-12), (OF_FRACTIONS, 1e-12)])
def test_a_combination_vanishes_where_it_leaves_less_than_this(config, vanishing):
  def columns(off):
    whole = ORTHONORMAL[:, :2].sum(axis=1) / math.sqrt(2)
    return np.column_stack([ORTHONORMAL[:, :2], whole + off * ORTHONORMAL[:, 2]])

  unit = least_share(columns(1e-5)) / 1e-5  # in proportion to what is off
  for share, is_found in ((0.9, True), (1.1, False)):
    found = null_vectors.find(columns(share * vanishing / unit), any_leap(config))
    assert (found is not None) is is_found


@pytest.mark.parametrize(("config", "share", "off"), [
  (PLAIN, 3.0, 1e-6), (OF_VIEWS, 10.0, 5e-13), (OF_FRACTIONS, 10.0, 5e-13)])
def test_a_term_goes_without_which_little_more_is_left(config, share, off):
  for worse, stays in ((0.8 * share, False), (1.2 * share, True)):
    # What is off is met by the last column but for the sine of an angle.
    sine = 1 / worse
    last = math.sqrt(1 - sine**2) * ORTHONORMAL[:, 2] + sine * ORTHONORMAL[:, 3]
    whole = ORTHONORMAL[:, :2].sum(axis=1) / math.sqrt(2) + off * ORTHONORMAL[:, 2]
    found = null_vectors.find(np.column_stack([ORTHONORMAL[:, :2], whole, last]), any_leap(config))
    assert bool(found[3]) is stays and np.all(found[:3] != 0)


@pytest.mark.parametrize(("config", "most"), [(PLAIN, 12), (OF_VIEWS, 16), (OF_FRACTIONS, 24)])
def test_an_equation_has_so_many_terms_at_most(config, most):
  for num, is_found in ((most, True), (most + 1, False)):
    columns = np.column_stack([ORTHONORMAL[:, : num - 1], ORTHONORMAL[:, : num - 1].sum(axis=1)])
    assert (null_vectors.find(columns, config) is not None) is is_found


def test_functions_of_columns_that_equations_and_fractions_are_looked_for_in():
  x = np.random.default_rng(0).uniform(0.1, 0.9, (20, 2))
  tokens = [tuple(part.node.token for part in view) for view in views.views(x, DEFAULT.quadratics.views)]
  # Of either column and of both; none of products, and no powers.
  assert len(tokens) == 7 * 3 and {token for some in tokens for token in some} == {
    "variable", "cos", "sin", "sqrt", "exp", "ln"}
  # The same, of eighteen functions; five functions of x*z, x/z and z/x; powers of x, 1 + x and 1 - x to z, of x to 1/z,
  # and back.
  assert len(list(views.views(x, DEFAULT.exact_fractions.views))) == 18 * 3 + 5 * 3 + 2 * 4


@pytest.mark.parametrize("degrees", [
  (0, 2, 2), (0, 2, 4), (1, 2, 3), (2, 2, 2), (0, 4, 5), (4, 3, 2), (2, 4, 2)])
def test_equations_of_functions_are_of_these_degrees(degrees, monkeypatch):
  asked = []
  monomials = views.monomials
  monkeypatch.setattr(views, "monomials", lambda view, degree: asked.append(degree) or monomials(view, degree))
  monkeypatch.setattr(null_vectors, "find", lambda columns, config: asked.append("looked") and None)
  x = np.random.default_rng(0).uniform(0.1, 0.9, (60, 1))
  quadratics.roots_of(Rows(x, np.sin(9 * x[:, 0]), np.ones(60)), (0,), rule=task_of(1).rule)
  # In every of the seven functions, and at no others; before them those of the column itself.
  assert " ".join(map(str, asked)).count(" ".join(map(str, [*degrees, "looked"]))) >= 7
  assert len(DEFAULT.quadratics.view_degrees) == 7


@pytest.mark.parametrize(("num_rows", "most"), [(20, 11), (21, 11), (22, 12)])
def test_where_y_has_errors_fractions_have_two_rows_for_each_constant_and_sixteen_terms(num_rows, most, monkeypatch):
  limits, solved, asked = [], [], []
  near = DEFAULT.exact_fractions.near
  monkeypatch.setattr(rational_fits, "_Found", lambda equation, config, most: limits.append(most) or SimpleNamespace(
    take=lambda coefficients: None, best=dict))
  for name in ("_follow_best", "_eliminate"):
    monkeypatch.setattr(rational_fits, name, lambda *given: None)
  sets = [np.tile(np.arange(size), (5, 1)) for size in range(2, 20)]
  monkeypatch.setattr(rational_fits, "small_sets", lambda basis, num: asked.append(num) or sets)
  equation = SimpleNamespace(basis=None, rough_errors=lambda some: np.arange(float(len(some))),
                             solve=lambda some: solved.append(some.shape[1]) or (None,))
  rational_fits.find(equation, near, num_rows=num_rows)
  assert limits == [most] and asked == [0]
  solved.clear()
  rational_fits.find(equation, near, num_rows=99)
  assert max(solved) == 16


# --- sums with unknown factors ---------------------------------------------------------------------------------------


def test_a_term_goes_without_which_thirty_times_as_much_is_left(monkeypatch):
  for times, count in ((29.0, 2), (31.0, 1)):
    monkeypatch.setattr(block_exchange, "left_by", lambda products, blocks, times=times: times * 1e-6)
    assert len(list(varying._reduced(None, (0, 1), 1e-6, DEFAULT.varying))) == count


def test_two_sums_of_a_size_are_described_and_a_term_is_worth_a_factor_of_six(monkeypatch):
  rows = task_of(2).fit_rows
  known = SimpleNamespace(nodes=tuple(parse(text) for text in "xzwv"), values=np.ones((len(rows), 4)))
  sets = [[((i,), 1e-3) for i in range(4)], [((0, 1), 1e-3)], [((0, 1, 2), 0.0)]]
  monkeypatch.setattr(block_exchange, "products_of", lambda *given: None)
  monkeypatch.setattr(block_exchange, "best_sets", lambda products, *, max_size, config: sets)
  monkeypatch.setattr(varying, "_reduced", lambda products, blocks, left, config: [(blocks, left)])
  found = list(varying._models(rows, known, "y", 0, "plain", DEFAULT.varying))
  assert [len(model.terms) for model in found] == [1, 1, 2, 3]
  half = len(rows) / 2
  assert found[2].nats - found[0].nats == pytest.approx(half * math.log(6))
  assert found[3].nats == pytest.approx(half * (math.log(1e-11) + 3 * math.log(6)))


def test_sets_of_blocks_are_completed_by_three_and_the_best_twelve_exchanged_twice(monkeypatch):
  asked = []

  def left_by_one_more(products, sets):
    begin = sum(asked)
    asked.append(len(sets))
    left = np.full((len(sets), 4000), 9.0)
    for i in range(len(sets)):  # each set has its own next ones
      left[i, 1000 + 5 * (begin + i) : 1005 + 5 * (begin + i)] = begin + i + np.arange(5) / 9
    return left

  monkeypatch.setattr(block_exchange, "left_by_one_more", left_by_one_more)
  monkeypatch.setattr(block_exchange, "left_by", lambda products, blocks: 0.5)
  found = block_exchange._grown(None, [(i,) for i in range(50)], DEFAULT.varying)
  # Of the four best begun three each: twelve, of which one block was begun with and the other is new.
  assert asked[:2] == [50, 12] and len(asked) <= 3 and len(found) == 24


def test_a_set_of_blocks_is_completed_by_three_others(monkeypatch):
  asked = []

  def left_by_one_more(products, sets):
    asked.append(len(sets))
    return np.arange(len(sets) * 400.0).reshape(len(sets), 400)

  monkeypatch.setattr(block_exchange, "left_by_one_more", left_by_one_more)
  monkeypatch.setattr(block_exchange, "left_by", lambda products, blocks: 0.5)
  block_exchange._grown(None, [(399,)], dataclasses.replace(DEFAULT.varying, num_exchanged=999, num_kept=999))
  assert asked[:2] == [1, 3]  # of the three pairs with it those blocks that are new


def test_a_third_round_of_exchange_is_the_last(monkeypatch):
  asked = []

  def left_by_one_more(products, sets):
    asked.append(len(sets))
    left = np.full((len(sets), 4000), 9.0)
    left[:, 1000 * len(asked) : 1000 * len(asked) + 3] = 1 / len(asked) + np.arange(3) / 99
    return left

  monkeypatch.setattr(block_exchange, "left_by_one_more", left_by_one_more)
  monkeypatch.setattr(block_exchange, "left_by", lambda products, blocks: 0.5)
  block_exchange._grown(None, [(0,)], DEFAULT.varying)
  assert len(asked) == 3


def test_functions_of_models_are_eight_in_all_and_twenty_four_formulas_of_each(monkeypatch):
  asked = []
  monkeypatch.setattr(varying, "Table", lambda *given: SimpleNamespace(places=np.arange(9.0)))
  monkeypatch.setattr(unknown_functions, "find_forms", lambda some, *given: asked.append(len(list(some))) or [
    [(1.0, parse("x"))]] * 99)
  models = [varying.Model(-1.0, "y", 0, "plain", (parse("x"),), 1e-9) for _ in range(5)]
  source = varying.VaryingCoefficients(OPTIONS)
  for num, count in ((3, 6), (4, 8), (9, 9)):  # those of the first model whatever their number
    monkeypatch.setattr(varying, "factors_of", lambda *given, num=num, **named: [
      varying.Factor(np.arange(9.0) + i**2, ((parse("x"), 1.0),), 1.0) for i in range(num)])
    list(source._formulas(task_of(2), models))
    assert asked[-1] == count
  factor = varying.Factor(np.arange(9.0), ((parse("x"), 1.0),), 1.0)
  forms = [(float(k), parse(f"{k}.5*z")) for k in range(1, 40)]
  assert len(varying.written("y", [(factor.multiples, forms)], DEFAULT.varying.num_per_model)) == 24


def test_terms_of_the_pool_are_thirty_two_and_four_of_them_multiplied(monkeypatch):
  own = DEFAULT.varying
  asked = []
  monkeypatch.setattr(varying, "_multiplied", lambda some, columns, column: asked.append(len(some)) or [])

  def shortlist(self):
    return [SimpleNamespace(node=nested(2 + i, 1)) for i in range(60)]  # each of its own form

  found = varying.seen_terms(SimpleNamespace(shortlist=lambda: shortlist(None)), (0, 1), own)
  assert asked == [4] and len(found[0]) == 32
  roomy = dataclasses.replace(own, max_terms=999)  # without which they are half of all terms
  assert len(varying.seen_terms(SimpleNamespace(shortlist=lambda: shortlist(None)), (0, 1), roomy)[0]) == 32
  few = [SimpleNamespace(node=parse("x")) for _ in range(47)] + [
    SimpleNamespace(node=nested(3 + i, 1)) for i in range(9)]
  assert len(varying.seen_terms(SimpleNamespace(shortlist=lambda: few), (0, 1), own)[0]) == 1  # of the first 48


# --- products of sums ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "degrees"), [(3, {7, 14}), (4, {7})])
def test_products_of_sums_are_first_tried_in_brief(num_columns, degrees, monkeypatch):
  asked, reduced = [], []
  nats = itertools.count()

  def fitted(rows, structure, bases, config):
    is_product = len(structure.factors) > 1
    asked.append((is_product, config.num_sweeps, next(iter(bases.values())).degree, structure))
    return separable.Model(float(next(nats)), structure, bases, (), 0.5)

  monkeypatch.setattr(separable, "_fitted", fitted)
  monkeypatch.setattr(separable, "_without_idle", lambda model, rows, config: reduced.append(model) or model)
  x = np.random.default_rng(0).uniform(1, 2, (300, num_columns))
  rows = Rows(x, x[:, 0] + 1.0, np.ones(300))
  separable.find_models(rows, range(num_columns), ("y",), config=DEFAULT.separable)
  brief = {degree for is_product, sweeps, degree, _ in asked if is_product and sweeps == 4}
  whole = [structure for is_product, sweeps, _, structure in asked if is_product and sweeps == 30]
  assert brief == degrees and len(set(whole)) == 8 and len(reduced) == 6
  assert {sweeps for _, sweeps, _, _ in asked} == {4, 30}


@pytest.mark.parametrize(("num_rows", "is_fitted"), [(32, True), (31, False)])
def test_products_of_sums_have_two_rows_for_each_constant(num_rows, is_fitted, monkeypatch):
  monkeypatch.setattr(alternating, "fit_product", lambda *given, **named: alternating.Fit((), 1e-9))
  x = np.random.default_rng(0).uniform(1, 2, (num_rows, 2))
  bases = {column: separable.Basis(1.0, 2.0, False, 7) for column in (0, 1)}
  rows, structure = Rows(x, x[:, 0], np.ones(num_rows)), separable.Structure("y", (), ((0,), (1,)))
  assert (separable._fitted(rows, structure, bases, DEFAULT.separable) is not None) is is_fitted


@pytest.mark.parametrize(("left", "is_fitted"), [(0.9e-3, True), (1.1e-3, False)])
def test_products_of_sums_leave_a_thousandth_at_most(left, is_fitted, monkeypatch):
  monkeypatch.setattr(alternating, "fit_product", lambda *given, **named: alternating.Fit((), left))
  x = np.random.default_rng(0).uniform(1, 2, (40, 1))
  rows, structure = Rows(x, x[:, 0], np.ones(40)), separable.Structure("y", (), ((0,),))
  found = separable._fitted(rows, structure, {0: separable.Basis(1.0, 2.0, False, 7)}, DEFAULT.separable)
  assert (found is not None) is is_fitted


def test_products_of_sums_are_written_where_they_leave_three_times_what_the_pool_does(monkeypatch):
  task = task_of(2)
  asked = []
  model = separable.Model(-1.0, separable.Structure("y", (), ((0,), (1,))), {}, (), 0.0)
  monkeypatch.setattr(separable, "find_models", lambda *given, **named: [])
  monkeypatch.setattr(separable.Separable, "_formulas", lambda self, task, near, **named: asked.append(
    len(near)) or [])
  pool = SimpleNamespace(best=SimpleNamespace(mse=1e-4 * task.variance))
  source = separable.Separable(OPTIONS)
  for left, count in ((2.9e-4, 1), (3.1e-4, 0)):
    asked.clear()
    monkeypatch.setattr(separable, "best_models", lambda models, config, left=left: [model._replace(left=left)])
    source._nodes(SimpleNamespace(task=task, pool=pool), 1, 9)
    assert sum(asked) == count


def test_of_a_product_of_sums_twenty_four_formulas_are_written(monkeypatch):
  forms = [(float(k), parse(f"{k}.5*x")) for k in range(1, 40)]
  monkeypatch.setattr(separable, "Table", lambda *given: SimpleNamespace(places=np.arange(9.0)))
  monkeypatch.setattr(separable, "tabulated", lambda *given: [(0, 0, None)])
  monkeypatch.setattr(unknown_functions, "find_forms", lambda *given: [forms])
  model = separable.Model(-1.0, separable.Structure("y", (), ((0,),)), {0: separable.Basis(1.0, 2.0, False, 1)},
                          (np.ones(2),), 0.0)
  assert len(list(separable.Separable(OPTIONS)._formulas(task_of(1), [model]))) == 24


def test_the_second_start_of_a_product_is_half_as_far_from_one(monkeypatch):
  begun = []
  monkeypatch.setattr(alternating, "_swept", lambda designs, rest, root, goal, coefficients, config: begun.append(
    [each.copy() for each in coefficients]) or (1.0, [*coefficients, np.zeros(0)]))
  designs = [np.column_stack([np.ones(40), np.ones((40, 3000))]) for _ in range(2)]
  alternating.fit_product(designs, np.arange(40.0), np.ones(40), config=DEFAULT.separable)
  first, second = begun
  assert all(each[0] == 1 and not each[1:].any() for each in first)
  assert all(each[0] == 1 and np.std(each[1:]) == pytest.approx(0.5, rel=0.05) for each in second)


# --- exact fractions -------------------------------------------------------------------------------------------------

FRACTIONS = DEFAULT.exact_fractions


class Angles:
  """Angles of made up sizes between spaces of all degrees up to the fourth."""

  def __init__(self, table, z, root=None):
    self.degrees = [(1, 0), (1, 1), (2, 1), (3, 1), (4, 1)]
    self._table = table

  def sine(self, above, below):
    return self._table.sines.get((above, below), 1.0)

  def share(self, above, below):
    return self._table.shares.get((above, below), 1.0)

  def sizes(self, above, below):
    return above, below

  def largest(self):
    return [(4, 1)]


def sizes_of(method, monkeypatch, sines=(), shares=()):
  monkeypatch.setattr(exact_fractions, "_Angles", Angles)
  table = SimpleNamespace(_config=FRACTIONS, sines=dict(sines), shares=dict(shares))
  return list(getattr(exact_fractions._Table, method)(table, None))


def test_where_y_has_errors_a_leap_leaves_less_than_three_twentieths_and_three_are_followed(monkeypatch):
  found = sizes_of("near_sizes", monkeypatch, shares=[((1, 1), 0.149), ((2, 1), 0.151)])
  assert found == [(1, 1)]
  every = [((1, 1), 0.1), ((2, 1), 0.11), ((3, 1), 0.12), ((4, 1), 0.13), ((1, 0), 0.01)]
  assert sizes_of("near_sizes", monkeypatch, shares=every) == [(1, 1), (2, 1), (3, 1)]


def test_spaces_meet_where_the_sine_is_rounding_after_a_leap(monkeypatch):
  for sine, share, found in ((0.9e-12, 2.9e-3, [(2, 1), (4, 1)]), (1.1e-12, 2.9e-3, []), (0.9e-12, 3.1e-3, [])):
    sines = [((2, 1), sine), ((4, 1), sine)]
    assert sizes_of("exact_sizes", monkeypatch, sines=sines, shares=[((2, 1), share)]) == found


@pytest.mark.parametrize(("num", "most", "most_of_views"), [
  (1, 24, 40), (2, 90, 60), (3, 200, 145), (4, 300, 120), (5, 300, 120)])
def test_columns_of_equations_of_fractions_by_the_number_of_variables(num, most, most_of_views, monkeypatch):
  monkeypatch.setattr(exact_fractions, "_Table", lambda view, x, most, config: most)
  x = np.random.default_rng(0).uniform(0.1, 0.9, (1000, num))
  found = list(exact_fractions._tables(x, x[:, 0] / 3, FRACTIONS, task_of(num).rule))
  assert found[0] == most and set(found[1:]) == {most_of_views}
  few = list(exact_fractions._tables(x[:14], x[:14, 0] / 3, FRACTIONS, task_of(num).rule))
  assert set(few) == {11}  # five rows for four of them
  # What has no more than eight digits is rounded: there are no functions of columns.
  for digits, has_views in ((8, False), (9, True)):
    y = np.array([float(f"{value:.{digits}g}") for value in x[:, 0] / 3])
    assert (len(list(exact_fractions._tables(x, y, FRACTIONS, task_of(num).rule))) > 1) is has_views


def test_fractions_are_of_the_eighth_degree_at_most():
  x = np.random.default_rng(0).uniform(0.1, 0.9, (90, 1))
  table = exact_fractions._Table(views.plain(1), x, 24, FRACTIONS)
  assert max(table.monomials) == (8.0,) and len(table.some) == 31  # five rows for four columns, and one


def test_fractions_are_looked_for_on_a_thousand_rows(monkeypatch):
  asked = []
  monkeypatch.setattr(exact_fractions, "fractions_of", lambda rows, *given, **named: asked.append(len(rows)) or [])
  task = dataclasses.replace(task_of(1), rows=Rows(np.ones((2000, 1)), np.ones(2000), np.ones(2000)))
  exact_fractions.ExactFractions()._nodes(SimpleNamespace(task=task), 0, 1)
  assert asked == [1024]


def test_eight_bases_of_a_view_are_looked_at_closely(monkeypatch):
  monkeypatch.setattr(null_vectors, "find", lambda columns, config: None)
  table = SimpleNamespace(exact_sizes=lambda z, root: iter([(1, 1)] * 99), values=np.ones((9, 1)))
  budget = exact_fractions._Budget(1.0, 96)
  assert exact_fractions._fraction_for(table, np.arange(9.0), FRACTIONS, budget)[0] is None
  assert budget.num_eliminations == 96 - 8


@pytest.mark.parametrize(("work", "num_tables", "num_looks"), [(1e8, 15, 0), (0.0, 99, 96)])
def test_what_may_be_spent_on_fractions(work, num_tables, num_looks, monkeypatch):
  asked, looks = [], []

  def of_link(link, table, y, config, budget):
    looks.append(link)
    budget.num_eliminations -= 1
    return []

  view = (views.Part(expression.Node("exp", (expression.variable(0),))),)
  tables = (asked.append(i) or SimpleNamespace(work=work, is_usable=not work, view=view) for i in range(99))
  monkeypatch.setattr(exact_fractions, "_tables", lambda *given: tables)
  monkeypatch.setattr(exact_fractions, "_of_link", of_link)
  rows = task_of(1).fit_rows
  exact_fractions.fractions_of(rows, (0,), rule=task_of(1).rule)
  assert len(asked) <= num_tables and len(looks) == num_looks and (not work or len(asked) == num_tables)


@pytest.mark.parametrize(("share", "is_exact"), [(0.9e-22, True), (1.1e-22, False)])
def test_an_exact_fraction_misses_no_more_than_double_precision_does(share, is_exact):
  u = np.linspace(-1, 1, 60)
  z = u + math.sqrt(share * np.var(u)) * np.where(np.arange(60) % 2, 1, -1)
  found = exact_fractions._fraction([(1.0,)], [(0.0,)], np.ones(2), u[:, None], z, FRACTIONS)
  assert (found is not None) is is_exact


# --- templates, and the end of the time ------------------------------------------------------------------------------


def test_unknown_functions_are_solved_for_in_thirty_rounds_and_thirty_steps(monkeypatch):
  asked = []
  problem = SimpleNamespace(
    template=SimpleNamespace(unknowns=[SimpleNamespace(name=name) for name in "fg"]), _config=DEFAULT.templates,
    _linear=(), _start=lambda: {"f": 1.0, "g": 1.0}, _solve_one=lambda name, *given: asked.append(name) or (
      np.array([0.5 ** len(asked)]), {}, 1.0))
  profile._Profile._solve(problem, {})
  assert asked == ["f", "g"] * 30
  asked.clear()
  rows = SimpleNamespace(y=np.zeros(9))
  together = SimpleNamespace(
    _config=DEFAULT.templates, bases={"f": np.ones((9, 1))}, rows=rows, _root=np.ones(9), _mean=0.0,
    _linearized=lambda values, estimates: asked.append(1) or (np.full(9, 0.5 ** len(asked)), {"f": np.ones(9)}))
  profile._Profile._together(together, {}, {"f": np.zeros(9)})
  assert len(asked) == 30


@pytest.mark.parametrize(("seconds", "ended_by", "most"), [
  (30.0, results.TIME, 40), (30.1, results.TIME, None), (30.0, results.BUDGET, None), (99.0, results.STOPPED, 40)])
def test_of_half_a_minute_that_is_over_little_is_left_for_the_choice(seconds, ended_by, most):
  class Enough(Exception):
    pass

  class Late:
    def shortlist(self, most):
      asked.append(most)
      raise Enough

  asked = []
  search = SimpleNamespace(ended_by=ended_by, pool=Late())
  with pytest.raises(Enough):
    conclusion.finish([search], None, None, None, SearchOptions(max_time=seconds), None, target="y")
  assert asked == [most]


def test_a_first_look_takes_three_tenths_of_the_time(monkeypatch):
  class Enough(Exception):
    pass

  def make_sources(model, look):
    asked.append((look.max_time, look.config.sources))
    raise Enough

  asked = []
  monkeypatch.setattr(first_look.registry, "make_sources", make_sources)
  for max_time in (10.0, None):
    with pytest.raises(Enough):
      first_look._look_once(None, {}, [], SearchOptions(loss="huber", max_time=max_time), None, None, None)
  assert asked == [(3.0, ("closed_forms", "guesses", "library")), (None, ("closed_forms", "guesses", "library"))]


def test_sums_are_chosen_for_y_under_a_column_and_its_inverse():
  task = task_of(2)
  inside = subset_sums.SubsetSumsInside()
  found = [target for turn in range(6) for target in inside._targets(task, task.fit_rows, turn)]
  x, y = task.fit_rows.x, task.fit_rows.y
  for expected in (y / x[:, 0], y * x[:, 0], y / x[:, 1], y * x[:, 1]):
    assert any(np.allclose(target.values, expected) for target in found)
  many = task_of(7)
  many = dataclasses.replace(many, columns=tuple(range(7)))
  found = [target for turn in range(6) for target in inside._targets(many, many.fit_rows, turn)]
  for column in many.fit_rows.x.T:
    assert any(np.allclose(target.values, many.fit_rows.y / column) for target in found)


def test_a_template_is_fitted_on_three_hundred_rows_and_its_functions_on_ten_thousand(monkeypatch):
  asked = []
  monkeypatch.setattr(profile, "_Profile", lambda template, rows, config: asked.append(len(rows)) or SimpleNamespace(
    fit=dict, estimates=lambda values: {}))
  monkeypatch.setattr(profile, "_part", lambda *given: None)
  rows = Rows(np.ones((12_000, 1)), np.ones(12_000), np.ones(12_000))
  for num_unknowns, expected in ((1, [300]), (2, [300, 10_000])):
    asked.clear()
    profile.pose(SimpleNamespace(unknowns=(None,) * num_unknowns), rows, seed=0)
    assert asked == expected
