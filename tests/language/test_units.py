"""Units as users write them: what pint makes of them, what is refused, and with which words."""

from fractions import Fraction
import sys
import types

import pytest

from symformer_jax.errors import InputError
from symformer_jax.language import templates, units
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.parser import parse
from symformer_jax.language.printing import to_text

pint = pytest.importorskip("pint")


@pytest.mark.parametrize(("text", "dimension", "powers"), [
  ("m", "length", "m"), ("km/h", "length/time", "km/h"), ("m s^-2", "length/time**2", "m/s**2"),
  ("m²·s⁻²", "length**2/time**2", "m**2/s**2"), ("kg*m^2/s**3", "length**2*mass/time**3", "kg*m**2/s**3"),
  ("J/(mol K)", "length**2*mass/substance/temperature/time**2", "J/K/mol"), ("m**(1/3)", "length**(1/3)", "m**(1/3)"),
  ("", "1", "1"), ("1", "1", "1"), ("%", "1", "percent"), ("rad", "1", "rad"), ("°C", "temperature", "°C"),
  ("µm", "length", "µm"), ("1/s", "1/time", "1/s"), ("metre/second", "length/time", "metre/second"), (1, "1", "1"),
])
def test_units_are_read(text, dimension, powers):
  unit = units.read_unit(text, name="x")
  assert (str(unit.dimension), str(unit.powers)) == (dimension, powers.replace("percent", str(unit.powers)))
  assert str(units.read_unit(str(unit.powers).replace("%", "percent"), name="x").dimension) == dimension


@pytest.mark.parametrize("text", [
  "m s-2", "m+s", "2 m", "1e3 m", "9**9**9**9", "m**9**9**9", "m**(9**9)", "m²²²", "(9**99)**99", "(m", "m)", "m*",
  "()",
  "#", "`m`", "m\x00", "lambda: 3", "m" * 101, None, 3, 1.0, ["m"], "nan", "__import__('os')", "m.__class__", "m;s",
  "open('x')", "m**1e9", "m**999",
])
def test_what_is_no_unit_is_refused_in_one_line(text):
  with pytest.raises(InputError) as caught:
    units.read_unit(text, name="a column")
  assert str(caught.value).startswith("units: 'a column': ") and len(str(caught.value)) < 250
  assert "\n" not in str(caught.value)


def test_an_unknown_unit_is_named():
  with pytest.raises(InputError, match=r"units: 'x': unknown unit in 'furlongg/s': 'furlongg'"):
    units.read_units({"x": "furlongg/s"})


def test_without_pint_the_way_to_install_it_is_named(monkeypatch):
  units._registry.cache_clear()
  monkeypatch.setitem(sys.modules, "pint", None)
  with pytest.raises(InputError, match=r"units need pint: pip install '.\[units\]'"):
    units.read_units({"x": "m"})
  units._registry.cache_clear()


@pytest.mark.parametrize(("given", "columns", "options", "message"), [
  ({"x": "m", "y": "s"}, ["x", "t"], {}, "none for the column 't'; write t=1 if it has no dimension"),
  ({"x": "m"}, ["x"], {}, "none for the target 'y'; write y=1"),
  ({"x": "m", "y": "s"}, ["x", "y"], {}, "none for the target 'y'"),
  ({"x": "m", "y": "s"}, ["x"], {"dimensionless_constants": True},
   "no formula of these columns with dimensionless constants is a s"),
])
def test_units_that_do_not_fit_the_columns(given, columns, options, message):
  read = units.read_units(given, **options)
  with pytest.raises(InputError) as caught:
    read.for_columns(columns)
  assert message in str(caught.value)


def test_names_that_are_no_columns_are_refused():
  read = units.read_units({"axis": "au", "perod": "yr"})
  with pytest.raises(InputError, match=r"units: no column 'perod': did you mean 'period'\?"):
    read.check_names(["axis", "period", "y"])
  with pytest.raises(InputError, match="expected a unit for each column"):
    units.read_units("x=m")


