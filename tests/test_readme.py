"""The README keeps its word: its Python runs, its commands exist and are those of the continuous integration."""

import functools
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


@functools.cache
def run(code):
  """What a snippet leaves behind; each is run once."""
  if "SymFormerRegressor" in code and not registry.model_names():
    pytest.skip("this installation has no shipped model")
  scope = {}
  exec(compile(code, "README.md", "exec"), scope)  # this project's own text
  return scope


@pytest.mark.parametrize("code", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippets_run(code):
  assert run(code)


def test_the_snippet_of_refine_finds_its_constants():
  scope = run(next(code for code in SNIPPETS if "refine" in code))
  assert scope["fit"].constants == pytest.approx({"a": 2.5, "b": 1.0, "c": 1.5}, rel=1e-6)


def test_the_snippet_of_the_estimator_finds_its_formula():
  scope = run(next(code for code in SNIPPETS if "SymFormerRegressor" in code))
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
  folder, name = module.rsplit(".", 1)
  flags = f"symformer_jax.commands.{name}_flags" if folder == "symformer_jax" else f"{folder}.flags.{name}"
  source = pathlib.Path(importlib.util.find_spec(flags).origin).read_text(encoding="utf-8")
  for word in words[words.index("-m") + 2 :]:
    if word.startswith("--") and not word.startswith("--config."):
      assert f'"{word[2:].split("=")[0]}"' in source
    for path in re.findall(r"(?:configs|examples)/\S+", word):
      assert (ROOT / path).is_file()


def test_continuous_integration_runs_what_the_readme_says():
  script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
  first, tests = (line for line in COMMANDS if line.startswith("pip install"))
  command = "python -m pytest -q -n 2 --dist=worksteal"
  assert "pip install --quiet '.[test]'" in script and tests == f"pip install '.[test]' && {command}"
  assert f"\n{command} --durations=20\n" in script and "ruff check" in script
  assert first.endswith("python -m symformer_jax.infer --data=examples/kepler.csv")
  assert "\ntests/installed.sh\n" in script
  installed = (ROOT / "tests" / "installed.sh").read_text(encoding="utf-8")
  assert '\npython -m symformer_jax.infer --data="$root/examples/kepler.csv"' in installed


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(path):
  assert (ROOT / path).exists()
