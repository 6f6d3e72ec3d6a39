"""Searches of smaller tables by themselves: what is asked, which rows and rules they have, what comes back and when."""

import dataclasses
import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from symformer_jax import results, testing
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, programs
from symformer_jax.language.expression import Node, variable
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources import registry
from symformer_jax.sources.reductions import reduced_tables, reductions, smaller_tasks
from symformer_jax.sources.reductions.reduced_tables import Reduced
from symformer_jax.sources.reductions.reductions import Reductions, Smaller

NAMES = ("x", "y", "z")
OPTIONS = SearchOptions()


def parse(text):
  return parser.parse(text, NAMES)


def are(nodes, *texts):
  """Whether formulas are the same as others, whatever the order of their factors."""
  at = np.random.default_rng(3).uniform(1, 2, (9, 3))
  values, wanted = ([expression.evaluate(node, at) for node in each] for each in (nodes, map(parse, texts)))
  return len(values) == len(wanted) and np.allclose(values, wanted, rtol=1e-12)


@pytest.fixture
def x(rng):
  return rng.uniform(1, 2, (60, 3))


# A function of one column keeps the others: here it is any data set.
ALL_COLUMNS = dataclasses.replace(DEFAULT, screening=dataclasses.replace(DEFAULT.screening, has_sole_column=False))


def task_of(x, y, weights=None, **restrictions):
  options = SearchOptions(restrictions=Restrictions(**restrictions), config=ALL_COLUMNS)
  return make_task((x, y) if weights is None else (x, y, weights), NAMES[: x.shape[1]], options)


def source_with(*sources, **own):
  config = dataclasses.replace(DEFAULT, reductions=dataclasses.replace(DEFAULT.reductions, **own))
  return Reductions(SearchOptions(config=config, accuracy=0.5, max_time=9.0), tuple(sources))


# --- what comes back -------------------------------------------------------------------------------------------------


class Search:
  """A search that has found what it is told."""

  def __init__(self, *texts, ended_by="", exact=None):
    self.ended_by, self.asked, self.closed = ended_by, [], []
    nodes = [parse(text) if isinstance(text, str) else text for text in texts]
    self.pool = SimpleNamespace(
      shortlist=lambda most: self.asked.append(most) or [SimpleNamespace(node=node) for node in nodes[:most]],
      exact=lambda: None if exact is None else SimpleNamespace(node=parse(exact)))
    self.taking_part = True

  def takes_part(self, source):
    return self.taking_part

  def close_turn(self, *given):
    self.closed.append(given)


def smaller_of(search, x, columns=("x*y",)):
  table = Reduced(x[:, :1], x[:, 0], tuple(map(parse, columns)))
  return Smaller(table, search, (), Rows(x, x[:, 0], np.ones(len(x))))


def test_formulas_come_back_once_the_best_first(x):
  smaller = smaller_of(Search("x + 1", "2*x", "sin(x)"), x)
  assert are(smaller.new(2), "x*y + 1", "2*x*y") and are(smaller.new(3), "sin(x*y)")
  assert smaller.new(3) == () and smaller.search.asked == [2, 3, 3] and len(smaller.returned) == 3


def test_formulas_that_are_too_long_in_the_users_columns_do_not_come_back(x):
  long = " + ".join(f"sin({i}.5*x)" for i in range(1, 40))
  size = programs.size(parse(long))
  assert size > programs.MAX_TOKENS
  assert smaller_of(Search(long, "x"), x).new(2) == (parse("x*y"),)
  deep = parse("x")
  for _ in range(programs.MAX_TOKENS - 1):
    deep = expression.Node("sin", (deep,))
  assert programs.size(deep) == programs.MAX_TOKENS
  assert smaller_of(Search(deep, expression.Node("cos", (deep,))), x, ("x",)).new(2) == (deep,)


