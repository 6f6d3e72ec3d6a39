"""Sums and products of functions of groups of columns: which groups there are, and what each of them is."""

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from symformer_jax.engine import refine
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Pool
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import registry
from symformer_jax.sources.reductions import additive_groups, partitions
from symformer_jax.sources.reductions.additive_groups import Partition, find_noise, find_partition, fit_partition

CONFIG = DEFAULT.partitions
OPTIONS = SearchOptions()


def make(text, box, *, num_rows=200, options=OPTIONS):
  rng = np.random.default_rng(3)
  names = "xyzwv"[: len(box)]
  x = np.stack([rng.uniform(*each, num_rows) for each in box], axis=1)
  return make_task((x, expression.evaluate(parser.parse(text, names), x)), list(names), options)


def groups_of(text, box, link):
  task = make(text, box)
  found = find_partition(task.fit_rows.x, task.fit_rows.y, link, CONFIG)
  return found and {frozenset(group) for group in found.sum.groups}


@pytest.mark.parametrize(("text", "num_columns", "link", "groups"), [
  ("x*y/(x + y) + sin(z)", 3, "y", {(0, 1), (2,)}),
  ("(y - 0.4)*x*z/(1 + 3*sqrt(x)*z)", 3, "exp", {(1,), (0, 2)}),
  ("(x + 5*y**0.3)*(1 + 0.2*log(z))*exp(-w**2)", 4, "exp", {(0, 1), (2,), (3,)}),
  ("1/(1/(x + y**2) + sqrt(z*w + 1))", 4, "inv", {(0, 1), (2, 3)}),
  ("sqrt(x*y**x + exp(z))", 3, "sqrt", {(0, 1), (2,)}),
  ("x**2*(y + 3)*z/(z + w)", 4, "exp", {(0,), (1,), (2, 3)}),
  ("log(x*w + 1)*y + v*arctan(z)/(z + v)", 5, "y", {(0, 1, 3), (2, 4)})])
def test_groups_are_told_before_any_function_is_known(text, num_columns, link, groups):
  assert groups_of(text, [(0.5, 3)] * num_columns, link) == set(map(frozenset, groups))


@pytest.mark.parametrize(("text", "link"), [
  ("x*y/(x + y*z)", "y"), ("x*y/(x + y*z)", "exp"), ("sin(x*y) + x*z", "y"), ("x - 2", "exp"), ("x*y - z", "inv")])
def test_what_is_no_such_sum_has_no_groups(text, link):
  assert groups_of(text, [(0.5, 3)] * 3, link) is None


@pytest.mark.parametrize(("text", "num_columns", "groups"), [
  ("x/(x + 0.7)*y/(0.4 + y)*exp(-z)", 3, {(0,), (1,), (2,)}), ("log(1 + x*y)*(z - 0.45)", 3, {(0, 1), (2,)}),
  ("(x - 0.4)*(2 + cos(y*z))", 3, {(0,), (1, 2)})])
def test_products_are_told_under_noise_that_makes_some_rows_negative(text, num_columns, groups, rng):
  task = make(text, [(0.5, 3)] * num_columns)
  x, y = task.fit_rows.x, task.fit_rows.y
  y = y + 0.03 * np.std(y) * rng.normal(size=len(y))
  y[0] = -0.01
  noise = find_noise(x, y, CONFIG)
  found = find_partition(x, y, "exp", CONFIG, noise)
  assert {frozenset(group) for group in found.sum.groups} == set(map(frozenset, groups))
  assert find_partition(x, y, "exp", CONFIG) is None  # no logarithm of all rows


def test_noise_is_what_a_smooth_function_leaves(rng):
  x = rng.uniform(0.5, 3, (200, 3))
  y = x[:, 0] + x[:, 1] * x[:, 2]
  for share in (0.01, 0.1):
    noise = find_noise(x, y + share * np.std(y) * rng.normal(size=200), CONFIG)
    assert 0.7 * share < noise / np.std(y) < 1.5 * share
  assert find_noise(x, y, CONFIG) == 0 == find_noise(x, rng.permutation(y), CONFIG)


