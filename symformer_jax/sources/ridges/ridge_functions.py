"""THE table of outer functions of ridges, `f(a*u + b*v + c)`, and how each uses the grids of inner constants.

Inner constants are counted in ranges of the data: a sum of arguments runs from 0 to 1 over the rows, f is taken of
p*sum + q, for few p and q. What a factor or a summand outside of f makes up for is no inner constant.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from symformer_jax.engine.config import RidgeGrids
from symformer_jax.language.expression import Node, chain, number, variable, walk
from symformer_jax.language.tidy import tidy

# p and q of p*sum + q, A of them.
Affine = Sequence[tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Outer:
  """A function of one argument.

  Attributes:
    values: of arguments [N, G]; NaN or infinite where undefined.
    build: argument -> formula.
    affine: grids -> p and q of p*sum + q [A, 2].
    is_one_sided: whether a sum that falls makes another function than one that rises, up to factor and summand.
    has_scale, has_offset: whether p and q are constants of the formula: none where the factor outside makes up for it.
  """

  values: Callable[[jax.Array], jax.Array]
  build: Callable[[Node], Node]
  affine: Callable[[RidgeGrids], Affine]
  is_one_sided: bool = True
  has_scale: bool = True
  has_offset: bool = True

  @property
  def tokens(self) -> set[str]:
    """Its operators."""
    return {part.token for part in walk(self.build(variable(0))) if part.args}


def _of(*tokens: str) -> Callable[[Node], Node]:
  def build(argument: Node) -> Node:
    for token in reversed(tokens):
      argument = Node(token, (argument,))
    return argument
  return build


def _plus(node: Node, value: float) -> Node:
  return Node("+", (node, number(value)))


def _power_like(values: Callable[[jax.Array], jax.Array], *tokens: str) -> Outer:
  return Outer(values, _of(*tokens), lambda grids: [(1.0, away) for away in grids.away], has_scale=False)


def _located(values: Callable[[jax.Array], jax.Array], build: Callable[[Node], Node]) -> Outer:
  def affine(grids: RidgeGrids) -> Affine:
    return [(1 / width, -centre / width) for width in grids.widths for centre in grids.centres]
  return Outer(values, build, affine, is_one_sided=False)


# Of waves factors and offset have no such grid: see `phases`.
WAVE = "wave"
OUTER: dict[str, Outer] = {
  WAVE: Outer(jnp.sin, _of("sin"), lambda grids: ()),
  "exp": Outer(jnp.exp, _of("exp"), lambda grids: [(rate, 0.0) for rate in grids.rates], has_offset=False),
  "ln": _power_like(jnp.log, "ln"),
  "sqrt": _power_like(jnp.sqrt, "sqrt"),
  "inv": _power_like(lambda t: 1 / t, "inv"),
  "inv_pow2": _power_like(lambda t: t**-2, "inv", "pow2"),
  "inv_sqrt": _power_like(lambda t: 1 / jnp.sqrt(t), "inv", "sqrt"),
  "inv_ln": Outer(lambda t: 1 / jnp.log(t), _of("inv", "ln"),
                  lambda grids: [(p, q) for p in grids.logarithm_factors for q in grids.logarithm_offsets]),
  "occupancy": Outer(lambda t: 1 / jnp.expm1(t), lambda node: _of("inv")(_plus(_of("exp")(node), -1.0)),
                     lambda grids: [(p, q) for p in grids.occupancy_factors for q in grids.occupancy_offsets]),
  "logistic": _located(jax.nn.sigmoid, lambda node: _of("inv")(_plus(_of("exp", "neg")(node), 1.0))),
  "atan": _located(jnp.arctan, _of("atan")),
  "gauss": _located(lambda t: jnp.exp(-t * t), _of("exp", "neg", "pow2")),
  "lorentz": _located(lambda t: 1 / (1 + t * t), lambda node: _of("inv")(_plus(_of("pow2")(node), 1.0))),
  "asin": Outer(
    jnp.arcsin, _of("asin"), lambda grids: [(2 * p, -p) for p in grids.arcsine_ends], is_one_sided=False),
  "tan": Outer(jnp.tan, _of("tan"), lambda grids: [(2 * p, -p) for p in grids.tangent_ends], is_one_sided=False),
}


@functools.cache
def phases(num_arguments: int, most: int) -> np.ndarray:
  """Radians over the range of each argument [G, k], the first positive: an eighth of a wave, a quarter, two, ..."""
  counts = np.concatenate([[0.5], np.arange(1, most)])
  either = np.concatenate([counts, -counts])
  return np.pi / 2 * np.array(list(itertools.product(counts, *[either] * (num_arguments - 1))), float)


@functools.cache
def directions(num_arguments: int, num: int) -> np.ndarray:
  """Unit vectors [G, k], evenly spread; of the first half none is the opposite of another one.

  Of two arguments a circle, of three a spiral on a sphere (Vogel, 1979).
  """
  if num_arguments == 1:
    return np.array([[1.0], [-1.0]])
  if num_arguments == 2:
    angles = 2 * np.pi * (np.arange(num) + 0.5) / num
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
  places = np.arange(num // 2) + 0.5
  height, turn = 1 - 2 * places / num, np.pi * (1 + 5**0.5) * places
  flat = np.sqrt(1 - height**2)
  half = np.stack([flat * np.cos(turn), flat * np.sin(turn), height], axis=1)
  return np.concatenate([half, -half])


def ridge_of(outer: Outer, arguments: Sequence[Node], factors: np.ndarray, offset: float) -> Node:
  """f of multiples of the arguments and an offset, without constants that a factor outside makes up for."""
  if not outer.has_scale:
    largest = np.max(np.abs(factors))
    factors, offset = factors / largest, offset / largest
  inner = _sum(arguments, factors)
  return tidy(outer.build(_plus(inner, offset) if outer.has_offset else inner))


def _sum(arguments: Sequence[Node], factors: np.ndarray) -> Node:
  def multiples() -> Iterator[Node]:
    for node, factor in zip(arguments, factors, strict=True):
      yield node if factor == 1 else Node("neg", (node,)) if factor == -1 else Node("*", (node, number(float(factor))))
  return chain("+", list(multiples()))
