"""Tokens and their ids, for the extended, base and skeleton encodings.

The order is pad, start, end, binary operators, unary operators, constants, integers, variables: variables
come last, so ids of everything else are the same for any number of variables. With one variable the
extended vocabulary has the paper's 54 tokens.
"""

import dataclasses
import functools
import hashlib
import json

from symformer_jax.language import constants, operators

PAD, START, END = "pad", "start", "end"
PAD_ID, START_ID, END_ID = 0, 1, 2
ENCODINGS = ("extended", "base", "skeleton")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """The token set of a model.

  Attributes:
    num_variables: D, at least 1.
    encoding: `extended` has tokens C-10 ... C10 with a mantissa each (SymFormer, sec. 3.4), `base` one
      token C with the raw value, `skeleton` one token C without a value (the paper's "no constants").
    has_requested: whether operators on request have tokens, the last of all operators; no model's vocabulary does.
  """

  num_variables: int = 1
  encoding: str = "extended"
  has_requested: bool = False

  def __post_init__(self) -> None:
    if self.num_variables < 1:
      raise ValueError(f"a vocabulary needs at least one variable, got {self.num_variables}")
    if self.encoding not in ENCODINGS:
      raise ValueError(f"unknown encoding {self.encoding!r}: expected one of {', '.join(ENCODINGS)}")

  @functools.cached_property
  def tokens(self) -> tuple[str, ...]:
    """All tokens [V], in the order of their ids."""
    binary = [op.name for op in operators.MODEL_OPERATORS if op.arity == 2]
    unary = [op.name for op in operators.MODEL_OPERATORS if op.arity == 1]
    requested = [op.name for op in operators.REQUESTED_OPERATORS if self.has_requested]
    if self.encoding == "extended":
      symbols = [f"C{e}" for e in range(constants.MIN_EXPONENT, constants.MAX_EXPONENT + 1)]
    else:
      symbols = ["C"]
    integers = [str(i) for i in range(constants.MIN_INTEGER, constants.MAX_INTEGER + 1)]
    variables = [f"x{i}" for i in range(self.num_variables)]
    return (PAD, START, END, *binary, *unary, *requested, *symbols, *integers, *variables)

  @functools.cached_property
  def ids(self) -> dict[str, int]:
    """Token to id."""
    return {token: i for i, token in enumerate(self.tokens)}

  @property
  def size(self) -> int:
    """V, the number of tokens."""
    return len(self.tokens)

  @functools.cached_property
  def arity(self) -> tuple[int, ...]:
    """Number of arguments of each token [V]; -1 for pad, start and end."""
    def of(token: str) -> int:
      if token in (PAD, START, END):
        return -1
      return operators.BY_NAME[token].arity if token in operators.BY_NAME else 0
    return tuple(of(token) for token in self.tokens)

  @functools.cached_property
  def is_constant(self) -> tuple[bool, ...]:
    """Whether a token stands for a fitted constant [V]."""
    return tuple(token.startswith("C") for token in self.tokens)

  @functools.cached_property
  def constant_scale(self) -> tuple[float, ...]:
    """Factor from a token's mantissa to its value [V]: 10**c_e for C tokens (1 in `base`), 0 elsewhere."""
    def of(token: str) -> float:
      if not token.startswith("C"):
        return 0.0
      return constants.power_of_ten(int(token[1:])) if token != "C" else 1.0
    return tuple(of(token) for token in self.tokens)

  @functools.cached_property
  def first_constant_id(self) -> int:
    return self.is_constant.index(True)

  @functools.cached_property
  def num_constant_tokens(self) -> int:
    return sum(self.is_constant)

  @functools.cached_property
  def first_variable_id(self) -> int:
    return self.ids["x0"]

  @functools.cached_property
  def zero_id(self) -> int:
    """Id of the integer 0: integer i has id `zero_id + i`."""
    return self.ids["0"]

  @property
  def hash(self) -> str:
    """Short digest of the token list: two models can share weights and data only when it agrees."""
    text = json.dumps([self.encoding, *self.tokens])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
