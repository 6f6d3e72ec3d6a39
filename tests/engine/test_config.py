"""What steers the search: frozen, hashable, checked; every name of the config files changes what it says."""

import ast
import dataclasses
import math
import pathlib

import numpy as np
import pytest

from configs.search import ablation, default
import symformer_jax
from symformer_jax import configuration, ranges
from symformer_jax.commands.search_config import load_search_config
from symformer_jax.engine import config as config_lib
from symformer_jax.engine.config import DEFAULT, LibraryConfig, ProductsConfig, SearchConfig, TermsConfig
from symformer_jax.engine.config.names import INNER_ARGUMENTS, INNER_KINDS
from symformer_jax.engine.rows import Rows
from symformer_jax.errors import InputError
from symformer_jax.language import printing
from symformer_jax.language.rules import Rule
from symformer_jax.selection import writing
from symformer_jax.sources import links, registry
from symformer_jax.sources.curves import inner_functions
from symformer_jax.sources.fractions import views
from symformer_jax.sources.sums import families, products, terms
from symformer_jax.sources.sums.library import Atoms

ABLATION = "configs/search/ablation.py"


def leaves(config, path=""):
  """`(path, value)` of every entry."""
  for field in dataclasses.fields(config):
    value = getattr(config, field.name)
    if dataclasses.is_dataclass(value):
      yield from leaves(value, f"{path}{field.name}.")
    else:
      yield path + field.name, value


def other_than(path, value):
  if isinstance(value, bool):
    return not value
  if value == ():
    return ("roots",) if ".views." in path else ("ln",)  # a name, where names are asked for
  is_share = path.endswith(("edges", "chance", "chance_beside", "choice_share", "noise_share", "line_share"))
  if is_share or path.startswith("screening.") and isinstance(value, float):
    return value / 2  # shares below a half, or below one
  return value[:-1] if isinstance(value, tuple) else value + 1


def changed(path, value, config=DEFAULT):
  name, _, rest = path.partition(".")
  return dataclasses.replace(config, **{name: changed(rest, value, getattr(config, name)) if rest else value})


@pytest.mark.parametrize(("path", "value"), leaves(DEFAULT), ids=[path for path, _ in leaves(DEFAULT)])
def test_every_entry_tells_configs_apart(path, value):
  other = changed(path, other_than(path, value))
  assert other != DEFAULT and hash(other) != hash(DEFAULT)
  assert changed(path, value) == DEFAULT and hash(changed(path, value)) == hash(DEFAULT)


@pytest.mark.parametrize(("may_be_named", "table"), [
  (config_lib.LIBRARY_FAMILIES, [name for _, rows in families.FAMILIES for name in rows]),
  (config_lib.PRODUCTS_FAMILIES, products.FAMILIES), (config_lib.LINKS, links.LINKS),
  (config_lib.VIEW_FUNCTIONS, views.FUNCTIONS),
  (INNER_KINDS, inner_functions.KINDS), (INNER_ARGUMENTS, inner_functions.ARGUMENTS),
  (config_lib.SOURCES, registry.SOURCES),
  (config_lib.REWRITINGS, writing.REWRITINGS)], ids=[
    "library", "products", "links", "views", "kinds", "arguments", "sources", "rewritings"])
def test_what_a_config_may_name_is_what_there_is(may_be_named, table):
  assert sorted(may_be_named) == sorted(table)


def test_every_entry_is_read():
  """An entry that nothing reads steers nothing."""
  trees = (ast.parse(path.read_text()) for path in sorted(pathlib.Path(symformer_jax.__file__).parent.rglob("*.py")))
  read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
  assert [path for path, _ in leaves(DEFAULT) if path.split(".")[-1] not in read] == []


def test_a_config_survives_plain_types():
  assert configuration.build(SearchConfig, configuration.to_dict(DEFAULT)) == DEFAULT


