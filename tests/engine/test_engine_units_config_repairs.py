"""What the default config makes of near formulas: functions in them that are asked of others, and what they leave."""

from types import SimpleNamespace

import numpy as np
import pytest
from small_data import OPTIONS, nested, parse, task_of

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, RemaindersConfig, ReplacementsConfig
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.sources import asked_tables
from symformer_jax.sources.repairs import coefficient_functions, remainders, replacements
from symformer_jax.sources.repairs.coefficient_functions import Coefficient, Known
from symformer_jax.sources.repairs.fronts import first_fronts

CONFIG, LEFT = DEFAULT.replacements, DEFAULT.remainders
SOURCE = replacements.Replacements(OPTIONS, ())
# The function of x in a product.
PLACE = Coefficient(parse("x*sin(z)"), (0,), 0)


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert ReplacementsConfig() == CONFIG and RemaindersConfig() == LEFT


def known(*, node=None, values=(1.0, -1.0), slope=None, size=1.0, left=0.5):
  """A function that data ask for, `node` as it stands in its formula."""
  values = np.asarray(values, float)
  coefficient = PLACE if node is None else SimpleNamespace(function=node, column=0)
  return Known(coefficient, values, np.ones(len(values)) if slope is None else slope, size, left)


# --- what data ask for -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_values", "degree"), [(200, 32), (128, 32), (127, 31), (4, 1), (3, None)])
def test_polynomials_of_degree_32_have_four_values_of_the_column_for_each_term(num_values, degree):
  rng = np.random.default_rng(0)
  x = np.column_stack([np.resize(np.linspace(1, 2, num_values), 250), rng.uniform(1, 2, 250)])
  view = coefficient_functions._view(PLACE, Rows(x, x[:, 0], np.ones(250)), CONFIG)
  assert (None if view is None else view.polynomials.shape[1] - 1) == degree


@pytest.mark.parametrize(("ratio", "is_log"), [(29.9, False), (30.1, True)])
def test_polynomials_are_of_the_logarithm_where_the_largest_value_is_thirty_times_the_least(ratio, is_log):
  middle = coefficient_functions._between(np.array([1.0, np.sqrt(ratio), ratio]), CONFIG)[1]
  assert bool(abs(middle) < 1e-12) is is_log


@pytest.mark.parametrize(("num_rows", "num_terms"), [(60, 30), (21, 10)])
def test_two_rows_are_asked_for_each_direction(num_rows, num_terms):
  rng = np.random.default_rng(0)
  residual, polynomials = rng.normal(size=num_rows), rng.normal(size=(num_rows, 33))
  view = coefficient_functions._View(
    PLACE, np.zeros(num_rows), np.ones(num_rows), residual, polynomials, polynomials, np.zeros((num_rows, 0)))
  [squares] = np.linalg.lstsq(polynomials[:, :num_terms], residual, rcond=None)[1]
  assert coefficient_functions._corrected(view, (), CONFIG).left == pytest.approx(
    np.sqrt(squares) / np.linalg.norm(residual))


@pytest.mark.parametrize(("left", "num_corrected"), [(0.02, 2), (0.0201, 4)])
def test_functions_are_asked_for_together_where_none_alone_leaves_a_fiftieth(left, num_corrected, monkeypatch):
  asked = []
  monkeypatch.setattr(coefficient_functions, "_view", lambda *given: SimpleNamespace(values=np.zeros(2)))
  monkeypatch.setattr(coefficient_functions, "_corrected", lambda view, others, config: asked.append(others) or known(
    left=left))
  found = coefficient_functions.asked_of([PLACE] * 2, None, CONFIG)
  assert len(asked) == num_corrected and [np.isfinite(each.left) for each in found] == [num_corrected == 2] * 2


@pytest.mark.parametrize(("left", "num_nodes", "size", "is_worthwhile"), [
  (0.02, 1, 9.0, True), (0.0201, 99, 9.0, False), (1.0, 10, 1.0, True), (1.0, 9, 1.0, False), (1.0, 10, 1.01, False)])
def test_functions_that_data_ask_for_and_long_ones_that_imitate_another(left, num_nodes, size, is_worthwhile):
  assert SOURCE._is_worthwhile(known(node=nested(num_nodes), left=left, size=size), 1.0) is is_worthwhile


