"""How the name of a column stands in a formula and in LaTeX, whatever the name.

A Python identifier that is no keyword, function or constant of formulas stands as it is. Any other name stands in
backticks, a backtick in it twice, as in pandas' `eval`: ``2*`girth (in)` + `lambda` ``. `parser` reads both forms.
"""

import functools
import keyword
import re
import unicodedata

from symformer_jax.language import parser


@functools.lru_cache(maxsize=1 << 12)  # asked at every leaf that is printed
def written(name: str) -> str:
  """The name as formulas have it."""
  return name if _is_bare(name) else "`" + name.replace("`", "``") + "`"


def _is_bare(name: str) -> bool:
  # What Python calls an identifier and what the parser reads as a word differ for a few letters (x², é in two signs).
  is_word = name.isidentifier() and re.fullmatch(parser.WORD, name) is not None
  return is_word and not (keyword.iskeyword(name) or name in parser.FUNCTIONS or name in parser.CONSTANTS)


_LATEX_ESCAPES = {
  **{char: f"\\{char}" for char in "_%&#${} "},
  "\\": "\\backslash ", "^": "\\wedge ", "~": "\\sim ", "\u00b0": "{}^{\\circ}", "\u2212": "-",
}
# Greek capitals that look like Latin ones have no command of their own.
_GREEK_CAPITALS = ("GAMMA", "DELTA", "THETA", "LAMDA", "XI", "PI", "SIGMA", "UPSILON", "PHI", "PSI", "OMEGA")
_GREEK_SMALL = (*_GREEK_CAPITALS, "ALPHA", "BETA", "EPSILON", "ZETA", "ETA", "IOTA", "KAPPA", "MU", "NU", "RHO", "TAU",
                "CHI")
# Upright, these would read as a number or a formula.
_LIKE_MATHEMATICS = re.compile(r"[-+*/^=<>]|^[0-9.,]+$")


def latex_name(name: str) -> str:
  """The name in LaTeX: a letter, or one with an index, as mathematics has it, others upright or as code."""
  if len(name) == 1 and name.isalpha():
    return _latex_sign(name)
  if name[:1].isalpha() and re.fullmatch("[0-9]+", name[1:]):
    return f"{_latex_sign(name[0])}_{{{name[1:]}}}"
  style = "mathtt" if _LIKE_MATHEMATICS.search(name) else "mathrm"
  return f"\\{style}{{{''.join(map(_latex_sign, name))}}}"


def _latex_sign(sign: str) -> str:
  """One sign of a name; Greek letters and raised digits by commands, which every engine sets."""
  if sign in _LATEX_ESCAPES:
    return _LATEX_ESCAPES[sign]
  if not sign.isprintable():
    return "\\ "
  if sign.isascii():
    return sign
  digit = unicodedata.normalize("NFKD", sign)
  if digit in "0123456789":
    return f"{{}}{'^' if 'SUPERSCRIPT' in unicodedata.name(sign) else '_'}{{{digit}}}"
  words = unicodedata.name(digit[0], "").split()  # the micro sign is a mu
  if words[:1] == ["GREEK"] and words[2:3] == ["LETTER"] and len(words) == 4:
    letter = words[3].replace("LAMDA", "LAMBDA").lower()
    if words[3] in (_GREEK_SMALL if words[1] == "SMALL" else _GREEK_CAPITALS):
      return f"\\{letter if words[1] == 'SMALL' else letter.capitalize()} "
  return sign