@pytest.mark.parametrize(("values", "message"), [
  ({"pool": {"long": -1}}, "search config: pool.long must lie between 0 and 2147483647, got -1"),
  ({"pool": {"num_best": 10**15}}, "search config: pool.num_best must lie between 0 and 2147483647, got 10{15}"),
  ({"pool": {"max_constants": 10**6}}, "search config: pool.max_constants must lie between 1 and 256, got 1000000"),
  ({"pool": {"met": math.nan}}, "search config.pool.met: expected a number, got nan"),
  ({"pool": {"asked_if_long": [["library"]]}}, r"search config.pool.asked_if_long: expected 2 values, got \('library'"),
  ({"pool": {"asked_if_long": [["library", "x"]]}}, "search config.pool.asked_if_long: expected a value of type int"),
  ({"budget": {"cycle": "evolution"}}, "search config.budget.cycle: expected a list of values, got 'evolution'"),
  ({"sources": None}, "search config.sources: expected a list of values, got None"),
  ({"library": {"powers": [1, math.nan]}}, "search config.library.powers: expected a number, got nan"),
  ({"scaling": {"box": 0.0}}, r"search config: scaling.box must be above 0 and at most 1e\+300, got 0.0"),
  ({"noise": {"chance": 1.0}}, "search config: noise.chance must be above 0 and below 1, got 1.0"),
  ({"choice": {"num_folds": 1}}, "search config: choice.num_folds must lie between 2 and 2147483647, got 1"),
  ({"choice": {"noise_share": 0.01}}, "search config: choice.line_share must be below the 0.01 of choice.noise_share")])
def test_what_no_search_can_do_with_is_refused_by_its_name(values, message):
  with pytest.raises(InputError, match=f"^{message}"):
    configuration.build(SearchConfig, values, path="search config")


def test_no_number_of_the_default_is_refused():
  """Where a part is the default one it is not looked at again."""
  for part in (DEFAULT, *(getattr(DEFAULT, field.name) for field in dataclasses.fields(DEFAULT))):
    if dataclasses.is_dataclass(part):
      ranges.check_counts(configuration.build(type(part), configuration.to_dict(part)))
  with pytest.raises(InputError, match="^pool.num_best must lie between 0 and"):
    dataclasses.replace(DEFAULT, pool=dataclasses.replace(DEFAULT.pool, num_best=2**31))


def test_the_default_file_is_the_default():
  assert load_search_config("configs/search/default.py") == SearchConfig() == DEFAULT
  assert default.get_config().library.num_waves == DEFAULT.library.num_waves


@pytest.mark.parametrize("name", ablation.ABLATIONS)
def test_an_ablation_differs_from_the_default_in_what_it_names(name):
  before, after = dict(leaves(DEFAULT)), dict(leaves(load_search_config(f"{ABLATION}:{name}")))
  assert {path: value for path, value in after.items() if value != before[path]} == ablation.ABLATIONS[name]


@pytest.mark.parametrize(("text", "name", "message"), [
  ("def get_config(): return {'library': None}", "", "search config.library: expected its own keys and values"),
  ("def get_config(): return missing", "", "NameError: name 'missing' is not defined"),
  ("def get_config(): return {'pool': {'fit_rows': 0}}", "", "fit_rows: expected a whole number of at least 1, got 0"),
  ("def get_config(): return {'transformer': {'round_samples': 0}}", "", "round_samples: expected a whole number"),
  ("def get_config(): return {'librari': {}}", "", "unknown key search config.librari: did you mean 'library'?"),
  ("def get_config(): return {'library': {'num_wave': 3}}", "", "library.num_wave: did you mean 'num_waves'?"),
  ("def get_config(): return {'library': {'families': ('wavs',)}}", "",
   "families: unknown name 'wavs': did you mean 'waves'?"),
  ("def get_config(): return {'terms': {'searches': [['basik', 3, 4]]}}", "", "did you mean 'basic'?"),
  ("def get_config(): return {'terms': {'searches': [['basic']]}}", "", "missing 2 required positional arguments"),
  ("def get_config(name): return {}", "", "expected {file}:NAME"),
  ("def get_config(): return {}", ":waves", "{file} takes no :NAME"),
  ("def get_config(): return 3", "", "expected get_config() to return a ConfigDict, got int"),
  ("import sys; sys.exit(0)", "", "SystemExit: 0"), ("def get_config(): raise SystemExit", "", "SystemExit"),
  ("def get_config(): raise GeneratorExit", "", "GeneratorExit"), ("def get_config(): return {3: 4}", "", "config.3: "),
  ("def get_config(", "", "SyntaxError"), ("import nothing_like_it", "", "ModuleNotFoundError"),
  ("get = 3", "", "expected a function get_config"),
  ("class get_config(dict): pass", "", "expected a function get_config, got <class '")])
def test_a_file_that_is_no_config_says_so_in_one_line(text, name, message, tmp_path):
  file = tmp_path / "mine.py"
  file.write_text(text)
  with pytest.raises(InputError) as raised:
    load_search_config(f"{file}{name}")
  assert message.format(file=file) in str(raised.value) and "\n" not in str(raised.value)


