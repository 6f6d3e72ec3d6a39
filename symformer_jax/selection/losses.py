"""Losses other than squares as weights of rows: what rows count is computed from y, or from a first look at the data.

Whatever the loss, a search minimizes weighted squares, sum w (f(x) - y)^2; constants, choice, standard errors and
printed figures then follow from the weights alone.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from symformer_jax.engine.config import DEFAULT, LossConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import expression, programs
from symformer_jax.language.expression import Node
from symformer_jax.selection import between_rows, rounding, scoring, soundness

SQUARED, RELATIVE, LOG, HUBER, AUTO = "squared", "relative", "log", "huber", "auto"
# Those whose weights depend on a formula.
BY_A_LOOK = (LOG, HUBER, AUTO)
# Share of y's spread below which errors are those of the numbers, not of the data.
EXACT_SHARE = 1e-7
# Share of the largest |y| below which all count alike: no weight vanishes, which would leave its row out.
SMALLEST_SHARE = 1e-60


@dataclasses.dataclass(frozen=True)
class Weighing:
  """What a loss makes of rows.

  Attributes:
    weights: of the rows [N], above 0, the user's among the factors.
    text: what was found and how rows count, one sentence; empty where nothing was changed.
    exponent: p of errors that grow as |y|**p, which the weights suppose; None where they suppose something else.
    num_light: rows that count less for being far from the formula.
    squares: of the errors [N], squared units of y, where the loss is to keep large ones from deciding; else None.
  """

  weights: np.ndarray
  text: str = ""
  exponent: float | None = 0.0
  num_light: int = 0
  squares: np.ndarray | None = None


class Weighed(NamedTuple):
  """A data set as it is searched: with what a loss makes of its rows, and the user's own weights.

  Attributes:
    dataset: `(X [N, D], y [N])` or `(X, y, weights [N])`, or points [N, D+1] as they came.
    given: the user's weights [N], ones where there are none.
  """

  dataset: Any
  weighing: Weighing
  given: np.ndarray


def weigh_first(loss: str, rows: Rows) -> Weighing:
  """The weights that need no formula: those of `squared` and `relative`, and what a first look takes for the others.

  Raises:
    InputError: where a logarithm has no meaning.
  """
  if loss == LOG:
    if np.any(rows.y == 0) or (np.any(rows.y < 0) and np.any(rows.y > 0)):
      what = "0" if np.any(rows.y == 0) else "both signs"
      raise InputError(f"loss: log takes a target of one sign, got {what}; relative, huber or auto do without")
    return dataclasses.replace(_relative(rows), text="loss log")
  return _relative(rows) if loss == RELATIVE else Weighing(rows.weights)


def _relative(rows: Rows) -> Weighing:
  size = np.abs(rows.y)
  least = max(np.min(size[size > 0]), SMALLEST_SHARE * np.max(size))
  text = "loss relative: rows count as 1/y**2"
  if num_zeros := int(np.sum(size == 0)):
    text += f", {num_zeros} with y = 0 as the smallest other, {least:g}"
  if np.any(rows.y < 0) and np.any(rows.y > 0):
    text += "; y changes its sign: what lies near 0 decides"
  # Relative to the smallest: no square leaves the range of double precision upwards.
  return Weighing(rows.weights * (least / np.maximum(size, least)) ** 2, text, 1.0)


def starts(loss: str, rows: Rows, *, config: LossConfig = DEFAULT.loss) -> list[np.ndarray]:
  """Weights [N] of the first looks that a loss takes: of `auto` two where y spans a decade, or one may miss the law; of
  `huber` those around the medians of neighbours where some rows are far from theirs.
  """
  first = weigh_first(loss, rows).weights
  size = np.abs(rows.y)
  is_one_sided = np.all(rows.y > 0) or np.all(rows.y < 0)
  if loss == AUTO and is_one_sided and np.max(size) > 10 * np.min(size):
    return [first, _relative(rows).weights]
  if loss == HUBER and len(rows) >= config.min_rows:
    around = _neighbour_weights(rows, config)
    return [around.weights if is_misled(first, around, config=config) else first]
  return [first]


def _neighbour_weights(rows: Rows, config: LossConfig) -> Weighing:
  """Huber's around the median of each row's neighbours, by the ranks of its columns; the standard error is that of the
  neighbours about their median (Hampel's identifier, but with one scale for all), which a slope widens as well.
  """
  from scipy import spatial  # half a second, and no need of it under other losses

  ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in rows.x.T], axis=1)
  places = ranks / np.maximum(ranks.max(axis=0), 1)
  near = spatial.cKDTree(places).query(places, min(config.huber_neighbours + 1, len(rows)))[1]
  medians = np.median(rows.y[near], axis=1)
  apart = np.sqrt(rows.weights[near]) * np.abs(rows.y[near] - medians[:, None])
  return _bounded(medians, rows, float(np.median(np.median(apart, axis=1))), config)


def is_misled(before: np.ndarray, found: Weighing, *, config: LossConfig = DEFAULT.loss) -> bool:
  """Whether rows that count less than was supposed had a say in a look.

  Args:
    before: the weights [N] of the look; found: what it made of the rows.
  """
  if found.squares is None:
    return False
  return float(np.sum(before * found.squares)) > config.misled * float(np.sum(found.weights * found.squares))


def weigh(
  loss: str, nodes: Sequence[Node], rows: Rows, *, text: Callable[[Node], str], num_rows: int = 4096, seed: int = 0,
  config: LossConfig = DEFAULT.loss,
) -> Weighing:
  """The weights around the best formula of the first looks.

  Each formula is fitted under the weights that it gives itself, in turns (iteratively reweighted least squares); the
  best has the shortest description under errors of that size: errors of Laplace's distribution, which a few large ones
  do not decide, or for `huber` of Student's, which a fifth of gross ones does not.
  Args:
    loss: one of `BY_A_LOOK`.
    nodes: fitted formulas; those undefined on a row, or with a fault between rows, are left out.
    rows: with the user's weights. num_rows: formulas are fitted to so many of them, drawn by the seed.
    text: a formula in the column names.
  """
  some, reweigh = rows.sample(num_rows, seed=seed), functools.partial(_REWEIGH[loss], config=config)
  cost = functools.partial(_cost, rows=some, reweigh=reweigh, config=config, is_robust=loss == HUBER)
  segments = between_rows.make_segments(some)
  with np.errstate(all="ignore"):
    in_order = (node for node in sorted(dict.fromkeys(nodes), key=cost) if not soundness.find_fault(node, segments))
    promising = list(itertools.islice(in_order, config.num_fitted))
    fitted = [_fit(node, some, reweigh, config.num_turns) for node in promising]
    best = min(fitted, key=cost, default=None)
    if best is None or not math.isfinite(cost(best)):
      first = weigh_first(loss, rows)
      instead = "rows count as 1/y**2" if first.exponent else "squared"
      return dataclasses.replace(
        first, text=f"loss {loss}: no formula of a first look is defined on all rows, {instead}")
    return _described(loss, best, rows, reweigh, text)


def settle(loss: str, node: Node, rows: Rows, *, config: LossConfig = DEFAULT.loss) -> tuple[Node, np.ndarray]:
  """One formula fitted under a loss of `BY_A_LOOK`, and the weights [N] that it gives rows."""
  reweigh = functools.partial(_REWEIGH[loss], config=config)
  with np.errstate(all="ignore"):
    node = _fit(node, rows, reweigh, config.num_turns)
    return node, reweigh(scoring.evaluate(node, rows.x), rows).weights


def _described(
  loss: str, node: Node, rows: Rows, reweigh: Callable[..., Weighing], text: Callable[[Node], str]
) -> Weighing:
  weighing = reweigh(scoring.evaluate(node, rows.x), rows)
  if not np.all(np.isfinite(weighing.weights) & (weighing.weights > 0)):
    return Weighing(rows.weights, f"loss {loss}: a first look says nothing of all rows, squared")
  return dataclasses.replace(weighing, text=f"loss {loss}: {weighing.text}; first look: {text(_short(node))}")


def _short(node: Node) -> Node:
  """With constants of four digits."""
  return programs.replace_values(node, [float(f"{value:.4g}") for value in programs.fitted_values(node)])


def _fit(node: Node, rows: Rows, reweigh: Callable[..., Weighing], num_turns: int) -> Node:
  """With constants and weights that agree, nearly; as it is where the formula is undefined on a row."""
  for _ in range(num_turns):
    values = scoring.evaluate(node, rows.x)
    if not np.all(np.isfinite(values)):
      return node
    node = rounding.refit_constants(node, rows.x, rows.y, reweigh(values, rows).weights)
  return node


def _cost(
  node: Node, *, rows: Rows, reweigh: Callable[..., Weighing], config: LossConfig, is_robust: bool = False
) -> float:
  """Nats to describe y by a formula and its errors: of Laplace's distribution, whose size goes as its weights suppose,
  or of Student's, where gross errors must not hide what the others are.
  """
  values = scoring.evaluate(node, rows.x)
  if not np.all(np.isfinite(values)):
    return math.inf
  if is_robust:
    misfit = _student(values, rows, config)
  else:
    misfit = _laplace(values, rows, reweigh(values, rows).exponent or 0.0, config)
  return misfit + config.nats_per_node * expression.complexity(node)


def _laplace(values: np.ndarray, rows: Rows, exponent: float, config: LossConfig) -> float:
  """Negative logarithm of the likelihood, less what is the same for all, of errors of size a*|f|**exponent."""
  size = _sizes(values, config)
  errors = np.sqrt(rows.weights) * np.abs(rows.y - values)
  least = EXACT_SHARE * np.std(rows.y)
  return len(rows) * math.log(max(float(np.mean(errors / size**exponent)), least / float(np.mean(size**exponent)))) + (
    exponent * float(np.sum(np.log(size))))


def _student(values: np.ndarray, rows: Rows, config: LossConfig) -> float:
  """Negative logarithm of the likelihood, less what is the same for all, of errors of Student's distribution.

  Its scale is the most likely one, by the turns of Lange, Little and Taylor (1989).
  """
  squares = rows.weights * (rows.y - values) ** 2
  least, freedom = (EXACT_SHARE * float(np.std(rows.y))) ** 2, config.huber_freedom
  scale = max(float(np.median(squares)), least)
  for _ in range(config.num_scale_turns):
    scale = max((freedom + 1) * float(np.mean(squares / (freedom + squares / scale))), least)
  return 0.5 * len(rows) * math.log(scale) + 0.5 * (freedom + 1) * float(np.sum(np.log1p(squares / (freedom * scale))))


def _sizes(values: np.ndarray, config: LossConfig) -> np.ndarray:
  """|f| relative to its largest [N], the smallest raised: where f passes 0 no error would be small enough."""
  size = np.abs(values)
  least = np.quantile(size, config.smallest_share)
  return np.maximum(size, least if least > 0 else 1.0) / max(float(np.max(size)), least or 1.0)


# --- weights around fitted values [N], by loss --------------------------------------------------------------------


def _log_weights(values: np.ndarray, rows: Rows, config: LossConfig) -> Weighing:
  """w = log(f/y) / (f (f - y)): weighted squares then rise and fall with sum (log f - log y)^2, both are least at once.

  Where f has another sign than y, or is far from it, it counts as far as `log_reach`, on the near side of 0.
  """
  ratio = np.clip(values / rows.y, 1 / config.log_reach, config.log_reach)
  # Near 1 the quotient loses its digits: a series in their place, log(q)/(q - 1) = 1 - (q - 1)/2 + ...
  off = ratio - 1
  is_near = np.abs(off) < 1e-4
  slope = np.where(is_near, 1 - off / 2, np.log(ratio) / np.where(is_near, 1.0, off))
  weights = _relative(rows).weights * slope / ratio
  return Weighing(weights, "log|y| is fitted", 1.0)


def _huber_weights(values: np.ndarray, rows: Rows, config: LossConfig) -> Weighing:
  """Those of Huber (1964): errors beyond some robust standard errors count as if they were linear.

  Differs from the source: from `huber_gross` on weights fall with the square. Under Huber's, what gross errors add to
  the weighted squares grows with them; the choice between formulas would take it for noise.
  """
  errors = np.sqrt(rows.weights) * np.abs(rows.y - values)
  return _bounded(values, rows, float(np.median(errors)), config)


def _bounded(values: np.ndarray, rows: Rows, deviation: float, config: LossConfig) -> Weighing:
  """`deviation`: median of the |errors| of rows that are not far off."""
  errors = np.sqrt(rows.weights) * np.abs(rows.y - values)
  # 1.4826 makes the median of |errors| the standard deviation of normal ones.
  sigma = max(1.4826 * deviation, EXACT_SHARE * float(np.std(rows.y)))
  far = config.huber_errors * sigma
  is_light, gross = errors > far, config.huber_gross * sigma
  share = far / np.maximum(errors, far)
  weights = rows.weights * share * gross / np.maximum(errors, gross)
  text = f"{np.sum(is_light)} of {len(rows)} rows lie beyond {far:.3g} and count less"
  return Weighing(weights, text, 0.0, int(np.sum(is_light)), (rows.y - values) ** 2)


def _grown_weights(values: np.ndarray, rows: Rows, config: LossConfig) -> Weighing:
  exponent = find_growth(values, rows, config=config)
  if not exponent:
    return Weighing(rows.weights, "errors do not grow with |y|, squares are fitted")
  weights = rows.weights * _sizes(values, config) ** (-2 * exponent)
  return Weighing(weights, f"errors grow as |y|**{exponent:g}, rows count as 1/|y|**{2 * exponent:g}", exponent)


def find_growth(values: np.ndarray, rows: Rows, *, config: LossConfig = DEFAULT.loss) -> float:
  """The p of errors whose size grows as |f|**p, by likelihood; 0 where rows or evidence are few.

  Simple values are preferred: 0 (constant), 1 (relative), 1/2 (counts).
  """
  errors = np.abs(rows.y - values)
  if len(rows) < config.min_rows or np.mean(errors) <= EXACT_SHARE * np.std(rows.y):
    return 0.0
  grid = np.round(np.arange(0, config.max_growth + 1e-9, 0.05), 2)
  costs = {float(p): _laplace(values, rows, float(p), config) for p in grid}
  best = min(costs, key=lambda p: costs[p])
  if costs[0.0] - costs[best] < config.growth_nats:
    return 0.0
  return next((p for p in (1.0, 0.5) if costs[p] - costs[best] < config.simple_nats), best)


_REWEIGH = {LOG: _log_weights, HUBER: _huber_weights, AUTO: _grown_weights}
