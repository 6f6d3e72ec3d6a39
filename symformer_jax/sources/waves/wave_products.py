"""Waves and tangents of products of powers of several columns: `-cos(0.2*y*z*v/(sqrt(w)*x))`, `sin(1.1*y*z/(x*w**2))`.

Where the argument is within the principal values of the wave, its logarithm is linear in those of the columns: which
rows these are nobody knows, but draws of as few rows as there are unknowns, of which some are all right, tell by the
number of others that agree (random sample consensus, Fischler and Bolles 1981).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import WaveProductsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node, chain, number
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import Monomial, Values, to_node


class Wave(NamedTuple):
  """A size times a wave, and a constant.

  Attributes:
    token: its operator; size; away: the constant.
    principal: what its argument may be in each row [N].
  """

  token: str
  size: float
  away: float
  principal: np.ndarray


def waves_of_products(rows: Rows, columns: Sequence[int], rule: Rule, config: WaveProductsConfig) -> Iterator[Node]:
  """Formulas that agree with many rows, for constants that are still to be fitted."""
  columns = rows.varying(columns)
  x = rows.x[:, columns]
  if not 2 <= len(columns) <= config.max_columns or not np.all(x != 0):
    return
  logs = np.column_stack([np.ones(len(x)), np.log(np.abs(x))])
  for wave in _waves(rows.y, rule):
    interruption.check()
    product = find_product(logs, wave.principal, config)
    if product is None:
      continue
    monomial = tuple((column, exponent) for column, exponent in zip(columns, product, strict=True) if exponent)
    with np.errstate(all="ignore"):  # what is out of range is no product
      values = Values(rows.x)([monomial])[:, 0]
    if len(monomial) > 1 and np.all(np.isfinite(values) & (values != 0)):
      yield _formula(wave, monomial, values)


def _waves(y: np.ndarray, rule: Rule) -> Iterator[Wave]:
  """As large as 1, or as the largest value, around 0; as far as the values go, around their middle."""
  largest, middle = float(np.max(np.abs(y))), float(np.max(y) + np.min(y)) / 2
  for size, away in ((max(largest, 1.0), 0.0), (float(np.ptp(y)) / 2, middle)):
    wave = np.clip((y - away) / size, -1, 1)
    for token, sign, inverse in (("sin", 1.0, np.arcsin), ("cos", 1.0, np.arccos), ("cos", -1.0, np.arccos)):
      if rule.allows_operator(token):
        yield Wave(token, sign * size, away, inverse(sign * wave))
  if rule.allows_operator("tan"):
    yield Wave("tan", 1.0, 0.0, np.arctan(y))


def find_product(logs: np.ndarray, principal: np.ndarray, config: WaveProductsConfig) -> list[float] | None:
  """Exponents [D] of a product that is the argument, but for a factor, in many rows; None where none is.

  Args:
    logs: [N, 1 + D], ones and the logarithms of columns; principal: values of the argument [N].
  """
  used = principal != 0
  logs, target = logs[used], np.log(np.abs(principal[used]))
  num_rows, num_unknowns = logs.shape
  if num_rows < config.rows_per_unknown * num_unknowns:
    return None
  rng = np.random.default_rng(0)
  drawn = np.argsort(rng.random((config.num_draws, num_rows)), axis=1)[:, :num_unknowns]
  found = np.linalg.pinv(logs[drawn]) @ target[drawn][..., None]
  away = np.abs(logs @ found[..., 0].T - target[:, None])
  for tolerance, share, nearly in zip(config.tolerances, config.least_shares, config.nearly, strict=True):
    agree = away < tolerance
    best = agree[:, np.argmax(agree.sum(axis=0))]
    if best.sum() >= max(config.rows_per_unknown * num_unknowns, share * num_rows):
      exponents = np.linalg.lstsq(logs[best], target[best], rcond=None)[0][1:]
      return [_simple(float(exponent), config.denominators, nearly) for exponent in exponents]
  return None


def _simple(exponent: float, denominators: Sequence[int], nearly: float) -> float:
  """The fraction of one of the denominators that is near, if one is."""
  near = [round(exponent * below) / below for below in denominators]
  return next((each for each in near if abs(each - exponent) < nearly), exponent)


def _formula(wave: Wave, monomial: Monomial, values: np.ndarray) -> Node:
  """With the factor that most rows agree on."""
  used = (wave.principal != 0) & (values != 0)
  ratios = wave.principal[used] / values[used]
  # Of those that agree the logarithms lie together: the narrowest quarter of all is among them.
  logs = np.log(np.abs(ratios))
  order = np.argsort(logs)
  size, logs = len(order) // 4 + 1, logs[order]
  begin = int(np.argmin(logs[size - 1 :] - logs[: len(logs) - size + 1]))
  factor = float(np.median(ratios[order[begin : begin + size]]))
  argument = Node("*", (to_node(monomial), number(factor)))
  return tidy(chain("+", [Node("*", (number(wave.size), Node(wave.token, (argument,)))), number(wave.away)]))
