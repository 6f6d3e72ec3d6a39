"""The quick model: about a million parameters, for training on a few CPU cores; what ships began as one of these.

Differs from the paper's configuration: pre-norm, gelu, head sizes 16 and 32, AdamW at a constant rate with a linear
end, random subsets and parts of the box, a little target noise, new mantissas at every visit, batches sorted
by length.
Command: python -m launch.train --config=configs/small.py --workdir=DIR --config.data.dirs="('RULES', 'FAST')"
         --config.data.repeats="(1, 2)"
Cost: 336 examples per CPU second with huge pages (docs/results/training_speed.md): 1.2 million in an hour on a core.
Result: docs/results/training.md.
"""

from ml_collections import ConfigDict

from configs import univariate


def get_config() -> ConfigDict:
  """Differences from `univariate`."""
  config = univariate.get_config()
  config.model.update(norm="pre", activation="gelu", dropout=0.0)
  config.model.encoder.update(
    width=64, num_heads=4, head_dim=16, ff_dim=256, num_layers=2, num_inducing=16, num_seeds=16, features="scaled")
  config.model.decoder.update(width=128, num_heads=4, head_dim=32, ff_dim=512, num_layers=3)
  config.data.update(batch_size=128, blocks_per_group=4, length_buckets=(10, 15, 22, 33, 51))
  config.points.update(
    num_points=64, min_points=5, subset_probability=0.3, subbox_probability=0.3, noise_probability=0.2, max_noise=0.1,
    resample_probability=0.3)
  config.optimizer.update(
    schedule="wsd", peak=1.5e-3, warmup_steps=500, decay_steps=2000, weight_decay=0.01, clip_norm=1.0, b2=0.99)
  config.loss.update(label_smoothing=0.0, lambda_delay=200, lambda_end=1.0, noise_std=0.05, update_every=1)
  config.decoding.update(every=2000, num_equations=64, num_samples=16)
  config.update(num_steps=9200, log_every=50, eval_every=500, checkpoint_every=250)
  return config
