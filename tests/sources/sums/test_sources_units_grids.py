"""Every family of columns on small grids: its members are those of its definition, one after the other."""

import dataclasses
import itertools

import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.language import expression, parser
from symformer_jax.sources.sums import families

NAMES = ("x", "z", "w")
SMALL = dataclasses.replace(
  DEFAULT.library, rates=(0.5, 4.0, 2), usual_rates=(1.0, -1.0), usual_shifts=(0.0, 1.0), distances=(0.1, 1.0, 2),
  num_places=2, widths=(0.1, 0.4, 2), integers=(1.0, 2.0), arcsine_shares=(0.5, 1.0), num_waves=3,
  num_multiplied_waves=2, num_other_waves=1, num_decaying_waves=2, decays=(0.5, 2.0, 2), stretched_powers=(0.5, 1.5),
  gamma_powers=(-0.5, 2), hyperbolic_rates=(0.5, 2.0, 2), bounded_powers=(-1.5, 0.5), num_plane_waves=2,
  product_powers=(1, 2), product_factors=(2.0,), powers=(-1, 2), paired_powers=(-1, 1), argument_powers=(1, 2),
  inner_functions=("ln", "exp"), outer_powers=(1, -1, 2), num_few_factors=2, multiplier_powers=((1, -1), (1,)),
  max_multipliers=6, max_multiplier_size=2, many_functions=(("sin", (1, 2)), ("exp", (-1,))),
  long_powers=((1, -1), (1,)), max_monomial_size=3, max_long_monomials=8, max_angle_size=2, max_angles=8,
  angle_powers=((1, -1), (1,)), num_many_waves=26, max_pairs=4, pair_powers=((1, -1), (1,)))
# From 0.75 to 4: of both a logarithm, and a place where it is 0.
X = np.random.default_rng(0).uniform(0.75, 4, (12, 3))
X[0], X[1] = 0.75, 4.0
X[:, 1] *= 2
U, V, W = X.T
LOW, HIGH, RANGE = 0.75, 4.0, 3.25
QUARTER = np.pi / 2 / RANGE
RATES = [1, -1, 0.5 / RANGE, 4 / RANGE, -0.5 / RANGE, -4 / RANGE]
SHIFTS = [0, 1, 0.1 * RANGE - LOW, RANGE - LOW, -0.1 * RANGE - HIGH, -RANGE - HIGH]
BACK = [0, 1, 0.1 * RANGE + HIGH, RANGE + HIGH, -0.1 * RANGE + LOW, -RANGE + LOW]
PLACES = [LOW + RANGE / 3, LOW + 2 * RANGE / 3]
WIDTHS = [0.1 * RANGE, 0.4 * RANGE]
GRID = [(place, width) for width in WIDTHS for place in PLACES]
MAKERS = {name: (subjects, make) for subjects, rows in families.FAMILIES for name, make in rows.items()}


def parse(text):
  return parser.parse(text, NAMES)


def space_of(*columns, **changes):
  return families.Space(X, columns, dataclasses.replace(SMALL, **changes))


def shifted(f):
  return [[f(U + c) for c in SHIFTS], [f(-U + c) for c in BACK]]


def stretched(p):
  return [np.exp(-c * U**p) for c in np.array([0.5, 4]) / (HIGH**p - LOW**p)]


def peaks(u, low, high):
  places, widths = [low + k * (high - low) / 3 for k in (1, 2)], [share * (high - low) for share in (0.1, 0.4)]
  grid = [(place, width) for width in widths for place in places]
  return [[np.exp(-(((u - m) / s) ** 2)) for m, s in grid], [1 / ((u - m) ** 2 + s**2) for m, s in grid],
          [1 / (1 + np.exp((u - m) / s)) for m, s in grid]]


