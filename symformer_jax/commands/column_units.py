"""Units of the columns of tables, as `--units` names them."""

from collections.abc import Sequence
import re

from symformer_jax.commands import grids, tables
from symformer_jax.errors import InputError
from symformer_jax.language import units as units_lib
from symformer_jax.language.units import TARGET

# Stands for the units in brackets that names of columns end with.
HEADER = "header"
_IN_BRACKETS = re.compile(r"[^(\[]*(?:\((.*)\)|\[(.*)\])\s*", re.DOTALL)


def read_pairs(entries: Sequence[str]) -> tuple[dict[str, str], bool]:
  """The units by name of `--units`, and whether `header` is among its entries.

  Raises:
    InputError: for an entry that is neither `NAME=UNIT` nor `header`, a name that stands twice, and no unit.
  """
  units: dict[str, str] = {}
  for entry in entries:
    name, sign, unit = entry.rpartition("=")  # no unit has the sign, a name may
    name = grids.clean_name(name)
    if not sign and entry.strip() == HEADER:
      continue
    if not sign or not name:
      raise InputError(f"--units: expected NAME=UNIT or {HEADER}, got {entry!r}")
    if name in units:
      raise InputError(f"--units: {name!r} stands twice")
    units[name] = unit.strip()
  units_lib.read_units(units)
  return units, any(entry.strip() == HEADER for entry in entries)


def units_of(entries: Sequence[str], batch: Sequence[tables.Table], *, is_single: bool) -> dict[str, str]:
  """The units of some tables, those of names before those of headers.

  Args:
    entries: of `--units`; batch: what is searched together.
    is_single: whether these are all tables: else a name that none of them has may be another's.
  """
  units, has_header = read_pairs(entries)
  names = dict.fromkeys(name for table in batch for name in (*table.features, table.target))
  if has_header:
    units = {name: _in_header(name) for name in names if name not in units} | units
  return units if is_single else {name: unit for name, unit in units.items() if name in names or name == TARGET}


def _in_header(name: str) -> str:
  """The unit in brackets at the end of a name; 1 where there are none."""
  found = _IN_BRACKETS.fullmatch(name)
  unit = next((group for group in found.groups() if group is not None), "1") if found else "1"
  try:
    units_lib.read_unit(unit, name=name)
  except InputError as error:
    raise InputError(f"{error}; where it is no unit, say --units='{HEADER},{name}=1'") from None
  return unit
