"""The encodings compared at one size, on equal data and steps: `small`, shorter, once for each encoding.

Command, for each of extended, base and skeleton:
  python -m launch.train --config=configs/ablation_small.py:base --workdir=DIR/base --config.data.dirs="('DATA',)"
Cost: 0.26 million examples each, 20 to 25 minutes on one CPU core.
Result: not trained yet.
"""

from configs import small


def get_config(encoding: str = "extended"):
  """Differences from `small`: the encoding and a shorter schedule; seeds and batches are the same for all three."""
  config = small.get_config()
  config.model.vocabulary.encoding = encoding
  config.optimizer.update(warmup_steps=200, decay_steps=600)
  config.update(num_steps=2000)
  return config
