"""A formula as source text of other languages: a function of its columns. Text is written, none is ever run here.

Where a formula is undefined, C, JAX, NumPy and torch give NaN or an infinity, Julia raises a DomainError, and
spreadsheets show an error (or the real root of a negative number, which is not meant). Spreadsheets keep fifteen digits
of a constant; all others get each to the last digit.
"""

from collections.abc import Callable, Sequence
import dataclasses
import json
import keyword
import re
import unicodedata

import numpy as np

from symformer_jax.errors import InputError, show, suggest
from symformer_jax.language import expression
from symformer_jax.language.expression import VARIABLE, Node, number
from symformer_jax.language.printing import Dialect, render

FUNCTION = "formula"
# Longer names are cut; C compares 63 letters, spreadsheets take 255.
MAX_NAME = 60


def _words(text: str) -> frozenset[str]:
  return frozenset(text.split())


_PYTHON_WORDS = frozenset({*keyword.kwlist, "np", "jnp", "torch", "float", FUNCTION})
_FUNCTIONS = _words(f"sqrt exp log sin cos tan asin acos atan pow tanh sinh cosh {FUNCTION}")
# Macros of math.h, whichever the compiler has.
_C_MACROS = re.compile(r"M_[A-Z0-9_]*[A-Z0-9](?:[fl]|f\d+x?)?|(?:FP|MATH)_[A-Z0-9_]*[A-Z0-9]|"
                       r"HUGE_VAL_F\d+X?|SNAN(?:[FL]|F\d+X?)?")
# Keywords of C and C++, and what else is a macro.
_C_WORDS = _FUNCTIONS | _words("""
  fabs fmin fmax
  alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr
  continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto
  if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
  register reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct switch template
  this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
  volatile wchar_t while xor xor_eq NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL HUGE X_TLOSS math_errhandling DOMAIN
  SING OVERFLOW UNDERFLOW PLOSS TLOSS MAXFLOAT linux unix i386""")
_JULIA_WORDS = _FUNCTIONS | _words("""
  abs sign min max
  abstract baremodule begin break catch const continue do else elseif end export false finally for function global if
  import in isa let local macro module mutable primitive public quote return struct true try type using where while
  Inf NaN""")
# As Excel compares them, without regard to case.
_EXCEL_WORDS = _words("true false sqrt exp ln sin cos tan asin acos atan tanh sinh cosh abs sign min max na")
# A1 to XFD1048576, R1C1 and its parts: these are cells.
_CELL = re.compile(r"\$?[A-Za-z]{1,3}\$?[0-9]+|[rR][0-9]*([cC][0-9]*)?|[cC][0-9]*")


@dataclasses.dataclass(frozen=True)
class Language:
  """How a formula becomes a function.

  Attributes:
    dialect: of the formula itself.
    words: names that no column may have; taken: a pattern of more such names, none of which ends in `_`.
    frame: `(names of all columns, names of those that are used, formula, comments) -> text`.
    comment: begins a comment that goes to the end of the line.
    has_unicode: whether names may have letters beyond ASCII.
    has_case: whether `a` and `A` are two names.
  """

  dialect: Dialect
  words: frozenset[str]
  frame: Callable[[Sequence[str], Sequence[str], str, str], str]
  comment: str = "#"
  has_unicode: bool = False
  has_case: bool = True
  taken: re.Pattern[str] | None = None


def _python_frame(
  module: str, alias: str, cast: str, constant: str
) -> Callable[[Sequence[str], Sequence[str], str, str], str]:
  """How Python frames a formula; one that uses no column is `constant` of the first column's shape."""
  def frame(names: Sequence[str], used: Sequence[str], text: str, comments: str) -> str:
    casts = "".join(f"  {name} = {cast.format(name)}\n" for name in used)
    head = f"import {module} as {alias}" if module != alias else f"import {module}"
    if names and not used:
      text = constant.format(names[0], text)
    return f"{head}\n\n\ndef {FUNCTION}({', '.join(names)}):\n{comments}{casts}  return {text}\n"
  return frame


def _c_frame(names: Sequence[str], used: Sequence[str], text: str, comments: str) -> str:
  del used
  arguments = ", ".join(f"double {name}" for name in names)
  return f"#include <math.h>\n\ndouble {FUNCTION}({arguments}) {{\n{comments}  return {text};\n}}\n"


def _julia_frame(names: Sequence[str], used: Sequence[str], text: str, comments: str) -> str:
  del used
  return f"function {FUNCTION}({', '.join(names)})\n{comments}  return {text}\nend\n"


