"""More ways to write a formula: by identities of functions. As `rewritings`, each is tried by whoever asks."""

from collections import Counter
from collections.abc import Sequence
import itertools
import math

from symformer_jax.language.expression import Node, chain, complexity, flatten, number, power
from symformer_jax.language.rewritings import LARGEST_LOG, QUARTER_TURN, to_powers_of_equals
from symformer_jax.language.tidy import split_factor, tidy, tidy_product, tidy_sum

# A sum multiplied out has no more terms: (x + a)*(x + b) has three, (u + a)*(v + b) beside a sum of these four.
MAX_TERMS = 3
MAX_TERMS_OF_TWO = 4
# w(u)**p of a sine or a cosine w is a share of w(u)**(p - 2), and a wave of so many times the angle of this amplitude.
_ANGLES = {"pow2": (2, 0.5, 0.5), "pow3": (3, 0.75, 0.25)}
# Of a factor: what rounding and noise leave of a term that an identity takes.
NEXT_TO_NOTHING = 0.02
# A number that is a smaller share of another one is rounding.
_ROUNDING = 1e-12
# As sines: cos(u) = sin(u + quarter turn).
_PHASES = {"sin": 0.0, "cos": QUARTER_TURN}
# f(u) = quarter turn - g(u), or that of 1/u.
_COMPLEMENTS = {"asin": "acos", "acos": "asin", "atan": "atan"}


def to_other_waves(node: Node) -> Node:
  """sin(u + c) -> cos(u + c - pi/2), and the other way round: `sin(x + 1.97079633)` is `cos(x + 0.4)`."""
  node = node._replace(args=tuple(to_other_waves(arg) for arg in node.args))
  if node.token not in ("sin", "cos"):
    return node
  terms = flatten(node.args[0], "+")
  if not any(term.is_number for term in terms):
    return node
  is_sine = node.token == "sin"
  argument = tidy_sum([*terms, number(-QUARTER_TURN if is_sine else QUARTER_TURN)])
  return Node("cos" if is_sine else "sin", (argument,))


def to_multiple_angles(node: Node) -> Node:
  """4*cos(u)**3*v - 3*cos(u)*v -> cos(3*u)*v, v - 2*sin(u)**2*v -> cos(2*u)*v, sin(u)*cos(u) -> 0.5*sin(2*u).

  Of a power in a sum where the term of the identity that is no multiple angle stands beside it, whatever its factor. A
  rest of it that is next to nothing is left out, so that constants are to be fitted again.
  """
  node = node._replace(args=tuple(to_multiple_angles(arg) for arg in node.args))
  if node.token == "*":
    return _with_double_angle(node)
  terms = [split_factor(term) for term in flatten(node, "+")]
  for i, (parts, factor) in enumerate(terms):
    raised = next((part for part in parts if part.token in _ANGLES and part.args[0].token in ("sin", "cos")), None)
    if raised is None:
      continue
    [wave], (times, share, amplitude) = raised.args, _ANGLES[raised.token]
    others = [part for part in parts if part is not raised]
    lower = Counter([*others, wave] if times == 3 else others)
    beside = next((j for j, (some, _) in enumerate(terms) if j != i and Counter(some) == lower), None)
    if beside is None:
      continue
    multiple = Node(wave.token if times == 3 else "cos", (_scaled(wave.args[0], times),))
    made = [tidy_product([*others, multiple, number(factor * amplitude * (1 if wave.token == "cos" else -1))])]
    left = terms[beside][1] + factor * share
    if abs(left) > NEXT_TO_NOTHING * abs(factor):
      made.append(tidy_product([*lower.elements(), number(left)]))
    return tidy_sum([*made, *(tidy_product([*some, number(value)])
                              for j, (some, value) in enumerate(terms) if j not in (i, beside))])
  return node


def _with_double_angle(product: Node) -> Node:
  parts = list(flatten(product, "*"))
  for sine in (part for part in parts if part.token == "sin"):
    cosine = Node("cos", sine.args)
    if cosine in parts:
      parts.remove(sine)
      parts.remove(cosine)
      return tidy_product([*parts, Node("sin", (_scaled(sine.args[0], 2),)), number(0.5)])
  return product


