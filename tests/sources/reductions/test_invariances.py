"""Changes of the columns that leave a target alone: which are found, what table they leave, and the way back."""

import dataclasses
import re

import numpy as np
import pytest
from slope_relations import SHOWN, slopes_of

from symformer_jax.engine import gaussian_process
from symformer_jax.engine.config import DEFAULT, ReductionsConfig
from symformer_jax.language import expression, parser, printing
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.sources.reductions import invariances, reduced_tables, relations, smaller_tables
from symformer_jax.sources.reductions.invariances import find_changes
from symformer_jax.sources.reductions.reduced_tables import Change
from symformer_jax.sources.reductions.relations import simplest
from symformer_jax.sources.reductions.smaller_tables import find_reductions

CONFIG = DEFAULT.reductions
NAMES = ("x", "y", "z", "w", "v", "u")


def table_of(text, box, *, noise=0.0, num_rows=224):
  rng = np.random.default_rng(5)
  x = np.column_stack([rng.uniform(low, high, num_rows) for low, high in box])
  y = expression.evaluate(parser.parse(text, NAMES[: len(box)]), x)
  return x, y + noise * np.std(y) * rng.normal(size=num_rows)


def written(table):
  steps = [step if isinstance(step, str) else printing.to_text(
    step.node if isinstance(step, reduced_tables.Added) else step, NAMES) for step in table.steps]
  return {printing.to_text(node, NAMES) for node in table.columns}, set(steps)


def is_a_function_of(values, x, columns):
  """Whether values [N] are the same function of one column throughout: neighbours in its order are alike."""
  [column] = columns
  in_order = values[np.argsort(expression.evaluate(column, x))]
  return np.mean(np.diff(in_order) ** 2) < 0.01 * np.var(values)


def are_alike(found, columns):
  """Whether formulas are the same but for the third digit of a number: slopes tell it so well."""
  both, decimal = (sorted(found), sorted(columns)), r"\d+\.\d+"
  texts = [[re.sub(decimal, "#", text) for text in some] for some in both]
  numbers = [[float(each) for text in some for each in re.findall(decimal, text)] for some in both]
  return texts[0] == texts[1] and bool(numbers[1]) and numbers[0] == pytest.approx(numbers[1], rel=2e-3)


# Law, box, columns that are left, what y is divided by or the link it is behind.
LAWS = [
  ("x*(1 - exp(-y*w/x))*exp(-z*w/x)", ((1, 10), (0.1, 1), (0.05, 0.5), (1, 9)), {"y*w/x", "z*w/x"}, {"x"}),
  ("sin(x - y) + z**2", ((0, 2), (-2, 0), (1, 3)), {"x - y"}, {"z**2"}),
  ("log(x**2 + y**2)*z", ((1, 3), (0.5, 4), (1, 5)), {"x**2 + y**2"}, {"z"}),
  ("1/(2 + exp(x)/y)", ((-1, 1), (1, 5)), {"exp(-x)*y"}, set()),
  ("sqrt(1/x - 1/y)*z**1.5", ((1, 3), (4, 9), (1, 5)), {"1/x - 1/y"}, {"z**1.5"}),
  ("cos(2.5*x + y)", ((0, 1), (0, 1)), {"2.5*x + y"}, set()),
  ("1.3 + y*(x/(1 + x))**z", ((2, 80), (15, 45), (2, 15)), {"x"}, {"1.3", "y", "exp", "z"}),
  ("1 - (1 + x*y/z)**(-z)", ((0.05, 1), (1, 10), (0.2, 3)), {"z/(x*y)"}, {"complement_exp", "x*y"}),
  ("((x - y)/y*z/(x - z))**w", ((2, 5), (0.3, 1.8), (0.05, 0.2), (0.3, 2)), {"y/x", "z/x"}, {"exp", "w"}),
  ("x*y**z/(y**z + w**z) + v", ((1, 4), (1, 3), (0.5, 2), (1, 3), (0, 2)), {"(y/w)**z"}, {"x", "v"}),
  ("2*log(x) + cos(y*z)", ((1, 5), (0.5, 2), (0.5, 2)), {"y*z"}, set()),
  ("arctan(x*y**2)/x", ((0.5, 2), (0.3, 1.5)), {"sqrt(x)*y"}, {"1/x"}),
  ("tanh(0.8*x*log(y))", ((0.2, 2), (1.2, 4)), {"x*log(y)"}, set()),
  ("18.7*x/(x - y)*(exp(-y*z) - exp(-x*z))", ((0.8, 3), (0.05, 0.6), (0.1, 8)), {"x*z", "y*z"}, set()),
  ("sin(x**1.4 + y**0.6)", ((0.1, 2), (0.1, 2)), {"x**1.4 + y**0.6"}, set()),
  ("1.2345678 + x*sin(y)", ((0.5, 3), (0.3, 3)), {"y"}, {"x"}),
  ("x*(1 - exp(-y*(z - 1.27)))**2", ((1, 9), (0.5, 2), (0.9, 4)), {"(z - 1.27)*y"}, {"x"}),
  ("x + (1414 - x)/(1 + (y/9.2)**z)", ((50, 90), (1, 100), (0.5, 1.5)), {"(y/9.2)**z"}, set()),
  ("x + (y - x)*exp(-z*w) - y/50", ((10, 20), (60, 90), (0.1, 1), (0.2, 3)), {"z*w"}, {"x"}),
]