def test_what_meets_the_data_exactly_is_told_once_where_that_has_ended_the_search(x):
  smaller = smaller_of(Search(ended_by=results.EXACT, exact="x + 2"), x)
  assert not smaller.is_done
  assert smaller.last() == (parse("x*y + 2"),) and smaller.is_done and smaller.last() == ()
  for search in (Search(ended_by=results.EXACT), Search(exact="x"), Search(ended_by=results.NOISE, exact="x")):
    smaller = smaller_of(search, x)
    assert smaller.last() == () and not smaller.is_done


def test_powers_are_gathered_where_that_is_shorter_and_the_same(x, monkeypatch):
  smaller = smaller_of(Search(), x, ("x*y", "y**0.5*x**-1"))
  plain = smaller.reduced.restore(parse("x*y"))
  assert expression.complexity(smaller._restore(parse("x*y"))) < expression.complexity(plain)
  for gathered, expected in (("2*x", "x*y"), ("x + y - y", "x*y"), ("x*y", "x*y")):
    monkeypatch.setattr(reductions, "gather", lambda whole, sign, text=gathered: parse(text))
    assert smaller_of(Search(), x)._restore(parse("x")) == parse(expected)
  # The same but for the last digits, and of all lengths the shortest.
  for text, is_taken in (("1.0000001*x", True), ("1.00001*x", False)):
    monkeypatch.setattr(reductions, "gather", lambda whole, sign, text=text: parse(text))
    assert (smaller_of(Search(), x, ("x + 1e-9*sin(y)",))._restore(parse("x")) == parse(text)) == is_taken
  x[0, 0] = -1.0  # no logarithm: undefined in the same rows
  monkeypatch.setattr(reductions, "gather", lambda whole, sign: parse("log(x)"))
  with np.errstate(all="ignore"):
    assert smaller_of(Search(), x, ("log(x) + 1e-9*sin(y)",))._restore(parse("x")) == parse("log(x)")


def test_signs_are_those_in_all_rows(x):
  x[0] = 0.0, 1.0, -1.0
  smaller = smaller_of(Search(), x)
  assert [smaller._sign(parse(text)) for text in ("y", "0 - y", "x", "0 - x", "z", "x + 1")] == [1, -1, 0, 0, 0, 1]


# --- the source ------------------------------------------------------------------------------------------------------


class Other:
  """A source that says whether it supports a table."""

  def __init__(self, name, turns, is_supporting=True):
    self.name, self.turns, self._is_supporting = name, turns, is_supporting

  def supports(self, task):
    return self._is_supporting

  def init(self, task, key):
    return "begun"


def test_the_first_turn_looks_for_tables_and_the_others_are_those_of_the_sources():
  source = source_with(Other("one", (4, 5)), Other("two", (7,)))
  assert source.turns == (1, 1, 1, 1)
  for is_of_one in (True, False):
    assert [(turn.source.name, turn.number, turn.num)
            for turn in source._turns_of(SimpleNamespace(is_of_one=is_of_one))] == [
      ("one", 0, 4), ("one", 1, 5), ("two", 0, 7)]
  assert source._inner_options.accuracy is None and source._inner_options.max_time == math.inf
  assert source.init(None, None) is None


def test_tables_have_rows_and_columns_enough_and_not_too_many(x):
  source = source_with(rows_per_column=20, max_columns=3)
  y = x[:, 0]
  assert source.supports(task_of(x, y)) and not source.supports(task_of(x[:59], y[:59]))
  assert not source_with(rows_per_column=20, max_columns=2).supports(task_of(x, y))
  assert source.supports(task_of(x[:40, :2], y[:40])) and not source.supports(task_of(x[:, :1], y))
  x[:, 2] = 1.0  # does not vary
  assert source.supports(task_of(x[:40], y[:40])) and not source.supports(task_of(x[:39], y[:39]))
  assert not source.supports(task_of(x, y, excluded=("x",)))