def to_half_angles(node: Node) -> Node:
  """v - cos(u)*v -> 2*sin(u/2)**2*v, v + cos(u)*v -> 2*cos(u/2)**2*v, where both factors are the same but for next to
  nothing, so that constants are to be fitted again: `(1 - cos(7.4*x))/x**2` near 0.
  """
  node = node._replace(args=tuple(to_half_angles(arg) for arg in node.args))
  terms = [split_factor(term) for term in flatten(node, "+")]
  for i, (parts, factor) in enumerate(terms):
    for wave in (part for part in parts if part.token == "cos"):
      others = [part for part in parts if part is not wave]
      beside = next((j for j, (some, value) in enumerate(terms) if j != i and Counter(some) == Counter(others)
                     and abs(abs(value) - abs(factor)) <= NEXT_TO_NOTHING * abs(factor)), None)
      if beside is not None:
        value = terms[beside][1]
        half = Node("cos" if value * factor > 0 else "sin", (_scaled(wave.args[0], 0.5),))
        return tidy_sum([tidy_product([*others, Node("pow2", (half,)), number(2 * value)]),
                         *(tidy_product([*some, number(each)]) for j, (some, each) in enumerate(terms)
                           if j not in (i, beside))])
  return node


def to_tangents(node: Node) -> Node:
  """sin(u + a)/sin(u + b) -> cos(a - b) + sin(a - b)/tan(u + b), and so with a cosine above or below the line:
  `7.0862*sin(2*x)/sin(2*x - 3) + 3.8889` is `1/tan(2*x - 3) - 3.1264`. 1/(a*tan(u) + b) is such a quotient.
  """
  node = node._replace(args=tuple(to_tangents(arg) for arg in node.args))
  return tidy_sum([new for term in flatten(node, "+") for new in _with_tangent(term)])


def _with_tangent(term: Node) -> list[Node]:
  """A term as one without a wave over another of the same slope and one with a tangent, or as it is."""
  parts = list(flatten(term, "*"))
  above = [(part, _phase(part)) for part in parts if part.token in _PHASES]
  below = [(part, _phase(part.args[0])) for part in parts if part.token == "inv" and part.args[0].token in _PHASES]
  for (over, (slope, phase)), (under, (same, other)) in itertools.product(above, below):
    if slope == same:
      others = [part for part in parts if part not in (over, under)]
      wave, turned = under.args[0], phase - other
      tangent, sign = ("cot", 1.0) if wave.token == "sin" else ("tan", -1.0)
      return _beside(others, math.cos(turned), Node(tangent, wave.args), sign * math.sin(turned))
  for part in parts:
    line = _line_of_tangent(part.args[0]) if part.token == "inv" else None
    if line is not None:
      argument, factor, constant = line
      others = [each for each in parts if each is not part]
      moved = tidy_sum([*flatten(argument, "+"), number(math.atan2(constant, factor))])
      size = math.hypot(factor, constant)
      if not 0 < size < math.inf:
        return [term]
      return _beside(others, constant / size / size, Node("cot", (moved,)), factor / size / size)
  return [term]


def _beside(others: Sequence[Node], plain: float, tangent: Node, factor: float) -> list[Node]:
  """The factors times a number, and times a tangent; without what is rounding of the other."""
  least = _ROUNDING * max(abs(plain), abs(factor))
  return [tidy_product([*others, *rest, number(value)]) for rest, value in (((), plain), ((tangent,), factor))
          if abs(value) > least]


def _line_of_tangent(node: Node) -> tuple[Node, float, float] | None:
  """u, a and b of a*tan(u) + b; None for all else."""
  terms = [split_factor(term) for term in flatten(node, "+")]
  numbers = [factor for parts, factor in terms if not parts]
  tangents = [(parts[0], factor) for parts, factor in terms if len(parts) == 1 and parts[0].token in ("tan", "cot")]
  if len(terms) != 2 or not (numbers and tangents):
    return None
  [(tangent, slope)] = tangents
  if tangent.token == "tan":
    return tangent.args[0], slope, numbers[0]
  return tidy_sum([*flatten(tangent.args[0], "+"), number(QUARTER_TURN)]), -slope, numbers[0]  # cot(u) = -tan(u + pi/2)


def _phase(wave: Node) -> tuple[tuple[Node, ...], float]:
  """The terms of a wave's argument that are no numbers, and its phase as a sine."""
  terms = flatten(wave.args[0], "+")
  shift = math.fsum(term.value for term in terms if term.is_number)
  return tuple(term for term in terms if not term.is_number), shift + _PHASES[wave.token]


