"""Other ways to write a formula: a person's choice among several of the same value, each tried by whoever asks."""

from collections.abc import Callable, Sequence
import math
from typing import NamedTuple

from symformer_jax.language.expression import Node, chain, flatten, negate, number, power, sort_key, walk
from symformer_jax.language.tidy import power_of_exponential, split_factor, tidy, tidy_product, tidy_sum

# A phase so near to quarter turns (radians) is offered as none.
QUARTER_TURN, NEAR_QUARTER = math.pi / 2, 0.05
# A factor of an exponential or of a power that is more than this, or less than its inverse, is what the formula would
# be far from the data: 8e-130*exp(0.15*year).
LARGE_FACTOR = 1e6
# Exponent beyond which a power of a sum is tried as an exponential: the largest of a law, as in
# `ChoiceConfig.largest_exponent`.
LARGE_EXPONENT = 12.0
# Logarithm beyond which a number is out of range, with room for a product.
LARGEST_LOG = 300.0
# A sum has been one of decimals where rounding it saves more digits than this: of a third that is two.
_FEWER_DIGITS = 3
# Two waves whose constants differ by no more than this share may be one: fitted apart, under noise, they seldom agree.
# Under 5 % noise the decay of `exp(-0.3*x)*cos(2.1*x + 0.4)` came as 0.27 in one and as 0.36, or 0.5, in the other.
NEARLY_EQUAL = 0.5


def to_exponentials(node: Node) -> Node:
  """c**u -> exp(log(c)*u) for numbers c > 0: `0.60653066**(x**2)` is `exp(-0.5*x**2)`, a node more and digits less."""
  node = node._replace(args=tuple(to_exponentials(arg) for arg in node.args))
  if node.token == "pow" and node.args[0].is_number and node.args[0].value > 0 and not node.args[1].is_number:
    return Node("exp", (tidy_product([*flatten(node.args[1], "*"), number(math.log(node.args[0].value))]),))
  return node


def to_powers(node: Node) -> Node:
  """exp(a*log(u) + v) -> u**a*exp(v): `exp(log(x + 1)*y + 6.9077553)` is `1000*(x + 1)**y`.

  Where u is negative the power may be defined though the logarithm is not.
  """
  node = node._replace(args=tuple(to_powers(arg) for arg in node.args))
  if node.token != "exp":
    return node
  factors, rest = [], []
  for term in flatten(node.args[0], "+"):
    sign, term = (number(-1), term.args[0]) if term.token == "neg" else (number(1), term)
    parts = flatten(term, "*")
    logarithm = next((part for part in parts if part.token == "ln"), None)
    if logarithm is None:
      rest.append(tidy_product([*parts, sign]))
    else:
      exponent = tidy_product([*(part for part in parts if part is not logarithm), sign])
      factors.append(power(logarithm.args[0], exponent))
  if rest and factors:
    factors.append(tidy(Node("exp", (chain("+", rest),))))
  return tidy_product(factors) if factors else node


def to_origins(node: Node) -> Node:
  """a*exp(b*u) -> exp(b*(u - c)) and a*u**b -> (u/c)**b, for factors a beyond `LARGE_FACTOR`: `8.3e-130*exp(0.1515*t)`
  is `exp(0.1515*(t - 1963.7))`.

  The value stays; the digits of a and b, which are known together only, become those of where the formula is 1.
  """
  node = node._replace(args=tuple(to_origins(arg) for arg in node.args))
  if node.token not in ("*", "exp"):
    return node
  parts, factor = split_factor(node)
  for i, part in enumerate(parts):
    moved = _from_origin(part, abs(factor)) if math.isfinite(factor) and factor else None
    if moved is not None:
      return tidy_product([*parts[:i], moved, *parts[i + 1 :], number(math.copysign(1.0, factor))])
  return node


def _from_origin(part: Node, factor: float) -> Node | None:
  """An exponential or a power of something that is no number, times a positive factor, without it; None for others,
  and where the factor is none to mind.
  """
  size = math.log(factor)
  if part.token == "exp":
    terms = [split_factor(term) for term in flatten(part.args[0], "+")]
    inner = [(parts, multiple) for parts, multiple in terms if parts]
    size += sum(multiple for parts, multiple in terms if not parts)
    if len(inner) == 1 and inner[0][1] and abs(size) > math.log(LARGE_FACTOR):
      [(parts, multiple)] = inner
      moved = tidy_sum([tidy_product(list(parts)), number(size / multiple)])
      return Node("exp", (tidy_product([moved, number(multiple)]),))
  elif part.token == "pow" and abs(size) > math.log(LARGE_FACTOR):
    base, exponent = part.args
    scale = _raised(factor, 1 / exponent.value) if exponent.is_number and exponent.value else 0.0
    if scale and not base.is_number:
      return power(tidy_product([*flatten(base, "*"), number(scale)]), exponent)
  return None