def test_the_table_of_a_single_column_stands_alone():
  x = np.random.default_rng(0).uniform(-4, 4, (80, 3))
  x[:, 0] = 1.0
  task = make_task((x, np.tan(x[:, 2])), None, SearchOptions())
  source = source_with(Other("library", (1,)))
  [smaller] = source._smaller(task, has_errors=False)
  assert smaller.reduced.columns == (variable(2),) and smaller.search.is_of_one
  np.testing.assert_array_equal(smaller.search.task.rows.x, x[:, [2]])
  assert smaller._restore(parse("sin(x)")) == Node("sin", (variable(2),))


def test_turns_end_where_there_are_no_tables_or_all_are_done(x, monkeypatch):
  source, task = source_with(Other("one", (1,)), Other("two", (1, 1))), task_of(x, x[:, 0])
  reduced = SimpleNamespace(columns=(0, 1), error=math.inf)
  turns = source._turns_of(SimpleNamespace(is_of_one=False))
  tables = tuple(SimpleNamespace(is_done=is_done, reduced=reduced, turns=turns) for is_done in (True, False))
  seen, asked = [], []
  monkeypatch.setattr(Reductions, "_smaller", lambda self, task, *, has_errors: seen.append(has_errors) or tables)
  monkeypatch.setattr(Reductions, "_ask", lambda self, smaller, turn, clock: (
    asked.append((turn.source.name, turn.number)) or (parse("x"),)))
  [first] = source.propose([Question(task, None, None)], turn=0, num=1, clock=Clock())
  assert first.state is tables and first.nodes == () and not first.is_last
  [second] = source.propose([Question(task, None, tables)], turn=2, num=1, clock=Clock())
  assert second.nodes == (parse("x"),) * 2 and second.state is tables and not second.is_last
  assert asked == [("two", 0)] * 2
  assert source.propose([Question(task, None, tables)], turn=3, num=1, clock=Clock())[0].is_last  # no table has more
  tables[1].is_done = True
  [last] = source.propose([Question(task, None, tables)], turn=1, num=1, clock=Clock())
  assert last.is_last and asked[-1] == ("one", 0)
  monkeypatch.setattr(Reductions, "_smaller", lambda self, task, *, has_errors: seen.append(has_errors) or ())
  assert source.propose([Question(task, None, None, True)], turn=0, num=1, clock=Clock())[0].is_last
  assert seen == [False, True]


def test_a_table_of_fewer_turns_than_another_is_asked_no_more_after_these(x, monkeypatch):
  source, task = source_with(Other("one", (1,)), Other("two", (1, 1))), task_of(x, x[:, 0])
  turns = source._turns_of(SimpleNamespace(is_of_one=False))
  reduced = SimpleNamespace(columns=(0, 1), error=math.inf)
  tables = tuple(SimpleNamespace(is_done=False, reduced=reduced, turns=some) for some in (turns[:1], turns[1:]))
  asked = []
  monkeypatch.setattr(Reductions, "_ask", lambda self, smaller, turn, clock: asked.append(turn.source.name) or ())
  ended = [source.propose([Question(task, None, tables)], turn=turn, num=1, clock=Clock())[0].is_last
           for turn in (1, 2, 3)]
  assert asked == ["one", "two", "two"] and ended == [False, True, True]


def test_a_smaller_table_is_asked_as_long_as_its_search_goes_on(x, monkeypatch):
  source, taken = source_with(Other("one", (3,)), num_kept=2), []
  monkeypatch.setattr(smaller_tasks.loop, "take_turn", lambda turn, searches, options, clock: (
    taken.append((turn, searches, options)) or [("proposal", "fitted")]))
  [turn] = source._turns_of(SimpleNamespace(is_of_one=True))
  smaller = smaller_of(Search("x", "2*x", "3*x", ended_by=results.EXACT, exact="x + 7"), x)
  assert are(source._ask(smaller, turn, Clock()), "x*y", "2*x*y")
  [(asked, [search], options)] = taken
  assert asked is turn and search is smaller.search and options == source._inner_options
  [(one, proposal, fitted, seconds)] = smaller.search.closed
  assert one is turn.source and (proposal, fitted) == ("proposal", "fitted") and seconds >= 0
  smaller.search.taking_part = False
  assert source._ask(smaller, turn, Clock()) == (parse("x*y + 7"),) and smaller.is_done
  smaller.search.taking_part = True
  assert source._ask(smaller, turn, Clock()) == () and len(taken) == 1


