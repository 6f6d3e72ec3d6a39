"""Ablation of the paper, row "base encoding": one token C that carries the constant's own value, so no tanh.

Command: python -m launch.train --config=configs/ablation_base.py --workdir=DIR --config.data.dirs="('DATA',)"
Cost: as `univariate`. The same comparison at a thousandth of it: configs/ablation_small.py.
Result: not trained here. The paper: R2 .9979, with local search 1.0000.
"""

from ml_collections import ConfigDict

from configs import univariate


def get_config() -> ConfigDict:
  """Differences from `univariate`: the encoding alone; the data files are the same."""
  config = univariate.get_config()
  config.model.vocabulary.encoding = "base"
  return config
