"""What a ridge times an amplitude adds to what other columns explain: on grids, and with constants fitted; on device.

A ridge g of sums of arguments, times an amplitude A, is a column A*g. What is left of it by the columns that are there
already, Q, follows from products of g with A*Q, with A times the residual and of g*g with A*A: for all amplitudes two
matrix products, whatever the function.
"""

import functools
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, RidgeGrids
from symformer_jax.sources.ridges import ridge_functions
from symformer_jax.sources.ridges.ridge_functions import OUTER, WAVE

# A column of which the others leave a smaller share (squared) is theirs: what single precision can tell.
INDEPENDENT = 1e-4
# Sums of one compiled call: one program for any number of them.
CHUNK = 16


class Settings(NamedTuple):
  """Amplitudes, and what stands beside the ridge; all times the square root of the weights.

  Attributes:
    amplitudes: [A, N], their largest 1.
    bases: [A, Q, N], orthonormal rows or zeros: what stands beside A*g.
    residuals: [A, N], what the basis leaves of y, relative to y's own length.
  """

  amplitudes: np.ndarray
  bases: np.ndarray
  residuals: np.ndarray


def best_of_all(
  arguments: np.ndarray, settings: tuple[Settings, ...], *, num_phases: int, num_directions: int,
  grids: RidgeGrids = DEFAULT.ridges.grids, num_starts: int = DEFAULT.ridges.starts_per_sum,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """`best_ridges` of any number of sums, so many at a time; of each sum and amplitude the best of few rows.

  Returns:
    By name of the function: what the columns add, the best first, and their places in the grid [T, S, A, num_starts].
  """
  padded = np.pad(arguments, ((0, -len(arguments) % CHUNK), (0, 0), (0, 0)), mode="edge")
  # One setting at a time: one program for any number of them.
  chunks: list[list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]] = [[] for _ in settings]
  for found, each in zip(chunks, settings, strict=True):
    for begin in range(0, len(padded), CHUNK):
      interruption.check()
      some = best_ridges(
        padded[begin : begin + CHUNK], each, num_phases=num_phases, num_directions=num_directions, grids=grids)
      found.append(jax.tree.map(np.asarray, some))
  num_arguments, gains, places = arguments.shape[1], {}, {}
  for name in OUTER:
    of_rows, at = (np.stack([np.concatenate([chunk[part][name] for chunk in each]) for each in chunks], axis=1)[
      : len(arguments)] for part in (0, 1))
    which = np.argsort(-of_rows, axis=-1)[..., :num_starts]
    length = _row_length(name, num_arguments, num_phases=num_phases, num_directions=num_directions)
    gains[name] = np.take_along_axis(of_rows, which, axis=-1)
    places[name] = which * length + np.take_along_axis(at, which, axis=-1)
  return gains, places


def _row_length(name: str, num_arguments: int, *, num_phases: int, num_directions: int) -> int:
  """Members of a row of a function's grid."""
  if name == WAVE:
    return len(ridge_functions.phases(num_arguments, num_phases)) // num_phases
  num = len(ridge_functions.directions(num_arguments, num_directions))
  return num if OUTER[name].is_one_sided else _num_half(num)


@functools.partial(jax.jit, static_argnames=("num_phases", "num_directions", "grids"))
@compilation.with_all_digits
def best_ridges(
  arguments: jax.Array, setting: Settings, *, num_phases: int, num_directions: int,
  grids: RidgeGrids = DEFAULT.ridges.grids,
) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
  """The best inner constants of each function, sum of arguments and amplitude.

  Args:
    arguments: [T, k, N], sets of k arguments, each from 0 to 1 over the rows.
    setting: of A amplitudes.
    num_phases, num_directions, grids: as in `grid`.
  Returns:
    By name of the function: shares of y's weighted square that the best column of each row of the grid adds, and its
    place in the row [T, A, R]. A row has one p and q, or of waves one first factor.
  """
  k = arguments.shape[1]
  phases = jnp.asarray(ridge_functions.phases(k, num_phases), jnp.float32)
  directions = jnp.asarray(ridge_functions.directions(k, num_directions), jnp.float32)

  def of_one(u: jax.Array) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    theta = phases @ u
    gains = {WAVE: _gain_of_waves(jnp.sin(theta), jnp.cos(theta), setting)}
    sums = directions @ u
    least, most = sums.min(1, keepdims=True), sums.max(1, keepdims=True)
    sums = (sums - least) / jnp.maximum(most - least, 1e-12)
    values = {name: _values(outer, sums, grids) for name, outer in OUTER.items() if name != WAVE}
    # All functions in one product: one for each takes longer to compile.
    found = _gain(jnp.concatenate(list(values.values())), setting)
    ends = np.cumsum([len(each) for each in values.values()])
    gains |= dict(zip(values, jnp.split(found, ends[:-1], axis=1), strict=True))
    rows = {name: g.reshape(*g.shape[:-1], len(OUTER[name].affine(grids)) or num_phases, -1)
            for name, g in gains.items()}
    return {name: g.max(-1) for name, g in rows.items()}, {name: g.argmax(-1) for name, g in rows.items()}

  return lax.map(of_one, arguments)


