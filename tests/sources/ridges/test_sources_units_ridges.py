"""Parts of ridges by themselves: outer functions, their grids, gains against least squares, what stands beside."""

import dataclasses
import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.engine.config import DEFAULT, RidgeGrids, SumSizes
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.rules import Restrictions
from symformer_jax.sources.ridges import ridge_functions, ridge_gains, ridges
from symformer_jax.sources.ridges.ridge_functions import OUTER, WAVE
from symformer_jax.sources.ridges.ridge_gains import Settings
from symformer_jax.sources.sums import terms

NAMES = ("x", "z", "w")
GRIDS = RidgeGrids(
  away=(0.1, 0.4), centres=(0.2, 0.9), widths=(0.1, 0.5), rates=(0.5, 3.0), logarithm_factors=(0.5, 2.0),
  logarithm_offsets=(1.2, 3.0), occupancy_factors=(1.0, 4.0), occupancy_offsets=(0.05, 0.7), arcsine_ends=(0.5, 0.9),
  tangent_ends=(0.6, 1.3))
DEFINED_AS = {
  WAVE: np.sin, "exp": np.exp, "ln": np.log, "sqrt": np.sqrt, "inv": lambda t: 1 / t, "inv_pow2": lambda t: t**-2.0,
  "inv_sqrt": lambda t: t**-0.5, "inv_ln": lambda t: 1 / np.log(t), "occupancy": lambda t: 1 / (np.exp(t) - 1),
  "logistic": lambda t: 1 / (1 + np.exp(-t)), "atan": np.arctan, "gauss": lambda t: np.exp(-(t**2)),
  "lorentz": lambda t: 1 / (1 + t**2), "asin": np.arcsin, "tan": np.tan}


def parse(text):
  return parser.parse(text, NAMES)


# --- outer functions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OUTER)
def test_an_outer_function_is_its_formula_and_its_definition(name):
  t = np.array([0.2, 0.35, 0.8])
  outer = OUTER[name]
  np.testing.assert_allclose(np.asarray(outer.values(jnp.asarray(t, jnp.float32))), DEFINED_AS[name](t), rtol=1e-5)
  node = outer.build(expression.variable(0))
  np.testing.assert_allclose(expression.evaluate(node, t[:, None]), DEFINED_AS[name](t), rtol=1e-12)
  assert outer.tokens == {part.token for part in expression.walk(node) if part.args}


@pytest.mark.parametrize("name", OUTER)
def test_constants_that_a_factor_and_a_summand_outside_make_up_for_are_none(name):
  t = np.linspace(0.1, 0.7, 40)
  outer, f = OUTER[name], DEFINED_AS[name]

  def is_made_up_for(other):
    left = np.linalg.lstsq(np.column_stack([f(t), np.ones(40)]), other)[1]
    return bool(left[0] < 1e-20)
  assert outer.has_scale == (not is_made_up_for(f(1.3 * t)))
  assert outer.has_offset == (not is_made_up_for(f(t + 0.1)))
  if name != WAVE:
    sums = np.linspace(0, 1, 40)
    own, mirrored = ([f(p * s + q) for p, q in outer.affine(dataclasses.replace(GRIDS, centres=(0.2, 0.8)))]
                     for s in (sums, 1 - sums))
    is_mirrored = all(any(np.linalg.lstsq(np.column_stack([one, np.ones(40)]), other)[1][0] < 1e-12 for one in own)
                      for other in mirrored)
    assert outer.is_one_sided == (not is_mirrored)


def test_grids_of_inner_constants_are_counted_in_ranges():
  affine = {name: set(outer.affine(GRIDS)) for name, outer in OUTER.items()}
  assert affine[WAVE] == set() and affine["exp"] == {(0.5, 0.0), (3.0, 0.0)}
  for name in ("ln", "sqrt", "inv", "inv_pow2", "inv_sqrt"):  # 0 lies so far before the sum
    assert affine[name] == {(1.0, 0.1), (1.0, 0.4)}
  assert affine["inv_ln"] == {(0.5, 1.2), (0.5, 3.0), (2.0, 1.2), (2.0, 3.0)}
  assert affine["occupancy"] == {(1.0, 0.05), (1.0, 0.7), (4.0, 0.05), (4.0, 0.7)}
  for name in ("logistic", "atan", "gauss", "lorentz"):  # 0 at the centre, 1 a width beyond
    assert sorted((-q / p, (1 - q) / p + q / p) for p, q in affine[name]) == [
      pytest.approx(each) for each in itertools.product((0.2, 0.9), (0.1, 0.5))]
  for name, ends in (("asin", (0.5, 0.9)), ("tan", (0.6, 1.3))):
    assert {(q, p + q) for p, q in affine[name]} == {(-end, end) for end in ends}