def test_of_too_few_rows_beyond_the_noise_nothing_is_told(rng):
  x = rng.uniform(0.5, 3, (200, 2))
  y = (x[:, 0] - 0.4) * np.log(x[:, 1] + 0.6)
  assert find_partition(x, y, "exp", CONFIG, 0.4 * np.median(y)) is not None
  assert find_partition(x, y, "exp", CONFIG, 0.6 * np.median(y)) is None


def test_noise_has_no_groups(rng):
  assert find_partition(rng.normal(size=(200, 3)), rng.normal(size=200), "y", CONFIG) is None


def test_of_many_columns_only_single_ones_are_taken_apart():
  few = dataclasses.replace(CONFIG, max_halved=3, max_apart=1)
  task = make("x*y/(x + y) + sin(z*w)", [(0.5, 2)] * 4)
  assert find_partition(task.fit_rows.x, task.fit_rows.y, "y", few) is None
  assert find_partition(task.fit_rows.x, task.fit_rows.y, "y", CONFIG) is not None


def ask(task, options=OPTIONS, turns=None):
  """The formulas of the first turns, and the last proposal."""
  source = registry.SOURCES["partitions"](None, options)
  pool, state, nodes = Pool(task.variance, len(task.fit_rows), DEFAULT.pool), source.init(task, jax.random.key(0)), []
  for turn, num in enumerate(source.turns[:turns]):
    [proposal] = source.propose([Question(task, pool, state)], turn=turn, num=num, clock=Clock())
    state, nodes = proposal.state, [*nodes, *proposal.nodes]
    if proposal.is_last:
      break
  return nodes, proposal


def left_by(nodes, task):
  """Share of the variance that the nearest leaves when its constants have been fitted."""
  [fitted] = refine.fit_constants([(task, nodes)], method="lm", max_steps=60, max_constants=16)
  return min(mse for _, mse in fitted) / task.variance


def test_a_product_is_found_part_by_part():
  task = make("(y - 0.4)*x*z/(1 + 3*sqrt(x)*z)", [(0.5, 3)] * 3)
  nodes, _ = ask(task, turns=10)
  assert left_by(nodes, task) < 1e-20


@pytest.mark.parametrize("text", ["exp(0.4*x)*(log(y) + 3)*sqrt(z + 1)", "1/(x**2 + 0.3*exp(y) + 2*sqrt(z))"])
def test_functions_of_single_columns_are_a_matter_of_the_first_turn(text):
  task = make(text, [(0.5, 3)] * 3)
  nodes, proposal = ask(task)
  assert proposal.is_last and left_by(nodes, task) < 1e-20


def test_where_there_are_no_groups_it_ends_with_its_first_turn():
  nodes, proposal = ask(make("x*y/(x + y*z + z*x**2)", [(0.5, 3)] * 3))
  assert not nodes and proposal.is_last and proposal.state == []


def test_operators_that_are_not_allowed_undo_no_link():
  options = SearchOptions(restrictions=Restrictions(operators=("+", "*", "exp")))
  text, box = "sqrt(x*y**x + exp(z))", [(0.5, 3)] * 3
  assert not ask(make(text, box, options=options), options, turns=1)[1].state
  assert [split.link for split in ask(make(text, box), turns=1)[1].state] == ["sqrt"]


def test_factors_that_are_powers_are_no_groups():
  assert groups_of("sqrt(x)*z**3*sin(0.4*y + 1)", [(0.5, 3)] * 3, "exp") is None
  assert groups_of("sqrt(x)*(z + 1)*sin(0.4*y + 1)", [(0.5, 3)] * 3, "exp") is not None
  assert groups_of("sqrt(x)*z**3*y/(y + z)", [(0.5, 3)] * 3, "exp") is None


