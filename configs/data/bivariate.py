"""The paper's bivariate data set: two equally likely variables, 200 points, else as the univariate one.

python -m data_gen.generate --config=configs/data/bivariate.py --out=DIR --equations=1000000 --workers=8 --seed=1
"""

from ml_collections import ConfigDict

from configs.data import univariate


def get_config() -> ConfigDict:
  config = univariate.get_config()
  config.update({"name": "bivariate", "num_variables": 2, "num_points": 200})
  return config
