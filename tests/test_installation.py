"""What setup.cfg says of the project is so: packages, programs, scripts, the version; and programs are found."""

import ast
import configparser
import importlib.util
import os
import pathlib
import pickle
import re
import subprocess
import sys

import pytest

import symformer_jax
from symformer_jax import configuration, installation
from symformer_jax.commands import extras, scripts

ROOT = pathlib.Path(__file__).parents[1]
SETUP = configparser.ConfigParser(interpolation=None)
SETUP.read(ROOT / "setup.cfg")
APPS = "symformer_jax._apps."


def lines(section, option):
  return SETUP[section][option].strip().splitlines()


def test_every_package_is_listed():
  listed = {name.removeprefix(APPS) for name in lines("options", "packages") if not name.startswith("#")}
  there = {".".join(path.parent.relative_to(ROOT).parts)
           for folder in ("symformer_jax", "launch", "data_gen", "configs")
           for path in (ROOT / folder).rglob("__init__.py")}
  assert listed == there


def test_nothing_but_the_package_is_at_the_top_of_a_wheel():
  assert {name.split(".")[0] for name in lines("options", "packages")} == {"symformer_jax"}
  assert dict(line.split(" = ") for line in lines("options", "package_dir")) == {
    APPS + name: name for name in ("configs", "data_gen", "launch")}


def test_scripts_lead_to_commands():
  named = dict(line.split(" = ") for line in lines("options.entry_points", "console_scripts"))
  for target in named.values():
    module, name = target.split(":")
    assert module == scripts.__name__
    [command] = getattr(scripts, name).args
    assert "  runner.run(" in pathlib.Path(importlib.util.find_spec(command).origin).read_text(encoding="utf-8")
  assert {target.split(":")[1] for target in named.values()} == {
    name for name, value in vars(scripts).items() if hasattr(value, "args")}


def test_extras_bring_the_modules_that_commands_ask_for():
  # Beam is larger than all the rest, and for a cluster.
  everything = SETUP["options.extras_require"]["all"].strip("\n").removeprefix("symformer-jax[").rstrip("]")
  assert set(extras.MODULES) - {"beam"} == set(everything.split(","))
  packages = {"orbax": "orbax-checkpoint", "apache_beam": "apache-beam"}
  for extra, modules in extras.MODULES.items():
    brought = {re.match(r"[\w-]+", line).group() for line in lines("options.extras_require", extra)}
    assert {packages.get(module, module) for module in modules} == brought


def test_every_third_party_import_is_declared():
  declared = {re.match(r"[\w-]+", line).group().replace("-", "_").lower()
              for line in [*lines("options", "install_requires"), *lines("options.extras_require", "train"),
                           *lines("options.extras_require", "plot"), *lines("options.extras_require", "xlsx"),
                           *lines("options.extras_require", "torch"), *lines("options.extras_require", "units")]}
  names = {"absl": "absl_py", "google": "protobuf", "orbax": "orbax_checkpoint", "sklearn": "scikit_learn",
           "mpl_toolkits": "matplotlib",
           "tensorboardx": "tensorboardx"}
  own = {"symformer_jax", "launch", "data_gen", "configs"}
  # Of the extras real, baselines, tfds and beam, imported by what is for these alone; and pandas' reader of parquet, of
  # which a table of that kind says how to install it.
  others = {"CoolProp", "apache_beam", "gplearn", "pyarrow", "pyoperon", "pysr", "rils_rols", "tensorflow",
            "tensorflow_datasets"}
  for folder in own:
    for path in (ROOT / folder).rglob("*.py"):
      for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        given = ([a.name for a in node.names] if isinstance(node, ast.Import) else
                 [node.module] if isinstance(node, ast.ImportFrom) else [])
        for name in {dotted.split(".")[0] for dotted in given} - own - others - sys.stdlib_module_names:
          assert names.get(name.lower(), name.lower()) in declared, f"{path}: {name}"


