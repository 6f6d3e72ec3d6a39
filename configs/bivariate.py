"""The paper's bivariate model: `univariate` with two variables, 200 points and 300 "epochs" of 977 steps.

Command: python -m launch.train --config=configs/bivariate.py --workdir=DIR --config.data.dirs="('DATA',)"
Data: python -m data_gen.generate --config=configs/data/bivariate.py --out=DATA --equations=100000000 --seed=1
Cost: 300 million examples; docs/scaling.md has the plan.
Result: not trained here. The paper's model: R2 .9996, with local search 1.0000.
"""

from ml_collections import ConfigDict

from configs import univariate


def get_config() -> ConfigDict:
  """Differences from `univariate`."""
  config = univariate.get_config()
  config.model.vocabulary.num_variables = 2
  config.points.num_points = 200
  config.num_steps = 300 * 977
  return config
