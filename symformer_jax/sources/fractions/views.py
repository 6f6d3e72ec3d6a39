"""Views of a table: its columns, or functions of them in their place or beside them, that a formula may be made of.

Functions have no constants of their own: what people write down is mostly made dimensionless first.
"""

from collections.abc import Callable, Iterator, Sequence
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import ViewsConfig
from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, negate, number, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.fractions.polynomials import Powers
from symformer_jax.sources.fractions.rational_bases import all_up_to

# A degree.
RADIANS = math.pi / 180
# Exponents up to which a column's exponential is one of the columns: of more one row has all of it.
_MOST_GROWTH = 20.0


class Part(NamedTuple):
  """A column or a function of columns.

  Attributes:
    is_linear: no higher power of it is looked at: its square is a polynomial of the others, or of no use.
    is_alone: nor is that, nor its product with another that is alone: logarithms stand in sums.
  """

  node: Node
  is_linear: bool = False
  is_alone: bool = False


View = tuple[Part, ...]


class Function(NamedTuple):
  """What may stand for a column, or for a product of two.

  Attributes:
    make: the parts of a view; is_defined: whether values have such; is_beside: whether the column stays.
    is_needed: whether it says anything of the columns [N, K] that it stands for that no other does.
  """

  make: Callable[[Node], View]
  is_defined: Callable[[np.ndarray], bool]
  is_beside: bool = False
  is_needed: Callable[[np.ndarray], bool] = lambda values: True


def _are_angles(v: np.ndarray) -> bool:
  """In radians, up to four turns."""
  return float(np.max(np.abs(v))) <= 8 * np.pi


def _are_degrees(v: np.ndarray) -> bool:
  """More than a turn in radians, up to two turns."""
  return 2 * np.pi < float(np.max(np.abs(v))) <= 720


def _of(*tokens: str) -> Callable[[Node], View]:
  return lambda node: tuple(Part(Node(token, (node,))) for token in tokens)


def _angle(node: Node) -> View:
  return Part(Node("sin", (node,))), Part(Node("cos", (node,)), is_linear=True)


def _degrees(node: Node) -> View:
  return _angle(Node("*", (node, number(RADIANS))))


def _arccotangent(node: Node) -> View:
  return (Part(Node("atan", (Node("inv", (node,)),))),)


def _decay(node: Node) -> View:
  return (Part(Node("exp", (negate(node),))),)


def _logarithm(node: Node) -> View:
  return (Part(Node("ln", (node,)), is_alone=True),)


def _mixing_logarithms(node: Node) -> View:
  """log(v) and log(1 - v), as in the entropy of mixing."""
  complement = Node("+", (number(1.0), negate(node)))
  return tuple(Part(tidy(Node("ln", (each,))), is_linear=True, is_alone=True) for each in (node, complement))


def _share_logarithms(columns: View) -> View:
  """log(x), log(y) and log(1 - x - y), as in the entropy of mixing of more than two."""
  rest = Node("+", (number(1.0), negate(chain("+", [part.node for part in columns]))))
  return tuple(Part(tidy(Node("ln", (each,))), is_linear=True, is_alone=True)
               for each in (*(part.node for part in columns), rest))


def _cube_root(node: Node) -> View:
  return (Part(Node("pow", (node, number(1 / 3)))),)


def _root_and_logarithm(node: Node) -> View:
  return Part(Node("sqrt", (node,))), *_logarithm(node)


def _shifted(token: str, *, is_minus: bool = False, is_square: bool = False) -> Callable[[Node], View]:
  """token(1 + v) or token(1 - v), or of v's square."""
  def make(node: Node) -> View:
    inner = Node("pow2", (node,)) if is_square else node
    inner = Node("+", (number(1.0), negate(inner) if is_minus else inner))
    return (Part(tidy(Node(token, (inner,))), is_linear=True, is_alone=token == "ln"),)
  return make


FUNCTIONS = {
  "cosines": Function(_of("cos"), _are_angles),
  "sines": Function(_of("sin"), _are_angles),
  "angles": Function(_angle, _are_angles),
  "angles_beside": Function(_angle, _are_angles, is_beside=True),
  "degrees": Function(_degrees, _are_degrees),
  "roots": Function(_of("sqrt"), lambda v: bool(np.all(v >= 0))),
  "cube_roots": Function(_cube_root, lambda v: bool(np.all(v > 0))),
  "complement_roots": Function(_shifted("sqrt", is_minus=True), lambda v: bool(np.all(v <= 1)), is_beside=True),
  "circles": Function(
    _shifted("sqrt", is_minus=True, is_square=True), lambda v: bool(np.all(np.abs(v) <= 1)), is_beside=True),
  "hyperbolas": Function(_shifted("sqrt", is_square=True), lambda v: True, is_beside=True),
  "exponentials": Function(_of("exp"), lambda v: float(np.max(np.abs(v))) <= _MOST_GROWTH, is_beside=True),
  "decays": Function(_decay, lambda v: bool(np.min(v) >= 0 and np.max(v) <= 700), is_beside=True,
                     is_needed=lambda values: float(np.max(values)) > _MOST_GROWTH),
  "logarithms": Function(_logarithm, lambda v: bool(np.all(v > 0)), is_beside=True),
  "powers_of_logarithms": Function(_of("ln"), lambda v: bool(np.all(v > 0))),
  "roots_and_logarithms": Function(_root_and_logarithm, lambda v: bool(np.all(v > 0))),
  "arctangents": Function(_of("atan"), lambda v: True, is_beside=True),
  "arccotangents": Function(_arccotangent, lambda v: bool(np.all(v != 0)), is_beside=True),
  "mixing_logarithms": Function(
    _mixing_logarithms, lambda v: bool(np.all((v > 0) & (v < 1))), is_beside=True),
  "complement_logarithms": Function(_shifted("ln", is_minus=True), lambda v: bool(np.all(v < 1)), is_beside=True),
  "shifted_logarithms": Function(_shifted("ln"), lambda v: bool(np.all(v > -1)), is_beside=True),
}