def test_phases_are_an_eighth_of_a_wave_and_quarters():
  quarter = np.pi / 2
  np.testing.assert_allclose(ridge_functions.phases(1, 4), quarter * np.array([[0.5], [1], [2], [3]]))
  found = {tuple(np.round(each / quarter, 6)) for each in ridge_functions.phases(3, 2)}
  assert found == set(itertools.product((0.5, 1), (0.5, 1, -0.5, -1), (0.5, 1, -0.5, -1)))
  assert len(ridge_functions.phases(3, 2)) == 32


def test_directions_are_evenly_spread():
  assert ridge_functions.directions(1, 9).tolist() == [[1], [-1]]
  circle = ridge_functions.directions(2, 12)
  angles = np.sort(np.arctan2(*circle.T[::-1]))
  np.testing.assert_allclose(np.diff(angles), np.pi / 6)
  assert np.min(np.abs(circle)) > 0.2  # none is of one argument alone
  sphere = ridge_functions.directions(3, 64)
  assert len(sphere) == 64
  np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 1)
  np.testing.assert_allclose(sphere[32:], -sphere[:32])
  # By its definition: evenly in height, each the golden section of a turn from the one before.
  heights = sphere[:32, 2]
  np.testing.assert_allclose(heights, 1 - (np.arange(32) + 0.5) / 32)
  turns = np.unwrap(np.arctan2(*sphere[:32, :2].T[::-1])) / (2 * np.pi)
  np.testing.assert_allclose(np.diff(turns) % 1, (np.sqrt(5) - 1) / 2, atol=1e-9)


def test_ridges_are_written_without_constants_that_are_1_or_made_up_for(rng):
  x = rng.uniform(0.5, 1, (9, 2))
  v, w = expression.variable(0), expression.variable(1)

  def values(name, factors, offset):
    return expression.evaluate(ridge_functions.ridge_of(OUTER[name], [v, w], np.array(factors), offset), x)
  np.testing.assert_allclose(values("ln", [2.0, -4.0], 8.0), np.log(x @ [0.5, -1] + 2))
  np.testing.assert_allclose(values("atan", [2.0, -4.0], 8.0), np.arctan(x @ [2, -4] + 8))
  np.testing.assert_allclose(values("exp", [2.0, -4.0], 8.0), np.exp(x @ [2, -4]))
  node = ridge_functions.ridge_of(OUTER["sqrt"], [v, w], np.array([3.0, -3.0]), 6.0)
  numbers = [part.value for part in expression.walk(node) if part.is_number]
  assert numbers == [2.0] and expression.complexity(node) == expression.complexity(parse("sqrt(x - z + 2)"))
  assert expression.complexity(ridge_functions.ridge_of(OUTER["inv"], [v, w], np.array([5.0, 5.0]), 6.0)) == (
    expression.complexity(parse("1/(x + z + 1.2)")))


# --- gains -----------------------------------------------------------------------------------------------------------

NUM = 24


def settings_of(rng, num_amplitudes, num_beside):
  """Amplitudes, orthonormal rows beside them, and what these leave of a y of length 1."""
  root = np.sqrt(rng.uniform(0.5, 2, NUM) / NUM)
  amplitudes = rng.uniform(0.2, 1, (num_amplitudes, NUM)) * root
  y = rng.normal(size=NUM)
  y /= np.linalg.norm(y)
  bases, residuals = [], []
  for amplitude in amplitudes:
    basis = np.linalg.qr(np.column_stack([root, amplitude, rng.normal(size=(NUM, num_beside - 2))]))[0].T
    bases.append(np.concatenate([basis, np.zeros((1, NUM))]))  # as where there are fewer
    residuals.append(y - basis.T @ (basis @ y))
  return Settings(*(np.array(array, np.float32) for array in (amplitudes, bases, residuals)))


def gain_by_least_squares(columns, setting, a):
  """What columns [N, C], times the amplitude, take from the square of the residual."""
  columns = columns / np.max(np.abs(columns), axis=0)
  design = np.column_stack([setting.bases[a].T, setting.amplitudes[a][:, None] * columns]).astype(np.float64)
  residual = setting.residuals[a].astype(np.float64)
  left = residual - design @ np.linalg.lstsq(design, residual, rcond=1e-7)[0]
  return residual @ residual - left @ left


