"""Fractions that null vectors and fits stand for, by themselves: their units, roots, factors and forms."""

import dataclasses
import fractions
from types import SimpleNamespace

from fraction_parts import CONFIG, SHOWN, parse, with_config
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression
from symformer_jax.sources.fractions import exact_fractions, factoring, polynomials, views
from symformer_jax.sources.fractions.exact_fractions import _Budget
from symformer_jax.sources.fractions.rational_fits import Fraction
from symformer_jax.sources.links import LINKS


@pytest.fixture
def x(rng):
  return rng.uniform(1, 3, (80, 2))


# --- fractions -------------------------------------------------------------------------------------------------------

MONOMIALS = [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_coefficients_of_a_null_vector_are_a_fraction_without_what_both_parts_have(x):
  z = (2 + 3 * x[:, 0]) / (1 + 4 * x[:, 1])
  plain = exact_fractions._fraction(MONOMIALS, MONOMIALS, np.array([2, 3, 0, 0, 1, 0, 4.0, 0]), x, z, CONFIG)
  assert plain == Fraction({(0, 0): 2.0, (1, 0): 3.0}, {(0, 0): 1.0, (0, 1): 4.0}, plain.error, True, True)
  assert plain.error < 1e-28
  z = 2 / (1 + 4 * x[:, 1])
  times_x = exact_fractions._fraction(MONOMIALS, MONOMIALS, np.array([0, 2.0, 0, 0, 0, 1, 0, 4]), x, z, CONFIG)
  assert times_x[:2] == ({(0, 0): 2.0}, {(0, 0): 1.0, (0, 1): 4.0})
  for coefficients in ([0, 0, 0, 0, 1, 1, 0, 0], [1.0, 1, 0, 0, 0, 0, 0, 0]):
    assert exact_fractions._fraction(MONOMIALS, MONOMIALS, np.array(coefficients), x, z, CONFIG) is None


def test_a_fraction_misses_less_than_the_most(x):
  z = x[:, 0] + 0.01 * np.cos(9 * x[:, 1])
  def fraction(most):
    return exact_fractions._fraction(
      MONOMIALS, MONOMIALS, np.array([0, 1.0, 0, 0, 1, 0, 0, 0]), x, z, with_config(most_missed=most))
  error = np.mean((x[:, 0] - z) ** 2) / np.var(z)
  assert fraction(1.001 * error).error == pytest.approx(error) and fraction(0.999 * error) is None


def test_bases_are_tried_one_after_the_other(x, monkeypatch):
  z, asked = 4 * x[:, 0] / (1 + x[:, 1]), []
  values = polynomials.table(MONOMIALS, x)
  table = SimpleNamespace(
    monomials=MONOMIALS, values=values, u=x, exact_sizes=lambda z, root: [(1, 2), (2, 3), (3, 3)] * 9)
  size = np.max(np.abs(z))

  def find(columns, config):
    asked.append(columns)
    return np.array([0, 4 / size, 1, 0, 1]) if columns.shape[1] == 5 else None

  monkeypatch.setattr(exact_fractions.null_vectors, "find", find)
  budget = _Budget(1.0, 7)
  fraction, found_size = exact_fractions._fraction_for(table, z, CONFIG, budget)
  above, below = fraction.numerator, fraction.denominator
  assert found_size == size and set(above) == {(1, 0)} and set(below) == {(0, 0), (0, 1)}
  assert [above[1, 0] / below[0, 0], below[0, 1] / below[0, 0]] == pytest.approx([4 / size, 1], rel=1e-12)
  assert budget.num_eliminations == 5
  np.testing.assert_allclose(asked[1], np.column_stack([values[:, :2], -(z / size)[:, None] * values[:, :3]]))
  monkeypatch.setattr(exact_fractions.null_vectors, "find", lambda columns, config: None)
  assert exact_fractions._fraction_for(table, -z, with_config(max_bases=4), budget) == (None, size)
  assert budget.num_eliminations == 1
  exact_fractions._fraction_for(table, 1e-3 * z, with_config(max_bases=1), budget)
  assert budget.num_eliminations == 0
  budget.num_eliminations = 1
  for odd in (np.full(80, np.inf), np.full(80, 3.0)):
    assert exact_fractions._fraction_for(table, odd, CONFIG, budget)[0] is None and budget.num_eliminations == 1


def test_fractions_are_written_in_the_units_of_columns_and_target(x):
  fraction = Fraction({(1, 0): 2.0, (0, 2): 3.0}, {(0, 0): 1.0, (1, 1): 4.0}, 0.0, True, True)
  sizes = np.array([3.0, 5.0])
  above, below = exact_fractions._in_units(fraction, SimpleNamespace(sizes=sizes), 7.0)
  u = x / sizes
  ratio = polynomials.values(above, x) / polynomials.values(below, x)
  np.testing.assert_allclose(ratio, 7 * (2 * u[:, 0] + 3 * u[:, 1] ** 2) / (1 + 4 * u[:, 0] * u[:, 1]))


def test_a_root_has_the_signs_of_the_target_or_is_none(x):
  squared = {(2, 0): 1.0, (1, 1): -2.0, (0, 2): 1.0}  # (x - y)**2
  table = SimpleNamespace(sizes=np.ones(2), u=x)
  fraction = Fraction(squared, {(0, 0): 1.0}, 0.0, True, True)
  difference = x[:, 0] - x[:, 1]
  for y in (difference, -difference):
    [node] = exact_fractions._root(fraction, table, 1.0, y, CONFIG)
    np.testing.assert_allclose(expression.evaluate(node, x), y)
  assert exact_fractions._root(fraction, table, 1.0, np.abs(difference), CONFIG) == []
  assert exact_fractions._root(fraction, table, 1.0, 0 * difference, CONFIG) == []
  [node] = exact_fractions._root(fraction, table, 1.0, np.where(np.arange(80) == 3, -difference, 0), CONFIG)
  np.testing.assert_allclose(expression.evaluate(node, x), -difference)  # one row tells
  table.sizes = np.array([2.0, 4.0])
  [node] = exact_fractions._root(fraction, table, 9.0, difference, CONFIG)
  np.testing.assert_allclose(np.abs(expression.evaluate(node, x * table.sizes)), 3 * np.abs(difference))
  odd = Fraction({(1, 0): np.pi, (0, 1): np.e, (1, 1): 1.0}, {(0, 0): 1.0}, 0.0, True, True)
  assert exact_fractions._root(odd, table, 1.0, difference, CONFIG) == []


def test_the_square_of_a_target_of_both_signs_is_asked(x, monkeypatch):
  asked = []
  monkeypatch.setattr(exact_fractions, "_fraction_for", lambda table, z, config, budget: asked.append(z) or (None, 1.0))
  y = x[:, 0] - 2
  assert exact_fractions._of_square("table", y, DEFAULT, _Budget(1.0, 1)) == []
  np.testing.assert_allclose(asked[0], y**2)


@pytest.mark.parametrize(("name", "function"), [("y", lambda f: f), ("sqrt", np.sqrt), ("exp", np.exp)])
def test_forms_of_a_fraction_come_back_through_its_link(x, monkeypatch, name, function):
  f = (x[:, 0] ** 2 + 2 * x[:, 0] * x[:, 1] + x[:, 1] ** 2) / (1 + x[:, 0])
  y = function(f / 9)
  top, bottom = {(2, 0): 1 / 9, (1, 1): 2 / 9, (0, 2): 1 / 9}, {(0, 0): 1.0, (1, 0): 1.0}
  size = float(np.max(LINKS[name].transform(y)))
  fraction = Fraction({powers: c / size for powers, c in top.items()}, bottom, 0.0, True, True)
  monkeypatch.setattr(exact_fractions, "_fraction_for", lambda table, z, config, budget: (fraction, size))
  table = SimpleNamespace(view=views.plain(2), u=x, sizes=np.ones(2))
  nodes = exact_fractions._of_link(LINKS[name], table, y, DEFAULT, _Budget(1.0, 1))
  assert len(nodes) > 1
  for node in nodes:
    np.testing.assert_allclose(expression.evaluate(node, x), y, rtol=1e-9)
  # Factored first; sums of logarithms are not.
  factored = expression.complexity(nodes[0])
  alone = SimpleNamespace(view=tuple(part._replace(is_alone=True) for part in views.plain(2)), u=x, sizes=np.ones(2))
  others = exact_fractions._of_link(LINKS[name], alone, y, DEFAULT, _Budget(1.0, 1))
  assert len(others) == len(nodes) - 1 and (name == "sqrt" or factored < min(map(expression.complexity, others)))
  monkeypatch.setattr(exact_fractions, "_fraction_for", lambda table, z, config, budget: (None, size))
  assert exact_fractions._of_link(LINKS[name], table, y, DEFAULT, _Budget(1.0, 1)) == []


def test_forms_are_written_as_the_config_says_after_the_root_of_a_square(x, monkeypatch):
  config = dataclasses.replace(DEFAULT, rationals=dataclasses.replace(DEFAULT.rationals, num_fitted=7))
  fraction, asked = Fraction({(1, 0): np.pi, (0, 1): np.e, (1, 1): 1.0}, {(0, 0): 1.0}, 0.0, True, True), []
  monkeypatch.setattr(exact_fractions, "_fraction_for", lambda *_: (fraction, 2.0))
  monkeypatch.setattr(exact_fractions, "sums_of_fractions", lambda *given: asked.append(given[-1]) or [parse("x")])
  monkeypatch.setattr(exact_fractions, "written", lambda *_, config: asked.append(config) or [parse("y")])
  monkeypatch.setattr(exact_fractions, "_root", lambda fraction, table, size, y, config: [parse("1 + x")])
  table = SimpleNamespace(view=views.plain(2), u=x, sizes=np.ones(2))
  for name, expected in (("y", ["x", "y"]), ("sqrt", ["1 + x", "sqrt(x)", "sqrt(y)"])):
    nodes = exact_fractions._of_link(LINKS[name], table, x[:, 0], config, _Budget(1.0, 1))
    assert nodes == list(map(parse, expected))  # nothing is factored: pi and e are no ratios of short numbers
  assert exact_fractions._of_square(table, x[:, 0], config, _Budget(1.0, 1)) == [parse("1 + x")]
  assert all(each is config.rationals for each in asked) and len(asked) == 4


def near(monkeypatch, x, y, link, found, *, sizes=((3, 2),), near=CONFIG.near, **changes):
  """Nodes of fractions that fits at some degrees leave, and the equations that were asked."""
  asked, given = [], iter(found)
  table = SimpleNamespace(u=x, sizes=np.ones(2), monomials=MONOMIALS, near_sizes=lambda z: sizes)
  monkeypatch.setattr(exact_fractions.rational_fits, "find", lambda equation, config, *, num_rows: (
    asked.append((equation, num_rows)) or next(given)))
  monkeypatch.setattr(exact_fractions.rational_fits, "Equation", lambda *given, config: (*given, config))
  monkeypatch.setattr(exact_fractions.rational_fits, "nats", lambda error, num_terms, num_rows: error)
  monkeypatch.setattr(exact_fractions, "written", lambda fraction, sizes, size, *, config: (
    [parse(fraction.name)] if config is near else []))
  with np.errstate(all="ignore"):
    return exact_fractions._near(table, LINKS[link], y, with_config(near=near, **changes)), asked


def fit_of(name, error, *, is_whole=True):
  return [SimpleNamespace(fraction=lambda num: SimpleNamespace(
    name=name if num == CONFIG.near.num_reweightings else "0", error=error, is_whole=is_whole))]


def test_near_fractions_are_fitted_to_the_function_as_y_tells_of_it(monkeypatch, x):
  x[40:] = x[:40]
  y = x[:, 0] - x[0, 0]
  y[y < 0] *= -1
  _, [(equation, num_rows)] = near(monkeypatch, x, y, "sqrt", [{}])
  basis, u, z, weights, between, config = equation
  assert num_rows == 40 and config is CONFIG.near and u is x and len(between) > 0
  assert basis.numerator == tuple(MONOMIALS[:3]) and basis.denominator == tuple(MONOMIALS[:2])
  assert basis[2] == (tuple(range(5)),)
  np.testing.assert_allclose(z, (y / y.max()) ** 2)
  with np.errstate(divide="ignore"):
    expected = np.where(y > 0, 1 / y**2, 0)  # at 0 the root says nothing
  np.testing.assert_allclose(weights, expected / expected.max())
  for odd, link in ((np.full(80, 2.0), "y"), (np.r_[np.inf, y[1:]], "y")):
    assert near(monkeypatch, x, odd, link, [{}]) == ([], [])
  assert len(near(monkeypatch, x, 1e-3 * y, "y", [{}])[1]) == 1


def test_of_near_fractions_the_shortest_to_say_are_offered(monkeypatch, x):
  y, most = x[:, 0], CONFIG.near.max_terms
  found = [{3: fit_of("x", 3.0), most: fit_of("y", 1.0), most + 1: fit_of("x + 1", 0.0)},
           {2: fit_of("y + 1", 2.0), 4: fit_of("2*x", 0.5, is_whole=False), 5: fit_of("x*y", 2.0)}]
  nodes, _ = near(monkeypatch, x, y, "exp", found, sizes=((3, 2), (2, 2)), num_near=3)
  assert nodes == [parse(f"exp({text})") for text in ("y", "y + 1", "x*y")]
  assert len(near(monkeypatch, x, y, "exp", found, sizes=((3, 2), (2, 2)), num_near=2)[0]) == 2


# --- factors ---------------------------------------------------------------------------------------------------------


def test_numbers_are_short_to_a_share_of_their_size():
  config = CONFIG.factoring
  assert factoring._short(1000 / 3 * (1 + 1e-9), config) == fractions.Fraction(1000, 3)
  assert factoring._short(1000 / 3 * (1 + 3e-9), config) is None
  assert factoring._short(1e-3 / 3 * (1 + 3e-9), dataclasses.replace(config, max_denominator=3000)) is None
  coarse = dataclasses.replace(config, max_denominator=1, missed=1.0)
  assert factoring._short(0.5, coarse) in (0, 1)  # just as far off as it may be


def test_polynomials_of_four_terms_and_more_are_collected_to_a_depth(monkeypatch):
  asked = []
  monkeypatch.setattr(factoring, "_by_powers", lambda polynomial, place, depth: asked.append((place, depth)) or parse(
    "x" + " + x" * 99))
  some = {(0, 0, 0): 1, (1, 0, 0): 2, (0, 1, 0): 3, (1, 1, 0): 4}
  plain = polynomials.to_node({powers: float(c) for powers, c in some.items()})
  assert factoring.collected(some) == plain and asked == [(0, 2), (1, 2)]
  asked.clear()
  assert factoring.collected(some, depth=0) == plain and asked == []
  factoring.collected(dict(list(some.items())[:3]))
  assert asked == []
  monkeypatch.undo()
  monkeypatch.setattr(factoring, "collected", lambda polynomial, *, depth: asked.append(depth) or parse("y"))
  factoring._by_powers(some, 0, 2)
  assert asked and set(asked) == {1}


def test_two_terms_are_left_as_they_are_and_quotients_have_their_size(x):
  two = {(3, 1): 1.0, (1, 1): 1.0}
  assert factoring.to_node(two) == polynomials.to_node(two)
  assert SHOWN(factoring.root({(0, 0): 1.0}, {(1, 0): 1.0}, CONFIG.factoring)) == "sqrt(1/x)"  # no power of -1/2
  above, below = {(2, 0): 6.0, (1, 1): 12.0, (0, 2): 6.0}, {(1, 0): 5.0, (0, 0): 10.0}
  node = factoring.quotient(above, below, CONFIG.factoring)
  np.testing.assert_allclose(expression.evaluate(node, x), 1.2 * x.sum(axis=1) ** 2 / (x[:, 0] + 2))


def test_three_terms_may_be_a_square_and_odd_powers_come_out_of_a_root(x):
  square = {(2, 0): 1.0, (1, 0): 2.0, (0, 0): 1.0}
  assert SHOWN(factoring.to_node(square)) == "(x + 1)**2"
  cube = {(3, 0): 1.0, (2, 0): 3.0, (1, 0): 3.0, (0, 0): 1.0}
  assert SHOWN(factoring.root(cube, {(0, 0): 1.0}, CONFIG.factoring)) == "(x + 1)**1.5"
  fifth = factoring.root({(0, 0): 1.0}, {(5, 0): 4.0}, CONFIG.factoring)
  np.testing.assert_allclose(expression.evaluate(fifth, x), x[:, 0] ** -2.5 / 2)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_root_has_what_is_above_0_below_it(x, sign):
  """(x - 4)*(y + 1)/-(y + 2), of which the first factor and the number are below 0."""
  above = {(1, 1): 1.0, (0, 1): -4.0, (1, 0): 1.0, (0, 0): -4.0}
  below = {(0, 1): -2.0, (0, 0): -4.0}
  node = factoring.root({powers: sign * c for powers, c in above.items()},
                        {powers: sign * c for powers, c in below.items()}, CONFIG.factoring)
  np.testing.assert_allclose(np.abs(expression.evaluate(node, x)),
                             np.sqrt((4 - x[:, 0]) * (x[:, 1] + 1) / (2 * (x[:, 1] + 2))))
