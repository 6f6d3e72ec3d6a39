"""Small simplifications that keep a formula's shape.

`language.canonical` multiplies products of sums out, which is right for training data; an answer should stay as
compact as it was found: `a*(1 - exp(-b*x))` is no better as `a - a*exp(-b*x)`, with one more constant to fit.
"""

import functools
import math

import numpy as np

from symformer_jax.language import expression
from symformer_jax.language.expression import Node, chain, flatten, negate, number, power, sort_key

_NO_POINT = np.zeros((1, 1))
# A phase so near to quarter turns (radians) is offered as none.
QUARTER_TURN, NEAR_QUARTER = math.pi / 2, 0.05


# Trees share most of their parts, and many are tidied again and again: 16 thousand of them take some ten megabytes.
@functools.lru_cache(maxsize=1 << 14)
def tidy(node: Node) -> Node:
  """Folds numbers, drops neutral operands, joins numeric factors and sums, and orders operands.

  Args:
    node: a tree without named constants.
  Returns:
    A tree of the same value wherever the given one is defined; a part that is not finite is kept as it is.
  """
  if not node.args:
    return node
  node = node._replace(args=tuple(tidy(arg) for arg in node.args))
  if all(arg.is_number for arg in node.args):
    value = float(expression.evaluate(node, _NO_POINT)[0])
    return number(value) if math.isfinite(value) else node
  if node.token == "+":
    return _tidy_sum(flatten(node, "+"))
  if node.token == "*":
    return _tidy_product(flatten(node, "*"))
  if node.token == "neg":
    return _tidy_product([node.args[0], number(-1)]) if node.args[0].token == "*" else negate(node.args[0])
  if node.token == "inv":
    return _tidy_inverse(node)
  if node.token == "pow" and node.args[1].is_number:
    base, exponent = node.args[0], node.args[1].value
    if base.token == "inv":
      base, exponent = base.args[0], -exponent
    return number(1) if exponent == 0 else power(base, number(exponent))
  return node


def to_exponentials(node: Node) -> Node:
  """c**u -> exp(log(c)*u) for numbers c > 0: `0.60653066**(x**2)` is `exp(-0.5*x**2)`, a node more and digits less."""
  node = node._replace(args=tuple(to_exponentials(arg) for arg in node.args))
  if node.token == "pow" and node.args[0].is_number and node.args[0].value > 0 and not node.args[1].is_number:
    return Node("exp", (_tidy_product([*flatten(node.args[1], "*"), number(math.log(node.args[0].value))]),))
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
      rest.append(_tidy_product([*parts, sign]))
    else:
      exponent = _tidy_product([*(part for part in parts if part is not logarithm), sign])
      factors.append(power(logarithm.args[0], exponent))
  if rest and factors:
    factors.append(tidy(Node("exp", (chain("+", rest),))))
  return _tidy_product(factors) if factors else node


def to_principal_phases(node: Node) -> Node:
  """Phases of sines and cosines within half a turn, and none near a quarter: sin(u + 3.14159) -> -sin(u).

  The value changes by what a phase is off its quarter turn: whoever asks decides whether that is too much.
  """
  node = node._replace(args=tuple(to_principal_phases(arg) for arg in node.args))
  if node.token not in ("sin", "cos"):
    return node
  terms = flatten(node.args[0], "+")
  rest, phase = [t for t in terms if not t.is_number], sum(t.value for t in terms if t.is_number)
  if not rest or not phase or not math.isfinite(phase):
    return node
  quarter = round(phase / QUARTER_TURN)
  if abs(phase - quarter * QUARTER_TURN) > NEAR_QUARTER:
    return Node(node.token, (chain("+", [*rest, number(math.remainder(phase, 4 * QUARTER_TURN))]),))
  turns = (quarter + (node.token == "cos")) % 4
  turned = Node("cos" if turns % 2 else "sin", (chain("+", rest),))
  return negate(turned) if turns >= 2 else turned


def to_vertices(node: Node) -> Node:
  """a*u**2 + b*u + c -> a*((u + h)**2 + d): the place and the width of a peak are read from it."""
  node = node._replace(args=tuple(to_vertices(arg) for arg in node.args))
  if node.token != "+":
    return node
  terms = [_split_factor(term) for term in flatten(node, "+")]
  factors = {parts[0]: factor for parts, factor in terms if len(parts) == 1}
  square = next((part for part in factors if part.token == "pow2" and part.args[0] in factors), None)
  if square is None or not factors[square]:
    return node
  inner, factor = square.args[0], factors[square]
  shift = factors[inner] / factor / 2
  constant = sum(value for parts, value in terms if not parts) - factor * shift**2
  moved = power(_tidy_sum([*flatten(inner, "+"), number(shift)]), number(2))
  rest = [_tidy_product([*parts, number(value)]) for parts, value in terms if parts and parts[0] not in (square, inner)]
  if rest:
    return _tidy_sum([*rest, _tidy_product([moved, number(factor)]), number(constant)])
  return _tidy_product([_tidy_sum([moved, number(constant / factor)]), number(factor)])