def test_what_a_column_adds_is_what_least_squares_says(rng):
  setting = settings_of(rng, 2, 4)
  values = rng.normal(size=(5, NUM))
  values[1] *= 1e15
  values[2] *= 1e-15
  values[3, 4] = np.inf
  values[4] = 0.7  # the amplitude itself, which stands beside it
  found = np.asarray(jax.jit(ridge_gains._gain)(values.astype(np.float32), setting))
  for a in range(2):
    for g in range(3):
      assert found[a, g] == pytest.approx(gain_by_least_squares(values[g][:, None], setting, a), rel=1e-3, abs=1e-5)
    assert found[a, 3] == found[a, 4] == 0
  waves = rng.uniform(0, 9, (3, NUM))
  waves[2] = 0.5  # both its columns are the amplitude
  found = np.asarray(jax.jit(ridge_gains._gain_of_waves)(
    np.sin(waves).astype(np.float32), np.cos(waves).astype(np.float32), setting))
  for a in range(2):
    for g in range(2):
      both = np.column_stack([np.sin(waves[g]), np.cos(waves[g])])
      assert found[a, g] == pytest.approx(gain_by_least_squares(both, setting, a), rel=1e-3, abs=1e-5)
    assert found[a, 2] == 0


@pytest.mark.parametrize(("share", "is_own"), [(1.4, True), (0.7, False)])
def test_a_column_that_others_make_up_but_for_a_small_share_is_theirs(share, is_own):
  """By squares; the smallest share is what single precision can tell."""
  share *= ridge_gains.INDEPENDENT
  eye = np.eye(NUM, dtype=np.float32)
  ones = np.ones((1, NUM), np.float32)
  setting = Settings(ones, eye[None, :1], eye[1:2] + eye[2:3])
  column = np.sqrt(1 - share) * eye[0] + np.sqrt(share) * eye[1]
  found = float(jax.jit(ridge_gains._gain)(column[None], setting)[0, 0])
  assert found == pytest.approx(1.0 if is_own else 0.0, rel=1e-3)
  # Of a pair the share is that of the parallelogram.
  other = 3 * eye[2]
  found = float(jax.jit(ridge_gains._gain_of_waves)(column[None], other[None], setting)[0, 0])
  assert found == pytest.approx(2.0 if is_own else 0.0, rel=1e-3)


@pytest.mark.parametrize("name", [name for name in OUTER if name != WAVE])
def test_a_place_in_a_grid_is_its_inner_constants_and_direction(name, rng):
  units = rng.uniform(0, 1, (2, 9))
  grid = {"num_directions": 6, "num_phases": 4}
  sums = ridge_functions.directions(2, 6) @ units
  sums = (sums - sums.min(axis=1, keepdims=True)) / np.ptp(sums, axis=1)[:, None]
  values = np.asarray(ridge_gains._values(OUTER[name], jnp.asarray(sums, jnp.float32), GRIDS))
  sums = sums if OUTER[name].is_one_sided else sums[:3]
  assert ridge_gains._row_length(name, 2, **grid) == len(sums)
  expected = [p * each + q for p, q in OUTER[name].affine(GRIDS) for each in sums]
  for place, t in enumerate(expected):
    factors, offset = ridge_gains.grid(name, place, units, grids=GRIDS, **grid)
    np.testing.assert_allclose(factors @ units + offset, t, atol=1e-9)
    f = DEFINED_AS[name](t)
    is_defined = np.isfinite(f) & (np.abs(f) < 1e3)
    np.testing.assert_allclose(values[place][is_defined], f[is_defined], rtol=1e-2, atol=1e-3)
  assert len(values) == len(expected)
  with np.errstate(all="raise"):  # arguments that make one number are no reason to fail
    factors, offset = ridge_gains.grid(name, 0, np.array([[0.0, 0.0], [0.0, 0.0]]), grids=GRIDS, **grid)
  assert np.isfinite(offset)


def test_a_place_in_the_grid_of_waves_is_its_phases():
  phases = ridge_functions.phases(2, 3)
  for place in (0, 5, len(phases) - 1):
    factors, offset = ridge_gains.grid(WAVE, place, np.zeros((2, 4)), num_phases=3, num_directions=8)
    assert factors.tolist() == phases[place].tolist() and offset == 0
  assert ridge_gains._row_length(WAVE, 2, num_phases=3, num_directions=8) == len(phases) / 3


def test_the_best_of_each_row_of_the_grid_is_reported_for_every_sum_setting_and_amplitude(rng):
  arguments = rng.uniform(0, 1, (ridge_gains.CHUNK + 1, 2, NUM)).astype(np.float32)
  settings = settings_of(rng, 2, 3), settings_of(rng, 2, 3)
  grid = {"num_phases": 3, "num_directions": 4}
  gains, places = ridge_gains.best_of_all(arguments, settings, grids=GRIDS, num_starts=2, **grid)
  for name, (t, s, a) in itertools.product(OUTER, [(0, 0, 1), (len(arguments) - 1, 1, 0)]):
    assert gains[name].shape == places[name].shape == (len(arguments), 2, 2, min(2, 3 if name == WAVE else len(
      OUTER[name].affine(GRIDS))))
    length = ridge_gains._row_length(name, 2, **grid)
    num_places = len(ridge_functions.phases(2, 3)) if name == WAVE else length * len(OUTER[name].affine(GRIDS))
    every = []
    for place in range(num_places):
      factors, offset = ridge_gains.grid(name, place, arguments[t].astype(np.float64), grids=GRIDS, **grid)
      inner = factors @ arguments[t] + offset
      columns = [np.sin(inner), np.cos(inner)] if name == WAVE else [DEFINED_AS[name](inner)]
      every.append(gain_by_least_squares(np.stack(columns, axis=1), settings[s], a))
    rows = np.max(np.reshape(every, (-1, length)), axis=1)
    np.testing.assert_allclose(gains[name][t, s, a], np.sort(rows)[::-1][:2], rtol=0.02, atol=1e-3)
    np.testing.assert_allclose([every[place] for place in places[name][t, s, a]], gains[name][t, s, a], rtol=0.02,
                               atol=1e-3)