def to_steps(node: Node) -> Node:
  """v - a*v/(b*exp(u) + a) -> b*v/(a*exp(-u) + b), where both a agree but for next to nothing, so that constants are to
  be fitted again: `44.6 - 44.6/(exp(3/x) + 1)` is `44.6/(exp(-3/x) + 1)`.
  """
  node = node._replace(args=tuple(to_steps(arg) for arg in node.args))
  terms = [split_factor(term) for term in flatten(node, "+")]
  for i, (parts, factor) in enumerate(terms):
    for step in parts:
      below = _constant_and_exponential(step)
      if below is None:
        continue
      constant, size, exponent = below
      others = [part for part in parts if part is not step]
      beside = next((j for j, (some, value) in enumerate(terms) if j != i and Counter(some) == Counter(others)
                     and abs(value * constant + factor) <= NEXT_TO_NOTHING * abs(factor)), None)
      if beside is not None:
        falling = Node("*", (Node("exp", (_scaled(exponent, -1.0),)), number(constant)))
        risen = Node("inv", (tidy_sum([tidy(falling), number(size)]),))
        rest = [tidy_product([*some, number(value)]) for j, (some, value) in enumerate(terms) if j not in (i, beside)]
        return tidy_sum([tidy_product([*others, risen, number(terms[beside][1] * size)]), *rest])
  return node


def _constant_and_exponential(part: Node) -> tuple[float, float, Node] | None:
  """c, b and u of 1/(b*exp(u) + c); None for all else."""
  terms = [split_factor(term) for term in flatten(part.args[0], "+")] if part.token == "inv" else []
  numbers = [factor for some, factor in terms if not some]
  exponentials = [(factor, some[0].args[0]) for some, factor in terms if len(some) == 1 and some[0].token == "exp"]
  if len(terms) != 2 or not (numbers and exponentials):
    return None
  return numbers[0], *exponentials[0]


def to_single_fractions(node: Node) -> Node:
  """a/(u/v + b) -> a*v/(u + b*v), and what stands beside a fraction above its line: `1 - 2/(x/y + 1)` is
  `(x - y)/(x + y)`.
  """
  before, node = node, node._replace(args=tuple(to_single_fractions(arg) for arg in node.args))
  if node.token == "inv" and node.args[0].token == "+":
    return _cleared(node.args[0])
  if node.token == "*":
    return node if node == before else to_powers_of_equals(_cancelled(flatten(node, "*")))
  terms = [split_factor(term) for term in flatten(node, "+")]
  line = next((part for parts, _ in terms for part in parts if part.token == "inv" and part.args[0].token == "+"), None)
  if line is None or len(terms) == 1:
    return node
  below = [split_factor(term) for term in flatten(line.args[0], "+")]
  above: list[Node] = []
  for parts, factor in terms:
    rest = list(parts)
    if line in rest:
      rest.remove(line)
      above.append(tidy_product([*rest, number(factor)]))
    else:
      above += [_cancelled([*parts, *some, number(factor * value)]) for some, value in below]
  joined = tidy_sum(above)
  return tidy_product([joined, line]) if len(flatten(joined, "+")) <= MAX_TERMS else node


def _cleared(below: Node) -> Node:
  """The inverse of a sum without the first line that stands in it."""
  terms = [split_factor(term) for term in flatten(below, "+")]
  inner = next((part.args[0] for parts, _ in terms for part in parts if part.token == "inv"), None)
  if inner is None:
    return Node("inv", (below,))
  return tidy_product([inner, Node("inv", (tidy_sum([
    _cancelled([*parts, inner, number(factor)]) for parts, factor in terms]),))])


def to_multiplied(node: Node) -> Node:
  """(u/v + w)*v -> u + v*w: into a sum goes a factor that one of its terms is divided by."""
  node = node._replace(args=tuple(to_multiplied(arg) for arg in node.args))
  factors = flatten(node, "*")
  for i, total in enumerate(factors):
    split = [split_factor(term) for term in flatten(total, "+")] if total.token == "+" else []
    terms = [(_lines(parts), factor) for parts, factor in split]
    for j, by in enumerate(factors):
      if i != j and any(Node("inv", (by,)) in parts for parts, _ in terms):
        multiplied = tidy_sum([_cancelled([*parts, by, number(factor)]) for parts, factor in terms])
        return to_multiplied(tidy_product([*(f for k, f in enumerate(factors) if k not in (i, j)), multiplied]))
  return node


def _lines(parts: Sequence[Node]) -> list[Node]:
  """Factors with an inverse of its own for each that stands below the line."""
  return [each for part in parts for each in (
    (Node("inv", (below,)) for below in flatten(part.args[0], "*")) if part.token == "inv" else (part,))]


