"""Smaller tables by themselves: what they hold, how formulas come back, which changes are followed and which stand."""

import dataclasses
import functools

import numpy as np
import pytest

from symformer_jax.engine import gaussian_process
from symformer_jax.engine.config import DEFAULT, NeighboursConfig
from symformer_jax.engine.gaussian_process import Surrogate
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import variable
from symformer_jax.sources.reductions import invariances, reduced_tables, smaller_tables
from symformer_jax.sources.reductions.reduced_tables import Added, Change, Reduced
from symformer_jax.sources.reductions.smaller_tables import find_logarithms

NAMES = ("x", "y", "z")
CONFIG = DEFAULT.reductions
SHOWN = functools.partial(printing.to_text, names=NAMES)
pytestmark = pytest.mark.usefixtures("errors_ignored")


def parse(text):
  return parser.parse(text, NAMES)


@pytest.fixture
def x(rng):
  return rng.uniform(1, 2, (40, 3))


def with_config(**changes):
  return dataclasses.replace(CONFIG, **changes)


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "value"), [("x", np.inf), ("y", np.nan), ("x", None), ("y", None)])
def test_tables_are_of_finite_values_that_vary(x, place, value):
  table = reduced_tables.whole(x, x[:, 0] + x[:, 1])
  assert table.is_usable and table.columns == tuple(map(variable, range(3))) and table.steps == ()
  spoilt = getattr(table, place).copy()
  if value is None:  # the same in all rows
    spoilt[..., 0 if place == "x" else slice(None)] = 1.0
  else:
    spoilt.flat[4] = value
  assert not table._replace(**{place: spoilt}).is_usable


STEPS = (parse("x"), Added(parse("2*y")), "exp", parse("z**2"), "inv")


def test_values_and_formulas_go_and_come_back(x):
  columns = (parse("x*y"), parse("z"))
  table = Reduced(x[:, :2], x[:, 0], columns, STEPS)
  y = x[:, 0] * (2 * x[:, 1] + np.exp(x[:, 2]))  # x times (2y plus what has a logarithm)
  at, shown, scale = table.of(x, y)
  np.testing.assert_allclose(at, np.column_stack([x[:, 0] * x[:, 1], x[:, 2]]))
  logarithm = np.log(y / x[:, 0] - 2 * x[:, 1])
  np.testing.assert_allclose(shown, x[:, 2] ** 2 / logarithm)
  _, more, _ = table.of(x, y + 1e-7)
  np.testing.assert_allclose(np.abs(scale * (more - shown)), 1e-7, rtol=1e-4)
  whole = expression.evaluate(table.restore(parse("x + 3*y")), x)
  np.testing.assert_allclose(table.of(x, whole)[1], at[:, 0] + 3 * at[:, 1], rtol=1e-10)


def test_columns_of_a_part_of_a_table_get_their_places_in_the_whole():
  table = Reduced(np.ones((2, 1)), np.ones(2), (parse("x*y"),), STEPS[:3]).with_places({0: 2, 1: 0})
  assert [SHOWN(node) for node in table.columns] == ["z*x"]
  assert [SHOWN(table.steps[0]), SHOWN(table.steps[1].node), table.steps[2]] == ["z", "2*x", "exp"]


@pytest.mark.parametrize(("name", "rises"), [("exp", True), ("inv", False), ("complement_exp", False)])
def test_a_function_of_the_target_has_its_slopes(name, rises):
  y = np.linspace(0.1, 0.8, 5)
  table = Reduced(np.ones((5, 2)), y, (parse("x"), parse("y")), ("ln",))
  slopes = np.tile([2.0, -3.0], (5, 1))
  found, behind = table.behind(name, slopes)
  transform = {"exp": np.log, "inv": lambda v: 1 / v, "complement_exp": lambda v: np.log(1 - v)}[name]
  np.testing.assert_allclose(found.y, transform(y))
  assert found.steps == ("ln", name) and (behind[0, 0] > 0) == rises
  np.testing.assert_allclose(behind, slopes * ((transform(y + 1e-7) - transform(y - 1e-7)) / 2e-7)[:, None], rtol=1e-6)