# Functions f with f(c*u) = f(c)*f(u), and the exponent that does so; `pow` has its own.
_EXPONENTS = {"inv": -1.0, "sqrt": 0.5, "pow2": 2.0, "pow3": 3.0}


def _exponent(node: Node) -> float | None:
  """Of a power of any kind; None for other nodes, and where a column is in it."""
  return node.args[1].value if node.token == "pow" and node.args[1].is_number else _EXPONENTS.get(node.token)


def to_powers_of_equals(node: Node) -> Node:
  """u*v*u -> u**2*v, u**2.3*v/u -> u**1.3*v: factors that are powers of the same, as one."""
  if node.token != "*":
    return node._replace(args=tuple(to_powers_of_equals(arg) for arg in node.args))
  parts = [to_powers_of_equals(part) for part in flatten(node, "*")]
  by_base: dict[Node, list[tuple[float, Node]]] = {}
  for part in parts:
    base, exponent = _base_and_exponent(part)
    by_base.setdefault(base, []).append((exponent, part))
  if len(by_base) == len(parts):
    return chain("*", parts)
  return tidy_product([
    some[0][1] if len(some) == 1 else _power_of(base, _decimal_sum([exponent for exponent, _ in some]))
    for base, some in by_base.items()])


def _base_and_exponent(node: Node) -> tuple[Node, float]:
  """u and p of u**p, whichever way it is written."""
  if node.token == "inv":
    base, exponent = _base_and_exponent(node.args[0])
    return base, -exponent
  exponent_of = _exponent(node)
  return (node, 1.0) if exponent_of is None else (node.args[0], exponent_of)


def _decimal_sum(values: Sequence[float]) -> float:
  """Without what rounding leaves in the sixteenth digit: 0.687 - 1 is -0.313, not -0.31299999999999994."""
  total, largest = sum(values), max(map(abs, values))
  if not 0 < largest < math.inf:
    return total
  rounded = round(total, 14 - math.floor(math.log10(largest)))
  return rounded if len(repr(rounded)) < len(repr(total)) - _FEWER_DIGITS else total


def _power_of(base: Node, exponent: float) -> Node:
  return power(base, number(exponent)) if exponent else number(1)


def to_powers_of_factors(node: Node) -> Node:
  """(c*u*v)**3 -> c**3*u**3*v**3, exp(u)**3 -> exp(3*u), (u**1.5)**2 -> u**3: whole powers of products, of their
  factors, and of powers.
  """
  node = node._replace(args=tuple(to_powers_of_factors(arg) for arg in node.args))
  exponent = _exponent(node)
  if exponent is None or not 2 <= exponent == round(exponent):
    return node
  if inner := _exponent(node.args[0]):
    return power(node.args[0].args[0], number(inner * exponent))
  if node.args[0].token not in ("*", "exp"):
    return node
  parts, factor = split_factor(node.args[0])
  outside = _raised(abs(factor), exponent) * (-1.0 if factor < 0 and exponent % 2 else 1.0)
  if not outside:
    return node
  raised = [power_of_exponential(part, exponent) if part.token == "exp" else power(part, number(exponent))
            for part in parts]
  return tidy_product([*raised, number(outside)])


_EVEN = ("cos", "cosh", "abs")
_ODD = ("sin", "tan", "cot", "asin", "atan", "acot", "sinh", "tanh", "sign")


def to_positive_arguments(node: Node) -> Node:
  """cos(-a*u + c) -> cos(a*u - c), sin(-a*u) -> -sin(a*u): even functions of what rises, and odd ones of what is not
  negative throughout.
  """
  node = node._replace(args=tuple(to_positive_arguments(arg) for arg in node.args))
  exponent = _exponent(node)
  if exponent is not None and exponent % 1 == 0 and (opposite := _opposite_of_negative(node.args[0])) is not None:
    positive = node._replace(args=(opposite, *node.args[1:]))
    return negate(positive) if exponent % 2 else positive
  if node.token not in (*_EVEN, *_ODD):
    return node
  terms = [split_factor(term) for term in flatten(node.args[0], "+")]
  if any(factor > 0 for parts, factor in terms if parts or node.token in _ODD):
    return node
  turned = Node(node.token, (tidy_sum([tidy_product([*parts, number(-factor)]) for parts, factor in terms]),))
  return turned if node.token in _EVEN else negate(turned)


