"""Which model answers which task."""

import dataclasses

import pytest

from symformer_jax import testing
from symformer_jax.errors import InputError
from symformer_jax.evaluation import models, suites
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.pretrained import registry


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """Models `base` and `extended` below one folder, as `launch.export` leaves them."""
  for name in ("base", "extended"):
    (tmp_path / name / "export").mkdir(parents=True)
    (tmp_path / name / "export" / registry.CARD).write_text("{}")

  def load(name, num_variables=1):
    proposer = testing.FixedProposer(["x0"])
    proposer.vocab = Vocabulary(1, "base" if "base" in name else "extended")
    proposer.name = name
    return proposer
  monkeypatch.setattr(registry, "load_model", load)
  return tmp_path


def test_a_comparison_of_encodings_asks_each_its_model(folder):
  tasks = suites.make_tasks(suites.SUITES["ablation"], suites.Settings(num_equations=2))
  found = models.open_models(str(folder))
  asked, missing = found.split(tasks)
  assert missing == {"no constants + BFGS": "no model with the encoding 'skeleton'"}
  assert len(asked) == 2 * 6
  assert {(t.encoding, found(t).vocab.encoding) for t in asked} == {("base", "base"), ("extended", "extended")}


def test_other_suites_need_one_model(folder):
  task = suites.make_tasks(suites.SUITES["paper"], suites.Settings())[0]
  with pytest.raises(InputError, match="expected one model for this suite, got .*base.*extended"):
    models.open_models(str(folder))(task)


def test_two_models_of_one_encoding(folder):
  (folder / "base2").mkdir()
  (folder / "base2" / registry.CARD).write_text("{}")
  with pytest.raises(InputError, match="holds two models with the encoding 'base'"):
    models.open_models(str(folder))


def test_the_shipped_model_answers_the_rows_of_its_encoding(folder):
  tasks = suites.make_tasks(suites.SUITES["ablation"], suites.Settings(num_equations=1))
  _, missing = models.open_models("auto").split(tasks)
  assert set(missing) == {"no constants + BFGS", "base", "base + gradient"}


def test_each_model_that_is_asked_is_told_of_once(folder):
  tasks = suites.make_tasks(suites.SUITES["ablation"], suites.Settings(num_equations=2))
  found = models.open_models(str(folder))
  asked, _ = found.split(tasks)
  assert {model.vocab.encoding for model in found.used_by(asked)} == {"base", "extended"}
  assert len(found.used_by(asked)) == 2 and found.used_by([]) == []
  [task, *_] = suites.make_tasks(suites.SUITES["paper"], suites.Settings())
  assert found.used_by([task]) == []  # it has none, which its row says
  peer = dataclasses.replace(asked[0], method=dataclasses.replace(asked[0].method, peer="operon"))
  assert found.used_by([peer]) == []
