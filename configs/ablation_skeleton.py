"""Ablation of the paper, row "no constants": one token C without a value; constants are fitted afterwards.

Command: python -m launch.train --config=configs/ablation_skeleton.py --workdir=DIR --config.data.dirs="('DATA',)"
Cost: as `univariate`. The same comparison at a thousandth of it: configs/ablation_small.py.
Result: not trained here. The paper: R2 .9929 after BFGS from random starts.
"""

from ml_collections import ConfigDict

from configs import univariate


def get_config() -> ConfigDict:
  """Differences from `univariate`: the encoding alone; there is no regression loss to weigh or to wait for."""
  config = univariate.get_config()
  config.model.vocabulary.encoding = "skeleton"
  return config