def test_any_number_of_sums_is_looked_at_in_parts_of_one_size(rng, monkeypatch):
  """One size is one program."""
  sizes = set()

  def best_ridges(arguments, setting, **grid):
    sizes.add(len(arguments))
    nothing = np.zeros((len(arguments), 1, 3), int)
    return dict.fromkeys(OUTER, nothing), dict.fromkeys(OUTER, nothing)
  monkeypatch.setattr(ridge_gains, "best_ridges", best_ridges)
  for num in (1, ridge_gains.CHUNK, ridge_gains.CHUNK + 1, 2 * ridge_gains.CHUNK - 1):
    gains, _ = ridge_gains.best_of_all(rng.uniform(size=(num, 2, NUM)), (None,), num_phases=3, num_directions=4)
    assert {len(each) for each in gains.values()} == {num}
  assert len(sizes) == 1


# --- fits ------------------------------------------------------------------------------------------------------------

# Factors of two arguments and an offset, within the domain of each function.
TRUTHS = {WAVE: (3.0, -2.0, 0.4), "exp": (1.5, -0.8, 0.0), "ln": (2.0, 1.0, 0.3), "sqrt": (1.0, 2.0, 0.2),
          "inv": (1.0, 0.7, 0.4), "inv_pow2": (1.0, 0.5, 0.6), "inv_sqrt": (1.0, 0.7, 0.2), "inv_ln": (1.0, 0.5, 1.6),
          "occupancy": (1.5, 0.8, 0.4), "logistic": (4.0, -3.0, 0.5), "atan": (3.0, -2.0, -0.5),
          "gauss": (2.0, 1.5, -1.5), "lorentz": (2.5, 2.0, -2.0), "asin": (0.7, -0.5, 0.1), "tan": (1.0, -0.8, 0.1)}
STEPS = 12


@pytest.fixture(scope="module")
def fitted():
  """For each function a start near its law, one that is undefined and one far away, after few steps."""
  rng = np.random.default_rng(0)
  arguments = rng.uniform(0, 1, (2, NUM))
  root = np.sqrt(rng.uniform(0.5, 2, NUM) / NUM)
  amplitude = rng.uniform(0.5, 1, NUM) * root
  basis = np.concatenate([np.linalg.qr(np.column_stack([root, amplitude]))[0].T, np.zeros((1, NUM))])
  laws = []
  for name, (*factors, offset) in TRUTHS.items():
    y = amplitude * DEFINED_AS[name](np.array(factors) @ arguments + offset)
    y = y - basis.T @ (basis @ y)
    laws.append(y / np.linalg.norm(y))
  num = len(OUTER)
  # Two settings: the second has the laws of the last functions.
  every = Settings(*(np.array(each, np.float32) for each in ([amplitude] * num, [basis] * num, laws)))
  settings = tuple(Settings(*(array[some] for array in every)) for some in (slice(0, 9), slice(9, None)))
  starts = ridge_gains.Starts(
    np.zeros((num, 3, 3, NUM), np.float32), np.tile(np.arange(num, dtype=np.int32)[:, None], 3),
    np.zeros((num, 3, 3), np.float32), np.zeros((num, 3), np.float32))
  starts.arguments[:, :, :2] = arguments
  for f, name in enumerate(OUTER):
    *factors, offset = TRUTHS[name]
    starts.factors[f, :, :2] = np.array(factors) * 1.1
    is_undefined = name in ("ln", "sqrt", "inv_sqrt", "inv_ln")
    starts.offset[f] = offset + 0.03 + np.array([0, -(1 + offset) * is_undefined, 0])
    starts.factors[f, 2, :2] = np.array(factors) * (0.4, 0.3)
  found = jax.tree.map(np.asarray, ridge_gains.fit_ridges(starts, settings, num_steps=STEPS))
  return starts, every, found


