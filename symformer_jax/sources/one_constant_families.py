"""Short formulas with one inner constant, each at some values of it, with what a change of the constant changes.

Made like those of `formula_bank`, the short ones first, from formulas without constants: `c + G`, `c*G` and `G**c`,
then functions of them, and sums, products and powers with others. What another one is with another constant is left
out: `1/(c*G)`, `exp(c + G)`, `log(G**c)`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from symformer_jax.engine import interruption
from symformer_jax.engine.config import OneConstantConfig
from symformer_jax.language.expression import Node, number, power
from symformer_jax.sources import formula_bank
from symformer_jax.sources.formula_bank import Bank, Operator

# Formulas that are made at a time: their values, 16 constants on 20 rows, stay in the cache.
_AT_A_TIME = 512
# Values so many times as large as the leaves, and changes with the constant that are so small a share, leave nothing of
# the others in single precision.
_LARGEST, _LEAST = 1e9, 1e-9
# What varies by a smaller share of its size is a constant but for rounding of single precision.
_CONSTANT = 1e-5
# A number is known to this share, of single precision.
_KEY_BITS = 17
# Of the constants that are tried a formula has to be defined at so many.
_LEAST_DEFINED = 3
# The key of what is no number at either constant by which families are told apart.
_UNKNOWN = -1
# The step of a formula without a constant.
PLAIN = -100
# No formula is dearer.
_MOST_COST = 64


class Step(NamedTuple):
  """What makes a family of another one, and maybe a formula without constants.

  Attributes:
    operator: of the table of `formula_bank`; is_second: whether the family is its second argument.
    slope: the family's values, what was made and, of operators of two, the other's values -> the derivative by the
      first.
    never_on: operators, or kinds of seeds, whose families this makes nothing new of.
  """

  operator: Operator
  slope: Callable[..., np.ndarray | float]
  never_on: frozenset[str] = frozenset()
  is_second: bool = False

  def of(self, values: np.ndarray, *others: np.ndarray) -> np.ndarray:
    return self.operator.of(*others, values) if self.is_second else self.operator.of(values, *others)

  def node(self, family: Node, *others: Node) -> Node:
    return self.operator.node(*others, family) if self.is_second else self.operator.node(family, *others)


_SLOPES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
  "inv": lambda v, f: -f * f,
  "sqrt": lambda v, f: 0.5 / f,
  "pow2": lambda v, f: 2 * v,
  "pow3": lambda v, f: 3 * v * v,
  "exp": lambda v, f: f,
  "ln": lambda v, f: 1 / v,
  "sin": lambda v, f: np.cos(v),
  "cos": lambda v, f: -np.sin(v),
  "tan": lambda v, f: 1 + f * f,
  "asin": lambda v, f: 1 / np.sqrt(1 - v * v),
  "acos": lambda v, f: -1 / np.sqrt(1 - v * v),
  "atan": lambda v, f: 1 / (1 + v * v),
}
_POWERS = frozenset({"inv", "sqrt", "pow2", "pow3"})
# Whose constants are those of other families but for the phase, `cos(c + G)`, are left out too.
_WAVES = frozenset({"sin", "cos", "tan"})
# Powers of powers and of exponentials are left out: of most another constant is the same; and functions of inverses.
_NEVER_ON: dict[str, frozenset[str]] = {
  **dict.fromkeys(_POWERS, _POWERS | {"exp"}),
  "sqrt": _POWERS - {"pow3"} | {"exp"},
  "inv": frozenset({"inv", "exp"}),
  "ln": _POWERS | {"exp"},
  "exp": frozenset({"ln"}),
  "sin": frozenset({"asin", "acos"}),
  "cos": frozenset({"asin", "acos", "shift"}),
  "tan": frozenset({"atan", "asin", "acos"}),
  "asin": frozenset({"sin", "cos"}),
  "acos": frozenset({"sin", "cos", "asin"}),
  "atan": frozenset({"tan"}),
}


def _steps(operators: Sequence[Operator]) -> list[Step]:
  plus, times, minus, over, raised = formula_bank.OF_TWO
  of_two = [
    Step(plus, lambda v, f, g: 1.0),
    Step(times, lambda v, f, g: g),
    Step(minus, lambda v, f, g: 1.0),
    Step(over, lambda v, f, g: 1 / g),
    Step(over, lambda v, f, g: -f / v, is_second=True),
    Step(raised, lambda v, f, g: f * g / v),
    Step(raised, lambda v, f, g: f * np.log(g), is_second=True),
  ]
  of_one = [Step(formula_bank.FUNCTIONS[name], slope, _NEVER_ON[name]) for name, slope in _SLOPES.items()]
  return [step._replace(never_on=step.never_on | _not_of_seeds(step))
          for step in [*of_one, *of_two] if step.operator in operators]


def _not_of_seeds(step: Step) -> set[str]:
  """Of which seeds with other constants than most it makes nothing."""
  tokens = step.operator.tokens
  return {*(() if tokens[0] in _WAVES else ("fast",)), *(() if "inv" in tokens else ("zero",))}


class Seed(NamedTuple):
  """How a constant c comes into a formula G.

  Attributes:
    name, tokens: operators that it is written by; cost: in halves of a node, without G's.
    constants: values of G [M, R], configuration -> values of c [M, K] that are tried.
    of: values of G [..., R], c [..., 1] -> values; slope: and of those -> the derivative by c.
    node: G, c -> formula.
    modulo: values of G [M, R] -> what is the same for two that are one family.
    is_defined: values of G [M, R] -> [M], whether there is any.
  """

  name: str
  tokens: tuple[str, ...]
  cost: int
  constants: Callable[[np.ndarray, OneConstantConfig], np.ndarray]
  of: Callable[[np.ndarray, np.ndarray], np.ndarray]
  slope: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
  node: Callable[[Node, float], Node]
  modulo: Callable[[np.ndarray], np.ndarray]
  is_defined: Callable[[np.ndarray], np.ndarray] = lambda values: np.full(len(values), True)


def _signed(constants: Sequence[float], num: int) -> np.ndarray:
  return np.resize([*(-each for each in reversed(constants)), *constants], num)


def _inside(values: np.ndarray, num: int) -> np.ndarray:
  """c of c + G with its zero between G's values."""
  return -np.quantile(values, (np.arange(num) + 0.5) / num, axis=1).T


