"""Product units fitted from many random starts at once, on the device.

A unit is a product of powers of the columns with free exponents (Durbin and Rumelhart, Product units, Neural
Computation 1, 1989); here it may be times a function of a second such product, or of the sum of two: `m`,
`m*(a + b*g(n))`, `m*(a + b*g(n + o))`. Formulas are sums of units and a constant. What is linear is projected out
(Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems, SIAM J. Numer. Anal.
10, 1973, in Kaufman's form), the exponents are moved by damped least squares (Levenberg and Marquardt), all starts of a
block in one compiled call.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from symformer_jax import compilation
from symformer_jax.engine import interruption

# Columns, rows and targets that are compiled for; starts of a block, which have one function, on a CPU and elsewhere.
NUM_COLUMNS, NUM_ROWS, NUM_TARGETS = (3, 5, 9, 12), (128,), (10,)
BLOCKS = {"cpu": 8}
BLOCK = 64
# Logarithms of inner products are kept within; a column that others of a unit tell to this share of its square is none;
# damping at first, when a step succeeds, when it fails, and its limits; the largest step of an exponent.
_LARGEST_LOG, _INDEPENDENT = 30.0, 1e-10
_DAMPING, _LESS, _MORE, _LEAST, _MOST = 1e-2, 0.3, 4.0, 1e-9, 1e6
_LARGEST_STEP = 2.0
# The least curvature, as a share of the largest, and what keeps denominators from 0.
_LEAST_CURVATURE, _TINY = 1e-6, 1e-30
# Where roots and logarithms of 1 + n end; how near to a pole functions are asked.
_JUST_ABOVE, _BESIDE_POLE = -1 + 1e-6, 1e-6


def _one_plus(n: jax.Array) -> jax.Array:
  """Above 0, so that values and slopes are finite."""
  return 1 + jnp.maximum(n, _JUST_ABOVE)


def _off_zero(n: jax.Array) -> jax.Array:
  return jnp.where(jnp.abs(n) < _BESIDE_POLE, _BESIDE_POLE, n)


# A function of a sum of two products, n + o: for it the factor of n, which would be one of the whole, is its exponent.
POWER = "power"
# THE functions of a unit, of an argument of either sign and an exponent that only `POWER` has.
FUNCTIONS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
  "exp": lambda n, _: jnp.exp(jnp.minimum(n, _LARGEST_LOG)),
  "inv": lambda n, _: 1 / _off_zero(1 + n),
  "sqrt": lambda n, _: jnp.sqrt(_one_plus(n)),
  "inv_sqrt": lambda n, _: 1 / jnp.sqrt(_one_plus(n)),
  "ln": lambda n, _: jnp.log1p(jnp.maximum(n, _JUST_ABOVE)),
  "pure_ln": lambda n, _: jnp.log(jnp.maximum(n, _TINY)),
  "tanh": lambda n, _: jnp.tanh(n),
  "atan": lambda n, _: jnp.arctan(n),
  "bose": lambda n, _: 1 / jnp.expm1(jnp.clip(_off_zero(n), -_LARGEST_LOG, _LARGEST_LOG)),
  "cos": lambda n, _: jnp.cos(n),
  POWER: lambda n, exponent: jnp.exp(
    jnp.clip(exponent * jnp.log(jnp.maximum(n, _TINY)), -_LARGEST_LOG, _LARGEST_LOG)),
}


class Layout(NamedTuple):
  """For each unit of a sum of how many products its function is; 0 where it has none."""

  num_inner: tuple[int, ...]

  @property
  def num_products(self) -> int:
    """Of all units, outer and inner ones."""
    return len(self.num_inner) + sum(self.num_inner)

  def places(self, num_columns: int) -> list[tuple[slice, list[slice]]]:
    """Where the exponents of each unit's outer product stand, and those of the inner ones, the factor last."""
    found, at = [], 0
    for num in self.num_inner:
      outer = slice(at, at + num_columns)
      inner = [slice(begin, begin + num_columns + 1) for begin in outer.stop + (num_columns + 1) * np.arange(num)]
      at = outer.stop + (num_columns + 1) * num
      found.append((outer, inner))
    return found

  def num_parameters(self, num_columns: int) -> int:
    return num_columns * self.num_products + sum(self.num_inner)


