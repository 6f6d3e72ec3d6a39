"""A table in other columns than the user's: how it is made of his rows, and how its formulas come back."""

from collections.abc import Mapping, Sequence
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, number, power, substitute, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.monomials import Monomial, to_node


class Added(NamedTuple):
  """What is subtracted from y, in the user's columns."""

  node: Node


class Reduced(NamedTuple):
  """A table of fewer columns, or of others.

  Attributes:
    x: [N, D'], y: [N]; of the rows that the surrogate goes through.
    columns: each in the user's columns.
    steps: how y came from the user's, the first first: what it was divided by, in the user's columns, what was
      subtracted, or the name of a link that it was a function by.
    error: of rows left out, the median, in spreads of the user's y, the largest on the way from the user's table;
      infinite where nobody has looked.
  """

  x: np.ndarray
  y: np.ndarray
  columns: tuple[Node, ...]
  steps: tuple[Node | Added | str, ...] = ()
  error: float = math.inf

  @property
  def is_usable(self) -> bool:
    """Whether all values are finite, and none is the same in all rows."""
    return bool(np.all(np.isfinite(self.x)) and np.all(np.isfinite(self.y)) and np.ptp(self.y) > 0
                and np.all(np.ptp(self.x, axis=0) > 0))

  def of(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same table of the user's rows x [N, D], y [N]: its x [N, D'], its y [N], and what an error of that makes of
    the user's y [N]."""
    scale = np.ones(len(y))
    for step in self.steps:
      if isinstance(step, str):
        scale, y = scale / LINKS[step].derivative(y), LINKS[step].transform(y)
      elif isinstance(step, Added):
        y = y - expression.evaluate(step.node, x)
      else:
        by = expression.evaluate(step, x)
        scale, y = scale * by, y / by
    return np.column_stack([expression.evaluate(node, x) for node in self.columns]), y, scale

  def restore(self, form: Node) -> Node:
    """A formula of this table in the user's columns."""
    node = substitute(form, dict(enumerate(self.columns)))
    for step in reversed(self.steps):
      if isinstance(step, str):
        node = LINKS[step].undo(node)
      else:
        node = chain("+", [node, step.node]) if isinstance(step, Added) else chain("*", [node, step])
    return tidy(node)

  def with_places(self, place: Mapping[int, int]) -> "Reduced":
    """Of a user's table whose columns have other places."""
    def moved(step: Node | Added | str) -> Node | Added | str:
      if isinstance(step, Added):
        return Added(expression.with_columns(step.node, place))
      return step if isinstance(step, str) else expression.with_columns(step, place)

    return self._replace(columns=tuple(expression.with_columns(node, place) for node in self.columns),
                         steps=tuple(map(moved, self.steps)))

  def behind(self, name: str, slopes: np.ndarray) -> tuple["Reduced", np.ndarray]:
    """The function of y that a link is by, and its slopes."""
    link, y = LINKS[name], self.y
    shown = link.transform(y)
    sign = np.sign(shown[np.argmax(y)] - shown[np.argmin(y)])  # links are monotonic
    return self._replace(y=shown, steps=(*self.steps, name)), slopes * (sign * link.derivative(y))[:, None]

  def with_logarithms(self, some: Sequence[int]) -> "Reduced":
    """With the logarithms of some columns in their place."""
    x, columns = self.x.copy(), list(self.columns)
    for column in some:
      x[:, column], columns[column] = np.log(x[:, column]), tidy(Node("ln", (columns[column],)))
    return self._replace(x=x, columns=tuple(columns))

  def with_column(self, place: int, node: Node) -> "Reduced":
    """With a function of the columns, a tree, in the place of one of them."""
    x, columns = self.x.copy(), list(self.columns)
    x[:, place] = expression.evaluate(node, self.x)
    columns[place] = tidy(substitute(node, dict(enumerate(self.columns))))
    return self._replace(x=x, columns=tuple(columns))


class Change(NamedTuple):
  """A relation of slopes, and the columns for which it is none any more.

  Attributes:
    error: median share of what it leaves at a row.
    dropped: the column that is needed no more.
    replaced: new columns in the place of others, and their derivatives by those [N].
    divisor: what y is divided by.
    is_simple: whether all its numbers are simple ones, which are known exactly.
    summand: what is subtracted from y.
    constant: what is subtracted from y before it is divided.
    shift: what is subtracted from the column of a divisor that has one.
  """

  error: float
  dropped: int
  replaced: Mapping[int, tuple[Node, np.ndarray]]
  divisor: Monomial = ()
  is_simple: bool = True
  summand: Node | None = None
  constant: float = 0.0
  shift: float = 0.0

  @property
  def has_number(self) -> bool:
    """Whether a number in a column, or beside a factor, is known to some digits only."""
    return not self.is_simple and bool(self.replaced or self.constant)

  @property
  def divided_by(self) -> Node:
    """What y is divided by, in the table's columns."""
    if not self.shift:
      return to_node(self.divisor)
    [(column, exponent)] = self.divisor
    return tidy(power(Node("+", (variable(column), number(-self.shift))), number(exponent)))

  @property
  def complexity(self) -> int:
    """Nodes of what takes the place of columns and stands before the function."""
    nodes = [node for node, _ in self.replaced.values()] + ([self.divided_by] if self.divisor else [])
    nodes += [] if self.summand is None else [self.summand]
    nodes += [number(self.constant)] if self.constant else []
    return sum(map(expression.complexity, nodes))

  @property
  def key(self) -> tuple:
    """The same for the same change."""
    replaced = tuple((column, node) for column, (node, _) in self.replaced.items())
    return self.dropped, self.divisor, self.summand, self.constant, self.shift, replaced

  def apply(self, table: Reduced, slopes: np.ndarray) -> tuple[Reduced, np.ndarray]:
    """The smaller table, and its slopes."""
    by = expression.evaluate(self.divided_by, table.x)
    x, steepness, columns = table.x.copy(), np.ones_like(table.x), list(table.columns)
    inner = dict(enumerate(table.columns))
    for column, (node, derivative) in self.replaced.items():
      x[:, column] = expression.evaluate(node, table.x)
      steepness[:, column] = derivative
      columns[column] = tidy(substitute(node, inner))
    del columns[self.dropped]
    steps, y = list(table.steps), (table.y - self.constant) / by
    if self.constant:
      steps.append(Added(number(self.constant)))
    if self.divisor:
      steps.append(tidy(substitute(self.divided_by, inner)))
    if self.summand is not None:
      steps.append(Added(tidy(substitute(self.summand, inner))))
      y = y - expression.evaluate(self.summand, table.x)
    smaller = Reduced(np.delete(x, self.dropped, axis=1), y, tuple(columns), tuple(steps))
    return smaller, np.delete(slopes / steepness / by[:, None], self.dropped, axis=1)


def whole(x: np.ndarray, y: np.ndarray) -> Reduced:
  """The user's table itself: x [N, D], y [N]."""
  return Reduced(x, y, tuple(map(variable, range(x.shape[1]))))
