"""`nested`, of two variables.

python -m data_gen.generate --config=configs/data/nested_bivariate.py --simplify=rules --out=DIR
    --equations=1000000 --workers=8 --seed=1
"""

from ml_collections import ConfigDict

from configs.data import bivariate


def get_config() -> ConfigDict:
  """Differences from `bivariate`."""
  config = bivariate.get_config()
  config.update(name="nested_bivariate", min_nesting=2)
  return config