class Table(NamedTuple):
  """What is fitted: logarithms of columns, of mean 0 and deviation 1 [N, M]; where columns are below 0 [N, M], 0 or 1;
  functions of y times the roots of the weights [T, N]; these roots [T, N], 0 for rows that do not count.
  """

  logs: np.ndarray
  negative: np.ndarray
  goals: np.ndarray
  roots: np.ndarray


class Starts(NamedTuple):
  """Where fits begin.

  Attributes:
    parameters: [S, P]; is_free: [S, P], those that are moved.
    target: [S], which of the goals; function: [S], which of `FUNCTIONS` units with one have.
    is_used: [S, U], units that are no part are 0.
    sign: [S, V], 1 or -1, for each product: of each unit the outer one, then the inner ones.
    parity: [S, V, M], 1 where the sign of a column counts.
  """

  parameters: np.ndarray
  is_free: np.ndarray
  target: np.ndarray
  function: np.ndarray
  is_used: np.ndarray
  sign: np.ndarray
  parity: np.ndarray


class Fits(NamedTuple):
  """Parameters [S, P], what is left of the goals' variance [S], curvature of that by the parameters [S, P, P]."""

  parameters: np.ndarray
  left: np.ndarray
  curvature: np.ndarray


def fit(table: Table, starts: Starts, layout: Layout, *, num_steps: int) -> Fits:
  """Fits all starts, a block after the other.

  Raises:
    interruption.Interrupted: the search is over.
  """
  block = BLOCKS.get(jax.default_backend(), BLOCK)
  padded = _padded(table)
  wide, found, order = _of_columns(starts, layout, padded), [], []
  for function in np.unique(starts.function):
    places = np.flatnonzero(starts.function == function)
    for some in np.split(places, range(block, len(places), block)):
      interruption.check()
      filled = np.append(some, np.repeat(some[:1], block - len(some)))
      made = _fit(padded, Starts(*(each[filled] for each in wide))._replace(function=function), layout, num_steps)
      found.append([np.asarray(each)[: len(some)] for each in made])
      order.append(some)
  back = np.argsort(np.concatenate(order))
  fits = Fits(*(np.concatenate(each)[back] for each in zip(*found, strict=True)))
  kept = _kept(layout, table.logs.shape[1], padded.logs.shape[1])
  return Fits(fits.parameters[:, kept], fits.left, fits.curvature[:, kept][:, :, kept])


