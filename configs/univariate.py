"""The paper's univariate model: 95.1 million parameters, 100 points, 390 "epochs" of 977 steps of 1024.

Command: python -m launch.train --config=configs/univariate.py --workdir=DIR --config.data.dirs="('DATA',)"
Cost: 390 million examples at about 45 GFLOP each (the paper: 33 hours on 8 A100).
Result: not trained here. The paper's model: R2 .9995, with local search 1.0000.
"""

import dataclasses

from ml_collections import ConfigDict

from symformer_jax.training.config import TrainConfig


def get_config() -> ConfigDict:
  """Every value as in the paper; see training/config.py for what each means."""
  config = ConfigDict(dataclasses.asdict(TrainConfig()))
  config.data.update(batch_size=1024, blocks_per_group=4)
  config.num_steps = 390 * 977
  return config