def _zeros(values: np.ndarray, config: OneConstantConfig) -> np.ndarray:
  return _inside(values, config.num_constants)


def _shifts(values: np.ndarray, config: OneConstantConfig) -> np.ndarray:
  """c of c + G: with its zero between G's values and outside, in shares of their spread."""
  low, high = np.quantile(values, (0.05, 0.95), axis=1)[..., None]
  outside = (high - low) * np.array(config.beyond)
  least, most = np.min(values, axis=1, keepdims=True), np.max(values, axis=1, keepdims=True)
  inside = _inside(values, max(config.num_constants - 2 * len(config.beyond), 0))
  return np.concatenate([outside - least, inside, -most - outside], axis=1)[:, : config.num_constants]


def _usual(values: np.ndarray) -> np.ndarray:
  """How large values [M, R] are: [M, 1]."""
  sizes = np.median(np.abs(values), axis=1, keepdims=True)
  return np.where(sizes > 0, sizes, 1.0)


def _factors(values: np.ndarray, config: OneConstantConfig) -> np.ndarray:
  return _signed(config.factors, config.num_constants) / _usual(values)


def _fast_factors(values: np.ndarray, config: OneConstantConfig) -> np.ndarray:
  return np.geomspace(*config.fast_factors, config.num_constants) / _usual(values)


def _exponents(values: np.ndarray, config: OneConstantConfig) -> np.ndarray:
  return np.tile(_signed(config.exponents, config.num_constants), (len(values), 1))


def _directions(values: np.ndarray) -> np.ndarray:
  """Without their size and sign."""
  return values / np.take_along_axis(values, np.argmax(np.abs(values), axis=1)[:, None], axis=1)


def _without_mean(values: np.ndarray) -> np.ndarray:
  return values - np.mean(values, axis=1, keepdims=True)


