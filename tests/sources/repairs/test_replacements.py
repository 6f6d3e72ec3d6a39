"""Replacements: functions of one column that near formulas only imitate."""

import dataclasses

from hypothesis import given, settings, strategies as st
import numpy as np
from numpy.polynomial import Chebyshev
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, ReplacementsConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, printing
from symformer_jax.language.parser import parse
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import registry
from symformer_jax.sources.repairs import coefficient_functions, replacements
from symformer_jax.sources.repairs.coefficient_functions import Coefficient, Known
from symformer_jax.sources.repairs.replacements import State

NAMES = ["x", "y", "z"]
BOX = ((0.5, 3.0), (1.0, 4.0), (-2.0, 2.0))
OWN = DEFAULT.replacements
LATE = OWN.num_early
# A near formula of each law has one of its functions, or two, only nearly.
IMITATIONS = [
  ("2*x/(y + 2) + cos(z)", "(0.05*sqrt(y) - 0.29*log(y) + 0.65)*x + cos(z)", {1}),
  ("y*arcsin(0.33*x) + 0.4*z", "y*(0.4*x - 0.08*x**3 + 0.04*x**4) + 0.4*z", {0}),
  ("exp(sin(1.3*x) - y*z)", "exp(1.02 - 0.8*(x - 1.2)**2 + 0.07*(x - 1.2)**3 + 0.07*(x - 1.2)**4 - y*z)", {0}),
  ("1/(z**2 + y*exp(-0.7*x) + 1)", "1/(z**2 + y*(0.98 - 0.62*x + 0.17*x**2 - 0.02*x**3) + 1)", {0}),
  ("sqrt(x)*z + y*log(y)", "(0.36 + 0.7*x - 0.075*x**2)*z - 0.62 + 0.35*y**2 + 0.33*y", {0, 1}),
]


def rows_of(text, num_rows=200, noise=0.0, seed=3):
  rng = np.random.default_rng(seed)
  x = np.column_stack([rng.uniform(*bounds, num_rows) for bounds in BOX])
  y = expression.evaluate(parse(text, NAMES), x)
  return Rows(x, y + noise * np.std(y) * rng.normal(size=num_rows), np.ones(num_rows))


def fitted_to(rows, text):
  task = make_task((rows.x, rows.y), NAMES, SearchOptions())
  [[(node, mse)]] = refine.fit_constants([(task, [parse(text, NAMES)])], method="lm", max_steps=200)
  return task, node, mse


def question_of(rows, text, state=None):
  task, node, mse = fitted_to(rows, text)
  pool = Pool(task.variance, len(task.fit_rows))
  pool.insert([Candidate(node, mse)])
  return Question(task, pool, state or State())


def ask(question, *, turn=LATE, **changes):
  options = SearchOptions(config=dataclasses.replace(DEFAULT, replacements=ReplacementsConfig(**changes)))
  source = registry.SOURCES["replacements"](None, options)
  [proposal] = source.propose([question], turn=turn, num=1, clock=Clock())
  return proposal


def found_in(text):
  return {(each.column, printing.to_text(each.function, NAMES))
          for each in coefficient_functions.coefficients(parse(text, NAMES))}


def test_coefficient_functions_are_all_that_reads_one_column_beside_the_same_factors():
  assert found_in("3*x**2*y + sin(x)*y + x*z + 2*x + 1") == {
    (0, "3*x**2 + sin(x)"), (0, "x"), (0, "2*x + 1"), (1, "3*y"), (1, "y"), (2, "z + 2")}
  # Inside functions, and of no column that stands in a function of two.
  assert found_in("exp(x + 2*y)*cos(y)") == {(0, "x"), (1, "2*y"), (1, "cos(y)")}
  assert found_in("1/(1 + x*sin(x*y))") == {(0, "x"), (1, "y")}
  assert found_in("sin(x)**2 + 3") == set()  # of one column


