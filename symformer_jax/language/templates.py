"""Templates: formulas with unknown functions of columns and unknown constants, such as `f(x)*exp(-k*t)`.

Read by the project's own parser: a word before "(" that is no function of formulas is an unknown function, a name that
is no column an unknown constant, here called a parameter.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools

from symformer_jax.errors import ExpressionError, InputError, show
from symformer_jax.language import inverses, parser
from symformer_jax.language.expression import SYMBOL, UNKNOWN, VARIABLE, Node, flatten, number, walk
from symformer_jax.language.names import written

# Of the 64 tokens of a formula the rest is for the unknown functions.
MAX_TOKENS = 40
# Each has a search of its own.
MAX_UNKNOWNS = 3


@dataclasses.dataclass(frozen=True)
class Unknown:
  """An unknown function: its name, and the numbers of its columns in the order in which they were given."""

  name: str
  columns: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Template:
  """A checked template.

  Attributes:
    text: as the user wrote it; node: its tree, with leaves `unknown` and `symbol`.
    names: of the columns.
    unknowns, parameters: in the order in which they stand.
  """

  text: str
  node: Node
  names: tuple[str, ...]

  @functools.cached_property
  def unknowns(self) -> tuple[Unknown, ...]:
    return tuple(Unknown(*part.value) for part in walk(self.node) if part.token == UNKNOWN)

  @functools.cached_property
  def parameters(self) -> tuple[str, ...]:
    return tuple(part.value for part in walk(self.node) if part.token == SYMBOL)

  def path(self, name: str) -> tuple[int, ...]:
    """The way from the root to an unknown function or a parameter: numbers of arguments."""
    return next(path for path, part in _places(self.node)
                if part.token == UNKNOWN and part.value[0] == name or part.token == SYMBOL and part.value == name)

  def call(self, unknown: Unknown) -> str:
    """`f(x, z)`."""
    return f"{unknown.name}({', '.join(written(self.names[column]) for column in unknown.columns)})"


def fill(node: Node, functions: Mapping[str, Node], values: Mapping[str, float]) -> Node:
  """A template's tree with trees for its unknown functions and numbers for its parameters, where they are given."""
  if node.token == UNKNOWN:
    return functions.get(node.value[0], node)
  if node.token == SYMBOL:
    return number(values[node.value]) if node.value in values else node
  return node._replace(args=tuple(fill(arg, functions, values) for arg in node.args)) if node.args else node


def read(text: str, names: Sequence[str]) -> Template:
  """Reads and checks a template over columns.

  Raises:
    InputError: one line that says what is wrong, or not supported.
  """
  if not isinstance(text, str):
    raise InputError(f"template: expected a formula as text, got {show(text)}")
  try:
    node = parser.parse(text, names, allow_symbols=True, allow_unknowns=True)
  except ExpressionError as error:
    raise InputError(f"template: {error}") from None
  found = Template(text, node, tuple(names))
  if not found.unknowns:
    raise InputError(f"template: expected an unknown function of columns, such as f({written(names[0])}), in {text!r}; "
                     "a form that has none is fitted by --guess, in Python by guesses or refine")
  stand = [*(each.name for each in found.unknowns), *found.parameters]
  for name in stand:
    if stand.count(name) > 1:
      hint = "; sinh and cosh are sums of two exp" if "sinh" in text or "cosh" in text else ""
      raise InputError(f"template: {name} stands {stand.count(name)} times, expected once{hint}")
  if len(found.unknowns) > MAX_UNKNOWNS:
    raise InputError(f"template: expected at most {MAX_UNKNOWNS} unknown functions, got {len(found.unknowns)}")
  if (size := sum(1 for _ in walk(node))) > MAX_TOKENS:
    raise InputError(f"template: expected at most {MAX_TOKENS} names, numbers and operators, got {size}")
  for unknown in found.unknowns:
    _check_unknown(found, unknown)
  return found


