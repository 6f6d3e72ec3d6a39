"""Which columns the library has: THE table `FAMILIES` of functions that differ in their inner constants."""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import itertools
import math

import numpy as np

from symformer_jax.engine.config import TIERS, LibraryConfig
from symformer_jax.language import expression, operators
from symformer_jax.language.expression import Node, chain, number, power, variable
from symformer_jax.language.tidy import tidy
from symformer_jax.sources.monomials import Monomial, Values, monomials, to_node, up_to

# How thoroughly sums of a column are searched.
ANY, BASIC, MONOMIAL = range(len(TIERS))


@dataclasses.dataclass(frozen=True)
class Family:
  """Functions that differ in their inner constants.

  Attributes:
    values: [N, G]; NaN or infinite where undefined.
    build: index of a column -> its formula.
    tier: how thoroughly sums of such atoms are searched.
    is_mixed: whether the members are different functions after all.
  """

  values: np.ndarray
  build: Callable[..., Node]  # of a column's number; in a loop a lambda has what it is of as defaults
  tier: int = ANY
  is_mixed: bool = False


@dataclasses.dataclass(frozen=True)
class Space:
  """What families are made of: points x [N, D], the columns of x that are used, how many of what, and the operators
  that were asked for by name (`requested_functions`).
  """

  x: np.ndarray
  columns: Sequence[int]
  config: LibraryConfig
  requested: tuple[str, ...] = ()

  @functools.cached_property
  def variables(self) -> list[Node]:
    return [variable(column) for column in self.columns]

  @property
  def is_of_few(self) -> bool:
    """Whether functions of each variable have grids of inner constants."""
    return len(self.columns) <= self.config.max_variables

  @property
  def is_of_many(self) -> bool:
    """Whether monomials of several variables, and functions times such, are worth their place."""
    return len(self.columns) >= self.config.min_many


@dataclasses.dataclass(frozen=True)
class _Argument:
  """What functions are taken of: its values u [N], and what the functions are multiplied by."""

  node: Node
  u: np.ndarray
  is_variable: bool
  factors: Sequence[Node]
  is_inner: bool = False


def make_families(space: Space) -> Iterator[Family]:
  """Every column of the families that the config names."""
  for subjects, rows in FAMILIES:
    named = [make for name, make in rows.items() if name in space.config.families]
    for subject in subjects(space) if named else ():
      for make in named:
        yield from make(space, subject)


def plain_columns(space: Space, columns: Sequence[int]) -> list[Family]:
  """Some columns as they are, where there are monomials."""
  if not columns or "monomials" not in space.config.families:
    return []
  return [Family(space.x[:, list(columns)], lambda g: variable(columns[g]), MONOMIAL, is_mixed=True)]


# --- what they are about -------------------------------------------------------------------------------------------


def _all(space: Space) -> Iterator[None]:
  """Once, whatever the number of variables."""
  yield None


def _all_of_many(space: Space) -> Iterator[None]:
  if space.is_of_many:
    yield None


def _all_of_few(space: Space) -> Iterator[None]:
  if space.is_of_few:
    yield None


def _each_variable(space: Space) -> Iterator[Node]:
  if space.is_of_few:
    yield from space.variables


def _each_pair(space: Space) -> Iterator[tuple[Node, Node]]:
  if space.is_of_few:
    yield from itertools.combinations(space.variables, 2)


def _each_argument(space: Space) -> Iterator[_Argument]:
  """Powers of a variable, sums, products and quotients of two; of few variables also functions of one, and x*log(x)."""
  if not space.is_of_few:
    return
  variables, config = space.variables, space.config
  arguments = [power(v, number(p)) for v in variables for p in config.argument_powers]
  for v, w in itertools.combinations(variables, 2):
    squares = power(v, number(2)), power(w, number(2))
    inverses = Node("inv", (v,)), Node("inv", (w,))
    arguments += [
      Node("+", (v, w)), Node("+", (v, Node("neg", (w,)))), Node("*", (v, w)), Node("*", (v, inverses[1])),
      Node("*", (w, inverses[0])), Node("*", (squares[0], inverses[1])), Node("*", (squares[1], inverses[0])),
      Node("+", squares)]
  factors = [power(v, number(p)) for v in variables for p in config.outer_powers]
  factors += [Node("*", pair) for pair in itertools.combinations(variables, 2)]
  few_factors = factors[: config.num_few_factors] if len(variables) == 1 else []
  inner: list[Node] = []
  if len(variables) <= config.max_inner:
    inner = [Node(token, (v,)) for v in variables for token in config.inner_functions]
    arguments += [Node("*", (v, Node("ln", (v,)))) for v in variables if "ln" in config.inner_functions]  # of v**v
  for node in [*arguments, *inner]:
    u, is_variable = expression.evaluate(node, space.x), node in variables
    if np.isfinite(u).all() and np.ptp(u) > 0:
      is_inner = node in inner
      yield _Argument(node, u, is_variable, factors if is_variable else () if is_inner else few_factors, is_inner)