@pytest.mark.parametrize(("text", "box", "columns", "steps"), LAWS)
def test_columns_that_are_left(text, box, columns, steps):
  x, y = table_of(text, box)
  table = find_reductions(x, y, CONFIG)[0]
  found, how = written(table)
  assert len(found) == len(columns)
  if found != columns and not are_alike(found, columns):  # powers of one another tell the same
    for name in columns:
      values = np.log(np.abs(expression.evaluate(parser.parse(name, NAMES[: len(box)]), x)))
      logs = np.log(np.abs(np.column_stack([expression.evaluate(node, x) for node in table.columns])))
      left = values - logs @ np.linalg.lstsq(logs, values, rcond=None)[0]
      assert np.max(np.abs(left)) < 1e-9, (found, columns)
  assert {step for step in how if step in CONFIG.links} == {step for step in steps if step in CONFIG.links}


@pytest.mark.parametrize(("text", "box"), [law[:2] for law in LAWS])
def test_formulas_come_back(text, box):
  """What a table's formula says of its y is what the restored formula says of the user's."""
  x, y = table_of(text, box)
  for table in find_reductions(x, y, CONFIG):
    form = Node("+", (Node("*", (variable(0), number(0.01))), number(0.5)))
    whole = expression.evaluate(table.restore(form), x)
    at, shown, _ = table.of(x, whole)
    np.testing.assert_allclose(shown, 0.01 * at[:, 0] + 0.5, rtol=1e-7)
    at, shown, scale = table.of(x, y)
    np.testing.assert_allclose(shown, table.y, rtol=1e-9)
    np.testing.assert_allclose(at, table.x, rtol=1e-9)
    # an error of the table's y, in the user's
    _, more, _ = table.of(x, y * (1 + 1e-7))
    np.testing.assert_allclose(np.abs((more - shown) * scale), np.abs(1e-7 * y), rtol=1e-3)


@pytest.mark.parametrize(("text", "box"), [
  ("sin(x) + sin(y)", ((1, 3), (0, 3))), ("x**y + 1.5*y", ((1, 3), (0.5, 2))),
  ("sin(3*x)*y + exp(y)", ((0, 3), (0.5, 2)))])
def test_without_an_invariance_there_is_no_smaller_table(text, box):
  assert not [table for table in find_reductions(*table_of(text, box), CONFIG) if len(table.columns) < len(box)]


def test_noise_and_rough_targets_have_none(rng):
  x = rng.uniform(1, 3, (100, 3))
  assert find_reductions(x, rng.normal(size=100), CONFIG) == []
  assert find_reductions(x, np.sign(np.sin(40 * x[:, 0] * x[:, 1])), CONFIG) == []


def test_what_is_the_same_in_most_rows_is_not_known():
  """A wave that turns in the corner of the box alone: one column's slope is 0 nearly everywhere."""
  x, y = table_of("cos(4e-4*x**3*v**3*z*w/y**2)", ((0.1, 5),) * 5)
  assert not [table for table in find_reductions(x, y, CONFIG) if len(table.columns) < 3]


def test_a_column_that_does_not_matter_is_dropped():
  x, y = table_of("exp(x - y)*sin(y) + 0*z", ((0, 2), (0, 2), (1, 3)))
  found, _ = written(find_reductions(x, y, CONFIG)[0])
  assert "z" not in found and len(found) <= 2


def test_under_some_noise_scalings_are_seen():
  x, y = table_of("z*cos(x/y)", ((1, 3), (1, 3), (1, 5)), noise=0.003)
  assert len(find_reductions(x, y, CONFIG)[0].columns) == 1


