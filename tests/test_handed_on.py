"""A function that is given a config hands it on: nothing that it calls falls back to the default one."""

import ast
from collections.abc import Iterator
import pathlib

ROOT = pathlib.Path(__file__).parents[1]
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
           for path in sorted((ROOT / "symformer_jax").rglob("*.py"))}


def configs(function: ast.FunctionDef) -> dict[str, tuple[str, bool]]:
  """The type of each config that a function takes by name, and whether it has a default."""
  places = [*function.args.posonlyargs, *function.args.args]
  defaults = [None] * (len(places) - len(function.args.defaults)) + function.args.defaults
  both = [*zip(places, defaults, strict=True), *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)]
  return {name.arg: (ast.unparse(name.annotation), default is not None) for name, default in both
          if name.annotation is not None and ast.unparse(name.annotation).endswith("Config")}


def called() -> dict[str, ast.FunctionDef]:
  """Functions of modules by their dotted names; of a class what makes one."""
  found = {}
  for module, tree in MODULES.items():
    for node in tree.body:
      if isinstance(node, ast.FunctionDef):
        found[f"{module}.{node.name}"] = node
      elif isinstance(node, ast.ClassDef):
        found |= {f"{module}.{node.name}": part for part in node.body
                  if isinstance(part, ast.FunctionDef) and part.name == "__init__"}
  return found


def calls(module: str) -> Iterator[tuple[dict[str, tuple[str, bool]], str, list[ast.expr], list[ast.keyword]]]:
  """Calls within functions that are given a config: the configs, dotted name, arguments; also those made in part."""
  names = {alias.asname or alias.name: f"{node.module}.{alias.name}"
           for node in ast.walk(MODULES[module]) if isinstance(node, ast.ImportFrom) for alias in node.names}
  for function in ast.walk(MODULES[module]):
    around = configs(function) if isinstance(function, ast.FunctionDef) else {}
    for node in ast.walk(function) if around else ():
      if isinstance(node, ast.Call):
        is_part = isinstance(node.func, ast.Attribute) and node.func.attr == "partial"
        first, *rest = node.args if is_part else [node.func, *node.args]
        begin, _, end = ast.unparse(first).partition(".")
        yield around, names.get(begin, f"{module}.{begin}") + (f".{end}" if end else ""), rest, node.keywords


def test_a_config_is_handed_on():
  functions, num_given, lost = called(), 0, []
  for module in MODULES:
    for around, dotted, arguments, keywords in calls(module):
      if dotted not in functions or any(keyword.arg is None for keyword in keywords):
        continue
      function = functions[dotted]
      places = [each.arg for each in function.args.args if each.arg != "self"]
      given = {*places[: len(arguments)], *(keyword.arg for keyword in keywords)}
      for name, (kind, has_default) in configs(function).items():
        if around.get(name, ("",))[0] == kind and has_default:
          num_given += name in given
          lost += [f"{module}: {dotted} without {name}"] if name not in given else []
  assert num_given > 30 and not lost, (num_given, lost)
