"""What a composition may be a multiple of, but for a constant: y, functions of y, these of y over powers of columns."""

from collections.abc import Iterator, Sequence
import itertools
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import CompositionsConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language.expression import Node, chain, evaluate, negate, number
from symformer_jax.language.rules import Rule, is_writable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.monomials import Monomial, Values, monomials, to_node
from symformer_jax.sources.sums import terms

# Of what is left beside a constant, what a column leaves of it at the least: less is rounding.
ROUNDING = 1e-12
# Weights are brought nearer to one another by these powers till rows enough count.
TEMPERS = (1.0, 0.5, 0.25, 0.0)


class Kind(NamedTuple):
  """A function of y over a product of powers, or of the opposite of that, as a sum.

  Attributes:
    link: of `LINKS`; divisor: of y; is_opposite: whether the opposite is meant.
    beside: a column that stands beside the composition; none for ().
  """

  link: str
  divisor: Monomial
  is_opposite: bool
  beside: Monomial

  def target(self, rows: Rows) -> tuple[np.ndarray, np.ndarray] | None:
    """Its values [N], and weights [N] with which their errors count as those of y do; None where some are undefined."""
    by = Values(rows.x)([self.divisor])[:, 0] * (-1 if self.is_opposite else 1)
    y = rows.y / by
    if not np.all(np.isfinite(y)) or not LINKS[self.link].is_defined(y):
      return None
    z, weights = terms.weighted(LINKS[self.link], Rows(rows.x, y, rows.weights * by**2))
    return (z, weights) if np.all(np.isfinite(z)) and np.all(np.isfinite(weights)) and np.ptp(z) > 0 else None

  def write(self, composition: Node, rows: Rows) -> Node | None:
    """y by a composition, with the factors that fit some rows best; None where it is undefined there."""
    target = self.target(rows)
    parts = [composition, *([to_node(self.beside)] if self.beside else [])]
    columns = [evaluate(part, rows.x) for part in parts]
    sizes = [float(np.max(np.abs(column))) for column in columns]
    if target is None or not all(np.isfinite(size) and size > 0 for size in sizes):
      return None
    scaled = np.stack([column / size for column, size in zip(columns, sizes, strict=True)], axis=1)
    *factors, constant = terms.least_squares(scaled, *target)
    multiples = [Node("*", (part, number(float(factor / size))))
                 for part, factor, size in zip(parts, factors, sizes, strict=True)]
    of_sum = LINKS[self.link].undo(chain("+", [*multiples, number(float(constant))]))
    quotient = negate(of_sum) if self.is_opposite else of_sum
    return tidy(Node("*", (quotient, to_node(self.divisor))) if self.divisor else quotient)


class Goal(NamedTuple):
  """A kind at the rows of a data set.

  Attributes:
    root: of each row's weight [N], their squares adding up to 1.
    basis: a constant and the column beside, orthonormal, times `root` [2, N]; 0 where there is no column.
    rest: the function of y, times `root`, without its part along the basis [N], in a unit in which its square is 1.
  """

  kind: Kind
  root: np.ndarray
  basis: np.ndarray
  rest: np.ndarray


@np.errstate(all="ignore")  # what is not finite is left out
def find_goals(rows: Rows, columns: Sequence[int], rule: Rule, config: CompositionsConfig) -> list[Goal]:
  """Goals that the rows define and the rule allows, the plainer ones first."""
  goals = (make_goal(kind, rows, config) for kind in _kinds(rows, columns, rule, config))
  return list(itertools.islice((goal for goal in goals if goal is not None), config.max_goals))


def _kinds(rows: Rows, columns: Sequence[int], rule: Rule, config: CompositionsConfig) -> Iterator[Kind]:
  """All that may be asked whose operators the rule allows: y and functions of it, with columns beside them, then of its
  quotients, those by the first power of all columns before those by the second.
  """
  links = [name for name in config.links if all(map(rule.allows_operator, LINKS[name].operators))]
  some = {"beside": [name for name in links if name in config.links_beside],
          "pairs": [name for name in links if name in config.pair_links]}
  singles, pairs = ([monomial for monomial in monomials(columns, size, powers) if is_writable(to_node(monomial), rule)]
                    for size, powers in ((1, config.powers), (2, config.pair_powers)))
  linear = monomials(columns, 1, (1.0,))
  asked: list[tuple[str, Monomial, Monomial]] = [(link, divisor, ()) for divisor in ((), *singles) for link in links]
  asked += [(link, divisor, ()) for divisor in pairs for link in some["pairs"]]
  asked += [(link, divisor, beside) for divisor in ((), *singles) for link in some["beside"] for beside in linear]
  rank = {power: i for i, power in enumerate(dict.fromkeys((*config.powers, *config.pair_powers)))}
  by = Values(rows.x)

  def last_rank(kind: tuple[str, Monomial, Monomial]) -> int:
    _, divisor, _ = kind
    return max((rank[power] for _, power in divisor), default=-1)

  for link, divisor, beside in sorted(asked, key=last_rank):
    quotient = rows.y / by([divisor])[:, 0]
    yield Kind(link, divisor, bool(np.all(quotient <= 0)), beside)


def make_goal(kind: Kind, rows: Rows, config: CompositionsConfig) -> Goal | None:
  """A kind at some rows; None where it is undefined, or where few of the rows make all of its variance."""
  target = kind.target(rows)
  if target is None:
    return None
  z, weights = target
  root = np.sqrt(_tempered(weights, config.least_weighted))
  columns = [root, *([root * Values(rows.x)([kind.beside])[:, 0]] if kind.beside else [])]
  basis = np.zeros((2, len(z)))
  basis[: len(columns)] = np.linalg.qr(np.column_stack(columns))[0].T
  around = root * (z - np.sum(root**2 * z)) / np.max(np.abs(z))
  rest = around - basis.T @ (basis @ around)
  variance, left = np.sum(around**2), np.sum(rest**2)
  if not (np.isfinite(variance) and left > ROUNDING * variance and num_rows(rest**2) >= config.least_rows * len(z)):
    return None
  return Goal(kind, root, basis, rest / np.sqrt(left))


def _tempered(weights: np.ndarray, least: float) -> np.ndarray:
  """Weights [N] that add up to 1, nearer to one another where else fewer than a share of the rows count; at the last
  all alike, those of 0 too.
  """
  for temper in TEMPERS:
    shares = weights**temper
    if num_rows(shares) >= least * len(weights):
      break
  return shares / shares.sum()


def num_rows(shares: np.ndarray) -> float:
  """How many rows make a sum of shares [N] >= 0: their number where all are alike, 1 where one is all (Kish 1965)."""
  return float(shares.sum() ** 2 / np.sum(shares**2))
