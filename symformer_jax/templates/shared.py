"""What unknown functions of a template may move between them: the constants of those that are terms of one sum."""

from collections.abc import Mapping
import math

from symformer_jax.language.expression import Node, chain, flatten, number
from symformer_jax.language.templates import Template

# A sum of constants that is a smaller share of the largest of them is 0 but for what fits have left.
CANCELLED = 1e-8


def gather_constants(template: Template, functions: Mapping[str, Node]) -> dict[str, Node]:
  """The functions with their additive constants in one of each sum: `x**2 - 1` and `exp(-t) + 1` are `x**2` and
  `exp(-t)`.

  In one that is nothing but a constant, else in the first that has one.
  """
  gathered = dict(functions)
  for names in _sums(template):
    split = {name: _split(functions[name]) for name in names}
    constants = {name: constant for name, (_, constant) in split.items() if constant}
    bare = [name for name in names if not split[name][0]]
    if len({*constants, *bare}) < 2:
      continue
    total = math.fsum(constants.values())
    if abs(total) <= CANCELLED * max(map(abs, constants.values()), default=0.0):
      total = 0.0
    holder = (bare or list(constants))[0]
    for name, (terms, _) in split.items():
      constant = total if name == holder else 0.0
      gathered[name] = chain("+", [*terms, number(constant)] if constant or not terms else terms)
  return gathered


def _sums(template: Template) -> list[list[str]]:
  """Names of the functions that are terms of one sum, for each sum."""
  found: dict[tuple[int, ...], list[str]] = {}
  for unknown in template.unknowns:
    path, node, begin = tuple(template.path(unknown.name)), template.node, 0
    for depth, i in enumerate(path):
      begin = begin if node.token == "+" else depth + 1  # of the innermost sum
      node = node.args[i]
    found.setdefault(path[:begin], []).append(unknown.name)
  return list(found.values())


def _split(node: Node) -> tuple[list[Node], float]:
  """The terms of a sum that are no numbers, and the sum of those that are."""
  terms = flatten(node, "+")
  return [term for term in terms if not term.is_number], math.fsum(term.value for term in terms if term.is_number)