def test_numbers_that_are_not_simple_make_a_second_table():
  x, y = table_of("log((x + 0.4567*y)*z + 1)", ((1, 3), (1, 5), (1, 4)))
  tables = [table for table in find_reductions(x, y, CONFIG) if len(table.columns) < 3]
  assert len(tables[-1].columns) == 1
  assert is_a_function_of(y, x, tables[-1].columns)


def test_changes_by_themselves(rng):
  """Of functions of x**k*log(y), of powers of x times functions of y - k*log(x), and of k*x**p + y**q."""
  x = rng.uniform(1.5, 4, (60, 2))
  def of(text, find):
    node = parser.parse(text, NAMES[:2])
    slopes = slopes_of(node, x)
    return list(find(x, expression.evaluate(node, x), slopes))
  [change] = of("sin(x**2*log(y))", lambda x, y, slopes: [
    each for each in invariances._products_with_logarithms(x, slopes, CONFIG) if each.dropped == 0])
  assert SHOWN(change.replaced[1][0]) == "x**2*log(y)" and change.is_simple and change.error < 1e-6
  np.testing.assert_allclose(change.replaced[1][1], x[:, 0] ** 2 / x[:, 1])
  [change] = of("sin(y - 0.5*log(x))*x**3", lambda *given: [
    each for each in invariances._shifts(*given, [], CONFIG) if each.dropped == 0])
  assert SHOWN(change.replaced[1][0]) == "y - 0.5*log(x)" and change.divisor == ((0, 3.0),) and change.is_simple
  assert of("sin(y - 0.5*log(x))*x**3 + x", lambda *given: invariances._shifts(*given, [], CONFIG)) == []
  for text in ("sin(y - 0.4321987*log(x))*x**3", "sin(y - 0.5*log(x))*x**3.4321987"):
    [change] = of(text, lambda *given: [each for each in invariances._shifts(*given, [], CONFIG) if each.dropped == 0])
    assert not change.is_simple
  # Where x is a factor by itself any shift would do.
  assert of("sin(y - 0.5*log(x))*x**3", lambda *given: invariances._shifts(*given, [frozenset({0, 2})], CONFIG)) == []
  assert of("sin(x*y)", lambda x, y, slopes: invariances._products_with_logarithms(x, slopes, CONFIG)) == []
  [found] = of("exp(-0.3*x**1.7 - y**0.4)", lambda x, y, slopes: invariances._sums_of_any_powers(
    x[:, 0], x[:, 1], slopes[:, 0], slopes[:, 1], CONFIG))
  np.testing.assert_allclose(found[1:], [1.7, 0.4, 0.3], rtol=1e-5)
  assert of("x**3*y + exp(y)*x", lambda x, y, slopes: invariances._sums_of_any_powers(
    x[:, 0], x[:, 1], slopes[:, 0], slopes[:, 1], CONFIG)) == []
  # Exponents of next to nothing are logarithms.
  [found] = of("exp(-0.3*x**1.7)*y", lambda x, y, slopes: invariances._sums_of_any_powers(
    x[:, 0], x[:, 1], slopes[:, 0], slopes[:, 1] * (1 + 0.001 * np.log(x[:, 1])), CONFIG))
  assert found[2] == 0
  # Nor where slopes have different signs in too many rows, or columns none.
  turned = np.where(np.arange(60) < 7, -1.0, 1.0)
  assert of("exp(-0.3*x**1.7 - y**0.4)", lambda x, y, slopes: invariances._sums_of_any_powers(
    x[:, 0], x[:, 1], slopes[:, 0] * turned, slopes[:, 1], CONFIG)) == []
  assert of("exp(-0.3*x**1.7 - y**0.4)", lambda x, y, slopes: invariances._sums_of_any_powers(
    x[:, 0] - 2, x[:, 1], slopes[:, 0], slopes[:, 1], CONFIG)) == []


def test_a_way_that_does_not_stand_is_not_gone(monkeypatch):
  """Slopes that lie: the change is refused, as rows left out are predicted worse."""
  lie = Change(1e-7, 0, {}, ((0, 1.0),))
  monkeypatch.setattr(invariances, "find_changes", lambda x, y, slopes, config, rejected=(): (
    [lie] if x.shape[1] == 2 and lie.key not in rejected else []))
  x, y = table_of("sin(x) + sin(y)", ((1, 3), (0, 3)))
  assert not [table for table in find_reductions(x, y, CONFIG) if len(table.columns) < 2]