LANGUAGES: dict[str, Language] = {
  # Columns of whole numbers would refuse negative powers and overflow.
  "numpy": Language(Dialect("python", "np.", "np.nan", "np.inf"), _PYTHON_WORDS,
                    _python_frame("numpy", "np", "np.asarray({}, float)", "np.full(np.shape({}), {}, float)"),
                    has_unicode=True),
  "jax": Language(Dialect("python", "jnp.", "jnp.nan", "jnp.inf", end_of_whole_numbers=2**31),
                  _PYTHON_WORDS, _python_frame("jax.numpy", "jnp", "jnp.asarray({}, float)",
                                                "jnp.full(jnp.shape({}), {}, float)"), has_unicode=True),
  "torch": Language(Dialect("python", "torch.", "torch.nan", "torch.inf"), _PYTHON_WORDS,
                    _python_frame("torch", "torch", "torch.as_tensor({})*1.0",
                                  "torch.full_like(torch.as_tensor({})*1.0, {})"), has_unicode=True),
  "c": Language(Dialect("c", nan="NAN", infinity="INFINITY", has_whole_numbers=False, has_power_sign=False), _C_WORDS,
                _c_frame, comment="//", taken=_C_MACROS),
  "julia": Language(Dialect("julia", nan="NaN", infinity="Inf", has_whole_numbers=False), _JULIA_WORDS, _julia_frame),
  "excel": Language(Dialect("excel", nan="NA()", infinity="(1/0)", is_minus_tight=True), _EXCEL_WORDS,
                    lambda names, used, text, comments: f"={text}", has_case=False),
}


def write(node: Node, names: Sequence[str], language: str, *, cells: Sequence[str] | None = None) -> str:
  """The formula as text of a language: a function `formula` of all columns in their order, or a spreadsheet's formula.

  Columns whose names the language does not take are renamed (see `safe_names`); a comment says so, but not in a
  spreadsheet's formula, which has none.
  Args:
    node: a tree without symbols.
    names: of the columns; any text.
    language: one of `LANGUAGES`.
    cells: for `excel`, what stands for each column, such as `["A2", "B2"]`; by default its name, which the user
      defines in the spreadsheet.
  Raises:
    InputError: for an unknown language, or cells that are none.
  """
  if not isinstance(language, str) or language not in LANGUAGES:
    raise InputError(f"unknown language {show(language)}: {suggest(language, LANGUAGES)}")
  spec, safe = LANGUAGES[language], safe_names(names, language)
  if cells is not None:
    safe = _check_cells(cells, len(names), language)
  used = sorted({n.value for n in expression.walk(node) if n.token == VARIABLE})
  # As JSON a name is one line of ASCII in quotes, whatever it holds.
  comments = "".join(f"  {spec.comment} {safe[i]}: the column {json.dumps(names[i])}\n"
                     for i in range(len(names)) if safe[i] != names[i])
  return spec.frame(safe, [safe[i] for i in used], render(_fold(node), safe, spec.dialect), comments)


def safe_names(names: Sequence[str], language: str) -> tuple[str, ...]:
  """Names that a language takes for variables, all different; those it takes as they are stay.

  In the others accents are dropped, runs of what is no letter or digit become `_`, a name that begins with neither a
  letter nor (in Python) `_` gets an `x` in front, and one that is taken or means something there gets `_` at its end.
  """
  spec = LANGUAGES[language]

  def key(name: str) -> str:
    return name if spec.has_case else name.lower()

  kept: dict[str, int] = {}
  for i, name in enumerate(names):
    if len(name) <= MAX_NAME and _is_safe(name, spec) and key(name) not in kept:
      kept[key(name)] = i
  safe = []
  for i, name in enumerate(names):
    new = name
    if kept.get(key(name)) != i:
      new = _simplified(name)
      while key(new) in kept or not _is_safe(new, spec):
        new += "_"
      kept[key(new)] = i
    safe.append(new)
  return tuple(safe)


def _simplified(name: str) -> str:
  plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
  text = re.sub(r"\W+", "_", plain, flags=re.ASCII).strip("_")[:MAX_NAME]
  return text if text[:1].isalpha() else f"x{text}"


def _is_safe(name: str, spec: Language) -> bool:
  """Whether a language takes a name as it is."""
  if name in spec.words or spec.taken and spec.taken.fullmatch(name):
    return False
  if spec.has_unicode:  # Python takes names for equal that are so under NFKC
    return name.isidentifier() and unicodedata.normalize("NFKC", name) == name
  if not spec.has_case and (name.lower() in spec.words or _CELL.fullmatch(name)):
    return False
  return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None


def _check_cells(cells: Sequence[str], num_columns: int, language: str) -> tuple[str, ...]:
  if language != "excel":
    raise InputError(f"cells: only the language 'excel' has them, got {show(language)}")
  if isinstance(cells, str) or len(cells) != num_columns:
    raise InputError(f"cells: expected {num_columns}, one for each column, got {show(cells)}")
  for cell in cells:
    if not re.fullmatch(r"\$?[A-Za-z]{1,3}\$?[1-9][0-9]*", str(cell)):
      raise InputError(f"cells: expected references such as 'A2' or '$B2', got {show(cell)}")
  return tuple(cells)


def _fold(node: Node) -> Node:
  """The tree with parts that have no variable as numbers: torch has no functions of plain numbers, and so on."""
  if not node.args:
    return node
  node = node._replace(args=tuple(map(_fold, node.args)))
  if all(arg.is_number for arg in node.args):
    return number(float(expression.evaluate(node, np.zeros((1, 1)))[0]))
  return node
