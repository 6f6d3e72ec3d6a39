"""The quick model of two variables that ships: `small`, started from the shipped univariate model.

Command: python -m launch.train --config=configs/small_bivariate.py --workdir=DIR --config.data.dirs="('DATA',)"
Cost and result: docs/results/training.md.
"""

from configs import small


def get_config():
  """Differences from `small`."""
  config = small.get_config()
  config.model.vocabulary.num_variables = 2
  config.points.num_points = 96
  config.optimizer.warmup_steps = 200
  config.loss.lambda_start = 1.0
  config.init_from = "univariate"
  return config