def test_logarithms_take_the_place_of_columns(x):
  table = reduced_tables.whole(x, x[:, 0])
  found = table.with_logarithms((0, 2))
  np.testing.assert_allclose(found.x, np.column_stack([np.log(x[:, 0]), x[:, 1], np.log(x[:, 2])]))
  assert [SHOWN(node) for node in found.columns] == ["log(x)", "y", "log(z)"] and np.all(table.x == x)


def test_a_change_takes_a_column_away_and_divides_and_subtracts(x):
  node = parse("y/x**2")
  change = Change(0.0, 0, {1: (node, x[:, 0] ** -2)}, ((0, 3.0),), summand=parse("z"))
  inner = (parse("x + 1"), parse("y"), parse("2*z"))
  table, slopes = Reduced(x, x[:, 2], inner, ("inv",)), np.ones((40, 3))
  found, new = change.apply(table, slopes)
  np.testing.assert_allclose(found.x, np.column_stack([x[:, 1] / x[:, 0] ** 2, x[:, 2]]))
  np.testing.assert_allclose(found.y, x[:, 2] / x[:, 0] ** 3 - x[:, 2])
  np.testing.assert_allclose(new, np.column_stack([x[:, 0] ** 2, np.ones(40)]) / x[:, [0]] ** 3)
  for one, other in zip(found.columns, (parse("y/(x + 1)**2"), parse("2*z")), strict=True):
    np.testing.assert_allclose(expression.evaluate(one, x), expression.evaluate(other, x))
  first, second, third = found.steps
  np.testing.assert_allclose(expression.evaluate(second, x), (x[:, 0] + 1) ** 3)
  assert first == "inv" and SHOWN(third.node) == "2*z"
  plain, _ = Change(0.0, 2, {}).apply(table, slopes)
  assert plain.steps == ("inv",) and plain.columns == inner[:2] and np.all(plain.y == table.y)


def test_changes_cost_their_nodes_and_are_told_by_what_they_do():
  node, one = parse("y/x**2"), np.ones(2)
  change = Change(0.5, 0, {1: (node, one)}, ((0, 3.0),), summand=parse("z"))
  assert change.complexity == sum(map(expression.complexity, (node, parse("x**3"), parse("z"))))
  assert Change(0.5, 0, {}).complexity == 0
  assert change.key == change._replace(error=0.1, is_simple=False).key
  others = [change._replace(**each) for each in (
    {"dropped": 2}, {"divisor": ()}, {"summand": None}, {"replaced": {}}, {"replaced": {2: (node, one)}})]
  assert change.key not in [other.key for other in others]


# --- logarithms ------------------------------------------------------------------------------------------------------


def wide(num_rows=60, num_columns=2):
  return 10 ** np.random.default_rng(1).uniform(0, 1.5, (num_rows, num_columns))


def logarithms(x, y, **changes):
  return find_logarithms(reduced_tables.whole(x, y), with_config(**changes))


@pytest.mark.parametrize(("num_rows", "degree", "expected"), [
  (40, 3, (0,)), (39, 3, ()), (24, 2, (0,)), (23, 2, ())])
def test_polynomials_have_the_highest_degree_that_rows_bear(num_rows, degree, expected):
  x = wide(num_rows)
  y = np.log(x[:, 0]) ** (degree - 1) * x[:, 1]
  assert logarithms(x, y) == expected


