"""A search with units: what is listed has the target's dimension, and the answer names the units of its numbers."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from symformer_jax import SymFormerRegressor, infer, inference, saved, testing
from symformer_jax.commands import column_units, listing, tables
from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError
from symformer_jax.presentation import page

pytest.importorskip("pint")
MODEL = testing.FixedProposer(["1.3*x0 + 2.2"])
# Neither network nor library: few programs to compile, and three columns everywhere, for which they are the same.
CONFIG = dataclasses.replace(DEFAULT, sources=("closed_forms", "guesses"))
UNITS = {"axis": "au", "mass": "kg", "year": "1", "period": "yr"}


@pytest.fixture(scope="module")
def kepler():
  """Fitted with free constants."""
  axis = np.array([0.387, 0.723, 1.0, 1.524, 5.203, 9.539, 19.18, 30.06])
  mass = np.array([0.33, 4.87, 5.97, 0.64, 1898.0, 568.0, 86.8, 102.0])
  x = pd.DataFrame({"axis": axis, "mass": mass, "year": np.arange(8.0)})
  return SymFormerRegressor(MODEL, config=CONFIG, effort="quick", units=UNITS, verbose=False, random_state=0,
                            guesses=["0.9*axis**1.4"]).fit(x, pd.Series(axis**1.5, name="period"))


def test_a_factor_one_with_a_unit_stays(kepler):
  best = kepler.best_
  assert best.expression == "1*axis**1.5" and best.number_units == ("1", "yr/au**(3/2)")
  assert best.whole_numbers == [(1.0, "yr/au**(3/2)")] and [c.unit for c in best.constants] == ["1"]
  assert "axis**1.5" not in set(kepler.equations_.expression)
  others = {c.unit for e in kepler.result_.pareto if e is not best for c in e.constants}
  assert "yr" in others and others <= {"yr", "yr/au", "yr/kg"}
  assert kepler.result_.units == ("au", "kg", "1", "yr")
  assert "axis in astronomical_unit" in kepler.result_.message and "period in year" in kepler.result_.message


def test_what_is_written_and_shown_names_the_units(kepler, tmp_path, capsys, monkeypatch):
  result = kepler.result_
  record = result.to_json(data="k.csv", target="period", features=["axis", "mass", "year"])
  assert record["units"] == UNITS and record["best"]["number_units"] == ["1", "yr/au**(3/2)"]
  json.dumps(record, allow_nan=False)
  saved.save_result(result, tmp_path / "r.json")
  again = saved.load_result(tmp_path / "r.json")
  assert again.pareto == result.pareto and again.units == result.units
  kepler.save(tmp_path / "k.json")
  loaded = SymFormerRegressor.load(tmp_path / "k.json")
  assert loaded.units == UNITS and loaded.best_ == kepler.best_
  for drawing in ("_draw", "_draw_formula"):
    monkeypatch.setattr(page, drawing, lambda *args: "")
  text = page.make_page(result, result.best, kepler._data_of(None, None), name="kepler")
  assert "axis in au, mass in kg, year in 1, period in yr" in text and "1 yr/au**(3/2)" in text
  listing.print_result(result, result.best, name="kepler", target="period")
  assert "whole numbers: 1 yr/au**(3/2)" in capsys.readouterr().out
  record = json.loads((tmp_path / "r.json").read_text())
  record["front"][0]["number_units"] = ["m"] * 99
  (tmp_path / "r.json").write_text(json.dumps(record))
  with pytest.raises(InputError, match="number_units: expected . of them"):
    saved.load_result(tmp_path / "r.json")


def test_dimensionless_constants_leave_laws_alone():
  """Of two columns that fit alike, the one of the right dimension; no yardstick has it."""
  rng = np.random.default_rng(0)
  speed, time = rng.uniform(1, 3, 30), rng.uniform(1, 3, 30)
  other = speed * time
  options = {"names": [["v", "t", "mass"]], "targets": ["d"], "config": CONFIG, "effort": "quick",
             "guesses": ["0.9*v*t"]}
  units = {"v": "m/s", "t": "s", "mass": "kg", "d": "m"}
  data = [(np.stack([speed, time, other], 1), 0.5 * speed * time)]
  [strict] = inference.search(MODEL, data, units=units, dimensionless_constants=True, **options)
  assert {e.expression for e in strict.pareto} == {"0.5*v*t"} and strict.best.number_units == ("1",)
  [none] = inference.search(MODEL, data, units=units | {"d": "K"}, dimensionless_constants=True, **options)
  assert none.status == "failed" and "dimensionless constants is a K" in none.message
  with pytest.raises(InputError, match="no column 'masss': did you mean 'mass'"):
    inference.search(MODEL, data, units=units | {"masss": "kg"}, **options)
  with pytest.raises(InputError, match="dimensionless_constants: says nothing without units"):
    inference.search(MODEL, data, dimensionless_constants=True, **options)
  [broken] = inference.search(MODEL, data, units=units, **options | {"guesses": ["v + t"]})
  assert broken.message == "guesses: 'v + t' breaks the rules for formulas"


def test_several_targets_have_units_of_their_own(monkeypatch):
  seen = []

  def fake_search(model, datasets, **options):
    seen.append((options["targets"], options["units"]))
    raise InputError("seen")

  monkeypatch.setattr(inference, "search", fake_search)
  x = pd.DataFrame({"t": np.arange(1.0, 9)})
  y = pd.DataFrame({"a": np.arange(1.0, 9), "b": np.arange(1.0, 9) ** 2})
  with pytest.raises(InputError, match="y, column a: seen"):
    SymFormerRegressor(MODEL, units={"t": "s", "a": "m", "b": "kg"}, verbose=False).fit(x, y)
  assert seen == [(["a"], {"t": "s", "a": "m"})]


# --- the command's flag --------------------------------------------------------------------------------------------


def table(features, target):
  return tables.Table("t.csv", tuple(features), target, np.ones((5, len(features))), np.ones(5))


@pytest.mark.parametrize(("entries", "expected"), [
  (["x=m", " t=s", "y = m/s**2"], {"x": "m", "t": "s", "y": "m/s**2"}), (["a=b=m"], {"a=b": "m"}), (["x="], {"x": ""}),
])
def test_pairs_are_read(entries, expected):
  assert column_units.read_pairs(entries) == (expected, False)


@pytest.mark.parametrize(("entries", "message"), [
  (["x"], "--units: expected NAME=UNIT or header, got 'x'"),
  (["=m"], "--units: expected NAME=UNIT or header, got '=m'"),
  (["x=m", "x=s"], "--units: 'x' stands twice"), (["x=mm/ss"], "units: 'x': unknown unit in 'mm/ss': 'ss'"),
])
def test_pairs_that_cannot_be_used(entries, message):
  with pytest.raises(InputError) as caught:
    column_units.read_pairs(entries)
  assert str(caught.value) == message


def test_units_of_headers():
  batch = [table(["girth (in)", "heat [J/(mol K)]", "number", "size (small)"], "volume (ft^3)")]
  found = column_units.units_of(["header", "size (small)=1"], batch, is_single=True)
  assert found == {"girth (in)": "in", "heat [J/(mol K)]": "J/(mol K)", "number": "1", "size (small)": "1",
                   "volume (ft^3)": "ft^3"}
  with pytest.raises(InputError, match=r"where it is no unit, say --units='header,size \(small\)=1'"):
    column_units.units_of(["header"], batch, is_single=True)
  some = column_units.units_of(["x=m", "z=s", "y=kg"], [table(["x"], "v")], is_single=False)
  assert some == {"x": "m", "y": "kg"}


def test_the_command_refuses_units_before_it_reads_a_model(tmp_path, capsys):
  from symformer_jax.commands import runner

  (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(9)))
  for flags, message in ((["--units=x=mmm"], "unknown unit in 'mmm'"), (["--units=x"], "expected NAME=UNIT or header"),
                         (["--dimensionless_constants"], "without --units")):
    infer.asked.FLAGS.unparse_flags()
    for name in infer.asked.FLAGS:
      infer.asked.FLAGS[name].unparse()
    with pytest.raises(SystemExit) as caught:
      runner.run(infer.main, flag_values=infer.asked.FLAGS, argv=["infer", f"--data={tmp_path / 'd.csv'}", *flags])
    assert caught.value.code == 2 and message in capsys.readouterr().err
