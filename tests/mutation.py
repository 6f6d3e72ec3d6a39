"""Mutation tests: samples small changes of named modules, runs the tests that belong to them, lists what went unseen.

tests/mutation.sh --num=20 symformer_jax/selection data_gen/filters.py
The changes are made in a copy of the tracked files, never in the working tree.
"""

import argparse
import ast
from collections.abc import Iterator
import contextlib
import copy
import functools
import importlib
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple, NoReturn

ROOT = pathlib.Path(__file__).parents[1]
# Another operator in place of each.
SWAPS = {
  ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
  ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
  ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
  ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.USub: ast.UAdd}
# Seconds that a mutant's tests may take longer than three times what they take without it.
PATIENCE_S = 30
# Changes after which a module does what it did, each with its reason: they are named, not tried, and not counted.
EQUAL = "equal_mutants.txt"


# What most tests import, seconds of each run.
LIBRARIES = (
  "jax.numpy", "flax.nnx", "hypothesis", "scipy.optimize", "scipy.stats", "sympy", "pandas", "sklearn.utils.validation",
  "pytest", "optax", "matplotlib.figure", "mpl_toolkits.mplot3d", "rich.console", "orbax.checkpoint", "grain.python",
  "tensorboardX")


class Mutant(NamedTuple):
  """One change: of which line, what stood there and what stands there now, and the whole text with it."""

  line: int
  before: str
  after: str
  text: str


def mutants(source: str) -> Iterator[Mutant]:
  """Every change of a module's text: one operator, number, truth value, condition, negation or keyword argument."""
  data = source.encode()
  starts = [0]
  for line in data.splitlines(keepends=True):
    starts.append(starts[-1] + len(line))
  for node in _parts(ast.parse(source)):
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    before = data[begin:end].decode()
    for changed in _changes(node):
      after = ast.unparse(changed)
      after = f"({after})" if isinstance(node, ast.expr) and not isinstance(node, ast.Constant | ast.Call) else after
      yield Mutant(node.lineno, before, after, (data[:begin] + after.encode() + data[end:]).decode())


def _parts(node: ast.AST) -> Iterator[ast.expr]:
  """The expressions that decide something: not texts of errors, annotations, docstrings, assertions."""
  for name, value in ast.iter_fields(node):
    for child in value if isinstance(value, list) else [value]:
      is_left_out = name in ("annotation", "returns", "decorator_list") or isinstance(
        child, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom)
      if not isinstance(child, ast.AST) or is_left_out or _is_assertion(child):
        continue
      if _is_guard(child):  # where it is turned round importing runs the program: no behaviour of a function
        for statement in child.body:
          yield from _parts(statement)
        continue
      if isinstance(child, ast.expr):
        yield child
      yield from _parts(child)


def _is_assertion(node: ast.AST) -> bool:
  """Whether it is the `strict=True` of a `zip`: as an assertion it decides nothing where the code is right."""
  return isinstance(node, ast.keyword) and node.arg == "strict"


def _is_guard(node: ast.AST) -> bool:
  """Whether it is `if __name__ == "__main__":`, what a file does as a program below it."""
  return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _changes(node: ast.expr) -> Iterator[ast.expr]:
  if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp) and type(node.op) in SWAPS:
    yield _with(node, op=SWAPS[type(node.op)]())
  elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
    yield node.operand
  elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
    yield _with(node, ops=[SWAPS[type(node.ops[0])](), *node.ops[1:]])
  elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
    yield ast.Constant(not node.value)
  elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
    yield ast.Constant(node.value + 1 if isinstance(node.value, int) else node.value * 2 or 1.0)
  elif isinstance(node, ast.IfExp):
    yield node.body
    yield node.orelse
  elif isinstance(node, ast.Call):
    for i, keyword in enumerate(node.keywords):
      if keyword.arg is not None and not _is_assertion(keyword):
        yield _with(node, keywords=[*node.keywords[:i], *node.keywords[i + 1:]])


def _with(node: ast.expr, **fields) -> ast.expr:
  changed = copy.copy(node)
  for name, value in fields.items():
    setattr(changed, name, value)
  return changed


