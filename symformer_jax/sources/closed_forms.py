"""The mean, straight lines, what is a straight line in logarithms, also beside exponentials, and waves beside straight
lines: what any formula is measured against.
"""

from collections.abc import Sequence, Set
import dataclasses
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, ClosedFormsConfig, PowerSumsConfig, SearchConfig
from symformer_jax.engine.pool import Candidate
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Proposal, Question
from symformer_jax.engine.task import Task
from symformer_jax.language import expression, identities
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.rules import Rule
from symformer_jax.language.tidy import tidy
from symformer_jax.sources import linear_exponents, logarithms_of_sums, plain_waves, power_sums, sigmoids
from symformer_jax.sources.exponential_products import products_with_exponentials
from symformer_jax.sources.links import LINKS

# A line that leaves no more than this share of the size of y is exact: less is rounding.
EXACT = 1e-12
# Of larger ones the exponential is out of range.
LARGEST_EXPONENT = 300.0


@dataclasses.dataclass(frozen=True)
class ClosedForms:
  """All of them by least squares; they need no model, and lines no fit."""

  config: SearchConfig = DEFAULT
  name: str = "closed_forms"
  turns: tuple[int, ...] = (1,)

  def supports(self, task: Task) -> bool:
    return True

  def init(self, task: Task, key: jax.Array) -> Any:
    return None

  def propose(self, questions: Sequence[Question], *, turn: int, num: int, clock: Clock) -> list[Proposal]:
    return [self._proposal(question.task) for question in questions]

  def _proposal(self, task: Task) -> Proposal:
    rows, config = task.fit_rows, self.config.closed_forms
    lines = tuple(Candidate(node, _mse(node, rows), self.name)
                  for node in fit(rows, task.columns, required=task.rule.required))
    logarithms = log_linear(rows, task.columns, config) if config.has_logarithms else []
    has_exponentials = config.has_exponentials and all(map(task.rule.allows_operator, ("exp", "pow", "*")))
    products = products_with_exponentials(rows, task.columns, config.exponentials) if has_exponentials else []
    has_sigmoids = config.has_sigmoids and all(map(task.rule.allows_operator, ("exp", "inv", "pow", "*", "+")))
    curves = sigmoid_curves(rows, task.columns, config) if has_sigmoids else []
    has_powers = config.has_powers and all(map(task.rule.allows_operator, ("pow", "*", "+")))
    powers = power_sums_of_one(rows, task.columns, task.rule, config.powers) if has_powers else []
    has_inner = config.has_linear_exponents and all(map(task.rule.allows_operator, ("exp", "pow", "*", "+")))
    inner = linear_exponents.products_of(rows, task.columns, task.rule, config.linear_exponents) if has_inner else []
    has_logs = config.has_logarithms_of_sums and all(map(task.rule.allows_operator, ("ln", "inv", "*", "+")))
    logs = logarithms_of_sums.sums_of(rows, task.columns, task.rule, config.logarithms_of_sums) if has_logs else []
    tokens = [token for token in ("cos", "sin") if config.has_waves and task.rule.allows_operator(token)]
    waves = plain_waves.waves_beside_lines(rows, task.columns, config.waves, token=tokens[0]) if tokens else ()
    return Proposal(candidates=lines, nodes=(*logarithms, *products, *powers, *curves, *inner, *logs, *waves))


def _mse(node: Node, rows: Rows) -> float:
  return float(np.average((expression.evaluate(node, rows.x) - rows.y) ** 2, weights=rows.weights))


def fit(rows: Rows, columns: Sequence[int], *, required: Set[int] = frozenset()) -> list[Node]:
  """What most generators would not propose, by weighted least squares: the mean, the straight line of some columns,
  and, where fewer of them describe the data in less (see `_sparse`), the straight line of those.

  Terms that are rounding, in no row more than `EXACT` of the largest value of their line, are left out, and so are
  columns that are the same in all rows, which the constant makes up for, but for those that are required.
  """
  mean = number(float(np.average(rows.y, weights=rows.weights)))
  varying = rows.varying(columns)
  columns = [i for i in columns if i in varying or i in required and rows.x[:, i].any()]
  lines = []
  for line in _lines(rows.x[:, columns], rows.y, rows.weights):
    terms = [_term(variable(columns[i]), factor) for i, factor in line.factors.items() if factor]
    constant = [] if line.constant is None else [number(line.constant)]
    lines += [chain("+", [*terms, *constant])] if terms else []
  return [mean, *dict.fromkeys(lines)]


