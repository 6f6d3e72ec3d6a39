"""Fractions of waves as a source: `tan(10*x)*x`, `1/(2 + cos(x**2))`, `log(x)/tan(x) + log(x)`, of any frequency.

Where a denominator vanishes between the rows, those beside it decide every sum of squares, and no wave of a grid is
near enough to them. The equation of `wave_equations` has no poles: at each frequency of a grid one eigenvalue says how
nearly the rows meet it, and the frequencies where they do so far better than around them are then fitted.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import optimize

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, SearchConfig, WaveFractionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression
from symformer_jax.language.expression import VARIABLE, Node, chain, variable
from symformer_jax.language.rules import Rule, is_writable
from symformer_jax.sources import monomials
from symformer_jax.sources.stateless import Stateless
from symformer_jax.sources.sums import pair_sums
from symformer_jax.sources.waves import wave_forms
from symformer_jax.sources.waves.wave_equations import Equation
from symformer_jax.sources.waves.wave_forms import Part, Phase

# Of an equation without factors: three coefficients on each side, of which one is free, and two frequencies.
NUM_CONSTANTS = 7


@dataclasses.dataclass(frozen=True)
class WaveFractions(Stateless):
  """Fractions whose numerator and denominator are a wave and a constant: first of multiples of one monomial."""

  config: SearchConfig = DEFAULT
  name: str = "wave_fractions"

  needs: ClassVar[tuple[str, ...]] = ("+", "*", "inv", "cos")

  @property
  def turns(self) -> tuple[int, ...]:
    return self.config.wave_fractions.turns

  def supports(self, task: Task) -> bool:
    config = self.config.wave_fractions
    return super().supports(task) and len(task.fit_rows) >= config.rows_per_constant * NUM_CONSTANTS

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    found = fractions_of(task.fit_rows, task.columns, task.rule, self.config.wave_fractions, is_of_sums=turn > 0)
    return pair_sums.allowed(found, task, num, self.config.terms)


class Place(NamedTuple):
  """A minimum of what is left of the equation.

  Attributes:
    share: what is left; around: what is typical of the frequencies around.
    phase: there; steps: how far the next frequencies are.
    factors: beside 1.
  """

  share: float
  around: float
  phase: Phase
  steps: np.ndarray
  factors: tuple[Part, ...] = ()

  @property
  def leap(self) -> float:
    return self.share / self.around

  def moved(self, steps: np.ndarray) -> Phase:
    """The phase with other frequencies."""
    return self.phase._replace(frequencies=self.phase.frequencies + steps * self.steps)

  def left(self, equation: Equation, phase: Phase) -> np.ndarray:
    """See `Equation.left`."""
    return equation.left(phase.values, [factor.values for factor in self.factors])


@np.errstate(all="ignore")  # what is not finite is left out
def fractions_of(
  rows: Rows, columns: Sequence[int], rule: Rule, config: WaveFractionsConfig = DEFAULT.wave_fractions, *,
  is_of_sums: bool = False,
) -> Iterator[Node]:
  """Formulas that come near, the nearest first, for constants that are still to be fitted.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
    is_of_sums: whether phases are sums of multiples of two monomials instead of multiples of one.
  """
  varies, some = rows.varying(columns), rows.sample(config.num_rows, seed=0)
  if not varies or np.ptp(some.y) == 0:
    return
  equation = Equation(some)
  places = (_of_sums if is_of_sums else _of_multiples)(equation, varies, rule, config)
  nearest = sorted(places, key=lambda place: place.leap)[: config.num_fitted[is_of_sums]]
  fit = _with_best_frequencies if is_of_sums else _with_best_frequency
  for place in sorted((fit(equation, place, config) for place in nearest), key=lambda place: place.leap):
    if place.leap < config.leap:
      place = _by_half_the_phase(equation, place, config)
      solved = equation.solve(place.phase.values, [factor.values for factor in place.factors])
      yield from wave_forms.written(place.phase, place.factors, *solved, nearly=config.nearly)


# --- what there is to try ------------------------------------------------------------------------------------------


def _of_multiples(equation: Equation, columns: Sequence[int], rule: Rule, config: WaveFractionsConfig) -> list[Place]:
  """Minima for phases that are multiples of one monomial, or function of the only column."""
  number, is_alone = min(len(columns), 3) - 1, len(columns) == 1
  parts = _monomials(columns, config.arguments[number])[: config.max_arguments]
  factors = _monomials(columns, config.factors[number])
  if is_alone:
    x = variable(columns[0])
    parts += [Node(name, (x,)) for name in (*config.functions, *config.waves)]
    factors += [Node(name, (x,)) for name in config.functions]
    factors += [chain("*", [Node(name, (x,)), monomials.to_node(((columns[0], power),))])
                for name in config.waves for power in config.beside_waves]
  has_rows = len(equation.rows) >= config.rows_per_constant * (NUM_CONSTANTS + 3)
  usable = _usable(factors, equation.rows, rule) if has_rows else []
  places: list[Place] = []
  for part in _usable(parts, equation.rows, rule):
    num_columns = sum(node.token == VARIABLE for node in expression.walk(part.node))
    num_phases = config.num_phases[bool(part.node.args)]
    places += _minima(equation, part, usable if num_columns <= 2 else [], num_phases, config)
  return places


def _of_sums(equation: Equation, columns: Sequence[int], rule: Rule, config: WaveFractionsConfig) -> list[Place]:
  """Minima for phases that are sums of multiples of two monomials."""
  parts = _usable(_monomials(columns, config.summed[min(len(columns), 3) - 1]), equation.rows, rule)
  pairs = [(parts[i], parts[j]) for j in range(len(parts)) for i in range(j)]
  return [place for pair in pairs[: config.num_pairs] for place in _minima_of_pair(equation, pair, config)]


def _monomials(columns: Sequence[int], exponents: Sequence[Sequence[float]]) -> list[Node]:
  """Of one column, of two, ... with these exponents."""
  return [monomials.to_node(monomial) for size, some in enumerate(exponents, 1)
          for monomial in monomials.monomials(columns, size, some)]


def _usable(nodes: Sequence[Node], rows: Rows, rule: Rule) -> list[Part]:
  """Those that are allowed, finite in every row, and vary."""
  parts = [Part(node, expression.evaluate(node, rows.x)) for node in nodes if is_writable(node, rule)]
  return [part for part in parts if np.all(np.isfinite(part.values)) and np.ptp(part.values) > 0]


# --- where the equation is met -------------------------------------------------------------------------------------


def _minima(
  equation: Equation, part: Part, factors: Sequence[Part], num_phases: int, config: WaveFractionsConfig
) -> Iterator[Place]:
  """Over the frequency, with each factor and without."""
  interruption.check()
  if not part.range(0.5) > 0:
    return
  step = config.step / part.range(config.most_rows)
  first = max(np.ceil(config.least_phase / (step * part.range(0.5))), 1)
  if not first + 2 * config.num_around < num_phases:
    return
  frequencies = step * np.arange(first, num_phases + 1)
  values = np.array([factor.values / np.max(np.abs(factor.values)) for factor in factors])
  shares = equation.shares(frequencies[:, None] * part.values, values.reshape(len(factors), len(equation.rows)))
  padded = np.pad(shares, ((config.num_around,) * 2, (0, 0)), mode="reflect")
  around = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * config.num_around + 1, axis=0), axis=-1)
  for k, m in np.argwhere(_are_least(shares, (0,)) & (shares < config.dip * around)):
    yield Place(float(shares[k, m]), float(around[k, m]), Phase((part,), frequencies[[k]]), np.array([step]),
                tuple(factors[m - 1 : m]) if m else ())


def _minima_of_pair(equation: Equation, pair: tuple[Part, Part], config: WaveFractionsConfig) -> Iterator[Place]:
  """Over two frequencies, of which neither is 0: those are found by themselves."""
  interruption.check()
  if not all(part.range(0.5) > 0 for part in pair):
    return
  steps = np.array([config.step_of_sums / part.range(config.most_rows) for part in pair])
  most, near = config.num_phases_of_sums, config.num_around
  first, second = np.arange(most + 1), np.arange(-most, most + 1)
  phases = [(step * numbers)[:, None] * part.values
            for step, numbers, part in zip(steps, (first, second), pair, strict=True)]
  none = np.zeros((0, len(equation.rows)))
  shares = np.stack([equation.shares(phase + phases[1], none)[:, 0] for phase in phases[0]])
  for i, j in np.argwhere(_are_least(shares, (0, 1)) & (first[:, None] > 0) & (second != 0)):
    around = np.median(shares[max(i - near, 0) : i + near + 1, max(j - near, 0) : j + near + 1])
    turn = float(np.subtract(*np.quantile(phases[0][i] + phases[1][j], (0.75, 0.25))))
    if shares[i, j] < config.dip * around and turn > config.least_phase:
      yield Place(float(shares[i, j]), float(around), Phase(pair, steps * [first[i], second[j]]), steps)


def _are_least(shares: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
  """Where no neighbour along some axes, and across them, is smaller."""
  padded = np.pad(shares, [(1, 1) if axis in axes else (0, 0) for axis in range(shares.ndim)], constant_values=np.inf)
  windows = np.lib.stride_tricks.sliding_window_view(padded, (3,) * len(axes), axis=axes)
  return shares <= windows.min(axis=tuple(range(shares.ndim, windows.ndim)))


def _with_best_frequency(equation: Equation, place: Place, config: WaveFractionsConfig) -> Place:
  interruption.check()
  best = optimize.minimize_scalar(
    lambda steps: place.left(equation, place.moved(steps))[0], bounds=(-1, 1), method="bounded",
    options={"xatol": config.tolerance})
  return place._replace(share=float(best.fun), phase=place.moved(best.x))


def _with_best_frequencies(equation: Equation, place: Place, config: WaveFractionsConfig) -> Place:
  """Of two, by a simplex (Nelder and Mead, 1965) that begins half a step wide."""
  interruption.check()
  best = optimize.minimize(
    lambda steps: place.left(equation, place.moved(steps))[0], np.zeros(2), method="Nelder-Mead",
    bounds=[(-1, 1)] * 2, options={"xatol": config.tolerance, "fatol": 0, "maxfev": config.max_looks,
                                   "initial_simplex": [[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]]})
  return place._replace(share=float(best.fun), phase=place.moved(best.x))


def _by_half_the_phase(equation: Equation, place: Place, config: WaveFractionsConfig) -> Place:
  """Where several fractions are the same: tan(t/2) is both sin(t)/(1 + cos(t)) and (1 - cos(t))/sin(t), and by half the
  phase it is one.
  """
  if place.left(equation, place.phase)[1] < config.leap * place.around:
    return place._replace(phase=place.phase._replace(frequencies=place.phase.frequencies / 2))
  return place
