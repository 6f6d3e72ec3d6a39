"""Other coordinates of two columns, in which a target is a sum or a product of functions of one column each.

`sqrt(9.81/x)*sqrt(tanh(x*y))` is no such product of x and y, but one of functions of x and of x*y; and
`x*y**x*exp(-y**x)` one of x and of y**x.
"""

from collections.abc import Iterator
import functools

import numpy as np

from symformer_jax.engine.config import CoordinatesConfig, SurrogateConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, variable
from symformer_jax.sources.links import LINKS
from symformer_jax.sources.reductions.additive_groups import fit_partition
from symformer_jax.sources.reductions.relations import is_of_size

_TOGETHER, _APART = ((0, 1),), ((0,), (1,))


@np.errstate(all="ignore")  # what is not finite is no sum
def find_coordinates(
  x: np.ndarray, y: np.ndarray, config: CoordinatesConfig, surrogate: SurrogateConfig
) -> tuple[int, Node] | None:
  """A function of both columns for one of them with which y, or its logarithm, is a sum of functions of one each.

  Args:
    x: [N, 2], y [N]: finite, not the same in all rows.

  Returns:
    `(the column that makes way, what takes its place)`; None where there is none, or y is such a sum already.
  """
  joined = list(_joined(x, config))
  some = np.random.default_rng(0).permutation(len(y))[: config.num_rows]
  x, y, brief = x[some], y[some], surrogate.with_steps(config.num_steps)
  ways: list[tuple[float, int, Node]] = []
  for link in (name for name in config.links if LINKS[name].is_defined(y)):
    tried = functools.partial(fit_partition, y=y, link=link, config=brief)
    whole, alone = tried(x, groups=_TOGETHER), tried(x, groups=_APART)
    if whole is None or whole.error > config.most_error:
      continue
    if alone is not None and alone.error <= max(config.most_worse * whole.error, config.fine):
      continue
    most = max(config.far_better * whole.error, config.fine)
    for column, node in joined:
      shown = x.copy()
      shown[:, column] = expression.evaluate(node, x)
      found = tried(shown, groups=_APART) if np.all(np.isfinite(shown)) and np.ptp(shown[:, column]) > 0 else None
      if found is not None and found.error <= most:
        ways.append((found.error, column, node))
  return min(ways, key=lambda way: way[0])[1:] if ways else None


def _joined(x: np.ndarray, config: CoordinatesConfig) -> Iterator[tuple[int, Node]]:
  """For each column its product, quotient, sum and difference with the other, and powers with that as the exponent."""
  for column, other in ((0, 1), (1, 0)):
    one, two = variable(column), variable(other)
    yield column, Node("*", (one, two))
    may_divide = np.all(x[:, other] != 0)
    if may_divide:
      yield column, Node("*", (one, Node("inv", (two,))))
    yield column, Node("+", (one, two))
    yield column, Node("+", (one, Node("neg", (two,))))
    for exponent in (two, Node("inv", (two,))) if may_divide else (two,):
      if is_of_size(x[:, column], expression.evaluate(exponent, x), config.largest_exponent):
        yield column, Node("pow", (one, exponent))
