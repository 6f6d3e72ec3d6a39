"""The univariate model that ships: `small` with a decoder of five blocks and wider inner layers.

The one that ships was grown from a trained `small` (training/transfer.py).

Command: python -m launch.train --config=configs/small_univariate.py --workdir=DIR
         --config.data.dirs="('RULES', 'FAST')" --config.data.repeats="(1, 2)"
Cost and result: docs/results/training.md.
"""

from ml_collections import ConfigDict

from configs import small


def get_config() -> ConfigDict:
  """Differences from `small`."""
  config = small.get_config()
  config.model.decoder.update(num_layers=5, ff_dim=768)
  return config
