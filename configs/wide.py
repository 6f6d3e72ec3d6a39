"""One network for one to nine variables, for an accelerator: `nine`, from nothing, six times as large.

Beside `nine`: wider, the decoder most (docs/results/studies.md), twice as many rows, a batch eight times as large,
bfloat16, all that the encoder attends to normalised, one sequence length: a step takes over a minute to compile for an
accelerator.
Command: launch/accelerator.sh, which gives it as many steps as its minutes hold.
Cost and result: docs/results/wide.md.
"""

from ml_collections import ConfigDict

from configs import nine


def get_config() -> ConfigDict:
  """Differences from `nine`."""
  config = nine.get_config()
  config.model.encoder.update(
    width=192, num_heads=6, head_dim=32, ff_dim=768, num_layers=3, num_inducing=32, num_seeds=32)
  config.model.decoder.update(width=256, num_heads=8, head_dim=32, ff_dim=1024, num_layers=6)
  config.model.update(norm="full")
  config.points.num_points = 128
  config.data.update(batch_size=1024, blocks_per_group=32, length_buckets=(33,))
  config.optimizer.update(peak=1e-3, warmup_steps=500)
  config.update(
    compute_dtype="bfloat16", on_nonfinite="skip", max_gradient_norm=1000.0, max_skips=50, log_every=100, eval_every=0,
    checkpoint_every=2000, keep_checkpoints=1, init_from="")
  return config
