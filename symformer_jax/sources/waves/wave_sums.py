"""Waves of sums of two functions of the columns: `x*cos(x**3 - 1/y)`, `sin(4*y + 1/log(x))`, `z*cos(2*x*y + w**2)`.

How much of y waves of two frequencies explain is a matrix product for all pairs of frequencies, as a periodogram is
for one (Lomb 1976): for every two functions of the columns, and for waves that are multiplied by a column. Rows at
which a function is far out, beside a pole, are out of phase on any grid, but others are not, and where those are in
phase the frequencies are followed to the nearest maximum with all rows.
"""

from collections.abc import Iterator, Sequence
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import WaveSumsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule, is_writable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import to_node

# A cosine and a sine whose determinant is a smaller share of the product of their squares are one column.
DEPENDENT = 1e-9


class Function(NamedTuple):
  """A function of the columns that stands in a wave.

  Attributes:
    node, middle: its median; values: less that [N].
    step: of its frequencies.
  """

  node: Node
  middle: float
  values: np.ndarray
  step: float


class Amplitude(NamedTuple):
  """What multiplies a wave.

  Attributes:
    node, values: [N], times the roots of the rows' weights, over their length.
  """

  node: Node
  values: np.ndarray
  length: float


class Wave(NamedTuple):
  """A wave that explains much.

  Attributes:
    explained: share of y's variance.
    functions: of whose sum it is, with their `frequencies`; amplitude.
  """

  explained: float
  functions: tuple[Function, Function]
  amplitude: Amplitude
  frequencies: tuple[float, float]


@np.errstate(all="ignore")  # what is not finite is left out
def waves_of_sums(rows: Rows, columns: Sequence[int], rule: Rule, config: WaveSumsConfig) -> list[Node]:
  """Formulas of one wave and a constant, the nearest first, for constants that are still to be fitted."""
  rows, columns = rows.sample(config.num_rows, seed=0), rows.varying(columns)
  token = next(filter(rule.allows_operator, ("cos", "sin")), None)
  if len(rows) < config.min_rows or len(columns) > config.max_columns or token is None or np.ptp(rows.y) == 0:
    return []
  root = np.sqrt(rows.weights)
  target = root * (rows.y - np.average(rows.y, weights=rows.weights))
  target = target / np.linalg.norm(target)
  inner, amplitudes = _inner(rows.x, columns, rule, config), _amplitudes(rows.x, columns, root, rule, config)
  pairs = sorted(itertools.combinations(range(len(inner)), 2), key=sum)[: config.max_pairs]
  if not pairs or not amplitudes:
    return []
  waves, num_tried = _on_grid(target, inner, amplitudes, pairs, config)
  # Of noise the best of so many explains 1 - num_tried**(-2/N); those that are followed, beside poles above all, more.
  by_chance = 1 - num_tried ** (-3 / len(rows))
  return [_formula(wave, rows, root, token) for wave in _followed(waves, target, root, config)
          if wave.explained > by_chance]


def _inner(x: np.ndarray, columns: Sequence[int], rule: Rule, config: WaveSumsConfig) -> list[Function]:
  """Functions that may be summed, the plainer first."""
  nodes = (*map(variable, columns), *_powers(columns, config.plain_powers), *_products(columns, config.products),
           *_powers(columns, config.powers), *_functions(columns, config.functions),
           *_products(columns, config.further_products))
  found = []
  for node in (node for node in map(tidy, nodes) if is_writable(node, rule)):
    values = expression.evaluate(node, x)
    ends = (config.edges, 1 - config.edges)
    least, largest = np.quantile(values, ends) if np.all(np.isfinite(values)) else (0.0, 0.0)
    if largest > least:
      middle = float(np.median(values))
      found.append(Function(node, middle, values - middle, config.radians / float(largest - least)))
  return found


def _powers(columns: Sequence[int], exponents: Sequence[float]) -> Iterator[Node]:
  return (power(variable(column), number(exponent)) for exponent in exponents for column in columns)


def _functions(columns: Sequence[int], some: Sequence[tuple[str, ...]]) -> Iterator[Node]:
  return (functools.reduce(lambda node, token: Node(token, (node,)), tokens, variable(column))
          for tokens in some for column in columns)


def _products(columns: Sequence[int], exponents: Sequence[tuple[float, float]]) -> Iterator[Node]:
  """Of every two columns."""
  for each in exponents:
    pairs = itertools.combinations(columns, 2) if each[0] == each[1] else itertools.permutations(columns, 2)
    yield from (to_node(tuple(zip(pair, each, strict=True))) for pair in pairs)


def _amplitudes(
  x: np.ndarray, columns: Sequence[int], root: np.ndarray, rule: Rule, config: WaveSumsConfig
) -> list[Amplitude]:
  """What may multiply a wave: 1 and powers of columns."""
  nodes, found = (number(1), *map(tidy, _powers(columns, config.amplitudes))), []
  for node in (node for node in nodes if is_writable(node, rule)):
    values = root * expression.evaluate(node, x)
    length = np.linalg.norm(values)
    if np.isfinite(length) and length > 0:
      found.append(Amplitude(node, values / length, float(length)))
  return found


