"""Laws by their shape: what is left of a formula when variables have no names and coefficients no values.

Values at fixed points, by which `data_gen.exclusion` knows the problems of one and two variables, do not find a law:
nine variables have 362 880 orders, and a law is stored in units of its own. The shape of `2.5*x*y**2/z` is that of
`0.1*w*v**2/u`: products lose their numbers, sums keep that there is one, exponents keep their value. Two laws of one
shape may differ where variables stand alike (`x*sin(x) + y*sin(y)`, `x*sin(y) + y*sin(x)`): then too much is kept out.
"""

import dataclasses
import hashlib
import os

from data_gen import exclusion, simplify
from data_gen.config import GeneratorConfig
from symformer_jax.errors import ExpressionError
from symformer_jax.language.expression import VARIABLE, Node, flatten, walk

# A shape of fewer operators than this belongs to everybody (`x*y*z`): as in configs/data/excluded.csv, which lists
# what has more than two.
MIN_OPERATORS = 3
_NAMES = ("x", "y", "z", "w", "v", "u", "t", "s", "r")
# Rounds in which a variable learns where the others stand: nine variables need no more.
_ROUNDS = 3


def _digest(*parts: object) -> str:
  return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _describe(node: Node, colours: dict[int, str]) -> str:
  """A hash of the subtree that does not depend on the order of operands nor on coefficients."""
  if node.token == VARIABLE:
    return colours[node.value]
  if node.is_number:
    return "number"
  if node.token == "neg":
    return _describe(node.args[0], colours)
  if node.token == "pow" and node.args[1].is_number:
    return _digest("pow", _describe(node.args[0], colours), f"{node.args[1].value:.6g}")
  if node.token in ("+", "*"):
    parts = sorted(_describe(arg, colours) for arg in _operands(node))
    return parts[0] if len(parts) == 1 else _digest(node.token, *parts)
  return _digest(node.token, *(_describe(arg, colours) for arg in node.args))


def _operands(node: Node) -> list[Node]:
  """Of a sum or product, without the numbers of a product."""
  args = flatten(node, node.token)
  return args if node.token == "+" else [arg for arg in args if not arg.is_number] or args


def _mark(node: Node, above: str, colours: dict[int, str], places: dict[int, list[str]]) -> None:
  """Writes down for each variable the places where it stands: the path from the root with what stands beside."""
  if node.token == VARIABLE:
    places.setdefault(node.value, []).append(above)
    return
  if node.token == "neg":
    _mark(node.args[0], above, colours, places)
    return
  here = _digest(above, _describe(node, colours), node.token)
  is_set = node.token in ("+", "*")
  operands = _operands(node) if is_set else node.args
  for i, arg in enumerate(operands):
    # A part with a number before it stands where it stands without.
    place = _digest(here, i) if not is_set else here if len(operands) > 1 else above
    _mark(arg, place, colours, places)


def shape(node: Node) -> str:
  """The shape of a canonical tree, as 16 hexadecimal digits; a constant factor in front makes no difference."""
  colours = dict.fromkeys((n.value for n in walk(node) if n.token == VARIABLE), "variable")
  for _ in range(_ROUNDS):
    places: dict[int, list[str]] = {}
    _mark(node, "", colours, places)
    colours = {index: _digest(colours[index], *sorted(found)) for index, found in places.items()}
  return _digest(_describe(node, colours))


def count_operators(node: Node) -> int:
  """Operators of a shape: signs and coefficients do not count."""
  if node.token == "neg":
    return count_operators(node.args[0])
  if node.token in ("+", "*"):
    args = _operands(node)
    return len(args) - 1 + sum(map(count_operators, args))
  return bool(node.args) + sum(map(count_operators, node.args))


@dataclasses.dataclass(frozen=True)
class Shapes:
  """Test problems by their shapes.

  Attributes:
    by_shape: name of the (first) problem of each shape.
    names: of all problems that are kept out.
  """

  by_shape: dict[str, str]
  names: tuple[str, ...]

  def matches(self, node: Node) -> str:
    """Name of a problem of the same shape as a canonical tree, or the empty string."""
    return self.by_shape.get(shape(node), "") if self.by_shape else ""


def read_problems(paths: os.PathLike | str | None, config: GeneratorConfig) -> Shapes:
  """Reads problem files (see `exclusion.read_problems`); problems of less than three operators are not kept out."""
  by_shape: dict[str, str] = {}
  names = []
  for name, node in exclusion.read_rows(paths, _NAMES):
    try:
      canonical = simplify.simplify(node, "rules", digits=config.simplify_digits)
    except ExpressionError:  # it has no form in the operators of this project, so no law can have it
      continue
    if count_operators(canonical) >= MIN_OPERATORS:
      by_shape.setdefault(shape(canonical), name)
      names.append(name)
  return Shapes(by_shape, tuple(names))

