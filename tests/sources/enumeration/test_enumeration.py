"""All short formulas without inner constants, looked up by what is left of y once the outer ones are taken out."""

import dataclasses

import jax
import numpy as np
import pytest
import sympy

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, EnumerationConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing, programs
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.enumeration import enumeration, formula_bank
from symformer_jax.sources.enumeration.enumeration import WAYS, Enumeration, formulas_of
from symformer_jax.sources.enumeration.formula_bank import FUNCTIONS, OF_TWO, Bank, keys_of

CONFIG = DEFAULT.enumeration
NAMES = ("x", "y", "z")


def task_of(text, box, options=None, *, num_rows=200, noise=0.0):
  rng = np.random.default_rng(2)
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  y = expression.evaluate(parser.parse(text, NAMES), x)
  y = y + noise * np.std(y) * rng.normal(size=num_rows)
  return make_task((x, y), NAMES[: len(box)], options or SearchOptions())


def ask(task, turn=0):
  source = Enumeration()
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=turn, num=source.turns[turn], clock=Clock())[0].nodes


def left(node, task):
  errors = expression.evaluate(node, task.fit_rows.x) - task.fit_rows.y
  return np.mean(errors**2) / np.var(task.fit_rows.y)


@pytest.mark.parametrize(("text", "box"), [
  ("x**x + x - 1.9", [(0.1, 3)]), ("13.2*x**3*sin(1/x**2)", [(-4, 4)]), ("sin(exp(x))/(x - 2.2)", [(-2, 2)]),
  ("4.9**sin(x**x) + 1", [(0.1, 3)]),
  ("4.7*sin(x**5)", [(-5, 5)]), ("-2/(x - log(x)**4)", [(0.2, 5)]), ("arctan(0.5/y) + 1.3", [(0.1, 3), (1, 2)]),
  ("(16.4 - sin(exp(x))**3)**3", [(-2, 2)]),
  ("x**2*sqrt(y)/cos(x)", [(-1.4, 1.4), (0.1, 5)]), ("1/(0.3 + 2.2*log(y)*z)", [(1, 2), (1, 4), (1, 3)])])
def test_laws_are_met_by_their_shortest_forms(text, box):
  task = task_of(text, box)
  nodes = ask(task)
  assert nodes and all(left(node, task) < 1e-19 for node in nodes)
  sizes = list(map(expression.complexity, nodes))
  assert sizes == sorted(sizes)


@pytest.mark.parametrize(("text", "box"), [
  ("(1 + x**y)**(1/y - 1)", [(0.05, 9), (1.1, 3)]), ("x*y/(1 - (1 + y)**(-x))", [(1, 30), (0.01, 0.2)]),
  ("sqrt(x*(exp(2/x) - 1)*(1 - exp(-x))/(exp(2/x) + 1))", [(0.05, 20)]), ("(x**y + 2)**(-y)", [(0.1, 3), (0.5, 2)])])
def test_of_few_operators_there_are_longer_formulas(text, box):
  task = task_of(text, box)
  assert ask(task) == () and len(ask(task, turn=1)) > 0
  assert all(left(node, task) < 1e-19 for node in ask(task, turn=1))


def test_the_second_turn_has_no_other_operators_and_numbers(monkeypatch):
  task, asked = task_of("x**x + x - 1.9", [(0.1, 3)]), []
  make = enumeration.Bank
  monkeypatch.setattr(enumeration, "Bank", lambda *given, **named: (asked.append(named), make(*given, **named))[1])
  few = dataclasses.replace(DEFAULT, enumeration=EnumerationConfig(few_functions=("exp", "inv"), few_numbers=(1.0,)))
  assert formulas_of(task.fit_rows, (0,), task.rule, few, has_few=True)
  [named] = asked
  assert named["numbers"] == (1.0,)
  assert {operator.tokens for operator in named["operators"] if operator.arity == 1} == {("exp",), ("inv",)}
  assert formulas_of(task.fit_rows, (0,), task.rule, few) and asked[1]["numbers"] == few.enumeration.numbers
  one = {operator.tokens for operator in asked[1]["operators"] if operator.arity == 1}
  assert len(one) == len({FUNCTIONS[name].tokens for name in (*CONFIG.functions, *CONFIG.functions_of_one)})


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_each_way_that_two_formulas_go_together(monkeypatch, way):
  monkeypatch.setattr(enumeration, "WAYS", WAYS[way : way + 1])
  text = ["(2.5*exp(x) + 0.3)/sin(x)", "(2.5*exp(x) + 0.3)*sin(x)", "2.5*tan(x**2) + 0.3 + sin(x)",
          "2.5*tan(x**2) + 0.3 - sin(x)"][way]
  task = task_of(text, [(0.2, 1.1)])
  assert left(ask(task)[0], task) < 1e-25