with np.errstate(all="ignore"):  # of a logarithm or a root
  BOUNDED = [
    [1 + np.exp((U - m) / s) for m, s in GRID], [1 + np.exp(-(U - m) / s) for m, s in GRID],
    [1 - np.exp(-c * U) for c in np.array([0.5, 4]) / RANGE],
    *([1 + c * U**p for c in np.array([0.5, 2]) / HIGH**p] for p in (0.5, 1.5))]
  HYPERBOLIC = np.array([1, 0.5 / HIGH, 2 / HIGH])
  OF_ARGUMENT = {
    "exponentials": [[np.exp(c * U) for c in RATES]],
    "occupancies": [[1 / (np.exp(c * U) + 1) for c in RATES], [1 / (np.exp(c * U) - 1) for c in RATES]],
    "arctangents": [[np.arctan(c * U) for c in (1, 2, 0.5 / HIGH, 4 / HIGH)]],
    "trigonometric": [[f(U), f(2 * U)] for f in (np.sin, np.cos, np.tan)],
    "logarithms": shifted(np.log), "roots": shifted(np.sqrt),
    "poles": [[1 / (U + c) for c in (*SHIFTS, -PLACES[0], -PLACES[1])]],
    "powers_of_sums": [[(side + c) ** p for c in shifts] for side, shifts in ((U, SHIFTS), (-U, BACK))
                       for p in (-0.5, 1.5)],
    "arcsines": [[np.arcsin(c * U) for c in (1, 0.5 / HIGH, 1 / HIGH)]],
    "bent_functions": [[g(f(U))] for f in (np.log, np.sin, np.cos, np.tan) for g in (lambda a: 1 / a, np.square)],
    "waves": [[f(k * QUARTER * U) for k in (1, 2, 3)] for f in (np.sin, np.cos)]}
  OF_VARIABLE = {
    "decaying_waves": [[np.exp(-d / RANGE * U) * f(k * QUARTER * U) for k in (1, 2)] for d in (0.5, 2)
                       for f in (np.sin, np.cos)],
    "peaks_and_steps": [*peaks(U, LOW, HIGH), *peaks(np.log(U), np.log(LOW), np.log(HIGH))],
    "stretched_exponentials": [stretched(0.5), stretched(1.5)],
    "powers_times_exponentials": [[U**p * np.exp(-c / RANGE * U) for c in (0.5, 4)] for p in (-0.5, 2)],
    "hyperbolics": [[f(c * U) for c in HYPERBOLIC] for f in (
      lambda a: 2 * np.cosh(a), lambda a: 2 * np.sinh(a), lambda a: 0.5 / np.cosh(a),
      lambda a: 0.25 / np.cosh(a) ** 2)],
    "soft_corners": [[np.log(column) for column in some] for some in BOUNDED],
    "powers_of_bounded": [[column**p for column in some] for some in BOUNDED for p in (-1.5, 0.5)]}


@pytest.fixture(autouse=True)
def what_is_undefined_is_left_out_later():
  with np.errstate(all="ignore"):
    yield