def test_from_the_fifth_turn_on_a_hundred_thousandth_of_the_variance_is_imitated(monkeypatch):
  task, asked = task_of(2), []
  monkeypatch.setattr(replacements.Replacements, "_seeds", lambda *given: [])
  monkeypatch.setattr(replacements.Replacements, "_tables", lambda self, seeds, rows, imitated: asked.append(
    imitated) or [])
  question = SimpleNamespace(task=task, state=replacements.State(), pool=None)
  for turn in range(6):
    SOURCE.propose([question], turn=turn, num=1, clock=Clock())
  assert asked == [0.0] * 4 + [pytest.approx(1e-5 * task.variance)] * 2


# --- which formulas, which functions, which tables -------------------------------------------------------------------


def test_of_formulas_that_leave_a_hundredth_the_six_nearest_are_looked_at(monkeypatch):
  near = [SimpleNamespace(node=nested(1 + i), mse=0.0399 - 0.001 * i) for i in range(9)]
  far = [SimpleNamespace(node=nested(1, column=1), mse=0.0401)]
  monkeypatch.setattr(replacements, "first_fronts", lambda found, *given: {each.node: 1 for each in found})
  pool = SimpleNamespace(exact=lambda: None, in_order=lambda: [*near, *far])
  assert SOURCE._seeds(pool, frozenset(), 4.0) == [each.node for each in near[:2:-1]]
  pool = SimpleNamespace(exact=lambda: None, in_order=lambda: [*near[:1], *far])
  assert SOURCE._seeds(pool, frozenset(), 4.0) == [near[0].node]


def test_six_functions_of_four_nodes_are_looked_at_of_a_formula(monkeypatch):
  asked = []
  monkeypatch.setattr(coefficient_functions, "asked_of", lambda some, *given: asked.append(
    [each.function for each in some]) or [])
  functions = [nested(num) for num in (3, 4, 3, 5, 6, 7, 8, 9, 10, 11)]
  monkeypatch.setattr(replacements, "coefficients", lambda seed: [
    SimpleNamespace(function=function) for function in functions])
  SOURCE._tables([parse("x*z")], task_of(2).fit_rows, 0.0)
  assert asked == [[nested(num) for num in (4, 5, 6, 7, 8, 9)]]


@pytest.mark.parametrize(("size", "has_been"), [(0.101, True), (0.1, False), (0.099, False)])
def test_a_table_is_asked_again_of_a_formula_that_leaves_a_tenth(size, has_been):
  before = known(values=np.arange(9.0))
  state = replacements.State(tables=(replacements.Asked(0, before.direction, 1.0),))
  assert SOURCE._has_been_asked(known(values=np.arange(9.0), size=size), state) is has_been


def test_rows_of_a_table_count_a_thousand_millionth_at_least():
  task = task_of(2, num_rows=40)
  slope = np.zeros(40)
  slope[0] = 2.0
  table = replacements._task_of(known(values=np.arange(40.0), slope=slope), task, CONFIG)
  weights = np.sort(table.fit_rows.weights)
  np.testing.assert_allclose(weights[:-1] / weights[-1], 1e-9 / 40, rtol=1e-6)


def test_a_table_is_asked_for_128_formulas_and_met_by_a_dozen_nodes_and_16_come_back(monkeypatch):
  asked, kept = [], []
  pool = SimpleNamespace(shortlist=lambda most: kept.append(most) or [])
  monkeypatch.setattr(replacements, "_task_of", lambda *given: "table")
  monkeypatch.setattr(asked_tables, "ask", lambda table, sources, options, clock, *, num, is_met, num_turns: (
    asked.append((num, num_turns, is_met)) or SimpleNamespace(pool=pool)))
  assert not list(SOURCE._replaced(known(), task_of(2), Clock()))
  [(num, num_turns, is_met)] = asked
  assert (num, num_turns, kept) == (128, 1, [16])
  for num_nodes, left, does in ((12, 0.9e-18, True), (13, 0.9e-18, False), (12, 1.1e-18, False)):
    found = SimpleNamespace(node=nested(num_nodes), mse=4 * left)
    assert is_met(SimpleNamespace(task=SimpleNamespace(variance=4.0), pool=SimpleNamespace(
      in_order=lambda found=found: [found]))) is does


# --- what near formulas leave ----------------------------------------------------------------------------------------


def test_remainders_are_of_eight_formulas_of_three_fronts_and_twenty_four_nodes():
  for num, count in ((24, 1), (25, 0)):
    assert len(first_fronts([Candidate(nested(num), 1.0)], frozenset(), LEFT)) == count
  behind = [Candidate(nested(2 + i, i), 1.0 + i) for i in range(12)]  # each worse and longer: a front of its own
  assert list(first_fronts(behind, frozenset(), LEFT).values()) == [1, 2, 3]
  nearer = [Candidate(nested(2 + i, i), 99.0 - i) for i in range(12)]
  assert len(first_fronts(nearer, frozenset(), LEFT)) == 8