def angle(values: np.ndarray, column: int) -> View:
  """The sine and the cosine of a column that may be an angle, in radians or degrees; empty where it is none."""
  if _are_angles(values):
    return _angle(variable(column))
  return _degrees(variable(column)) if _are_degrees(values) else ()


def plain(num_variables: int) -> View:
  """The columns themselves."""
  return tuple(Part(variable(i)) for i in range(num_variables))


def monomials(view: View, degree: int) -> list[Powers]:
  """Up to a total degree, without those that are sums of others or of no use."""
  linear, alone = (tuple(getattr(part, name) for part in view) for name in ("is_linear", "is_alone"))
  return list(_monomials(linear, alone, degree))


def least_monomials(view: View, degree: int) -> int:
  """There are no fewer; known at once."""
  num_free = sum(not (part.is_linear or part.is_alone) for part in view)
  return math.comb(num_free + degree, degree)


def is_of_degrees(view: View) -> bool:
  """Whether columns are taken for angles in degrees."""
  return any(node.is_number and node.value == RADIANS for part in view for node in expression.walk(part.node))


@functools.lru_cache(maxsize=256)
def _monomials(linear: tuple[bool, ...], alone: tuple[bool, ...], degree: int) -> tuple[Powers, ...]:
  some = np.array(all_up_to(len(linear), degree))
  kept = np.all(some[:, linear] <= 1, axis=1) & (np.sum(some[:, alone], axis=1) <= 1)
  return tuple(map(tuple, some[kept].tolist()))


def values(view: View, x: np.ndarray) -> np.ndarray:
  """[N, D'] at points x [N, D]."""
  return np.column_stack([expression.evaluate(part.node, x) for part in view])


@np.errstate(all="ignore")  # what is not finite is left out
def views(x: np.ndarray, config: ViewsConfig, allows: Callable[[str], bool] = lambda token: True) -> Iterator[View]:
  """Views other than the plain one: of one column a function, of all columns the same one, of a product of two, a power
  of one to another; of shares of a whole the logarithms of all and of the rest.

  Args:
    x: [N, D]; allows: whether an operator may stand in a formula.
  """
  columns = plain(x.shape[1])
  if config.has_shares and x.shape[1] > 1 and np.all(x > 0) and np.all(x.sum(axis=1) < 1):
    yield from _if_allowed((*columns, *_share_logarithms(columns)), allows)
  for name in config.functions:
    usable = [i for i in range(len(columns)) if FUNCTIONS[name].is_defined(x[:, i])]
    for chosen in dict.fromkeys([*((i,) for i in usable), tuple(usable)]):
      if chosen and FUNCTIONS[name].is_needed(x[:, chosen]):
        yield from _if_allowed(_replaced(columns, chosen, FUNCTIONS[name]), allows)
  for name in config.product_functions:
    for node in _products(columns):
      inner = expression.evaluate(node, x)
      if np.all(np.isfinite(inner)) and FUNCTIONS[name].is_defined(inner):
        # The square of a root of two columns is a product of them.
        made = (part._replace(is_linear=part.is_linear or name == "roots") for part in FUNCTIONS[name].make(node))
        yield from _if_allowed((*columns, *made), allows)
  for base, exponent in itertools.permutations(columns, 2) if config.has_powers else ():
    for raised in _raised(base.node, exponent.node):
      at = expression.evaluate(raised, x)
      is_raised = np.all(expression.evaluate(raised.args[0], x) > 0) and np.max(np.abs(np.log(at))) <= _MOST_GROWTH
      if is_raised and np.ptp(at) > 0:
        yield from _if_allowed((*columns, Part(raised)), allows)


def _raised(base: Node, exponent: Node) -> Iterator[Node]:
  """What has a column as its exponent: x, 1 + x as interest has, 1 - x as what survives has; and x to the inverse of a
  column, as the ratio of heat capacities stands in exponents.
  """
  one = number(1.0)
  for positive in (base, Node("+", (base, one)), Node("+", (Node("neg", (base,)), one))):
    yield Node("pow", (positive, exponent))
  yield Node("pow", (base, Node("inv", (exponent,))))


def is_rounded(y: np.ndarray, num_digits: int) -> bool:
  """Whether all values have so few digits: functions of columns then miss them."""
  return all(float(f"{value:.{num_digits}g}") == value for value in y.tolist())


def _replaced(columns: View, chosen: Sequence[int], function: Function) -> View:
  made = [part for i in chosen for part in function.make(columns[i].node)]
  kept = [part for i, part in enumerate(columns) if function.is_beside or i not in chosen]
  return (*kept, *made)


def _products(columns: View) -> Iterator[Node]:
  """x*y, x/y and y/x of every two."""
  for one, other in itertools.combinations([part.node for part in columns], 2):
    yield Node("*", (one, other))
    yield Node("*", (one, Node("inv", (other,))))
    yield Node("*", (other, Node("inv", (one,))))


def _if_allowed(view: View, allows: Callable[[str], bool]) -> Iterator[View]:
  if all(allows(node.token) for part in view for node in expression.walk(part.node) if node.args):
    yield view