def to_opened_logarithms(node: Node) -> Node:
  """log(exp(u)*v) -> u + log(v): of a large u there is no exponential, though its logarithm is u; log(sqrt(u)) ->
  0.5*log(u), and so of every power that is positive only where u is.
  """
  node = node._replace(args=tuple(to_opened_logarithms(arg) for arg in node.args))
  if node.token != "ln":
    return node
  base, exponent = _base_and_exponent(node.args[0])
  if exponent != 1 and exponent % 2:
    return tidy_product([Node("ln", (base,)), number(exponent)])
  parts, factor = split_factor(node.args[0])
  exponents = [part.args[0] for part in parts if part.token == "exp"]
  if not exponents or factor <= 0:
    return node
  rest = tidy_product([*(part for part in parts if part.token != "exp"), number(factor)])
  return tidy_sum([*exponents, to_opened_logarithms(Node("ln", (rest,)))])


def to_opened_powers(node: Node) -> Node:
  """log(u**v) -> v*log(u) where v is no number; for u > 0."""
  node = node._replace(args=tuple(to_opened_powers(arg) for arg in node.args))
  if node.token != "ln" or node.args[0].token != "pow" or node.args[0].args[1].is_number:
    return node
  base, exponent = node.args[0].args
  return tidy_product([exponent, Node("ln", (base,))])


def to_limits(node: Node) -> Node:
  """(c + v)**p -> c**p*exp(p/c*v) for exponents beyond 12: what such a power is nearly, with a constant less.
  `(1 + exp(0.4*x))**(-900)` is a double exponential.

  The value is another one: whoever asks fits the constants again.
  """
  node = node._replace(args=tuple(to_limits(arg) for arg in node.args))
  if node.token != "pow" or not node.args[1].is_number or abs(node.args[1].value) <= LARGE_EXPONENT:
    return node
  terms, exponent = flatten(node.args[0], "+"), node.args[1].value
  constant, rest = sum(term.value for term in terms if term.is_number), [term for term in terms if not term.is_number]
  if not (constant > 0 and rest) or abs(exponent * math.log(constant)) > LARGEST_LOG:
    return node
  inner = tidy_product([tidy_sum(rest), number(exponent / constant)])
  return tidy_product([number(constant**exponent), Node("exp", (inner,))])


def _opposite_of_negative(node: Node) -> Node | None:
  """-u of what is a negative multiple of something, or a sum of nothing but such; None for others."""
  terms = [split_factor(term) for term in flatten(node, "+")]
  if node.is_number or not all(factor < 0 for _, factor in terms):
    return None
  return tidy_sum([tidy_product([*parts, number(-factor)]) for parts, factor in terms])


def to_unit_constants(node: Node) -> Node:
  """f(a*u + c) -> f(c)*f(a/c*u + 1) for inverses, roots and powers: `1/(4.15*exp(-x) + 0.2128)` is
  `4.7/(19.5*exp(-x) + 1)`.
  """
  # A square is read from where it is 0: `(x + 2)**2` is no `(0.5*x + 1)**2`.
  return _rescaled(node, lambda factor, terms, exponent: 0.0 if exponent == 2 else _inverse(
    sum(value for parts, value in terms if not parts)))


def to_unit_slopes(node: Node) -> Node:
  """f(a*u + c) -> f(a)*f(u + c/a), a of the first term: `(0.9*x - 1.8)**2` is `0.81*(x - 2)**2`."""
  return _rescaled(node, lambda factor, terms, exponent: _inverse(
    next((value for parts, value in terms if parts), 0.0)))


def _raised(base: float, exponent: float) -> float:
  """A power of a number that is no less than 0; 0 where it leaves the range of numbers."""
  size = exponent * math.log(base) if base else math.inf
  return base**exponent if abs(size) < LARGEST_LOG else 0.0


def _inverse(value: float) -> float:
  return 1 / value if value else 0.0


def to_unit_factors(node: Node) -> Node:
  """b*f(u) -> f(b'*u) for inverses, roots and powers of sums: `0.5*sqrt(x + 8)` is `sqrt(0.25*x + 2)`."""
  def scale(factor: float, terms: Sequence[tuple[Sequence[Node], float]], exponent: float) -> float:
    return _raised(abs(factor), 1 / exponent)
  return _rescaled(node, scale)


