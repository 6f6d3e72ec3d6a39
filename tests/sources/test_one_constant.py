"""Short formulas with one inner constant, found by the tangent of each at some constants."""

import dataclasses
import gc
import warnings
import weakref

import jax
import numpy as np
import pytest
import sympy

from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, OneConstantConfig
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import variable
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import one_constant, one_constant_families
from symformer_jax.sources.formula_bank import FUNCTIONS, OF_TWO, Bank
from symformer_jax.sources.one_constant import OneConstant
from symformer_jax.sources.one_constant_families import PLAIN, Families, Origin

CONFIG = DEFAULT.one_constant
NAMES = ("x", "y", "z")
OPERATORS = [*OF_TWO, *map(FUNCTIONS.__getitem__, DEFAULT.enumeration.functions)]


def task_of(text, box, options=None, *, num_rows=200, noise=0.0):
  rng = np.random.default_rng(2)
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  y = expression.evaluate(parser.parse(text, NAMES), x)
  y = y + noise * np.std(y) * rng.normal(size=num_rows)
  return make_task((x, y), NAMES[: len(box)], options or SearchOptions())


def ask(task, config=DEFAULT):
  source = OneConstant(config)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)))
  return source.propose([question], turn=0, num=source.turns[0], clock=Clock())[0].nodes


def left(node, task):
  errors = expression.evaluate(node, task.fit_rows.x) - task.fit_rows.y
  return np.mean(errors**2) / np.var(task.fit_rows.y)


def with_config(**changes):
  return dataclasses.replace(DEFAULT, one_constant=dataclasses.replace(CONFIG, **changes))


LAWS = [
  ("0.4*arctan(1/(x + 1.7))**3", [(-5, 5)]), ("3.1*sin(0.88*x)**3/x**3", [(0.3, 5)]),
  ("sin(tan(x**2) + 0.88) + x", [(-1.1, 1.1)]), ("exp(0.7*x)*tan(y) + x + 3*y + 1", [(-2, 2), (-1.3, 1.3)]),
  ("90*exp(cos(2.3/y)) + 2.8*x", [(-2, 2), (0.3, 3)]), ("1/(0.4 + tan(1.7*x)*y)", [(0.1, 0.8), (1, 3)]),
  ("sqrt(0.3 + exp(x**1.37)*y)", [(0.1, 1.5), (1, 3)]), ("2.5*x/(x + 0.81)*y + z", [(0.1, 4)] * 3),
  ("tan(log(-x) + 1.38)", [(-5, -0.4)]), ("(x + 7.3)**1.41", [(0, 9)]),
  ("1.7*y*sqrt(sin(x)) - 3*x + 2*y + 1", [(0.1, 3), (-2, 2)]),  # no constant inside
  ("sqrt(sin(0.7*x))**3 + x", [(0.2, 4)])]


@pytest.mark.parametrize(("text", "box"), LAWS)
def test_laws_are_met(text, box):
  task = task_of(text, box)
  nodes = ask(task)
  assert nodes and all(left(node, task) < 2 * CONFIG.missed for node in nodes)
  sizes = list(map(expression.complexity, nodes))
  assert sizes == sorted(sizes)


def test_constants_come_out_as_they_are():
  task = task_of("90*exp(cos(2.3/y)) + 2.8*x", [(-2, 2), (0.3, 3)])
  values = sorted(abs(part.value) for part in expression.walk(ask(task)[0]) if part.is_number)
  np.testing.assert_allclose(values, [2.3, 2.8, 90], rtol=1e-9)  # nothing of y, of 1, of another formula


def test_whole_inner_constants_come_out_whole():
  task = task_of("cos(sqrt(x**2 + 2))", [(-5, 5)])
  assert printing.to_text(ask(task)[0], NAMES) == "cos(sqrt(x**2 + 2))"


@pytest.mark.parametrize(("text", "box", "noise"), [
  ("sin(1.7*x**3)*exp(-0.3*y**2)*x", [(0, 3)] * 2, 0.0), ("90*exp(cos(2.3/x))", [(0.3, 3)], 1e-4)])
def test_what_is_none_gives_nothing(text, box, noise):
  assert ask(task_of(text, box, noise=noise)) == ()


