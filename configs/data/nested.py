"""Formulas of the paper's generator in which a function stands inside another: what a search without a network misses.

Of 418 formulas of one variable that the search was asked for five seconds, it missed 70 in 100 of those with two
functions one inside the other, 21 in 100 of those with one and 4 in 100 of the rest (docs/results/training.md).
python -m data_gen.generate --config=configs/data/nested.py --simplify=rules --out=DIR
    --equations=1000000 --workers=8 --seed=1
"""

from ml_collections import ConfigDict

from configs.data import univariate


def get_config() -> ConfigDict:
  """Differences from `univariate`."""
  config = univariate.get_config()
  config.update(name="nested", min_nesting=2)
  return config
