"""The mutation tool: what it changes, which tests it asks, what it reports."""

import ast
import pathlib
import subprocess
import sys

import mutation

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = '''"""A docstring with 3 numbers."""
def area(width: int = 2, *, is_square=True) -> float:
  """Another one."""
  if width < 0 or not is_square:
    raise ValueError(f"width {width + 1}")
  return round(width * 1.5, ndigits=3) if width else 0
'''


def test_every_change_is_one_and_of_code_that_decides():
  found = list(mutation.mutants(SOURCE))
  changes = {(m.before, m.after) for m in found}
  assert changes == {
    ("2", "3"), ("True", "False"), ("width < 0 or not is_square", "(width < 0 and (not is_square))"),
    ("width < 0", "(width <= 0)"), ("0", "1"), ("not is_square", "(is_square)"), ("width * 1.5", "(width / 1.5)"),
    ("1.5", "3.0"), ("3", "4"), ("round(width * 1.5, ndigits=3)", "round(width * 1.5)"),
    ("round(width * 1.5, ndigits=3) if width else 0", "(round(width * 1.5, ndigits=3))"),
    ("round(width * 1.5, ndigits=3) if width else 0", "(0)")}
  for mutant in found:
    assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(SOURCE))
    assert SOURCE.splitlines()[mutant.line - 1].count(mutant.before.splitlines()[0])


def test_letters_beyond_ascii_move_nothing():
  [mutant] = mutation.mutants("name = 'größe'; half = 'ü' + name")
  assert mutant.text == "name = 'größe'; half = ('ü' - name)"


def test_what_is_asked_of_a_program_is_no_change():
  [mutant] = mutation.mutants("if __name__ == '__main__':\n  run(3)\n")
  assert (mutant.before, mutant.after) == ("3", "4")
  assert [m.after for m in mutation.mutants("if name == '__main__':\n  run()\n")] == ["(name != '__main__')"]


def parted(module):
  """The quick tests of a module's room, and those after them."""
  found = mutation.tests_of(pathlib.Path(f"symformer_jax/{module}.py"), ROOT)
  quick = [path for path in found if "_units" in path]
  assert found[: len(quick)] == quick  # they come first
  return quick, found[len(quick):]


def test_the_tests_of_a_module():
  assert parted("language/parser")[1] == ["tests/language/test_parser.py"]
  assert mutation.tests_of(pathlib.Path("symformer_jax/nowhere/none.py"), ROOT) == ["tests"]
  quick, own = parted("selection/soundness")
  assert "tests/selection/test_selection_units_judge.py" in quick and own == ["tests/selection/test_soundness.py"]
  # A part of the config that the package alone is asked for.
  assert "tests/engine/test_engine_units_config_limits.py" in parted("engine/config/unknown_functions")[0]
  # What the numbers of the config do in a room is asked in the room of the config.
  assert parted("sources/repairs/remainders") == (
    ["tests/sources/repairs/test_sources_units_repairs.py", "tests/engine/test_engine_units_config_repairs.py"],
    ["tests/sources/repairs/test_remainders.py"])
  # Another room has tests of the same name, of another module.
  assert parted("selection/losses")[1] == ["tests/selection/test_loss_choice.py"]
  # A folder of a room has tests in a folder of the room's.
  assert parted("sources/unknowns/exact_factors")[1] == ["tests/sources/unknowns/test_exact_factors.py"]
  assert parted("engine/gaussian_process") == (
    [f"tests/engine/test_engine_units_{part}.py" for part in ("config_changes", "config_reductions", "surrogates")],
    ["tests/engine/test_gaussian_process.py"])
  # Without one of its name: those of its own room that import it, not the searches that do as well.
  assert parted("language/sympy_trees")[1] == [
    f"tests/language/test_{name}.py" for name in ("canonical", "expression", "names", "operators")]


def test_what_is_said_to_change_nothing_is_there():
  """A line of the list whose change has gone would hide the next one that looks like it."""
  named = mutation.read_equal(ROOT)
  for module in {name.split(":")[0] for name in named}:
    source = (ROOT / module).read_text(encoding="utf-8")
    found = {mutation.name_of(module, mutant, source) for mutant in mutation.mutants(source)}
    assert not {name for name in named if name.startswith(f"{module}:")} - found


def test_checks_of_equal_lengths_are_assertions():
  assert not list(mutation.mutants("for a, b in zip(c, d, strict=True):\n  print(a, b)\n"))
  [mutant] = mutation.mutants("x = 0.0")
  assert mutant.after == "1.0"


def test_survivors_are_listed(tmp_path):
  (tmp_path / "tests").mkdir()
  (tmp_path / "tests" / "mutation.py").write_text(pathlib.Path(mutation.__file__).read_text(encoding="utf-8"))
  (tmp_path / "sign.py").write_text("def sign(x):\n  return x >= 0\n")
  (tmp_path / "tests" / "test_sign.py").write_text(
    "import sign\n\ndef test_sign():\n  assert sign.sign(3) and not sign.sign(-3)\n")
  subprocess.run("git init -q && git add -A", shell=True, cwd=tmp_path, check=True)

  def ask(*flags):
    done = subprocess.run(
      [sys.executable, "tests/mutation.py", "sign.py", *flags], cwd=tmp_path, capture_output=True, text=True)
    return done.returncode, sorted(done.stdout.splitlines())
  assert ask() == (1, ["0 of 2 noticed", "SURVIVED sign.py:2: 0 -> 1", "SURVIVED sign.py:2: x >= 0 -> (x > 0)"])
  with open(tmp_path / "tests" / "test_sign.py", "a") as file:
    file.write("  assert sign.sign(0)\n")
  assert ask() == (0, ["2 of 2 noticed", "noticed  sign.py:2: 0 -> 1", "noticed  sign.py:2: x >= 0 -> (x > 0)"])
  equal = "sign.py: 0 -> 1 | return x >= 0\nsign.py: 0 -> 1 | else\n"
  (tmp_path / "tests" / "equal_mutants.txt").write_text(f"# why\n{equal}")
  subprocess.run("git add -A", shell=True, cwd=tmp_path, check=True)
  assert ask() == (0, ["1 of 1 noticed", "equal    sign.py:2: 0 -> 1", "noticed  sign.py:2: x >= 0 -> (x > 0)"])
  (tmp_path / "tests" / "equal_mutants.txt").unlink()
  (tmp_path / "tests" / "test_else.py").write_text("def test_nothing():\n  pass\n")
  subprocess.run("git add -A", shell=True, cwd=tmp_path, check=True)
  assert ask("--tests", "tests/test_else.py")[1][0] == "0 of 2 noticed"
  # What ends pytest before it collects is noticed as well.
  (tmp_path / "tests" / "conftest.py").write_text("import sign\n\nassert sign.sign(0)\n")
  subprocess.run("git add -A", shell=True, cwd=tmp_path, check=True)
  assert ask("--tests", "tests/test_else.py")[1][0] == "2 of 2 noticed"
  assert (tmp_path / "sign.py").read_text() == "def sign(x):\n  return x >= 0\n"