def test_no_more_logarithms_than_are_of_use():
  x = wide()
  assert logarithms(x, np.log(x[:, 0]) ** 2) == (0,)
  assert logarithms(x, np.log(x[:, 1]) ** 2) == (1,)
  assert logarithms(x, np.log(x[:, 0]) * np.log(x[:, 1])) == (0, 1)
  assert logarithms(x, x[:, 0] * x[:, 1] + 1) == ()
  assert logarithms(x[:10], np.log(x[:10, 0]) + x[:10, 1]) == ()  # too few rows for squares
  y = np.log(x[:, 0]) * x[:, 1]
  assert logarithms(x, 1e-9 * y) == logarithms(x * [1, 1e-12], y) == (0,)  # in any unit


def test_logarithms_are_of_wide_columns_above_0_and_of_few():
  x = wide()
  y = np.log(x[:, 0]) * x[:, 1]
  assert logarithms(x, y, max_logarithms=1) == () and logarithms(x, y, max_logarithms=2) == (0,)
  assert logarithms(x, y, least_ratio=np.ptp(x[:, 0]) + 1e3) == ()
  assert logarithms(x[:, :1], np.log(x[:, 0])) == ()
  below = np.column_stack([x[:, 0], x[:, 1] - 9])
  assert logarithms(below, np.log(x[:, 0]) * below[:, 1], max_logarithms=1) == (0,)
  assert logarithms(below[:, ::-1], np.log(x[:, 0]) * below[:, 1], max_logarithms=1) == (1,)


def test_polynomials_may_be_of_functions_of_the_target():
  x = wide()
  x /= x.max(axis=0) / 2
  y = np.exp(np.log(x[:, 0]) * x[:, 1])
  assert logarithms(x, y, shown_links=("y",)) == ()
  assert logarithms(x, y, shown_links=("y", "exp")) == logarithms(x, y, shown_links=("exp", "y")) == (0,)
  assert logarithms(x, -y, shown_links=("exp",)) == ()