def test_factors_of_one_and_constants_of_nothing_are_not_written():
  task = task_of("x**2*sqrt(y)/cos(x)", [(-1.4, 1.4), (0.1, 5)])
  assert not any(part.is_number for part in expression.walk(ask(task)[0]))


@pytest.mark.parametrize(("text", "box", "noise"), [
  ("sin(1.7*x)**2 + exp(-0.3*y)*x", [(0, 3)] * 2, 0.0), ("x**x + x - 1.9", [(0.1, 3)], 1e-4)])
def test_what_is_none_gives_nothing(text, box, noise):
  assert ask(task_of(text, box, noise=noise)) == ()


def test_rounded_targets_few_rows_and_many_columns_give_nothing():
  x = np.random.default_rng(0).uniform(1, 3, (200, 1))
  rounded = make_task((x, np.round(x[:, 0] ** x[:, 0], 3)), ("x",), SearchOptions())
  few = make_task((x[:8], x[:8, 0] ** x[:8, 0]), ("x",), SearchOptions())
  wide = np.random.default_rng(0).uniform(1, 3, (200, CONFIG.max_columns + 1))
  many = make_task((wide, wide[:, 0] ** wide[:, 1]), tuple(f"x{i}" for i in range(wide.shape[1])), SearchOptions())
  assert ask(rounded) == ask(few) == ask(many) == ()


@pytest.mark.parametrize(("text", "box"), [
  ("1.23456/x + 0.0033", [(273, 400)]), ("2.3457*log(x) + 1.1", [(1990, 2020)]), ("exp(x) + y", [(0.5, 2)] * 2)])
def test_proposals_have_skeletons_of_their_own_and_laws_in_narrow_ranges_are_among_them(text, box):
  task = task_of(text, box)
  nodes = ask(task)
  assert len(nodes) > 1 and len(set(map(programs.skeleton, nodes))) == len(nodes)
  assert left(nodes[0], task) < 1e-20


@pytest.mark.parametrize("box", [(273, 300), (10, 10.2)])
def test_smooth_functions_in_narrow_ranges_are_not_taken_for_others(box):
  assert ask(task_of("x**1.37/(x + 2.2)", [box])) == ()


@pytest.mark.parametrize("size", [1e-19, 1e-13, 1e13, 1e30])
def test_columns_may_have_any_size(size):
  x = np.random.default_rng(0).uniform(1, 2, (200, 2)) * [size, 1]
  task = make_task((x, 3.3 * x[:, 0] / size * x[:, 1] + 1.7), NAMES[:2], SearchOptions())
  assert printing.to_text(ask(task)[0], NAMES).endswith("*x*y + 1.7") or left(ask(task)[0], task) < 1e-25


def test_targets_may_be_next_to_nothing():
  x = np.random.default_rng(0).uniform(0.5, 3, (200, 1))
  for size in (1e-52, 1e-58):
    task = make_task((x, size / np.sqrt(0.3 + np.exp(x[:, 0]) / x[:, 0])), NAMES[:1], SearchOptions())
    assert formulas_of(task.fit_rows, task.columns, task.rule)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_targets_may_have_any_size(size):
  x = np.random.default_rng(0).uniform(0.5, 3, (60, 1))
  task = make_task((x, size * (2.5 * np.sin(x[:, 0] ** 2) + 0.3)), NAMES[:1], SearchOptions())
  few = dataclasses.replace(DEFAULT, enumeration=EnumerationConfig(num_formulas=300))
  assert min(left(node, task) for node in formulas_of(task.fit_rows, task.columns, task.rule, few)) < 1e-25


def test_rows_of_next_to_no_weight_and_repeated_ones_are_not_drawn():
  x = np.random.default_rng(0).uniform(1, 2, (200, 1))
  y, weights = np.exp(x[:, 0]) * np.sin(x[:, 0]), np.ones(200)
  y[:40], weights[:40] = np.random.default_rng(1).normal(size=40), 1e-30
  task = make_task((x, y, weights), NAMES[:1], SearchOptions())
  assert printing.to_text(ask(task)[0], NAMES) in ("exp(x)*sin(x)", "sin(x)*exp(x)")
  few = np.repeat(x[:10], 50, axis=0)
  rows = make_task((few, few[:, 0] ** few[:, 0]), NAMES[:1], SearchOptions()).fit_rows
  drawn = formula_bank.drawn(rows, CONFIG.num_rows, least_weight=CONFIG.least_weight, most_beyond=CONFIG.most_beyond)
  assert len(np.unique(rows.x[drawn])) == CONFIG.num_rows


