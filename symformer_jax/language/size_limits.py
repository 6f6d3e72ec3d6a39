"""How large what an operator is applied to may be: sizes as users write them, and the trees that keep them.

A tree has no minus and no division, and nests a sum of three terms in an order of its own. Limits are of what a reader
sees: every term, every factor, the whole numerator and denominator of a fraction, base and exponent of any power.
"""

from collections.abc import Iterator, Mapping, Sequence
import numbers
from typing import Any

from symformer_jax.errors import InputError
from symformer_jax.language import operators
from symformer_jax.language.expression import Node, complexity, flatten, walk

# `("pow", (9, None))`: most nodes of each operand, None for any number.
Limits = tuple[tuple[str, tuple[int | None, ...]], ...]

DIVISION, POWER = "/", "pow"
_POWERS = ("pow", "pow2", "pow3")
# Operands that change places: one size is for all of them.
_ALIKE = {"+": "each term", "*": "each factor", "min": "each argument", "max": "each argument"}
# As PySR writes it.
_UNLIMITED = (None, -1)


def freeze(sizes: Any) -> Any:
  """A mapping of sizes as pairs that can be hashed, sorted by name; anything else as it is, for `read` to refuse."""
  if not isinstance(sizes, Mapping):
    return sizes
  pairs = ((name, tuple(size) if isinstance(size, list) else size) for name, size in sizes.items())
  return tuple(sorted(pairs, key=lambda pair: str(pair[0])))


def read(pairs: Sequence[tuple[str, Any]], tokens: Mapping[str, Sequence[str]]) -> Limits:
  """The limits that `freeze`d sizes mean.

  Args:
    pairs: `("sin", 3)` or `("pow", (9, 1))`, of known operators.
    tokens: of a tree, by the names that operators have for users.
  Raises:
    InputError: for a minus, which is a sum here, for too many or too few sizes, and for sizes below 1.
  """
  return tuple(_read_one(name, size, tokens[name]) for name, size in pairs)


def _read_one(name: str, size: Any, tokens: Sequence[str]) -> tuple[str, tuple[int | None, ...]]:
  if name == "-":
    raise InputError("max_sizes: '-' is a sum here, of which '+' limits the terms")
  operator = name if name == DIVISION else tokens[0]
  given = size if isinstance(size, tuple) else (size,)
  shown = repr(size[0] if isinstance(size, tuple) and len(size) == 1 else size)
  if operator in (DIVISION, POWER):
    parts = "numerator and denominator" if operator == DIVISION else "base and exponent"
    expected = f"two sizes, of {parts}, such as (9, 1)"
  else:
    expected = f"one size, of {_ALIKE.get(operator, 'its argument')}, such as 5"
  if len(given) != (2 if operator in (DIVISION, POWER) else 1):
    raise InputError(f"max_sizes: {name!r}: expected {expected}, got {shown}")
  for most in given:
    is_number = isinstance(most, numbers.Integral) and not isinstance(most, bool) and int(most) >= 1
    if most not in _UNLIMITED and not is_number:
      raise InputError(f"max_sizes: {name!r}: expected whole numbers of at least 1, or -1 for any, got {shown}")
  return operator, tuple(None if most in _UNLIMITED else int(most) for most in given)


def are_kept(node: Node, limits: Limits) -> bool:
  """Whether no operand of the tree is larger than its limit."""
  return all(most is None or size <= most
             for operator, allowed in limits for sizes in _sizes(node, operator)
             for size, most in zip(sizes, allowed, strict=True))


def _sizes(node: Node, operator: str) -> Iterator[tuple[int, ...]]:
  """Complexities of the operands, wherever the operator stands."""
  if operator == DIVISION:
    yield from _fractions(node)
    return
  for part in walk(node):
    if operator == POWER and part.token in _POWERS:
      yield complexity(part.args[0]), complexity(part.args[1]) if len(part.args) > 1 else 1
    elif part.token == operator:
      yield from ((complexity(arg),) for arg in part.args if arg.token != operator or not _is_chain(operator))


def _is_chain(operator: str) -> bool:
  """Whether nested ones are written as one, as sums are; `log(log(x))` is not."""
  return operator in ("+", "*")


def _fractions(node: Node) -> Iterator[tuple[int, int]]:
  """Numerator and denominator of every product that has a denominator."""
  factors = flatten(node, "*")
  below = [factor.args[0] for factor in factors if factor.token == "inv"]
  if below:
    yield _product_size([factor for factor in factors if factor.token != "inv"]), _product_size(below)
  for factor in factors:
    for arg in factor.args:
      yield from _fractions(arg)


def _product_size(factors: Sequence[Node]) -> int:
  """Nodes of a product; of none that of the 1 which stands there."""
  times = operators.BY_NAME["*"].complexity
  return sum(map(complexity, factors)) + times * (len(factors) - 1) if factors else 1