@pytest.mark.parametrize("box", [(273, 300), (10, 10.2)])
def test_smooth_functions_in_narrow_ranges_are_not_taken_for_others(box):
  """Six constants come near to whatever is smooth."""
  assert ask(task_of("x**1.37/(x**0.61 + 2.2)*exp(-1/x)", [box])) == ()


def test_rounded_targets_few_rows_and_many_columns_give_nothing():
  x = np.random.default_rng(0).uniform(1, 3, (200, 1))
  y = np.exp(np.cos(1.7 * x[:, 0]))
  rounded = make_task((x, np.round(y, 3)), ("x",), SearchOptions())
  few = make_task((x[: CONFIG.num_rows - 1], y[: CONFIG.num_rows - 1]), ("x",), SearchOptions())
  wide = np.random.default_rng(0).uniform(1, 3, (200, CONFIG.max_columns + 1))
  many = make_task((wide, np.exp(np.cos(1.7 * wide[:, 0]))), tuple(f"x{i}" for i in range(wide.shape[1])),
                   SearchOptions())
  assert ask(rounded) == ask(few) == ask(many) == ()
  assert ask(make_task((x, y), ("x",), SearchOptions()))


def test_a_column_that_is_nothing_in_most_rows_is_no_hindrance():
  rng = np.random.default_rng(0)
  x = np.stack([rng.uniform(0.3, 4, 200), np.where(np.arange(200) == 7, 1.0, 0.0)], axis=1)
  task = make_task((x, 3 * np.exp(np.cos(1.7 * x[:, 0])) + 2), NAMES[:2], SearchOptions())
  assert left(ask(task)[0], task) < CONFIG.missed


def test_few_rows_of_several_columns_are_enough():
  x = np.random.default_rng(0).uniform(0.3, 3, (24, 4))
  y = 1.5 * np.sin(1.7 * x[:, 0]) * x[:, 1] + 0.3 * x[:, 0] + 2.1 * x[:, 2] + 0.7 * x[:, 3] + 3
  task = make_task((x, y), (*NAMES, "w"), SearchOptions())
  assert left(ask(task)[0], task) < CONFIG.missed


def test_large_constants_are_not_rounded_away():
  task = task_of("sqrt(x + 1234567890.4)", [(2e8, 3e9)])
  assert left(ask(task)[0], task) < CONFIG.missed


def test_columns_with_a_median_of_one():
  """At c = 1 `exp(c*x) + x` and `exp(x) + c*x` are one."""
  x = np.append(1.0, 1 + np.concatenate([np.arange(1, 31), -np.arange(1, 31)]) / 40)[:, None]
  task = make_task((x, 1 / (np.exp(0.7 * x[:, 0]) + x[:, 0]) + 2.2 * x[:, 0]), NAMES[:1], SearchOptions())
  nodes = one_constant.formulas_of(task.fit_rows, task.columns, task.rule, 15_000)
  assert left(nodes[0], task) < CONFIG.missed


def test_what_was_made_for_a_table_goes_with_it():
  tables = []
  original = one_constant._Few.__init__

  def kept(self, *args):
    tables.append(weakref.ref(self))
    original(self, *args)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(one_constant._Few, "__init__", kept)
    assert ask(task_of("(x + 7.3)**1.41", [(0, 9)]))
  gc.collect()
  assert tables[0]() is None


@pytest.mark.parametrize("size", [1e-19, 1e-13, 1e13, 1e30])
def test_columns_and_targets_may_have_any_size(size):
  x = np.random.default_rng(0).uniform(1, 2, (200, 2))
  y = 3.3 * np.exp(np.cos(1.7 * x[:, 0])) * x[:, 1] + 1.7
  for task in (make_task((x * [size, 1], y), NAMES[:2], SearchOptions()),
               make_task((x, y * size), NAMES[:2], SearchOptions())):
    nodes = ask(task)
    assert nodes and left(nodes[0], task) < CONFIG.missed


def test_rows_near_a_pole_do_not_decide():
  """Of 1/y next to nothing is left of a row where exp(tan(x)) is 1e300, and where it is no number at all."""
  task = task_of("1/(exp(tan(x))*x + 2.18)", [(-5, 5)])
  assert np.min(np.abs(task.fit_rows.y)) < 1e-12
  nodes = ask(task)
  assert nodes and left(nodes[0], task) < CONFIG.missed