@pytest.mark.parametrize("name", OUTER)
def test_a_fit_ends_at_the_law_that_is_near(name, fitted):
  starts, every, (factors, offsets, left) = fitted
  f = list(OUTER).index(name)
  assert left[f, 0] < 1e-8
  t = factors[f, 0] @ starts.arguments[f, 0].astype(np.float64) + offsets[f, 0]
  columns = [np.sin(t), np.cos(t)] if name == WAVE else [DEFINED_AS[name](t)]
  explained = gain_by_least_squares(np.stack(columns, axis=1), every, f)
  assert explained == pytest.approx(1, abs=1e-6)
  # What is undefined stays where it is, and promises nothing.
  assert np.isinf(left[f, 1]) == (name in ("ln", "sqrt", "inv_sqrt", "inv_ln"))
  if np.isinf(left[f, 1]):
    np.testing.assert_array_equal(factors[f, 1], starts.factors[f, 1])
    np.testing.assert_array_equal(offsets[f, 1], starts.offset[f, 1])
  # Of a start far away is left no more than at the start, and no less than least squares leaves.
  rest = []
  for inner in ((factors[f, 2], offsets[f, 2]), (starts.factors[f, 2], starts.offset[f, 2])):
    t = inner[0] @ starts.arguments[f, 2].astype(np.float64) + inner[1]
    columns = [np.sin(t), np.cos(t)] if name == WAVE else [DEFINED_AS[name](t)]
    rest.append(1 - gain_by_least_squares(np.stack(columns, axis=1), every, f))
  assert rest[0] - 1e-4 < left[f, 2] < 0.9 * rest[1]


@pytest.mark.parametrize(("share", "is_own"), [(0.7, False), (1.5, True)])
def test_a_vector_that_another_makes_up_but_for_a_millionth_is_none(share, is_own):
  one, other = np.eye(2).repeat(16, axis=1)
  found = ridges._orthonormal([one, one + 1e-6 * share * other, other], 3)
  np.testing.assert_allclose(found[0], one / 4)
  np.testing.assert_allclose(found[1], other / 4 if is_own else 0 * other, atol=1e-9)
  np.testing.assert_allclose(found[2], 0 * other if is_own else other / 4, atol=1e-9)


# --- spaces ----------------------------------------------------------------------------------------------------------

CONFIG = dataclasses.replace(
  DEFAULT.ridges, num_rows=20, max_amplitudes=4, num_seeds=2, max_beside=3, argument_exponents=((1,), (2,)),
  amplitude_exponents=((1,), (1, 1)), sums=(SumSizes(2, 3, 2), SumSizes(4, 3, 4), SumSizes(2, 3, 8)), num_fitted=5,
  starts_per_sum=1)


def space_of(rng, *, num=16, seeds=(), y=None, **changes):
  x, weights = rng.uniform(1, 3, (num, 2)), rng.uniform(0.2, 2, num)
  y = 7 + 5 * rng.normal(size=num) if y is None else y
  rows = Rows(x, y, weights)
  return ridges._Space(rows, (0, 1), seeds, dataclasses.replace(CONFIG, **changes)), rows


def test_a_target_that_hardly_varies_is_searched_all_the_same(rng):
  space, _ = space_of(rng, y=1 + 1e-7 * rng.normal(size=16))
  assert space.can_gain


def test_settings_have_what_stands_beside_and_what_that_leaves_of_y(rng):
  seed = [parse("sin(x)"), parse("x*z")]
  space, rows = space_of(rng, seeds=[seed])
  assert space._amplitudes == [(), ((0, 1),), ((1, 1),), ((0, 1), (1, 1))]
  root = np.sqrt(rows.weights / rows.weights.sum())
  y = rows.y - np.average(rows.y, weights=rows.weights)
  y = root * y / np.linalg.norm(root * y)
  amplitudes = np.stack([np.ones(16), *rows.x.T, rows.x.prod(axis=1)])
  amplitudes = amplitudes / amplitudes.max(axis=1, keepdims=True)
  assert len(space._settings) == 2 and len(space._padded_settings()) == 3
  for setting, beside in zip(space._settings, (list(rows.x.T), [np.sin(rows.x[:, 0]), rows.x.prod(axis=1)]),
                             strict=True):
    assert setting.amplitudes.shape == (4, 20) and setting.bases.shape == (4, 5, 20)
    assert all(array.dtype == np.float32 for array in setting)
    for array in setting:
      assert not array[..., 16:].any()  # rows that there are not
    for a, amplitude in enumerate(amplitudes):
      np.testing.assert_allclose(setting.amplitudes[a, :16], root * amplitude, rtol=1e-5)
      columns = root[:, None] * np.column_stack([np.ones(16), amplitude, *beside])
      basis = setting.bases[a, :, :16].astype(np.float64)
      np.testing.assert_allclose(basis.T @ (basis @ columns), columns, atol=1e-5)
      assert np.linalg.matrix_rank(basis, tol=1e-3) == np.linalg.matrix_rank(columns, tol=1e-6)
      np.testing.assert_allclose(setting.residuals[a, :16], y - basis.T @ (basis @ y), atol=1e-5)
  for mine, other in zip(space._padded_settings()[2], space._settings[0], strict=True):
    np.testing.assert_array_equal(mine, other)


