"""What the default config makes of fractions: how many are looked at, kept and written, and which count as exact."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import parse, task_of

from symformer_jax.engine.config import DEFAULT, rationals as rationals_config
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import (
  exact_fractions,
  function_fractions,
  linked_fractions,
  null_vectors,
  rational_fits,
  rational_forms,
  rationals,
)

CONFIG, LINKED, FUNCTIONS = DEFAULT.rationals, DEFAULT.linked_fractions, DEFAULT.function_fractions
PLAIN_LINKED = dataclasses.replace(LINKED, degrees_of_waves=())


def test_the_parts_of_the_default_are_those_of_no_arguments():
  for part, make in (
    (CONFIG, rationals_config.RationalsConfig), (DEFAULT.quadratics, rationals_config.QuadraticsConfig),
    (LINKED, rationals_config.LinkedFractionsConfig),
    (DEFAULT.function_fractions, rationals_config.FunctionFractionsConfig)):
    assert part == make()


class Equation:
  """An equation whose sets have the errors that are given, one after the other."""

  def __init__(self, *, errors=None, num_above=30, num_below=30):
    self.basis = SimpleNamespace(numerator=[(0.0,)] * num_above, denominator=[(0.0,)] * num_below, starts=[])
    self.norms, self.num_rows, self.followed = np.ones(num_above + num_below), 1000, []
    self._errors = errors or (lambda coefficients: np.full(len(coefficients), 0.5))
    self.solved, self.num_refined, self.num_steps = [], 0, set()

  def solve(self, sets):
    self.solved.append(sets.shape)
    coefficients = np.zeros((len(sets), len(self.norms)))
    np.put_along_axis(coefficients, sets, 1.0, axis=1)
    return coefficients, np.tile(np.arange(sets.shape[1], dtype=float), (len(sets), 1))

  def rough_errors(self, sets):
    return np.arange(float(len(sets)))

  def errors(self, coefficients):
    return self._errors(coefficients)

  def is_whole(self, coefficients):
    return np.ones(len(coefficients), bool)

  are_fractions = is_whole

  def reweighted(self, coefficients, num_steps):
    self.num_steps.add(num_steps)
    return coefficients

  def refined(self, start, num_steps):
    self.num_refined += 1
    self.num_steps.add(num_steps)
    return start

  def follow(self, coefficients, *, is_exact):
    self.followed.append(is_exact)

  def fraction(self, coefficients):
    return SimpleNamespace(_replace=lambda **changes: changes)


def fit(error):
  return rational_fits.Fit(error, None, None)


def exact_sizes(*errors):
  """Which numbers of terms, from two on, stay, and which of these are exact."""
  found = rational_fits.upto_exact({2 + i: [fit(error)] for i, error in enumerate(errors)}, CONFIG)
  return list(found), [size for size, fits in found.items() if fits[0].is_exact]


def test_a_fraction_is_exact_after_a_leap_alone_and_none_comes_near_without():
  assert exact_sizes(1e-3, 0.9e-18, 1e-19) == ([2, 3], [3])
  assert exact_sizes(1e-3, 1.1e-18) == ([2], [])  # below the third share without being exact
  # A billion times a tenth of what all with fewer terms leave: less is no leap.
  assert exact_sizes(1.1e-8, 0.9e-18) == ([2, 3], [3]) and exact_sizes(0.8e-8, 0.9e-18) == ([2], [])
  for error, stays in ((1.1e-16, [2, 3]), (0.9e-16, [2])):
    assert exact_sizes(1e-7, error)[0] == stays
  several = rational_fits.upto_exact({2: [fit(0.5e-18), fit(0.9e-18), fit(1.1e-18)]}, CONFIG)
  assert [each.error for each in several[2]] == [0.5e-18, 0.9e-18]


@pytest.mark.parametrize(("num_rows", "most"), [(40, 9), (100, 9), (18, 9), (17, 8)])
def test_small_sets_are_of_nine_terms_at_most_and_thirty_two_of_them_solved(num_rows, most, monkeypatch):
  equation = Equation()
  sets = [np.tile(np.r_[:size - 1, 40], (50, 1)) for size in range(2, 12)]
  asked = []
  monkeypatch.setattr(rational_fits, "small_sets", lambda basis, num: asked.append(num) or sets)
  for name in ("_follow_best", "_eliminate"):
    monkeypatch.setattr(rational_fits, name, lambda *given: None)
  rational_fits.find(equation, CONFIG, num_rows=num_rows)
  assert equation.solved == [(32, size) for size in range(2, most + 1)] and asked == [1100]


@pytest.mark.parametrize(("num_rows", "most"), [(40, 11), (43, 11), (44, 12)])
def test_four_rows_are_asked_for_each_constant(num_rows, most, monkeypatch):
  limits = []
  monkeypatch.setattr(rational_fits, "_Found", lambda equation, config, most: limits.append(most) or SimpleNamespace(
    take=lambda coefficients: None, best=dict))
  for name in ("_follow_best", "_eliminate"):
    monkeypatch.setattr(rational_fits, name, lambda *given: None)
  monkeypatch.setattr(rational_fits, "small_sets", lambda *given: [])
  rational_fits.find(Equation(), CONFIG, num_rows=num_rows)
  assert limits == [most]


def test_three_fractions_of_a_size_are_kept():
  found = rational_fits._Found(Equation(errors=lambda c: np.linspace(0.1, 0.2, len(c))), CONFIG, 99)
  coefficients = np.zeros((9, 60))
  coefficients[:, [0, 40]] = 1
  found.take(coefficients)
  assert [len(fits) for fits in found.best().values()] == [3]
  asked = []
  whole = SimpleNamespace(is_whole=True, is_exact=False)
  fits = [SimpleNamespace(fraction=lambda num, i=i: asked.append(num) or SimpleNamespace(form=(i,), **vars(whole)))
          for i in range(9)]
  assert len(rationals._best(fits, CONFIG)) == 3 and asked == [3, 3, 3]  # three steps that weigh by the denominator


def test_terms_are_left_out_two_at_a_time_or_a_quarter_at_once():
  def children(num, error=0.5):
    terms = np.arange(num)
    return rational_fits._children(terms, np.ones(num), np.arange(float(num)), error, CONFIG)
  assert [len(each) for each in children(14)] == [13, 13] and [len(each) for each in children(15)] == [12]
  # What an exact fit does not need goes at once.
  for error, count in ((0.9e-18, 3), (1.1e-18, 2)):
    assert len(children(14, error)) == count


def test_of_each_size_sixteen_sets_go_on(monkeypatch):
  equation = Equation(num_above=60)
  equation.basis.starts = [tuple(sorted((*chosen, 61, 62))) for chosen in itertools.combinations(range(12), 8)][:99]
  found = SimpleNamespace(take=lambda coefficients: np.arange(float(len(coefficients))))
  seen = []
  children = rational_fits._children
  monkeypatch.setattr(rational_fits, "_children", lambda *given: seen.append(len(given[0])) or children(*given))
  rational_fits._eliminate(equation, found, CONFIG, 99)
  assert seen.count(10) == 16 and max(seen.count(size) for size in set(seen)) == 16


def test_nested_sets_are_refined_by_four_steps_until_eight_in_a_row_are_no_better():
  costs = {2: 0.5, 3: 1e-3}  # by number of terms above the line; of others 0.6
  equation = Equation(errors=lambda c: np.array([costs.get(np.count_nonzero(row[:30]), 0.6) for row in c]))
  solved = []
  for num in range(2, 30):
    own = np.zeros(60)
    own[:num], own[40] = 1.0, 1.0
    solved.append(own)
  rational_fits._best_refined(equation, solved, CONFIG)
  assert equation.num_refined == 2 + 9 and equation.num_steps == {1, 4}


@pytest.mark.parametrize(("error", "is_exact"), [(0.9e-18, True), (1.1e-18, False)])
def test_a_nested_set_that_is_exact_is_followed_at_once(error, is_exact):
  equation = Equation(errors=lambda c: np.full(len(c), error))
  equation.basis.starts = [(0, 40), (0, 1, 40)]
  rational_fits._follow_best(equation, CONFIG, 99)
  assert equation.followed == [is_exact] and len(equation.solved) == (1 if is_exact else 2)


def test_denominators_are_looked_at_between_rows():
  x = np.sort(np.random.default_rng(0).uniform(1, 3, (20, 1)), axis=0)
  assert rationals.points_between(x, CONFIG).shape == (4 * 19, 1)
  np.testing.assert_allclose(rationals.points_between(x, CONFIG)[:19], x[:-1] + np.diff(x, axis=0) / 5)
  assert rationals.points_between(np.random.default_rng(0).uniform(1, 3, (20, 2)), CONFIG).shape == (4 * 256, 2)
  equation = rational_fits.Equation(
    rationals.bases(1, CONFIG)[0], x[[0] * 90], np.ones(90), np.ones(90), x, config=CONFIG)
  assert len(equation._few) == 48


def test_fractions_that_are_taken_apart_and_written(monkeypatch):
  def fraction(num_terms):
    return SimpleNamespace(error=0.1, num_terms=num_terms, denominator={(1.0,): 1, (0.0,): 1}, numerator={(0.0,): 1},
                           is_exact=False)
  assert len(rationals._promising([[fraction(num)] for num in range(3, 12)], 100, CONFIG)) == 3
  monkeypatch.setattr(rationals, "_of_link", lambda rows, link, config: (
    [[parse(f"{k}.5*x") for k in range(99)]], True))
  rows = task_of(1).fit_rows
  assert len(rationals.rationals_of(rows, (0,), rule=Rule(1))) == 48
  monkeypatch.undo()
  fractions = [[SimpleNamespace(num_terms=num, is_exact=False, denominator={(1.0,): 1}, numerator={(0.0,): 1})]
               for num in range(7, 12)]
  monkeypatch.setattr(rationals, "_fractions", lambda rows, config, num: fractions)
  asked = []
  monkeypatch.setattr(rationals, "written", lambda each, *given, **named: asked.append(each.num_terms) or [])
  rationals._of_link(Rows(rows.x, rows.y, rows.weights), rationals.LINKS["y"], CONFIG)
  assert asked == [7, 8, 9]


@pytest.mark.parametrize(("num_rows", "num"), [(100, 6), (48, 6), (47, 5)])
def test_sums_of_fractions_have_six_at_most_and_thirty_two_are_carried_on(num_rows, num):
  rng = np.random.default_rng(0)
  found = list(rational_forms._few_columns(rng.normal(size=(num_rows, 60)), rng.normal(size=num_rows),
                                           np.ones(num_rows), CONFIG))
  assert len(found) == num and {len(sets) for sets, _ in found} == {32}


def test_a_column_that_is_a_sum_of_others_is_none():
  basis = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 3)))[0]
  for apart, sizes in ((1.5e-6, 2), (0.5e-6, 1)):
    columns = np.stack([basis[:, 0], basis[:, 0] + apart * basis[:, 1]], axis=1)
    assert len(list(rational_forms._few_columns(columns, basis[:, 2], np.ones(40), CONFIG))) == sizes


def test_sums_that_are_kept_and_the_degrees_above_their_lines(monkeypatch):
  sets = [[i] for i in range(9)]
  parts = SimpleNamespace(factors=[1], is_product=False, columns=lambda monomials: (np.ones((30, 9)), list(range(9))),
                          node=lambda what, *given: parse(f"{what[0] + 1}.5*x"))
  y = np.linspace(-1, 1, 30)
  variance = np.var(y)
  for is_exact, share, count in ((True, 0.9e-18, 4), (True, 1.1e-18, 0), (False, 1e-3, 4), (False, 0.9e-16, 0)):
    monkeypatch.setattr(rational_forms, "_few_columns", lambda *given, share=share: [
      (sets, np.full(9, share * variance))])
    found, _ = rational_forms._sums(parts, [], SimpleNamespace(is_exact=is_exact), y, np.ones(30), None, 1.0, CONFIG)
    assert len(found) == count
  asked = []
  tolerances = []
  monkeypatch.setattr(rational_forms, "Fractions", lambda fraction, x, *, tolerance, config: tolerances.append(
    tolerance) or parts)
  monkeypatch.setattr(rational_forms, "_sums", lambda parts, monomials, *rest: asked.append(
    max(map(sum, monomials))) or ([], False))
  for num, degrees in ((1, [3]), (2, [2, 3]), (3, [2]), (4, [2])):
    asked.clear()
    rational_forms.sums_of_fractions(SimpleNamespace(is_exact=True), np.ones((9, num)), None, None, None, 1.0, CONFIG)
    assert asked == degrees
  rational_forms.sums_of_fractions(SimpleNamespace(is_exact=False), np.ones((9, 1)), None, None, None, 1.0, CONFIG)
  assert tolerances == [1e-5] * 4 + [0.3]


@pytest.mark.parametrize(("multiple", "is_found"), [(9, True), (11, False)])
def test_divisors_that_leave_coefficients_simple(multiple, is_found):
  odd = 0.7654321
  coefficients = [multiple * odd, 10.1 * odd, 10.3 * odd, 12.7 * odd]
  found = rational_forms._simplest_divisors(coefficients, 0.123456, CONFIG)
  assert any(abs(each - odd) < 1e-12 for each in found) is is_found


@pytest.mark.parametrize("num_columns", [1, 2, 3, 4])
def test_fractions_in_one_function_are_asked_of_no_basis_that_lies_within_an_earlier_one(num_columns):
  x = np.random.default_rng(0).uniform(1, 3, (200, num_columns))
  degrees = DEFAULT.function_fractions.degrees[min(num_columns, 3) - 1]
  bases = list(function_fractions._bases(range(num_columns), x, degrees))
  assert len(bases) == {1: 14, 2: 7}.get(num_columns, 5)
  for earlier, later in itertools.combinations(bases, 2):
    assert not (set(later.above) <= set(earlier.above) and set(later.below) <= set(earlier.below)
                and later.degree <= earlier.degree)


class Narrowing:
  """Shares of constants that are least at one of them, and how often somebody has asked."""

  def __init__(self, best, height=1.0):
    self.best, self.height, self.num_asked = best, height, 0

  def __call__(self, family, constants, *given):
    self.num_asked += 1
    assert len(constants) == 16 + 1  # sixteen parts
    return self.height * np.abs(constants - self.best) ** 2


@pytest.mark.parametrize(("share", "around", "num_asked"), [
  (1.0, 1.0, 14), (1e-9, 9e-8, 2), (1e-9, 1.1e-7, 14)])
def test_a_function_constant_is_told_by_fourteen_divisions_unless_two_say_that_it_is_none(share, around, num_asked):
  family = SimpleNamespace(constants=lambda values, config: np.linspace(0, 1, 5))
  equation = SimpleNamespace(rows=Rows(np.ones((9, 1)), np.ones(9), np.ones(9)), shares=Narrowing(0.7))
  place = function_fractions.Place(share, around, None, family, expression.variable(0), 0.75)
  found = function_fractions._Equation.with_best_constant(equation, place, DEFAULT.function_fractions)
  assert equation.shares.num_asked == num_asked
  assert found.constant == pytest.approx(0.7, abs=1e-12 if num_asked == 14 else 1e-2)


# --- fractions within functions --------------------------------------------------------------------------------------


def test_fractions_within_functions_are_of_degrees_up_to_three_and_three_rows_a_term(monkeypatch):
  monkeypatch.setattr(linked_fractions, "_Equation", lambda y, above, below, config: (
    above.shape[1] - 1, below.shape[1] - 1))
  rows = Rows(np.linspace(1, 2, 400)[:, None], np.ones(400), np.ones(400))
  found = [degrees for _, degrees in linked_fractions._equations(rows, (0,), Rule(1), PLAIN_LINKED)]
  # The fourth degree is that of a polynomial alone, or its inverse.
  every = set(itertools.product(range(4), repeat=2)) - {(0, 0), (1, 3), (2, 3)} | {(4, 0), (0, 4)}
  assert set(found) == every and len(found) == len(every)
  few = Rows(rows.x[:12], rows.y[:12], rows.weights[:12])
  assert {sum(degrees) for _, degrees in linked_fractions._equations(few, (0,), Rule(1), PLAIN_LINKED)} == {1, 2}


def test_fractions_within_functions_are_looked_for_on_a_hundred_and_sixty_rows_at_a_dozen_minima(monkeypatch):
  asked, tried = [], []
  place = SimpleNamespace(leap=1.0)
  equation = SimpleNamespace(places=lambda family: [place] * 20, best=lambda place: tried.append(place))
  monkeypatch.setattr(linked_fractions, "_equations", lambda rows, *given: asked.append(len(rows)) or [((), equation)])
  rows = task_of(1, num_rows=250).fit_rows
  linked_fractions.fractions_of(rows, (0,), Rule(1))
  assert asked == [160] and len(tried) == 12


@pytest.mark.parametrize(("height", "num_asked"), [(1e-3, 14), (1e9, 4)])
def test_the_constant_of_a_function_of_y_is_told_by_fourteen_divisions_or_dropped_after_four(height, num_asked):
  equation = SimpleNamespace(_config=LINKED, shares=Narrowing(0.7, height))
  found = linked_fractions._Equation._nearest(equation, linked_fractions.Place(1.0, None, 0.0, 1.0))
  assert equation.shares.num_asked == num_asked
  assert found == (pytest.approx(0.7, abs=1e-12) if num_asked == 14 else None)


# --- fractions in functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_columns", "expected"), [
  (1, ["1/0 1", "0/0 2", "2/0 1", "1/1 1", "0/0 3", "3/0 1", "2/1 1", "3/1 1", "1/0 2", "1/1 2", "2/1 2", "0/3 1",
       "3/2 1", "4/0 1"]),
  (2, ["1/0 1", "2/0 1", "1/1 1", "3/0 1", "2/1 1", "1/0 2", "2/0 1 roots"]),
  (3, ["1/0 1", "1/1 1", "2/0 1", "1/0 1 roots", "2/1 1"]), (4, ["1/0 1", "1/1 1", "2/0 1", "1/0 1 roots", "2/1 1"])])
def test_fractions_in_one_function_are_of_these_degrees_the_smallest_first(num_columns, expected, monkeypatch):
  """Of the columns above and below the line, and of the function."""
  monkeypatch.setattr(function_fractions, "_multiples", lambda *given: [])
  x = np.random.default_rng(0).uniform(1, 3, (200, num_columns))
  rows = Rows(x, -x[:, 0], np.ones(200))  # below 0: no function of y is a root
  found = []
  for basis, _, _ in function_fractions._equations(rows, range(num_columns), Rule(num_columns), FUNCTIONS):
    above, below = (max(sum(p for _, p in each) for each in side) for side in (basis.above, basis.below))
    found.append(f"{above:g}/{below:g} {basis.degree}" + " roots" * basis.has_roots)
    powers = {p for each in basis.above for _, p in each}
    assert not powers or min(powers) == (0.5 if basis.has_roots else 1)
  assert found == expected


def test_four_bases_are_tried_of_the_square_of_y_too_and_then_products_of_one_column():
  x = np.linspace(1, 3, 200)
  found = []
  for basis, equation, _ in function_fractions._equations(Rows(x[:, None], x, np.ones(200)), (0,), Rule(1), FUNCTIONS):
    [power] = set(np.round(np.log(equation.y[1:]) / np.log(x[1:]), 9))
    found.append((power, len(basis.above), len(basis.below), basis.degree))
  powers = [power for power, *_ in found]
  assert powers == [1, 2] * 4 + [3, 3, 4, 4, 6, 6, 1.5, 1.5] + [1] * 10  # y is x
  assert [sizes for _, *sizes in found[8:16]] == [[1, 1, 2], [2, 1, 1]] * 4


# --- exact fractions -------------------------------------------------------------------------------------------------

EXACT = DEFAULT.exact_fractions


def test_coefficients_of_an_exact_fraction_are_weighted_by_its_denominator_twice(monkeypatch):
  asked = []
  monkeypatch.setattr(null_vectors, "find", lambda columns, config: np.ones(columns.shape[1]))
  monkeypatch.setattr(exact_fractions, "_reweighted", lambda coefficients, *given: asked.append(given[-1]))
  monkeypatch.setattr(exact_fractions, "_fraction", lambda *given: None)
  table = SimpleNamespace(exact_sizes=lambda z, root: [(1, 1)], values=np.ones((9, 1)), monomials=[(0.0,)], u=None)
  exact_fractions._fraction_for(table, np.arange(9.0), EXACT, SimpleNamespace(num_eliminations=9))
  assert asked == [2]


@pytest.mark.parametrize(("largest", "are_weighted"), [(29.9, False), (30.1, True)])
def test_rows_count_less_where_the_largest_is_thirty_times_as_far_out_as_the_median(largest, are_weighted):
  root = exact_fractions._root_of_weights(np.array([1.0, -1.0, 1.0, -1.0, largest]), EXACT)
  assert (root is not None) is are_weighted


@pytest.mark.parametrize(("share", "is_exact"), [(0.9e-16, True), (1.1e-16, False)])
def test_where_rows_are_far_out_a_fraction_may_miss_more(share, is_exact):
  u = np.linspace(-1, 1, 60)
  z = u + np.sqrt(share * np.var(u)) * np.where(np.arange(60) % 2, 1, -1)
  found = exact_fractions._fraction([(1.0,)], [(0.0,)], np.ones(2), u[:, None], z, EXACT, np.ones(60))
  assert (found is not None) is is_exact