def _padded(table: Table) -> Table:
  """Of one of few shapes: columns and targets of zeros, rows without weight."""
  rows = compilation.bucket(table.logs.shape[0], NUM_ROWS)
  columns = compilation.bucket(table.logs.shape[1], NUM_COLUMNS)
  targets = compilation.bucket(len(table.goals), NUM_TARGETS)

  def wide(each: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.pad(each, [(0, n - m) for n, m in zip(shape, each.shape, strict=True)])

  return Table(wide(table.logs, (rows, columns)), wide(table.negative, (rows, columns)),
               wide(table.goals, (targets, rows)), wide(table.roots, (targets, rows)))


def _kept(layout: Layout, num_columns: int, num_wide: int) -> np.ndarray:
  """Places of the parameters among those of more columns."""
  found = []
  for outer, inner in layout.places(num_wide):
    found.append(outer.start + np.arange(num_columns))
    found += [each.start + np.append(np.arange(num_columns), num_wide) for each in inner]
  return np.concatenate(found)


def _of_columns(starts: Starts, layout: Layout, table: Table) -> Starts:
  """The starts with parameters and signs for more columns, which stay 0."""
  num, wide = starts.parity.shape[2], table.logs.shape[1]
  kept = _kept(layout, num, wide)
  parameters = np.zeros((len(starts.parameters), layout.num_parameters(wide)))
  is_free = np.zeros(parameters.shape, bool)
  parameters[:, kept], is_free[:, kept] = starts.parameters, starts.is_free
  return starts._replace(parameters=parameters, is_free=is_free,
                         parity=np.pad(starts.parity, ((0, 0), (0, 0), (0, wide - num))))


class _Column(NamedTuple):
  """A linear column of a start: values [N], slopes by the logarithm of the outer product, whose exponents stand there,
  and by the parameters of each inner one [M + 1, N].
  """

  values: jax.Array
  by_outer: jax.Array
  outer: slice
  by_inner: Sequence[tuple[slice, jax.Array]] = ()


class _Projection(NamedTuple):
  """What the best linear factors leave of a goal [N], its slopes by the parameters, but for what factors make up for
  [P, N], and its sum of squares.
  """

  left: jax.Array
  slopes: jax.Array
  loss: jax.Array


class _State(NamedTuple):
  """A fit on its way."""

  parameters: jax.Array
  damping: jax.Array
  at: _Projection


class _Fit:
  """One fit: of a table by a layout, from a start. Arrays of single precision."""

  def __init__(self, table: Table, layout: Layout, start: Starts):
    self._logs, self._start = jnp.asarray(table.logs), start
    self._along = jnp.concatenate([self._logs, jnp.ones_like(self._logs[:, :1])], axis=1).T
    self._places = layout.places(table.logs.shape[1])
    self._goal, self._root = jnp.asarray(table.goals)[start.target], jnp.asarray(table.roots)[start.target]
    odd = table.negative @ jnp.asarray(start.parity).T % 2
    self._signs = jnp.asarray(start.sign)[:, None] * (1 - 2 * odd.T)
    self._is_free = jnp.asarray(start.is_free, jnp.float32)

  def run(self, num_steps: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Parameters, what is left, curvature."""
    begun = jnp.asarray(self._start.parameters)
    at = self._project(begun)
    is_finite = jnp.isfinite(at.loss)
    left, slopes = (jnp.where(is_finite & jnp.isfinite(each), each, 0.0) for each in (at.left, at.slopes))
    at = _Projection(left, slopes, jnp.where(is_finite, at.loss, jnp.inf))
    state = lax.fori_loop(0, num_steps, self._step, _State(begun, jnp.float32(_DAMPING), at))
    whole = jnp.sum((self._goal - self._root * (self._root @ self._goal) / jnp.sum(self._root**2)) ** 2)
    whole = jnp.maximum(whole, _TINY)
    return state.parameters, state.at.loss / whole, state.at.slopes @ state.at.slopes.T / whole

  def _step(self, _: jax.Array, state: _State) -> _State:
    curvature = state.at.slopes @ state.at.slopes.T
    diagonal = jnp.diagonal(curvature)
    ridge = state.damping * (diagonal + _LEAST_CURVATURE * diagonal.max() + _TINY) + (1 - self._is_free)
    move = jnp.linalg.solve(curvature + jnp.diag(ridge), state.at.slopes @ state.at.left)
    move = jnp.where(jnp.isfinite(move), move, 0.0)
    move = move * jnp.minimum(1, _LARGEST_STEP / jnp.maximum(jnp.abs(move).max(), _TINY))
    moved = _State(state.parameters + move, jnp.maximum(state.damping * _LESS, _LEAST),
                   self._project(state.parameters + move))
    stays = state._replace(damping=jnp.minimum(state.damping * _MORE, _MOST))
    is_better = (moved.at.loss < state.at.loss) & jnp.isfinite(jnp.sum(moved.at.slopes))  # NaN is not
    return jax.tree.map(lambda new, old: jnp.where(is_better, new, old), moved, stays)

  def _project(self, parameters: jax.Array) -> _Projection:
    columns = self._columns(parameters)
    basis, factors = _solved([column.values for column in columns], self._goal)
    slopes = jnp.zeros((len(parameters), len(self._goal)), jnp.float32)
    for factor, column in zip(factors, columns, strict=True):
      logs = self._logs.T[: column.outer.stop - column.outer.start]
      slopes = slopes.at[column.outer].add(factor * column.by_outer[None] * logs)
      for place, by_inner in column.by_inner:
        slopes = slopes.at[place].add(factor * by_inner)
    slopes = slopes * self._is_free[:, None]
    left = self._goal - (basis @ self._goal) @ basis
    return _Projection(left, slopes - (slopes @ basis.T) @ basis, jnp.sum(left**2))

  def _columns(self, parameters: jax.Array) -> list[_Column]:
    """Two of each unit with a function, the constant last."""
    found, signs, which = [], iter(self._signs), jnp.asarray(self._start.function)
    is_power = which == list(FUNCTIONS).index(POWER)
    for i, (outer, inner) in enumerate(self._places):
      log = self._logs @ parameters[outer]
      product = self._start.is_used[i] * next(signs) * self._root * jnp.exp(log - log.max())
      if not inner:
        found.append(_Column(product, product, outer))
        continue
      exponent = parameters[inner[0].stop - 1]
      logs = [parameters[place] @ self._along for place in inner]
      logs[0] = logs[0] - jnp.where(is_power, exponent, 0.0)
      parts = [next(signs) * jnp.exp(jnp.clip(log, -_LARGEST_LOG, _LARGEST_LOG)) for log in logs]
      for value, slope, by_exponent in _functions(functools.reduce(jnp.add, parts), exponent, which):
        slopes = [(product * slope * part)[None] * self._along for part in parts]
        slopes[0] = slopes[0].at[-1].set(jnp.where(is_power, product * by_exponent, slopes[0][-1]))
        found.append(_Column(product * value, product * value, outer, list(zip(inner, slopes, strict=True))))
    return [*found, _Column(self._root, jnp.zeros_like(self._root), slice(0, 0))]


def _with_slopes(
  function: Callable[[jax.Array, jax.Array], jax.Array], n: jax.Array, exponent: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  value, slope = jax.jvp(lambda n: function(n, exponent), (n,), (jnp.ones_like(n),))
  return value, slope, jax.jvp(lambda exponent: function(n, exponent), (exponent,), (jnp.ones_like(exponent),))[1]


def _functions(n: jax.Array, exponent: jax.Array, which: jax.Array) -> list[tuple[jax.Array, jax.Array, jax.Array]]:
  """Values, slopes by n and by the exponent of the two linear columns of a function of n: itself and 1, of a cosine the
  sine.
  """
  branches = [functools.partial(_with_slopes, function) for function in FUNCTIONS.values()]
  values, slopes, by_exponent = lax.switch(which, branches, n, exponent)
  is_wave = which == list(FUNCTIONS).index("cos")
  beside = jnp.where(is_wave, jnp.sin(n), 1.0), jnp.where(is_wave, jnp.cos(n), 0.0), jnp.zeros_like(n)
  return [(values, slopes, by_exponent), beside]


def _solved(columns: Sequence[jax.Array], goal: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
  """An orthonormal basis of columns [K, N] (Gram and Schmidt), and the factors that fit a goal best; 0 for columns
  that others tell.
  """
  basis: list[jax.Array] = []
  triangle: list[list[jax.Array]] = []  # of each column its shares along those before
  scales: list[jax.Array] = []
  for values in reversed(columns):  # the constant first, which varies least
    size = jnp.maximum(jnp.sqrt(jnp.sum(values**2)), _TINY)
    vector, along = values / size, []
    for other in basis:
      along.append(vector @ other)
      vector = vector - along[-1] * other
    norm = jnp.sqrt(jnp.sum(vector**2))
    inverse = jnp.where(norm**2 > _INDEPENDENT, 1 / jnp.maximum(norm, _TINY), 0.0)
    basis.append(vector * inverse)
    triangle.append([share * size for share in along])
    scales.append(inverse / size)
  factors: list[jax.Array] = []  # from the last column back
  for i in reversed(range(len(basis))):
    others = [triangle[j][i] * factor for j, factor in zip(reversed(range(len(basis))), factors, strict=False)]
    factors.append((basis[i] @ goal - sum(others, start=jnp.float32(0))) * scales[i])
  return jnp.stack(basis), factors


def _single(each: jax.Array) -> jax.Array:
  return each.astype(jnp.float32) if jnp.issubdtype(each.dtype, jnp.floating) else each


@functools.partial(jax.jit, static_argnames="layout")
@compilation.with_all_digits
def _fit(table: Table, starts: Starts, layout: Layout, num_steps: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Parameters, what is left, curvature, of starts with one and the same function: a number, no array of them."""
  table, starts = jax.tree.map(_single, table), jax.tree.map(_single, starts)
  every: Any = Starts(*(None if field == "function" else 0 for field in Starts._fields))  # type: ignore[arg-type]
  return jax.vmap(lambda start: _Fit(table, layout, start).run(num_steps), in_axes=(every,))(starts)
