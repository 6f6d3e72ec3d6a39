"""What flags of the generator name: its ways to simplify, the problems kept out unless others are named, and those that
`fresh` names.
"""

from pathlib import Path

SIMPLIFIERS = ("simplify", "fast", "rules")
EXCLUDED_PROBLEMS = Path(__file__).parent.parent / "configs" / "data" / "excluded.csv"
_FRESH = Path(__file__).parent.parent / "symformer_jax" / "evaluation" / "fresh_equations" / "symformer_equations"
# By the number of variables.
FRESH_EQUATIONS = {1: _FRESH / "univariate", 2: _FRESH / "bivariate"}