def check(made, expected, x=X):
  """Values by the definition, and formulas that have them wherever they are finite."""
  assert [family.values.shape[1] for family in made] == [len(some) for some in expected]
  for family, some in zip(made, expected, strict=True):
    for g, column in enumerate(some):
      np.testing.assert_allclose(family.values[:, g], column, rtol=1e-8, atol=1e-12)
      values = expression.evaluate(family.build(g), x) * np.ones(len(x))
      defined = np.isfinite(column)
      np.testing.assert_allclose(values[defined], column[defined], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", OF_ARGUMENT)
def test_families_of_an_argument_alone_and_times_each_factor(name):
  _, make = MAKERS[name]
  space, argument = space_of(0, 1), families._Argument(parse("x"), U, True, ())
  alone = list(make(space, argument))
  check(alone, OF_ARGUMENT[name])
  assert all(family.tier == (families.ANY if name == "waves" else families.BASIC) for family in alone)
  made = list(make(space, dataclasses.replace(argument, factors=[parse("z"), parse("1/w")])))
  if name == "waves":
    few = [some[:2] for some in OF_ARGUMENT[name]]
    expected = [*OF_ARGUMENT[name], *([f * column for column in some] for f in (V, 1 / W) for some in few)]
  else:
    expected = [[f * column for column in some] for some in OF_ARGUMENT[name] for f in (1, V, 1 / W)]
  check(made, expected)
  assert not any(family.is_mixed for family in made)


@pytest.mark.parametrize("name", OF_ARGUMENT)
def test_of_arguments_that_are_no_variables_there_is_one_side_and_there_are_fewer_waves(name):
  _, make = MAKERS[name]
  made = list(make(space_of(0, 1), families._Argument(parse("x"), U, False, ())))
  expected = OF_ARGUMENT[name]
  if name in ("logarithms", "roots", "powers_of_sums"):
    expected = expected[: len(expected) // 2]
  if name == "waves":
    expected = [some[:1] for some in expected]
  check(made, expected)
  assert all(family.tier == families.ANY for family in made)
  times = list(make(space_of(0, 1), families._Argument(parse("x"), U, False, [parse("z")])))
  assert len(times) == 2 * len(made)


@pytest.mark.parametrize("name", OF_VARIABLE)
def test_families_of_a_variable(name):
  subjects, make = MAKERS[name]
  assert list(subjects(space_of(0, 2))) == [parse("x"), parse("w")] and list(subjects(space_of(0, 1, 2)))
  check(list(make(space_of(0), parse("x"))), OF_VARIABLE[name])
  assert not list(subjects(space_of(0, 1, 2, max_variables=2)))


@pytest.mark.parametrize(("low", "counts"), [(0.0, (3, 2, 0, 2)), (-1e-9, (3, 0, 0, 2)), (1e-9, (6, 2, 2, 5))])
def test_logarithms_and_powers_need_a_variable_above_0(low, counts):
  x = np.linspace(low, 2, 9)[:, None]
  space = families.Space(x, (0,), SMALL)
  for name, count in zip(("peaks_and_steps", "stretched_exponentials", "powers_times_exponentials", "soft_corners"),
                         counts, strict=True):
    assert len(list(MAKERS[name][1](space, parse("x")))) == count


def test_functions_are_taken_of_powers_and_of_sums_products_and_quotients_of_two():
  def arguments(*columns, **changes):
    return list(families._each_argument(space_of(*columns, **changes)))
  two = ["x", "x**2", "z", "z**2", "x + z", "x - z", "x*z", "x/z", "z/x", "x**2/z", "z**2/x", "x**2 + z**2"]
  inner = ["x*log(x)", "z*log(z)", "log(x)", "exp(x)", "log(z)", "exp(z)"]
  found = arguments(0, 1)
  assert len(found) == len(two) + len(inner)
  for argument, text in zip(found, [*two, *inner], strict=True):
    np.testing.assert_allclose(argument.u, expression.evaluate(parse(text), X))
    np.testing.assert_allclose(expression.evaluate(argument.node, X), argument.u)
    assert argument.is_variable == (text in ("x", "z")) and argument.is_inner == (text in inner[2:])
    assert bool(argument.factors) == argument.is_variable
  factors = [expression.evaluate(node, X) for node in found[0].factors]
  np.testing.assert_allclose(factors, [U, 1 / U, U**2, V, 1 / V, V**2, U * V])
  alone = arguments(0)
  assert [len(argument.factors) for argument in alone] == [3, 2, 2, 0, 0]  # of x, x**2, x*log(x), log(x), exp(x)
  np.testing.assert_allclose([expression.evaluate(node, X) for node in alone[1].factors], [U, 1 / U])
  assert len(arguments(0, 1, inner_functions=("exp",))) == len(two) + 2  # without the logarithm no x*log(x)
  assert len(arguments(0, 1, max_inner=1)) == len(two) and len(arguments(0, 1, 2)) == 3 * 2 + 3 * 8
  assert not arguments(0, 1, 2, max_variables=2) and len(arguments(0, 1, max_variables=2)) == 18


def test_arguments_are_finite_and_vary():
  x = np.column_stack([np.r_[0.0, U[1:]], np.full(12, 2.0), W])
  found = list(families._each_argument(families.Space(x, (0, 1), SMALL)))
  texts = ["x", "x**2", "x + z", "x - z", "x*z", "x/z", "x**2/z", "x**2 + z**2", "exp(x)"]
  assert len(found) == len(texts)
  for argument, text in zip(found, texts, strict=True):
    np.testing.assert_allclose(argument.u, expression.evaluate(parse(text), x))


def test_products_of_two_functions_without_inner_constants():
  space = space_of(0, 1)
  arguments = [U, U**2, V, V**2, 2 * U, 2 * V, U + V, U * V]
  functions = (np.sin, np.cos, np.exp, np.log, np.arctan, np.tan)
  columns = [(f(a), f is np.exp) for a in arguments for f in functions] + [(np.exp(-a), True) for a in arguments]
  expected = [[one * other for other, is_exp in columns[i + 1:] if not (is_first and is_exp)]
              for i, (one, is_first) in enumerate(columns[:-1])]
  made = list(families._products(space, None))
  assert [family.values.shape[1] for family in made] == [len(some) for some in expected]
  for family, some in zip(made, expected, strict=True):
    np.testing.assert_allclose(family.values, np.reshape(some, (len(some), 12)).T, rtol=1e-8, atol=1e-12)
    assert family.is_mixed
    for g in (0, len(some) - 1) if some else ():
      np.testing.assert_allclose(expression.evaluate(family.build(g), X), some[g], rtol=1e-8, atol=1e-12)
  subjects, _ = MAKERS["products"]
  assert len(list(subjects(space))) == 1 and not list(subjects(space_of(0, 1, max_variables=1)))


def test_waves_in_a_plane():
  steps = [(j * QUARTER, k * QUARTER / 2) for k in (1, 2, -1, -2) for j in (1, 2)]  # z ranges twice as far
  made = list(families._plane_waves(space_of(0, 1), (parse("x"), parse("z"))))
  check(made, [[f(a * U + b * V) for a, b in steps] for f in (np.sin, np.cos)])
  pairs = list(MAKERS["plane_waves"][0](space_of(0, 1, 2)))
  assert pairs == [(parse(a), parse(b)) for a, b in itertools.combinations(NAMES, 2)]
  assert not list(MAKERS["plane_waves"][0](space_of(0, 1, max_variables=1)))


def test_monomials_of_few_and_of_many_variables():
  single = [1 / U, U**2, 1 / V, V**2]
  pairs = [U**p * V**q for p in (-1, 1) for q in (-1, 1)]
  made = list(families._monomials(space_of(0, 1), None))
  check(made, [single, pairs])
  assert [family.tier for family in made] == [families.MONOMIAL] * 2 and all(family.is_mixed for family in made)
  many = list(families._monomials(space_of(0, 1, max_variables=1, min_many=2), None))
  check(many, [single, [U**p * V**q for p in (1, -1) for q in (1, -1)]])
  check(list(families._monomials(space_of(0, 1, max_variables=1, min_many=2, max_pairs=3), None)), [single, [U * V]])
  check(list(families._monomials(space_of(0, 1, max_variables=1, min_many=3), None)), [single])
  assert [family.tier for family in many] == [families.MONOMIAL] * 2


def test_products_of_three_of_many_variables():
  [family] = families._long_monomials(space_of(0, 1, 2), None)
  check([family], [[U**p * V**q * W**r for p in (1, -1) for q in (1, -1) for r in (1, -1)]])
  assert family.tier == families.BASIC and family.is_mixed
  check(list(families._long_monomials(space_of(0, 1, 2, max_long_monomials=7), None)), [[U * V * W]])
  check(list(families._long_monomials(space_of(0, 1, 2, max_monomial_size=2), None)), [[]])


def test_squared_differences_of_two_variables():
  [family] = families._squared_differences(space_of(0, 1, 2), None)
  check([family], [[(U - V) ** 2, (U - W) ** 2, (V - W) ** 2]])
  assert family.tier == families.MONOMIAL and family.is_mixed


@pytest.mark.parametrize(("most", "has_pairs"), [(2, True), (1, False)])
def test_functions_of_many_variables_times_monomials(most, has_pairs):
  made = list(families._functions_times_monomials(space_of(0, 1, max_paired_arguments=most), None))
  multipliers = [np.ones(12), U, 1 / U, V, 1 / V, U * V, U / V, V / U, 1 / (U * V)]
  arguments = [U, V, *([U / V, U * V, U - V] if has_pairs else [])]
  expected = [[m * f(c * a) for m in multipliers] for a in arguments
              for f, c in ((np.sin, 1), (np.sin, 2), (np.exp, -1))]
  check(made, expected)
  assert all(family.tier == families.BASIC and family.is_mixed for family in made)


def test_waves_of_monomials_share_their_number():
  made = list(families._waves_of_monomials(space_of(0, 1), None))
  angles = [U, 1 / U, V, 1 / V, U * V, U / V, V / U, 1 / (U * V)]
  num = 26 // len(angles)
  check(made, [[f(k * np.pi / 2 / np.ptp(a) * a) for k in range(1, num + 1)] for a in angles for f in (np.sin, np.cos)])
  level = families.Space(np.column_stack([U, np.full(12, 2.0)]), (0, 1), SMALL)
  assert len(list(families._waves_of_monomials(level, None))) == 2 * 6  # of z alone there is none
  zero = families.Space(np.column_stack([np.r_[0, U[1:]], V]), (0, 1), SMALL)
  assert len(list(families._waves_of_monomials(zero, None))) == 2 * 5  # nor over 0


def test_what_is_of_many_variables_alone():
  for name in ("squared_differences", "long_monomials", "functions_times_monomials", "waves_of_monomials"):
    subjects, _ = MAKERS[name]
    assert len(list(subjects(space_of(0, 1, 2)))) == 1 and not list(subjects(space_of(0, 1)))
  assert len(list(MAKERS["monomials"][0](space_of(0)))) == 1


def test_a_number_that_changes_nothing_is_not_written():
  x = parse("x")
  assert families._scaled(x)(1) is x and families._shifted(x)(0) is x
  assert families._scaled(x)(2.0).token == "*" and families._shifted(x)(1.0).token == "+"


def test_families_of_one_subject_follow_one_another():
  config = dataclasses.replace(SMALL, families=("poles", "exponentials"))
  made = list(families.make_families(families.Space(X, (0,), config)))
  tokens = [family.build(0).token if family.build(0).token != "*" else "times" for family in made]
  # Of x three factors, of x**2 and x*log(x) two, of functions of x none.
  assert tokens == ["exp", *["times"] * 3, "inv", *["times"] * 3, *["exp", *["times"] * 2, "inv", *["times"] * 2] * 2,
                    *["exp", "inv"] * 2]
  assert families.plain_columns(space_of(0), ()) == []