def tests_of(module: pathlib.Path, root: pathlib.Path) -> list[str]:
  """The test files that bear a module's name (path from `root`); else those of its room that import it, else those
  anywhere that do, else all of its room. Before them the quick ones of its room, `test_ROOM_units*.py` there or in a
  folder of it, and of modules without a room `test_units*.py`, if they import it, and those of what the config makes of
  rooms, `test_engine_units_config*.py`: what these notice costs no more.
  """
  dotted = ".".join(module.with_suffix("").parts)
  files = sorted((root / "tests").rglob("test_*.py"))
  rooms = [root / "tests" / part for part in reversed(module.parent.parts) if (root / "tests" / part).is_dir()]
  importing = [path for path in files if dotted in _imported(path, root)]
  # Modules of two rooms may have one name.
  named = [path for path in files if path.stem == f"test_{module.stem}" and (
    path in importing or not rooms or rooms[0] in path.parents)]
  quick = [path for path in importing if (
    any(room in path.parents and path.stem.startswith(f"test_{room.name}_units") for room in rooms) if rooms
    else path.parent == root / "tests" and path.stem.startswith("test_units"))]
  found = named or [path for path in importing if rooms and path.parent == rooms[0]] or importing
  of_config = [path for path in importing if path.stem.startswith("test_engine_units_config")]
  found = list(dict.fromkeys([*quick, *of_config, *found]))
  return [str(path.relative_to(root)) for path in found or rooms[:1] or [root / "tests"]]


@functools.cache  # test files are not changed
def _imported(path: pathlib.Path, root: pathlib.Path) -> set[str]:
  """Modules and what is imported from them; of what a package has from a module of its own, that module as well."""
  names = set()
  for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
    if isinstance(node, ast.ImportFrom):
      origins = _origins(root.joinpath(*(node.module or "").split("."), "__init__.py"))
      names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
      names |= {origins[alias.name] for alias in node.names if alias.name in origins}
    elif isinstance(node, ast.Import):
      names |= {alias.name for alias in node.names}
  return names


@functools.cache
def _origins(package: pathlib.Path) -> dict[str, str]:
  """Which module each name is from that the file of a package imports; none where there is no such file."""
  text = package.read_text(encoding="utf-8") if package.is_file() else ""
  return {alias.name: node.module for node in ast.parse(text).body if isinstance(node, ast.ImportFrom) and node.module
          for alias in node.names}


def run_tests(tests: list[str], root: pathlib.Path, timeout_s: float | None) -> str:
  """`passed`, `noticed` (a test fails or hangs), or `broken`: nothing was run."""
  sys.stdout.flush()
  child = os.fork()
  if child == 0:
    _become_pytest(tests, root)
  deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
  while True:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
      break
    if time.monotonic() > deadline:
      os.killpg(child, signal.SIGKILL)  # the processes that tests have started as well
      os.waitpid(child, 0)
      return "noticed"
    time.sleep(0.02)
  # A module that can no longer be imported stops pytest while it collects (2), or before, where a conftest imports it
  # (4); a signal ends what ends Python.
  code = os.waitstatus_to_exitcode(status)
  return {0: "passed", 1: "noticed", 2: "noticed", 4: "noticed"}.get(code, "noticed" if code < 0 else "broken")


def _become_pytest(tests: list[str], root: pathlib.Path) -> NoReturn:
  """Runs tests in this process, a child of its own process group, and ends it."""
  code = 70  # EX_SOFTWARE of sysexits.h: nothing was run
  try:
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
      os.dup2(nowhere, stream)
    os.chdir(root)
    sys.path[0] = str(root)  # in place of the folder of this file
    sys.argv = ["pytest", *tests]
    import pytest
    code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not gpu", *tests]))
  finally:
    os._exit(code)


