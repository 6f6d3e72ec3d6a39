"""The README keeps its word: its Python runs, its commands exist and are those of the continuous integration."""

import importlib.util
import pathlib
import re
import shlex

import numpy as np
import pytest

from symformer_jax.pretrained import registry

ROOT = pathlib.Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
SNIPPETS = [block for language, block in BLOCKS if language == "python"]
COMMANDS = [line for language, block in BLOCKS if not language for line in block.splitlines() if "python -m" in line]


@pytest.mark.parametrize("code", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippets_run(code, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)  # some write files
  if "SymFormerRegressor" in code and not registry.model_names():
    pytest.skip("this installation has no shipped model")
  scope = {}
  exec(compile(code, "README.md", "exec"), scope)  # this project's own text
  for name, value in re.findall(r"^(\w+) = .*  # (.*)$", code, re.MULTILINE):
    if name in ("law", "text"):
      assert str(scope[name]) == value


def test_the_snippet_of_refine_finds_its_constants():
  scope = {}
  exec(compile(next(code for code in SNIPPETS if "import refine" in code), "README.md", "exec"), scope)
  assert scope["fit"].constants == pytest.approx({"b1": 240.0, "b2": 0.55}, rel=1e-6)


def test_the_snippet_of_the_estimator_finds_its_formula(tmp_path, monkeypatch):
  if not registry.model_names():
    pytest.skip("this installation has no shipped model")
  monkeypatch.chdir(tmp_path)
  scope = {}
  exec(compile(next(code for code in SNIPPETS if "SymFormerRegressor" in code), "README.md", "exec"), scope)
  assert scope["reg"].score(scope["X"], scope["y"]) > 0.9999
  assert np.isfinite(scope["reg"].predict(scope["X"])).all()


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_name_modules_flags_and_files_that_exist(command):
  words = shlex.split(command.split("&&")[-1].replace("[", " ").replace("]", " "))
  module = words[words.index("-m") + 1]
  spec = importlib.util.find_spec(module)
  assert spec is not None
  if module == "pytest":
    return
  source = pathlib.Path(spec.origin).read_text(encoding="utf-8")
  for word in words[words.index("-m") + 2 :]:
    if word.startswith("--") and not word.startswith("--config."):
      assert f'"{word[2:].split("=")[0]}"' in source
    for path in re.findall(r"(?:configs|examples)/\S+", word):
      assert (ROOT / path).is_file()


def test_continuous_integration_runs_what_the_readme_says():
  script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
  first, tests = (line for line in COMMANDS if line.startswith("pip install"))
  assert "pip install --quiet '.[test]'" in script and tests == "pip install '.[test]' && python -m pytest -q -n 2"
  assert "\npython -m pytest -q -n 2\n" in script and "ruff check" in script
  assert first.endswith("python -m symformer_jax.infer --data=examples/kepler.csv")
  assert '-m symformer_jax.infer --data="$root/examples/kepler.csv"' in script


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(path):
  assert (ROOT / path).exists()
