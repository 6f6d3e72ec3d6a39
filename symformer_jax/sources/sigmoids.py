"""Saturating functions of an exponential: logistic, Gompertz and Weibull curves of several columns.

`1/(1 + exp(3.1 - 0.02*x - 0.5*y))`, `exp(-8.2*exp(-0.3*x))`, `40*(1 - exp(-0.0003*x**1.7*y))`: y over its largest value
A tells the exponential, whose logarithm is a straight line of the columns or of their logarithms, of exact data also of
both, or of columns and their products, as in a generalized linear model (Nelder and Wedderburn 1972). A is 1, or looked
for along a line.
"""

from collections.abc import Callable, Iterator, Sequence
import itertools
from typing import NamedTuple

import numpy as np
from scipy import optimize

from symformer_jax.engine import interruption
from symformer_jax.engine.config import SigmoidsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, negate, number, variable
from symformer_jax.sources.projections import without


class Curve(NamedTuple):
  """A function of E, above 0, that goes from 0 to 1 or back.

  Attributes:
    inverse: values of it [...] -> E; slope: of it by log(E), its size, at E [...].
    of: E -> the formula.
  """

  inverse: Callable[[np.ndarray], np.ndarray]
  slope: Callable[[np.ndarray], np.ndarray]
  of: Callable[[Node], Node]


CURVES = (
  Curve(lambda s: 1 / s - 1, lambda e: e / (1 + e) ** 2, lambda e: Node("inv", (chain("+", [number(1.0), e]),))),
  Curve(lambda s: -np.log(s), lambda e: e * np.exp(-e), lambda e: Node("exp", (negate(e),))),
  Curve(lambda s: -np.log1p(-s), lambda e: e * np.exp(-e),
        lambda e: chain("+", [number(1.0), negate(Node("exp", (negate(e),)))])),
)


class Told(NamedTuple):
  """What a line leaves of the logarithm of E, as a share of its variance, for a largest value."""

  left: float
  curve: Curve
  terms: Sequence[Node]
  largest: float


@np.errstate(all="ignore")  # what is not finite is left out
def told_lines(rows: Rows, columns: Sequence[int], config: SigmoidsConfig) -> list[Told]:
  """The curves and lines that leave least, one for each kind of line: those that leave no more than `most_left`, or
  next to nothing where there are terms of two kinds.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of.
  """
  y, largest = rows.y, float(np.max(rows.y))
  if largest <= 0 or np.mean(y < 0) > config.below or np.ptp(y) == 0:
    return []
  found = []
  for terms, is_mixed in _kinds(rows, columns, config):
    interruption.check()
    design = np.column_stack([*(expression.evaluate(node, rows.x) for node in terms), np.ones(len(y))])
    if not np.all(np.isfinite(design)):
      continue
    design = design / np.linalg.norm(design, axis=0)
    nearest = [min((Told(_left(curve, top, rows, design, config), curve, terms, top)
                    for top in _tops(largest, config)), key=lambda told: told.left) for curve in CURVES]
    ends = [_followed(told, rows, design, config) if told.left <= config.followed and told.largest != 1 else told
            for told in nearest]
    best = min(ends, key=lambda told: told.left)
    if best.left <= (config.exact if is_mixed else config.most_left):
      found.append(best)
  return sorted(found, key=lambda told: told.left)


def _kinds(rows: Rows, columns: Sequence[int], config: SigmoidsConfig) -> Iterator[tuple[list[Node], bool]]:
  """Terms of straight lines, as far as there are rows for them; and whether they are of two kinds."""
  varies = rows.varying(columns)
  lines = [variable(i) for i in varies]
  powers = [Node("ln", (variable(i),)) for i in varies if np.all(rows.x[:, i] > 0)]
  products = [Node("*", pair) for pair in itertools.combinations(lines, 2)]
  mixed = ([*some, *lines] for some in (powers, products) if some)
  for terms, is_mixed in ((lines, False), (powers, False), *((some, True) for some in mixed)):
    if 0 < len(terms) <= config.max_terms and rows.num_distinct >= config.rows_per_term * (len(terms) + 2):
      yield terms, is_mixed


def _tops(largest: float, config: SigmoidsConfig) -> Iterator[float]:
  """Largest values that are tried: 1, and above that of the rows by shares that grow."""
  if largest < 1:
    yield 1.0
  yield from (largest * (1 + np.geomspace(*config.beyond, config.num_tops))).tolist()


def line_of(
  curve: Curve, largest: float, rows: Rows, config: SigmoidsConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """The rows that tell of E [N], the logarithm of it there [N'], and what these rows count [N']: an error of y is one
  of the logarithm where the curve is steep, and nothing where it has come to its end.
  """
  exponential = curve.inverse(rows.y / largest)
  usable = (exponential >= config.exponentials[0]) & (exponential <= config.exponentials[1])
  slopes = curve.slope(exponential[usable])
  return usable, np.log(exponential[usable]), rows.weights[usable] * (slopes / np.max(slopes, initial=0.0)) ** 2


@np.errstate(all="ignore")
def _left(curve: Curve, largest: float, rows: Rows, design: np.ndarray, config: SigmoidsConfig) -> float:
  """What the line of a design [N, T] leaves; infinite where too few rows tell."""
  usable, target, weights = line_of(curve, largest, rows, config)
  if np.sum(usable) < config.rows_per_term * (design.shape[1] + 1) or not np.all(np.isfinite(weights)):
    return np.inf
  root = np.sqrt(weights)
  whole = root * (target - np.average(target, weights=weights))
  left = without(whole, np.linalg.qr(root[:, None] * design[usable])[0])
  size = float(whole @ whole)
  return float(left @ left) / size if size else np.inf


def _followed(told: Told, rows: Rows, design: np.ndarray, config: SigmoidsConfig) -> Told:
  """The largest value between its neighbours that leaves least: golden sections of its distance from the largest y."""
  largest, step = float(np.max(rows.y)), (config.beyond[1] / config.beyond[0]) ** (1 / (config.num_tops - 1))

  def left(log_share: float) -> float:
    return _left(told.curve, largest * (1 + np.exp(log_share)), rows, design, config)

  share = told.largest / largest - 1
  found = optimize.minimize_scalar(
    left, bounds=(np.log(share / step), np.log(share * step)), method="bounded",
    options={"maxiter": config.num_steps, "xatol": 1e-12})
  return told._replace(left=float(found.fun), largest=largest * (1 + float(np.exp(found.x))))