def test_rows_far_from_the_usual_size_of_y_are_not_drawn_where_there_are_others():
  x = np.random.default_rng(0).uniform(1, 2, (200, 1))
  y = np.where(np.arange(200) % 3 == 0, np.where(np.arange(200) % 2 == 0, 1e-9, 1e9), x[:, 0])
  rows = make_task((x, y), NAMES[:1], SearchOptions()).fit_rows
  for num in (20, 133):
    drawn = formula_bank.drawn(rows, num, least_weight=CONFIG.least_weight, most_beyond=CONFIG.most_beyond)
    assert np.all(np.abs(np.log10(np.abs(rows.y[drawn]))) < 1) and len(drawn) == num
  assert len(formula_bank.drawn(rows, 150, least_weight=1e-3, most_beyond=100.0)) == 150
  zeros = make_task((x, np.where(np.arange(200) < 150, 0.0, 1.0)), NAMES[:1], SearchOptions()).fit_rows
  assert len(np.unique(zeros.y[formula_bank.drawn(zeros, 30, least_weight=1e-3, most_beyond=100.0)])) == 2


@pytest.mark.parametrize(("text", "box"), [
  ("1/(exp(tan(x))*x + 2.18)", [(-5, 5)]), ("x**(x**2) + 1.7", [(0.1, 6)]), ("sqrt(log(-x)) + 1.3", [(-5, -1.2)])])
def test_rows_near_poles_and_columns_below_zero(text, box):
  task = task_of(text, box)
  nodes = ask(task)
  assert nodes and left(nodes[0], task) < CONFIG.missed_if_bent


def test_columns_that_do_not_vary_are_left_out():
  x = np.random.default_rng(0).uniform(1, 3, (200, 2))
  x[:, 0] = 1.7
  task = make_task((x, np.log(x[:, 1]) ** 2 + 0.4), NAMES[:2], SearchOptions())
  assert all(expression.columns_of(node) == {1} for node in ask(task)) and ask(task)


def test_rules_are_kept():
  text, box = "x**2*sin(y) + 0.4", [(1, 3)] * 2
  allowed = SearchOptions(restrictions=Restrictions(operators=("+", "*", "cos", "**")))
  assert ask(task_of(text, box)) and ask(task_of(text, box, allowed)) == ()
  required = SearchOptions(restrictions=Restrictions(required=("z",)))
  nodes = ask(task_of("x**2 + sin(y)", [*box, (1, 2)], required))
  assert nodes and all(2 in expression.columns_of(node) for node in nodes)


def test_a_row_that_is_far_out_makes_no_matches_of_its_own():
  """Beside exp(x**2) of a large x nothing else counts, and all formulas that have it point in its direction."""
  task = task_of("exp(x**2)/x + x", [(0.1, 6)])
  nodes = ask(task)
  assert nodes and all(left(node, task) < CONFIG.missed_if_bent for node in nodes)


def test_more_formulas_meet_more_laws():
  rows = task_of("x", [(1, 2)]).fit_rows
  fewer = dataclasses.replace(DEFAULT, enumeration=EnumerationConfig(num_formulas=30))
  rule = task_of("x", [(1, 2)]).rule
  law = dataclasses.replace(rows, y=np.exp(np.sqrt(np.sin(1 / rows.x[:, 0]))))
  assert formulas_of(law, [0], rule) and not formulas_of(law, [0], rule, fewer)


BANK_OPERATORS = [FUNCTIONS["exp"], FUNCTIONS["pow2"], FUNCTIONS["ln"], *OF_TWO]


def bank_of(x, num_formulas=300, operators=BANK_OPERATORS, numbers=(1.0, 2.0), largest=1e12):
  return Bank(x, list(map(variable, range(x.shape[1]))), numbers=numbers, operators=operators,
              num_formulas=num_formulas, largest=largest)


