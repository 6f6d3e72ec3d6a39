"""All short formulas with one inner constant, beside or as a factor of one without: by the tangent of each at some
constants.

`0.34*arctan(1/(y + 3.6))**3`, `4.6**y*tan(y) + x + y + 3`, `31*sin(0.88*x)**3/x**3`: a function of y is a sum of 1, the
columns, a formula G without constants, and G times a formula F of one constant. In the first order of that constant
the sum is linear: of some ten thousand F, each at sixteen constants, what the sum with F and its derivative
leaves of y on few rows is small for the right one and for few others, which are fitted. For exact data alone.
"""

from collections.abc import Hashable, Iterator, Sequence
import dataclasses
import functools
import heapq
import itertools
from typing import ClassVar, NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import DEFAULT, OneConstantConfig, SearchConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.language import expression, identities, programs
from symformer_jax.language.expression import Node, number
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import enumeration, formula_bank, views
from symformer_jax.sources.formula_bank import Bank
from symformer_jax.sources.links import LINKS, Link
from symformer_jax.sources.one_constant_families import PLAIN, Chunk, Families, Origin
from symformer_jax.sources.stateless import Stateless

_ONE = -1  # the place of the other formula where there is none


class Near(NamedTuple):
  """A family that comes near to a function of y.

  Attributes:
    taken: minus what it leaves, a share of what varies.
    origin, constant: which one, at what constant.
    other: place of G in the bank, or `_ONE`; link: place in the links.
  """

  taken: float
  origin: Origin
  constant: float
  other: int
  link: int


@dataclasses.dataclass(frozen=True)
class OneConstant(Stateless):
  """Formulas that data meet exactly, of all short ones with one inner constant."""

  config: SearchConfig = DEFAULT
  name: str = "one_constant"

  needs: ClassVar[tuple[str, ...]] = ("+", "*")

  @property
  def turns(self) -> tuple[int, ...]:
    own = self.config.one_constant
    return (own.num_asked,) * len(own.num_families)

  def _nodes(self, question: Question, turn: int, num: int) -> Sequence[Node]:
    task = question.task
    num_families = self.config.one_constant.num_families[turn]
    return formulas_of(task.fit_rows, task.columns, task.rule, num_families, self.config)[:num]