def _rescaled(node: Node, scale: Callable[[float, Sequence[tuple[Sequence[Node], float]], float], float]) -> Node:
  """Products with each inverse, root or power of a sum of which `scale` says by what to multiply the sum.

  `scale` has the factor of the product, the terms of the sum with their factors, and the exponent; 0 leaves the sum as
  it is.
  """
  node = node._replace(args=tuple(_rescaled(arg, scale) for arg in node.args))
  if node.token != "*" and node.token != "pow" and node.token not in _EXPONENTS:
    return node
  parts, factor = split_factor(node)
  changed = []
  for part in parts:
    exponent = _exponent(part)
    if exponent and part.args[0].token == "+":
      terms = [split_factor(term) for term in flatten(part.args[0], "+")]
      by = scale(factor, terms, exponent)
      outside = _raised(abs(by), -exponent) * (-1.0 if by < 0 and exponent % 2 else 1.0)
      if outside and (by > 0 or exponent == round(exponent)):
        inner = tidy_sum([tidy_product([*of, number(value * by)]) for of, value in terms])
        part = part._replace(args=(inner, *part.args[1:]))
        factor *= outside
    changed.append(part)
  return tidy_product([*changed, number(factor)])


def to_absolutes(node: Node) -> Node:
  """sqrt(4*(x - 1)**2) -> 2*abs(x - 1)."""
  node = node._replace(args=tuple(to_absolutes(arg) for arg in node.args))
  if node.token != "sqrt":
    return node
  parts, factor = split_factor(node.args[0])
  powers = [_base_and_exponent(part) for part in parts]
  if not parts or factor <= 0 or any(exponent % 2 for _, exponent in powers):
    return node
  return tidy_product([*(power(base if exponent % 4 == 0 else Node("abs", (base,)), number(exponent / 2))
                         for base, exponent in powers), number(math.sqrt(factor))])


def to_principal_phases(node: Node) -> Node:
  """Phases of waves within half a period, and none near a quarter turn: sin(u + 3.14159) -> -sin(u), and
  tan(u + 1.5708) -> -1/tan(u).

  The value changes by what a phase is off its quarter turn: whoever asks decides whether that is too much.
  """
  node = node._replace(args=tuple(to_principal_phases(arg) for arg in node.args))
  if node.token not in ("sin", "cos", "tan"):
    return node
  terms = flatten(node.args[0], "+")
  rest, phase = [t for t in terms if not t.is_number], sum(t.value for t in terms if t.is_number)
  if not rest or not phase or not math.isfinite(phase):
    return node
  quarter, period = round(phase / QUARTER_TURN), (2 if node.token == "tan" else 4) * QUARTER_TURN
  if abs(phase - quarter * QUARTER_TURN) > NEAR_QUARTER:
    return Node(node.token, (chain("+", [*rest, number(math.remainder(phase, period))]),))
  if node.token == "tan":
    tangent = Node("tan", (chain("+", rest),))
    return negate(Node("inv", (tangent,))) if quarter % 2 else tangent
  turns = (quarter + (node.token == "cos")) % 4
  turned = Node("cos" if turns % 2 else "sin", (chain("+", rest),))
  return negate(turned) if turns >= 2 else turned


def to_vertices(node: Node) -> Node:
  """a*u**2 + b*u + c -> a*((u + h)**2 + d), and exp(a*u**2 + b*u + c) -> exp(a*d)*exp(a*(u + h)**2): the place and the
  width of a peak are read from it.
  """
  if node.token == "exp" and (vertex := _vertex(node.args[0])) is not None and abs(vertex.constant) <= LARGEST_LOG:
    return tidy_product([to_vertices(Node("exp", (tidy_sum(vertex.terms()),))), number(math.exp(vertex.constant))])
  node = node._replace(args=tuple(to_vertices(arg) for arg in node.args))
  vertex = _vertex(node)
  if vertex is None:
    return node
  if vertex.rest:
    return tidy_sum([*vertex.terms(), number(vertex.constant)])
  return tidy_product([tidy_sum([vertex.square, number(vertex.constant / vertex.factor)]), number(vertex.factor)])


class _Vertex(NamedTuple):
  """A sum as factor*square + constant + the rest, the square being (u + h)**2."""

  square: Node
  factor: float
  constant: float
  rest: list[Node]

  def terms(self) -> list[Node]:
    """All but the constant."""
    return [*self.rest, tidy_product([self.square, number(self.factor)])]


