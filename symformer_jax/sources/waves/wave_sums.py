"""Waves of sums of two functions of the columns: `x*cos(x**3 - 1/y)`, `sin(4*y + 1/log(x))`, `z*cos(2*x*y + w**2)`.

How much of y waves of two frequencies explain is a matrix product for all pairs of frequencies, as a periodogram is
for one (Lomb 1976): for every two functions of the columns, and for waves that are multiplied by a column. Rows at
which a function is far out, beside a pole, are out of phase on any grid, but others are not, and where those are in
phase the frequencies are followed to the nearest maximum with all rows.
"""

from collections.abc import Iterator, Sequence
import functools
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import WaveSumsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import to_node


class Function(NamedTuple):
  """A function of the columns that stands in a wave, or multiplies one.

  Attributes:
    node, values: [N], less their median where it stands in a wave.
    step: of its frequencies; 0 where it multiplies.
  """

  node: Node
  values: np.ndarray
  step: float = 0.0


class Wave(NamedTuple):
  """A wave on the grid that explains much.

  Attributes:
    explained: share of y's variance.
    functions: of whose sum it is; amplitude: what multiplies it.
    frequencies: of the functions.
  """

  explained: float
  functions: tuple[Function, Function]
  amplitude: Function
  frequencies: tuple[float, float]


def waves_of_sums(rows: Rows, columns: Sequence[int], rule: Rule, config: WaveSumsConfig) -> Iterator[Node]:
  """Formulas of one wave and a constant, the nearest first, for constants that are still to be fitted."""
  rows = rows.sample(config.num_rows, seed=0)
  if len(rows) < config.min_rows or not rule.allows_operator("cos") or np.ptp(rows.y) == 0:
    return iter(())
  target = rows.y - np.average(rows.y, weights=rows.weights)
  target = np.sqrt(rows.weights) * target / np.sqrt(rows.weights @ target**2)
  inner, amplitudes = _inner(rows.x, columns, config), _amplitudes(rows.x, columns, config)
  waves, num_tried = _on_grid(target, np.sqrt(rows.weights), inner, amplitudes, config)
  # Of noise the best of so many explains 1 - num_tried**(-2/N); those that are followed, beside poles above all, more.
  by_chance = 1 - num_tried ** (-3 / len(rows))
  return (_formula(wave, rows) for wave in _followed(waves, target, np.sqrt(rows.weights), config)
          if wave.explained > by_chance)


def _inner(x: np.ndarray, columns: Sequence[int], config: WaveSumsConfig) -> list[Function]:
  """Functions that may be summed, the plainer first."""
  powers = [power(variable(column), number(exponent)) for exponent in (1.0, *config.powers) for column in columns]
  others = [functools.reduce(lambda node, token: Node(token, (node,)), tokens, variable(column))
            for tokens in config.functions for column in columns]
  nodes = (*powers[: len(columns)], *_products(columns, config.products), *powers[len(columns) :], *others,
           *_products(columns, config.further_products))
  found = []
  for node in map(tidy, nodes):
    values = expression.evaluate(node, x)
    least, largest = np.quantile(values, config.inner) if np.all(np.isfinite(values)) else (0.0, 0.0)
    if largest > least:
      found.append(Function(node, values - np.median(values), config.radians / (largest - least)))
  return found


def _products(columns: Sequence[int], exponents: Sequence[tuple[float, float]]) -> Iterator[Node]:
  """Of every two columns."""
  for each in exponents:
    pairs = itertools.combinations(columns, 2) if each[0] == each[1] else itertools.permutations(columns, 2)
    yield from (to_node(tuple(zip(pair, each, strict=True))) for pair in pairs)


def _amplitudes(x: np.ndarray, columns: Sequence[int], config: WaveSumsConfig) -> list[Function]:
  """What may multiply a wave."""
  nodes = map(tidy, [number(1), *(power(variable(column), number(exponent)) for exponent in config.amplitudes
                                  for column in columns)])
  every = [Function(node, np.broadcast_to(expression.evaluate(node, x), len(x))) for node in nodes]
  return [each for each in every if np.all(np.isfinite(each.values)) and np.any(each.values)]


