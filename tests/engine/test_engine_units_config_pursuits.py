"""What the default config makes of fractions of few terms, and of whether y has errors, number by number."""

from types import SimpleNamespace

import numpy as np
import pytest

from symformer_jax.engine import learning_curves
from symformer_jax.engine.config import DEFAULT, FractionPursuitConfig, LearningCurveConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Rule
from symformer_jax.sources.fractions import fraction_pursuit
from symformer_jax.sources.fractions.term_pursuit import Pursuit, Terms

CONFIG, CURVE = DEFAULT.fraction_pursuit, DEFAULT.noise.learning_curve
NAMES = "xyzwvu"


def x_of(num_rows, num_columns, seed=0):
  return np.random.default_rng(seed).uniform(0.5, 2.0, (num_rows, num_columns))


def library_of(num_columns, *, has_functions=False, rule=None):
  return fraction_pursuit._library(
    x_of(60, num_columns), range(num_columns), rule or Rule(num_columns), CONFIG, has_functions=has_functions)


def parsed(*texts):
  return [parser.parse(text, tuple(NAMES)) for text in texts]


def is_among(text, library, num_columns):
  x = x_of(60, num_columns)
  [node] = parsed(text)
  return bool(np.any(np.all(np.isclose(library.values, expression.evaluate(node, x)[:, None], rtol=1e-9), axis=0)))


def test_the_parts_of_the_default_are_those_of_no_arguments():
  assert FractionPursuitConfig() == CONFIG and LearningCurveConfig() == CURVE
  assert CURVE.surrogate == DEFAULT.reductions.tried.surrogate


def test_what_is_refused():
  for kind, name in ((FractionPursuitConfig, "num_rows"), (FractionPursuitConfig, "max_terms"),
                     (FractionPursuitConfig, "num_offered"), (FractionPursuitConfig, "num_carried"),
                     (LearningCurveConfig, "least_rows"), (LearningCurveConfig, "num_rows")):
    with pytest.raises(InputError, match=name):
      kind(**{name: 0})
  with pytest.raises(InputError, match="links"):
    FractionPursuitConfig(links=("y", "none"))
  for name in ("exponents", "exponents_of_three"):
    with pytest.raises(InputError, match=f"^{name}: expected at least one tuple"):
      FractionPursuitConfig(**{name: ()})


def test_the_order_of_sources_where_y_has_errors():
  assert DEFAULT.noise.asked_before_errors == (("closed_forms", 1), ("guesses", 1))
  assert DEFAULT.noise.asked_under_errors == (
    ("product_units", 1), ("reductions", 8), ("short_forms", 1), ("fraction_pursuit", 2), ("product_units", 3),
    ("rationals", 1), ("library", 1))


@pytest.mark.parametrize(("num_columns", "are_in", "are_out"), [
  (2, ("x**3", "1/sqrt(y)", "x**3/y**2", "sqrt(x*y)"), ("x**4", "x**(-3)", "x**(1/3)")),
  (3, ("x**2", "x**2/y**2", "x**2*y**2/z", "1/(x**2*y*z)"), ("x**3", "sqrt(x)")),
  (4, ("x**2/y**2", "x*y/z"), ("x**3", "x**2*y/z", "x*y*z*w")),
  (5, ("x**2", "y**2/v", "x*y/v"), ("1/x**2", "y/v**2", "x**2*y*z")),
  (6, ("y**2/u", "x*y/u"), ("1/u**2", "x**2*y*z"))])
def test_the_exponents_of_products_of_powers(num_columns, are_in, are_out):
  library = library_of(num_columns)
  assert [is_among(text, library, num_columns) for text in are_in] == [True] * len(are_in)
  assert [is_among(text, library, num_columns) for text in are_out] == [False] * len(are_out)


def test_the_sizes_of_libraries():
  sizes = {d: (library_of(d).values.shape[1], library_of(d, has_functions=True).values.shape[1]) for d in (2, 3, 4)}
  assert sizes[2][0] == 70 and sizes[3][0] == 137 and sizes[4][0] == 165
  assert all(some > few + 300 for few, some in sizes.values())


def test_75_functions_and_what_is_over_them_stand_alone_times_and_over_a_column(monkeypatch):
  made = []
  monkeypatch.setattr(fraction_pursuit.transcendents.Candidates, "single", lambda self: [
    fraction_pursuit.transcendents.Transcendent((each,), np.ones((60, 1))) for each in made])
  made += parsed("exp(-x*y)", "log(x + y)")
  library = library_of(2, has_functions=True)
  for text in ("exp(-x*y)", "x*exp(-x*y)", "exp(-x*y)/y", "exp(x*y)", "y*exp(x*y)", "log(x + y)/x", "y*log(x + y)"):
    assert is_among(text, library, 2)
  assert not is_among("1/log(x + y)", library, 2)
  made[:] = parsed(*(f"exp(-x*y/{i})" for i in range(2, 90)))
  library = library_of(2, has_functions=True)
  assert is_among("exp(-x*y/76)", library, 2) and not is_among("exp(-x*y/77)", library, 2)


