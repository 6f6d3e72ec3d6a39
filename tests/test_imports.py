"""Imports form the DAG of docs/design.md, and training drags in nothing heavy."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# A room may import those named beside it and itself. `top` are the modules directly in symformer_jax/ that
# anybody may use; the others there are rooms of their own.
TOP = {"compilation", "arguments", "ranges", "errors", "types", "files", "frames", "configuration", "npz",
       "installation"}
ALLOWED = {
  "language": set(),
  "data": {"language"},
  "refinement": {"language"},
  "model": {"language", "data"},
  "decoding": {"language", "model"},
  "training": {"language", "data", "model", "decoding"},
  "results": {"language"},
  "saved": {"language", "results"},
  "engine": {"language", "refinement", "results"},
  "selection": {"language", "refinement", "results", "engine"},
  "sources": {"language", "refinement", "results", "engine", "decoding", "selection"},
  "templates": {"language", "refinement", "results", "engine", "selection"},
  "pretrained": {"language", "model"},
  "first_look": {"language", "results", "engine", "sources", "selection"},
  "conclusion": {"language", "results", "engine", "sources", "selection", "templates"},
  "inference": {"decoding", "language", "results", "engine", "sources", "selection", "templates", "pretrained",
                "first_look", "conclusion"},
  "presentation": {"language", "results", "selection"},
  "exports": {"language", "results", "selection", "presentation"},
  "commands": {"language", "refinement", "results", "saved", "engine", "selection", "sources", "presentation"},
  "testing": {"language", "model", "training", "data", "pretrained"},
  "evaluation": {"language", "data", "selection", "inference", "results", "refinement", "pretrained", "engine",
                 "sources", "commands"},
  "warm_start": {"language", "results", "engine"},
  "progress_line": {"results", "presentation"},
  "live_front": {"results", "presentation", "progress_line"},
  "estimator": {"language", "inference", "results", "selection", "engine", "live_front", "saved", "exports",
                "presentation", "warm_start"},
  "file_answers": {"language", "inference", "results", "commands", "engine", "selection"},
  "infer_worker": {"results", "commands", "file_answers"},
  "infer_beam": {"inference", "results", "commands", "file_answers", "infer_worker"},
  "infer": {"language", "results", "commands", "engine", "live_front", "selection", "presentation", "file_answers",
            "infer_beam"},
  "predict": {"language", "results", "commands", "selection", "presentation"},
}
OUTSIDE = {"data_gen", "configs", "launch"}
FILES = sorted(path for folder in ("symformer_jax", "data_gen", "launch", "configs")
               for path in (ROOT / folder).rglob("*.py"))


def imported(path: pathlib.Path) -> set[str]:
  """Dotted names of all imports of a file, also those inside functions."""
  names = set()
  for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
    if isinstance(node, ast.Import):
      names |= {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{path}: relative import"
      names |= {f"{node.module}.{alias.name}" for alias in node.names}
  return names


def room(name: str) -> str | None:
  """The room of symformer_jax that a dotted name lies in; None for others and for what anybody may use."""
  parts = name.split(".")
  return parts[1] if parts[0] == "symformer_jax" and len(parts) > 1 and parts[1] not in TOP else None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_design(path):
  names = imported(path)
  own = path.relative_to(ROOT).with_suffix("").parts
  if own[0] == "symformer_jax":
    assert not {n for n in names if n.split(".")[0] in OUTSIDE}
    if own[1] != "__init__" and own[1] not in TOP:
      assert {room(n) for n in names} - {None, own[1]} <= ALLOWED[own[1]]
    elif own[1] in TOP:
      assert {room(n) for n in names} == {None} or not names
  elif own[0] == "data_gen":
    rooms = {".".join(n.split(".")[:3]) for n in names if room(n)}
    allowed = ("symformer_jax.language", "symformer_jax.data.records", "symformer_jax.commands.runner",
               "symformer_jax.commands.startup", "symformer_jax.commands.extras",
               "symformer_jax.installation")
    assert all(r.startswith(allowed) for r in rooms), rooms
    assert not {n for n in names if n.split(".")[0] == "launch"}


def test_the_allowed_imports_have_no_cycle():
  order: list[str] = []
  while len(order) < len(ALLOWED):
    free = [name for name in ALLOWED if name not in order and ALLOWED[name] <= set(order)]
    assert free, f"a cycle among {set(ALLOWED) - set(order)}"
    order += free


def test_the_folders_of_sources_import_each_other_in_one_direction():
  folder = ROOT / "symformer_jax" / "sources"
  needs = {each.name: _folders_of_sources(each) - {each.name} for each in folder.iterdir() if any(each.glob("*.py"))}
  assert needs["waves"] >= {"sums"}, "nothing was read"
  beside = [path for path in folder.glob("*.py") if path.stem != "registry"]  # what is beside the folders is below them
  assert beside and not {name for path in beside for name in _folders_among(imported(path), folder)}
  order: list[str] = []
  while len(order) < len(needs):
    free = [name for name, others in needs.items() if name not in order and others <= set(order)]
    assert free, f"a cycle among {set(needs) - set(order)}"
    order += free


def _folders_of_sources(folder: pathlib.Path) -> set[str]:
  return {found for path in folder.glob("*.py") for found in _folders_among(imported(path), folder.parent)}


def _folders_among(names: set[str], sources: pathlib.Path) -> set[str]:
  folders = {path.name for path in sources.iterdir() if path.is_dir()}
  return {name.split(".")[2] for name in names if name.startswith("symformer_jax.sources.")} & folders


def test_the_plan_names_every_module_where_it_is():
  plan = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
  begin = plan.index("\n  commands/ ")
  plan = plan[plan.rindex("```", 0, begin):plan.index("```", begin)]
  rooms = [path for path in FILES if path.parts[len(ROOT.parts)] in ("symformer_jax", "data_gen")]
  named = [path.name for path in rooms if path.name != "__init__.py" and path.parent.name != "config"]
  missing = {name for name in named if not re.search(rf"(?<!\w){re.escape(name)}", plan)}
  assert len(named) > 200 and not missing
  folders = {path.parent.name for path in rooms if path.parent.parent.name == "sources"}
  assert len(folders) > 10 and not {name for name in folders if f"\n    {name}/ " not in plan}


def test_only_the_bridge_and_the_generator_import_sympy():
  users = {str(p.relative_to(ROOT)) for p in FILES if any(n.split(".")[0] == "sympy" for n in imported(p))}
  assert {u for u in users if not u.startswith("data_gen")} == {"symformer_jax/language/sympy_trees.py"}


def test_only_the_estimator_and_the_suite_of_real_data_import_scikit_learn():
  users = {str(p.relative_to(ROOT)) for p in FILES if any(n.split(".")[0] == "sklearn" for n in imported(p))}
  assert users <= {"symformer_jax/estimator.py", "symformer_jax/evaluation/real_data.py",
                   "symformer_jax/evaluation/real_runs.py"}


@pytest.mark.parametrize("module", ["symformer_jax", "symformer_jax.training.loop", "symformer_jax.data.pipeline"])
def test_training_needs_nothing_heavy(module):
  code = f"import sys, {module}; print(*sorted({{n.split('.')[0] for n in sys.modules}}))"
  loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
  assert not {"tensorflow", "sklearn", "pandas", "matplotlib", "sympy"} & set(loaded.stdout.split())