@pytest.mark.parametrize(("share", "is_near"), [(0.99e-2, True), (1.01e-2, False)])
def test_what_leaves_a_hundredth_of_the_variance_is_near(share, is_near, monkeypatch):
  asked, task = [], task_of(1)
  monkeypatch.setattr(remainders, "_completed", lambda seed, *given: asked.append(seed) or [])
  pool = SimpleNamespace(in_order=lambda: [Candidate(parse("x"), share * task.variance)], exact=lambda: None)
  question = SimpleNamespace(task=task, pool=pool, state=remainders.State())
  remainders.Remainders().propose([question], turn=0, num=32, clock=Clock())
  assert asked == [parse("x")] * is_near


@pytest.mark.parametrize(("num_short", "num_plain"), [(300, 256), (99, 99)])
def test_columns_beside_near_formulas_have_five_nodes_and_are_256_at_most(num_short, num_plain, monkeypatch):
  asked = []
  columns = SimpleNamespace(
    complexities=np.where(np.arange(400) < num_short, 5, 6), node=lambda i: expression.number(i + 1.0))
  monkeypatch.setattr(remainders.library, "Atoms", lambda *given, config: asked.append(config.families) or columns)
  task = task_of(1)
  plain = remainders._plain(task, task.fit_rows, np.ones(len(task.fit_rows)), DEFAULT)
  assert len(plain.nodes) == num_plain and asked == [LEFT.families]


@pytest.mark.parametrize(("front", "num_places"), [(1, 4), (2, 2), (3, 1), (5, 1)])
def test_four_places_of_a_formula_get_columns_fewer_of_later_fronts_and_a_node_costs_two_nats(
    front, num_places, monkeypatch):
  asked = []
  monkeypatch.setattr(remainders, "_at", lambda graft, *given: asked.append(graft.path) or [
    (0.5, ((parse(text), 1.0),)) for text in ("x", "sin(x)")])
  rows = task_of(1).fit_rows
  found = list(remainders._completed(
    parse("sin(2.5*x + 1.5*cos(x))*x"), front, None, rows, np.ones(len(rows)), LEFT))
  assert len(asked) == num_places and found[1].nats - found[0].nats == pytest.approx(2)


@pytest.mark.parametrize(("num_constants", "is_asked"), [(12, True), (13, False)])
def test_formulas_of_twelve_constants_get_columns(num_constants, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(remainders, "_at", lambda *given: asked.append(1) or [])
  node = expression.chain("+", [expression.Node("*", (nested(1 + i), expression.number(1.37 + i)))
                                for i in range(num_constants)])
  rows = task_of(1).fit_rows
  list(remainders._completed(node, 1, None, rows, np.ones(len(rows)), LEFT))
  assert bool(asked) is is_asked


@pytest.mark.parametrize(("left", "is_found"), [(0.2, True), (0.201, False)])
def test_columns_that_leave_a_fifth_are_offered(left, is_found, monkeypatch):
  monkeypatch.setattr(remainders, "_sets", lambda *given: [((0,), left)])
  rows = task_of(1).fit_rows
  root = np.full(len(rows), len(rows) ** -0.5)
  unit = rows.x / np.linalg.norm(rows.x)
  plain = remainders.Plain((parse("x"),), np.ones(1), unit)
  graft = remainders.Graft((), False, np.ones(len(rows)))
  target = np.sin(9 * rows.x[:, 0])
  found = list(remainders._at(graft, np.zeros((0, len(rows))), target, plain, root, LEFT))
  assert bool(found) is is_found


def test_the_best_three_of_each_size_are_offered_and_forty_eight_pairs_get_a_third():
  rng = np.random.default_rng(0)
  units = rng.normal(size=(60, 30))
  units /= np.linalg.norm(units, axis=0)
  found = remainders._sets(units, units @ rng.normal(size=30) / 9, LEFT)
  assert [len(some) for some, _ in found] == [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
  assert len(remainders._best_pairs(rng.normal(size=30), units.T @ units, LEFT)) == 48


@pytest.mark.parametrize(("share", "is_new"), [(1.1e-6, True), (0.9e-6, False)])
def test_a_column_is_a_multiple_of_another_to_a_millionth(share, is_new):
  cosine = np.sqrt(1 - share)
  pairs = remainders._best_pairs(np.array([0.5, 0.1]), np.array([[1.0, cosine], [cosine, 1.0]]), LEFT)
  assert bool(pairs) is is_new