def test_arguments_run_from_0_to_1_and_rows_that_are_added_repeat_the_last(rng):
  space, rows = space_of(rng)
  assert space.arguments == [((0, 1),), ((1, 1),), ((0, 2),), ((1, 2),)] and space._units.shape == (4, 20)
  values = np.concatenate([rows.x.T, rows.x.T**2])
  units = (values - values.min(axis=1, keepdims=True)) / np.ptp(values, axis=1)[:, None]
  np.testing.assert_allclose(space._units[:, :16], units, atol=1e-6)
  np.testing.assert_array_equal(space._units[:, 16:], np.repeat(space._units[:, 15:16], 4, axis=1))


def test_monomials_that_are_undefined_on_a_row_are_left_out(rng):
  x = rng.uniform(1, 3, (16, 2))
  x[3, 0] = 0.0
  config = dataclasses.replace(CONFIG, argument_exponents=((-1,), (0.5,), (1,)), amplitude_exponents=((-1,),))
  space = ridges._Space(Rows(x, rng.normal(size=16), np.ones(16)), (0, 1), (), config)
  assert space.arguments == [((1, -1),), ((0, 0.5),), ((1, 0.5),), ((0, 1),), ((1, 1),)]


def test_a_column_of_zeros_is_no_argument(rng):
  x = rng.uniform(1, 3, (16, 2)) * [0, 1]
  space = ridges._Space(Rows(x, rng.normal(size=16), np.ones(16)), (0, 1), (), CONFIG)
  assert space.arguments == [((1, 1),), ((1, 2),)]


def test_nothing_can_be_gained_of_what_is_explained_or_without_arguments(rng):
  x = rng.uniform(1, 3, (16, 2))
  for y, can_gain in ((rng.normal(size=16), True), (np.full(16, 3.0), False)):
    assert ridges._Space(Rows(x, y, np.ones(16)), (0, 1), (), CONFIG).can_gain == can_gain
  assert not ridges._Space(Rows(np.ones((16, 2)), y, np.ones(16)), (0, 1), (), CONFIG).can_gain


def test_what_is_found_goes_on_by_what_it_leaves(rng, monkeypatch):
  """Of gains made up the best few of each function, their settings and amplitudes those that there are."""
  space, _ = space_of(rng, seeds=[[parse("sin(x)")]], argument_exponents=((1,), (2,), (3,)))
  explained = np.array([1 - np.sum(each.residuals**2, axis=1) for each in space._settings])  # [S, A]
  asked = []

  def best_of_all(arguments, settings, *, num_phases, num_directions, grids, num_starts):
    asked.append((len(arguments), arguments.shape[1], num_phases, num_directions))
    assert grids == CONFIG.grids and num_starts == 1 and len(settings) == 2
    shape = (len(arguments), 2, 4, 1)
    gains = 0.3 * np.random.default_rng(len(asked)).random(shape) * (1 - explained[None, :, :, None])
    gains[0, 1, 2] = 0  # what is not defined
    return (dict.fromkeys(OUTER, gains), {name: np.full(shape, 2) for name in OUTER})
  monkeypatch.setattr(ridge_gains, "best_of_all", best_of_all)
  found = space.found()
  assert asked == [(2, 1, 3, 2), (4, 2, 3, 4)]  # of three variables there are no two
  expected = []
  for k, sums in enumerate([[(0,), (1,)], [(0, 1), (0, 2), (0, 3), (1, 2)]], start=1):
    gains = 0.3 * np.random.default_rng(k).random((len(sums), 2, 4, 1)) * (1 - explained[None, :, :, None])
    gains[0, 1, 2] = 0
    expected += [(1 - explained[s, a] - gains[t, s, a, 0], each, s, a) for t, each in enumerate(sums)
                 for s in range(2) for a in range(4) if gains[t, s, a, 0] > 0]
  expected = sorted(expected)[:5]
  for name in OUTER:
    assert [(pytest.approx(ridge.left), ridge.arguments, ridge.beside, ridge.amplitude) for ridge in found[name]] == (
      expected)
    for ridge in found[name]:
      factors, offset = ridge_gains.grid(
        name, 2, space._units[list(ridge.arguments)], num_phases=3, num_directions=(2, 4)[len(ridge.arguments) - 1],
        grids=CONFIG.grids)
      assert ridge.name == name and ridge.factors.tolist() == factors.tolist() and ridge.offset == offset