# --- of an argument ------------------------------------------------------------------------------------------------


def _with_factors(
  make: Callable[[_Argument, LibraryConfig], Iterator[Family]]
) -> Callable[[Space, _Argument], Iterator[Family]]:
  """The families of an argument, and each times every factor."""
  def families(space: Space, argument: _Argument) -> Iterator[Family]:
    for family in make(argument, space.config):
      # Looked for as thoroughly as `cos(2*x)`; what such a wave must explain to be recommended, `selection` says.
      is_plain = argument.is_variable or argument.is_inner and make is _trigonometric
      yield dataclasses.replace(family, tier=BASIC if is_plain else ANY)
      for factor in argument.factors:
        yield _times(factor, family, space.x)
  return families


def _rates(argument: _Argument, config: LibraryConfig) -> np.ndarray:
  """Inner factors of exponentials: the usual ones, and rising and falling ones over the data's range."""
  grid = np.geomspace(*config.rates) / np.ptp(argument.u)
  return np.concatenate([config.usual_rates, grid, -grid])


def _shifts(argument: _Argument, config: LibraryConfig) -> np.ndarray:
  """Inner summands that bring a zero near the data: below them, and above."""
  u, grid = argument.u, np.ptp(argument.u) * np.geomspace(*config.distances)
  return np.concatenate([config.usual_shifts, grid - u.min(), -grid - u.max()])


def _places(u: np.ndarray, config: LibraryConfig) -> np.ndarray:
  """Places within the data's range, evenly spaced, its ends left out."""
  return np.ptp(u) * np.linspace(0.0, 1.0, config.num_places + 2)[1:-1]


