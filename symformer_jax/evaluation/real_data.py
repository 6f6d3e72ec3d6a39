"""Real data sets: THE table of them (real_sets/sets.csv), where each is read from, and which rows are scored.

Nothing but small tables of numbers in the public domain ships with the package; the rest is read from packages of the
extra `real`, or computed by one of them. What is not installed is said so.
"""

from collections.abc import Callable, Iterator
import csv
import dataclasses
import functools
import hashlib
from importlib import resources, util
import io
import json
import pathlib
import re
import tarfile
from typing import Any
import zlib

import numpy as np

from symformer_jax.errors import InputError

FAMILIES = ("law", "laboratory", "table", "series")
# Rows that are fitted, and every one of so many that is scored.
ONE_IN = 4
# Larger tables are cut to so many rows, drawn by the name: what is asked is a formula, not patience.
MAX_ROWS = 4096
# Fewer rows leave nothing to score.
MIN_ROWS = 8
# Rows of a computed table.
NUM_COMPUTED = 60
PYDATASET_FOLDER = "resources/rdata/csv"


@dataclasses.dataclass(frozen=True)
class RealSet:
  """One row of the table.

  Attributes:
    name, family: how it is reported; families are `law`, `laboratory`, `table` (observations) and `series`.
    source: `place:what`; places are the keys of `READERS`.
    target, features: columns.
    where: `column=value` of the rows taken; empty for all.
    is_set_aside: whether nobody may look at results on it while choosing anything (see `belongs_aside`).
  """

  name: str
  family: str
  source: str
  target: str
  features: tuple[str, ...]
  where: str
  is_set_aside: bool


@dataclasses.dataclass(frozen=True)
class Split:
  """Rows of a data set: fitted `x, y` [N, D], [N] and those scored."""

  names: tuple[str, ...]
  x: np.ndarray
  y: np.ndarray
  scored_x: np.ndarray
  scored_y: np.ndarray


def belongs_aside(name: str) -> bool:
  """Half of all names: the last bit of their SHA-256."""
  return hashlib.sha256(name.encode()).digest()[-1] % 2 == 1


def load_table() -> list[RealSet]:
  """All sets, in the order of the table."""
  rows = csv.DictReader(_packaged("sets.csv").splitlines())
  return [RealSet(r["name"], r["family"], r["source"], r["target"], tuple(r["features"].split(";")), r["where"],
                  r["is_set_aside"] == "yes") for r in rows]


def load_split(real_set: RealSet) -> Split:
  """Reads a set and splits its rows, always in the same way.

  A quarter of the rows is scored, drawn by the name; with one column the rows at its ends are fitted, so that what is
  scored lies between rows that were seen.
  Raises:
    InputError: says which package is missing, or what is wrong with the columns.
  """
  x, y = _numbers(real_set)
  rng = np.random.default_rng(zlib.crc32(real_set.name.encode()))
  if len(y) > MAX_ROWS:
    kept = np.sort(rng.choice(len(y), MAX_ROWS, replace=False))
    x, y = x[kept], y[kept]
  is_scored = np.zeros(len(y), bool)
  free = np.arange(len(y))
  if x.shape[1] == 1:
    free = np.setdiff1d(free, [int(np.argmin(x[:, 0])), int(np.argmax(x[:, 0]))])
  is_scored[rng.choice(free, round(len(y) / ONE_IN), replace=False)] = True
  names = tuple(_column_name(name) for name in real_set.features)
  return Split(names, x[~is_scored], y[~is_scored], x[is_scored], y[is_scored])


def _column_name(text: str) -> str:
  """A name that formulas can be written with."""
  name = re.sub(r"\W+", "_", text).strip("_")
  return name if not name[0].isdigit() else f"c{name}"


