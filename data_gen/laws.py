"""Random formulas of the kind people bring: few terms, small exponents, common functions, ranges over decades.

A law is drawn together with the box of its variables, because constants inside functions only mean something there:
`exp(-0.3*x)` with x to 10, `exp(-3500/x)` with x from 280 to 400. Then it is written in the units in which the search
shows data to a model (columns to 5, y to 5, see `symformer_jax.engine.rescale`): constants of all sizes come about
by themselves.
"""

from collections.abc import Callable
import fractions
import math
from typing import NamedTuple

import numpy as np

from data_gen.config import LawsConfig
from data_gen.trees import Choice, evaluate, values
from symformer_jax.language.expression import VARIABLE, Node, chain, number, power, variable

# Draws of one law until a form, a box and constants go together; what fails is drawn anew in full.
_TRIES = 40
_NUM_POINTS = 48
# Terms of a sum whose RMS is below this share of the largest are not seen in the data: they get a coefficient.
_FAINT = 0.03
# Taking a column's values in another order must change y by this share of its spread, or the column does not matter.
_LEAST_EFFECT = 0.01
# y must vary by this share of its largest value: below, a search shows it without its mean.
_LEAST_VARIATION = 0.02
# What `engine.rescale` does: columns beyond the box or below 1 are brought to the box, y to 5 where its RMS is
# outside these bounds.
_BOX, _SMALL_X, _SMALLEST_Y, _LARGEST_Y, _COMFORTABLE_Y = 5.0, 1.0, 0.05, 1000.0, 5.0

# A largest value so many times the median comes from a pole within the box, which tables hardly have.
_MOST_SPAN = 3000.0
# Parts within parts: from this depth on only monomials.
_MAX_DEPTH = 3

_ONE = number(1)


class Law(NamedTuple):
  """A formula and where it holds.

  Attributes:
    tree: of the variables 0 ... k - 1.
    box: lower and upper end of each [k, 2].
  """

  tree: Node
  box: np.ndarray


class _UnfitError(Exception):
  """This form has no values in this box; another one is drawn."""


class LawSampler:
  """Draws laws of one configuration."""

  def __init__(self, config: LawsConfig):
    self.config = config
    self.num_variables = Choice(config.variables)
    self.repeats = Choice(config.repeats)
    self.exponents = Choice(config.exponents)
    self.sum_exponents = Choice(config.sum_exponents)
    self.functions = Choice(config.functions)
    self.forms = Choice(config.forms)
    self.single_forms = Choice(config.single_forms)
    self.intervals = Choice(config.intervals)

  def sample(self, rng: np.random.Generator) -> Law | None:
    """A law, or None when no draw made one; `rng` is consumed. Call it under `np.errstate(all="ignore")`."""
    count = int(self.num_variables.draw(rng))
    for _ in range(_TRIES):
      try:
        return _Draw(self, rng, count).law()
      except _UnfitError:
        continue
    return None


