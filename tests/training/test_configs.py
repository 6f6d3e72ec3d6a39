"""Every config file can be trained; each study changes what it names and nothing else."""

import importlib
import pathlib

import pytest

from configs import studies
from symformer_jax import configuration
from symformer_jax.training import speed
from symformer_jax.training.config import TrainConfig

NAMES = sorted(path.stem for path in pathlib.Path("configs").glob("*.py") if path.stem != "__init__")


def flat(values, prefix=""):
  for name, value in values.items():
    yield from flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]


def build(config):
  return configuration.build(TrainConfig, config.to_dict())


@pytest.mark.parametrize("name", NAMES)
def test_config_files_describe_a_run(name):
  config = importlib.import_module(f"configs.{name}").get_config()
  assert build(config).num_steps == config.num_steps


@pytest.mark.parametrize("name", studies.STUDIES)
def test_a_study_differs_from_the_control_in_what_it_names(name):
  control, study = (dict(flat(configuration.to_dict(build(studies.get_config(n))))) for n in ("control", name))
  changed = {key: value for key, value in study.items() if value != control[key]}
  assert changed == studies.STUDIES[name]


@pytest.mark.parametrize("name", ["wide_encoder", "wide_decoder"])
def test_the_two_shapes_cost_what_the_control_costs(name):
  cost, control = (speed.flops_per_example(build(studies.get_config(n)), 22) for n in (name, "control"))
  assert cost == pytest.approx(control, rel=0.03)