def _values(outer: ridge_functions.Outer, sums: jax.Array, grids: RidgeGrids) -> jax.Array:
  """A function of all p*sum + q [G, N], of sums [directions, N] that run from 0 to 1."""
  some = sums if outer.is_one_sided else sums[: _num_half(len(sums))]
  p, q = jnp.asarray(outer.affine(grids), jnp.float32).T[:, :, None, None]
  return outer.values(p * some[None] + q).reshape(-1, sums.shape[1])


def grid(
  name: str, place: int, units: np.ndarray, *, num_phases: int, num_directions: int,
  grids: RidgeGrids = DEFAULT.ridges.grids,
) -> tuple[np.ndarray, float]:
  """`(factors of the arguments [k], offset)` at a place in a function's grid.

  Args:
    name, place: as `best_ridges` reports them; num_phases, num_directions, grids: as it was asked.
    units: the arguments [k, N], each from 0 to 1 over the rows.
  """
  if name == WAVE:
    return ridge_functions.phases(len(units), num_phases)[place], 0.0
  outer, directions = OUTER[name], ridge_functions.directions(len(units), num_directions)
  which, at = divmod(place, _row_length(
    name, len(units), num_phases=num_phases, num_directions=num_directions))
  p, q = outer.affine(grids)[which]
  sums = directions[at] @ units
  spread = max(np.ptp(sums), np.finfo(np.float32).tiny)
  return p * directions[at] / spread, q - p * sums.min() / spread


def _num_half(num: int) -> int:
  """Directions of which none is the opposite of another."""
  return num // 2


def _gain(values: jax.Array, settings: Settings) -> jax.Array:
  """[A, G] of columns of values [G, N]."""
  is_finite = jnp.isfinite(values).all(1)
  values = jnp.where(is_finite[:, None], values, 0)
  # Relative to the largest, so that squares neither overflow nor vanish.
  values = values / jnp.maximum(jnp.abs(values).max(1, keepdims=True), 1e-30)
  along, within = _products(values, settings)
  size = settings.amplitudes**2 @ (values * values).T
  left = size - (within * within).sum(1)
  return jnp.where(is_finite[None] & (left > INDEPENDENT * size), along * along / jnp.where(left > 0, left, 1), 0)


def _gain_of_waves(sines: jax.Array, cosines: jax.Array, settings: Settings) -> jax.Array:
  """[A, G] of pairs of columns [G, N], whose multiples are free."""
  squares = settings.amplitudes**2
  (along_s, within_s), (along_c, within_c) = (_products(values, settings) for values in (sines, cosines))
  size_s, size_c = squares @ (sines * sines).T, squares @ (cosines * cosines).T
  ss, cc = size_s - (within_s**2).sum(1), size_c - (within_c**2).sum(1)
  sc = squares @ (sines * cosines).T - (within_s * within_c).sum(1)
  determinant = ss * cc - sc * sc
  is_well = determinant > INDEPENDENT * size_s * size_c
  gain = cc * along_s**2 - 2 * sc * along_s * along_c + ss * along_c**2
  return jnp.where(is_well, gain / jnp.where(is_well, determinant, 1), 0)


def _products(values: jax.Array, settings: Settings) -> tuple[jax.Array, jax.Array]:
  """Products of A*g with the residual [A, G] and with the basis [A, Q, G]."""
  num_amplitudes, num_columns, num_rows = settings.bases.shape
  both = jnp.concatenate([settings.bases, settings.residuals[:, None]], axis=1) * settings.amplitudes[:, None]
  found = (both.reshape(-1, num_rows) @ values.T).reshape(num_amplitudes, num_columns + 1, -1)
  return found[:, -1], found[:, :-1]


class Starts(NamedTuple):
  """Ridges that are to be fitted, K of each function, the functions in the order of `OUTER`.

  Attributes:
    arguments: [F, K, 3, N], each from 0 to 1 over the rows, zeros where there are fewer.
    setting: [F, K], of the stacked settings [S * A].
    factors: [F, K, 3], of the arguments; offset: [F, K].
  """

  arguments: np.ndarray
  setting: np.ndarray
  factors: np.ndarray
  offset: np.ndarray