class _Draw:
  """One attempt: the box and points first, then the tree from the leaves upwards, looking at its values."""

  def __init__(self, sampler: LawSampler, rng: np.random.Generator, count: int):
    self.s, self.rng, self.count, self.depth = sampler, rng, count, 0
    self.box = self._draw_box()  # [k, 2]
    unit = rng.random((count, _NUM_POINTS))
    self.columns = self.box[:, :1] + (self.box[:, 1:] - self.box[:, :1]) * unit  # [k, N]

  def law(self) -> Law:
    rng = self.rng
    # A law of one variable says more about it.
    repeats = sum(int(self.s.repeats.draw(rng)) for _ in range(2 if self.count == 1 else 1))
    slots = [*range(self.count), *rng.integers(self.count, size=repeats)]
    tree = self._build([int(slots[i]) for i in rng.permutation(len(slots))], "")
    if rng.random() < 0.5:
      tree = _times(self._coefficient(), tree)
    if rng.random() < 0.08:
      tree = chain("+", [tree, number(_round(float(self._rms(tree)) * _sign(rng) * 10 ** rng.uniform(-1, 1), rng))])
    self._check(tree)
    return self._in_model_units(tree)

  # --- forms -------------------------------------------------------------------------------------------------------

  def _build(self, slots: list[int], parent: str) -> Node:
    """A formula in which each of the slots' variables occurs; no sum is drawn in a sum, no product in a product."""
    forms = self.s.single_forms if len(slots) == 1 else self.s.forms
    form = forms.draw(self.rng)
    while form == parent or (parent == "product" and form == "monomial"):
      form = forms.draw(self.rng)
    if self.depth == _MAX_DEPTH:
      return self._monomial(slots)
    self.depth += 1
    node = getattr(self, f"_{form}")(slots)
    self.depth -= 1
    return node

  def _monomial(self, slots: list[int]) -> Node:
    """Different variables with exponents; powers that need it stay on one side of 0."""
    factors = []
    for v in sorted(set(slots)):
      exponent = _exponent(self.s.exponents, self.rng)
      while exponent < 0 and self.box[v, 0] < 0 < self.box[v, 1]:
        exponent = _exponent(self.s.exponents, self.rng)
      factors.append(power(variable(v), number(exponent)))
    return self._finite(chain("*", factors))

  def _product(self, slots: list[int]) -> Node:
    """A monomial of some of the slots, or nothing, times one or two other forms."""
    parts = self._split(slots, 2 if self.rng.random() < 0.8 else 3)
    first = self._monomial(parts[0]) if self.rng.random() < 0.75 else self._build(parts[0], "product")
    return self._finite(chain("*", [first, *(self._build(part, "product") for part in parts[1:])]))

  def _sum(self, slots: list[int]) -> Node:
    """Terms of comparable size, with signs, coefficients and sometimes a constant."""
    rng = self.rng
    parts = self._split(slots, min(len(slots), 2 if rng.random() < 0.6 else int(rng.integers(3, 6))))
    terms = [self._build(part, "sum") for part in parts]
    terms = [_times(self._coefficient(), term) if rng.random() < 0.4 else term for term in terms]
    sizes = [self._rms(term) for term in terms]
    largest = max(sizes)
    for i, size in enumerate(sizes):
      if 0 < size < _FAINT * largest:
        terms[i] = _times(_round(largest / size * 10 ** rng.uniform(-1, 0.3), rng), terms[i])
    if len(terms) == 1 or rng.random() < 0.3:
      # 1 where it is no stranger: `1 - x**2/y**2`.
      simple = 0.1 < largest < 10 and rng.random() < 0.6
      terms.append(_ONE if simple else number(_round(largest * 10 ** rng.uniform(-1, 0.5), rng)))
    negative = rng.random(len(terms)) < 0.3
    terms = [_times(-1.0, term) if is_negative else term for term, is_negative in zip(terms, negative, strict=True)]
    return self._finite(chain("+", terms))

  def _power(self, slots: list[int]) -> Node:
    exponent = _exponent(self.s.sum_exponents, self.rng)
    base = self._sum(slots)
    if exponent != int(exponent) or exponent < 0 and self.rng.random() < 0.9:
      base = self._made_positive(base)
    return self._finite(power(base, number(exponent)))

  def _function(self, slots: list[int]) -> Node:
    """A function of a monomial or of a short sum, whose argument spans what the function is known for."""
    rng = self.rng
    name = self.s.functions.draw(rng)
    shape, smallest, largest = _FUNCTIONS[name]
    argument = self._sum(slots) if rng.random() < 0.35 else self._monomial(slots)
    if name in _POSITIVE:
      argument = self._made_positive(argument)
    span = float(np.max(np.abs(evaluate(argument, self.columns))))
    if not smallest <= span <= largest or rng.random() < 0.5:
      wanted = math.exp(rng.uniform(math.log(smallest), math.log(largest)))
      argument = _times(_round(wanted / span, rng), argument) if 0 < span < math.inf else argument
    return self._finite(shape(argument))

  def _split(self, slots: list[int], count: int) -> list[list[int]]:
    """The slots in `count` groups, none of them empty, where there are so many."""
    cuts = np.sort(self.rng.choice(len(slots) - 1, min(count, len(slots)) - 1, replace=False)) + 1
    return [[*part] for part in np.split(np.array(slots), cuts)]

  def _made_positive(self, node: Node) -> Node:
    """Turns what is negative throughout, sometimes lifts what is negative somewhere, and refuses the rest."""
    y = values(node, self.columns)
    if np.min(y) > 0:
      return node
    if np.max(y) < 0:
      return _times(-1.0, node)
    lift = -float(np.min(y)) * self.rng.uniform(1.05, 2)
    if self.rng.random() < 0.3:
      return chain("+", [node, number(_round(lift, self.rng))])
    raise _UnfitError

  # --- numbers -----------------------------------------------------------------------------------------------------

  def _coefficient(self) -> float:
    """A factor as laws have them: mostly simple, sometimes of any size."""
    rng = self.rng
    kind = rng.random()
    if kind < 0.3:
      return float(rng.integers(2, 6)) * (1 if rng.random() < 0.6 else 0.5)
    if kind < 0.55:
      return _USUAL[int(rng.integers(len(_USUAL)))]
    if kind < 0.85:
      return _round(10 ** rng.uniform(-1, 1.3), rng)
    return _round(10 ** rng.uniform(-8, 8), rng)

  def _draw_box(self) -> np.ndarray:
    """Intervals [k, 2]; often of one kind for all variables, as in tables of one source."""
    is_common = self.rng.random() < 0.5
    kind = self.s.intervals.draw(self.rng)
    kinds = [kind if is_common else self.s.intervals.draw(self.rng) for _ in range(self.count)]
    return np.array([_INTERVALS[k](self.rng) for k in kinds])

  # --- judgement ---------------------------------------------------------------------------------------------------

  def _rms(self, node: Node) -> float:
    return float(np.sqrt(np.mean(np.square(evaluate(node, self.columns)))))

  def _finite(self, node: Node) -> Node:
    if not np.all(np.isfinite(evaluate(node, self.columns))):
      raise _UnfitError
    return node

  def _check(self, tree: Node) -> None:
    """Refuses a law that is constant to the eye, has a pole in its box, or a variable that does not matter."""
    y = values(tree, self.columns)
    if not np.all(np.isfinite(y)) or np.ptp(y) <= _LEAST_VARIATION * np.max(np.abs(y)):
      raise _UnfitError
    if np.max(np.abs(y)) > _MOST_SPAN * np.median(np.abs(y)):
      raise _UnfitError
    spread = np.std(y)
    for i in range(self.count):
      moved = self.columns.copy()
      moved[i] = np.roll(moved[i], 1)
      # Combinations of values that were not drawn may lie where the law does not hold.
      change = values(tree, moved) - y
      if not np.sqrt(np.nanmean(np.square(change))) >= _LEAST_EFFECT * spread:
        raise _UnfitError

  # --- units -------------------------------------------------------------------------------------------------------

  def _in_model_units(self, tree: Node) -> Law:
    """The law as the search shows it: f(s x' + o) / t, with its box in x'."""
    lows, highs = self.box[:, 0], self.box[:, 1]
    largest, span = np.max(np.abs(self.box), axis=1), highs - lows
    offsets = np.zeros(self.count)
    is_far = (span < 0.7 * largest) & ((largest > _BOX) | (span < _SMALL_X))
    if self.rng.random() < self.s.config.centred:
      # Columns off to one side are centred, or begun at 0.
      offsets = np.where(is_far, lows if self.rng.random() < 0.5 else (lows + highs) / 2, 0.0)
    ends = self.box - offsets[:, None]
    largest = np.max(np.abs(ends), axis=1)
    is_raw = self.rng.random() < self.s.config.small_as_given
    is_scaled = (largest > _BOX) | ((largest < _SMALL_X) & (not is_raw))
    scales = np.where(is_scaled, largest / _BOX, 1.0)
    rms = self._rms(tree)
    moved = _substitute(tree, scales, offsets)
    if not _SMALLEST_Y <= rms <= _LARGEST_Y:
      moved = _times(_COMFORTABLE_Y / rms, moved)
    return Law(moved, ends / scales[:, None])