def to_complements(node: Node) -> Node:
  """asin(u) -> pi/2 - acos(u), acos(u) -> pi/2 - asin(u), atan(u) -> pi/2 - atan(1/u), in a sum with a number.

  The value of the last changes where u is negative: whoever asks decides whether it does.
  """
  node = node._replace(args=tuple(to_complements(arg) for arg in node.args))
  if node.token != "+" or not any(term.is_number for term in flatten(node, "+")):
    return node
  changed = []
  for term in flatten(node, "+"):
    parts, factor = split_factor(term)
    if len(parts) == 1 and parts[0].token in _COMPLEMENTS:
      argument = parts[0].args[0]
      inner = tidy(Node("inv", (argument,))) if parts[0].token == "atan" else argument
      changed += [tidy_product([Node(_COMPLEMENTS[parts[0].token], (inner,)), number(-factor)]),
                  number(factor * QUARTER_TURN)]
    else:
      changed.append(term)
  return tidy_sum(changed)


def to_roots(node: Node) -> Node:
  """sqrt(a*u**2*v) -> sqrt(a)*u*sqrt(v), and sqrt(-a/(u - b)) -> sqrt(a)/sqrt(b - u).

  The value changes where u is negative: whoever asks decides whether it does.
  """
  node = node._replace(args=tuple(to_roots(arg) for arg in node.args))
  if node.token != "sqrt":
    return node
  parts, factor = split_factor(node.args[0])
  outside: list[Node] = []
  inside: list[Node] = []
  for part in parts:
    base = part.args[0] if part.token == "inv" else part
    if factor < 0 and base.token == "+":
      factor, base = -factor, _scaled(base, -1.0)
      part = part._replace(args=(base,)) if part.token == "inv" else base
    if base.token == "pow2":
      outside.append(base.args[0] if part is base else Node("inv", (base.args[0],)))
    else:
      inside.append(part)
  if factor <= 0:
    return node
  root = []
  if inside and all(part.token == "inv" for part in inside):
    root = [Node("inv", (Node("sqrt", (chain("*", [part.args[0] for part in inside]),)),))]
  elif inside:
    root = [Node("sqrt", (chain("*", inside),))]
  return tidy_product([*outside, *root, number(math.sqrt(factor))])


def to_factors_of_exponentials(node: Node) -> Node:
  """exp(u + c) -> exp(c)*exp(u): `exp(4.60517 - 1.2*exp(-x))` is `100*exp(-1.2*exp(-x))`; also exp(a*(u + c))."""
  node = node._replace(args=tuple(to_factors_of_exponentials(arg) for arg in node.args))
  terms = [part for term in flatten(node.args[0], "+") for part in flatten(_multiplied(term), "+")
           ] if node.token == "exp" else []
  size = sum(term.value for term in terms if term.is_number)
  rest = [term for term in terms if not term.is_number]
  if not size or not rest or abs(size) > LARGEST_LOG:
    return node
  return tidy_product([Node("exp", (chain("+", rest),)), number(math.exp(size))])


def to_joined_logarithms(node: Node) -> Node:
  """a*v*log(u) + b*v -> a*v*log(exp(b/a)*u): `log(x**2 + 2.5)/x - 0.91629/x` is `log(0.4*x**2 + 1)/x`."""
  node = node._replace(args=tuple(to_joined_logarithms(arg) for arg in node.args))
  if node.token != "+":
    return node
  terms = [split_factor(term) for term in flatten(node, "+")]
  for i, (parts, factor) in enumerate(terms):
    logarithm = next((part for part in parts if part.token == "ln"), None)
    if logarithm is None or not factor:
      continue
    others = tuple(part for part in parts if part is not logarithm)
    beside = next((j for j, (some, _) in enumerate(terms) if j != i and some == others), None)
    if beside is not None and abs(size := terms[beside][1] / factor) < LARGEST_LOG:
      joined = Node("ln", (_scaled(logarithm.args[0], math.exp(size)),))
      rest = [tidy_product([*some, number(value)]) for j, (some, value) in enumerate(terms) if j not in (i, beside)]
      return tidy_sum([*rest, tidy_product([*others, joined, number(factor)])])
  return node