@given(st.sampled_from([near for _, near, _ in IMITATIONS]), st.integers(0, 99))
def test_a_formula_written_around_a_coefficient_has_its_values(text, seed):
  rows, formula = rows_of("x", seed=seed), parse(text, NAMES)
  values = expression.evaluate(formula, rows.x)
  found = list(coefficient_functions.coefficients(formula))
  assert found
  for each in found:
    np.testing.assert_allclose(expression.evaluate(each.formula, rows.x), values, rtol=1e-12)
    np.testing.assert_allclose(expression.evaluate(each.replaced(each.function), rows.x), values, rtol=1e-12)
    assert coefficient_functions.columns_of(each.function) == {each.column}


@pytest.mark.parametrize(("law", "near", "columns"), IMITATIONS)
def test_what_the_data_ask_for_is_the_laws_function_up_to_a_factor_and_a_constant(law, near, columns):
  rows = rows_of(law)
  _, node, _ = fitted_to(rows, near)
  some = list(coefficient_functions.coefficients(node))
  known = [each for each in coefficient_functions.asked_of(some, rows, OWN) if each.left <= OWN.most_left]
  assert columns <= {each.coefficient.column for each in known}
  true = {"2*x/(y + 2) + cos(z)": ["1/(y + 2)"], "y*arcsin(0.33*x) + 0.4*z": ["arcsin(0.33*x)"],
          "exp(sin(1.3*x) - y*z)": ["sin(1.3*x)"], "1/(z**2 + y*exp(-0.7*x) + 1)": ["exp(-0.7*x)"],
          "sqrt(x)*z + y*log(y)": ["sqrt(x)", "y*log(y)"]}[law]
  for text in true:
    function = parse(text, NAMES)
    [column] = coefficient_functions.columns_of(function)
    values = expression.evaluate(function, rows.x)
    of_column = [each for each in known if each.coefficient.column == column]

    def off(asked, values=values):
      design = np.column_stack([np.ones(len(values)), values])
      rest = asked - design @ np.linalg.lstsq(design, asked, rcond=None)[0]
      return np.std(rest) / np.std(asked)
    # Nearer to the law than what stood there, to second order.
    assert min(off(each.values) for each in of_column) < 3e-3
    assert min(off(each.values) for each in of_column) < 0.2 * min(
      off(expression.evaluate(each.coefficient.function, rows.x)) for each in of_column)


def test_noise_asks_for_no_other_function():
  for noise in (1e-3, 0.1):
    rows = rows_of("2*x/(y + 2) + cos(z)", noise=noise)
    _, node, _ = fitted_to(rows, "2.1*x/(y + 1.9) + 1.1*cos(z)")
    some = list(coefficient_functions.coefficients(node))
    assert {each.left for each in coefficient_functions.asked_of(some, rows, OWN)} == {np.inf}
    assert not ask(question_of(rows, "2.1*x/(y + 1.9) + 1.1*cos(z)"), turn=0).nodes


@pytest.mark.parametrize(("law", "near", "columns"), IMITATIONS)
def test_the_law_is_found_in_place_of_its_imitation(law, near, columns):
  """Where two functions are imitated a turn mends one as far as the other lets it, in turn."""
  question = question_of(rows_of(law), near)
  assert question.pool.exact() is None
  for _ in range(1 if len(columns) == 1 else OWN.num_early + 2):
    proposal = ask(question, turn=0)
    fits = refine.fit_constants([(question.task, list(proposal.nodes))], method="lm", max_steps=200)[0]
    question.pool.insert(Candidate(node, mse) for node, mse in fits)
    question = dataclasses.replace(question, state=proposal.state)
  exact = [each.node for each in question.pool.in_order() if each.mse < 1e-20 * question.task.variance]
  # Terms whose factors are rounding may stand beside the law: which do depends on the processor's sums.
  assert min(map(expression.complexity, exact)) <= expression.complexity(parse(law, NAMES)) + 32


