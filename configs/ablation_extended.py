"""Ablation of the paper, row "extended encoding": the univariate model itself, tokens C-10 ... C10 with mantissas.

Command: python -m launch.train --config=configs/ablation_extended.py --workdir=DIR --config.data.dirs="('DATA',)"
Cost: as `univariate`. The same comparison at a thousandth of it: configs/ablation_small.py.
Result: not trained here. The paper: R2 .9995, with local search 1.0000.
"""

from ml_collections import ConfigDict

from configs import univariate


def get_config() -> ConfigDict:
  """`univariate`, under the name of its row."""
  config = univariate.get_config()
  config.model.vocabulary.encoding = "extended"
  return config
