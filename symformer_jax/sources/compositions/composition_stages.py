"""THE table of functions that compositions are made of, and the constants of their arguments that are tried.

A stage is a function of `a*z + b`, or the power z**a. On a grid its argument is scaled by what z does in the data, so
that a wave goes through some turns and a pole stands beside the rows, whatever the units; where z keeps its sign the
function of z itself is on the grid as well, for laws seldom have a pole just anywhere.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symformer_jax.engine.config import CompositionsConfig
from symformer_jax.language.expression import Node, chain, number, power
from symformer_jax.language.tidy import tidy

# The stage that changes nothing, and the one whose constant is an exponent.
NOTHING, POWER = "", "pow"
# Shares of an argument below which constants are what a fit leaves of 0 and of 1.
ROUNDING = 1e-12


class Stage(NamedTuple):
  """A function of one argument.

  Attributes:
    of: its values, of any shape; tokens: its operators, the innermost first.
    places: constants (a, b) [C, 2] for an argument that goes from 0 to 1, of waves so many quarters of half a turn; 0
      for those of `CompositionsConfig.wave_angles` alone.
    has_plain: whether the function of z itself is tried.
  """

  of: Callable[[np.ndarray], np.ndarray]
  tokens: tuple[str, ...]
  places: Callable[[CompositionsConfig, int], np.ndarray]
  has_plain: bool = False


def _one(config: CompositionsConfig, num_waves: int) -> np.ndarray:
  return np.array([[1.0, 0.0]])


def _factors(config: CompositionsConfig, num_waves: int) -> np.ndarray:
  sizes = np.geomspace(*config.exponential_factors)
  return np.stack([np.concatenate([sizes, -sizes]), np.zeros(2 * len(sizes))], axis=1)


def _beside(config: CompositionsConfig, num_waves: int) -> np.ndarray:
  """Zeros below the range of the argument, and above it."""
  away = np.geomspace(*config.distances)
  ones = np.ones(len(away))
  return np.concatenate([np.stack([ones, away], axis=1), np.stack([-ones, 1 + away], axis=1)])


def _among(config: CompositionsConfig, num_waves: int) -> np.ndarray:
  """Vertices within the range of the argument and to both sides of it."""
  vertices = np.linspace(*config.vertices)
  return np.stack([np.ones(len(vertices)), -vertices], axis=1)


def _waves(config: CompositionsConfig, num_waves: int) -> np.ndarray:
  turns = np.arange(1, num_waves + 1) * np.pi / 4 if num_waves else np.array(config.wave_angles)
  phases = np.arange(config.num_phases) * np.pi / config.num_phases
  return np.stack([each.ravel() for each in np.meshgrid(turns, phases, indexing="ij")], axis=1)


def _steps(config: CompositionsConfig, num_waves: int) -> np.ndarray:
  slopes, middles = (each.ravel() for each in np.meshgrid(
    np.geomspace(*config.slopes), np.linspace(*config.middles), indexing="ij"))
  return np.stack([slopes, -slopes * middles], axis=1)


def _exponents(config: CompositionsConfig, num_waves: int) -> np.ndarray:
  return np.stack([np.array(config.exponents), np.zeros(len(config.exponents))], axis=1)


STAGES: dict[str, Stage] = {
  NOTHING: Stage(lambda z: z, (), _one),
  "exp": Stage(np.exp, ("exp",), _factors),
  "ln": Stage(np.log, ("ln",), _beside, True),
  "inv": Stage(np.reciprocal, ("inv",), _beside, True),
  "sqrt": Stage(np.sqrt, ("sqrt",), _beside, True),
  "inv_sqrt": Stage(lambda z: 1 / np.sqrt(z), ("sqrt", "inv"), _beside, True),
  "pow2": Stage(np.square, ("pow2",), _among, True),
  "pow3": Stage(lambda z: z * z * z, ("pow3",), _among, True),
  "pow4": Stage(lambda z: np.square(np.square(z)), ("pow2", "pow2"), _among, True),
  POWER: Stage(lambda z: z, ("pow",), _exponents),
  "sin": Stage(np.sin, ("sin",), _waves),
  "atan": Stage(np.arctan, ("atan",), _steps, True),
}


def constants(name: str, z: np.ndarray, config: CompositionsConfig, *, num_waves: int = 0) -> np.ndarray:
  """Constants (a, b) of a stage [V, C, 2] that are tried for each argument z [V, N]; `num_waves` as for its places."""
  stage = STAGES[name]
  places = stage.places(config, num_waves)
  places = np.broadcast_to(places, (len(z), *places.shape))
  if name in (NOTHING, POWER):
    return places
  least, reach = z.min(axis=1)[:, None], np.ptp(z, axis=1)[:, None]
  a = places[:, :, 0] / reach
  found = np.stack([a, places[:, :, 1] - a * least], axis=2)
  return np.concatenate([found, np.broadcast_to([1.0, 0.0], (len(z), 1, 2))], axis=1) if stage.has_plain else found


@np.errstate(all="ignore")  # what is not finite is left out by those who ask
def on_grid(name: str, z: np.ndarray, chosen: np.ndarray) -> np.ndarray:
  """Values of a stage [V, C, N] in single precision, for arguments z [V, N] and their constants [V, C, 2]."""
  if name == POWER:
    return np.exp(chosen[:, :, :1].astype(np.float32) * np.log(z).astype(np.float32)[:, None])
  least, reach = z.min(axis=1, keepdims=True), np.ptp(z, axis=1, keepdims=True)
  scaled = ((z - least) / reach).astype(np.float32)
  a = (chosen[:, :, 0] * reach).astype(np.float32)
  b = (chosen[:, :, 0] * least + chosen[:, :, 1]).astype(np.float32)
  return STAGES[name].of(a[:, :, None] * scaled[:, None] + b[:, :, None])


def values(name: str, z: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Values of a stage [K, N] for arguments z [K, N], with a constant each, a and b [K]."""
  if name == NOTHING:
    return z
  if name == POWER:
    return z ** a[:, None]
  return STAGES[name].of(a[:, None] * z + b[:, None])


def build(name: str, node: Node, a: float, b: float, z: np.ndarray) -> Node:
  """The formula of a stage of a formula with values z [N]; a shift that is but rounding is none."""
  if name == NOTHING:
    return node
  if name == POWER:
    return power(node, number(a))
  shift = b if abs(b) > ROUNDING * abs(a) * np.max(np.abs(z)) else 0.0
  node = tidy(chain("+", [Node("*", (node, number(1.0 if abs(a - 1) < ROUNDING else a))), number(shift)]))
  for token in STAGES[name].tokens:
    node = Node(token, (node,))
  return node