def test_errors_name_an_extra_as_the_readme_does():
  """From a checkout: until it is published, nothing has the package's name to be installed by."""
  assert "pip install '.[" in (ROOT / "README.md").read_text(encoding="utf-8")
  for folder in ("symformer_jax", "launch", "data_gen"):
    for path in (ROOT / folder).rglob("*.py"):
      assert not re.search(r"pip install '?symformer", path.read_text(encoding="utf-8")), path


def test_the_version_stands_in_one_place():
  assert SETUP["metadata"]["version"] == "attr: symformer_jax.__version__"
  heading = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
  assert heading.startswith(symformer_jax.__version__)


def install(folder):
  """The package and one program as a wheel has them."""
  inside = folder / "symformer_jax" / "_apps"
  for name in ("configs", "launch"):
    (inside / name).mkdir(parents=True)
    (inside / name / "__init__.py").touch()
  (inside / "configs" / "mine.py").touch()
  (inside / "launch" / "train.py").write_text("class Thing:\n  def __init__(self, *given):\n    self.given = given\n")
  for name in ("__init__.py", "installation.py", "errors.py", "files.py", "configuration.py"):
    (folder / "symformer_jax" / name).write_bytes((ROOT / "symformer_jax" / name).read_bytes())


def run(folder, code):
  command = [sys.executable, "-S", "-c", code]
  return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=True)


def test_a_wheel_finds_its_apps_and_leaves_other_names_alone(tmp_path):
  install(tmp_path)
  (tmp_path / "launch.py").write_text("theirs = True")
  found = run(tmp_path, "from symformer_jax import configuration; print(configuration.find_config('configs/mine.py'))")
  assert found.stdout.strip() == str(tmp_path / "symformer_jax" / "_apps" / "configs" / "mine.py")
  assert run(tmp_path, "import symformer_jax, launch; print(launch.theirs)").stdout == "True\n"
  ours = run(tmp_path, "from symformer_jax import installation; installation.add_to_path(); import launch.train")
  assert ours.stderr == ""


def test_a_checkout_finds_its_apps():
  assert installation.folder() == ROOT
  assert configuration.find_config(str(ROOT / "configs" / "small.py"))


def test_what_is_sent_to_workers_is_read_where_the_apps_have_no_path_yet(tmp_path):
  install(tmp_path)

  class Sent:
    def __reduce__(self):
      return installation.dump("launch.train", "Thing", 1, "two")

  (tmp_path / "sent").write_bytes(pickle.dumps(Sent()))
  got = run(tmp_path, "import pickle; print(pickle.load(open('sent', 'rb')).given)")
  assert got.stdout == "(1, 'two')\n"


@pytest.mark.parametrize("name", sorted(set(symformer_jax.__all__) - {"__version__"}))
def test_public_names_are_there(name):
  assert getattr(symformer_jax, name) is not None


def test_editors_see_what_is_loaded_when_it_is_used():
  tree = ast.parse((ROOT / "symformer_jax" / "__init__.py").read_text(encoding="utf-8"))
  [block] = [node for node in tree.body if isinstance(node, ast.If)]
  shown = {alias.asname: node.module for node in block.body for alias in node.names}
  assert shown == symformer_jax._PUBLIC
  assert all(alias.asname == alias.name for node in block.body for alias in node.names)


@pytest.mark.parametrize("name", ["launch.py", "configs.py", "data_gen"])
def test_the_script_for_installations_leaves_what_it_did_not_make(name, tmp_path):
  site, programs = tmp_path / "site", tmp_path / "bin"
  site.mkdir()
  programs.mkdir()
  (programs / "python").write_text(f"#!/bin/sh\necho {site}\n")
  (programs / "python").chmod(0o755)
  (site / name).write_text("theirs")
  found = subprocess.run(["bash", ROOT / "tests" / "installed.sh"], env={"PATH": f"{programs}:{os.environ['PATH']}"},
                         capture_output=True, text=True)
  assert found.returncode == 2 and found.stderr.endswith("is there already\n")
  assert [path.name for path in site.iterdir()] == [name] and (site / name).read_text() == "theirs"
