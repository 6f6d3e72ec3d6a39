"""The compilation cache: below the user's cache folder, unless told otherwise or impossible."""

import os
import subprocess
import sys

import jax
import pytest

from symformer_jax import compilation


@pytest.fixture
def cache_dir(monkeypatch):
  """What `use_cache` sets, put back afterwards."""
  monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
  saved = {name: getattr(jax.config, name)
           for name in ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")}
  jax.config.update("jax_compilation_cache_dir", None)
  yield lambda: jax.config.jax_compilation_cache_dir
  for name, value in saved.items():
    jax.config.update(name, value)


def test_cache_lies_below_the_users_cache_folder(cache_dir, monkeypatch, tmp_path):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  compilation.use_cache()
  assert cache_dir() == str(tmp_path / "symformer_jax" / f"jax-{jax.__version__}")
  assert (tmp_path / "symformer_jax").is_dir()


def test_the_environment_rules(cache_dir, monkeypatch, tmp_path):
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
  compilation.use_cache()
  assert cache_dir() is None


def test_the_process_and_its_user_rule(cache_dir, monkeypatch, tmp_path):
  """A folder set in JAX's own config stays; `off` leaves none."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  monkeypatch.setenv(compilation.CACHE_VARIABLE, "off")
  compilation.use_cache()
  assert cache_dir() is None
  monkeypatch.delenv(compilation.CACHE_VARIABLE)
  jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
  compilation.use_cache()
  assert cache_dir() == str(tmp_path / "mine")


def test_programs_compiled_before_do_not_keep_later_ones_out(tmp_path):
  """A process that has compiled something writes what its first search compiles all the same."""
  code = ("import jax; jax.jit(lambda x: x + 1)(1.0); from symformer_jax import compilation; compilation.use_cache();"
          "jax.jit(lambda x: x * 2 + 3)(1.0).block_until_ready()")
  env = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
  subprocess.run([sys.executable, "-c", code], env=env | {"XDG_CACHE_HOME": str(tmp_path)}, check=True)
  assert list((tmp_path / "symformer_jax").rglob("*-cache"))


def test_a_disk_without_room_is_no_news(tmp_path):
  code = ("import resource, jax; from symformer_jax import compilation; compilation.use_cache();"
          "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
          "jax.jit(lambda x: x * 2 + 3)(1.0).block_until_ready()")
  env = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
  done = subprocess.run([sys.executable, "-c", code], env=env | {"XDG_CACHE_HOME": str(tmp_path)}, capture_output=True,
                        text=True, check=True)
  [entry] = (tmp_path / "symformer_jax").rglob("*-cache")
  assert done.stderr == "" and entry.stat().st_size == 0


def test_relative_folders_are_ignored(cache_dir, monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("XDG_CACHE_HOME", "cache")
  monkeypatch.setenv("HOME", "home")
  compilation.use_cache()
  assert cache_dir() is None and not list(tmp_path.iterdir())
  monkeypatch.setenv("HOME", str(tmp_path / "home"))
  compilation.use_cache()
  assert cache_dir().startswith(str(tmp_path / "home" / ".cache"))


def test_a_folder_whose_name_jax_does_not_take_is_no_error(cache_dir, monkeypatch, tmp_path):
  monkeypatch.setenv("XDG_CACHE_HOME", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
  compilation.use_cache()
  assert cache_dir() is None


def test_an_unusable_folder_of_jaxs_own_is_no_news(tmp_path):
  code = "import jax; from symformer_jax import compilation; compilation.use_cache(); jax.jit(lambda x: x * 2 + 3)(1.0)"
  env = os.environ | {"JAX_COMPILATION_CACHE_DIR": "/dev/null/x", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
  done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
  assert done.stderr == ""


def test_an_unwritable_folder_is_no_error(cache_dir, monkeypatch, tmp_path):
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
  compilation.use_cache()
  assert cache_dir() is None