def test_sums_of_three_are_of_variables(rng, monkeypatch):
  asked = []
  monkeypatch.setattr(ridge_gains, "best_of_all", lambda arguments, *_, **__: asked.append(len(arguments)) or (
    {name: np.zeros((len(arguments), 1, 4, 1)) for name in OUTER}, {name: np.zeros((len(arguments), 1, 4, 1), int)
                                                                    for name in OUTER}))
  x = rng.uniform(1, 3, (16, 4))
  sums = (SumSizes(99, 3, 2), SumSizes(99, 3, 4), SumSizes(99, 3, 8))
  config = dataclasses.replace(CONFIG, sums=sums, argument_exponents=((2,), (1,)), max_amplitudes=4)
  space = ridges._Space(Rows(x, rng.normal(size=16), np.ones(16)), range(4), (), config)
  assert all(some == [] for some in space.found().values()) and asked == [8, 28, 4]


def test_starts_are_those_that_were_found_and_what_is_undefined_goes(rng, monkeypatch):
  space, _ = space_of(rng, seeds=[[parse("sin(x)")]], num_fitted=2)
  some = {name: [] for name in OUTER}
  some["exp"] = [ridges.Ridge(0.5, "exp", (2, 0), np.array([1.5, 2.5]), 0.25, 3, 1),
                 ridges.Ridge(0.6, "exp", (1,), np.array([3.5]), 0.75, 1, 0)]
  f, seen = list(OUTER).index("exp"), []

  def fit_ridges(starts, settings, *, num_steps):
    seen.append(starts)
    assert num_steps == CONFIG.num_steps and len(settings) == 3
    shape = (len(OUTER), 2)
    left = np.full(shape, 0.125)
    left[f, 1] = np.inf
    return np.full((*shape, 3), 9.0), np.full(shape, 8.0), left
  monkeypatch.setattr(ridge_gains, "fit_ridges", fit_ridges)
  fitted = space.fitted(some)
  [starts] = seen
  np.testing.assert_array_equal(starts.arguments[f, 0], [space._units[2], space._units[0], np.zeros(20)])
  assert starts.setting[f].tolist() == [1 * 4 + 3, 1] and starts.factors[f].tolist() == [[1.5, 2.5, 0], [3.5, 0, 0]]
  assert starts.offset[f].tolist() == [0.25, 0.75] and starts.arguments.shape == (len(OUTER), 2, 3, 20)
  assert starts.arguments.dtype == starts.factors.dtype == starts.offset.dtype == np.float32
  assert [len(each) for each in fitted] == [1 if name == "exp" else 0 for name in OUTER]
  [ridge] = fitted[f]
  assert (ridge.left, ridge.factors.tolist(), ridge.offset, ridge.arguments) == (0.125, [9, 9], 8, (2, 0))


@pytest.mark.parametrize(("amplitude", "beside", "terms_beside"), [
  (0, 0, [(), ("x", "z")]), (1, 0, [("x",), ("x", "z")]), (2, 1, [("sin(x)",), ("z", "sin(x)")]),
  (0, 1, [("sin(x)",)])])
def test_ridges_are_written_with_what_stands_beside_them(amplitude, beside, terms_beside, rng):
  space, rows = space_of(rng, seeds=[[parse("sin(x)")]])
  ridge = ridges.Ridge(0.1, "exp", (2, 1), np.array([-1.2, 0.7]), 0.0, amplitude, beside)
  found = list(space.written(ridge))
  inner = -1.2 * space._units[2, :16] + 0.7 * space._units[1, :16].astype(np.float64)
  column = np.exp(inner) * [np.ones(16), *rows.x.T][amplitude]
  assert len(found) == len(terms_beside)
  for node, texts in zip(found, terms_beside, strict=True):
    design = np.column_stack([column, *(expression.evaluate(parse(text), rows.x) for text in texts)])
    factors = terms.least_squares(design, rows.y, rows.weights)
    np.testing.assert_allclose(expression.evaluate(node, rows.x), design @ factors[:-1] + factors[-1], rtol=1e-4)
  assert not list(space.written(ridge._replace(factors=np.zeros(2))))
  assert not list(space.written(ridge._replace(factors=np.array([np.nan, 1]))))
  # Undefined on a row: nothing.
  assert not list(space.written(ridge._replace(name="ln", offset=0.5)))