def to_expanded(node: Node) -> Node:
  """(u + a)**2 -> u**2 + 2*a*u + a**2, and (u + a)*(u + b) likewise: the coefficients of a polynomial are read.

  Beside other terms also (u + a)*(v + b): `(u - 1)*(v - 1) + v` is `u*v - u + 1`.
  """
  node = node._replace(args=tuple(to_expanded(arg) for arg in node.args))
  if node.token == "pow2" and node.args[0].token == "+":
    return _product_of(node.args[0], node.args[0]) or node
  if node.token == "+":
    terms = [term for each in flatten(node, "+") for term in flatten(_multiplied(each), "+")]
    opened = tidy_sum([term for each in terms for term in flatten(_opened(each), "+")])
    return opened if len(flatten(opened, "+")) <= MAX_TERMS_OF_TWO else tidy_sum(terms)
  if node.token != "*":
    return node
  factors = list(flatten(node, "*"))
  sums = [factor for factor in factors if factor.token == "+"]
  below = [factor.args[0] for factor in factors if factor.token == "inv" and factor.args[0].token == "+"]
  for some, wrap in ((sums, lambda made: made), (below, lambda made: Node("inv", (made,)))):
    if len(some) == 2 and (made := _product_of(*some)) is not None:
      rest = [f for f in factors if f not in some and not (f.token == "inv" and f.args[0] in some)]
      return tidy_product([*rest, wrap(made)])
  return node


def to_distributed(node: Node) -> Node:
  """a*v*(u + w) -> a*v*u + a*v*w: `9.81*(0.05*x**2*y + w)*x/w` is `0.49*x**3*y/w + 9.81*x`."""
  node = node._replace(args=tuple(to_distributed(arg) for arg in node.args))
  factors = list(flatten(node, "*")) if node.token == "*" else []
  sums = [factor for factor in factors if factor.token == "+"]
  if len(sums) != 1:
    return node
  rest = [factor for factor in factors if factor is not sums[0]]
  return tidy_sum([_cancelled([*rest, *parts, number(factor)])
                   for parts, factor in map(split_factor, flatten(sums[0], "+"))])


def to_collected(node: Node) -> Node:
  """a*v*u + b*w*u -> (a*v + b*w)*u: `2.1*cos(1.7/y)/w - 1.7*cos(1.7/y)` is `(2.1/w - 1.7)*cos(1.7/y)`.

  The longest factor that several terms have, and what else all of these have.
  """
  node = node._replace(args=tuple(to_collected(arg) for arg in node.args))
  if node.token != "+":
    return node
  terms = [split_factor(term) for term in flatten(node, "+")]
  counts = Counter(part for parts, _ in terms for part in dict.fromkeys(parts))
  common = max((part for part, count in counts.items() if count > 1), key=complexity, default=None)
  if common is None:
    return node
  collected = [(list(parts), factor) for parts, factor in terms if common in parts]
  rest = [tidy_product([*parts, number(factor)]) for parts, factor in terms if common not in parts]
  shared = [part for part in dict.fromkeys(collected[0][0]) if all(part in parts for parts, _ in collected)]
  for parts, _ in collected:
    for part in shared:
      parts.remove(part)
  inner = tidy_sum([tidy_product([*parts, number(factor)]) for parts, factor in collected])
  return tidy_sum([tidy_product([*shared, inner]), *rest])


def _cancelled(factors: Sequence[Node]) -> Node:
  """A product in which what is above and below the line is gone, and what is there twice is squared."""
  left = list(factors)
  for below in [factor for factor in factors if factor.token == "inv"]:
    if below.args[0] in left:
      left.remove(below)
      left.remove(below.args[0])
  numbers, others = [f for f in left if f.is_number], [f for f in left if not f.is_number]
  return tidy_product([*(power(factor, number(others.count(factor))) for factor in dict.fromkeys(others)), *numbers])


def _multiplied(term: Node) -> Node:
  """A multiple of a sum as a sum; other terms as they are."""
  parts, factor = split_factor(term)
  return _scaled(parts[0], factor) if len(parts) == 1 and parts[0].token == "+" else term


def _opened(term: Node) -> Node:
  """A multiple of two sums as one sum; other terms as they are."""
  parts, factor = split_factor(term)
  is_of_sums = len(parts) == 2 and all(part.token == "+" for part in parts)
  return _product_of(_scaled(parts[0], factor), parts[1], most=MAX_TERMS_OF_TWO) or term if is_of_sums else term


def _product_of(first: Node, second: Node, *, most: int = MAX_TERMS) -> Node | None:
  """Two sums multiplied out, where that makes few terms."""
  terms = [_cancelled([*one, *other, number(a * b)])
           for one, a in map(split_factor, flatten(first, "+")) for other, b in map(split_factor, flatten(second, "+"))]
  made = tidy_sum(terms)
  return made if len(flatten(made, "+")) <= most else None


def _scaled(node: Node, factor: float) -> Node:
  """A multiple of a tree, that of a sum term by term."""
  if node.token == "+":
    return tidy_sum([tidy_product([term, number(factor)]) for term in flatten(node, "+")])
  return tidy_product([node, number(factor)])
