"""What becomes of the user's own formulas: their named constants with errors, and why one is not recommended."""

from collections.abc import Sequence
import math
from typing import NamedTuple

from symformer_jax.engine.config import DEFAULT, SelectionConfig
from symformer_jax.engine.rows import Rows
from symformer_jax.language import parser, printing
from symformer_jax.language.expression import SYMBOL, Node, walk
from symformer_jax.refinement import refine
from symformer_jax.results import Guess
from symformer_jax.selection import rounding, scoring, soundness
from symformer_jax.selection.select import FORBIDDEN, Own, Selection


class Fitted(NamedTuple):
  """A guess as it fits best: its text, the tree in full digits, values and errors of its names (see `Guess`)."""

  text: str
  node: Node
  constants: dict[str, float]
  errors: dict[str, float | None]


def fit(
  text: str, filled: Node, rows: Rows, names: Sequence[str], *, may_fit: bool = True,
  config: SelectionConfig = DEFAULT.selection,
) -> Fitted:
  """Fits the names of a guess, or where it has none its numbers.

  Args:
    text: a formula over columns of these names; other names are constants.
    filled: the same with numbers near the best ones for its names.
    rows: all that the fit is of.
    may_fit: whether constants may be changed; otherwise it is `filled`.
  """
  if not may_fit:
    return Fitted(text, filled, {}, {})
  trees = [parser.parse(text, names, allow_symbols=True, expands=expands) for expands in (False, True)]
  node, start = next(((tree, start) for tree in trees if (start := _start_of(tree, filled))), (filled, None))
  if start is None:
    return Fitted(text, rounding.refit_constants(filled, rows.x, rows.y, rows.weights, config=config), {}, {})
  found = refine.fit_names(node, rows.x, rows.y, rows.weights, [start])
  if found is None:
    return Fitted(text, filled, {}, {})
  errors = {name: error if math.isfinite(error) else None for name, error in found.stderr.items()}
  return Fitted(text, found.node, found.values, errors)


def tell(fits: Sequence[Fitted], chosen: Selection, rows: Rows, names: Sequence[str]) -> tuple[Guess, ...]:
  """What became of each guess; `chosen.own` has its judgement, in the same order."""
  return tuple(_tell(each, own, chosen, rows, names) for each, own in zip(fits, chosen.own, strict=True))


def with_unseen(
  told: Sequence[Guess], asked: Sequence[tuple[str, Node | None]], reason: str
) -> tuple[Guess, ...]:
  """All guesses in their order: those that were told of, and those without a tree, which were not looked at."""
  seen = iter(told)
  return tuple(Guess(text, "", {}, {}, None, None, None, f"not looked at: {reason}") if filled is None else next(seen)
               for text, filled in asked)


def _tell(fitted: Fitted, own: Own, chosen: Selection, rows: Rows, names: Sequence[str]) -> Guess:
  scores = scoring.score(scoring.evaluate(fitted.node, rows.x), rows.y, rows.weights)
  if not math.isfinite(scores.mse):
    return Guess(fitted.text, "", {}, {}, None, None, None, "not defined on all rows")
  return Guess(fitted.text, printing.to_text(own.node, names), fitted.constants, fitted.errors, scores.r2,
               math.sqrt(scores.mse), own.line, _reason(own, chosen))


def _reason(own: Own, chosen: Selection) -> str:
  """Why a guess is not recommended; nothing where it is."""
  if own.fault == FORBIDDEN:
    return "breaks the rules"
  if own.fault:
    return f"rejected ({soundness.REASONS[own.fault]})"
  if own.line is None:
    line = "another formula" if own.better is None else f"line {own.better}"
    return f"{line} is no longer and no less accurate"
  listed = chosen.front[own.line]
  if listed is chosen.best:
    return ""
  if listed.complexity > chosen.best.complexity:
    return "longer than the recommended formula for what it gains"
  return "less accurate than the recommended formula"


def _start_of(node: Node, filled: Node) -> list[float] | None:
  """What the names of a tree are in one with numbers in their place, in the order in which they stand first; None for
  another tree.
  """
  own, other = list(walk(node)), list(walk(filled))
  if len(own) != len(other):
    return None
  found: dict[str, float] = {}
  for part, there in zip(own, other, strict=True):
    if part.token == SYMBOL and there.is_number:
      found.setdefault(part.value, there.value)
    elif part.token != there.token:
      return None
  return list(found.values())
