"""What people bring: laws of one to nine variables, with their ranges, in the units in which a search shows them.

Number of variables, lengths and functions follow the problem lists `feynman` and `laws` (docs/results/nine.md), whose
formulas are kept out by their shape:
python -m data_gen.generate --config=configs/data/laws.py --out=DIR --equations=1000000 --workers=8 --seed=1
    --exclude=configs/data/excluded.csv,LISTS/feynman.csv,LISTS/laws.csv
with LISTS the folder symformer_jax/evaluation/problem_lists.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
  return ConfigDict({
    "name": "laws",
    "kind": "laws",
    "num_variables": 9,
    "num_points": 64,
    "num_tries": 1,
    "simplify": "rules",
    "variables": {"1": 22.0, "2": 20.0, "3": 20.0, "4": 14.0, "5": 9.0, "6": 6.0, "7": 4.0, "8": 3.0, "9": 2.0},
    "repeats": {"0": 50.0, "1": 30.0, "2": 12.0, "3": 6.0, "4": 2.0},
    "exponents": {
      "1": 50.0, "-1": 22.0, "2": 13.0, "-2": 5.0, "1/2": 3.0, "-1/2": 1.5, "3": 2.5, "-3": 1.0, "4": 1.0, "3/2": 0.7,
      "-3/2": 0.3},
    "sum_exponents": {"-1": 45.0, "1/2": 18.0, "-1/2": 12.0, "2": 15.0, "-2": 6.0, "3/2": 2.0, "-3/2": 2.0},
    "functions": {
      "exp": 14.0, "decay": 14.0, "gaussian": 7.0, "saturation": 4.0, "growth": 3.0, "bose": 3.0, "logistic": 3.0,
      "tanh": 2.0, "sin": 14.0, "cos": 14.0, "sin2": 4.0, "tan": 1.5, "ln": 7.0, "sqrt": 5.0, "asin": 1.5, "acos": 0.7,
      "atan": 1.5},
    "forms": {"monomial": 26.0, "product": 30.0, "sum": 24.0, "power": 9.0, "function": 11.0},
    "single_forms": {"monomial": 52.0, "product": 0.0, "sum": 12.0, "power": 12.0, "function": 24.0},
    "small_as_given": 0.1,
    "intervals": {
      "near": 40.0, "decades": 17.0, "from_zero": 12.0, "symmetric": 14.0, "off_centre": 12.0, "negative": 5.0},
  })