class _Fit(NamedTuple):
  """Constants [F, K, 5] (factor outside, factors of arguments, offset), loss and damping [F, K]."""

  constants: jax.Array
  loss: jax.Array
  damping: jax.Array


@functools.partial(jax.jit, static_argnames="num_steps")
@compilation.with_all_digits
def fit_ridges(
  starts: Starts, settings: tuple[Settings, ...], *, num_steps: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Fits factors and offsets by damped least squares (Levenberg and Marquardt), the linear part projected out.

  Returns:
    `(factors [F, K, 3], offsets [F, K], share of y's weighted square that is left [F, K])`.
  """
  amplitudes, bases, residuals = (
    jnp.concatenate([getattr(each, field) for each in settings])[starts.setting] for field in Settings._fields)

  def project(columns: jax.Array) -> jax.Array:
    """What the basis leaves of columns [F, K, C, N]."""
    return columns - jnp.einsum("fkcq,fkqn->fkcn", jnp.einsum("fkcn,fkqn->fkcq", columns, bases), bases)

  def parts(constants: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The ridge times its amplitude, and its slope [F, K, N], for a factor of 1."""
    inner = jnp.einsum("fkj,fkjn->fkn", constants[..., 1:4], starts.arguments) + constants[..., 4:]
    pairs = [jax.jvp(outer.values, (t,), (jnp.ones_like(t),)) for outer, t in zip(OUTER.values(), inner, strict=True)]
    values, slopes = (amplitudes * jnp.stack(each) for each in zip(*pairs, strict=True))
    return values, slopes

  def left(constants: jax.Array, values: jax.Array) -> jax.Array:
    return residuals - project((constants[..., :1] * values)[:, :, None])[:, :, 0]

  def step(_: int, fit: _Fit) -> _Fit:
    values, slopes = parts(fit.constants)
    outer = fit.constants[..., 0, None, None] * slopes[:, :, None]
    jacobian = project(jnp.concatenate([values[:, :, None], outer * starts.arguments, outer], axis=2))
    size = jnp.maximum(jnp.sqrt((jacobian**2).sum(-1)), 1e-12)
    jacobian = jacobian / size[..., None]
    gradient = jnp.einsum("fkcn,fkn->fkc", jacobian, left(fit.constants, values))
    hessian = jnp.einsum("fkcn,fkdn->fkcd", jacobian, jacobian) + fit.damping[..., None, None] * jnp.eye(5)[None, None]
    move = jnp.linalg.solve(hessian, gradient[..., None])[..., 0] / size
    moved = fit.constants + jnp.where(jnp.isfinite(move), move, 0)
    loss = (left(moved, parts(moved)[0]) ** 2).sum(-1)
    is_better = loss < fit.loss  # NaN is not
    return _Fit(jnp.where(is_better[..., None], moved, fit.constants), jnp.where(is_better, loss, fit.loss),
                jnp.clip(jnp.where(is_better, fit.damping / 5, fit.damping * 4), 1e-6, 1e6))

  start = jnp.concatenate([jnp.ones_like(starts.offset)[..., None], starts.factors, starts.offset[..., None]], axis=-1)
  # The best factor outside; of a wave the best phase as well.
  shifted = start.at[..., 4].add(jnp.pi / 2)
  columns = project(jnp.stack([parts(start)[0], parts(shifted)[0]], axis=2))
  along = jnp.einsum("fkcn,fkn->fkc", columns, residuals)
  gram = jnp.einsum("fkcn,fkdn->fkcd", columns, columns)
  alone = along[..., 0] / jnp.maximum(gram[..., 0, 0], 1e-30)
  both = jnp.linalg.solve(gram + 1e-9 * jnp.eye(2)[None, None], along[..., None])[..., 0]
  start = start.at[..., 0].set(alone)
  wave = start.at[..., 0].set(jnp.hypot(both[..., 0], both[..., 1])).at[..., 4].add(
    jnp.arctan2(both[..., 1], both[..., 0]))
  place = list(OUTER).index(WAVE)
  start = start.at[place].set(wave[place])
  loss = (left(start, parts(start)[0]) ** 2).sum(-1)
  loss = jnp.where(jnp.isfinite(loss), loss, jnp.inf)
  fit = lax.fori_loop(0, num_steps, step, _Fit(start, loss, jnp.full_like(loss, 1e-2)))
  return fit.constants[..., 1:-1], fit.constants[..., -1], fit.loss