def to_single_waves(node: Node) -> Node:
  """a*sin(u)*v + b*cos(u)*v -> c*sin(u + phase)*v: what a selection among sines and cosines takes apart.

  Of a product of waves the first counts.
  """
  node = node._replace(args=tuple(to_single_waves(arg) for arg in node.args))
  if node.token != "+":
    return node
  waves: dict[tuple, dict[str, float]] = {}
  rest = []
  for term in flatten(node, "+"):
    parts, factor = _split_factor(term)
    wave = next((part for part in parts if part.token in ("sin", "cos")), None)
    if wave is None:
      rest.append(term)
      continue
    others = tuple(sorted((part for part in parts if part is not wave), key=sort_key))
    amplitudes = waves.setdefault((others, wave.args[0]), {})
    amplitudes[wave.token] = amplitudes.get(wave.token, 0.0) + factor
  for (others, argument), amplitudes in waves.items():
    if len(amplitudes) == 2:
      phase = number(math.atan2(amplitudes["cos"], amplitudes["sin"]))
      amplitudes = {"sin": math.hypot(*amplitudes.values())}
      argument = chain("+", [*flatten(argument, "+"), phase])
    rest += [_tidy_product([*others, Node(token, (argument,)), number(factor)]) for token, factor in amplitudes.items()]
  return _tidy_sum(rest)


def _tidy_inverse(node: Node) -> Node:
  """1/(1/a) -> a, and 1/(c*a) -> (1/c)/a: the constant of a law is read above the line."""
  inner = node.args[0]
  if inner.token == "inv":
    return inner.args[0]
  factors = flatten(inner, "*")
  if len(factors) > 1 and factors[-1].is_number and math.isfinite(1 / factors[-1].value):
    return _tidy_product([Node("inv", (chain("*", factors[:-1]),)), number(1 / factors[-1].value)])
  return node


def _tidy_sum(terms: list[Node]) -> Node:
  constant = sum(t.value for t in terms if t.is_number)
  rest = sorted(_join_like_terms([t for t in terms if not t.is_number]), key=sort_key)
  return chain("+", [*rest, number(constant)] if constant or not rest else rest)


def _split_factor(term: Node) -> tuple[tuple[Node, ...], float]:
  """The factors of a term that are no numbers, and the product of those that are."""
  bare, factor = (term.args[0], -1.0) if term.token == "neg" else (term, 1.0)
  parts = flatten(bare, "*")
  return tuple(part for part in parts if not part.is_number), factor * math.prod(
    part.value for part in parts if part.is_number)


def _join_like_terms(terms: list[Node]) -> list[Node]:
  """a*t + b*t -> (a + b)*t; terms that occur once, or whose factors do not add up to a number, stay as they are."""
  alike: dict[tuple[Node, ...], list[tuple[Node, float]]] = {}
  for term in terms:
    parts, factor = _split_factor(term)
    alike.setdefault(parts, []).append((term, factor))
  joined = []
  for parts, each in alike.items():
    total = sum(factor for _, factor in each)
    if len(each) == 1 or not parts or not math.isfinite(total):
      joined += [term for term, _ in each]
    elif total:
      joined.append(_tidy_product([*parts, number(total)]))
  return joined


def _tidy_product(factors: list[Node]) -> Node:
  constant, rest = 1.0, []
  for factor in factors:
    while factor.token == "neg":
      constant, factor = -constant, factor.args[0]
    if factor.is_number:
      constant *= factor.value
    else:
      rest.append(factor)
  if constant == 0 or not rest:
    return number(constant)
  exponents = [factor.args[0] for factor in rest if factor.token == "exp"]
  if len(exponents) > 1:
    joined = _tidy_sum([term for exponent in exponents for term in flatten(exponent, "+")])
    return _tidy_product([*(f for f in rest if f.token != "exp"), tidy(Node("exp", (joined,))), number(constant)])
  rest.sort(key=sort_key)
  if constant == -1:
    return negate(chain("*", rest))
  return chain("*", rest if constant == 1 else [*rest, number(constant)])