def test_plain_columns():
  library = library_of(3)
  x = x_of(60, 3)

  def values(place):
    return {tuple(np.round(library.values[:3, i], 9)) for i in library.plain[place]}

  def of(*texts):
    return {tuple(np.round(expression.evaluate(node, x)[:3] * np.ones(3), 9)) for node in parsed(*texts)}
  logarithms = of("1", "x", "y", "z", "log(x)", "log(y)", "log(z)")
  products = of("x*y", "x*z", "y*z", *(f"{a}*log({b})" for a in "xyz" for b in "xyz"))
  assert values(0) == logarithms | products
  quotients = of(*(f"{a}*{b}".replace("*1/", "/") for a, b in (
    ("x", "y"), ("x", "z"), ("y", "z"), ("x", "1/y"), ("x", "1/z"), ("y", "1/z"), ("y", "1/x"), ("z", "1/x"),
    ("z", "1/y"), ("1/x", "1/y"), ("1/x", "1/z"), ("1/y", "1/z"))), "1/x", "1/y", "1/z")
  of_three = of(*(f"x**({a})*y**({b})*z**({c})" for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)))
  assert values(1) == logarithms | quotients | of_three
  assert library.plain[0][0] == library.plain[1][0] == 0 and np.all(library.values[:, 0] == 1)
  assert len(library_of(2, rule=Rule(2, tokens=frozenset({"+", "*", "inv", "neg"}))).plain[0]) == 4


def test_256_rows_tell_and_a_quarter_of_them_bounds_the_plain_columns(monkeypatch):
  seen = []

  class Told(Pursuit):
    def by_size(self):
      seen.append((self._columns.shape, max(map(len, self._plain))))
      return []
  monkeypatch.setattr(fraction_pursuit, "Pursuit", Told)
  x = x_of(300, 5)
  rows = Rows(x, x[:, 0] + x[:, 1], np.ones(300))
  fraction_pursuit.fractions_of(rows, range(5), Rule(5))
  assert len(seen) == 4  # y, 1/y, log y and y**2; the others are of values between 0 and 1
  assert {shape[0] for shape, _ in seen} == {256} and {most for _, most in seen} == {64}
  seen.clear()
  share = Rows(x[:, :2], 0.9 * x[:, 0] / (x[:, 0] + x[:, 1]), np.ones(300))
  fraction_pursuit.fractions_of(share, range(2), Rule(2))
  assert len(seen) == 6


@pytest.mark.parametrize(("num_negative", "is_asked"), [(102, True), (103, False)])
def test_functions_of_y_are_asked_that_three_fifths_of_the_rows_have(num_negative, is_asked, monkeypatch):
  asked = []
  monkeypatch.setattr(fraction_pursuit, "Pursuit", lambda columns, target, *given, **named: (
    asked.append((len(columns), given[0])) or type("None", (), {"by_size": lambda self: []})()))
  x = x_of(256, 2)
  y = x[:, 0].copy()
  y[:num_negative] *= -1
  library = fraction_pursuit._Library(parsed("1"), np.ones((256, 1)), [])
  with np.errstate(invalid="ignore"):
    list(fraction_pursuit._of_link(fraction_pursuit.LINKS["exp"], Rows(x, y, np.ones(256)), library, CONFIG))
  assert [num for num, _ in asked] == [256 - num_negative] * is_asked


def test_no_weight_is_more_than_ten_times_that_of_nine_tenths(monkeypatch):
  seen = []
  monkeypatch.setattr(fraction_pursuit, "Pursuit", lambda columns, target, weights, *given, **named: (
    seen.append(weights) or type("None", (), {"by_size": lambda self: []})()))
  y = np.concatenate([np.full(95, 2.0), np.full(5, 200.0)])
  library = fraction_pursuit._Library(parsed("1"), np.ones((100, 1)), [])
  list(fraction_pursuit._of_link(fraction_pursuit.LINKS["exp"], Rows(x_of(100, 2), y, np.ones(100)), library, CONFIG))
  assert seen[0][0] == 4.0 and seen[0][-1] == pytest.approx(40.0)