def _substitute(node: Node, scales: np.ndarray, offsets: np.ndarray) -> Node:
  """The tree with `scales[i] * x_i + offsets[i]` for x_i."""
  if node.token == VARIABLE:
    scaled = _times(float(scales[node.value]), node)
    offset = float(offsets[node.value])
    return chain("+", [scaled, number(offset)]) if offset else scaled
  return node._replace(args=tuple(_substitute(arg, scales, offsets) for arg in node.args))


def _times(factor: float, node: Node) -> Node:
  return node if factor == 1 else Node("*", (node, number(factor)))


def _exponent(choice: Choice, rng: np.random.Generator) -> float:
  return float(fractions.Fraction(choice.draw(rng)))


def _sign(rng: np.random.Generator) -> float:
  return 1.0 if rng.random() < 0.5 else -1.0


def _round(value: float, rng: np.random.Generator) -> float:
  """To one to four significant digits, as constants are written."""
  return float(f"{value:.{int(rng.integers(1, 5))}g}")


# Factors that recur in textbooks.
_USUAL = (0.5, 2.0, 3.0, 4.0, 1 / 3, 0.25, 1.5, math.pi, 2 * math.pi, 4 * math.pi, 1 / (2 * math.pi), 1 / (4 * math.pi),
          8 * math.pi, 4 * math.pi / 3, 0.1, 10.0, 100.0, -1.0)


