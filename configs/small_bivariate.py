"""The quick model of two variables: `small_univariate` with four encoder blocks, started from the univariate model.

A surface is more to read than a curve, and blocks of the encoder cost nothing when candidates are drawn. The model that
ships began from an earlier univariate one and has that one's decoder: three blocks, inner layers of 512; grown to this
one's it gained little.

Command: python -m launch.train --config=configs/small_bivariate.py --workdir=DIR --config.data.dirs="('DATA',)"
Cost and result: docs/results/training.md.
"""

from ml_collections import ConfigDict

from configs import small_univariate


def get_config() -> ConfigDict:
  """Differences from `small_univariate`."""
  config = small_univariate.get_config()
  config.model.vocabulary.num_variables = 2
  config.model.encoder.num_layers = 4
  config.points.num_points = 96
  config.optimizer.warmup_steps = 200
  config.loss.lambda_start = 1.0
  config.init_from = "univariate"
  return config