def prepare(root: pathlib.Path) -> None:
  """Imports what all tests need, once for all mutants, which are children of this process; nothing of the project."""
  os.environ.pop("PYTHONUNBUFFERED", None)  # with it nobody notices what is never flushed
  os.environ |= {"PYTHONPATH": str(root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1",
                 # What no mutant changes is compiled once: the cache knows programs by their text.
                 "JAX_COMPILATION_CACHE_DIR": str(root.parent / "compiled"), "JAX_PLATFORMS": "cpu"}
  sys.dont_write_bytecode = True
  for name in LIBRARIES if (root / "symformer_jax").is_dir() else ():
    with contextlib.suppress(ImportError):
      importlib.import_module(name)


def copy_tracked(root: pathlib.Path, to: pathlib.Path) -> None:
  """The tracked files of a repository, as they are in the working tree."""
  names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
  for name in filter(None, names.split("\0")):
    if (root / name).is_file():
      (to / name).parent.mkdir(parents=True, exist_ok=True)
      shutil.copyfile(root / name, to / name)


def sample(paths: list[str], num: int, seed: int, root: pathlib.Path) -> list[tuple[pathlib.Path, Mutant]]:
  """`num` mutants of the modules and folders named, every change as likely as any other."""
  files = sorted({file for path in paths
                  for file in ([root / path] if path.endswith(".py") else (root / path).rglob("*.py"))})
  found = [(file.relative_to(root), mutant) for file in files
           for mutant in mutants(file.read_text(encoding="utf-8")) if file.name != "__init__.py"]
  return random.Random(seed).sample(found, min(num, len(found)))


def read_equal(root: pathlib.Path) -> set[str]:
  """The changes that are known to change nothing, each as `name_of` names it."""
  path = root / "tests" / EQUAL
  lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
  return {line for line in lines if line and not line.startswith("#")}


def name_of(path: pathlib.Path, mutant: Mutant, source: str) -> str:
  """A change in one line, the same wherever in its module its line stands."""
  return f"{path}: {_said(mutant)} | {source.splitlines()[mutant.line - 1].strip()}"


def _said(mutant: Mutant) -> str:
  before, after = (" ".join(text.split())[:80] for text in (mutant.before, mutant.after))
  return f"{before} -> {after}"


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("paths", nargs="+", help="modules and folders, such as symformer_jax/selection")
  parser.add_argument("--num", type=int, default=20, help="mutants; each costs a run of its module's tests")
  parser.add_argument("--seed", type=int, default=0, help="which mutants")
  parser.add_argument("--tests", nargs="+", help="test files to ask; by default those of each module")
  given = parser.parse_args()
  with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
    root = pathlib.Path(folder) / "copy"
    copy_tracked(ROOT, root)
    prepare(root)
    return _report(sample(given.paths, given.num, given.seed, root), root, given.tests)


def _report(chosen: list[tuple[pathlib.Path, Mutant]], root: pathlib.Path, asked: list[str] | None = None) -> int:
  """Tries each mutant; 1 where one survived or tests fail without any, 0 otherwise."""
  seconds: dict[str, float] = {}
  counts, equal = {"noticed": 0, "passed": 0, "broken": 0, "equal": 0}, read_equal(root)
  for path, mutant in chosen:
    original, place = (root / path).read_text(encoding="utf-8"), f"{path}:{mutant.line}: {_said(mutant)}"
    if name_of(path, mutant, original) in equal:
      outcome = "equal"
    else:
      try:
        outcome = _ask(asked or tests_of(path, root), path, mutant, root, seconds)
      except _FailsWithoutMutantError as error:
        print(f"tests of {path} fail without a mutant: {error}", file=sys.stderr)
        return 1
    counts[outcome] += 1
    word = "SURVIVED" if outcome == "passed" else outcome
    print(f"{word:8} {place}", flush=True)
  print(f"{counts['noticed']} of {len(chosen) - counts['equal']} noticed")
  return 1 if counts["passed"] or counts["broken"] else 0


class _FailsWithoutMutantError(Exception):
  """A test file that says nothing about a mutant."""


def _ask(
    tests: list[str], path: pathlib.Path, mutant: Mutant, root: pathlib.Path, seconds: dict[str, float]) -> str:
  """What the first test file that does not pass says; `seconds` that each takes without a mutant are filled."""
  original = (root / path).read_text(encoding="utf-8")
  for test in tests:
    if test not in seconds:
      begin = time.monotonic()
      if run_tests([test], root, None) != "passed":
        raise _FailsWithoutMutantError(test)
      seconds[test] = time.monotonic() - begin
    (root / path).write_text(mutant.text, encoding="utf-8")
    outcome = run_tests([test], root, 3 * seconds[test] + PATIENCE_S)
    (root / path).write_text(original, encoding="utf-8")
    if outcome != "passed":
      return outcome
  return "passed"


if __name__ == "__main__":
  sys.exit(main())