def tables_of(monkeypatch, task, source, found, tried=(), *, has_errors=False):
  asked = []
  monkeypatch.setattr(reductions, "find_reductions", lambda x, y, config: asked.append((x, y)) or list(found))
  monkeypatch.setattr(reductions.tried_changes, "find_smaller", lambda x, y, config: list(tried))
  return source._smaller(task, has_errors=has_errors), asked


def test_tables_are_looked_for_in_some_rows_and_searched_by_sources_that_can(x, monkeypatch):
  task = task_of(np.column_stack([x[:, 0], np.ones(60), x[:, 1]]), x[:, 0] * x[:, 2])
  source = source_with(Other("library", (1,)), Other("varying", (1,), is_supporting=False), Other("growth", (1,)),
                       num_rows=24)
  table = Reduced(x[:24, :1], x[:24, 0], (parser.parse("a*b", ("a", "b")),))
  found, [(shown, y)] = tables_of(monkeypatch, task, source, [table])
  rows = task.fit_rows.sample(24, seed=0)
  np.testing.assert_array_equal(shown, rows.x[:, [0, 2]])
  np.testing.assert_array_equal(y, rows.y)
  [smaller] = found
  assert smaller.reduced.columns == (parse("x*z"),) and [s.name for s in smaller.search.sources] == ["library"]
  assert smaller.search.states == {"library": "begun"}
  np.testing.assert_allclose(smaller.search.task.rows.x[:, 0], task.fit_rows.x[:, 0] * task.fit_rows.x[:, 2])
  assert smaller._rows is task.fit_rows
  assert tables_of(monkeypatch, task, source, [])[0] == ()


def test_rows_in_which_nothing_varies_have_no_smaller_table(x, monkeypatch):
  source = source_with(num_rows=30)
  seen = task_of(x, x[:, 0]).fit_rows.sample(30, seed=0).x[:, 0]
  rare = np.where(np.arange(60) == np.flatnonzero(~np.isin(x[:, 0], seen))[0], 2.0, 1.0)
  for columns, y, num in ((x[:, :2], x[:, 0], 1), (np.column_stack([x[:, 0], rare]), x[:, 0], 0),
                          (x[:, :2], rare, 0)):
    task = task_of(columns, y)
    assert len(tables_of(monkeypatch, task, source, [])[1]) == num
  def fail(*args):
    raise np.linalg.LinAlgError("SVD did not converge")
  monkeypatch.setattr(reductions, "find_reductions", fail)
  monkeypatch.setattr(reductions.tried_changes, "find_smaller", fail)
  assert source._smaller(task_of(x, x[:, 0]), has_errors=False) == ()


def test_where_slopes_are_not_sure_changes_are_tried_and_other_sources_asked(x, monkeypatch):
  """Both tables, each with its sources; what slopes tell surely is enough."""
  source, task = source_with(Other("enumeration", (1,)), Other("pairs", (1,)), Other("library", (1,))), task_of(
    x, x[:, 0] * x[:, 2])
  told, tried = (Reduced(x[:, :1], x[:, 0], (parse(text),)) for text in ("x*z", "x/z"))
  def asked_of(error):
    found, _ = tables_of(monkeypatch, task, source, [told._replace(error=error)], [tried])
    return [(smaller.reduced.columns[0], [s.name for s in smaller.search.sources]) for smaller in found]

  exact, noisy = ["enumeration", "library"], ["pairs", "library"]
  assert asked_of(4.1e-3) == [(parse("x*z"), exact), (parse("x/z"), noisy)]
  assert asked_of(3.9e-3) == [(parse("x*z"), exact)]
  assert [s.name for each in tables_of(monkeypatch, task, source, [], [tried])[0] for s in each.search.sources] == noisy
  [nearly_exact] = tables_of(monkeypatch, task, source, [], [tried._replace(error=4.9e-3)])[0]
  assert [s.name for s in nearly_exact.search.sources] == exact
  [both] = tables_of(monkeypatch, task, source, [tried], [tried])[0]  # one table, once
  assert [s.name for s in both.search.sources] == ["enumeration", "pairs", "library"]


