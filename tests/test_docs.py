"""The pages of docs/ keep their word: Python runs and prints what they say, commands and links exist."""

import doctest
import importlib.util
import pathlib
import re
import shlex

import pandas as pd
import pytest

from symformer_jax import Restrictions, SymFormerRegressor
from symformer_jax.commands import scripts
from symformer_jax.language.expression import complexity, walk
from symformer_jax.pretrained import registry

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The contracts in the design are forms, no examples.
WITH_PYTHON = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8") and page.name != "design.md"]
WITH_COMMANDS = [page for page in PAGES if page.name not in ("design.md", "generation.md")]


@pytest.fixture(scope="module", autouse=True)
def shared_fits():
  """The same fit of the same data is searched once for all pages."""
  fit, known = SymFormerRegressor.fit, {}

  def fit_once(self, X, y, sample_weight=None):
    key = (repr(self.get_params()), repr(X), repr(y), repr(sample_weight))
    if key not in known:
      fit(self, X, y, sample_weight)
      known[key] = dict(vars(self))
    vars(self).update(known[key])
    return self

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(SymFormerRegressor, "fit", fit_once)
    yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """A folder to write in, from which the examples are seen as from the checkout."""
  if not registry.model_names():
    pytest.skip("this installation has no shipped model")
  (tmp_path / "examples").symlink_to(ROOT / "examples")
  monkeypatch.chdir(tmp_path)
  return tmp_path


def run(page, scope):
  """Runs a page's examples in one namespace; the report of those that print something else than the page says."""
  code = "\n".join(text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language == "python")
  assert ">>>" in code
  test = doctest.DocTestParser().get_doctest(code, scope, page.name, str(page), 0)
  report = []
  flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
  doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=report.append, clear_globs=False)
  scope.update(test.globs)
  return "".join(report)


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(page, folder):
  assert run(page, {}) == ""


