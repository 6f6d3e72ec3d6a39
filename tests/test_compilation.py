"""The compilation cache: below the user's cache folder, unless told otherwise or impossible."""

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


def test_an_unwritable_folder_is_no_error(cache_dir, monkeypatch, tmp_path):
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
  compilation.use_cache()
  assert cache_dir() is None
