"""Our family, largest size: `base`, wider and deeper.

Command: python -m launch.train --config=configs/large.py --workdir=DIR --config.data.dirs="('DATA1', 'DATA2', 'DATA3')"
Cost: 173 million parameters, 176 to 192 GFLOP an example (four times `univariate`); docs/scaling.md has the plan.
Result: not trained here.
"""

from ml_collections import ConfigDict

from configs import base


def get_config() -> ConfigDict:
  """Differences from `base`."""
  config = base.get_config()
  config.model.encoder.update(width=768, num_heads=12, ff_dim=3072, num_layers=6)
  config.model.decoder.update(width=768, num_heads=12, ff_dim=3072, num_layers=8)
  config.optimizer.update(peak=3e-4)
  config.update(num_steps=400_000)
  return config