@np.errstate(all="ignore")  # what is not finite is left out
def log_linear(rows: Rows, columns: Sequence[int], config: ClosedFormsConfig) -> list[Node]:
  """Products of powers of columns, exponentials of straight lines, and products of both and of exponentials of
  inverses, for constants that are still to be fitted: straight lines of the logarithm of a y that has one sign, but
  for errors.

  A row's error counts by y**2 besides, as that of a logarithm is one of y.
  """
  sign = math.copysign(1.0, rows.y[np.argmax(np.abs(rows.y))])
  size, link = sign * rows.y, LINKS["exp"]
  if not link.is_defined(size) or np.ptp(size) == 0:
    return []
  target, weights = link.transform(size), rows.weights / (size.max() * link.derivative(size)) ** 2
  plain = rows.varying(columns)
  positive = [i for i in plain if np.all(rows.x[:, i] > 0)]
  powers, lines = [Node("ln", (variable(i),)) for i in positive], [*map(variable, plain)]
  mixed = [*powers, *lines, *(Node("inv", (variable(i),)) for i in positive)]
  found = []
  for terms, is_whole in ((powers, True), (lines, True), (mixed, False)):
    interruption.check()
    columns_of_terms = {node: expression.evaluate(node, rows.x) for node in terms}
    usable = {node: values for node, values in columns_of_terms.items() if np.isfinite(np.linalg.norm(values))}
    if usable and rows.num_distinct >= config.rows_per_term * len(usable):
      lines_of_terms = _lines(np.stack(list(usable.values()), axis=1), target, weights)
      found += [(list(usable), line) for line in lines_of_terms[0 if is_whole else 1 :]]
  made = (_product(terms, line, sign) for terms, line in found if line.factors)
  return list(dict.fromkeys(node for node in made if node is not None))


@np.errstate(all="ignore")  # what is not finite is left out
def sigmoid_curves(rows: Rows, columns: Sequence[int], config: ClosedFormsConfig) -> list[Node]:
  """Logistic, Gompertz and Weibull curves of straight lines (see `sigmoids`), of all terms and of those that matter,
  for constants that are still to be fitted.
  """
  made = []
  for told in sigmoids.told_lines(rows, columns, config.sigmoids):
    usable, target, weights = sigmoids.line_of(told.curve, told.largest, rows, config.sigmoids)
    values = np.column_stack([expression.evaluate(node, rows.x[usable]) for node in told.terms])
    for line in _lines(values, target, weights):
      for some in (_with_whole_exponents(line, told.terms, config.sigmoids.nearly_whole), line):
        exponential = _product(told.terms, some, 1.0) if some.factors else None
        if exponential is not None:
          curve = tidy(Node("*", (told.curve.of(exponential), number(told.largest))))
          made.append(tidy(identities.to_single_fractions(curve)))  # 2*x/(x + 0.5) rather than 4/(1/x + 2)
  return list(dict.fromkeys(made))


@np.errstate(all="ignore")  # what is not finite is left out
def power_sums_of_one(rows: Rows, columns: Sequence[int], rule: Rule, config: PowerSumsConfig) -> list[Node]:
  """Of y, and of functions of it, the sums of powers of the only column that leave nothing (see `power_sums`)."""
  varies = rows.varying(columns)
  if len(varies) != 1 or rows.num_distinct < config.rows_per_term * (power_sums.NUM_POWERS + 1):
    return []
  [column], x = varies, rows.x[:, varies[0]]
  made = []
  for link in map(LINKS.__getitem__, config.links):
    if not (np.all(x > 0) and link.is_defined(rows.y) and all(map(rule.allows_operator, link.operators))):
      continue
    y = link.transform(rows.y)
    if exponents := power_sums.nearest_powers(x, y, rows.weights, config):
      terms = [power(variable(column), number(exponent)) for exponent in exponents]
      line = _lines(np.column_stack([expression.evaluate(term, rows.x) for term in terms]), y, rows.weights)[0]
      parts = [_term(terms[i], factor) for i, factor in line.factors.items()]
      made.append(link.undo(chain("+", [*parts, *([] if line.constant is None else [number(line.constant)])])))
  return list(dict.fromkeys(made))