def test_functions_of_y_come_once_and_numbers_are_no_other_formulas():
  x = np.random.default_rng(0).uniform(0.5, 2, (CONFIG.num_rows, 1))
  bank, rule = bank_of(x), task_of("x", [(1, 2)]).rule
  with np.errstate(all="ignore"):
    matches = list(enumeration._Directions(bank, CONFIG).matches(np.exp(x[:, 0] ** 2), rule))
  chains = {match.links for match in matches}
  plain = enumeration.LINKS["y"]
  assert {(plain,), (enumeration.LINKS["exp"],)} <= chains and max(map(len, chains)) == 2
  assert all(plain not in chain and chain[0] is not chain[1] for chain in chains if len(chain) > 1)
  others = [bank.node(match.other) for match in matches if match.way is not None]
  assert others and not any(other.is_number for other in others)


def test_constants_that_are_0_and_1_but_for_rounding_are_tried_as_such_first():
  x = np.random.default_rng(0).uniform(0.5, 2, (40, 1))
  bank, inner = bank_of(x[:9]), parser.parse("exp(x)", NAMES)
  [place] = [i for i in range(len(bank.values)) if bank.node(i) == inner]
  match = enumeration.Match((enumeration.LINKS["y"],), place)
  for factor, constant, num in ((1 + 1e-10, 1e-10, 2), (-1.0, 2.5, 1)):
    y = factor * np.exp(x[:, 0]) + constant
    made = list(enumeration._fitted(match, bank, Rows(x, y, np.ones(40)), CONFIG))
    assert len(made) == num and (num == 1 or made[0] == inner)
    np.testing.assert_allclose(expression.evaluate(made[-1], x), y, rtol=1e-13)


def test_values_of_a_bank_are_those_of_its_formulas():
  x = np.random.default_rng(0).uniform(0.5, 2, (9, 2))
  bank = bank_of(x)
  assert len(bank.values) == 300
  made = np.stack([np.broadcast_to(expression.evaluate(bank.node(i), x), 9) for i in range(300)])
  np.testing.assert_allclose(bank.values, made, rtol=1e-12)


def test_each_function_stands_in_a_bank_once_and_the_short_ones_first():
  bank = bank_of(np.random.default_rng(0).uniform(0.5, 2, (9, 1)))
  assert len(np.unique(keys_of(bank.values))) == len(bank.values)
  sizes = [expression.complexity(bank.node(i)) for i in range(len(bank.values))]
  assert sizes[:3] == [1] * 3 and sizes.index(max(sizes)) > 20
  texts = [printing.to_text(bank.node(i), NAMES) for i in range(3, 18)]
  different = {sympy.simplify(sympy.sympify(text, rational=True)) for text in texts}
  assert len(different) == 15


def test_a_bank_has_all_sums_and_products_of_few_nodes():
  """Of two columns, one after the other: 2, then of three nodes their sums, products, differences and ratios."""
  x = np.random.default_rng(0).uniform(0.5, 2, (9, 2))
  bank = bank_of(x, operators=OF_TWO[:4], numbers=(), num_formulas=12)
  a, b = x.T
  expected = [a, b, 2 * a, a + b, 2 * b, a * a, a * b, b * b, a - b, b - a, a / b, b / a]
  np.testing.assert_allclose(np.sort(bank.values, axis=0), np.sort(expected, axis=0), rtol=1e-12)


def test_what_is_too_large_or_not_finite_or_nearly_constant_is_left_out():
  bank = bank_of(np.linspace(-3, 3, 9)[:, None], largest=100.0)
  assert np.all(np.abs(bank.values) < 900) and np.all(np.isfinite(bank.values))
  varying = bank.values[3:]
  assert np.all(np.ptp(varying, axis=1) > 1e-9 * np.max(np.abs(varying), axis=1))


def test_rounding_makes_no_new_formula():
  values = np.random.default_rng(0).normal(size=(50, 9))
  np.testing.assert_array_equal(keys_of(values), keys_of(values * (1 + 2e-16)))
  assert len(np.unique(keys_of(values))) == 50
  assert set(formula_bank.FUNCTIONS) == {*CONFIG.functions, *CONFIG.functions_of_one}
  assert variable(0) == bank_of(np.ones((9, 1))).node(0)


@pytest.mark.parametrize("field", ["num_formulas", "max_columns", "num_rows", "num_others", "most_alike", "num_matches",
                                   "num_checked"])
def test_counts_are_checked(field):
  with pytest.raises(ValueError, match=field):
    EnumerationConfig(**{field: 0})


def test_links_are_checked():
  with pytest.raises(ValueError, match="links_of_two"):
    EnumerationConfig(links_of_two=("nonsense",))