def test_what_is_ranked_by_and_offered():
  """Half a nat for each row's logarithm of the error and each coefficient's of the rows, two a node; three a size."""
  columns = parsed("1", "x", "y")
  x = x_of(100, 2)
  y = x[:, 0] + 0.01 * x[:, 1]
  library = fraction_pursuit._Library(columns, np.stack([expression.evaluate(n, x) * np.ones(100) for n in columns], 1),
                                      [[0, 1, 2]])
  weights = np.random.default_rng(1).uniform(0.1, 2.0, 100)
  found = list(fraction_pursuit._of_link(fraction_pursuit.LINKS["y"], Rows(x, y, weights), library, CONFIG))
  for nats, node in found:
    error = np.average((expression.evaluate(node, x) - y) ** 2, weights=weights)
    num_constants = sum(n.is_number for n in expression.walk(node))
    rest = nats - 50 * np.log(error) - 2 * expression.complexity(node)
    assert rest / (0.5 * np.log(100)) == pytest.approx(round(rest / (0.5 * np.log(100))), abs=1e-6)
    assert abs(rest / (0.5 * np.log(100)) - num_constants) < 2.5
  assert 3 < len(found) <= 3 * CONFIG.max_terms


def test_what_meets_the_rows_is_first_and_what_is_not_finite_is_left_out():
  columns = parsed("1", "x")
  x = np.linspace(1.0, 2.0, 64)[:, None]
  library = fraction_pursuit._Library(columns, np.column_stack([np.ones(64), x[:, 0]]), [])
  found = list(fraction_pursuit._of_link(fraction_pursuit.LINKS["y"], Rows(x, x[:, 0], np.ones(64)), library, CONFIG))
  assert min(found)[1] == parsed("x")[0]
  x[0], y = 1e6, np.exp(x[:, 0])
  y[0] = -1.0  # has no logarithm, and its exponential overflows
  library = fraction_pursuit._Library(columns, np.column_stack([np.ones(64), x[:, 0]]), [])
  with np.errstate(all="ignore"):
    found = list(fraction_pursuit._of_link(fraction_pursuit.LINKS["exp"], Rows(x, y, np.ones(64)), library, CONFIG))
  assert found and all(np.isfinite(nats) for nats, _ in found)
  assert all(np.isfinite(expression.evaluate(node, x)).all() for _, node in found)


def test_the_damping_of_the_first_step_and_of_the_next():
  """Of a multiple of one column a step leaves the damping's share of what is missing."""
  columns = np.column_stack([np.ones(50), np.linspace(1.0, 2.0, 50)])
  for num_steps, left in ((1, 1e-6), (2, 1e-13)):
    config = FractionPursuitConfig(num_steps=num_steps)
    found = Pursuit(columns, 2 * columns[:, 1], np.ones(50), config)._fitted((1,), (), np.zeros(1))
    assert 1 - found.coefficients[0] / 2 == pytest.approx(left, rel=0.02)


def test_sizes_of_columns_are_of_no_account():
  rng = np.random.default_rng(8)
  columns = np.column_stack([np.ones(80), 1e6 * rng.uniform(1, 2, 80), 1e-6 * rng.uniform(1, 2, 80)])
  target = columns @ [1.0, 1e-6, 1e6] + 0.01 * rng.normal(size=80)
  found = Pursuit(columns, target, np.ones(80), CONFIG)._fitted((0, 1, 2), (), np.zeros(3))
  expected = np.linalg.lstsq(columns / [1, 1e6, 1e-6], target, rcond=None)[0]
  assert found.coefficients * [1, 1e6, 1e-6] == pytest.approx(expected, rel=1e-6)


def test_a_column_of_zeros_is_no_term():
  columns = np.column_stack([np.ones(50), np.zeros(50), np.linspace(1.0, 2.0, 50)])
  found = Pursuit(columns, columns[:, 2] ** 2, np.ones(50), CONFIG)._single()
  assert {each.above for each in found} == {(0,), (2,)}


def test_columns_that_gain_nothing_are_not_tried():
  columns = np.column_stack([np.ones(50), np.linspace(1.0, 2.0, 50)])
  pursuit = Pursuit(columns, columns[:, 1] ** 2, np.ones(50), CONFIG)
  [one] = [each for each in pursuit._single() if each.above == (1,)]
  found = {each.key for each in pursuit._extended([one], 9)}
  assert found == {(frozenset({0, 1}), frozenset()), (frozenset({1}), frozenset({1}))}


