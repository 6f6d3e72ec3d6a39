"""What a user asks of a search: arguments of `search`, flags of the command and parameters of the estimator."""

from collections.abc import Callable
import dataclasses
import math
import numbers
import sys
from typing import Any

import numpy as np

from symformer_jax.arguments import NO_NUMBERS, check_whole
from symformer_jax.engine.config import DEFAULT, EFFORTS, SearchConfig
from symformer_jax.errors import InputError, show, suggest
from symformer_jax.language.rules import Restrictions
from symformer_jax.language.units import Units
from symformer_jax.refinement import solve

# What is minimized; see `selection.losses`.
LOSSES = ("squared", "relative", "log", "huber", "auto")
# Samples of a data set, and tokens that one may be chosen from: far beyond what a search can use; counts on the device
# have 32 bits.
LARGEST = {"n_samples": 10_000_000, "top_k": 10_000_000}
# What an argument has to be, for a message, and whether a number is that.
_NUMBERS: dict[str, tuple[str, Callable[[Any], bool]]] = {
  "temperature": ("a finite number above 0", lambda value: 0 < value < math.inf),
  "max_time": ("a number of seconds above 0", lambda value: 0 < value <= math.inf and not _is_beyond(value)),
  "accuracy": ("an R2 above 0 and up to 1", lambda value: 0 < value <= 1)}
_OPTIONAL = ("max_time", "accuracy")


def _is_beyond(value: Any) -> bool:
  """Whether a whole number is too large for double precision."""
  return isinstance(value, int) and value > sys.float_info.max


class Recalled(str):
  """A guess that is a line of an earlier fit: it joins the pool, and nobody asks what becomes of it."""


@dataclasses.dataclass(frozen=True)
class SearchOptions:
  """See `inference.search`, which has a keyword argument for each.

  Attributes:
    n_samples: candidates that the model draws for each data set, in all.
    strategy, top_k, temperature: how it draws them.
    refine: how constants are fitted: `lm`, `bfgs`, `gd` or `none`.
    restrictions: the formulas that count.
    max_time: seconds that a search of a data set takes, the choice among what was found included; None for no limit.
    accuracy: R2 at which no further turn is begun; None for none.
    seed: fixes every random choice.
    recombine: whether sources that need no model compete with it.
    guesses: formulas of the user's, in the column names, that join the pool; and `Recalled` ones.
    effort: how much is tried: `quick` leaves sources out, `normal` asks each of them, `thorough` goes on with
      evolution; with `max_time` that goes on till then. See `BudgetConfig`.
    config: what steers the search.
    loss: which errors are to be small: one of `LOSSES`.
    template: a form with unknown functions of columns (`language.templates`); None for any formula.
    units: of columns and target; None where formulas may mix them.
  """

  n_samples: int = 1024
  strategy: str = "top_k"
  top_k: int = 20
  temperature: float = 1.0
  refine: str = "lm"
  restrictions: Restrictions = Restrictions()
  max_time: float | None = None
  accuracy: float | None = None
  seed: int = 0
  recombine: bool = True
  guesses: tuple[str, ...] = ()
  effort: str = "normal"
  config: SearchConfig = DEFAULT
  loss: str = "squared"
  template: str | None = None
  units: Units | None = None

  def __post_init__(self) -> None:
    # Numbers of other libraries are written as the built-in ones: results go into JSON.
    for name, kind, known in (("n_samples", int, np.integer), ("top_k", int, np.integer),
                              ("temperature", float, np.floating | np.integer), ("recombine", bool, np.bool_)):
      if isinstance(getattr(self, name), known) and not isinstance(getattr(self, name), NO_NUMBERS):
        object.__setattr__(self, name, kind(getattr(self, name)))

  @property
  def search_seconds(self) -> float:
    """Seconds after which the search ends, for the choice to end about when `max_time` is over; infinite without."""
    if self.max_time is None:
      return math.inf
    budget = self.config.budget
    return self.max_time - min(budget.choice_share * self.max_time, budget.choice_seconds)

  def check(self) -> None:
    """Refuses what is wrong for any data set: an InputError of one line."""
    for name, largest in LARGEST.items():
      check_whole(name, getattr(self, name), most=largest)
    for name, (expected, is_right) in _NUMBERS.items():
      value = getattr(self, name)
      if value is None and name in _OPTIONAL:
        continue
      if not isinstance(value, numbers.Real) or isinstance(value, NO_NUMBERS) or not is_right(value):
        raise InputError(f"{name}: expected {expected}, got {show(value)}")
    if not isinstance(self.config, SearchConfig):
      raise InputError(f"config: expected a SearchConfig, as load_search_config reads it, got {show(self.config)}")
    if self.loss not in LOSSES:
      raise InputError(f"loss: unknown loss {show(self.loss)}: {suggest(self.loss, LOSSES)}")
    if not isinstance(self.refine, str) or self.refine not in solve.MAX_STEPS:
      raise InputError(f"refine: unknown method {show(self.refine)}, expected one of {', '.join(solve.MAX_STEPS)}")
    if not isinstance(self.recombine, bool | np.bool_):
      raise InputError(f"recombine: expected True or False, got {show(self.recombine)}")
    if not all(isinstance(guess, str) for guess in self.guesses):
      raise InputError(f"guesses: expected formulas as text, got {show(self.guesses)}")
    if self.template is not None and not isinstance(self.template, str):
      raise InputError(f"template: expected a formula as text, got {show(self.template)}")
    if self.template is not None and self.refine == "none":
      raise InputError("template: its constants are fitted, so refine='none' cannot go with it")
    if self.effort not in EFFORTS:
      raise InputError(f"effort: unknown effort {show(self.effort)}: {suggest(self.effort, EFFORTS)}")
    self.restrictions.check()
