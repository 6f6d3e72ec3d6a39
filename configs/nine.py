"""One network for one to nine variables, on a few CPU cores: laws (configs/data/laws.py) and the paper's data.

Started from `bivariate`, grown (training/transfer.py): a new network would need the hours that one has had. Beside it
nine variables, the point features `columns`, a deeper decoder, columns that do not matter, values even in their
logarithm, noise in proportion.
Command: python -m launch.train --config=configs/nine.py --workdir=DIR
         --config.data.dirs="('LAWS', 'UNIVARIATE', 'BIVARIATE')" --config.data.repeats="(4, 1, 1)"
Cost and result: docs/results/nine.md.
"""

from ml_collections import ConfigDict

from configs import small


def get_config() -> ConfigDict:
  """Differences from `small`."""
  config = small.get_config()
  config.model.vocabulary.num_variables = 9
  config.model.encoder.update(num_layers=4, features="columns")
  config.model.decoder.update(num_layers=4, ff_dim=768)
  config.points.update(
    min_points=8, log_probability=0.3, proportional_share=0.3, distractor_probability=0.2, max_distractors=2,
    spread_probability=0.15)
  # No end is known beforehand: the rate stays, and nothing waits for the end of the run.
  config.optimizer.update(peak=1e-3, warmup_steps=200, decay_steps=0)
  config.loss.update(lambda_start=1.0, noise_std=0.02)
  config.decoding.every = 0
  config.update(
    num_steps=1_000_000, log_every=20, eval_every=400, checkpoint_every=100, num_eval_batches=16,
    init_from="bivariate")
  return config