def test_logarithms_leave_a_small_share_of_what_is_left_without(rng):
  x = wide()
  y = np.log(x[:, 0]) * x[:, 1]
  y += 1e-3 * np.std(y) * rng.normal(size=60)
  shares = []
  for shown in (x, np.column_stack([np.log(x[:, 0]), x[:, 1]])):
    powers = [(i, j) for i in range(4) for j in range(4) if i + j <= 3]
    design = np.column_stack([shown[:, 0] ** i * shown[:, 1] ** j for i, j in powers])
    design /= np.abs(design).max(axis=0)
    shares.append(np.sqrt(np.mean((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2)))
  share = shares[1] / shares[0]
  assert logarithms(x, y, least_share=1.001 * share) == (0,) and logarithms(x, y, least_share=0.999 * share) == ()
  exact = np.log(x[:, 0]) * x[:, 1]
  assert logarithms(x, exact, least_share=0.0) == ()


# --- changes that are followed ---------------------------------------------------------------------------------------


def following(monkeypatch, x, rounds, *, most=3, only_simple=True, **changes):
  """Columns that were dropped of tables whose slopes tell of these changes, and how many there were."""
  known, (first, *given) = [], iter(rounds)
  further = iter(given)
  monkeypatch.setattr(invariances, "find_changes", lambda x, y, slopes, config: (
    known.append(x.shape[1]) or next(further, [])))
  table, followed = smaller_tables._follow(
    reduced_tables.whole(x, x.sum(axis=1)), np.ones_like(x), first, most, only_simple, with_config(**changes))
  assert len(table.columns) == x.shape[1] - len(followed)
  return [(change.dropped, change.error) for change in followed], known


def test_changes_are_followed_as_long_as_there_is_no_doubt(monkeypatch, x):
  sure, last = Change(1e-3, 0, {}), Change(1.1e-3, 1, {})
  assert following(monkeypatch, x, [[sure], [sure]]) == ([(0, 1e-3)] * 2, [2])
  assert following(monkeypatch, x, [[last], [sure]]) == ([(1, 1.1e-3)], [])
  assert following(monkeypatch, x, [[sure], [sure]], most=1)[0] == [(0, 1e-3)]
  assert following(monkeypatch, x, [[]])[0] == []


def test_changes_of_numbers_that_are_not_simple_are_followed_where_that_is_asked(monkeypatch, x):
  odd = [Change(1e-3, 0, {}, is_simple=False)]
  assert following(monkeypatch, x, [odd])[0] == []
  assert following(monkeypatch, x, [odd], only_simple=False)[0] == [(0, 1e-3)]
  assert following(monkeypatch, x, [[odd[0]._replace(error=1.1e-3)]], only_simple=False)[0] == []
  assert following(monkeypatch, x, [[odd[0]._replace(is_simple=True, error=0.02)]], only_simple=False)[0] == [(0, 0.02)]


def test_of_several_changes_the_simplest_is_followed_that_is_nearly_the_surest(monkeypatch, x):
  least, plain = Change(2.0**-16, 0, {}, ((0, 2.0),)), Change(20 * 2.0**-16, 1, {})
  assert following(monkeypatch, x, [[least, plain]], most=1)[0][0][0] == 1
  assert following(monkeypatch, x, [[least, plain._replace(error=21 * 2.0**-16)]], most=1)[0][0][0] == 0
  # Of slopes that are known to a thousandth: above `sure` twice as much.
  rough = least._replace(error=2.0**-12)
  assert following(monkeypatch, x, [[rough, plain._replace(error=1e-3)]], most=1)[0][0][0] == 1
  assert following(monkeypatch, x, [[rough, plain._replace(error=1.1e-3)]], most=1)[0][0][0] == 0
  rough = least._replace(error=2.0**-8)
  assert following(monkeypatch, x, [[rough, plain._replace(error=2.0**-7)]], most=1)[0][0][0] == 1
  assert following(monkeypatch, x, [[rough, plain._replace(error=1.1 * 2.0**-7)]], most=1)[0][0][0] == 0
  # Below `fine` errors say nothing.
  fine = [least._replace(error=0.0), plain._replace(error=CONFIG.fine)]
  assert following(monkeypatch, x, [fine], most=1)[0][0][0] == 1
  assert following(monkeypatch, x, [[fine[0], plain._replace(error=2 * CONFIG.fine)]], most=1)[0][0][0] == 0
  # As simple as another: the surer.
  same = [Change(2e-3, 0, {}), Change(1e-3, 1, {})]
  assert following(monkeypatch, x, [same], most=1)[0] == [(1, 1e-3)]


def test_changes_that_leave_no_table_are_passed_over(monkeypatch, x):
  x[:, 0] = 0.0  # y over it is no number
  spoilt, good = Change(0.0, 0, {}, ((0, -1.0),)), Change(0.0, 0, {}, summand=parse("x + y"))
  assert following(monkeypatch, x, [[spoilt, good]], most=1)[0] == [(0, 0.0)]
  assert following(monkeypatch, x, [[spoilt], [good]])[0] == []


def test_the_last_column_stays(monkeypatch, x):
  changes = [[Change(0.0, 0, {})] for _ in range(3)]
  assert len(following(monkeypatch, x, changes, most=9)[0]) == 2


def test_behind_a_link_the_surest_simple_factor_is_taken(monkeypatch, x):
  table = reduced_tables.whole(x, x.sum(axis=1))
  factor = Change(0.005, 0, {}, ((0, 1.0),))
  def behind(*given, links=("exp", "asin"), **changes):
    asked = []
    monkeypatch.setattr(invariances, "find_changes", lambda x, y, slopes, config, rejected: (
      asked.append((y.copy(), set(rejected))) or list(given)))
    rejected = {("exp", "no"), ("inv", "neither"), ("", "nor")}
    found = smaller_tables._behind_link(table, np.ones_like(x), rejected, with_config(links=links, **changes))
    return found, asked
  (smaller, changes, name), asked = behind(factor)
  assert changes == [factor] and name == "exp" and smaller.steps[0] == "exp" and len(smaller.columns) == 2
  [(shown, rejected)] = asked  # y reaches beyond the sine's
  np.testing.assert_allclose(shown, np.log(table.y))
  assert rejected == {"no"}
  for other in (factor._replace(divisor=()), factor._replace(is_simple=False), factor._replace(error=0.0101),
                factor._replace(divisor=((0, np.nan),))):
    assert behind(other)[0] == (table, [], "")
  assert behind(factor._replace(error=0.01))[0][1]
  long = factor._replace(divisor=((0, 1.0), (1, 1.0)))
  assert behind(long, factor)[0][1] == behind(factor, long)[0][1] == [factor]
  other = Change(0.005, 2, {}, ((2, 1.0),))
  assert behind(long, other)[0][1] == behind(other, long)[0][1] == [other]
  assert behind(factor, long._replace(error=0.001))[0][1] == [long._replace(error=0.001)]


# --- changes that stand ----------------------------------------------------------------------------------------------


def way_of(monkeypatch, x, y, fits, *, of_neighbours=(), **changes):
  """A way whose surrogates have these errors of every row, and rests; neighbours tell of these tables, step by step."""
  given, smaller = iter(fits), iter(of_neighbours)
  def fit(x, y, config):
    error, left = next(given)
    return Surrogate(np.ones_like(x), np.full(len(y), error), left)
  monkeypatch.setattr(gaussian_process, "fit", fit)
  monkeypatch.setattr(smaller_tables.neighbours, "find_smaller", lambda table, config: next(smaller, []))
  return smaller_tables._Way(x, y, with_config(**changes))


@pytest.mark.parametrize(("error", "left", "expected"), [
  (0.25, 0.5, True), (0.2501, 0.5, False), (0.25, 0.5001, False), (0.0, 0.0, True)])
def test_slopes_are_known_where_rows_left_out_are(monkeypatch, x, error, left, expected):
  y = np.arange(40) % 2 * 1.0  # a quartile apart: 1
  rare = np.where(np.arange(40) < 36, error, 9.0)  # the median counts
  for errors in (error, rare):
    assert way_of(monkeypatch, x, y, [(errors, left)], most_error=0.25, most_left=0.5)._is_known is expected


def test_a_smaller_table_stands_where_rows_left_out_are_as_well_known(monkeypatch, x):
  y = np.arange(40) % 2 * 1.0
  smaller = reduced_tables.whole(x, y)._replace(columns=(variable(0),), x=x[:, :1])
  for error, worse, expected in ((0.5, (2.0, 9.0), True), (0.51, (2.0, 9.0), False), (0.5, (9.0, 1.9), False),
                                 (0.1, (2.0, 9.0), True)):
    way = way_of(monkeypatch, x, y, [(0.25, 0.0), (error, 0.0)], most_worse=worse)
    before = way.table
    assert way._stands(smaller) is expected
    assert way.table is (smaller if expected else before)
    assert way._errors.tolist() == [max(0.25, error) if expected else 0.25] * 2
    assert way._surrogate.slopes.shape[1] == (1 if expected else 3)


def test_neighbours_are_followed_to_where_slopes_are_known(monkeypatch, x):
  y = np.arange(40) % 2 * 1.0
  first, second, third = (reduced_tables.whole(x, y)._replace(steps=(name,)) for name in ("ln", "exp", "sqrt"))
  monkeypatch.setattr(Reduced, "of", lambda self, x, y: (x, y, np.ones(len(y))))
  def went(fits, tables, **changes):
    way = way_of(monkeypatch, x, y, fits, of_neighbours=tables, most_error=0.1, most_left=0.5, **changes)
    assert way.follow_neighbours() is bool(way.table.steps)
    return way.table.steps, way._errors[0]
  known, rough = (0.05, 0.1), (0.5, 0.1)
  assert went([(0.1, 0.1), known], [[first]]) == (("ln",), 0.05)
  assert went([(0.099, 0.1), known, known], [[first], [first]]) == ((), 0.099)  # not far better
  assert went([rough, (0.4, 0.1), known], [[first, second]]) == (("exp",), 0.05)
  assert went([rough, (0.4, 0.1), known], [[first], [second]]) == (("exp",), 0.05)  # in two steps
  assert went([rough, (0.4, 0.1), known], [[first], [second]], neighbours=NeighboursConfig(num_steps=1)) == ((), 0.5)
  assert went([rough, (0.5, 0.1), known], [[first], [second]]) == ((), 0.5)  # no step that brings nothing
  assert went([rough, (0.4, 0.1)], [[third], []]) == ((), 0.5)  # nor to where slopes say nothing
  assert went([rough, (0.05, 0.6), known], [[first], [second]]) == ((), 0.5)
  # A table that neighbours led to is smaller than the one before.
  way = way_of(monkeypatch, x, y, [rough, known], of_neighbours=[[first._replace(columns=first.columns[1:])]],
               most_error=0.1)
  assert way.tables() == [] and way.follow_neighbours()
  monkeypatch.setattr(smaller_tables, "_follow", lambda *given: (None, []))
  monkeypatch.setattr(smaller_tables, "_behind_link", lambda *given: (None, [], ""))
  assert way.tables() == [way.table._replace(error=0.05)]


def test_a_change_is_likely_that_leaves_no_more_than_the_smooth_function_errs(monkeypatch, x):
  y = np.arange(40) % 2 * 1.0
  def limits(error):
    return way_of(monkeypatch, x, y, [(error, 0.0)], times_error=1000.0, likely=0.01, sure=1e-3)._limits
  assert [limits(error).likely for error in (1e-7, 2.0**-18, 1e-3)] == [1e-3, 1000 * 2.0**-18, 0.01]
  assert limits(1e-7).tolerance == CONFIG.tolerance
  way = way_of(monkeypatch, x, y, [(2.0**-18, 0.0)], times_error=1000.0)
  asked = []
  monkeypatch.setattr(smaller_tables, "_follow", lambda *given: (asked.append(given[-1]), (None, []))[1])
  monkeypatch.setattr(smaller_tables, "_behind_link", lambda *given: (asked.append(given[-1]), (None, [], ""))[1])
  way._errors = np.array([2.0**-18, 0.0])
  assert not way.go_on(True) and [config.likely for config in asked] == [1000 * 2.0**-18] * 2


def test_a_table_is_blurred_whose_rows_are_not_predicted_well(monkeypatch, x):
  y = np.arange(40) % 2 * 1.0
  near = NeighboursConfig(blurred=0.25)
  assert not way_of(monkeypatch, x, y, [(0.25, 0.0)], neighbours=near).is_blurred
  assert way_of(monkeypatch, x, y, [(0.26, 0.0)], neighbours=near).is_blurred
  way = way_of(monkeypatch, x, y, [(0.26, 0.0)], neighbours=near)
  way._errors = np.array([0.2, 0.9])
  assert not way.is_blurred


def test_errors_are_those_of_the_users_target(monkeypatch, x):
  y = np.arange(40) % 2 + 1.0
  way = way_of(monkeypatch, x, y, [(0.25, 0.0), (0.125, 0.0)])
  halved = reduced_tables.whole(x, y)._replace(steps=(expression.number(0.5),))
  assert way._stands(halved) and way._errors.tolist() == [0.25, 0.25]
  assert way._errors_of(way._surrogate, halved).tolist() == [0.0625, 0.0625]


def going_on(monkeypatch, x, script, *, stands, behind=(), **changes):
  """Goes on with changes that `_follow` finds, and those behind links; what these were asked."""
  way = way_of(monkeypatch, x, x[:, 0], [(0.0, 0.0)], **changes)
  asked, steps, verdicts, others = [], iter(script), iter(stands), iter(behind)
  def follow(table, slopes, first, most, only_simple, config):
    [rejected] = first
    asked.append((set(rejected), most, only_simple))
    found = next(steps, [])
    return (table._replace(columns=table.columns[len(found):]) if found else table), found
  def behind_link(table, slopes, rejected, config):
    asked.append(("behind", set(rejected)))
    name, found = next(others, ("", []))
    return table._replace(columns=table.columns[len(found):]), found, name
  def decide(smaller, *, is_inexact):
    if next(verdicts, False):
      way.table = smaller
      return True
    return False
  monkeypatch.setattr(invariances, "find_changes", lambda x, y, slopes, config, rejected: [rejected])
  monkeypatch.setattr(smaller_tables, "_follow", follow)
  monkeypatch.setattr(smaller_tables, "_behind_link", behind_link)
  monkeypatch.setattr(way, "_stands", decide)
  return way.go_on(True), asked


def test_changes_that_do_not_stand_are_tried_one_by_one_and_then_no_more(monkeypatch, x):
  first, second = Change(0.0, 0, {}), Change(0.0, 1, {})
  assert going_on(monkeypatch, x, [[first, second], [first], []], stands=[False, False]) == (False, [
    (set(), 3, True), (set(), 1, True), ({first.key}, 1, True), ("behind", {("", first.key)})])
  # One that stands makes a new beginning.
  assert going_on(monkeypatch, x, [[first, second], [first], [second], []], stands=[False, False, True]) == (True, [
    (set(), 3, True), (set(), 1, True), ({first.key}, 1, True), (set(), 2, True), ("behind", set())])
  # What is rejected of a function of y may stand for y itself.
  assert going_on(monkeypatch, x, [[], []], stands=[False], behind=[("exp", [first])]) == (False, [
    (set(), 3, True), ("behind", set()), (set(), 3, True), ("behind", {("exp", first.key)})])


def test_the_way_ends_after_so_many_tries_and_with_the_last_column(monkeypatch, x):
  changes = [[Change(0.0, i, {})] for i in range(9)]
  for most in (1, 3):
    is_smaller, asked = going_on(monkeypatch, x, changes, stands=[], max_rejected=most)
    assert not is_smaller and len(asked) == most
  is_smaller, asked = going_on(monkeypatch, x, changes, stands=[True] * 9)
  assert is_smaller and len(asked) == 2
  way = way_of(monkeypatch, x, x[:, 0], [(9.0, 9.0)])
  monkeypatch.setattr(smaller_tables, "_follow", None)
  assert not way.go_on(True)


@pytest.mark.parametrize(("smaller", "logs", "expected"), [
  ((True, True), (), ["first", "second"]), ((True, False), (1,), ["first", ("first", (1,))]),
  ((False, True), (0,), ["second", ("second", (0,))]), ((False, False), (), []), ((False, False), (2,), [(2,)])])
def test_reductions_are_by_simple_numbers_then_by_others_and_logarithms(monkeypatch, x, smaller, logs, expected):
  whole = reduced_tables.whole(x, x[:, 0])
  class Way:
    def __init__(self, *given):
      self.table, self._errors = whole, np.zeros(2)

    def go_on(self, only_simple):
      self.table = whole._replace(steps=("first" if only_simple else "second",))
      return smaller[0 if only_simple else 1]

    tables, known_table = smaller_tables._Way.tables, smaller_tables._Way.known_table
    is_blurred = has_terms = False

    def follow_neighbours(self):
      assert not any(smaller)
      return False

  monkeypatch.setattr(smaller_tables, "_Way", Way)
  monkeypatch.setattr(smaller_tables, "find_logarithms", lambda table, config: logs)
  monkeypatch.setattr(Reduced, "with_logarithms", lambda self, some: (*self.steps, some) if self.steps else some)
  found = smaller_tables.find_reductions(x, x[:, 0], CONFIG)
  assert [each.steps[0] if isinstance(each, Reduced) else each for each in found] == expected