def test_a_column_that_is_the_same_in_most_rows_is_in_no_ones_way():
  task = make("(y - 0.4)*x*z/(1 + 3*sqrt(x)*z)", [(0.5, 3)] * 3)
  x = np.column_stack([task.fit_rows.x, np.eye(len(task.fit_rows))[0]])
  found = find_partition(x, task.fit_rows.y, "exp", CONFIG)
  assert {1} in [set(group) - {3} for group in found.sum.groups]


def test_without_a_first_turn_there_is_nothing():
  task, source = make("x + y*z", [(0.5, 3)] * 3), registry.SOURCES["partitions"](None, OPTIONS)
  question = Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), None)
  [proposal] = source.propose([question], turn=3, num=1, clock=Clock())
  assert not proposal.nodes and proposal.is_last


def test_of_odd_data_the_first_turn_finds_nothing(monkeypatch):
  def fail(*given):
    raise np.linalg.LinAlgError

  task = make("exp(0.4*x)*(log(y) + 3)*sqrt(z + 1)", [(0.5, 3)] * 3)
  monkeypatch.setattr(partitions.unknown_functions, "find_forms", fail)
  nodes, proposal = ask(task, turns=1)
  assert not nodes and proposal.is_last


def test_the_answer_for_a_data_set_depends_on_no_other():
  tasks = [make(text, [(0.5, 3)] * 3) for text in ("x*y/(x + y) + sin(z)", "(y - 0.4)*x*z/(1 + 3*sqrt(x)*z)")]
  source = registry.SOURCES["partitions"](None, OPTIONS)

  def first_turns(some):
    states, nodes = [None] * len(some), []
    for turn in range(3):
      questions = [Question(task, Pool(task.variance, len(task.fit_rows), DEFAULT.pool), state)
                   for task, state in zip(some, states, strict=True)]
      found = source.propose(questions, turn=turn, num=1, clock=Clock())
      states, nodes = [each.state for each in found], [*nodes, [each.nodes for each in found]]
    return list(zip(*nodes, strict=True))

  assert first_turns(tasks) == [first_turns([task])[0] for task in tasks]


def test_it_is_asked_of_several_columns_with_rows_enough_for_each():
  source = registry.SOURCES["partitions"](None, OPTIONS)
  assert source.supports(make("x + y + z", [(0.5, 3)] * 3, num_rows=3 * CONFIG.rows_per_column))
  assert not source.supports(make("x + y + z", [(0.5, 3)] * 3, num_rows=3 * CONFIG.rows_per_column - 1))
  assert not source.supports(make("x", [(0.5, 3)]))


def test_the_shortest_descriptions_of_all_parts_come_first():
  """Each with something that is new, and none twice."""
  x, y = (parser.parse(text, ("x", "y")) for text in "xy")
  named = {name: parser.parse(text, ("x", "y")) for name, text in (
    ("exp", "exp(x)"), ("log", "log(x)"), ("sin", "sin(y)"), ("root", "sqrt(y)"))}
  first = partitions.Part((0,), [(1.0, x), (2.0, named["exp"]), (9.0, named["log"])])
  second = partitions.Part((1,), [(1.0, y), (4.0, named["sin"]), (5.5, named["root"])])
  split = partitions.Split("y", [first, second], 2.0)
  def texts(most):
    return [printing.to_text(node, ("x", "y")) for node in split.new(most)]

  assert texts(5) == ["x + y + 2", "exp(x) + y + 2", "sin(y) + x + 2", "exp(x) + sin(y) + 2", "sqrt(y) + x + 2"]
  assert len(texts(20)) == 9
  first.new, second.new = [], second.forms[2:]
  assert texts(20) == ["sqrt(y) + x + 2", "exp(x) + sqrt(y) + 2", "log(x) + sqrt(y) + 2"]
  second.new = []
  assert texts(20) == []