@np.errstate(all="ignore")  # what is not finite is left out
def formulas_of(
  rows: Rows, columns: Sequence[int], rule: Rule, num_families: int, config: SearchConfig = DEFAULT
) -> list[Node]:
  """Formulas that the rows meet exactly, the short ones first.

  Args:
    rows: what is fitted; columns: of x, those that formulas are made of; rule: the formulas that count.
    num_families: how many families of formulas are looked at.
  """
  own = config.one_constant
  varies = rows.varying(columns)
  is_rounded = views.is_rounded(rows.y, config.exact_fractions.num_digits)
  places = formula_bank.drawn(rows, own.num_rows, least_weight=config.enumeration.least_weight,
                              most_beyond=config.enumeration.most_beyond)
  if not 0 < len(varies) <= own.max_columns or len(places) < own.num_rows or is_rounded:
    return []
  operators = enumeration.operators_of(rule, config.enumeration.functions)
  leaves = formula_bank.leaves_of(rows.x, varies)
  bank = Bank(rows.x[places], leaves, numbers=config.enumeration.numbers, operators=operators,
              num_formulas=own.num_formulas, largest=config.enumeration.largest)
  links = [LINKS[name] for name in own.links if all(map(rule.allows_operator, LINKS[name].operators))]
  links = [link for link in links if link.is_defined(rows.y) and _varies(link.transform(rows.y[places]))]
  if not links:
    return []
  families = Families(bank, operators, num_families=num_families, config=own)
  few = _Few(bank, rows.x[places][:, varies], rows.y[places], links, own)
  nearest = few.nearest(families, num_families)
  # Polynomials with a constant more come near to whatever is smooth, in a narrow range as near as to rounding; through
  # few rows they go whatever those are.
  degree = max(min(own.most_constants, len(rows) // 2 - 1) // len(varies), 1)
  by_polynomials = enumeration.left_by_polynomials(rows, varies, degree)
  most, found = own.missed + enumeration.rounding(rows, config.enumeration), dict[Hashable, Node]()
  fit = _Fit(rows, varies, bank, families, links, own)
  for near, constant in itertools.islice(few.met(families, nearest), own.num_tried):
    node, num_constants = fit.node(near, constant)
    if node is None or by_polynomials[min(-(-num_constants // len(varies)), degree)] < own.beyond_polynomials * most:
      continue
    if programs.size(node) <= programs.MAX_TOKENS and rule(node) and enumeration.left(node, rows) < most:
      found.setdefault(programs.skeleton(node), node)
    if len(found) == own.num_met:
      break
  return sorted(found.values(), key=expression.complexity)


def _varies(values: np.ndarray) -> bool:
  return bool(np.isfinite(values).all() and np.ptp(values) > 0)


class _Few:
  """What families leave of y on few rows."""

  def __init__(self, bank: Bank, x: np.ndarray, y: np.ndarray, links: Sequence[Link], config: OneConstantConfig):
    self._bank, self._x, self._config = bank, x, config
    self._targets = np.stack([link.transform(y) for link in links])
    self._varied = np.sum((self._targets - np.mean(self._targets, axis=1, keepdims=True)) ** 2, axis=1)
    costs = bank.costs()
    others = np.flatnonzero(np.ptp(bank.values, axis=1) > 0)
    self._others = [_ONE, *others[np.argsort(costs[others], kind="stable")].tolist()]
    self._beside = functools.cache(self._made_beside)
    self._costs = {_ONE: 0, **{place: int(costs[place]) for place in self._others[1:]}}

  def nearest(self, families: Families, num_families: int) -> list[Near]:
    """Those of each length and link that leave least in the first order of their constants, the short ones first."""
    num, best = 0, dict[tuple[int, int], list[Near]]()
    for chunk in families:
      num += int(np.count_nonzero(chunk.origins[:, 0] != PLAIN))
      num_others = int(self._config.share_of_others * (num_families / max(num, 1)) ** 1.5)
      for other in self._others[: min(max(num_others, 1), self._config.most_others)]:
        heaps = [best.setdefault((chunk.cost + self._costs[other], link), []) for link in range(len(self._targets))]
        is_full = [len(heap) == self._config.num_of_each for heap in heaps]
        most_left = [-heap[0].taken if full else self._config.most_left
                     for heap, full in zip(heaps, is_full, strict=True)]
        for near in self._near(chunk, other, most_left):
          heap = heaps[near.link]
          (heapq.heappush if len(heap) < self._config.num_of_each else heapq.heappushpop)(heap, near)
    return [near for key in sorted(best) for near in sorted(best[key], reverse=True)]

  def met(self, families: Families, nearest: Sequence[Near]) -> Iterator[tuple[Near, float]]:
    """Those that meet the rows, and with which constant."""
    for near in nearest:
      interruption.check()
      left, constant = self._fitted(families, near)
      if left < self._config.met:
        yield near, constant

  def _made_beside(self, other: int) -> tuple[np.ndarray, np.ndarray]:
    """What there is of G times something [R, R'] and of the targets [R', L] beside 1, the columns and G."""
    factor = np.ones(len(self._x)) if other == _ONE else self._bank.values[other]
    basis = np.column_stack([np.ones(len(self._x)), self._x, *([] if other == _ONE else [factor])])
    most = np.max(np.abs(basis), axis=0)  # a column may be 0 in all rows that were drawn
    vectors, sizes, _ = np.linalg.svd(basis / np.where(most > 0, most, 1), full_matrices=True)
    beyond = vectors[:, np.sum(sizes > 1e-9 * sizes[0]) :]
    return factor[:, None] / np.max(np.abs(factor)) * beyond, beyond.T @ self._targets.T

  def _near(self, chunk: Chunk, other: int, most_left: Sequence[float]) -> list[Near]:
    """The nearest of some families by each link, which leave less than so much."""
    some = np.flatnonzero(chunk.is_used)
    places, which = np.nonzero(np.isfinite(chunk.values[some, :, 0]))
    if not len(places):
      return []
    beyond, targets = self._beside(other)
    beyond, targets = beyond.astype(np.float32), (targets / np.linalg.norm(targets, axis=0)).astype(np.float32)
    by_value, left = np.full((2, *chunk.constants[some].shape, targets.shape[1]), np.inf, dtype=np.float32)
    usable = some[places], which
    by_value[places, which], left[places, which] = _left(chunk.values[usable], chunk.slopes[usable], beyond, targets)
    least = np.min(left, axis=1)
    # Of a wave the first order is right at any phase: where the value alone is nearest the step is shortest.
    at = np.argmin(np.where(left <= self._config.as_near * least[:, None] + 1e-6, by_value, np.inf), axis=1)
    found = []
    for link, shares in enumerate(least.T):
      for family in np.argsort(shares, kind="stable")[: self._config.num_nearest].tolist():
        if not shares[family] < most_left[link]:
          break
        constant = float(chunk.constants[some[family], at[family, link]])
        origin = Origin(*chunk.origins[some[family]].tolist())
        found.append(Near(-float(shares[family]), origin, constant, other, link))
    return found

  def _fitted(self, families: Families, near: Near) -> tuple[float, float]:
    """`(share left, constant)` by steps of Gauss and Newton, the outer constants being those that fit best."""
    beyond, targets = self._beside(near.other)
    target, varied = targets[:, near.link], self._varied[near.link]
    best, constant, tried = np.inf, near.constant, near.constant
    for step in range(self._config.num_steps):
      values, slopes = families.at(near.origin, tried, self._bank.values.__getitem__)
      left, change = _step(values @ beyond, slopes @ beyond, target)
      if left < best:
        best, constant, tried = left, tried, tried + change
      else:
        tried = (tried + constant) / 2
      if best < 1e-4 * self._config.met * varied or not np.isfinite(tried) or tried == constant:
        break
      if step + 1 >= self._config.num_trial_steps and best > self._config.most_after_trial * varied:
        break
    return best / varied, constant


def _left(
  values: np.ndarray, slopes: np.ndarray, beyond: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Shares of targets [R', L] that a*value and a*value + b*slope leave, beside what `beyond` [R, R'] is orthogonal to:
  [M, L] each.

  Args:
    values, slopes: [M, R].
  """
  values = (values / np.max(np.abs(values), axis=1, keepdims=True)) @ beyond
  slopes = (slopes / np.maximum(np.max(np.abs(slopes), axis=1, keepdims=True), 1e-30)) @ beyond  # 0 without a constant
  size = np.einsum("ij,ij->i", values, values)
  slopes -= (np.einsum("ij,ij->i", values, slopes) / np.maximum(size, 1e-30))[:, None] * values
  rest = np.einsum("ij,ij->i", slopes, slopes)
  by_value = 1 - np.where(size > 1e-9, 1 / np.maximum(size, 1e-30), 0)[:, None] * (values @ targets) ** 2
  return by_value, by_value - np.where(rest > 1e-10, 1 / np.maximum(rest, 1e-30), 0)[:, None] * (slopes @ targets) ** 2


def _step(values: np.ndarray, slopes: np.ndarray, target: np.ndarray) -> tuple[float, float]:
  """`(sum of squares left by a*values, change of the constant)`, slopes being the derivative of values: [R] each."""
  size = values @ values
  factor = values @ target / size
  rest = target - factor * values
  slopes = factor * (slopes - slopes @ values / size * values)
  left = float(rest @ rest)
  return left if np.isfinite(left) else np.inf, float(rest @ slopes / (slopes @ slopes))


class _Fit:
  """Formulas that are fitted to all rows."""

  def __init__(self, rows: Rows, columns: Sequence[int], bank: Bank, families: Families, links: Sequence[Link],
               config: OneConstantConfig):
    self._rows, self._bank, self._families, self._links, self._config = rows, bank, families, links, config
    self._plain = [number(1.0), *map(expression.variable, columns)]
    self._at = functools.cache(lambda place: expression.evaluate(bank.node(place), rows.x))

  def node(self, near: Near, constant: float) -> tuple[Node | None, int]:
    """The formula with the constants that fit all rows, errors being those of y, and how many there are; none where it
    is not defined.
    """
    others = [] if near.other == _ONE else [self._bank.node(near.other)]
    plain = [*self._plain, *others]
    fitted = self._fitted(near, constant, plain)
    if fitted is None:
      return None, 0
    constant, columns, target = fitted
    family = functools.reduce(lambda a, b: Node("*", (a, b)), [*others, self._families.node(near.origin, constant)])
    terms = _terms([*plain, family], columns, target, self._config)
    node = tidy(functools.reduce(lambda a, b: Node("+", (a, b)), terms))
    return tidy(identities.to_single_fractions(tidy(self._links[near.link].undo(node)))), len(terms) + 1

  def _fitted(
    self, near: Near, constant: float, plain: Sequence[Node]
  ) -> tuple[float, np.ndarray, np.ndarray] | None:
    """The constant, what is summed and the sum, rows by what they count, where they are defined."""
    link, num = self._links[near.link], len(plain)
    target, roots = link.transform(self._rows.y), np.sqrt(self._rows.weights) / link.derivative(self._rows.y)
    factor = np.ones_like(target) if near.other == _ONE else self._at(near.other)
    basis = np.column_stack([expression.evaluate(node, self._rows.x) for node in plain])
    best, tried, fitted = np.inf, constant, None
    for _ in range(self._config.num_trial_steps):
      values, slopes = self._families.at(near.origin, tried, self._at)
      all_rows = roots[:, None] * np.column_stack([basis, factor * values, factor * slopes, target])
      usable = np.isfinite(all_rows).all(axis=1)
      if np.sum(usable) < self._config.num_rows:
        break
      weighted = all_rows[usable]
      orthogonal = np.linalg.qr(weighted[:, :num] / np.max(np.abs(weighted[:, :num]), axis=0))[0]
      left, change = _step(*(weighted[:, num:] - orthogonal @ (orthogonal.T @ weighted[:, num:])).T)
      if not left < best:
        break
      constant = self._whole(near, tried, usable)
      best, fitted, tried = left, (constant, weighted[:, : num + 1], weighted[:, -1]), tried + change
    return fitted

  def _whole(self, near: Near, constant: float, usable: np.ndarray) -> float:
    """The constant, or the whole number that it is but for rounding."""
    whole = float(round(constant))
    values, rounded = (self._families.at(near.origin, each, self._at)[0][usable] for each in (constant, whole))
    return whole if np.max(np.abs(rounded - values)) < self._config.whole * np.ptp(values) else constant


def _terms(nodes: Sequence[Node], columns: np.ndarray, target: np.ndarray, config: OneConstantConfig) -> list[Node]:
  """Terms of the sum that fits, without those that are nothing but rounding; factors of 1 as such."""
  used = list(range(len(nodes)))
  factors = _factors(columns, target)
  while len(used) > 1:
    shares = np.abs(factors) * np.max(np.abs(columns[:, used]), axis=0)
    if np.min(shares) >= config.idle * np.max(shares):
      break
    fewer = [place for place, share in zip(used, shares, strict=True) if share > np.min(shares)]
    without = _factors(columns[:, fewer], target)
    # What is small beside others is not nothing where leaving it out is seen.
    if np.max(np.abs(columns[:, fewer] @ without - target)) > config.idle_error * np.max(np.abs(target)):
      break
    used, factors = fewer, without
  plain = [1.0 if abs(factor - 1) < config.idle else float(factor) for factor in factors]
  return [Node("*", (nodes[place], number(factor))) for place, factor in zip(used, plain, strict=True)]


def _factors(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
  sizes = np.max(np.abs(columns), axis=0)
  return np.linalg.lstsq(columns / sizes, target, rcond=None)[0] / sizes