def test_a_misspelt_name_and_a_missing_file_are_told():
  with pytest.raises(InputError, match="sources: unknown name 'librray': did you mean 'library'?"):
    SearchConfig(sources=("librray",))
  with pytest.raises(InputError, match="unknown ablation 'no_wave': did you mean 'no_waves'?"):
    load_search_config(f"{ABLATION}:no_wave")
  with pytest.raises(InputError, match="no config file 'configs/search/mine.py': expected a Python file"):
    load_search_config("configs/search/mine.py")
  with pytest.raises(InputError, match="search config: expected FILE or FILE:NAME as text, got 3"):
    load_search_config(3)


def test_two_files_of_one_process_are_two(tmp_path):
  for number in (3, 4):
    (tmp_path / f"{number}.py").write_text(f"def get_config(): return {{'library': {{'num_waves': {number}}}}}")
  assert [load_search_config(str(tmp_path / f"{number}.py")).library.num_waves for number in (3, 4)] == [3, 4]


def texts_of(x, **options):
  atoms = Atoms(x, range(x.shape[1]), **options)
  return [printing.to_text(atoms.node(index), tuple("xyz")) for index in range(0, len(atoms.groups), 7)]


@pytest.mark.parametrize("num_variables", [1, 3])
def test_a_family_left_out_leaves_its_columns_out_and_no_others(num_variables, rng):
  """Every family alone makes columns; all together make the library, but for the few that two families share."""
  x = rng.uniform(0.1, 5.0, (20, num_variables))
  sizes = {name: Atoms(x, range(num_variables), config=LibraryConfig(families=(name,))).columns.shape[1]
           for name in config_lib.LIBRARY_FAMILIES}
  is_of_one = num_variables == 1
  of_many = {name for _, rows in families.FAMILIES[1:2] for name in rows} | {"plane_waves"}
  assert {name for name, size in sizes.items() if not size} == (of_many if is_of_one else set())
  every = LibraryConfig(families=config_lib.LIBRARY_FAMILIES)
  full = Atoms(x, range(num_variables), config=every).columns.shape[1]
  assert 0.95 * sum(sizes.values()) < full < sum(sizes.values())
  assert Atoms(x, range(num_variables), config=LibraryConfig(families=())).columns.shape == (20, 0)


def test_without_waves_there_is_none(rng):
  x = rng.uniform(0.1, 5.0, (20, 1))
  without = LibraryConfig(families=tuple(
    name for name in config_lib.LIBRARY_FAMILIES
    if name not in ("waves", "decaying_waves", "trigonometric", "bent_functions", "arcsines", "products")),
    inner_functions=("ln", "exp", "atan"))
  assert any("sin" in text for text in texts_of(x))
  assert not any("sin" in text or "cos" in text for text in texts_of(x, config=without))


@pytest.mark.parametrize("name", config_lib.PRODUCTS_FAMILIES)
def test_a_family_of_factors_left_out_leaves_them_out(name, rng):
  x = rng.uniform(0.1, 5.0, (20, 3))
  alone, rest = (products.Factors(x, range(3), config=ProductsConfig(families=names)).columns.shape[1] for names in (
    (name,), tuple(other for other in config_lib.PRODUCTS_FAMILIES if other != name)))
  assert 0 < alone == products.Factors(x, range(3)).columns.shape[1] - rest


@pytest.mark.parametrize("num_variables", [1, 3])
def test_with_everything_left_out_the_variables_remain(num_variables, rng):
  x = rng.uniform(0.5, 2.0, (40, num_variables))
  rows = Rows(x, 3 * x[:, 0] - 1, np.ones(40))
  bare = dataclasses.replace(
    DEFAULT, library=LibraryConfig(families=()), products=ProductsConfig(families=()), terms=TermsConfig(links=("y",)))
  near = terms.recombine([], rows, columns=range(num_variables), config=bare)
  assert min(mse for _, mse in near) < 1e-12  # columns are in single precision
  names = {printing.to_text(node, tuple("xyz")) for node, _ in near}
  assert not any("log" in text or "exp" in text or "sin" in text for text in names)


def test_links_that_are_not_named_are_not_tried(rng):
  x = rng.uniform(0.5, 2.0, (40, 1))
  rows = Rows(x, np.exp(x[:, 0] ** 2 - 2 * x[:, 0]), np.ones(40))
  bare = dataclasses.replace(DEFAULT, library=LibraryConfig(families=("monomials",)))
  for names, is_found in ((("y", "exp"), True), (("y",), False)):
    config = dataclasses.replace(bare, terms=TermsConfig(links=names))
    found = terms.sums_of(Atoms(x, (0,), config=config.library), rows, links=names, searches=config.terms.searches,
                          rule=Rule(1), config=config)
    near = terms.scored(found, rows)
    assert any("exp" in printing.to_text(node, ("x",)) for node, _ in near) == is_found