def test_of_noise_functions_are_known_better_than_rows_are_predicted(rng):
  """One that is off by half the noise is told apart from the right one."""
  task = make("x/(x + 0.7)*log(y + 1)", [(0.5, 3)] * 2)
  noisy = dataclasses.replace(task.fit_rows, y=task.fit_rows.y + 0.02 * np.std(task.fit_rows.y) * rng.normal(size=200))
  task = dataclasses.replace(task, fit_rows=noisy)
  def costs(known):
    config = dataclasses.replace(DEFAULT, partitions=dataclasses.replace(CONFIG, known=known))
    source = next(s for s in registry.make_sources(None, SearchOptions(config=config)) if s.name == "partitions")
    [split] = source._splits(task)
    return [nats for nats, _ in split.parts[0].forms]

  assert costs(0.1)[0] < costs(1.0)[0] - 20
  assert np.ptp(costs(0.1)) > np.ptp(costs(1.0))


@pytest.mark.parametrize("link", ["sqrt", "y"])
def test_a_row_next_to_nothing_counts_no_more_than_the_noise_allows(link, rng):
  task = make("sqrt(x*y**x + exp(z))" if link == "sqrt" else "x*y**x + exp(z)", [(0.5, 3)] * 3)
  x, y = task.fit_rows.x, task.fit_rows.y + 0.02 * np.std(task.fit_rows.y) * rng.normal(size=200)
  noise = 0.02 * np.std(y)
  for value in (1e-4, 0.0):
    y[0] = value
    groups = ((0, 1), (2,))
    with np.errstate(divide="ignore"):
      found = fit_partition(x, y, link, groups, CONFIG.surrogate, noise=noise)
    assert found.error < CONFIG.most_error


@pytest.mark.parametrize(("times_most", "is_known"), [(0.5, True), (2.0, False), (None, False)])
def test_groups_that_some_rows_show_are_none_where_all_rows_tell_nothing(times_most, is_known, monkeypatch, rng):
  def fit(x, y, link, groups, config, *, noise):
    is_whole = len(x) > CONFIG.num_rows
    parts = SimpleNamespace(groups=groups, functions=groups, errors=np.zeros(len(x)))
    if is_whole and times_most is None:
      return None
    return Partition(link, parts, times_most * CONFIG.most_error if is_whole else 0.0)

  monkeypatch.setattr(additive_groups, "fit_partition", fit)
  x = rng.uniform(1, 2, (CONFIG.num_rows + 1, 2))
  assert (find_partition(x, x.sum(axis=1), "y", CONFIG) is not None) == is_known


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_groups_are_the_same_in_any_unit_of_the_target(unit, rng):
  x = rng.uniform(0.5, 3, (40, 2))
  y, groups = np.sin(x[:, 0]) + x[:, 1] ** 2, ((0,), (1,))
  own, other = (fit_partition(x, each, "y", groups, CONFIG.surrogate) for each in (y, unit * y))
  assert other.error == pytest.approx(own.error) and own.error < 1e-3
  assert fit_partition(x, np.full(40, unit), "y", groups, CONFIG.surrogate) is None


@pytest.mark.parametrize("link", ["y", "exp"])
def test_errors_of_factors_are_those_of_their_logarithms_times_them(link, monkeypatch):
  """... and those of terms the same for each."""
  logarithms = (lambda values: np.log(values[:, 0] + 9), lambda values: 2 * values[:, 0])
  task, asked = make("(x + 9)*exp(2*y)", [(0.5, 3)] * 2), []
  monkeypatch.setattr(partitions.unknown_functions, "find_forms", lambda tables, options, most: (
    asked.extend(known for _, known in tables) or [[(0.0, expression.variable(0))]] * 2))
  found = SimpleNamespace(groups=((0,), (1,)), functions=logarithms, errors=np.full(200, 0.02))
  registry.SOURCES["partitions"](None, OPTIONS)._split(task, (0, 1), Partition(link, found, 0.0), 0.25)
  for known in asked:  # of a quarter of the squares the root is 0.01
    off = known.values * (np.exp(0.01) - 1) if link == "exp" else 0.01
    assert known.error == pytest.approx(np.mean(np.square(off)), rel=0.02)
  assert len(asked) == 2
