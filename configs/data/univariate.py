"""The paper's univariate data set (SymFormer, sec. 3.3 and the supplementary tables of probabilities).

python -m data_gen.generate --config=configs/data/univariate.py --out=DIR --equations=1000000 --workers=8 --seed=1
Rates and disk space: docs/results/generation.md.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
  return ConfigDict({
    "name": "univariate",
    "num_variables": 1,
    "max_operators": 10,
    "unary": {
      "pow2": 8.0, "pow3": 6.0, "pow4": 4.0, "pow5": 4.0, "pow6": 3.0, "inv": 8.0, "sqrt": 8.0, "exp": 2.0, "ln": 4.0,
      "sin": 4.0, "cos": 4.0, "tan": 2.0, "cot": 2.0, "asin": 1.0, "acos": 1.0, "atan": 1.0, "acot": 1.0,
    },
    "binary": {"+": 8.0, "-": 5.0, "*": 8.0, "/": 5.0, "pow": 2.0},
    "leaves": {"variable": 20.0, "integer": 10.0, "float": 10.0, "zero": 1.0},
    "simplify": "fast",
  })
