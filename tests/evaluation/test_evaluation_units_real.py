"""Real data: where each place keeps its tables, how rows are split, searched, judged and written; nothing is searched.
"""

import dataclasses
import hashlib
import io
import json
import math
import sys
import tarfile
import types
import zlib

import numpy as np
import pytest

from symformer_jax.errors import InputError
from symformer_jax.evaluation import real_data, real_faults, real_runs
from symformer_jax.evaluation.answers import Method
from symformer_jax.evaluation.real_data import RealSet, Split
from symformer_jax.evaluation.real_faults import Yardsticks
from symformer_jax.language import parser


def real_set(**changed):
  return RealSet(**{"name": "n", "family": "table", "source": "file:n", "target": "y", "features": ("x",), "where": "",
                    "is_set_aside": False} | changed)


def formula(text):
  return parser.parse(text, ("x", "y"))


# --- places ------------------------------------------------------------------------------------------------------


def test_the_table_says_what_is_set_aside(other_locale):
  table = real_data.load_table()
  assert all(each.is_set_aside == real_data.belongs_aside(each.name) for each in table)


def test_packages_are_found_without_being_imported(monkeypatch, tmp_path):
  found = {"none": None, "module": types.SimpleNamespace(submodule_search_locations=None),
           "package": types.SimpleNamespace(submodule_search_locations=[str(tmp_path), "elsewhere"])}
  monkeypatch.setattr(real_data.util, "find_spec", found.get)
  assert real_data._folder("package") == tmp_path
  for name in ("none", "module"):
    with pytest.raises(InputError, match=f"the package {name} is not installed: pip install"):
      real_data._folder(name)


@pytest.fixture
def packages(monkeypatch, tmp_path):
  monkeypatch.setattr(real_data, "_folder", lambda package: tmp_path / package)
  for cached in (real_data._pydataset_archive, real_data._read_pydataset):
    cached.cache_clear()
  yield tmp_path
  for cached in (real_data._pydataset_archive, real_data._read_pydataset):
    cached.cache_clear()


def test_tables_lie_where_their_packages_keep_them(packages, other_locale):
  path = packages / "statsmodels" / "datasets" / "copper" / "copper.csv"
  path.parent.mkdir(parents=True)
  path.write_bytes("x, \u00e9\n1, 2\n".encode())
  assert real_data.read_columns("statsmodels:copper/copper.csv") == {"x": ["1"], "\u00e9": ["2"]}
  path = packages / "vega_datasets" / "_data" / "cars.json"
  path.parent.mkdir(parents=True)
  path.write_bytes(json.dumps([{"a": 1, "\u00e9": 2}, {"a": 3, "more": 4}], ensure_ascii=False).encode())
  assert real_data.read_columns("vega:cars.json") == {"a": [1, 3], "\u00e9": [2, None]}


def test_tables_of_an_archive_are_its_csv_files(packages):
  (packages / "pydataset").mkdir()
  with tarfile.open(packages / "pydataset" / "resources.tar.gz", "w:gz") as archive:
    for name in ("resources/rdata/csv/a/one.csv", "resources/rdata/csv/a/._one.csv", "resources/rdata/csv/a/one.html",
                 "resources/other/two.csv"):
      info, text = tarfile.TarInfo(name), f"x,y\n1,{name[-5:]}\n".encode()
      info.size = len(text)
      archive.addfile(info, io.BytesIO(text))
  assert list(real_data.pydataset_tables()) == [("a/one", {"x": ["1"], "y": ["e.csv"]})]
  assert real_data.read_columns("pydataset:a/one") == {"x": ["1"], "y": ["e.csv"]}
  real_data._pydataset_archive().close()


def test_computed_tables_are_the_law_that_they_name():
  planck = real_data._compute_scipy("planck")
  h, c, k = 6.62607015e-34, 299792458.0, 1.380649e-23
  for x, y in zip(planck["wavelength_um"], planck["radiance"], strict=True):
    expected = 2e-9 * h * c**2 / (x * 1e-6)**5 / math.expm1(h * c / (x * 1e-6 * k * 5778))
    assert y == pytest.approx(expected, rel=1e-9)


