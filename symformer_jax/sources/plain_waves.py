"""Waves of one column beside a straight line of all columns: `2*sin(11*x) + 0.5*y - 3`, of any frequency.

The least-squares periodogram with a floating line (Zechmeister and Kuerster 2009; Scargle 1982 for none): at each
frequency the line is taken out of cosine and sine, and what they then explain of y is known in closed form.
"""

from collections.abc import Iterator, Sequence
import math

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import PlainWavesConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node, chain, number, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.projections import without

# Cosine and sine, below this share of their sizes beside the line, are part of it.
_LEAST_SHARE = 1e-6
# Of a wave beside a constant.
_NUM_CONSTANTS = 4


def waves_beside_lines(
  rows: Rows, columns: Sequence[int], config: PlainWavesConfig, *, token: str = "cos"
) -> Iterator[Node]:
  """Of every column the wave that explains most of y beside a constant, and beside a straight line of all columns, for
  constants that are still to be fitted.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; token: of waves, `cos` or `sin`.
  """
  varies = rows.varying(columns)
  root = np.sqrt(rows.weights)
  for lines in ((), varies):
    if rows.num_distinct < config.rows_per_constant * (len(lines) + _NUM_CONSTANTS):
      return
    line = root[:, None] * np.column_stack([*rows.x[:, lines].T, np.ones(len(rows))])
    basis = np.linalg.qr(line / np.linalg.norm(line, axis=0))[0]
    for column in varies:
      interruption.check()
      if len(np.unique(rows.x[:, column])) >= config.rows_per_constant * _NUM_CONSTANTS:
        frequency = _best_frequency(rows, column, basis, config)
        if frequency is not None:
          yield _written(rows, line, lines, column, frequency, token)


@np.errstate(all="ignore")  # what is not finite is left out
def _best_frequency(rows: Rows, column: int, basis: np.ndarray, config: PlainWavesConfig) -> float | None:
  """Radians per unit of the column at which a wave explains most of what the line, an orthonormal basis of which is
  given [N, K] in weighted rows, leaves of y; None where no wave is told from it.
  """
  x, root = rows.x[:, column], np.sqrt(rows.weights)
  num_frequencies = math.ceil(config.periods_per_row * len(np.unique(x)) * config.steps_per_period)
  frequencies = 2 * math.pi / (config.steps_per_period * np.ptp(x)) * np.arange(1, num_frequencies + 1)
  phases = np.outer(x - np.mean(x), frequencies)  # [N, K]
  left = without(root * rows.y, basis)
  cos, sin = (without(root[:, None] * wave, basis) for wave in (np.cos(phases), np.sin(phases)))
  cc, ss, cs = np.sum(cos**2, axis=0), np.sum(sin**2, axis=0), np.sum(cos * sin, axis=0)
  determinant = cc * ss - cs**2
  yc, ys = left @ cos, left @ sin
  explained = np.where(determinant > _LEAST_SHARE * np.sum(rows.weights) ** 2,
                       (ss * yc**2 - 2 * cs * yc * ys + cc * ys**2) / determinant, -np.inf)
  best = int(np.argmax(explained))
  return float(frequencies[best]) if explained[best] > 0 else None


def _written(
  rows: Rows, line: np.ndarray, lines: Sequence[int], column: int, frequency: float, token: str
) -> Node:
  """The least-squares fit at that frequency, cosine and sine as one wave."""
  phases, root = frequency * rows.x[:, column], np.sqrt(rows.weights)
  design = np.column_stack([line, root * np.cos(phases), root * np.sin(phases)])
  scale = np.linalg.norm(design, axis=0)
  *slopes, constant, cos, sin = np.linalg.lstsq(design / scale, root * rows.y, rcond=None)[0] / scale
  begin = -math.atan2(sin, cos) + (math.pi / 2 if token == "sin" else 0.0)
  phase = chain("+", [Node("*", (variable(column), number(frequency))), number(begin)])
  terms = [Node("*", (variable(i), number(float(slope)))) for i, slope in zip(lines, slopes, strict=True)]
  wave = Node("*", (Node(token, (phase,)), number(math.hypot(cos, sin))))
  return tidy(chain("+", [wave, *terms, number(float(constant))]))