def _by_v(v: np.ndarray, c: np.ndarray, f: np.ndarray) -> np.ndarray:
  return np.broadcast_to(v, np.shape(f))


def _by_one(v: np.ndarray, c: np.ndarray, f: np.ndarray) -> np.ndarray:
  return np.ones_like(f)


def _sum(node: Node, c: float) -> Node:
  return Node("+", (node, number(c)))


def _product(node: Node, c: float) -> Node:
  return Node("*", (node, number(c)))


_SEEDS: tuple[Seed, ...] = (
  Seed("shift", ("+",), 5, _shifts, np.add, _by_one, _sum, _without_mean),
  # Of 1/(c + G) with a pole between rows: it has to be between the right ones.
  Seed("zero", ("+",), 5, _zeros, np.add, _by_one, _sum, _without_mean),
  Seed("factor", ("*",), 5, _factors, np.multiply, _by_v, _product, _directions),
  # Of waves, where rows are some turns apart.
  Seed("fast", ("*",), 5, _fast_factors, np.multiply, _by_v, _product, _directions),
  Seed("exponent", ("pow",), 6, _exponents, np.power, lambda v, c, f: f * np.log(v),
       lambda node, c: power(node, number(c)), lambda values: _directions(np.log(values)),
       lambda values: np.all(values > 0, axis=1)),
)


class Origin(NamedTuple):
  """How a family is made.

  Attributes:
    step: place in the steps, or of a seed -1 - its place in `_SEEDS`, or `PLAIN`.
    cost, place: of what family; of a seed of nothing.
    other: of what formula of the bank, if any.
  """

  step: int
  cost: int
  place: int
  other: int


class Chunk(NamedTuple):
  """Some families of one cost.

  Attributes:
    cost: in halves of a node.
    origins: [M, 4], of each an `Origin`.
    constants: [M, K].
    values, slopes: [M, K, R], not a number where undefined.
    is_used: [M], whether they say anything of y: not c*G and its like, whose constant is an outer one.
  """

  cost: int
  origins: np.ndarray
  constants: np.ndarray
  values: np.ndarray
  slopes: np.ndarray
  is_used: np.ndarray


