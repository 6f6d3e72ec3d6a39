"""Parts of a formula that say nothing on the rows: at 300 kelvin `exp(-52/((exp(-T**4) + 1)*T))` is `exp(-52/T)`."""

import numpy as np

from symformer_jax.language import expression, operators
from symformer_jax.language.expression import VARIABLE, Node, chain, flatten, number, walk

# A share of a sum that rounds away.
_SILENT = float(np.finfo(np.float64).eps) / 4


@np.errstate(all="ignore")  # what is not finite is left as it is
def without_idle_parts(node: Node, x: np.ndarray, *, share: float = _SILENT) -> Node:
  """The tree without terms that change no digit of a sum, and with a number for what is the same in every row.

  A column that does not vary stays: its name says more than its value.

  Args:
    node: a tree without named constants; x: rows [N, D]; share: of a sum that is nothing, in every row, and of its size
      in which a part is the same in every row.
  Returns:
    A tree with the same values, to the last digit if nothing else is asked, on these rows; elsewhere they may differ.
  """
  return _lean(node, x, np.ptp(x, axis=0) > 0, share)[0] if len(x) else node


def _lean(node: Node, x: np.ndarray, varies: np.ndarray, share: float) -> tuple[Node, np.ndarray]:
  """`(tree, values [N])`."""
  if not node.args:
    return node, expression.evaluate(node, x)
  operands = flatten(node, "+") if node.token == "+" else node.args
  args, values = zip(*(_lean(arg, x, varies, share) for arg in operands), strict=True)
  if node.token == "+":
    own = np.sum(values, axis=0)
    heard = [arg for arg, value in zip(args, values, strict=True) if not np.all(np.abs(value) <= share * np.abs(own))]
    node = chain("+", heard or args)
  else:
    own = np.broadcast_to(operators.BY_NAME[node.token].numpy_fn(*values), x.shape[:1])
    node = node._replace(args=args)
  if np.isfinite(own).all() and np.ptp(own) <= share * np.max(np.abs(own)) and _has_varying(node, varies):
    return number(float(own[0])), own
  return node, own


def _has_varying(node: Node, varies: np.ndarray) -> bool:
  """Whether a part reads a column of more than one value."""
  return any(part.token == VARIABLE and varies[part.value] for part in walk(node))