def test_a_long_formula_that_meets_the_data_is_asked_for_a_shorter_one():
  rows = rows_of("y*exp(-0.7*x) + z")
  long = "y*(exp(-0.7*x) + 0.3*(x + 1)**2 - 0.3*x**2 - 0.6*x - 0.3) + z"
  question = question_of(rows, long)
  assert question.pool.exact() is not None
  early = ask(question, turn=0)
  assert not early.nodes  # nothing is known better than it is
  late = ask(dataclasses.replace(question, state=early.state))
  fits = refine.fit_constants([(question.task, list(late.nodes))], method="lm", max_steps=200)[0]
  met = [expression.complexity(node) for node, mse in fits if mse < 1e-24 * question.task.variance]
  assert min(met) <= expression.complexity(parse("y*exp(-0.7*x) + z", NAMES)) + 4


def test_nothing_is_asked_twice():
  question = question_of(rows_of(IMITATIONS[0][0]), IMITATIONS[0][1])
  first = ask(question)
  assert first.nodes and len(first.state.tables) == 1
  again = ask(dataclasses.replace(question, state=first.state))
  assert not again.nodes and again.state == first.state
  # The same table, of a formula that nobody has looked at; unless that one is much nearer.
  [table] = first.state.tables
  for size, is_asked in ((table.size, False), (1.01 * table.size, False), (11 * table.size, True)):
    state = State(tables=(table._replace(size=size),))
    assert bool(ask(dataclasses.replace(question, state=state), long_nodes=99).nodes) is is_asked


def test_what_waits_for_its_turn_is_asked_in_the_next():
  """Two functions that the data ask for, one of them in each turn."""
  question = question_of(rows_of(IMITATIONS[4][0]), IMITATIONS[4][1])
  columns = []
  for _ in range(2):
    proposal = ask(question, turn=0)
    assert proposal.nodes
    columns.append(proposal.state.tables[-1].column)
    question = dataclasses.replace(question, state=proposal.state)
  assert sorted(columns) == [0, 1]
  assert not ask(question, turn=0).nodes


def test_formulas_that_are_too_far_or_too_long_are_not_looked_at():
  question = question_of(rows_of(IMITATIONS[0][0]), IMITATIONS[0][1])
  share = question.pool.best.mse / question.task.variance
  size = expression.complexity(question.pool.best.node)
  for changes, is_asked in (
    ({"near": 0.9 * share}, False), ({"near": 1.1 * share}, True), ({"max_nodes": size - 1}, False),
    ({"max_nodes": size}, True), ({"least_nodes": 99}, False)):
    assert bool(ask(question, **changes).nodes) is is_asked


def test_constants_that_change_nothing_hide_no_function():
  law, near, [column] = IMITATIONS[0]
  rows, node = rows_of(law), parse(near, NAMES)
  [plain] = [each for each in coefficient_functions.coefficients(node) if each.column == column]
  vanishing = expression.chain("+", [node, parse("exp(-900*(z + 3))", NAMES)])  # 0 in double precision, as its slopes
  [beside] = [each for each in coefficient_functions.coefficients(vanishing) if each.column == column]
  [first], [second] = (coefficient_functions.asked_of([each], rows, OWN) for each in (plain, beside))
  assert first.left <= OWN.most_left
  np.testing.assert_allclose(second.left, first.left, rtol=1e-6)
  np.testing.assert_allclose(second.values, first.values, rtol=1e-6)