def _on_grid(
  target: np.ndarray, inner: Sequence[Function], amplitudes: Sequence[Amplitude], pairs: Sequence[tuple[int, int]],
  config: WaveSumsConfig
) -> tuple[list[Wave], int]:
  """Of every two functions and every amplitude the best frequencies of the grid; those that explain most, and how many
  were tried.

  Args:
    target: [N], of length 1, each row times the root of its weight; pairs: places of the functions.
  """
  multiplied = np.stack([target * each.values for each in amplitudes]).astype(np.complex64)
  num = _num_frequencies(len(pairs) * multiplied.size, config)
  frequencies = [np.concatenate([each.step * np.arange(1, num + 1), config.simple]) for each in inner]
  turns = [np.exp(-1j * f[:, None] * each.values).astype(np.complex64)
           for f, each in zip(frequencies, inner, strict=True)]
  found = []
  for i, j in pairs:
    interruption.check()
    first = (multiplied[:, None, :] * turns[i]).reshape(-1, len(target))
    sums = np.stack([first @ turns[j].T, first @ turns[j].conj().T], axis=-1)
    explained = (2 * np.abs(sums) ** 2).reshape(len(amplitudes), -1)
    best = np.argmax(explained, axis=1)
    for amplitude, shares, place in zip(amplitudes, explained, best, strict=True):
      a, b, is_below = np.unravel_index(place, (len(frequencies[i]), len(frequencies[j]), 2))
      found.append(Wave(float(shares[place]), (inner[i], inner[j]), amplitude,
                        (float(frequencies[i][a]), float(frequencies[j][b]) * (-1 if is_below else 1))))
  num_tried = len(found) * 2 * (num + len(config.simple)) ** 2
  return sorted(found, key=lambda wave: -wave.explained)[: config.num_followed], num_tried


def _num_frequencies(work: int, config: WaveSumsConfig) -> int:
  """The most that the time allows."""
  return next((num for num in config.num_frequencies if 2 * work * (num + len(config.simple)) ** 2 <= config.max_work),
              config.num_frequencies[-1])


def _followed(waves: Sequence[Wave], target: np.ndarray, root: np.ndarray, config: WaveSumsConfig) -> list[Wave]:
  """The same at the nearest maximum, the nearest to y first."""
  functions = np.stack([[each.values for each in wave.functions] for wave in waves], axis=1)  # [2, K, N]
  amplitude = np.stack([wave.amplitude.values for wave in waves])
  at = np.array([wave.frequencies for wave in waves])
  steps = np.array([[each.step for each in wave.functions] for wave in waves]) / 2
  directions = np.array([*itertools.product((-1, 0, 1), repeat=2)])
  places = np.arange(len(waves))
  for _ in range(config.num_steps):
    tried = at[:, None] + steps[:, None] * directions
    explained = _explained(tried, functions, amplitude, target, root)
    best = np.argmax(explained, axis=1)
    at = tried[places, best]
    is_still = np.all(directions[best] == 0, axis=1)
    steps = np.where(is_still[:, None], steps / config.narrowing, steps)
  explained = explained[places, best]
  return [waves[k]._replace(explained=float(explained[k]), frequencies=tuple(map(float, at[k])))
          for k in np.argsort(-explained, kind="stable")]


def _explained(
  frequencies: np.ndarray, functions: np.ndarray, amplitude: np.ndarray, target: np.ndarray, root: np.ndarray
) -> np.ndarray:
  """Shares [K, T] that waves and a constant explain, of frequencies [K, T, 2] of functions [2, K, N], each wave times
  an amplitude [K, N]; target [N] and amplitudes are of length 1, each row times the root [N] of its weight.
  """
  phases = sum(frequencies[..., i, None] * functions[i][:, None] for i in range(2))
  unit = root / np.linalg.norm(root)
  cosine, sine = (amplitude[:, None] * wave(phases) for wave in (np.cos, np.sin))
  cosine, sine = (each - (each @ unit)[..., None] * unit for each in (cosine, sine))
  cc, ss, cs = (np.sum(a * b, axis=-1) for a, b in ((cosine, cosine), (sine, sine), (cosine, sine)))
  c, s = cosine @ target, sine @ target
  determinant = cc * ss - cs**2
  is_plane = determinant > DEPENDENT * cc * ss
  both = (ss * c**2 - 2 * cs * c * s + cc * s**2) / np.where(is_plane, determinant, 1.0)
  alone = [each**2 / np.where(square > 0, square, np.inf) for each, square in ((c, cc), (s, ss))]
  return np.where(is_plane, both, np.maximum(*alone))


def _formula(wave: Wave, rows: Rows, root: np.ndarray, token: str) -> Node:
  """Size, phase and constant by least squares."""
  phase = sum(frequency * each.values for frequency, each in zip(wave.frequencies, wave.functions, strict=True))
  design = np.stack([wave.amplitude.values * np.cos(phase), wave.amplitude.values * np.sin(phase),
                     root / np.linalg.norm(root)], axis=1)
  cosine, sine, away = np.linalg.lstsq(design, root * rows.y)[0]
  shift = sum(frequency * each.middle for frequency, each in zip(wave.frequencies, wave.functions, strict=True))
  turned = -math.atan2(sine, cosine) - shift + (math.pi / 2 if token == "sin" else 0.0)
  terms = [Node("*", (each.node, number(frequency)))
           for frequency, each in zip(wave.frequencies, wave.functions, strict=True)]
  product = chain("*", [number(float(np.hypot(cosine, sine) / wave.amplitude.length)), wave.amplitude.node,
                        Node(token, (chain("+", [*terms, number(turned)]),))])
  return tidy(chain("+", [product, number(float(away / np.linalg.norm(root)))]))