def _numbers(real_set: RealSet) -> tuple[np.ndarray, np.ndarray]:
  """Columns as numbers, without rows that miss one."""
  columns = read_columns(real_set.source)
  wanted = [*real_set.features, real_set.target, *([real_set.where.partition("=")[0]] if real_set.where else [])]
  missing = [name for name in wanted if name not in columns]
  if missing:
    raise InputError(f"{real_set.source}: no column {missing[0]!r}, expected one of {', '.join(columns)}")
  is_used = np.ones(len(columns[real_set.target]), bool)
  if real_set.where:
    column, _, value = real_set.where.partition("=")
    is_used &= np.array([str(cell) == value for cell in columns[column]])
  table = np.array([[to_number(cell) for cell in columns[name]] for name in (*real_set.features, real_set.target)]).T
  table = table[is_used & np.isfinite(table).all(axis=1)]
  if len(table) < MIN_ROWS:
    raise InputError(f"{real_set.source}: expected at least {MIN_ROWS} rows of numbers, got {len(table)}")
  return table[:, :-1], table[:, -1]


def read_columns(source: str) -> dict[str, Any]:
  """Columns by name, from `place:what`."""
  place, _, what = source.partition(":")
  return READERS[place](what)


def to_number(cell: Any) -> float:
  """NaN where it is none."""
  try:
    return float(cell)
  except (TypeError, ValueError):
    return np.nan


# --- sources: each gives columns by name -----------------------------------------------------------------------


def _packaged(file: str) -> str:
  return resources.files(__package__).joinpath("real_sets", file).read_text(encoding="utf-8")


def _folder(package: str) -> pathlib.Path:
  """Where a package lies; it is not imported, since some write files or print when they are."""
  found = util.find_spec(package)
  if found is None or not found.submodule_search_locations:
    raise InputError(f"the package {package} is not installed: pip install '.[real]'")
  return pathlib.Path(found.submodule_search_locations[0])


def _columns(text: str) -> dict[str, list]:
  rows = list(csv.DictReader(io.StringIO(text), skipinitialspace=True))
  return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _read_packaged(name: str) -> dict[str, list]:
  rows = csv.DictReader(_packaged("numbers.csv").splitlines())
  return {row["column"]: row["values"].split() for row in rows if row["set"] == name}


def _read_statsmodels(path: str) -> dict[str, list]:
  return _columns((_folder("statsmodels") / "datasets" / path).read_text(encoding="utf-8"))


@functools.cache
def _pydataset_archive() -> tarfile.TarFile:
  return tarfile.open(_folder("pydataset") / "resources.tar.gz")  # noqa: SIM115 (kept open: reading is by name)


def pydataset_tables() -> Iterator[tuple[str, dict[str, list]]]:
  """The tables of the package pydataset, `package/table`, with their columns; read in one pass, as they are packed."""
  with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
    for member in archive:
      path = pathlib.PurePosixPath(member.name)
      if path.is_relative_to(PYDATASET_FOLDER) and path.suffix == ".csv" and not path.name.startswith("."):
        file = archive.extractfile(member)
        assert file is not None, "a data set is a regular file"
        yield str(path.relative_to(PYDATASET_FOLDER).with_suffix("")), _columns(file.read().decode("utf-8"))


@functools.cache
def _read_pydataset(name: str) -> dict[str, list]:
  member = _pydataset_archive().extractfile(f"{PYDATASET_FOLDER}/{name}.csv")
  assert member is not None, "a data set is a regular file"
  return _columns(member.read().decode("utf-8"))


def _read_vega(file: str) -> dict[str, list]:
  rows = json.loads((_folder("vega_datasets") / "_data" / file).read_text(encoding="utf-8"))
  return {name: [row.get(name) for row in rows] for name in rows[0]}


def _read_sklearn(name: str) -> dict[str, list]:
  from sklearn import datasets

  given = getattr(datasets, f"load_{name}")()
  return {**dict(zip(given.feature_names, given.data.T, strict=True)), "target": given.target}