def _call(token: str) -> Callable[[Node], Node]:
  return lambda u: Node(token, (u,))


def _exponential_decay(u: Node) -> Node:
  return Node("exp", (_times(-1.0, u),))


def _gaussian(u: Node) -> Node:
  return Node("exp", (_times(-1.0, Node("pow2", (u,))),))


def _plus(u: Node, value: float) -> Node:
  return chain("+", [u, number(value)])


# What a function is made of, and the smallest and largest |argument| at which it shows.
_FUNCTIONS = {
  "exp": (_call("exp"), 0.3, 6.0),
  "decay": (_exponential_decay, 0.3, 6.0),
  "gaussian": (_gaussian, 0.7, 3.0),
  "saturation": (lambda u: chain("+", [_ONE, _times(-1.0, _exponential_decay(u))]), 0.7, 6.0),
  "growth": (lambda u: _plus(Node("exp", (u,)), -1.0), 0.5, 5.0),
  "bose": (lambda u: Node("inv", (_plus(Node("exp", (u,)), -1.0),)), 0.7, 6.0),
  "logistic": (lambda u: Node("inv", (_plus(_exponential_decay(u), 1.0),)), 1.0, 7.0),
  "tanh": (lambda u: _plus(_times(-2.0, Node("inv", (_plus(Node("exp", (_times(2.0, u),)), 1.0),))), 1.0), 0.7, 4.0),
  "sin": (_call("sin"), 0.8, 15.0),
  "cos": (_call("cos"), 0.8, 15.0),
  "sin2": (lambda u: Node("pow2", (Node("sin", (u,)),)), 0.8, 8.0),
  "tan": (_call("tan"), 0.4, 1.4),
  "ln": (_call("ln"), 2.0, 1e3),
  "sqrt": (_call("sqrt"), 0.5, 100.0),
  "asin": (_call("asin"), 0.4, 0.98),
  "acos": (_call("acos"), 0.4, 0.98),
  "atan": (_call("atan"), 0.7, 10.0),
}
# These are defined for a positive argument, or have a pole at 0.
_POSITIVE = ("ln", "sqrt", "bose")


def _near(rng: np.random.Generator) -> tuple[float, float]:
  """1:5, 0.1:20, 3:10: positive, of about one decade."""
  low = (0.1, 0.2, 0.5, 1.0, 1.0, 2.0, 3.0)[int(rng.integers(7))]
  return low, low + (1.0, 1.0, 2.0, 4.0, 4.0, 9.0, 19.0)[int(rng.integers(7))]


def _decades(rng: np.random.Generator) -> tuple[float, float]:
  high = _round(10 ** rng.uniform(-4, 6), rng)
  return high * 10 ** -rng.uniform(0.3, 3), high


def _from_zero(rng: np.random.Generator) -> tuple[float, float]:
  return 0.0, (1.0, 2.0, 5.0, 10.0, 20.0, 100.0)[int(rng.integers(6))]


def _symmetric(rng: np.random.Generator) -> tuple[float, float]:
  high = (1.0, 1.0, 2.0, 3.0, 5.0, 10.0)[int(rng.integers(6))]
  return -high, high


def _off_centre(rng: np.random.Generator) -> tuple[float, float]:
  """280:400, 45:110: far from 0 beside its width."""
  centre = 10 ** rng.uniform(0, 3.5)
  half = centre * 10 ** rng.uniform(-1.2, -0.3)
  return float(f"{centre - half:.3g}"), float(f"{centre + half:.3g}")


def _negative(rng: np.random.Generator) -> tuple[float, float]:
  low, high = _near(rng)
  return -high, -low


_INTERVALS = {"near": _near, "decades": _decades, "from_zero": _from_zero, "symmetric": _symmetric,
              "off_centre": _off_centre, "negative": _negative}