def test_the_target_goes_by_its_name_or_as_y():
  for given, target in (({"x": "m", "speed": "m/s"}, "speed"), ({"x": "m", "y": "m/s"}, "speed"),
                        ({"x": "m", "y": "m/s"}, "y")):
    assert units.read_units(given).for_columns(["x"], target).target.text == "m/s"
  both = units.read_units({"x": "m", "y": "s", "speed": "m/s"}).for_columns(["x", "y"], "speed")
  assert [unit.text for unit in (*both.columns, both.target)] == ["m", "s", "m/s"]
  assert units.read_units({"x": "m", "y": "s"}).for_columns(["x", "t"], excluded=[1]).columns[1].text == "1"


def test_the_longest_unit_is_read_and_what_is_shown_of_others_is_cut():
  assert units.read_unit("m" + " " * 99, name="x").text == "m"
  for text, shown in (("#" * 98, repr("#" * 98)), ("#" * 99, repr("#" * 99)[:100] + "...")):
    with pytest.raises(InputError) as caught:
      units.read_unit(text, name="x")
    assert str(caught.value).endswith(f"or '1', got {shown}")


@pytest.mark.parametrize("names", ["furlongg", ("furlongg",)])
def test_names_that_pint_does_not_know_are_one_or_several(names):
  assert units._unknown(types.SimpleNamespace(unit_names=names)) == "'furlongg'"


def test_a_column_that_is_excluded_makes_no_dimension():
  read = units.read_units({"x": "m", "t": "s", "y": "m"}, dimensionless_constants=True)
  assert read.for_columns(["x", "t"], excluded=[1]).target.text == "m"
  with pytest.raises(InputError, match="no formula of these columns with dimensionless constants is a m"):
    read.for_columns(["x", "t"], excluded=[0])
  assert units.Units(read.by_name).for_columns(["x", "t"], excluded=[0]).are_constants_free


def test_what_a_formula_leaves_open_has_no_unit():
  read = units.read_units({"x": "m", "t": "s", "y": "N"}).for_columns(["x", "t"])
  assert read.of_numbers(parse("2.5*3.5*x", ["x", "t"])) == (None, None)
  node = templates.read("f(x)*exp(-k*t)", ("x", "t")).node
  assert read.of_part(node, (0,)).text == "N" and read.of_part(node, (0,)).dimension == read.target.dimension
  assert read.of_part(templates.read("f(x)*g(t)", ("x", "t")).node, (0,)) is None


def test_constants_have_units_in_the_users_spelling():
  read = units.read_units({"axis": "au", "period": "yr"}).for_columns(["axis"], "period")
  node = Node("*", (Node("pow", (variable(0), number(1.5))), number(1.0)))
  assert read.of_numbers(node) == ("1", "yr/au**(3/2)") and read.dimensions.allows(node)
  assert not read.dimensions.allows(node.args[0])
  lengths = units.read_units({"x": "cm", "y": "m"}).for_columns(["x"])  # one dimension, and not one unit
  assert lengths.of_numbers(parse("0.01*x", ["x"])) == ("m/cm",) and lengths.dimensions.allows(parse("x", ["x"]))
  assert lengths.dimensions.columns[0].exponents == (("length", Fraction(1)),)


@pytest.mark.parametrize(("node", "text", "with_ones"), [
  (Node("*", (number(1), variable(0))), "x0", "1*x0"), (Node("*", (variable(0), number(-1))), "-x0", "-1*x0"),
  (Node("neg", (variable(0),)), "-x0", "-x0"),
  (Node("+", (variable(0), Node("*", (number(-1), variable(1))))), "x0 - x1", "x0 - 1*x1"),
  (Node("*", (number(1), Node("inv", (variable(0),)))), "1/x0", "1/x0"),
])
def test_a_factor_one_is_written_on_request(node, text, with_ones):
  assert (to_text(node), to_text(node, has_ones=True)) == (text, with_ones)
