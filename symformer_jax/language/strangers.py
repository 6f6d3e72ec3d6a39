"""Names in a user's formula that would be taken for unknown constants, though the data have something by that name."""

from collections.abc import Mapping, Sequence

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.files import shorten
from symformer_jax.language import parser
from symformer_jax.language.expression import SYMBOL, walk


def refuse(argument: str, text: str, columns: Sequence[str], others: Mapping[str, str]) -> None:
  """Refuses a formula with such a name; of what is no formula nothing is said, as it is said where that is read.

  Args:
    argument: the argument or flag that the formula came from, for the message.
    columns: names that formulas may have.
    others: of names that they may not have, what these are, such as `the target`.
  Raises:
    InputError: naming the first of them, and what it is.
  """
  try:
    node = parser.parse(text, columns, allow_symbols=True, allow_unknowns=True)
  except ExpressionError:
    return
  for part in walk(node):
    if part.token == SYMBOL and part.value in others and part.value not in columns:
      what = others[part.value]
      raise InputError(
        f"{argument}: {shorten(repr(text))}: {part.value!r} is {what}; an unknown constant needs another name")