def num_columns(text: str, names: Sequence[str]) -> int:
  """The largest number of columns that an unknown function of a template has; see `read`."""
  return max(len(unknown.columns) for unknown in read(text, names).unknowns)


def _check_unknown(template: Template, unknown: Unknown) -> None:
  """Refuses a function that the template cannot be solved for, and what nobody could tell from it."""
  call = template.call(unknown)
  if (token := inverses.obstacle(template.node, template.path(unknown.name))) is not None:
    raise InputError(f"template: cannot be solved for {call}: {token} around it has no single inverse, expected "
                     f"{', '.join(inverses.SUPPORTED)}")
  for other in template.unknowns:
    if other is not unknown and set(other.columns) <= set(unknown.columns) and not _are_apart(template, unknown, other):
      raise InputError(f"template: {template.call(other)} cannot be told from {call}, which has its columns: "
                       "leave one of them out")
  for name in _absorbed(template, unknown):
    raise InputError(f"template: the parameter {name} cannot be told from {call}, which may be any function: "
                     "leave it out")


def _are_apart(template: Template, unknown: Unknown, other: Unknown) -> bool:
  """Whether two functions of the same columns are terms of one sum, multiplied by different columns and nothing else:
  of `f(x) + g(x)*t` the second is what t multiplies. A parameter may be a part of both.
  """
  node, paths = template.node, [template.path(each.name) for each in (unknown, other)]
  while paths[0][0] == paths[1][0]:
    node, paths = node.args[paths[0][0]], [path[1:] for path in paths]
  if node.token != "+" or template.parameters:
    return False
  beside = []
  for each in (unknown, other):
    term = next(term for term in flatten(node, "+") if any(_is_call(part, each) for part in walk(term)))
    factors = flatten(term.args[0] if term.token == "neg" else term, "*")
    if not any(_is_call(factor, each) for factor in factors):
      return False
    beside.append(set().union(*(_columns(factor) for factor in factors if not _is_call(factor, each))))
  return beside[0] != beside[1] and not any(columns & set(unknown.columns) for columns in beside)


def _is_call(part: Node, unknown: Unknown) -> bool:
  return part.token == UNKNOWN and part.value[0] == unknown.name


def _places(node: Node, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
  yield path, node
  for i, arg in enumerate(node.args):
    yield from _places(arg, (*path, i))


def _columns(node: Node) -> set[int]:
  """Columns that a part of a template reads."""
  found = {part.value for part in walk(node) if part.token == VARIABLE}
  return found.union(*(part.value[1] for part in walk(node) if part.token == UNKNOWN))


def _absorbed(template: Template, unknown: Unknown) -> list[str]:
  """Parameters that an unknown function makes up for: those beside it with its columns, or none, alone.

  From the function upwards: operands of one sum or product may change places, so of these all are looked at; above one
  that has a column of its own nothing is made up for.
  """
  chain = [template.node]
  for i in template.path(unknown.name):
    chain.append(chain[-1].args[i])
  found: list[str] = []
  inner = chain.pop()
  while chain:
    group = chain[-1].token
    while chain and chain[-1].token in (group, "neg"):  # a sign changes no sum and no product
      outer = chain.pop()
    others = [part for part in _operands(outer, group) if not _holds(part, inner)]
    within = [part for part in others if _columns(part) <= set(unknown.columns)]
    found += [leaf.value for part in within for leaf in walk(part) if leaf.token == SYMBOL]
    if len(within) < len(others):
      break
    inner = outer
  return found


def _operands(node: Node, token: str) -> list[Node]:
  """Those of nested sums or products, signs left out; of anything else its arguments."""
  if token not in ("+", "*"):
    return list(node.args)
  if node.token == "neg":
    return _operands(node.args[0], token)
  return [part for arg in node.args for part in _operands(arg, token)] if node.token == token else [node]


def _holds(node: Node, part: Node) -> bool:
  return any(each is part for each in walk(node))
