"""What flags of the generator name: its ways to simplify, and the problems kept out unless others are named."""

from pathlib import Path

SIMPLIFIERS = ("simplify", "fast", "rules")
EXCLUDED_PROBLEMS = Path(__file__).parent.parent / "configs" / "data" / "excluded.csv"