def test_functions_at_several_places_share_the_directions_that_the_rows_allow():
  rows = rows_of("sin(3*x) + cos(2*y) + z**5*y", num_rows=60)
  some = coefficient_functions.coefficients(parse("x*y + y*z + z*x", NAMES))
  first, *others = [coefficient_functions._view(each, rows, OWN) for each in some][:3]
  known = coefficient_functions._corrected(first, others, OWN)
  added, column = known.values - first.values, rows.x[:, first.coefficient.column]
  terms = Chebyshev.fit(column, added, len(rows) // OWN.rows_per_direction // 3 - 1)
  np.testing.assert_allclose(terms(column), added, rtol=1e-9, atol=1e-9 * np.max(np.abs(added)))


def test_few_places_tell_nothing():
  """Of a column of few values a function is whatever is wanted there."""
  rng = np.random.default_rng(0)
  rows = rows_of("x*y")
  rows.x[:, 1] = rng.integers(1, 4, len(rows))
  y = rows.x[:, 0] * (rows.x[:, 1] == 2) + np.cos(rows.x[:, 2])
  rows = Rows(rows.x, y, rows.weights)
  some = list(coefficient_functions.coefficients(parse("x*(y**2 - 4*y + 4) + cos(z)", NAMES)))
  known = coefficient_functions.asked_of(some, rows, OWN)
  assert all(each.left == np.inf for each in known if each.coefficient.column == 1)


def test_a_table_has_a_row_for_each_value_and_weights_by_the_slope():
  task = make_task((np.column_stack([[1.0, 2, 2, 3, 4, 5], [1.0, 2, 3, 4, 5, 6]]), np.arange(6.0)), NAMES[:2],
                   SearchOptions())
  [x] = [np.asarray(task.fit_rows.x[:, 0])]
  slope = np.array([1.0, 2, 2, 0, 1, 1])
  formula = parse("y*sin(x)", NAMES)
  coefficient = Coefficient(formula, (1,), 0)
  table = replacements._task_of(Known(coefficient, np.sin(x), slope, 1.0, 0.0), task, OWN)
  assert table.fit_rows.x[:, 0].tolist() == [1, 2, 3, 4, 5]
  np.testing.assert_allclose(table.fit_rows.y, np.sin([1, 2, 3, 4, 5]))
  weights = table.fit_rows.weights
  np.testing.assert_allclose(weights[1] / weights[0], 8)  # two rows, and twice the slope
  assert 0 < weights[2] <= 1.01 * OWN.least_weight
  assert replacements._task_of(Known(coefficient, np.ones(6), slope, 1.0, 0.0), task, OWN) is None


def test_rules_hold_and_one_column_is_none_of_its():
  source = registry.SOURCES["replacements"](None, SearchOptions())
  rows = rows_of(IMITATIONS[0][0])
  assert not source.supports(make_task((rows.x[:, :1], rows.y), NAMES[:1], SearchOptions()))
  no_sums = SearchOptions(restrictions=Restrictions(operators=("*", "sin")))
  assert not source.supports(make_task((rows.x, rows.y), NAMES, no_sums))
  options = SearchOptions(restrictions=Restrictions(operators=("+", "*", "pow", "cos", "sqrt", "log")))
  task = make_task((rows.x, rows.y), NAMES, options)
  assert source.supports(task)
  _, node, mse = fitted_to(rows, IMITATIONS[0][1])
  pool = Pool(task.variance, len(task.fit_rows))
  pool.insert([Candidate(node, mse)])
  nodes = ask(Question(task, pool, State())).nodes
  assert nodes and all(map(task.rule, nodes))


@settings(max_examples=10)
@given(st.floats(0.2, 2.0), st.floats(-1.5, 1.5))
def test_directions_are_blind_to_factors_and_constants(factor, constant):
  rows = rows_of("x")
  formula = Coefficient(parse("y*sin(x)", NAMES), (1,), 0)
  values = np.sin(rows.x[:, 0])
  first, second, third = (Known(formula, some, values, 1.0, 0.0)
                          for some in (values, factor * values + constant, values**2))
  kept = coefficient_functions.distinct([(formula.formula, known) for known in (first, second, third)])
  assert [known for _, known in kept] == [first, third]


def test_values_that_are_all_the_same_have_no_direction():
  known = Known(Coefficient(parse("y*sin(x)", NAMES), (1,), 0), np.full(5, 3.0), np.ones(5), 1.0, 0.0)
  assert known.direction.tolist() == [0] * 5


def test_wide_columns_above_0_are_taken_in_their_logarithm():
  for low, high, middle in ((1.0, 100.0, 10.0), (0.0, 100.0, 50.0), (-100.0, 100.0, 0.0), (1.0, 29.0, 15.0)):
    between = coefficient_functions._between(np.array([low, middle, high]), OWN)
    np.testing.assert_allclose(between, [-1, 0, 1], atol=1e-12)


def test_factors_in_any_order_are_the_same():
  found = dict(found_in("sin(x)*y*cos(z) + x**2*cos(z)*y + 1"))
  assert set(found[0].split(" + ")) == {"sin(x)", "x**2"}