def test_where_y_has_errors_slopes_are_not_asked_and_turns_of_some_come_first(x, monkeypatch):
  """Of a table of several columns; of one as ever. Sources that take no part have no turns."""
  source = source_with(Other("closed_forms", (1, 1)), Other("library", (1,)), Other("varying", (1,)),
                       Other("pairs", (1, 1), is_supporting=False), Other("product_units", (1, 1)),
                       tried=dataclasses.replace(DEFAULT.reductions.tried, first=(
                         ("product_units", 1), ("pairs", 1), ("library", 3), ("product_units", 2))))
  told, one, two = (Reduced(x[:, : len(texts)], x[:, 0], tuple(map(parse, texts)))
                    for texts in (("x + y",), ("x*z",), ("x*z", "y")))
  task = task_of(x, x[:, 0] * x[:, 2])
  found, asked = tables_of(monkeypatch, task, source, [told], [one, two], has_errors=True)
  assert asked == [] and [smaller.reduced.columns for smaller in found] == [one.columns, two.columns]
  of_one, of_two = ([(turn.source.name, turn.number) for turn in smaller.turns] for smaller in found)
  assert of_two == [("product_units", 0), ("library", 0), ("product_units", 1), ("closed_forms", 0),
                    ("closed_forms", 1), ("varying", 0)]
  assert of_one == [(turn.source.name, turn.number) for turn in source._turns_of(found[0].search)
                    if turn.source.name != "pairs"] and of_one != of_two and len(of_one) == len(of_two)
  # Without errors both ways are gone, and all turns are in the order of a table.
  found, asked = tables_of(monkeypatch, task, source, [told], [two])
  assert len(asked) == 1 and [smaller.reduced.columns for smaller in found] == [told.columns, two.columns]
  assert found[1].turns == source._turns_of(found[1].search) and len(found[1].turns) == 8


# --- rows of the smaller table ---------------------------------------------------------------------------------------


def test_rows_weigh_by_what_their_errors_make_of_the_target(x):
  weights = np.linspace(0.5, 1.5, 60)
  y = x[:, 0] ** 2 * x[:, 1]
  task = task_of(x, y, weights, forbidden=("sin",))
  found = reductions._task_of(task, Reduced(x[:, :2], y, (parse("y"), parse("x*z")), (parse("x**2"),)))
  np.testing.assert_allclose(found.rows.x, np.column_stack([x[:, 1], x[:, 0] * x[:, 2]]))
  np.testing.assert_allclose(found.rows.y, x[:, 1])
  expected = task.fit_rows.weights * x[:, 0] ** 4
  np.testing.assert_allclose(found.rows.weights, expected / expected.mean())
  mean = np.average(x[:, 1], weights=expected)
  assert found.variance == pytest.approx(np.average((x[:, 1] - mean) ** 2, weights=expected))
  assert found.fit_rows is found.rows and found.columns == (0, 1) and len(found.names) == 2
  assert found.num_rows == task.num_rows and found.rule.tokens == task.rule.tokens
  assert found.rule(parser.parse("a + b", ("a", "b"))) and not found.rule(parser.parse("sin(a)", ("a", "b")))


