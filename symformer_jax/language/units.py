"""Units of columns as users write them, read by pint: their dimensions, and the names that units of constants have.

Values are never converted: a column in centimetres keeps its numbers, and a length in metres is not compared with it.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from fractions import Fraction
import functools
import re
from typing import Any

from symformer_jax.errors import InputError, show, suggest
from symformer_jax.language import dimensions
from symformer_jax.language.dimensions import Dimensions, Powers
from symformer_jax.language.expression import Node

# What the target is called where it has no name.
TARGET = "y"
MAX_LENGTH = 100
# Powers of units have no finer exponents; pint has them as floats.
MAX_DENOMINATOR = 100

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_EXPONENT = re.compile(r"\*\*\s*(?:[+-]?\d{1,2}(?:\.\d{1,4})?(?![\w.])|\(\s*[+-]?\d{1,2}\s*(?:/\s*\d{1,2}\s*)?\))")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclasses.dataclass(frozen=True)
class Unit:
  """A unit.

  Attributes:
    text: as the user wrote it.
    dimension: such as length/time**2, in pint's names.
    powers: of the units it is made of, by the names that the user wrote.
    full_name: pint's, which shows what `AU` was taken for.
  """

  text: str
  dimension: Powers
  powers: Powers
  full_name: str


@dataclasses.dataclass(frozen=True)
class DataUnits:
  """The units of a data set.

  Attributes:
    columns: of each column; target: of y.
    are_constants_free: see `Dimensions`.
  """

  columns: tuple[Unit, ...]
  target: Unit
  are_constants_free: bool

  @property
  def dimensions(self) -> Dimensions:
    return Dimensions(tuple(unit.dimension for unit in self.columns), self.target.dimension, self.are_constants_free)

  @property
  def texts(self) -> tuple[str, ...]:
    """As written, of each column, then of y."""
    return tuple(unit.text for unit in (*self.columns, self.target))

  def of_part(self, node: Node, path: Sequence[int]) -> Unit | None:
    """The unit of a part of a form that can have y's dimension; None where the rest leaves it open."""
    dimension = dimensions.of_part(node, path, self.target.dimension, [unit.dimension for unit in self.columns])
    powers = dimensions.of_part(node, path, self.target.powers, [unit.powers for unit in self.columns])
    return None if dimension is None or powers is None else Unit(str(powers), dimension, powers, str(powers))

  def of_numbers(self, node: Node) -> tuple[str | None, ...]:
    """The unit of each number of an allowed formula in prefix order, 1 for none; None where it is left open."""
    found = dimensions.units_of_numbers(node, [unit.powers for unit in self.columns], self.target.powers)
    return tuple(None if unit is None else str(unit) for unit in found)


@dataclasses.dataclass(frozen=True)
class Units:
  """What a user says of the units of columns and target.

  Attributes:
    by_name: `(name of a column or of the target, unit)`.
    are_constants_free: see `Dimensions`.
  """

  by_name: tuple[tuple[str, Unit], ...]
  are_constants_free: bool = True

  def check_names(self, known: Iterable[str]) -> None:
    """Refuses names that are no column's and no target's: an InputError."""
    known = tuple(dict.fromkeys(known))
    for name, _ in self.by_name:
      if name not in known:
        raise InputError(f"units: no column {show(name)}: {suggest(name, known)}")

  def for_columns(self, columns: Sequence[str], target: str = TARGET, *, excluded: Iterable[int] = ()) -> DataUnits:
    """The units of a data set; those of a target without one of its own name are called `y`.

    Raises:
      InputError: for a column or a target without a unit, and where no formula can have the target's dimension.
    """
    units = dict(self.by_name)
    own = target if target in units and target not in columns else TARGET
    if own not in units or own in columns:
      raise InputError(f"units: none for the target {target!r}; write {target}=1 if it has no dimension")
    excluded = frozenset(excluded)
    for i, name in enumerate(columns):
      if name not in units and i not in excluded:
        raise InputError(f"units: none for the column {name!r}; write {name}=1 if it has no dimension")
    found = DataUnits(tuple(units.get(name, _PURE) for name in columns), units[own], self.are_constants_free)
    if not found.dimensions.is_possible([i for i in range(len(columns)) if i not in excluded]):
      raise InputError(f"units: no formula of these columns with dimensionless constants is a {found.target.text}")
    return found