def _with_whole_exponents(line: "_Line", terms: Sequence[Node], most_apart: float) -> "_Line":
  """With whole numbers, but for 0, in the place of factors of logarithms that are near them."""
  factors = {i: float(round(factor)) if terms[i].token == "ln" and abs(round(factor)) > 0 and
             abs(factor - round(factor)) <= most_apart else factor for i, factor in line.factors.items()}
  return line._replace(factors=factors)


def _product(terms: Sequence[Node], line: "_Line", sign: float) -> Node | None:
  """The exponential of a straight line of terms, a logarithm of a column as its power; None where its size is out of
  range.
  """
  powers = [power(terms[i].args[0], number(factor)) for i, factor in line.factors.items() if terms[i].token == "ln"]
  others = [_term(terms[i], factor) for i, factor in line.factors.items() if terms[i].token != "ln"]
  constant = line.constant or 0.0
  if abs(constant) < LARGEST_EXPONENT:
    parts = [number(sign * math.exp(constant)), *powers, *([Node("exp", (chain("+", others),))] if others else [])]
    return tidy(chain("*", parts))
  if not others:
    return None
  # Of years: exp(0.5*year - 1005).
  return tidy(chain("*", [number(sign), *powers, Node("exp", (chain("+", [*others, number(constant)]),))]))


class _Line(NamedTuple):
  """A straight line.

  Attributes:
    factors: by the place of a column; constant: None where it is rounding.
  """

  factors: dict[int, float]
  constant: float | None


def _lines(values: np.ndarray, y: np.ndarray, weights: np.ndarray) -> list[_Line]:
  """The line of all columns [N, D], and that of those that describe y [N] in least."""
  design = np.column_stack([values, np.ones(len(y))])
  # Columns of unit length: the rank decision of lstsq must not depend on units.
  scale = np.linalg.norm(design, axis=0)
  root = np.sqrt(weights)
  weighted = root[:, None] * design / scale
  # Every subset of the columns has the sums of squares of the rows of this triangle.
  triangle: Any = np.linalg.qr(np.column_stack([weighted, root * y]), mode="r")
  everything = list(range(values.shape[1]))
  lines = []
  for some in (everything, _sparse(triangle, everything, int(np.sum(weights > 0)))):
    some = [i for i, is_there in zip(some, _are_there(weighted, triangle, some), strict=False) if is_there]
    solution = _solve(triangle, some)[0] / scale[[*some, -1]]
    has_constant = _are_there(weighted, triangle, some)[-1]
    lines.append(_Line(dict(zip(some, map(float, solution), strict=False)),
                       float(solution[-1]) if has_constant else None))
  return lines


def _term(node: Node, factor: float) -> Node:
  """A multiple, or the node itself where the rest is rounding."""
  return node if abs(factor - 1) <= EXACT else Node("*", (node, number(factor)))


def _are_there(weighted: np.ndarray, triangle: np.ndarray, some: Sequence[int]) -> np.ndarray:
  """Which terms of a line of some columns, the constant the last, are more than rounding [len(some) + 1]; `weighted`:
  the columns that `triangle` is made of [N, D + 1].
  """
  terms = weighted[:, [*some, -1]] * _solve(triangle, some)[0]
  return np.max(np.abs(terms), axis=0) > EXACT * np.max(np.abs(np.sum(terms, axis=1)))


def _solve(triangle: np.ndarray, some: Sequence[int]) -> tuple[np.ndarray, float]:
  """Coefficients of some columns and of the constant, the last, and the sum of squares that they leave."""
  design, y = triangle[:, [*some, -2]], triangle[:, -1]
  solution = np.linalg.lstsq(design, y, rcond=None)[0]
  return solution, float(np.sum((y - design @ solution) ** 2))


def _sparse(triangle: np.ndarray, columns: Sequence[int], num_rows: int) -> list[int]:
  """The columns that are left where the least needed ones are left out one after the other, as many as give the least
  Bayesian information criterion (Schwarz 1978).
  """
  floor = EXACT**2 * float(np.sum(triangle[:, -1] ** 2))

  def criterion(some: Sequence[int]) -> float:
    left = max(_solve(triangle, some)[1], floor, np.finfo(float).tiny)
    return num_rows * math.log(left) + len(some) * math.log(num_rows)

  path = [list(columns)]
  while path[-1]:
    shorter = ([i for i in path[-1] if i != out] for out in path[-1])
    path.append(min(shorter, key=lambda some: _solve(triangle, some)[1]))
  return min(reversed(path), key=criterion)
