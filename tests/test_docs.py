"""The pages of docs/ keep their word: Python runs and prints what they say, commands and links exist."""

import doctest
import importlib.util
import pathlib
import re
import shlex

import pytest

from symformer_jax import Restrictions, SymFormerRegressor
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


def test_what_pysr_has_has_an_example_that_runs(folder):
  examples, scope = examples_for_users_of_pysr()
  for code in examples:
    found = eval(code, scope)  # this project's own text
    if code.startswith("SymFormerRegressor"):  # nothing misspelt
      (found.restrictions or Restrictions()).check()
      assert found.get_params()


@pytest.mark.slow
def test_the_examples_for_users_of_pysr_fit_the_data_of_their_page(folder):
  examples, scope = examples_for_users_of_pysr()
  for code in examples:
    if code.startswith("SymFormerRegressor"):
      found = eval(code, scope)
      found.set_params(max_time=min(found.max_time or 2.0, 2.0), verbose=False).fit(scope["X"], scope["y"])
      assert found.best_.r2 > 0.9, code


def commands(page):
  """Command lines of a page's blocks without a language, continued lines joined."""
  for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
    if not language:
      for line in re.sub(r"\\\n\s+|\n {7}", " ", text).splitlines():
        if re.match(r"(pip install \. && )?(python -m|symformer)", line):
          yield line.split("&&")[-1].split("  #")[0].split(" -- ")[0]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_name_flags_and_files_that_exist(page):
  for command in commands(page):
    words = shlex.split(re.sub(r"[][|]", " ", command))
    module = words[2] if words[0] == "python" else "symformer_jax.infer"
    folder, name = module.rsplit(".", 1)
    flags = "symformer_jax.commands.infer_flags" if name == "infer" else f"{folder}.flags.{name}"
    assert importlib.util.find_spec(module) is not None
    known = pathlib.Path(importlib.util.find_spec(flags).origin).read_text(encoding="utf-8")
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