def read_units(units: Mapping[str, str], *, dimensionless_constants: bool = False) -> Units:
  """Reads units by the names of columns and target.

  Args:
    units: such as `{"x": "m", "t": "s", "y": "m/s**2"}`; 1 or nothing for a number without dimension.
    dimensionless_constants: whether numbers of formulas have no dimension.
  Raises:
    InputError: for what is no unit, and where pint is not installed.
  """
  if not isinstance(units, Mapping):
    raise InputError(f"units: expected a unit for each column, as {{'x': 'm', 'y': 'm/s'}}, got {show(units)}")
  return Units(tuple((str(name), read_unit(text, name=str(name))) for name, text in units.items()),
               not dimensionless_constants)


def read_unit(text: str, *, name: str) -> Unit:
  """Reads one unit.

  Args:
    text: names or symbols of units that pint knows, `*`, `/`, `**` or `^`, brackets; `kg m^2` and `m²` as well.
    name: of its column, for messages.
  Raises:
    InputError: for anything else, and where pint is not installed.
  """
  plain = _plain(text, name)
  registry, undefined = _registry()
  try:
    quantity = registry.Quantity(1, registry.parse_units(plain))
    dimension = _powers(quantity.dimensionality)
  except undefined as error:
    raise InputError(f"units: {name!r}: unknown unit in {text!r}: {_unknown(error)}") from None
  except Exception:  # pint lets through what Python's tokenizer and its own arithmetic raise
    raise _refusal(text, name) from None
  spelled = {registry.get_name(word): word for word in _WORD.findall(plain) if word in registry}
  named = {spelled.get(unit) or registry.get_symbol(unit): exponent for unit, exponent in quantity.unit_items()}
  return Unit(str(text).strip() or "1", dimension, _powers(named), str(quantity.units))


_PURE = Unit("1", dimensions.PURE, dimensions.PURE, "dimensionless")


def _plain(text: str, name: str) -> str:
  """What pint is asked. No number is raised to a power, which could take for ever: all that pint computes is units."""
  text = "1" if isinstance(text, int) and text == 1 else text
  if not isinstance(text, str) or len(text) > MAX_LENGTH:
    raise _refusal(text, name)
  plain = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda found: f"**{found[0].translate(_SUPERSCRIPTS)}", text.strip())
  plain = re.sub("[·⋅×]", "*", plain.replace("^", "**").replace("−", "-"))
  rest = _EXPONENT.sub("#", plain)
  numbers = re.findall(r"(?<!\w)\d[\w.]*", rest)
  is_odd = re.search(r"\*\*|[-+]|#\s*#", rest) or any(number != "1" for number in numbers) or "#" in plain
  if is_odd or re.search(r"[^\w\s*/().°%Å#]", rest):
    raise _refusal(text, name)
  return plain


def _unknown(error: Any) -> str:
  """The names that pint does not know."""
  names = error.unit_names
  return ", ".join(map(repr, [names] if isinstance(names, str) else names))


def _refusal(text: Any, name: str) -> InputError:
  shown = repr(text) if len(repr(text)) <= MAX_LENGTH else f"{repr(text)[:MAX_LENGTH]}..."
  return InputError(f"units: {name!r}: expected a unit such as 'm', 'kg*m/s**2' or '1', got {shown}")


def _powers(exponents: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Powers:
  return Powers.of({name.strip("[]"): Fraction(float(exponent)).limit_denominator(MAX_DENOMINATOR)
                    for name, exponent in dict(exponents).items()})


@functools.cache
def _registry() -> tuple[Any, type[Exception]]:
  """pint's registry, and what it raises for a name that it does not have."""
  # Imported late: reading its list of units takes half a second.
  try:
    import pint
  except ImportError:
    raise InputError("units need pint: pip install '.[units]'") from None
  return pint.UnitRegistry(), pint.UndefinedUnitError