def test_nitrogen_has_the_same_points_every_time(monkeypatch):
  asked = []
  monkeypatch.setattr(real_data.util, "find_spec", lambda name: object())

  def props(output, first, t, second, p, fluid):
    asked.append((output, first, second, fluid))
    return p / t
  for name in ("CoolProp", "CoolProp.CoolProp"):
    monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(PropsSI=props))
  found = real_data._compute_coolprop("density_nitrogen")
  rng = np.random.default_rng(0)
  np.testing.assert_array_equal(found["T_K"], rng.uniform(200, 600, 180))
  np.testing.assert_array_equal(found["p_bar"], rng.uniform(1, 100, 180))
  np.testing.assert_allclose(found["rho"], 1e5 * found["p_bar"] / found["T_K"])
  assert asked == [("D", "T", "P", "Nitrogen")]


def test_fluids_are_asked_between_their_phases():
  critical = {"Water": 647.096, "Ammonia": 405.4, "CarbonDioxide": 304.13}
  for output, fluid, (low, high), (kind, value), _ in real_data._COOLPROP.values():
    if kind == "Q":
      assert value == 0 and high < critical[fluid]
    else:
      assert value == 101325 and (fluid != "Water" or 273.15 < low < high < 373.15), output
  # Results tell of these rows: a set with others is another set.
  digest = hashlib.sha256(repr(sorted(real_data._COOLPROP.items())).encode()).hexdigest()
  assert digest.startswith("8e5317c954c0") and real_data.NUM_COMPUTED == 60


# --- rows --------------------------------------------------------------------------------------------------------


def test_a_table_just_as_large_as_allowed_is_taken_whole(monkeypatch):
  x = np.arange(4096.0)[:, None]
  monkeypatch.setattr(real_data, "_numbers", lambda _: (x, x[:, 0]))
  rng = np.random.default_rng(zlib.crc32(b"n"))
  expected = np.sort(rng.choice(np.arange(1, 4095), 1024, replace=False))  # of those between the ends
  np.testing.assert_array_equal(real_data.load_split(real_set()).scored_y, expected)


def test_the_target_is_the_last_column(monkeypatch):
  columns = {name: [str(k * 10 + i) for i in range(9)] for k, name in enumerate("abc")}
  monkeypatch.setitem(real_data.READERS, "test", lambda what: columns)
  x, y = real_data._numbers(real_set(source="test:t", features=("c", "a"), target="b"))
  assert x.tolist() == [[20 + i, i] for i in range(9)] and y.tolist() == [10 + i for i in range(9)]


# --- faults ------------------------------------------------------------------------------------------------------


SPLIT = Split(("x", "y"), np.random.default_rng(0).uniform(1, 2, (30, 2)), np.linspace(0, 1, 30),
              np.random.default_rng(1).uniform(1, 2, (10, 2)), np.linspace(0, 1, 10))


def test_predictions_of_any_size_are_scored():
  assert real_faults.score_values(np.full(10, 1e200), SPLIT) is None
  variance = np.var(np.concatenate([SPLIT.y, SPLIT.scored_y]))
  assert real_faults.score_values(SPLIT.scored_y + 0.5, SPLIT) == pytest.approx(1 - 0.25 / variance)


def test_bounds_of_faults_are_themselves_none(monkeypatch):
  def faults(text, r2, least_squares=None):
    monkeypatch.setattr(real_faults, "score", lambda *_: r2)
    return real_faults.find_faults(formula(text), SPLIT, Yardsticks(least_squares, None))
  exact = 1 - real_faults.EXACT_FVU
  assert exact == 1 - 1e-9
  bound = 1 - exact  # what subtraction leaves of it
  monkeypatch.setattr(real_faults, "EXACT_FVU", bound)
  assert real_faults.EXPONENT not in faults("x**y", exact)
  assert real_faults.EXPONENT in faults("x**y", exact - 1e-8)
  assert real_faults.BELOW_LINE not in faults("x", 0.5 - 0.02, 0.5)
  assert real_faults.BELOW_LINE in faults("x", 0.5 - 0.02 - 1e-9, 0.5)
  assert real_faults.TIMID not in faults("0.5 + 0*2", 0.0)  # nothing stands beside it


# --- runs --------------------------------------------------------------------------------------------------------


def line(text, mse, complexity):
  return types.SimpleNamespace(node=formula(text), mse=mse, expression=text, complexity=complexity)