def _on_grid(
  target: np.ndarray, root: np.ndarray, inner: Sequence[Function], amplitudes: Sequence[Function],
  config: WaveSumsConfig
) -> tuple[list[Wave], int]:
  """Of every two functions and every amplitude the best frequencies of the grid; those that explain most, and how many
  were tried.

  Args:
    target: [N], of length 1, each row times the root of its weight; root: [N], of the weights.
  """
  pairs = sorted(itertools.combinations(range(len(inner)), 2), key=sum)[: config.max_pairs]
  multiplied = np.stack([target * each.values for each in amplitudes])
  lengths = np.stack([np.sum((root * each.values) ** 2) for each in amplitudes])
  num = _num_frequencies(len(pairs) * multiplied.size, config)
  frequencies = [np.concatenate([each.step * np.arange(1, num + 1), config.simple]) for each in inner]
  turns = [np.exp(-1j * f[:, None] * each.values).astype(np.complex64)
           for f, each in zip(frequencies, inner, strict=True)]
  found = []
  for i, j in pairs:
    interruption.check()
    first = (multiplied[:, None, :] * turns[i]).reshape(-1, len(target)).astype(np.complex64)
    sums = np.stack([first @ turns[j].T, first @ turns[j].conj().T], axis=-1)
    explained = (2 * np.abs(sums) ** 2).reshape(len(amplitudes), -1) / lengths[:, None]
    best = np.argmax(explained, axis=1)
    for amplitude, share, place in zip(amplitudes, np.max(explained, axis=1), best, strict=True):
      a, b, is_below = np.unravel_index(place, (len(frequencies[i]), len(frequencies[j]), 2))
      found.append(Wave(float(share), (inner[i], inner[j]), amplitude,
                        (float(frequencies[i][a]), float(frequencies[j][b]) * (-1 if is_below else 1))))
  num_tried = len(found) * 2 * (num + len(config.simple)) ** 2
  return sorted(found, key=lambda wave: -wave.explained)[: config.num_followed], num_tried


def _num_frequencies(work: int, config: WaveSumsConfig) -> int:
  """The most that the time allows."""
  return next((num for num in config.num_frequencies if 2 * work * num**2 <= config.max_work),
              config.num_frequencies[-1])


def _followed(waves: Sequence[Wave], target: np.ndarray, root: np.ndarray, config: WaveSumsConfig) -> list[Wave]:
  """The same at the nearest maximum, the nearest to y first."""
  if not waves:
    return []
  functions = np.stack([[each.values for each in wave.functions] for wave in waves], axis=1)  # [2, K, N]
  amplitude = root * np.stack([wave.amplitude.values for wave in waves])
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
  """Shares [K, T] that waves and a constant explain, of frequencies [K, T, 2] of functions [2, K, N]."""
  phases = sum(frequencies[..., i, None] * functions[i][:, None] for i in range(2))
  unit = root / np.linalg.norm(root)
  cosine, sine = (amplitude[:, None] * wave(phases) for wave in (np.cos, np.sin))
  cosine, sine = (each - (each @ unit)[..., None] * unit for each in (cosine, sine))
  cc, ss, cs = (np.sum(a * b, axis=-1) for a, b in ((cosine, cosine), (sine, sine), (cosine, sine)))
  c, s = cosine @ target, sine @ target
  determinant = cc * ss - cs**2
  # Two columns that are nearly one: the better of the two alone.
  is_plane = determinant > 1e-9 * cc * ss
  both = (ss * c**2 - 2 * cs * c * s + cc * s**2) / np.where(is_plane, determinant, 1.0)
  alone = c**2 / np.where(cc > 0, cc, np.inf)
  return np.where(is_plane, both, alone)


def _formula(wave: Wave, rows: Rows) -> Node:
  """Size, phase and constant by least squares."""
  phase = sum(frequency * each.values for frequency, each in zip(wave.frequencies, wave.functions, strict=True))
  root = np.sqrt(rows.weights)
  design = np.stack([wave.amplitude.values * np.cos(phase), wave.amplitude.values * np.sin(phase),
                     np.ones(len(rows))], axis=1)
  (cosine, sine, away), *_ = np.linalg.lstsq(root[:, None] * design, root * rows.y)
  # The functions' medians were taken off.
  shift = sum(frequency * float(np.median(expression.evaluate(each.node, rows.x)))
              for frequency, each in zip(wave.frequencies, wave.functions, strict=True))
  argument = chain("+", [*(Node("*", (each.node, number(frequency)))
                           for frequency, each in zip(wave.frequencies, wave.functions, strict=True)),
                         number(float(-np.arctan2(sine, cosine)) - shift)])
  product = chain("*", [number(float(np.hypot(cosine, sine))), wave.amplitude.node, Node("cos", (argument,))])
  return tidy(chain("+", [product, number(float(away))]))
