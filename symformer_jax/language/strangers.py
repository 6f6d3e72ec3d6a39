"""Names in a user's formula that would be taken for unknown constants, though the data have something by that name, or
none of them is a column's.
"""

from collections.abc import Mapping, Sequence

from symformer_jax.errors import ExpressionError, InputError
from symformer_jax.files import shorten
from symformer_jax.language import parser
from symformer_jax.language.expression import SYMBOL, Node, has_column, walk
from symformer_jax.language.names import written

# Columns that a message names.
MAX_NAMED = 8


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


def refuse_columnless(
  argument: str, text: str, node: Node, columns: Sequence[str], *, may_be_number: bool
) -> None:
  """Refuses a formula without a column, whose best fit is the mean: names of columns are others.

  Args:
    argument: the argument that the formula came from; text: the formula; node: its tree over the columns.
    may_be_number: whether one without any name is meant as it is.
  Raises:
    InputError: naming the columns.
  """
  names = {part.value for part in walk(node) if part.token == SYMBOL}
  if not names and may_be_number or has_column(node):
    return
  there = ", ".join(map(written, columns[:MAX_NAMED])) + (", ..." if len(columns) > MAX_NAMED else "")
  meant = next((column for column in columns if column.lower() in {name.lower() for name in names}), None)
  hint = "" if meant is None else f"; did you mean {meant!r}?"
  raise InputError(f"{argument}: {shorten(repr(text))} has no column of the table: {there}{hint}")
