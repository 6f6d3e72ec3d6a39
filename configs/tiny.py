"""A tiny model for rehearsals and tests: every code path of the full one in seconds.

Command: python -m launch.train --config=configs/tiny.py --workdir=/tmp/tiny --config.data.dirs="('DIR',)"
"""

from ml_collections import ConfigDict

from configs import small


def get_config() -> ConfigDict:
  """`small` with fewer and narrower layers and a handful of steps."""
  config = small.get_config()
  config.model.encoder.update(width=16, num_heads=2, head_dim=8, ff_dim=32, num_layers=1, num_inducing=4, num_seeds=4)
  config.model.decoder.update(width=32, num_heads=2, head_dim=16, ff_dim=64, num_layers=1)
  config.points.num_points = 16
  config.data.update(batch_size=64, blocks_per_group=1)
  config.decoding.update(every=10, num_equations=8, num_samples=4)
  config.update(num_steps=20, log_every=5, eval_every=10, checkpoint_every=10, num_eval_batches=1)
  config.optimizer.update(warmup_steps=5, decay_steps=10)
  return config