def test_how_a_pursuit_is_bounded():
  assert (CONFIG.max_terms, CONFIG.num_carried, CONFIG.num_tried, CONFIG.num_exchanged, CONFIG.num_steps,
          CONFIG.least_gained, CONFIG.least_new) == (6, 8, 5, 4, 6, 3.0, 1e-6)
  rng = np.random.default_rng(3)
  columns = np.column_stack([np.ones(120), rng.uniform(0.5, 2, (120, 30))])
  target = np.sin(3 * columns[:, 1]) * columns[:, 2] + 0.1 * rng.normal(size=120)
  asked = []

  class Counting(Pursuit):
    def _extended(self, some, most):
      found = super()._extended(some, most)
      asked.append((len(some), most, len(found)))
      return found
  found = Counting(columns, target, np.ones(120), CONFIG).by_size()
  assert len(found) <= 6 and all(num <= 8 for num, _, _ in asked)
  assert {most for _, most, _ in asked[::2]} == {24} and {most for _, most, _ in asked[1::2]} == {16}
  assert all(made <= most for _, most, made in asked) and asked[0][2] == 24
  assert all(len(some) <= 16 for some in found[-1:]) and len(found[0]) >= 16


def test_a_fit_ends_where_a_step_gains_less_than_a_ten_thousandth():
  rng = np.random.default_rng(3)
  columns = np.column_stack([np.ones(120), rng.uniform(0.5, 2, (120, 3))])
  target = columns[:, 1] / (1 + columns[:, 2]) + 0.1 * rng.normal(size=120)
  steps = []

  class Counting(Pursuit):
    def _at(self, above, below, coefficients) -> Terms:
      steps.append(coefficients)
      return super()._at(above, below, coefficients)
  pursuit = Counting(columns, target, np.ones(120), CONFIG)
  found = pursuit._fitted((1,), (2,), np.array([1.0, 0.0]))
  assert 3 <= len(steps) <= 7
  steps.clear()
  Counting(columns, target, np.ones(120), FractionPursuitConfig(num_steps=50))._fitted((1,), (2,), np.array([1.0, 0.0]))
  assert len(steps) <= 8
  longer = Pursuit(columns, target, np.ones(120), FractionPursuitConfig(num_steps=100))._fitted(
    (1,), (2,), np.array([1.0, 0.0]))
  assert longer.error <= found.error <= longer.error * 1.001


@pytest.mark.parametrize(("error", "whole", "half", "is_seen"), [
  (1.01e-3, 0.1, 1.6e-3, True), (0.99e-3, 0.1, 0.99e-3, False), (0.099, 0.1, 0.158, True), (0.101, 0.1, 0.101, False),
  (0.01, 0.1, 0.0161, False), (0.01, 0.1, 0.0159, True), (0.01, 0.1, 0.0076, True), (0.01, 0.1, 0.0074, False),
  (0.01, 0.74, 0.01, True), (0.01, 0.76, 0.01, False)])
def test_which_errors_are_those_of_y(error, whole, half, is_seen, monkeypatch):
  """In standard deviations of y: the median, the root mean square, the median by half of the rows."""
  x = x_of(300, 2)
  rows = Rows(x, 70 * x[:, 0], np.ones(300))
  size = float(np.std(rows.sample(224, seed=0).y))
  monkeypatch.setattr(learning_curves, "_errors", lambda x, y, config: (
    size * (error if len(x) == 224 else half), size * whole))
  assert learning_curves.has_errors(rows, range(2)) is is_seen


def test_the_logarithm_of_y_may_be_smooth_beyond_three_standard_deviations_of_its_errors(monkeypatch):
  asked = []
  monkeypatch.setattr(learning_curves.gaussian_process, "likeliest", lambda x, y, config, bend: asked.append(
    (len(y), config, bend)) or SimpleNamespace(errors=lambda: 0.01 * y))
  x = x_of(300, 2)
  learning_curves.has_errors(Rows(x, x[:, 0], np.ones(300)), range(2))
  assert asked == [(num, CURVE.surrogate, 3.0) for num in (224, 112, 112)]
  assert (CURVE.surrogate.num_steps, CURVE.surrogate.start_sizes) == (25, (3.0, 1.0, 0.03))


@pytest.mark.parametrize(("num_rows", "num_columns", "is_seen"), [(60, 2, True), (59, 2, False), (80, 9, True),
                                                                  (80, 10, False)])
def test_how_many_rows_and_columns_tell(num_rows, num_columns, is_seen, monkeypatch):
  monkeypatch.setattr(learning_curves, "_errors", lambda x, y, config: (0.01, 0.1))
  x = x_of(num_rows, num_columns)
  assert learning_curves.has_errors(Rows(x, x[:, 0], np.ones(num_rows)), range(num_columns)) is is_seen


def test_both_halves_are_looked_at(monkeypatch):
  errors = iter([0.01, 0.03, 0.001])
  monkeypatch.setattr(learning_curves, "_errors", lambda x, y, config: (next(errors), 0.1))
  x = x_of(100, 2)
  assert learning_curves.has_errors(Rows(x, x[:, 0], np.ones(100)), range(2))
