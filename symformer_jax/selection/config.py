"""Numbers that decide which formulas are listed and which is recommended, each with its reason."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class SelectionConfig:
  """What selection goes by.

  Attributes:
    exact: share of y's variance left unexplained below which a formula meets the data exactly: then nothing is vetoed
      and description length alone decides. Data of six digits are met so well by their law, and by nothing else.
    points_between: looked at between neighbouring rows. A pole or a needle is found by a change of sign as well, so
      that few suffice.
    num_segments: pairs of rows between which formulas of several columns are looked at: neighbours, and as many
      pairs drawn at random. Thousands would find rarer faults and cost more than the fit.
    leap: how far beyond the range of y a formula may go between rows, as a multiple of that range. A peak between two
      rows may well be as high again as what was seen; what is more was seen by nobody.
    half_turn: radians that a wave may turn between neighbouring rows. Beyond it a slower wave has the same values on
      evenly spaced rows (Nyquist). Quarterly data of an honest year turn by pi/2.
    odd_nats: further price of a column in an exponent, as in `x**(0.03*z)`, and of a wave of several columns: odds of
      a million to one. One textbook law of 36 has such a wave and none such an exponent; exact data repay the
      price with a digit, a hundred rows with a quarter of the error.
    nats_per_node: price of a node where the error is that of rows not seen, which pays for constants itself. A trained
      model needs 1.3 for a node given the points (docs/design.md, decision 12); from 0.9 to 1.1 the sets of
      docs/results/real.md that may be looked at get the same figures, at 0.5 and 1.5 worse ones.
    num_folds: of cross-validation; five, as Breiman and Spector (1992) recommend.
    max_rows: of cross-validation. Its standard error is then below 5 %, and it takes no longer than the rounding.
    worthwhile_r2: cross-validated R2 from which a formula is preferred to a bare mean: what the trial of the issue
      found to lose nothing.
    noise_share: of data sets of pure noise that may get anything but a constant.
    chance_nats: logarithm of how many formulas are looked at for each node that they are longer. Of noise, pools of 370
      functions and their pairs need 0.5; from 0.5 to 1 the sets that may be looked at lose nothing in R2, and answers
      get shorter (12, 10 and 9 nodes).
    line_share: part of `noise_share` granted to the straight line, the formula that needs no search.
    simple_share, simple_factor: the `simple` line may leave so much of the variance unexplained, or so many times what
      the recommended one leaves: what the eye does not see in a plot.
  """

  exact: float = 1e-12
  points_between: int = 8
  num_segments: int = 256
  leap: float = 1.0
  half_turn: float = math.pi
  odd_nats: float = 14.0
  nats_per_node: float = 1.0
  num_folds: int = 5
  max_rows: int = 1024
  worthwhile_r2: float = 0.1
  noise_share: float = 0.05
  chance_nats: float = 0.75
  line_share: float = 0.02
  simple_share: float = 0.01
  simple_factor: float = 2.0


DEFAULT = SelectionConfig()