def _exponentials(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  yield _grid("exp", _scaled(argument.node), _rates(argument, config), argument.u)


def _occupancies(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  """1/(exp(c*u) + 1), 1/(exp(c*u) - 1)."""
  rates = _rates(argument, config)
  for sign in (1.0, -1.0):
    yield _bent(
      "inv", lambda c, sign=sign: Node("+", (Node("exp", (_scaled(argument.node)(c),)), number(sign))), rates,
      1 / (np.exp(rates * argument.u[:, None]) + sign))


def _arctangents(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  rates = np.concatenate([config.integers, np.geomspace(*config.rates) / np.max(np.abs(argument.u))])
  yield _grid("atan", _scaled(argument.node), rates, argument.u)


def _trigonometric(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  for token in ("sin", "cos", "tan"):
    yield _grid(token, _scaled(argument.node), np.array(config.integers), argument.u)


def _logarithms(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  yield from _above_and_below("ln", argument, config)


def _roots(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  yield from _above_and_below("sqrt", argument, config)


def _above_and_below(token: str, argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  """token(u + c) and, for variables, token(c - u)."""
  yield _grid(token, _shifted(argument.node), _shifts(argument, config), argument.u, is_sum=True)
  if argument.is_variable:
    opposite = dataclasses.replace(argument, node=Node("neg", (argument.node,)), u=-argument.u)
    yield _grid(token, _shifted(opposite.node), _shifts(opposite, config), opposite.u, is_sum=True)


def _poles(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  """1/(u + c), outside the data and between them."""
  u = argument.u
  shifts = np.concatenate([_shifts(argument, config), -(u.min() + _places(u, config))])
  yield _grid("inv", _shifted(argument.node), shifts, u, is_sum=True)


def _powers_of_sums(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  """1/sqrt(u + c), (u + c)**1.5 and, of variables, the same of c - u."""
  sides = [argument]
  if argument.is_variable:
    sides.append(dataclasses.replace(argument, node=Node("neg", (argument.node,)), u=-argument.u))
  for side in sides:
    shifts = _shifts(side, config)
    inner, values = _shifted(side.node), side.u[:, None] + shifts
    yield Family(values**-0.5, lambda g, inner=inner, c=shifts: Node("inv", (Node("sqrt", (inner(c[g]),)),)))
    yield Family(values**1.5, lambda g, inner=inner, c=shifts: power(inner(c[g]), number(1.5)))


def _arcsines(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  """asin(c*u), of which acos is a multiple beside a constant."""
  shares = np.array(config.arcsine_shares) / np.max(np.abs(argument.u))
  yield _grid("asin", _scaled(argument.node), np.concatenate([[1.0], shares]), argument.u)


def _bent_functions(argument: _Argument, config: LibraryConfig) -> Iterator[Family]:
  """Inverses and squares of logarithms and waves without inner constants."""
  for token in ("ln", "sin", "cos", "tan"):
    inner = operators.BY_NAME[token].numpy_fn(argument.u)[:, None]
    for outer in ("inv", "pow2"):
      values = operators.BY_NAME[outer].numpy_fn(inner)
      yield _bent(outer, lambda c, token=token: Node(token, (argument.node,)), np.ones(1), values)


def _waves(space: Space, argument: _Argument) -> Iterator[Family]:
  """sin and cos of all lengths, and times every factor."""
  config, is_variable = space.config, argument.is_variable
  yield from _waves_of(argument.node, argument.u, config.num_waves if is_variable else config.num_other_waves)
  num_multiplied = config.num_multiplied_waves if is_variable else config.num_other_waves
  for factor in argument.factors:
    for family in _waves_of(argument.node, argument.u, num_multiplied):
      yield _times(factor, family, space.x)


def _waves_of(node: Node, u: np.ndarray, num_waves: int) -> Iterator[Family]:
  rates = np.arange(1, num_waves + 1) * _quarter_wave(u)
  for token in ("sin", "cos"):
    yield _grid(token, _scaled(node), rates, u)


# --- of few variables ----------------------------------------------------------------------------------------------


def _decaying_waves(space: Space, v: Node) -> Iterator[Family]:
  u = expression.evaluate(v, space.x)
  rates = np.arange(1, space.config.num_decaying_waves + 1) * _quarter_wave(u)
  for decay in np.geomspace(*space.config.decays) / np.ptp(u):
    envelope = Node("exp", (_scaled(v)(-decay),))
    for token in ("sin", "cos"):
      wave = _grid(token, _scaled(v), rates, u)
      yield Family(wave.values * np.exp(-decay * u)[:, None],
                   lambda g, wave=wave, envelope=envelope: Node("*", (envelope, wave.build(g))))


def _stretched_exponentials(space: Space, v: Node) -> Iterator[Family]:
  """exp(-(v/s)**p): of Weibull, of Kohlrausch and of Avrami; their exponents are fitted."""
  u = expression.evaluate(v, space.x)
  if np.min(u) < 0:
    return
  for exponent in space.config.stretched_powers:
    inner = power(v, number(exponent))
    at = u**exponent
    yield _grid("exp", _scaled(inner), -np.geomspace(*space.config.rates) / np.ptp(at), at)


def _powers_times_exponentials(space: Space, v: Node) -> Iterator[Family]:
  """v**p*exp(-c*v), of gamma densities; exponents are fitted."""
  u = expression.evaluate(v, space.x)
  rates = -np.geomspace(*space.config.rates) / np.ptp(u)
  for exponent in space.config.gamma_powers if np.min(u) > 0 else ():
    yield _times(power(v, number(exponent)), _grid("exp", _scaled(v), rates, u), space.x)


def _hyperbolics(space: Space, v: Node) -> Iterator[Family]:
  """exp(c*v) + exp(-c*v), the same with a minus, and the inverse of the first and its square."""
  u = expression.evaluate(v, space.x)
  rates = np.concatenate([[1.0], np.geomspace(*space.config.hyperbolic_rates) / np.max(np.abs(u))])
  rising, falling = np.exp(rates * u[:, None]), np.exp(-rates * u[:, None])

  def exp_of(g: int, sign: float) -> Node:
    return Node("exp", (_scaled(v)(sign * float(rates[g])),))

  def sum_of(g: int) -> Node:
    return Node("+", (exp_of(g, 1.0), exp_of(g, -1.0)))

  yield Family(rising + falling, sum_of)
  yield Family(rising - falling, lambda g: Node("+", (exp_of(g, 1.0), Node("neg", (exp_of(g, -1.0),)))))
  yield Family(1 / (rising + falling), lambda g: Node("inv", (sum_of(g),)))
  yield Family((rising + falling) ** -2.0, lambda g: Node("inv", (power(sum_of(g), number(2)),)))


def _peaks_and_steps(space: Space, v: Node) -> Iterator[Family]:
  """exp(-((v - m)/s)**2), 1/((v - m)**2 + s**2), 1/(1 + exp((v - m)/s)); and of the logarithm of v."""
  u = expression.evaluate(v, space.x)
  yield from _peaks_and_steps_of(v, u, space.config)
  if np.min(u) > 0:
    yield from _peaks_and_steps_of(Node("ln", (v,)), np.log(u), space.config)


def _places_and_widths(u: np.ndarray, config: LibraryConfig) -> tuple[np.ndarray, np.ndarray]:
  """Every place [G] with every width [G]."""
  places, widths = np.meshgrid(u.min() + _places(u, config), np.ptp(u) * np.geomspace(*config.widths))
  return places.ravel(), widths.ravel()


def _peaks_and_steps_of(v: Node, u: np.ndarray, config: LibraryConfig) -> Iterator[Family]:
  places, widths = _places_and_widths(u, config)
  away = (u[:, None] - places) / widths

  def square(g: int) -> Node:
    return power(Node("+", (v, number(float(-places[g])))), number(2))

  def over_width(node: Node, g: int, exponent: int) -> Node:
    return Node("*", (node, number(float(widths[g]) ** exponent)))

  yield Family(np.exp(-(away**2)), lambda g: Node("exp", (over_width(Node("neg", (square(g),)), g, -2),)))
  yield Family(1 / (widths**2 * (away**2 + 1)),
               lambda g: Node("inv", (Node("+", (square(g), number(float(widths[g]) ** 2))),)))
  yield Family(1 / (1 + np.exp(away)), lambda g: Node("inv", (Node("+", (
    Node("exp", (over_width(Node("+", (v, number(float(-places[g])))), g, -1),)), number(1))),)))


def _soft_corners(space: Space, v: Node) -> Iterator[Family]:
  """ln(1 + exp((v - m)/s)) of either sign, ln(1 - exp(-c*v)), ln(1 + c*v**p)."""
  for family in _bounded(space, v):
    yield Family(np.log(family.values), lambda g, family=family: Node("ln", (family.build(g),)))


def _powers_of_bounded(space: Space, v: Node) -> Iterator[Family]:
  """(1 + exp((v - m)/s))**q (Richards 1959), (1 - exp(-c*v))**q (Chapman, Richards), (1 + c*v**p)**q; q is fitted."""
  for family in _bounded(space, v):
    for exponent in space.config.bounded_powers:
      yield Family(family.values**exponent,
                   lambda g, family=family, exponent=exponent: power(family.build(g), number(exponent)))


def _bounded(space: Space, v: Node) -> Iterator[Family]:
  """1 + exp((v - m)/s) of either sign, 1 - exp(-c*v), 1 + c*v**p, all above 0."""
  u, config = expression.evaluate(v, space.x), space.config
  places, widths = _places_and_widths(u, config)
  for sign in (1.0, -1.0):
    rates = sign / widths

    def rising(g: int, rates: np.ndarray = rates) -> Node:
      return Node("+", (Node("exp", (Node("*", (Node("+", (v, number(-places[g]))), number(rates[g]))),)), number(1)))

    yield Family(1 + np.exp((u[:, None] - places) * rates), rising)
  if np.min(u) <= 0:
    return
  falling = np.geomspace(*config.rates) / np.ptp(u)
  yield Family(1 - np.exp(-falling * u[:, None]), lambda g: Node("+", (
    Node("neg", (Node("exp", (_scaled(v)(-falling[g]),)),)), number(1))))
  for exponent in config.stretched_powers:
    at = u**exponent
    sizes = np.geomspace(*config.hyperbolic_rates) / np.max(at)
    yield Family(1 + sizes * at[:, None], lambda g, exponent=exponent, sizes=sizes: Node("+", (
      Node("*", (power(v, number(exponent)), number(sizes[g]))), number(1))))


def _products(space: Space, _: None) -> Iterator[Family]:
  """Products of two functions without inner constants, such as sin(v**2)*cos(w)."""
  variables, config = space.variables, space.config
  powers = [power(v, number(p)) for v in variables for p in config.product_powers]
  multiples = [Node("*", (v, number(c))) for v in variables for c in config.product_factors]
  sums = [node for pair in itertools.combinations(variables, 2) for node in (Node("+", pair), Node("*", pair))]
  arguments = [*powers, *multiples, *sums]
  nodes = [Node(token, (argument,)) for argument in arguments for token in ("sin", "cos", "exp", "ln", "atan", "tan")]
  nodes += [Node("exp", (Node("neg", (argument,)),)) for argument in arguments]
  values = np.stack([expression.evaluate(node, space.x) for node in nodes], axis=1)
  for i, node in enumerate(nodes[:-1]):
    # Two exponentials are one.
    others = [j for j in range(i + 1, len(nodes)) if not node.token == nodes[j].token == "exp"]
    yield Family(values[:, [i]] * values[:, others],
                 lambda g, node=node, others=others: Node("*", (node, nodes[others[g]])), is_mixed=True)


def _plane_waves(space: Space, pair: tuple[Node, Node]) -> Iterator[Family]:
  """sin and cos of a*v + b*w."""
  v, w = pair
  u = [expression.evaluate(each, space.x) for each in pair]
  steps = [_quarter_wave(each) for each in u]
  counts = np.arange(1, space.config.num_plane_waves + 1)
  a, b = (grid.ravel() for grid in np.meshgrid(counts * steps[0], np.concatenate([counts, -counts]) * steps[1]))
  phases = a * u[0][:, None] + b * u[1][:, None]
  for token in ("sin", "cos"):
    yield _bent(token, lambda i: Node("+", (_scaled(v)(a[i]), _scaled(w)(b[i]))), np.arange(len(a)),
                operators.BY_NAME[token].numpy_fn(phases))


# --- of any number of variables, and of many -----------------------------------------------------------------------


def _monomials(space: Space, _: None) -> Iterator[Family]:
  """Powers of one variable, and products of powers of two."""
  columns, config = space.columns, space.config
  yield _family_of(space, monomials(columns, 1, config.powers), MONOMIAL)
  if space.is_of_few:
    yield _family_of(space, monomials(columns, 2, config.paired_powers), MONOMIAL)
  elif space.is_of_many:
    pairs = up_to(columns, 2, at_most=config.max_pairs, exponents=config.pair_powers)
    yield _family_of(space, [m for m in pairs if len(m) == 2], MONOMIAL)


def _squared_differences(space: Space, _: None) -> Iterator[Family]:
  if not 0 < math.comb(len(space.columns), 2) <= space.config.max_pairs:
    return
  nodes = [power(Node("+", (v, Node("neg", (w,)))), number(2)) for v, w in itertools.combinations(space.variables, 2)]
  yield Family(np.stack([expression.evaluate(node, space.x) for node in nodes], axis=1), lambda g: nodes[g], MONOMIAL,
               is_mixed=True)


def _long_monomials(space: Space, _: None) -> Iterator[Family]:
  config = space.config
  found = up_to(
    space.columns, config.max_monomial_size, at_most=config.max_long_monomials, exponents=config.long_powers)
  yield _family_of(space, [m for m in found if len(m) > 2], BASIC)


def _functions_times_monomials(space: Space, _: None) -> Iterator[Family]:
  """Functions of a variable, and of products, quotients and differences of two, times monomials."""
  columns, config = space.columns, space.config
  few = [(), *up_to(columns, config.max_multiplier_size, at_most=config.max_multipliers,
                    exponents=config.multiplier_powers)]
  multipliers = Values(space.x)(few)
  pairs = monomials(columns, 2, (-1, 1)) if len(columns) <= config.max_paired_arguments else []
  arguments = [*space.variables, *(to_node(m) for m in pairs if m[0][1] > 0)]
  arguments += [Node("+", (variable(v), Node("neg", (variable(w),)))) for (v, _), (w, _) in pairs]
  for argument in dict.fromkeys(arguments):
    u = expression.evaluate(argument, space.x)
    for token, factors in config.many_functions:
      for factor in factors:
        values = operators.BY_NAME[token].numpy_fn(factor * u)
        node = tidy(Node(token, (_scaled(argument)(factor),)))
        yield Family(multipliers * values[:, None],
                     lambda g, node=node: chain("*", [to_node(few[g]), node]) if few[g] else node, BASIC, is_mixed=True)


def _waves_of_monomials(space: Space, _: None) -> Iterator[Family]:
  config = space.config
  angles = up_to(space.columns, config.max_angle_size, at_most=config.max_angles, exponents=config.angle_powers)
  for node in (to_node(angle) for angle in angles):
    u = expression.evaluate(node, space.x)
    if np.isfinite(u).all() and np.ptp(u) > 0:
      yield from _waves_of(node, u, config.num_many_waves // len(angles))


# What families are about, and by name those about it: of each such thing the families follow one another.
FAMILIES: tuple[tuple[Callable[[Space], Iterator], dict[str, Callable[..., Iterator[Family]]]], ...] = (
  (_all, {"monomials": _monomials}),
  (_all_of_many, {
    "squared_differences": _squared_differences, "long_monomials": _long_monomials,
    "functions_times_monomials": _functions_times_monomials, "waves_of_monomials": _waves_of_monomials}),
  (_each_argument, {
    "exponentials": _with_factors(_exponentials), "occupancies": _with_factors(_occupancies),
    "arctangents": _with_factors(_arctangents), "trigonometric": _with_factors(_trigonometric),
    "logarithms": _with_factors(_logarithms), "roots": _with_factors(_roots), "poles": _with_factors(_poles),
    "bent_functions": _with_factors(_bent_functions), "powers_of_sums": _with_factors(_powers_of_sums),
    "arcsines": _with_factors(_arcsines), "waves": _waves}),
  (_each_variable, {
    "decaying_waves": _decaying_waves, "peaks_and_steps": _peaks_and_steps,
    "stretched_exponentials": _stretched_exponentials, "powers_times_exponentials": _powers_times_exponentials,
    "hyperbolics": _hyperbolics, "soft_corners": _soft_corners, "powers_of_bounded": _powers_of_bounded}),
  (_all_of_few, {"products": _products}),
  (_each_pair, {"plane_waves": _plane_waves}),
)


# --- how they are made ---------------------------------------------------------------------------------------------


def _family_of(space: Space, some: Sequence[Monomial], tier: int) -> Family:
  return Family(Values(space.x)(some), lambda g: to_node(some[g]), tier, is_mixed=True)


def _times(factor: Node, family: Family, x: np.ndarray) -> Family:
  return Family(family.values * expression.evaluate(factor, x)[:, None],
                lambda g: Node("*", (factor, family.build(g))))


def _grid(
  token: str, inner: Callable[[float], Node], numbers: np.ndarray, u: np.ndarray, *, is_sum: bool = False
) -> Family:
  """token(c*u), or token(u + c), for each number c."""
  at = u[:, None] + numbers if is_sum else u[:, None] * numbers
  return _bent(token, inner, numbers, operators.BY_NAME[token].numpy_fn(at))


def _bent(token: str, inner: Callable[..., Node], numbers: np.ndarray, values: np.ndarray) -> Family:
  return Family(values, lambda g: Node(token, (inner(numbers[g]),)))


def _scaled(argument: Node) -> Callable[[float], Node]:
  return lambda c: argument if c == 1 else Node("*", (argument, number(c)))


def _shifted(argument: Node) -> Callable[[float], Node]:
  return lambda c: Node("+", (argument, number(c))) if c else argument


def _quarter_wave(u: np.ndarray) -> float:
  """Radians per unit of u that make a quarter of a wave over its range."""
  return np.pi / 2 / np.ptp(u)
