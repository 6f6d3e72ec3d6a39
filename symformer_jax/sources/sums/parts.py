"""Parts of formulas as columns: terms of sums, and what stands inside."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from symformer_jax.engine.config import TermsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, complexity, flatten, variable
from symformer_jax.selection import scoring
from symformer_jax.sources.sums import families, pursuit


class Parts:
  """Distinct parts of candidates."""

  def __init__(self, nodes: Sequence[Node], x: np.ndarray, variables: Iterable[int], config: TermsConfig):
    self._x, self._config = x, config
    self._found: dict[bytes, tuple[Node, np.ndarray, float]] = {}
    self._seen: set[Node] = set()
    self._collect((variable(i) for i in variables), x.shape[1])
    self._collect((term for node in nodes for term in flatten(node, "+")), config.max_outer)
    self._collect((term for node in nodes for part in _subtrees(node) for term in flatten(part, "+")),
                  config.max_inner)
    found = self._found.values()
    self._nodes = [node for node, _, _ in found]
    self.columns = np.stack([column for _, column, _ in found], axis=1) if found else np.zeros((len(x), 0))
    self.groups, self.tiers = np.arange(len(found)), np.full(len(found), families.ANY)
    self._scales = [scale for _, _, scale in found]

  def node(self, index: int) -> Node:
    return self._nodes[index]

  def scale(self, index: int) -> float:
    return self._scales[index]

  def _collect(self, terms: Iterable[Node], at_most: int) -> None:
    end = len(self._found) + at_most
    for term in terms:
      if len(self._found) == end:
        return
      bare = _without_factor(term)
      if bare is not None and bare not in self._seen:
        self._seen.add(bare)
        if complexity(bare) <= self._config.max_part_nodes:
          self._add(bare)

  def _add(self, node: Node) -> None:
    values = scoring.evaluate(node, self._x)
    largest = values[np.argmax(np.abs(values))]  # NaN where there is one
    if not np.isfinite(largest) or np.ptp(values) <= pursuit.INDEPENDENT * abs(largest):
      return
    # Up to a factor the same column: the simplest formula stands for it.
    key = np.round(values / largest, self._config.value_digits).tobytes()
    if key not in self._found or complexity(node) < complexity(self._found[key][0]):
      self._found[key] = node, values / largest, float(largest)


def _subtrees(node: Node) -> Iterator[Node]:
  return (part for part in expression.walk(node) if part.args)


def _without_factor(term: Node) -> Node | None:
  """The term without signs and numbers; None for a number."""
  while term.token == "neg":
    term = term.args[0]
  factors = [factor for factor in flatten(term, "*") if not factor.is_number]
  return chain("*", factors) if factors else None