def examples_for_users_of_pysr():
  """The table's examples, and the names that they know."""
  scope = {}
  page = ROOT / "docs" / "from_pysr.md"
  assert run(page, scope) == ""
  examples = re.findall(r"^\|[^|]+\|[^|]+\| `([^|]+)` \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
  assert len(examples) > 15
  return examples, scope | {"Restrictions": Restrictions}


# What shows that an example does what its row is about, by a part of its text: of values, and of what has been fitted.
VALUES = {
  "result_.rounds": lambda turns: any(has_gained for _, has_gained in turns),
  "seconds.total": lambda seconds: seconds > 0,
  "number_units": lambda units: units is None,  # the page's fit has none
  "sample_weight": lambda reg: reg.result_.is_weighted,
  "set_params": lambda best: best.r2 > 0.99,
  "equations_": lambda front: front["complexity"].is_monotonic_increasing and len(front) > 1,
  "predict": lambda values: values.shape == (25,),
  "reg.sympy()": lambda forms: len(forms) == 5 and "volume" in str(forms[0]),
  "reg.source": lambda text: "#include" in text,
  "save": lambda _: SymFormerRegressor.load("fit.json").best_.r2 > 0.99,
  "X.assign": lambda columns: list(columns) == ["volume", "root"],
  "noise": lambda noise: 0 < noise < 0.1,
  "num_points": lambda num: num == 25,
}
FITS = {
  'effort="thorough"': lambda reg: reg.result_.ended_by == "accuracy",
  "max_time=60": lambda reg: reg.result_.ended_by == "time",
  "accuracy=0.999": lambda reg: reg.result_.ended_by == "accuracy",
  "lambda now": lambda reg: reg.result_.ended_by == "stopped",
  "warm_start": lambda reg: "guesses" in sources(reg.fit(
    pd.DataFrame(reg._data.x, columns=["volume"]), 2 * reg._data.y)),
  "(operators=[": lambda reg: tokens(reg) <= {"+", "*", "inv", "exp"},
  "max_complexity": lambda reg: all(line.complexity <= 15 for line in reg.result_.pareto),
  "max_depth": lambda reg: all(depth(line.node) <= 5 for line in reg.result_.pareto),
  "units={": lambda reg: reg.best_.number_units is not None and "volume" in reg.best_.expression,
  "unnested": lambda reg: not any(
    {"sin", "cos"} & {inner.token for inner in walk(node) if inner is not node}
    for node in nodes(reg) if node.token in ("sin", "cos")),
  "max_sizes": lambda reg: all(complexity(node.args[0]) <= 5 for node in nodes(reg) if node.token == "exp"),
  "max_exponent": lambda reg: all(
    node.args[1].is_number and abs(node.args[1].value) <= 3 for node in nodes(reg) if node.token == "pow"),
  "add_operators": lambda reg: reg.result_.ended_by == "accuracy",
  "template": lambda reg: reg.best_.filled.functions[0][0] == "f(volume)",
  "guesses": lambda reg: "guesses" in sources(reg),
  'loss="relative"': lambda reg: reg.result_.loss == "relative" and reg.result_.is_weighted,
  'loss="huber"': lambda reg: reg.result_.loss == "huber",
  "verbose": lambda reg: not reg.verbose,
  "callback=print": lambda reg: reg.callback is print,
  "random_state": lambda reg: reg.result_.seed == 0,
  "select_k_features": lambda reg: reg.best_.r2 > 0.99,
  "forbidden": lambda reg: "tan" not in tokens(reg),
}


def nodes(reg):
  return [node for line in reg.result_.pareto for node in walk(line.node)]


def tokens(reg):
  return {node.token for node in nodes(reg)} - {"number", "variable"}


def sources(reg):
  return {turn.source for turn in reg.result_.rounds}


def depth(node):
  return 1 + max(map(depth, node.args), default=0)


def check(code, found, checks):
  [does_act] = [does_act for part, does_act in checks.items() if part in code]
  assert does_act(found), code


def test_what_pysr_has_has_an_example_that_runs(folder):
  examples, scope = examples_for_users_of_pysr()
  for code in examples:
    found = eval(code, scope)  # this project's own text
    if code.startswith("SymFormerRegressor"):  # nothing misspelt
      (found.restrictions or Restrictions()).check()
      assert found.get_params()
    else:
      check(code, found, VALUES)


@pytest.mark.slow
def test_the_examples_for_users_of_pysr_fit_the_data_of_their_page(folder):
  examples, scope = examples_for_users_of_pysr()
  for code in examples:
    if code.startswith("SymFormerRegressor"):
      found = eval(code, scope)
      # What is accurate enough ends them soon; a limit of time would leave them what a slow machine has found by then.
      if found.max_time is None and "lambda" not in code:
        found.set_params(accuracy=found.accuracy or 0.99)
      found.set_params(max_time=found.max_time and 3.0, verbose=False).fit(scope["X"], scope["y"])
      assert found.best_.r2 > 0.9, code
      check(code, found, FITS)


def commands(page):
  """Command lines of a page's blocks without a language, continued lines joined."""
  for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
    if not language:
      for line in re.sub(r"\\\n\s+|\n {7}", " ", text).splitlines():
        if re.match(r"(pip install \. && )?(python -m|symformer)", line):
          yield line.split("&&")[-1].split("  #")[0].split(" -- ")[0]


def module_of(script):
  """What an installed command runs: `symformer-predict` is `symformer_jax.predict`."""
  [module] = getattr(scripts, script.partition("-")[2] or "infer").args
  return module


def defining(flags):
  """The text that defines a command's flags, with that of those it shares."""
  own = pathlib.Path(importlib.util.find_spec(flags).origin).read_text(encoding="utf-8")
  return own + (defining("symformer_jax.commands.table_flags") if "table_flags.define" in own else "")


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_name_flags_and_files_that_exist(page):
  for command in commands(page):
    words = shlex.split(re.sub(r"[][|]", " ", command))
    module = words[2] if words[0] == "python" else module_of(words[0])
    folder, name = module.rsplit(".", 1)
    flags = f"symformer_jax.commands.{name}_flags" if folder == "symformer_jax" else f"{folder}.flags.{name}"
    assert importlib.util.find_spec(module) is not None
    known = defining(flags)
    for word in words[1:]:
      given = re.match(r"--(no)?([a-z_]+)(?=$|=)", word)
      if given:
        assert any(f'"{flag}"' in known for flag in (given[2], (given[1] or "") + given[2])), f"{command}: {word}"
      for path in re.findall(r"(?:configs|examples)/[\w/.]+", word):
        assert (ROOT / path).is_file(), f"{command}: {path}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_pages_lead_somewhere(page):
  for target in re.findall(r"\]\((?!\w+:|#)([^)#]+)", page.read_text(encoding="utf-8")):
    assert (page.parent / target).exists(), target


def test_every_page_is_in_the_contents():
  listed = re.findall(r"^[a-z_]+$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
  assert sorted([*listed, "index"]) == [page.stem for page in PAGES]


def test_every_public_name_is_in_the_reference():
  import symformer_jax

  text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
  assert set(re.findall(r"symformer_jax\.(\w+)", text)) == set(symformer_jax.__all__) - {"__version__"}