@pytest.mark.parametrize(("change", "function"), [
  (Change(0.0, 0, {}, ((0, 2.0),)), lambda x: x[:, 0] ** 2 * np.sin(x[:, 1])),
  (Change(0.0, 0, {}, summand=parser.parse("2*log(x)", NAMES[:2])), lambda x: 2 * np.log(x[:, 0]) + np.sin(x[:, 1])),
  (Change(0.0, 0, {1: (parser.parse("x*y", NAMES[:2]), "x")}), lambda x: np.sin(x[:, 0] * x[:, 1])),
  (Change(0.0, 0, {1: (parser.parse("y/x", NAMES[:2]), "1/x")}, ((0, 3.0),)),
   lambda x: x[:, 0] ** 3 * np.cos(x[:, 1] / x[:, 0]))])
def test_slopes_of_the_smaller_table(change, function):
  x = np.random.default_rng(0).uniform(1, 2, (30, 2))
  step = 1e-6
  slopes = np.column_stack([(function(x + step * unit) - function(x - step * unit)) / (2 * step) for unit in np.eye(2)])
  change = change._replace(replaced={column: (node, expression.evaluate(parser.parse(text, NAMES[:2]), x))
                                     for column, (node, text) in change.replaced.items()})
  table, smaller = change.apply(reduced_tables.whole(x, function(x)), slopes)
  spline = np.polynomial.Chebyshev.fit(table.x[:, 0], table.y, 12)
  np.testing.assert_allclose(smaller[:, 0], spline.deriv()(table.x[:, 0]), rtol=1e-4, atol=1e-5)


def test_all_changes_are_within_the_tolerance(rng):
  x, y = table_of("x*y + z", ((1, 3),) * 3)
  slopes = gaussian_process.fit(x, y, CONFIG.surrogate).slopes
  for tolerance in (1e-2, 1e-4):
    config = dataclasses.replace(CONFIG, tolerance=tolerance)
    assert all(change.error <= tolerance for change in find_changes(x, y, slopes, config))


def test_what_is_rejected_is_none_any_more_and_hides_no_relation_of_more_columns():
  x = np.random.default_rng(0).uniform(1, 2, (50, 2))
  ratio = x[:, 1] / x[:, 0]
  y = x[:, 0] * np.sin(ratio)
  slopes = np.column_stack([np.sin(ratio) - ratio * np.cos(ratio), np.cos(ratio)])
  [change] = find_changes(x, y, slopes, CONFIG)
  assert change.divisor and change.error < 1e-12
  assert find_changes(x, y, slopes, CONFIG, {change.key}) == []
  assert list(invariances._scalings(x, y, slopes, [frozenset({0})], CONFIG)) == []
  assert [c.key for c in invariances._scalings(x, y, slopes, [frozenset({1, 3})], CONFIG)] == [change.key]


@pytest.mark.parametrize(("value", "expected"), [
  (0.50001, 0.5), (2.99998, 3.0), (0.33335, 1 / 3), (0.4321, 0.4321), (0.123, 0.123), (1.23456789, 1.23456789)])
def test_the_simplest_number_that_leaves_as_little(value, expected):
  truth = expected
  assert simplest(value, lambda k: abs(k - truth) + 3e-5, CONFIG) == pytest.approx(expected, abs=1e-12)


def test_no_number_is_simple_by_chance():
  """A slope known to a tenth says nothing of thousandths."""
  assert simplest(0.43673, lambda k: 0.1, CONFIG) == 0.43673
  assert simplest(0.48, lambda k: 0.1, CONFIG) == 0.5
  assert np.isnan(simplest(np.nan, lambda k: 0.0, CONFIG)) and not relations.is_simple(np.nan, CONFIG)


def test_logarithms_stand_where_they_make_a_polynomial():
  x, y = table_of("3*log(x)*z + log(y)*log(x)**2 - z", ((1, 9), (2, 30), (1, 4)))
  table = find_reductions(x, y, CONFIG)[-1]
  assert {printing.to_text(node, NAMES) for node in table.columns} == {"log(x)", "log(y)", "z"}
  assert smaller_tables.find_logarithms(reduced_tables.whole(*table_of("x*y + x**2", ((1, 9), (2, 30)))), CONFIG) == ()


def test_too_few_rows_for_polynomials_leave_logarithms_out():
  x, y = table_of("log(x)*log(y)", ((1, 9), (2, 30)), num_rows=20)
  assert smaller_tables.find_logarithms(reduced_tables.whole(x, y), CONFIG) == ()


def test_configs_name_what_there_is():
  with pytest.raises(ValueError, match="links"):
    ReductionsConfig(links=("sinus",))
  with pytest.raises(ValueError, match="sources"):
    ReductionsConfig(sources=("reductions", "library"))
  with pytest.raises(ValueError, match="num_rows"):
    ReductionsConfig(num_rows=0)
