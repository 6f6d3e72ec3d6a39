"""The formulas of an earlier fit as guesses of a later one."""

from collections.abc import Sequence
import dataclasses

from symformer_jax.engine.options import Recalled
from symformer_jax.language import parser, programs
from symformer_jax.language.rules import Restrictions
from symformer_jax.results import Equation


def guesses_of(front: Sequence[Equation], names: Sequence[str], restrictions: Restrictions) -> list[Recalled]:
  """The formulas of a front that count under the rules of the later fit, as text; of a template its function.

  Args:
    names: of the columns, those of the front as well.
    restrictions: of a formula; of the function of a template what they require need not be in it.
  """
  texts = []
  for line in front:
    if line.filled is not None and len(line.filled.functions) > 1:
      continue  # of several unknown functions none is guessed
    text = line.expression if line.filled is None else line.filled.functions[0][1]
    node, rules = parser.parse(text, names), restrictions
    if line.filled is not None:
      rules = dataclasses.replace(rules, required=())
    if rules.for_columns(names)(node) and programs.size(node) <= programs.MAX_TOKENS:
      texts.append(Recalled(text))
  return texts
