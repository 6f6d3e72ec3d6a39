"""Generation: rate of the three settings per core, agreement with `expand(simplify(...))`, scaling with workers."""

import dataclasses
from typing import Any

from absl import flags

from configs.data import bivariate, univariate
from data_gen import benchmark, config as config_lib

# Candidates for each setting's rate and scaling, as multiples of --trees: about equal times.
NUM_CANDIDATES = {"simplify": 1, "fast": 4, "rules": 16}
WORKERS = (1, 2)
SEED = 999


def run() -> dict[str, Any]:
  """Figures of both of the paper's data sets; prints a row for each. `--trees` fresh trees give the agreement."""
  num_trees = flags.FLAGS.trees
  results: dict[str, Any] = {"trees": num_trees, "seed": SEED}
  for part in (univariate, bivariate):
    config = config_lib.from_dict(part.get_config().to_dict())
    agreement = benchmark.measure_agreement(config, num_trees, seed=SEED)
    for setting, figures in agreement.items():
      _show(f"{config.name} {setting}", figures)
    scaling = []
    for setting, multiple in NUM_CANDIDATES.items():
      for num_workers in WORKERS:
        own = dataclasses.replace(config, simplify=setting)
        scaling.append({"simplify": setting,
                        **benchmark.measure_scaling(own, num_workers, multiple * num_trees, seed=SEED)})
        _show(config.name, scaling[-1])
    results[config.name] = {"settings": agreement, "scaling": scaling}
  return results


def _show(name: str, figures: dict[str, Any]) -> None:
  values = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
  print(name, " ".join(values), flush=True)