def _vertex(node: Node) -> _Vertex | None:
  """None where the node is no sum with a*u**2 + b*u in it."""
  if node.token != "+":
    return None
  terms = [split_factor(term) for term in flatten(node, "+")]
  factors = {parts[0]: factor for parts, factor in terms if len(parts) == 1}
  square = next((part for part in factors if part.token == "pow2" and part.args[0] in factors), None)
  if square is None or not factors[square]:
    return None
  inner, factor = square.args[0], factors[square]
  shift = factors[inner] / factor / 2
  constant = sum(value for parts, value in terms if not parts) - factor * shift**2
  rest = [tidy_product([*parts, number(value)]) for parts, value in terms if parts and parts[0] not in (square, inner)]
  return _Vertex(power(tidy_sum([*flatten(inner, "+"), number(shift)]), number(2)), factor, constant, rest)


def to_single_waves(node: Node) -> Node:
  """a*sin(u)*v + b*cos(u)*v -> c*sin(u + phase)*v: what a selection among sines and cosines takes apart.

  Of a product of waves the first counts. Nearly equal constants become those of the term of the largest factor, so that
  constants are to be fitted again.
  """
  node = node._replace(args=tuple(to_single_waves(arg) for arg in node.args))
  if node.token != "+":
    return node
  waves: dict[tuple, dict[str, float]] = {}
  rest = []
  for term in sorted(flatten(node, "+"), key=lambda term: -abs(split_factor(term)[1])):
    parts, factor = split_factor(term)
    wave = next((part for part in parts if part.token in ("sin", "cos")), None)
    if wave is None:
      rest.append(term)
      continue
    others = tuple(sorted((part for part in parts if part is not wave), key=sort_key))
    found = (others, wave.args[0])
    amplitudes = waves.setdefault(next((known for known in waves if _is_nearly(known, found)), found), {})
    amplitudes[wave.token] = amplitudes.get(wave.token, 0.0) + factor
  for (others, argument), amplitudes in waves.items():
    if len(amplitudes) == 2:
      phase = number(math.atan2(amplitudes["cos"], amplitudes["sin"]))
      amplitudes = {"sin": math.hypot(*amplitudes.values())}
      argument = chain("+", [*flatten(argument, "+"), phase])
    rest += [tidy_product([*others, Node(token, (argument,)), number(factor)]) for token, factor in amplitudes.items()]
  return tidy_sum(rest)


def _is_nearly(first: tuple[tuple[Node, ...], Node], second: tuple[tuple[Node, ...], Node]) -> bool:
  """Whether factors and argument of two waves are the same but for the last digits of their constants."""
  one, other = ([part for node in (*factors, argument) for part in walk(node)] for factors, argument in (first, second))
  return len(one) == len(other) and all(
    a.token == b.token and (a.value == b.value or a.is_number and math.isclose(a.value, b.value, rel_tol=NEARLY_EQUAL))
    for a, b in zip(one, other, strict=True))


def to_proper_fractions(node: Node) -> Node:
  """In a sum with a number, a*u/(u + c) and a/(1/u + b) -> a number and a fraction with a number above the line.

  `0.9 - 0.9*x/(x + 2)` is `1.8/(x + 2)`: numbers that cancel are seen.
  """
  node = node._replace(args=tuple(to_proper_fractions(arg) for arg in node.args))
  if node.token != "+":
    return node
  terms = [split_factor(term) for term in flatten(node, "+")]
  if all(parts for parts, _ in terms):
    return node
  return tidy_sum([new for parts, factor in terms for new in _proper(parts, factor)])


def _proper(parts: Sequence[Node], factor: float) -> list[Node]:
  """A term of a sum as a number and a fraction, or as it is."""
  inverses = [part for part in parts if part.token == "inv" and part.args[0].token == "+"]
  if len(inverses) == 1:
    numbers, others = _numbers_apart(inverses[0].args[0])
    rest = [part for part in parts if part is not inverses[0]]
    inner, multiple = others[0] if len(others) == 1 else ((), 0.0)
    if numbers and multiple:
      if rest == list(inner):  # u/(m*u + c) = 1/m - c/m/(m*u + c)
        return [number(factor / multiple), tidy_product([inverses[0], number(-factor * numbers / multiple)])]
      if not rest and len(inner) == 1 and inner[0].token == "inv":  # 1/(m/u + b) = 1/b - m/b**2/(u + m/b)
        ratio = multiple / numbers
        fraction = Node("inv", (tidy_sum([inner[0].args[0], number(ratio)]),))
        return [number(factor / numbers), tidy_product([fraction, number(-factor * ratio / numbers)])]
  return [tidy_product([*parts, number(factor)])]


def _numbers_apart(node: Node) -> tuple[float, list[tuple[Sequence[Node], float]]]:
  """The number in a sum, and its other terms with their factors."""
  terms = [split_factor(term) for term in flatten(node, "+")]
  return sum(factor for parts, factor in terms if not parts), [(parts, f) for parts, f in terms if parts]