class Families:
  """Formulas F(x; c), by cost; those without c among them."""

  def __init__(self, bank: Bank, operators: Sequence[Operator], *, num_families: int, config: OneConstantConfig):
    """Args:
      bank: formulas without constants on R rows.
      operators: of one argument and of two; num_families: how many are made at most.
      config: what constants are tried.
    """
    self._bank, self._num_families, self._config = bank, num_families, config
    # Of the constants those at which families are told apart, one of each sign.
    self._looks = [3 * config.num_constants // 4 - 1, config.num_constants // 4]
    self._values, self._costs = bank.values.astype(np.float32), bank.costs()
    self._varies = np.ptp(bank.values, axis=1) > 0
    self._largest = _LARGEST * max(1.0, float(np.max(np.abs(bank.values[self._costs <= 2]))))  # of columns
    self._allowed = {token for operator in operators for token in operator.tokens}
    self._steps = _steps(operators)
    self._levels: dict[int, Chunk] = {}
    self._keys: set[int] = set()
    self._projections = np.random.default_rng(0).normal(size=(bank.values.shape[1], 2)).astype(np.float32)

  @np.errstate(all="ignore")  # what is not finite is left out
  def __iter__(self) -> Iterator[Chunk]:
    """The cheap ones first, until there are enough."""
    num = 0
    for cost in range(1, _MOST_COST):
      chunks = []
      yield from self._plain(cost)
      for chunk in _joined(self._of_cost(cost)):
        interruption.check()
        yield chunk
        chunks.append(chunk)
        num += len(chunk.origins)
        if num >= self._num_families:
          return
      if chunks:
        self._levels[cost] = _one_of(chunks)

  def node(self, origin: Origin, constant: float) -> Node:
    if origin.step == PLAIN:
      return self._bank.node(origin.other)
    if origin.step < 0:
      return _SEEDS[-1 - origin.step].node(self._bank.node(origin.other), constant)
    others = [self._bank.node(origin.other)] if origin.other >= 0 else []
    return self._steps[origin.step].node(self.node(self._argument(origin), constant), *others)

  def at(
    self, origin: Origin, constant: float, values: Callable[[int], np.ndarray]
  ) -> tuple[np.ndarray, np.ndarray]:
    """Values and their derivative by the constant; values: place in the bank -> that formula's."""
    if origin.step == PLAIN:
      return values(origin.other), np.zeros_like(values(origin.other))
    if origin.step < 0:
      seed, plain, c = _SEEDS[-1 - origin.step], values(origin.other), np.array(constant)
      made = seed.of(plain, c)
      return made, seed.slope(plain, c, made)
    step = self._steps[origin.step]
    some, slope = self.at(self._argument(origin), constant, values)
    others = [values(origin.other)] if origin.other >= 0 else []
    made = step.of(some, *others)
    return made, step.slope(some, made, *others) * slope

  def _argument(self, origin: Origin) -> Origin:
    return Origin(*self._levels[origin.cost].origins[origin.place].tolist())

  def _of_cost(self, cost: int) -> Iterator[Chunk]:
    for place, seed in enumerate(_SEEDS):
      formulas = np.flatnonzero((self._costs == cost - seed.cost) & self._varies)
      formulas = formulas[seed.is_defined(self._bank.values[formulas])]
      if len(formulas) and self._allowed.issuperset(seed.tokens):
        yield from self._seeded(place, seed, formulas, cost)
    for place, step in enumerate(self._steps):
      for level, chunk in self._levels.items():
        left = cost - level - step.operator.cost
        others = np.flatnonzero(self._costs == left) if step.operator.arity == 2 else np.full(int(left == 0), -1)
        some = np.flatnonzero(~np.isin(self._tops(chunk), list(step.never_on))) if len(others) else others
        num_at_a_time = max(1, _AT_A_TIME // max(len(others), 1))
        for start in range(0, len(some), num_at_a_time):
          few = some[start : start + num_at_a_time]
          yield self._stepped(place, step, chunk, np.repeat(few, len(others)), np.tile(others, len(few)), cost)

  def _plain(self, cost: int) -> Iterator[Chunk]:
    """Formulas without a constant, of which slopes are 0."""
    formulas = np.flatnonzero((self._costs == cost) & self._varies)
    if len(formulas):
      none = np.full_like(formulas, -1)
      values = self._values[formulas][:, None]
      yield Chunk(cost, np.stack([np.full_like(none, PLAIN), none, none, formulas], axis=1),
                  np.zeros((len(formulas), 1)), values, np.zeros_like(values), np.full(len(formulas), True))

  def _tops(self, chunk: Chunk) -> np.ndarray:
    """What each family's last operator is, by name."""
    names = [step.operator.tokens[0] if step.operator.arity == 1 else "" for step in self._steps]
    return np.array([*names, *(seed.name for seed in reversed(_SEEDS))])[chunk.origins[:, 0]]

  def _seeded(self, place: int, seed: Seed, formulas: np.ndarray, cost: int) -> Iterator[Chunk]:
    plain = self._bank.values[formulas]
    keys = self._keys_of(seed.modulo(plain)) + place
    new = self._new(keys)
    keys, formulas, plain = keys[new], formulas[new], plain[new]
    constants = seed.constants(plain, self._config) if len(new) else np.zeros((0, self._config.num_constants))
    values = seed.of(plain[:, None], constants[..., None])
    slopes = seed.slope(plain[:, None], constants[..., None], values)
    made = np.full_like(formulas, -1)
    origins = np.stack([made - place, made, made, formulas], axis=1)
    values, slopes = values.astype(np.float32), slopes.astype(np.float32)
    yield self._kept(Chunk(cost, origins, constants, values, slopes, np.full(len(new), True)), keys, are_seeds=True)

  def _stepped(
    self, place: int, step: Step, chunk: Chunk, some: np.ndarray, others: np.ndarray, cost: int
  ) -> Chunk:
    plain = [self._values[others][:, None]] if step.operator.arity == 2 else []
    # At two constants, one of each sign: most are there already.
    looks = step.of(chunk.values[some][:, self._looks], *plain)
    of_each = [self._keys_of(looks[:, which]) for which in range(2)]
    is_finite = np.isfinite(looks).all(axis=2)
    keys = np.where(is_finite[:, 0], of_each[0], np.where(is_finite[:, 1], of_each[1] + 1, _UNKNOWN))
    new = self._new(keys)
    keys, some, others, plain = keys[new], some[new], others[new], [each[new] for each in plain]
    before = chunk.values[some]
    values = step.of(before, *plain)
    slopes = step.slope(before, values, *plain) * chunk.slopes[some]
    origins = np.stack([np.full(len(new), place), np.full(len(new), chunk.cost), some, others], axis=1)
    return self._kept(Chunk(cost, origins, chunk.constants[some], values, slopes, np.full(len(new), True)), keys)

  def _new(self, keys: np.ndarray) -> np.ndarray:
    """Places of the first of each key that was not there before; without a key all are new."""
    first = np.unique(keys, return_index=True)[1].tolist()
    known = [place for place in first if keys[place] != _UNKNOWN and int(keys[place]) not in self._keys]
    return np.sort(np.concatenate([np.array(known, dtype=int), np.flatnonzero(keys == _UNKNOWN)]))

  def _kept(self, chunk: Chunk, keys: np.ndarray, *, are_seeds: bool = False) -> Chunk:
    """Those that are of use, whose keys are there from now on."""
    keep, usable = _usable(chunk, self._largest, are_seeds=are_seeds)
    self._keys.update(keys[keep & (keys != _UNKNOWN)].tolist())
    return usable

  def _keys_of(self, values: np.ndarray) -> np.ndarray:
    """One number for each row of values [M, R], mostly the same for the same values: [M]."""
    mantissa, exponent = np.frexp(values.astype(np.float32) @ self._projections)
    some, other = np.round(np.nan_to_num(mantissa) * 2**_KEY_BITS).astype(np.int64).T
    return (some << 40) + (other << 20) + ((exponent[:, 0].astype(np.int64) & 1023) << 4)


def _one_of(chunks: Sequence[Chunk]) -> Chunk:
  return Chunk(chunks[0].cost, *map(np.concatenate, list(zip(*chunks, strict=True))[1:]))


def _joined(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
  """Of about as many families each: of few of them each costs much."""
  waiting: list[Chunk] = []
  for chunk in chunks:
    waiting.append(chunk)
    if sum(len(each.origins) for each in waiting) >= _AT_A_TIME // 2:
      yield _one_of(waiting)
      waiting = []
  if waiting:
    yield _one_of(waiting)


def _usable(chunk: Chunk, largest: float, *, are_seeds: bool = False) -> tuple[np.ndarray, Chunk]:
  """Which, and those, that are defined at some constants, and vary with them in a way that no outer constant does."""
  values, slopes = chunk.values, chunk.slopes
  sizes = np.max(np.abs(values), axis=2)
  changes = np.abs(chunk.constants) * np.max(np.abs(slopes), axis=2)
  is_defined = (sizes < largest) & (changes > _LEAST * sizes) & np.isfinite(slopes).all(axis=2)
  ratios = slopes / values
  is_constant = np.ptp(values, axis=2) < _CONSTANT * sizes
  is_outer = (np.ptp(slopes, axis=2) < _CONSTANT * np.max(np.abs(slopes), axis=2)) | (
    np.ptp(ratios, axis=2) < _CONSTANT * np.max(np.abs(ratios), axis=2))
  num_defined = np.sum(is_defined, axis=1)
  is_used = np.sum(is_outer & is_defined, axis=1) < 0.5 * num_defined
  keep = (num_defined >= _LEAST_DEFINED) & (np.sum(is_constant & is_defined, axis=1) < num_defined)
  if not are_seeds:
    keep &= is_used
  values = np.where(is_defined[..., None], values, np.nan)
  kept = (each[keep] for each in (chunk.origins, chunk.constants, values, slopes, is_used))
  return keep, Chunk(chunk.cost, *kept)