def test_rules_are_kept():
  text, box = "cos(1.7*x)*y + 0.4*x", [(1, 3)] * 2
  allowed = SearchOptions(restrictions=Restrictions(operators=("+", "*", "exp", "**")))
  assert ask(task_of(text, box)) and ask(task_of(text, box, allowed)) == ()
  required = SearchOptions(restrictions=Restrictions(required=("z",)))
  assert ask(task_of(text, [*box, (1, 2)])) and ask(task_of(text, [*box, (1, 2)], required)) == ()


def test_columns_that_do_not_vary_are_left_out():
  x = np.random.default_rng(0).uniform(1, 3, (200, 2))
  x[:, 0] = 1.7
  task = make_task((x, np.exp(np.cos(1.7 * x[:, 1]))), NAMES[:2], SearchOptions())
  assert ask(task) and all(expression.columns_of(node) == {1} for node in ask(task))


def test_more_families_meet_more_laws():
  task = task_of("1/(0.4 + tan(1.7*x)*exp(x))", [(0.1, 0.8)])
  assert ask(task, with_config(num_families=(100, 100))) == ()
  rows, columns = task.fit_rows, task.columns
  assert one_constant.formulas_of(rows, columns, task.rule, 60_000)


@pytest.mark.parametrize(("change", "text"), [
  ({"share_of_others": 0.0}, "exp(0.7*x)*tan(x) + x + 1"), ({"links": ("y",)}, "1/(0.4 + tan(1.7*x)*x)"),
  ({"num_of_each": 1}, "exp(0.7*x)*tan(x) + x + 1"), ({"num_trial_steps": 1}, "sin(tan(x**2) + 0.88) + x")])
def test_each_part_is_needed(change, text):
  task = task_of(text, [(0.2, 1.2)])
  assert ask(task)
  assert len(ask(task, with_config(**change))) < len(ask(task))


def bank_of(x, num_formulas=60):
  return Bank(x, list(map(variable, range(x.shape[1]))), numbers=(1.0, 2.0), operators=OPERATORS,
              num_formulas=num_formulas, largest=1e12)


@pytest.fixture(scope="module")
def made():
  """A bank, families over it, and all their chunks."""
  with np.errstate(all="ignore"):
    bank = bank_of(np.random.default_rng(0).uniform(0.2, 2, (12, 2)))
    families = Families(bank, OPERATORS, num_families=4000, config=CONFIG)
    return bank, families, [chunk for chunk in families if chunk.origins[0, 0] != PLAIN]


def each_of(made):
  """A family of each way to make one, with a constant at which it is defined."""
  bank, families, chunks = made
  seen = {}
  for chunk in chunks:
    for place, origin in enumerate(chunk.origins.tolist()):
      for at in np.flatnonzero(np.isfinite(chunk.values[place, :, 0]))[:1]:
        seen.setdefault(origin[0], (Origin(*origin), float(chunk.constants[place, at]), chunk, place, at))
  return bank, families, seen


def test_there_are_families_of_every_seed_and_step(made):
  _, families, seen = each_of(made)
  num_seeds = len(one_constant_families._SEEDS)
  assert set(seen) == set(range(-num_seeds, len(families._steps)))
  assert len(families._steps) == len(OPERATORS) + 2  # quotients and powers either way round


def test_values_and_slopes_are_those_of_the_formulas(made):
  bank, families, seen = each_of(made)
  x = np.random.default_rng(0).uniform(0.2, 2, (12, 2))
  c = sympy.Symbol("c")
  for origin, constant, chunk, place, at in seen.values():
    values, slopes = families.at(origin, constant, bank.values.__getitem__)
    np.testing.assert_allclose(values, expression.evaluate(families.node(origin, constant), x), rtol=1e-12)
    np.testing.assert_allclose(chunk.values[place, at], values, rtol=2e-3)  # single precision, beside a pole
    text = printing.to_text(families.node(origin, 0.123456789), NAMES).replace("0.123456789", "c")
    formula = sympy.sympify(text, locals={"arctan": sympy.atan, "arcsin": sympy.asin, "arccos": sympy.acos})
    by_c = sympy.lambdify(([*map(sympy.Symbol, NAMES[:2])], c), sympy.diff(formula, c), "numpy")
    assert formula.has(c)
    np.testing.assert_allclose(slopes, by_c(x.T, constant), rtol=1e-7, atol=1e-9 * np.max(np.abs(slopes)))


