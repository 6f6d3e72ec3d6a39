"""Files of several targets: names that any system takes, and distinct."""

import pytest

from symformer_jax.commands import outputs
from symformer_jax.errors import InputError


def test_a_path_for_each_target():
  assert outputs.paths_of("out/fit.json", ["y"]) == ["out/fit.json"]
  assert outputs.paths_of("out/fit.json", ["a b", "a_b", "../x", "\u03b8", "\u2225"]) == [
    "out/fit-a_b.json", "out/fit-a_b_.json", "out/fit-x.json", "out/fit-\u03b8.json", "out/fit-target.json"]
  assert outputs.paths_of("fit.jsonl", ["a", "b"]) == ["fit.jsonl"] * 2
  assert len(outputs.paths_of("fit.png", ["n" * 999, "m"])[0]) < 100


def test_what_is_there_already_is_not_replaced_unasked(tmp_path):
  (tmp_path / "fit-b.json").write_text("mine")
  path = str(tmp_path / "fit.json")
  outputs.check_new(path, ["a", "c"], may_replace=False)
  outputs.check_new(path, ["a", "b"], may_replace=True)
  with pytest.raises(InputError, match="fit-b.json' exists; --overwrite replaces it"):
    outputs.check_new(path, ["a", "b"], may_replace=False)
  assert (tmp_path / "fit-b.json").read_text() == "mine"