def test_seeds_are_the_terms_of_formulas_that_describe_the_data_best():
  texts = (("2.5*x + 1.5*z", 1e-3), ("3.5*x + 0.5*z", 2e-3), ("x + z + w + x*z", 1e-9), ("sin(x)*2.5 + 7.5", 1e-4),
           ("x*z*w*x*z*w*x*z*w*x*z*w*x", 1e-9), ("x", 10.0), ("z", 11.0))
  candidates = [SimpleNamespace(node=parse(text), mse=mse) for text, mse in texts]
  question = SimpleNamespace(task=SimpleNamespace(fit_rows=range(20)), pool=SimpleNamespace(
    in_order=lambda: candidates))
  config = dataclasses.replace(DEFAULT.ridges, num_seeds=3, max_beside=3, nats_per_node=1.0)
  for num_rows in (20, 1):
    question.task.fit_rows = range(num_rows)
    costs = {i: num_rows / 2 * np.log(mse) + expression.complexity(parse(text)) for i, (text, mse) in enumerate(texts)}
    kinds = [i for i in sorted(costs, key=costs.get) if i in (0, 3, 5, 6)]  # 1 has the form of 0, 2 and 4 are too long
    assert ridges._seeds(question, config) == [
      [part for part in expression.flatten(candidates[i].node, "+") if not part.is_number] for i in kinds[:3]]
  assert len(ridges._seeds(question, dataclasses.replace(config, num_seeds=1))) == 1
  longest = max(expression.complexity(candidate.node) for candidate in candidates)
  for most, is_in in ((longest, True), (longest - 1, False)):
    seeds = ridges._seeds(question, dataclasses.replace(config, max_seed_nodes=most, num_seeds=9))
    assert any(len(seed) == 1 and expression.complexity(seed[0]) == longest for seed in seeds) == is_in


def test_turns_ask_for_y_and_for_its_functions(rng, monkeypatch):
  x = rng.uniform(1, 3, (40, 2))
  config = dataclasses.replace(DEFAULT, ridges=dataclasses.replace(DEFAULT.ridges, turns=(3, 2)))
  source, asked = ridges.Ridges(config), []
  assert source.turns == (3, 2)
  monkeypatch.setattr(ridges, "_seeds", lambda question, config: ["seed"])
  made = [parse(text) for text in ("x", "x*z", "x + z", "x*z*x")]
  monkeypatch.setattr(ridges, "_written", lambda link, rows, columns, seeds, config: asked.append(
    (link, seeds)) or iter(made))
  for y, turn, names in ((x[:, 0], 0, ["y"]), (x[:, 0], 1, ["inv", "exp", "sqrt"]), (-x[:, 0], 1, ["inv"])):
    task = make_task((x, y), ("x", "z"), SearchOptions())
    nodes = source._nodes(SimpleNamespace(task=task, pool=None), turn, 3)
    assert [link for link, _ in asked] == [ridges.LINKS[name] for name in names]
    assert all(seeds == (["seed"] if turn == 0 else []) for _, seeds in asked) and len(nodes) == 3
    asked.clear()


def test_sums_for_a_function_of_y_are_asked_for_by_its_values_and_the_config_and_undone(monkeypatch):
  asked, config = [], dataclasses.replace(DEFAULT.ridges, num_per_sum=7)
  monkeypatch.setattr(ridges, "ridge_sums", lambda rows, *given, **named: asked.append((rows, given, named)) or iter(
    [parse("x"), parse("sin(x)")]))
  rows = Rows(np.array([[1.0], [2], [3]]), np.array([1.0, 2, 4]), np.ones(3))
  found = list(ridges._written(ridges.LINKS["inv"], rows, [0], [["seed"]], config))
  [(given_rows, given, named)] = asked
  assert given == ([0], [["seed"]]) and named == {"config": config} and given_rows.x is rows.x
  # An error of 1/y counts by the fourth power of y.
  assert given_rows.y.tolist() == [1, 0.5, 0.25] and given_rows.weights.tolist() == [1 / 256, 1 / 16, 1]
  assert [expression.evaluate(node, np.array([[0.5]]))[0] for node in found] == pytest.approx([2, 1 / np.sin(0.5)])


@pytest.mark.parametrize(("num_points", "operators", "is_asked"), [
  (10, None, True), (9, None, False), (20, ("+", "*", "sin"), True), (20, ("+", "*", "neg"), False),
  (20, ("*", "sin"), False)])
def test_who_is_asked_for_ridges(num_points, operators, is_asked, rng):
  x = np.repeat(rng.uniform(1, 3, (num_points, 2)), 2, axis=0)
  task = make_task((x, rng.normal(size=2 * num_points)), None, SearchOptions(
    restrictions=Restrictions(operators=operators) if operators else Restrictions()))
  assert DEFAULT.ridges.min_constants * DEFAULT.terms.points_per_part == 10
  assert ridges.Ridges().supports(task) == is_asked


def test_arguments_that_stand_once_have_no_number():
  node = ridge_functions._sum([parse("x"), parse("z"), parse("w")], np.array([1.0, -1.0, 2.0]))
  assert node == expression.chain("+", [
    parse("x"), expression.Node("neg", (parse("z"),)), expression.Node("*", (parse("w"), expression.number(2.0)))])
