"""Config files of commands: found from any folder, and whatever is wrong with them is one line and exit code 2."""

import os
import pathlib
import subprocess
import sys
import types

import pytest

from symformer_jax import configuration
from symformer_jax.commands import config_flag
from symformer_jax.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]


def test_configs_of_the_installation_are_found_from_any_folder(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  own = str(ROOT / "configs" / "tiny.py")
  assert configuration.find_config("configs/tiny.py") == own
  argv = ["train", "--to=configs/tiny.py", "--config=configs/tiny.py:a", "-config", "configs/tiny.py", "--config=no"]
  assert config_flag.locate(argv) == [*argv[:2], f"--config={own}:a", "-config", own, "--config=no"]
  (tmp_path / "configs").mkdir()
  (tmp_path / "configs" / "tiny.py").touch()
  assert configuration.find_config("configs/tiny.py") == "configs/tiny.py"  # one's own comes first
  for name in ("tiny.py", "../configs/tiny.py", "", "a" * 5000, "configs"):
    with pytest.raises(InputError, match="no config file '.*': expected a Python file with get_config()"):
      configuration.find_config(name)


@pytest.mark.parametrize(("arguments", "message"), [
  (["--config=configs/tiny.py"], "no training data: set config.data.dirs"),
  (["--config=configs/tiny.py", "--config.optimiser.lr=1"],
   "error: --config.optimiser.lr: the config has no key 'optimiser': did you mean 'optimizer'?\n"),
  (["--config=failing.py"], "ZeroDivisionError: division by zero"),
  (["--config=values.py"], "error: flag --config=values.py: ValueError: so many, or more; see --help\n"),
  (["--config=configs/tiny.py", "--workdir=/proc/x"], "error: --workdir: cannot make the folder '/proc/x': "),
  *(pytest.param(*case, marks=pytest.mark.slow) for case in (
    (["--config=missing.py"], "error: no config file 'missing.py': expected a Python file with get_config()"),
    (["--config=configs/no.py:a"], "error: no config file 'configs/no.py': expected a Python file with get_config()"),
    (["--config=configs/tiny.py", "--config.zzz=1"], "error: --config.zzz: the config has no key 'zzz'\n"),
    (["--config=plain.py"], "--config: expected get_config() to return a ConfigDict, got list"),
    (["--config=configs/tiny.py", "--workdir="], "--workdir: expected a value, got nothing"))),
])
def test_training_says_in_one_line_what_is_wrong_with_a_config(tmp_path, arguments, message):
  (tmp_path / "failing.py").write_text("def get_config(): return 1 / 0")
  (tmp_path / "values.py").write_text("def get_config():\n  raise ValueError('so many,\\nor more')")
  (tmp_path / "plain.py").write_text("def get_config(): return [3]")
  done = subprocess.run([sys.executable, "-m", "launch.train", "--workdir=run", *arguments], cwd=tmp_path,
                        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
  assert done.returncode == 2 and done.stderr.count("\n") == 1 and message in done.stderr


@pytest.mark.parametrize(("file", "message"), [
  ("missing.py:tiny", "^no config file 'missing.py': expected"), ("there.py:tiny", "^--config: it went wrong$")])
def test_a_file_that_is_missing_is_said_to_be_and_others_say_what_went_wrong(tmp_path, monkeypatch, file, message):
  from ml_collections import config_flags
  monkeypatch.chdir(tmp_path)
  (tmp_path / "there.py").touch()

  class Flag:
    name = "config"

    @property
    def value(self):
      raise OSError("a paragraph") from RuntimeError("it  went\nwrong")
  monkeypatch.setattr(config_flag, "flags", types.SimpleNamespace(FLAGS={"config": "held"}))
  monkeypatch.setattr(config_flags, "get_config_filename", {"held": file}.__getitem__)
  with pytest.raises(InputError, match=message):
    config_flag.read(Flag())