def test_families_are_different_and_the_short_ones_first(made):
  _, families, chunks = made
  costs = [chunk.cost for chunk in chunks]
  assert costs == sorted(costs)
  used = [chunk.values[chunk.is_used][:, families._looks[0]].astype(float) for chunk in chunks[:40]]
  values = np.concatenate(used)
  values = values[np.isfinite(values).all(axis=1)]
  assert len(np.unique(np.round(values / np.max(np.abs(values), axis=1, keepdims=True), 4), axis=0)) > 0.9 * len(values)


def test_constants_that_outer_ones_stand_for_are_no_families(made):
  """c*G and c + G are only made of; 1/(c*G), log(c*G), exp(c + G) and their like are not there."""
  _, families, chunks = made
  for chunk in chunks[:60]:
    for place in np.flatnonzero(chunk.is_used)[:40]:
      at = np.flatnonzero(np.isfinite(chunk.values[place, :, 0]))
      slopes, values = chunk.slopes[place, at].astype(float), chunk.values[place, at].astype(float)
      ratios = slopes / np.where(values == 0, 1, values)
      constant = [np.ptp(each, axis=1) < 1e-6 * np.max(np.abs(each), axis=1) for each in (slopes, ratios)]
      assert np.mean(constant[0] | constant[1]) < 0.5, printing.to_text(
        families.node(Origin(*chunk.origins[place].tolist()), 0.123), NAMES)


def test_shares_left_are_those_of_least_squares():
  rng = np.random.default_rng(0)
  values, slopes, targets = rng.normal(size=(5, 20)), rng.normal(size=(5, 20)), rng.normal(size=(20, 3))
  basis = np.column_stack([np.ones(20), rng.normal(size=(20, 2))])
  beyond = np.linalg.svd(basis)[0][:, 3:]
  rest = targets - basis @ np.linalg.lstsq(basis, targets, rcond=None)[0]
  expected = np.empty((5, 3))
  for place in range(5):
    columns = np.column_stack([basis, values[place], slopes[place]])
    errors = targets - columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    expected[place] = np.sum(errors**2, axis=0) / np.sum(rest**2, axis=0)
  along = beyond.T @ targets
  by_value, got = one_constant._left(values, slopes, beyond, along / np.linalg.norm(along, axis=0))
  np.testing.assert_allclose(got, expected, rtol=1e-9)
  assert np.all(by_value >= got) and np.all(by_value <= 1 + 1e-12)


@pytest.mark.parametrize("field", ["num_asked", "max_columns", "num_formulas", "num_rows", "num_nearest",
                                   "num_of_each", "num_steps", "num_trial_steps", "num_met",
                                   "most_constants"])
def test_counts_are_checked(field):
  with pytest.raises(ValueError, match=field):
    OneConstantConfig(**{field: 0})


def test_links_and_numbers_of_families_are_checked():
  with pytest.raises(ValueError, match="links"):
    OneConstantConfig(links=("nonsense",))
  with pytest.raises(ValueError, match="num_families"):
    OneConstantConfig(num_families=(100, 0))


def test_small_terms_that_are_seen_stay():
  rng = np.random.default_rng(0)
  columns = np.column_stack([np.ones(50), rng.uniform(1, 2, 50), 1e9 * rng.uniform(1, 2, 50)])
  nodes = [expression.number(1.0), variable(0), variable(1)]
  small = one_constant._terms(nodes, columns, columns @ [3.0, 0.0, 1.0], CONFIG)
  assert [term.args[0] for term in small] == [nodes[0], nodes[2]]
  none = one_constant._terms(nodes, columns, columns @ [0.0, 0.0, 2.5], CONFIG)
  assert [term.args[0] for term in none] == [nodes[2]] and none[0].args[1].value == pytest.approx(2.5, rel=1e-12)


def test_a_target_that_does_not_vary_on_the_rows_drawn_gives_nothing():
  x = np.random.default_rng(0).uniform(1, 2, (200, 1))
  y = np.where(np.arange(200) < 3, 5.0 + x[:, 0], 1.0)
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    assert ask(make_task((x, y), ("x",), SearchOptions())) == ()
