"""The encodings compared at one size, on equal data and steps: `small`, shorter, once for each encoding.

Command, for each of extended, base and skeleton:
  python -m launch.train --config=configs/ablation_small.py:base --workdir=DIR/base --config.data.dirs="('DATA',)"
Cost: 0.19 million examples each, 11 minutes on one free CPU core.
The base encoding regresses constants of up to 1e10 as they are. Squared, their error (1e14) drowned the symbols as soon
as lambda rose: cross entropy 1.53 at step 200, 2.66 at 550. Its loss grows linearly beyond an error of 1 instead.
Result: docs/results/training.md.
"""

from ml_collections import ConfigDict

from configs import small


def get_config(encoding: str = "extended") -> ConfigDict:
  """Differences from `small`: the encoding and a shorter schedule; seeds and batches are the same for all three."""
  config = small.get_config()
  config.model.vocabulary.encoding = encoding
  if encoding == "base":
    config.loss.huber_delta = 1.0
  config.optimizer.update(warmup_steps=200, decay_steps=500)
  config.update(num_steps=1500)
  return config