def test_a_set_is_answered_by_a_search(monkeypatch):
  asked = []
  monkeypatch.setattr(real_data, "load_split", lambda each: SPLIT)
  monkeypatch.setattr(real_runs, "yardsticks", lambda split: Yardsticks(0.1, 0.2))
  result = types.SimpleNamespace(best=None, message="why")
  monkeypatch.setattr(
    real_runs, "search", lambda split, *, model, method: asked.append((split, model, method)) or result)
  method = Method(num_samples=7)
  [found] = real_runs.answer(real_set(is_set_aside=True), model="m", method=method)
  assert found == real_runs.RealRow("n", "table", True, "recommended", message="why")
  assert asked == [(SPLIT, "m", method)]
  result.best = line("x", 0.5, 1)
  monkeypatch.setattr(real_runs, "judge", lambda blank, split, result, beside: [blank, split, result, beside])
  blank, split, given, beside = real_runs.answer(real_set(), model="m", method=method)
  assert (blank.choice, split, given, beside) == ("recommended", SPLIT, result, Yardsticks(0.1, 0.2))

  def fail(each):
    raise InputError("no package")
  monkeypatch.setattr(real_data, "load_split", fail)
  assert real_runs.answer(real_set(), model="m", method=method)[0].message == "no package"


def test_every_part_of_a_method_reaches_the_search(monkeypatch):
  asked = {}
  monkeypatch.setattr(real_runs.inference, "resolve_model", lambda name, *, num_variables: (name, num_variables))
  monkeypatch.setattr(real_runs.inference, "search", lambda model, data, **options: asked.update(
    model=model, data=data, **options) or ["result", "another"])
  method = Method("recommended", 7, 3, "gd", 2.0, False, config="c")
  assert real_runs.search(SPLIT, model="m", method=method) == "result"
  [(x, y)] = asked.pop("data")
  assert x is SPLIT.x and y is SPLIT.y
  assert asked == {"model": ("m", 2), "names": [("x", "y")], "n_samples": 7, "top_k": 3, "refine": "gd",
                   "max_time": 2.0, "recombine": False, "config": "c"}


def test_three_lines_of_a_front_are_judged(monkeypatch):
  front = [line("0.5", 0.3, 1), line("x", 0.2, 2), line("x*y", 0.1, 3)]
  result = types.SimpleNamespace(best=front[1], pareto=front, seconds=types.SimpleNamespace(search=1.23456))
  monkeypatch.setattr(real_runs.choice, "simplest_good", lambda lines, best: lines[0])
  monkeypatch.setattr(real_faults, "find_faults", lambda node, split, beside: ("a", "b"))
  blank = real_runs.RealRow("n", "table", False, "recommended")
  rows = real_runs.judge(blank, SPLIT, result, Yardsticks(0.1, 0.2))
  assert [(row.choice, row.predicted, row.complexity) for row in rows] == [
    ("recommended", "x", 2), ("most accurate", "x*y", 3), ("simple", "0.5", 1)]
  assert {(row.n_vars, row.rows, row.faults, row.least_squares, row.boosting, row.seconds) for row in rows} == {
    (2, 30, "a; b", 0.1, 0.2, 1.23)}
  assert [row.r2 for row in rows] == [real_faults.score(each.node, SPLIT) for each in (front[1], front[2], front[0])]


def test_what_stands_beside_a_formula_is_fitted_to_the_same_rows(monkeypatch):
  from sklearn import ensemble
  asked = []
  kept = ensemble.GradientBoostingRegressor
  monkeypatch.setattr(ensemble, "GradientBoostingRegressor", lambda **options: asked.append(options) or kept(
    n_estimators=2, **options))
  split = dataclasses.replace(SPLIT, y=1 + SPLIT.x @ [2.0, 3.0], scored_y=1 + SPLIT.scored_x @ [2.0, 3.0])
  found = real_runs.yardsticks(split)
  assert found.least_squares == pytest.approx(1) and found.boosting < 0.9 and asked == [{"random_state": 0}]


def test_rows_are_written_as_they_are_read(tmp_path, other_locale):
  path = tmp_path / "r.csv"
  rows = [real_runs.RealRow("n\u00fc", "table", True, "simple", 2, 30, "x", 3, 0.5, "a; b", 0.25, 0.125, 1.5),
          real_runs.RealRow("b", "law", False, "recommended", message="two\r\nlines, and a comma")]
  real_runs._write(path, rows[:1])
  real_runs._write(path, rows[1:], is_new=False)
  data = path.read_bytes().decode()
  assert data.startswith(
    ",".join(real_runs.COLUMNS) + "\nn\u00fc,table,True,simple,2,30,x,3,0.5,a; b,0.25,0.125,1.5,\n")
  assert data.count("\r") == 1 and "\nb,law,False,recommended,,,,,,,,,,\"two" in data
  assert real_runs._read(path) == rows