def _compute_scipy(name: str) -> dict[str, np.ndarray]:
  """Functions of physics and mathematics that have no short formula, or a famous one."""
  from scipy import constants, special

  if name == "planck":
    wavelength = np.linspace(0.2, 3.0, NUM_COMPUTED)
    exponent = constants.h * constants.c / (wavelength * 1e-6 * constants.k * 5778)
    radiance = 2 * constants.h * constants.c**2 / (wavelength * 1e-6) ** 5 / np.expm1(exponent)
    return {"wavelength_um": wavelength, "radiance": radiance * 1e-9}  # kW / (m2 sr um)
  if name == "pendulum":
    amplitude = np.linspace(0.05, 3.0, NUM_COMPUTED)
    return {"amplitude": amplitude, "period": 4 * special.ellipk(np.sin(amplitude / 2) ** 2) / np.sqrt(9.81)}
  x = np.linspace(0, 20, NUM_COMPUTED) if name == "j0" else np.linspace(-3, 3, NUM_COMPUTED)
  return {"x": x, "y": special.j0(x) if name == "j0" else special.erf(x)}


# Saturated liquid and vapour, or a fluid at a pressure (Pa): output, fluid, temperatures (K), and the second input.
_COOLPROP = {
  "vapour_pressure_water": ("P", "Water", (274, 640), ("Q", 0.0), "p_Pa"),
  "vapour_pressure_ammonia": ("P", "Ammonia", (200, 390), ("Q", 0.0), "p_Pa"),
  "density_water": ("D", "Water", (274, 372), ("P", 101325.0), "rho"),
  "viscosity_water": ("V", "Water", (274, 372), ("P", 101325.0), "mu"),
  "surface_tension_water": ("I", "Water", (274, 640), ("Q", 0.0), "sigma"),
  "sound_water": ("A", "Water", (274, 372), ("P", 101325.0), "c"),
  "viscosity_nitrogen": ("V", "Nitrogen", (150, 1000), ("P", 101325.0), "mu"),
  "conductivity_argon": ("L", "Argon", (150, 1000), ("P", 101325.0), "k"),
  "sound_helium": ("A", "Helium", (50, 1000), ("P", 101325.0), "c"),
  "density_co2": ("D", "CarbonDioxide", (220, 303), ("Q", 0.0), "rho"),
  "heat_methane": ("C", "Methane", (150, 600), ("P", 101325.0), "cp"),
}


def _compute_coolprop(name: str) -> dict[str, np.ndarray]:
  if util.find_spec("CoolProp") is None:
    raise InputError("the package CoolProp is not installed: pip install '.[real]'")
  from CoolProp.CoolProp import PropsSI

  if name == "density_nitrogen":
    rng = np.random.default_rng(0)
    t, p = rng.uniform(200, 600, 3 * NUM_COMPUTED), rng.uniform(1, 100, 3 * NUM_COMPUTED)
    return {"T_K": t, "p_bar": p, "rho": PropsSI("D", "T", t, "P", 1e5 * p, "Nitrogen")}
  if name == "latent_heat_water":
    t = np.linspace(274, 640, NUM_COMPUTED)
    liquid, vapour = (PropsSI("H", "T", t, "Q", q, "Water") for q in (0.0, 1.0))
    return {"T_K": t, "h": (vapour - liquid) / 1000}  # kJ/kg
  output, fluid, (low, high), (kind, value), column = _COOLPROP[name]
  t = np.linspace(low, high, NUM_COMPUTED)
  return {"T_K": t, column: PropsSI(output, "T", t, kind, value, fluid)}


READERS: dict[str, Callable[[str], dict[str, Any]]] = {
  "file": _read_packaged, "coolprop": _compute_coolprop, "scipy": _compute_scipy,
           "pydataset": _read_pydataset, "statsmodels": _read_statsmodels, "vega": _read_vega, "sklearn": _read_sklearn}
