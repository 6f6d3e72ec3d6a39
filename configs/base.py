"""Our family, middle size: three variables or fewer in one model, for an accelerator.

Differs from the paper's: pre-norm, gelu, head size 64 in place of 384, scaled point features (docs/design.md,
decision 7), bfloat16 compute, 10 to 512 points, parts of the box, target noise, new mantissas at every visit.
Command: python -m launch.train --config=configs/base.py --workdir=DIR --config.data.dirs="('DATA1', 'DATA2', 'DATA3')"
Cost: 21 million parameters, 15 to 18 GFLOP an example (a third of `univariate`); docs/scaling.md has the plan.
Result: not trained here.
"""

from ml_collections import ConfigDict

from configs import small


def get_config() -> ConfigDict:
  """Differences from `small`."""
  config = small.get_config()
  config.model.vocabulary.num_variables = 3
  config.model.encoder.update(
    width=256, num_heads=4, head_dim=64, ff_dim=1024, num_layers=4, num_inducing=64, num_seeds=32)
  config.model.decoder.update(width=384, num_heads=6, head_dim=64, ff_dim=1536, num_layers=6)
  config.data.update(batch_size=1024, blocks_per_group=32)
  config.points.update(num_points=512, min_points=10, subset_probability=0.9)
  config.optimizer.update(peak=6e-4, warmup_steps=4000, decay_steps=40_000)
  config.decoding.update(every=20_000, num_equations=256, num_samples=64)
  config.update(
    num_steps=200_000, compute_dtype="bfloat16", log_every=100, eval_every=2000, checkpoint_every=1000)
  return config