@pytest.mark.parametrize("step", ["0*x", "log(x - 1.5)", "1e40*x", "1e-40*x", "x - x[0]"])
def test_rows_without_a_value_or_a_weight_are_no_table(x, step):
  """A divisor of 0 in all rows, without a value in some, one that leaves no spread or one beyond all bounds."""
  y = x[:, 1]
  node = parse(step) if "[" not in step else expression.Node("+", (parse("x"), expression.number(-float(x[0, 0]))))
  table = Reduced(x[:, :1], y, (parse("x"),), (node,))
  assert reductions._task_of(task_of(x, y), table) is None


def test_values_beyond_the_range_of_numbers_and_those_that_do_not_vary_are_no_table(x):
  task = task_of(x, x[:, 1])
  def made(*columns, steps=()):
    return reductions._task_of(task, Reduced(x[:, :1], x[:, 0], tuple(map(parse, columns)), steps))
  assert made("x", "x*y") is not None
  assert made("x", "1e61*x") is None and made("x", "log(x - 1.5)") is None and made("1e59*x") is not None
  assert made("x", steps=(reduced_tables.Added(parse("y")),)) is None
  assert made("x", steps=(parse("y"),)) is None


def test_a_row_that_has_no_weight_in_the_smaller_table_makes_it_none(x):
  task = task_of(x, x[:, 0] * x[:, 1])
  x[0, 0] = 1e-170  # its square vanishes
  task = dataclasses.replace(task, fit_rows=Rows(x, x[:, 0] * x[:, 1], np.ones(60)))
  assert reductions._task_of(task, Reduced(x[:, 1:2], x[:, 1], (parse("y"),), (parse("x"),))) is None


def test_keys_of_the_inner_search_are_the_users_seed(x, monkeypatch):
  keys = []
  class Begun(Other):
    def init(self, task, key):
      keys.append(key)

  source = dataclasses.replace(source_with(Begun("library", (1,))), options=SearchOptions(seed=7))
  tables_of(monkeypatch, task_of(x, x[:, 0]), source, [Reduced(x[:, :1], x[:, 0], (parse("x*y"),))])
  assert jax.random.key_data(keys[0]).tolist() == jax.random.key_data(jax.random.key(7)).tolist()


def known_table(x, error=1e-4):
  """x**y*z as a table of x**y and z, of three columns."""
  columns = (parse("x**y"), parse("z"))
  at = np.stack([expression.evaluate(node, x) for node in columns], axis=1)
  return Reduced(at, at[:, 0] * at[:, 1], columns, (), error)


@pytest.mark.parametrize(("error", "num_columns", "is_asked"), [(1e-4, 3, True), (1e-4, 2, False), (0.1, 3, False)])
def test_a_known_smaller_table_is_asked_in_other_columns_after_some_turns(error, num_columns, is_asked, monkeypatch):
  x = np.random.default_rng(0).uniform(1, 2, (80, 3))
  task = make_task((x[:, :num_columns], x[:, 0] ** x[:, 1]), None, SearchOptions())
  config = dataclasses.replace(DEFAULT.reductions, coordinates=dataclasses.replace(
    DEFAULT.reductions.coordinates, num_turns_before=3))
  source = registry.SOURCES["reductions"](
    testing.FixedProposer(["x0"]), SearchOptions(config=dataclasses.replace(DEFAULT, reductions=config)))
  table, asked = known_table(x, error), []
  monkeypatch.setattr(reductions, "in_other_columns", lambda reduced, config: table)
  monkeypatch.setattr(Reductions, "_ask", lambda self, smaller, turn, clock: asked.append(smaller) or ())
  search = SimpleNamespace(is_of_one=False)
  first = Smaller(table, search, source._turns_of(search), task.fit_rows)
  tables = (first,)
  for turn in (1, 2, 3, 4):
    [proposal] = source.propose([Question(task, None, tables)], turn=turn, num=1, clock=Clock())
    tables = proposal.state
  assert len(tables) == 1 + is_asked and asked.count(first) == 4
  if is_asked:
    other = tables[1]
    assert asked.count(other) == 4 and other.proposed is first.proposed
    assert {each.name for each in other.search.sources} == {"closed_forms", "separable"}
