"""What the default config makes of small data: the library's columns and the factors of products, counted and read."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine import screening
from symformer_jax.engine.config import DEFAULT, columns, names
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser, printing, programs
from symformer_jax.language.expression import sort_operands
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import Values
from symformer_jax.sources.sums import families, library, products, pursuit

NAMES = tuple("xzwvutsrqponm")
# From 1 to 2: a range of 1, by which grids are measured; the logarithm to base 2 of the last row is an exponent.
U = np.linspace(1.0, 2.0, 41)
X = families._Argument(expression.variable(0), U, True, ())


def parse(text):
  return sort_operands(tidy(parser.parse(text, NAMES)))


def tidied(node):
  return sort_operands(tidy(node))


def halves(first, last):
  """Half numbers from one to another but 0."""
  return [i / 2 for i in range(round(2 * first), round(2 * last) + 1) if i]


def space_of(num_columns, x=None):
  x = np.tile(U[:, None], (1, num_columns)) if x is None else x
  return families.Space(x, tuple(range(num_columns)), DEFAULT.library)


def two_in(num_columns):
  """Rows in each of which one column is 2 and the others are 1."""
  return np.ones((num_columns, num_columns)) + np.eye(num_columns)


def powers_of_first(values):
  """The different exponents, in their order, of the first column in monomials of values [N, P] on `two_in`."""
  return sorted(set(np.log2(values[0]).round(9)) - {0.0})


# --- the library -----------------------------------------------------------------------------------------------------


def test_powers_of_one_variable_and_of_two():
  with np.errstate(all="ignore"):
    single, pairs = families._monomials(space_of(2, two_in(2)), None)
  assert powers_of_first(single.values) == [-6, -5, -4, *halves(-3, 4), 5, 6, 7, 8]
  assert powers_of_first(pairs.values) == [-3, *halves(-2, 2), 3] and pairs.values.shape == (2, 100)


def test_what_functions_are_taken_of_and_times_what():
  space = space_of(1)
  found = {tidied(argument.node): argument for argument in families._each_argument(space)}
  assert set(found) == {parse(text) for text in (
    "x", "x**2", "1/x", "sqrt(x)", "x**3", "x*log(x)", "log(x)", "exp(x)", "sin(x)", "cos(x)", "arctan(x)")}
  for text, factors in (("x", ("x", "1/x", "x**2", "x**(-2)", "sqrt(x)", "x**3")), ("x**2", ("x", "1/x"))):
    assert [tidied(node) for node in found[parse(text)].factors] == [parse(each) for each in factors]
  # Functions are arguments where there are one or two variables, and have grids where there are up to three.
  for num, has_inner, is_few, is_many in ((2, True, True, False), (3, False, True, True), (4, False, False, True)):
    space = space_of(num)
    assert any(argument.is_inner for argument in families._each_argument(space)) is has_inner
    assert (space.is_of_few, space.is_of_many) == (is_few, is_many)


def test_smooth_tables_are_met_by_no_arcsines_and_powers_of_sums_unless_they_are_asked_for():
  assert set(names.LIBRARY_FAMILIES) - set(DEFAULT.library.families) == {"arcsines", "powers_of_sums"}
  assert "arcsines" in DEFAULT.varying.forms.library.families


@pytest.mark.parametrize(("is_variable", "alone", "times"), [(True, 400, 40), (False, 100, 100)])
def test_waves_by_quarters_over_the_range(is_variable, alone, times):
  argument = families._Argument(expression.variable(0), U, is_variable, [expression.variable(0)])
  made = list(families._waves(space_of(1), argument))
  assert [family.values.shape[1] for family in made] == [alone, alone, times, times]


def test_decaying_and_plane_waves():
  decaying = list(families._decaying_waves(space_of(1), expression.variable(0)))
  assert len(decaying) == 2 * 7 and all(family.values.shape[1] == 100 for family in decaying)
  decays = [-programs.fitted_values(family.build(0).args[0])[0] for family in decaying[::2]]
  np.testing.assert_allclose(decays, np.geomspace(0.3, 20, 7))
  [plane, _] = families._plane_waves(space_of(2), (expression.variable(0), expression.variable(1)))
  assert plane.values.shape[1] == 20 * 2 * 20


def test_grids_of_exponentials_and_of_what_has_a_zero():
  config = DEFAULT.library
  rates, grid = families._rates(X, config), np.geomspace(0.1, 50, 24)
  np.testing.assert_allclose(rates, [1, -1, *grid, *-grid])
  shifts, distances = families._shifts(X, config), np.geomspace(0.003, 5, 16)
  np.testing.assert_allclose(shifts, [0, 1, -1, *(distances - 1), *(-distances - 2)])
  [arctangents] = families._arctangents(X, config)
  np.testing.assert_allclose(np.tan(arctangents.values[0]), [1, 2, 3, 4, 5, *grid / 2], rtol=1e-9)
  sines, _, _ = families._trigonometric(X, config)
  np.testing.assert_allclose(sines.values, np.sin(np.outer(U, [1, 2, 3, 4, 5])), atol=1e-12)
  with np.errstate(all="ignore"):
    [arcsines] = families._arcsines(X, config)
  np.testing.assert_allclose(np.sin(arcsines.values[0, 1:]), [0.25, 0.4, 0.475, 0.5])


def test_places_and_widths_of_peaks():
  places, widths = families._places_and_widths(U, DEFAULT.library)
  np.testing.assert_allclose(np.unique(places), 1 + np.arange(1, 21) / 21)
  np.testing.assert_allclose(np.unique(widths), np.geomspace(0.02, 1, 8))
  assert len(places) == 160


def test_exponents_that_are_fitted_begin_at_these():
  space, x = space_of(1), expression.variable(0)
  stretched = list(families._stretched_exponentials(space, x))
  shares = [np.log(family.values[-1, 0]) / np.log(family.values[0, 0]) for family in stretched]
  np.testing.assert_allclose(np.log2(shares), [0.4, 0.7, 1.5, 2.5])
  gamma = list(families._powers_times_exponentials(space, x))
  exponents = [np.log2(family.values[-1, 0] / family.values[0, 0] * math.exp(0.1)) for family in gamma]
  np.testing.assert_allclose(exponents, [-1.5, -0.7, 0.4, 0.7, 1.5, 2.5])
  bounded, powers = list(families._bounded(space, x)), list(families._powers_of_bounded(space, x))
  exponents = [np.log(family.values[0, 0]) / np.log(base.values[0, 0])
               for base, family in zip(np.repeat(bounded, 4), powers, strict=True)]
  np.testing.assert_allclose(exponents, [-2.5, -0.7, 0.7, 2.5] * len(bounded))
  cosines = next(families._hyperbolics(space, x))
  np.testing.assert_allclose(np.arccosh(cosines.values[-1] / 2), [2, *np.geomspace(0.5, 20, 16)])


def test_products_of_two_functions_are_of_these_arguments():
  made = [family.build(0).args[0] for family in families._products(space_of(1), None) if family.values.size]
  assert [tidied(node.args[0]) for node in made if node.token == "sin"] == [
    parse(text) for text in ("x", "x**2", "x**3", "2*x")]


@pytest.mark.parametrize(("num", "exponents"), [
  (4, [-3, -2, -1, -0.5, 0.5, 1, 2, 3]), (8, [-3, -2, -1, -0.5, 0.5, 1, 2, 3]), (9, [-2, -1, 1, 2]), (17, [-1, 1]),
  (33, [1]), (64, None)])
def test_monomials_of_two_of_many_variables_are_two_thousand_at_most(num, exponents):
  with np.errstate(all="ignore"):
    _, pairs = families._monomials(space_of(num, two_in(num)), None)
  count = 0 if exponents is None else math.comb(num, 2) * len(exponents) ** 2
  assert pairs.values.shape[1] == count <= 2000 and (not count or powers_of_first(pairs.values) == exponents)


def test_longer_monomials_are_four_thousand_of_a_size_at_most():
  with np.errstate(all="ignore"):
    [found] = families._long_monomials(space_of(7, two_in(7)), None)
  sizes = np.sum(np.log2(found.values).round(9) != 0, axis=0)
  assert np.bincount(sizes).tolist() == [0, 0, 0, 35 * 4**3, 35 * 2**4, 21 * 2**5, 7 * 2**6]  # none of all seven
  assert powers_of_first(found.values) == [-2, -1, 1, 2] and powers_of_first(found.values[:, sizes > 3]) == [-1, 1]


@pytest.mark.parametrize(("num", "sizes", "of_two", "of_three"), [
  (3, [1, 15, 75, 27], [-1, -0.5, 0.5, 1, 2], [-1, 0.5, 1]), (4, [1, 20, 54, 32], [-1, 0.5, 1], [-1, 1]),
  (9, [1, 45, 36, 84], [1], [1])])
def test_functions_of_many_variables_are_multiplied_by_a_hundred_of_a_size_at_most(num, sizes, of_two, of_three):
  made = next(families._functions_times_monomials(space_of(num, two_in(num)), None))
  values = made.values / np.sin(two_in(num)[:, :1])
  is_other = np.log2(values).round(9) != 0
  assert np.bincount(np.sum(is_other, axis=0)).tolist() == sizes
  found = [powers_of_first(values[:, np.sum(is_other, axis=0) == size]) for size in (1, 2, 3)]
  assert found == [[-1, -0.5, 0.5, 1, 2], of_two, of_three]


def test_functions_of_many_variables_and_when_they_are_of_two():
  with np.errstate(all="ignore"):
    made = [family.build(0) for family in families._functions_times_monomials(space_of(5, two_in(5)), None)]
  assert [tidied(node) for node in made if expression.walk(node)][:9] == [parse(text) for text in (
    "sin(x)", "sin(2*x)", "sin(0.5*x)", "cos(x)", "cos(2*x)", "cos(0.5*x)", "exp(x)", "exp(-x)", "log(x)")]
  assert len(made) == 9 * (5 + 3 * 10)  # products, quotients, differences of two of up to five variables
  with np.errstate(all="ignore"):
    assert sum(1 for _ in families._functions_times_monomials(space_of(6, two_in(6)), None)) == 9 * 6


@pytest.mark.parametrize(("num", "num_angles"), [(3, 6 + 12 + 8), (4, 8 + 24 + 32), (5, 10 + 40), (6, 12)])
def test_waves_of_monomials_share_what_waves_there_are(num, num_angles):
  x = np.random.default_rng(0).uniform(1, 3, (9, num))
  made = list(families._waves_of_monomials(space_of(num, x), None))
  assert len(made) == 2 * num_angles and made[0].values.shape[1] == 2500 // num_angles


def test_columns_that_agree_to_a_billionth_are_one():
  for apart, is_new in ((0.4e-9, False), (0.6e-9, True)):
    found = library._is_new(np.array([[1.0, 1.0], [0.5, 0.5 + apart]]), set(), DEFAULT.library.equal_values)
    assert found.tolist() == [True, is_new]


def test_of_many_columns_twelve_are_taken_by_what_a_cubic_of_their_ranks_explains():
  rng = np.random.default_rng(0)
  wide = make_task((rng.normal(size=(40, 20)), np.arange(40.0)), None, SearchOptions())
  assert len(wide.columns) == 12
  ranks = np.linspace(-1, 1, 60)
  for degree, chosen in ((3, 0), (4, 1)):
    y = np.polynomial.legendre.Legendre.basis(degree)(ranks)
    x = np.column_stack([rng.permutation(60), np.zeros(60)]).astype(float)
    x[:, 0], x[:, 1] = ranks, rng.normal(size=60)
    assert screening.choose_columns(Rows(x, y, np.ones(60)), Rule(2), num_columns=1) == (chosen,)


@pytest.mark.parametrize(("num_values", "sole"), [(14, 1), (13, None)])
def test_a_function_of_a_single_column_is_told_from_fourteen_values_on(num_values, sole):
  rng = np.random.default_rng(1)
  x = np.column_stack([rng.permutation(60), np.resize(np.linspace(1, 3, num_values), 60)])
  rows = Rows(x, np.exp(x[:, 1]), np.ones(60))
  assert screening.sole_column(rows, range(2), DEFAULT.screening) == sole


def test_the_terms_of_sums_with_unknown_factors_are_plain():
  config = columns.COARSE_LIBRARY
  x = np.random.default_rng(0).uniform(1, 3, (20, 2))
  with np.errstate(all="ignore"):
    atoms = library.Atoms(x[:, :1], (0,), config=config)
  assert sorted(printing.to_text(atoms.node(i), ("x",)) for i in range(len(atoms.groups))) == sorted((
    "1/x**2", "1/x", "1/sqrt(x)", "sqrt(x)", "x", "x**2", "x**3", "exp(x)", "exp(-x)", "log(x)"))
  for num, exponents in ((2, [-2, -1, 1, 2]), (12, [-2, -1, 1, 2])):
    with np.errstate(all="ignore"):
      made = families._monomials(dataclasses.replace(space_of(num, two_in(num)), config=config), None)
      assert powers_of_first([*made][1].values) == exponents
  assert not dataclasses.replace(space_of(13), config=config).is_of_few
  assert [dataclasses.replace(space_of(num), config=config).is_of_many for num in (12, 13)] == [False, True]
  assert config.families == ("monomials", "exponentials", "logarithms") and not config.inner_functions


# --- factors of products ---------------------------------------------------------------------------------------------


def products_space(num, x=None):
  x = two_in(num) if x is None else x
  return products._Space(Values(x), tuple(range(num)), None, DEFAULT.products)


@np.errstate(all="ignore")
def test_sums_in_products_have_these_terms_and_multiples():
  made = list(products._sums(products_space(4)))
  # On the third row of 1 + c*m every monomial of the first column is 1.
  first = [np.exp(family.logs[2, 0]) - 1 for family in made[::2]]
  np.testing.assert_allclose(first, [1, 0.5, 2, 1 / 3, 3, 0.25, 4, 0.1, 10, 0.03, 30])
  terms = products.up_to(range(6), 4, at_most=4000, exponents=(names.WIDE, names.PLAIN))
  few = list(products._sums(products_space(6)))  # of many terms fewer multiples: 7500 columns of either sign
  assert few[0].logs.shape[1] == len(terms) / 2 and len(few) == 2 * int(7500 / (len(terms) / 2)) == 4
  five = list(products._sums(products_space(5)))[0]
  assert five.logs.shape[1] == (5 * 4 + 10 * 16 + 10 * 64 + 5 * 256) / 2


@np.errstate(all="ignore")
def test_exponentials_in_products_are_of_monomials_of_up_to_six_variables():
  [family] = products._exponentials(products_space(7))
  assert family.logs.shape[1] == 28 + 21 * 16 + 35 * 64 + 35 * 16 + 21 * 32 + 7 * 64
  assert len(products._distances(range(9), DEFAULT.products.max_distances)) == 2 * (36 + 36 * 9)
  assert not products._distances(range(10), DEFAULT.products.max_distances)
  waves = next(products._sums_with_waves(products_space(5)))
  assert waves.logs.shape[1] == 1 + 10 + 40 + 80 + 80


@pytest.mark.parametrize(("num", "counts", "num_rates"), [
  (1, [4], 16), (5, [20, 160, 640, 80], 10), (9, [36, 576, 672, 0], 2)])
def test_functions_in_products_have_rates_where_there_are_few_monomials(num, counts, num_rates, monkeypatch):
  asked = []
  monkeypatch.setattr(products, "_functions_of", lambda monomial, u, rates: asked.append((monomial, u, rates)) or [])
  list(products._functions(products_space(num, two_in(num) if num > 1 else U[:, None])))
  sizes = np.bincount([len(monomial) for monomial, _, _ in asked], minlength=1)[1:]
  assert sizes.tolist() == [count for count in counts if count]
  assert {p for monomial, _, _ in asked for _, p in monomial} == {-1, -0.5, 0.5, 1}
  for monomial, u, rates in asked:
    usual, grid = rates[:4], rates[4:]
    np.testing.assert_allclose(usual, [1, 0.5, 2, 2 * math.pi])
    if not {p for _, p in monomial} <= {-1, 1}:
      assert not len(grid)
    else:
      np.testing.assert_allclose(grid * np.max(u), np.geomspace(0.2, 20, num_rates))


def test_how_factors_are_selected(monkeypatch):
  asked = []
  monkeypatch.setattr(pursuit, "select_columns", lambda *given, config, **rest: asked.append(config) or [])
  x = np.random.default_rng(0).uniform(1, 3, (6, 1))
  config = dataclasses.replace(DEFAULT.products, families=())
  assert products.find_products(Rows(x[:5], x[:5, 0] ** 2, np.ones(5)), (0,), config=config) == []  # 1 + 3 + 1
  assert products.find_products(Rows(x, x[:, 0] ** 2, np.ones(6)), (0,), config=config)
  assert [(c.max_columns, c.num_first, c.num_pairs, c.num_kept_short) for c in asked] == [
    (3, 64, 256, 256), (2, 3000, 256, 256)]


def test_of_all_products_of_a_kind_forty_eight_are_written(monkeypatch):
  x = np.random.default_rng(0).uniform(1, 3, (40, 2))
  rows, asked = Rows(x, x[:, 0] ** 2 * (1 + x[:, 1]), np.ones(40)), []
  monkeypatch.setattr(pursuit, "select_columns", lambda columns, *given, **rest: [[i] for i in range(60)])
  monkeypatch.setattr(products._Target, "written", lambda self, factors, sets, *rest: asked.append(sets) or [])
  monkeypatch.setattr(products._Target, "exponents", lambda self, factors, chosen: [
    np.array([2.0, 0.0, *[1.0] * len(chosen)])])
  products.find_products(rows, (0, 1))
  assert sorted(map(len, asked)) == [1, 1, 48, 48]  # the two others: no factor, and both exponentials beside another


def test_an_exponent_costs_four_nats_and_one_that_is_no_half_number_eight():
  x = np.random.default_rng(0).uniform(1, 3, (30, 2))
  target = products._Target(Rows(x, x[:, 0] ** 2, np.ones(30)), (0, 1), None, DEFAULT.products)
  none = SimpleNamespace(columns=np.zeros((30, 0)))
  zeros = np.zeros(30)
  target._z, target._logs = zeros, np.zeros((30, 2))  # what is left is the same for all exponents
  nats = [target.cost(none, np.zeros(0, int), np.array(each), DEFAULT.products.nats_per_exponent)
          for each in ([0.0, 0.0], [2.0, 0.0], [2.0, 0.7])]
  np.testing.assert_allclose(np.diff(nats), [4, 8])


def test_a_factor_of_which_powers_leave_a_thousandth_is_one_of_them(monkeypatch):
  x = np.random.default_rng(0).uniform(1, 3, (30, 1))
  target = products._Target(Rows(x, x[:, 0], np.ones(30)), (0,), None, DEFAULT.products)
  asked = []
  monkeypatch.setattr(pursuit, "select_columns", lambda columns, *given, **rest: asked.append(columns.shape[1]) or [])
  weights = (x[:, 0] / np.max(x)) ** 2
  root = np.sqrt(weights / weights.sum())[:, None]
  basis, _ = np.linalg.qr(root * np.column_stack([np.log(x), np.ones(30), np.random.default_rng(1).normal(size=30)]))
  logs, other = basis[:, 0], basis[:, 2]
  for share, count in ((0.9e-3, 0), (1.1e-3, 1)):
    column = (math.sqrt(1 - share**2) * logs + share * other)[:, None] / root
    factors = SimpleNamespace(columns=column.astype(np.float64), groups=np.zeros(1, int))
    target.select(factors, np.zeros(1, int), DEFAULT.pursuit, beside=np.zeros(0, int))
    assert asked[-1] == count


@pytest.mark.parametrize(("exponent", "rounded"), [(0.529, 0.5), (0.531, 0.531), (1.971, 2.0), (1.969, 1.969)])
def test_exponents_within_three_hundredths_of_a_half_number_are_one(exponent, rounded):
  x = np.random.default_rng(0).uniform(1, 3, (30, 1))
  target = products._Target(Rows(x, x[:, 0] ** exponent, np.ones(30)), (0,), None, DEFAULT.products)
  none = SimpleNamespace(columns=np.zeros((30, 0)), is_exponential=np.zeros(0, bool))
  fitted, _, _ = target.exponents(none, np.zeros(0, int))
  assert fitted == pytest.approx([rounded], abs=1e-9)


def test_exponents_of_factors_go_to_three_and_those_below_a_thousandth_are_none():
  x = np.random.default_rng(0).uniform(1, 3, (30, 2))
  factor = SimpleNamespace(columns=np.log(1 + x[:, 1:]), is_exponential=np.zeros(1, bool))
  for exponent, is_law in ((3.0, True), (-3.0, True), (3.5, False)):
    rows = Rows(x, x[:, 0] * (1 + x[:, 1]) ** exponent, np.ones(30))
    target = products._Target(rows, (0,), None, DEFAULT.products)
    assert bool(target.exponents(factor, np.zeros(1, int))) is is_law
  target = products._Target(Rows(x, x[:, 0], np.ones(30)), (0, 1), None, DEFAULT.products)
  nothing = np.zeros(0, int)
  for exponent, is_there in ((0.9e-3, False), (1.1e-3, True)):
    node = target._product(SimpleNamespace(), nothing, np.array([1.0, exponent]))
    assert any(part == expression.variable(1) for part in expression.walk(node)) is is_there


def test_a_variable_goes_where_the_error_grows_by_less_than_three_tenths():
  rng = np.random.default_rng(0)
  design = np.linalg.qr(np.column_stack([np.ones(30), rng.normal(size=(30, 3))]))[0][:, 1:]
  for more, stays in ((0.29, False), (0.31, True)):
    target = products._Target(Rows(np.exp(design[:, :2]), np.ones(30), np.ones(30)), (0, 1), None, DEFAULT.products)
    # Orthogonal columns: what is left is the third's square, and the second's besides where it goes.
    z = 5 * design[:, 0] + math.sqrt(more) * design[:, 1] + design[:, 2]
    assert target._needed(z, design[:, :2], np.ones(2, bool)).tolist() == [True, stays]
