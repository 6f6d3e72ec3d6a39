"""The list of what the default run leaves out: each line names a test that is there, and is left out."""

import ast
import collections
import pathlib

TESTS = pathlib.Path(__file__).parent
LINES = [line for line in (TESTS / "thorough.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def test_each_line_stands_once_in_its_place_and_names_a_test_that_is_there():
  assert sorted(set(LINES)) == LINES
  names = collections.defaultdict(set)
  for line in LINES:
    file, _, name = line.partition("::")
    names[file].add(name.partition("[")[0])
  for file, wanted in names.items():
    tree = ast.parse((TESTS.parent / file).read_text(encoding="utf-8"))
    assert wanted <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, file


def test_what_is_listed_is_left_out(request):
  """It stands on the list itself: the default run reaches it only where nobody heeds that."""
  assert "not thorough" not in request.config.option.markexpr
