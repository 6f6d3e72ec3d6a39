"""What of the pool is listed, which line is recommended, and under which loss."""

import dataclasses
import math

from symformer_jax.engine.config.loop import PoolConfig
from symformer_jax.engine.config.names import FUNCTIONS, REWRITINGS, SOURCES, check_counts, check_names
from symformer_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class SelectionConfig:
  """From finalists to the front: how long a formula may be for what it explains, and how round its constants."""

  # Rows on which finalists are compared; all rows score.
  max_rows: int = 4096
  # Rows that give what is listed its last digits and its standard errors: all of a million, some seconds a formula.
  last_rows: int = 1_000_000
  # Of a table of more columns than these, those that no formula reads are left out: thousands of points between rows
  # are looked at, and 20 000 columns took 4.8 GB.
  max_columns: int = 64
  # Ways to rewrite a formula that are taken one after the other: `0.3*sqrt(x**2) + sin(x + 1.97)` needs two.
  max_rewritten: int = 3
  # So many of the shortest descriptions are written in other ways, and the formulas that no simpler one beats.
  num_rewritten: int = 6
  rewrites_front: bool = True
  # Where no more than so many seconds were given, and are over, see `hurried`: of the 5.5 CPU seconds that a choice
  # among long formulas took one to two are left.
  short_time: float = 30.0
  num_rewritten_late: int = 1
  num_chosen_late: int = 8
  # Refitting what is listed on a million rows, and its standard errors, took five CPU seconds; a fit to 65 536 leaves
  # constants some 1/256 of what the noise of one row would.
  last_rows_late: int = 65_536
  # Nats to name one node. A uniform choice among the about 25 kinds would cost log 25 = 3.2; formulas are more regular:
  # a trained model needs 1.3 given the points (docs/design.md, decision 12). Higher prefers shorter formulas.
  nats_per_node: float = 2.0
  # Kurtosis of the errors above which they are not normal; mean squared errors that are nearly the least, as a multiple
  # of it.
  normal_kurtosis: float = 5.0
  nearly: float = 1.5
  # A longer formula must fit better by this share: less is within what rounding constants costs.
  min_gain: float = 0.01
  # Nats by which a formula more complex than the recommended one may describe the data worse: at odds of three million
  # to one it fits the noise.
  max_excess: float = 15.0
  # Formulas that get a variant with simple constants, and that are judged on all rows: each costs some milliseconds.
  num_chosen: int = 24
  # Other ways to write a formula, each tried, see `select.REWRITINGS`.
  rewritings: tuple[str, ...] = REWRITINGS
  # A whole or half number is offered in place of a constant within so many standard errors: under a true simple value
  # 1 fit in 80 is further away. Real data are seldom as well-behaved as a standard error supposes (six planets of
  # Kepler's: `0.998851*axis**1.50032`), so values that make a formula a simpler one, a factor of 1, 0, an exponent, are
  # offered within the second, and description length decides. With all values offered so, on forty rows
  # `3.75*exp(-0.573*x) + 2` took the place of 1.94 +- 0.02, and what was then listed as nearer to the rows was no law.
  snap_errors: tuple[float, ...] = (2.5, 6.0)
  # ... and no further than where it is likelier than any other value, at these odds for a constant to be a whole or
  # half number before anything is known: one in three. With 2.5 errors alone a slope of .451 +- .025 came as 0.5.
  snap_odds: float = 0.5
  # The reach must stay below this share of the distance between simple values: near one by chance is no finding.
  snap_share: float = 0.25
  # Digits are dropped within this share of a standard error: the squared error then rises by at most
  # 0.01 sigma^2 a constant, a hundredth of what one data point contributes.
  digit_errors: float = 0.1
  # A fit below the resolution of float32 has no residual to speak of: the whole standard error, which then stands for
  # that resolution, is room.
  exact_digit_errors: float = 1.0
  # A constant is redundant where the squared error rises by less than this share of sigma^2 without it.
  redundant_share: float = 1e-3
  # A formula that leaves a smaller share of y's variance meets the data to double precision: then it is not taken for
  # a simpler one that is only as near as single precision.
  met: float = PoolConfig.met
  # Terms that are a smaller share of their sums in every row, and what varies by less, are tried without, constants
  # fitted again: `2.2/(23.5*cos(1e-08*x - 0.3)*exp(-1.3*x) + 1)`, where the wave may take some of the exponential.
  idle: tuple[float, ...] = (1e-6, 1e-3)
  # ... unless the values change by more than this share of their spread before that.
  idle_change: float = 0.01
  # A function that a line meets on the rows to this share of its variance is tried as that line:
  # `100*sin(0.03*x)*sqrt(y)` for `3*x*sqrt(y)`.
  straight: float = 0.01
  # Gauss-Newton steps of the constants left free when another is held: the start is nearly the optimum.
  num_refits: int = 3
  # A constant of an exact formula is a decimal of so many digits at most where it agrees with one to this share, and to
  # this share of the last digit's place, which one in ten thousand does by chance.
  decimal_digits: int = 8
  decimal_share: float = 1e-9
  decimal_chance: float = 1e-4

  def __post_init__(self) -> None:
    check_counts(self, "num_rewritten_late", "num_chosen_late", "last_rows_late")
    check_names("rewritings", self.rewritings, REWRITINGS)

  def hurried(self) -> "SelectionConfig":
    """The same for a choice for which there is little time: of few formulas, few written otherwise, on fewer rows."""
    return dataclasses.replace(
      self, num_chosen=self.num_chosen_late, num_rewritten=self.num_rewritten_late, max_rewritten=1,
      rewrites_front=False, last_rows=min(self.last_rows, self.last_rows_late))

  def without_absolutes(self) -> "SelectionConfig":
    """The same where nobody has asked for abs: no search makes formulas with it unasked."""
    return dataclasses.replace(self, rewritings=tuple(name for name in self.rewritings if name != "absolutes"))


@dataclasses.dataclass(frozen=True)
class ChoiceConfig:
  """Which formulas may be listed, and which is recommended where none meets the data exactly.

  Attributes:
    exact: share of y's variance left unexplained below which a formula meets the data exactly: then nothing is vetoed
      and description length alone decides. Data of six digits are met so well by their law, and by nothing else.
    points_between: looked at between neighbouring rows. A pole or a needle is found by a change of sign as well, so
      that few suffice.
    num_segments: pairs of rows between which formulas of several columns are looked at: neighbours, and as many
      pairs drawn at random. Thousands would find rarer faults and cost more than the fit.
    max_neighbours: rows of several columns among which neighbours are looked for, drawn by chance where there are more:
      among a million the look takes four seconds.
    num_box_points: drawn in the box of several columns, besides its corners, to see whether a formula has a pole or no
      value where no row is. What a thousand points miss fills less than half a hundredth of the box.
    leap: how far beyond the range of y a formula may go between rows, as a multiple of that range. A peak between two
      rows may well be as high again as what was seen; what is more was seen by nobody.
    box_leap: the same anywhere in the box of several columns, as an oddity (`odd_nats`): corners are far from all rows,
      and a product of columns may well be some times as large there; `exp(0.015*x - 21*z)` was 1e10 times. At 3 a
      product of three reciprocals is odd, at 30 half of what 10 finds of forty drawn tables is not
      (docs/results/real.md).
    level: where the smallest size of a denominator at the points of a segment is a larger share of the largest, and its
      sign the same, a zero between them would be narrower than their distance: as good as none.
    hugging, low_power: a sum that cancels on a row to the first share of its terms hugs the row: its logarithm, its
      inverse and its powers below the second exponent are needles there, which constants of a few digits do not even
      hit.
    pole_errors, pole_share: a pole is predicted where the rows beside it, left out of the fit, are met within so many
      root mean square errors of the others, or this share of their distance from the median; pole_misses: share of
      them that may be missed by more, by twice as much at most: of a hundred normal errors one in four times is.
    pole_rows: ... and is seen where so many rows, one of them beside it, would be missed by more if the part of the
      formula that has it did not rise there: one alone may be an outlier.
    even_steps: steps of a column that differ by less than this share of their mean are even (dates as 1959.083 have
      three digits): its rows are a series, and its waves have slower ones of the same values.
    half_turn: radians that a wave may turn between neighbouring rows. Beyond it a slower wave has the same values on
      evenly spaced rows (Nyquist). Quarterly data of an honest year turn by pi/2.
    phase_edges: of several columns what a phase goes through over its other rows counts, without this share of the
      lowest and of the highest: beside a pole of its argument a wave turns any number of times.
    wave_rows: phases that a wave has to have in the rows, and beyond a step of more than half a turn at either end, not
      to be odd: `cos(code)` meets the means of three codes, and `sin(sales)` the two largest of 43 states, which lie
      five turns from the others.
    angle_turns: turns from 0 within which the phase of a wave has to lie for a frequency that was not fitted to be a
      law's own where rows see less than a period: `sin(silicon)` of 70 to 75 percent is not that of an angle.
    largest_exponent, largest_uneven: exponents beyond are extreme, the second for those that are no whole or half
      numbers: laws go to 12, of the repulsion in Lennard-Jones' potential, and to 4.87, of losses in pipes;
      `2e-47*exp(-4*age)*age**62` is any bell, `6e22*year**(-6.7)` any line.
    odd_nats: further price of a column in an exponent, as in `x**(0.03*z)`, of an extreme exponent, of a wave of
      several columns, of one whose phase is not linear as in `cos(exp(x))`, of one of which the rows see less than a
      period, its frequency fitted (any bend is an arc of such), or next to nothing, and of a pole between rows that the
      rows tell of, or in a corner of their box: odds of a million to one. One textbook law of 36 has such a wave and
      none such an exponent; exact data repay the price with a digit, a hundred rows with a quarter of the error.
    odd_gain: factor by which each of these must lessen the squared error of rows not seen besides, or three thousand
      rows have `cos(4200*x/(y*z))` for three thousandths of the variance. Of smooth data nats pay for any oddity: of 64
      real tables four answers have one at 1.5, one at 2, and none at 3, which costs two of them much of their R2.
    nats_per_node: price of a node where the error is that of rows not seen, which pays for constants itself. A trained
      model needs 1.3 for a node given the points (docs/design.md, decision 12); from 0.9 to 1.1 the sets of
      docs/results/real.md that may be looked at get the same figures, at 0.5 and 1.5 worse ones.
    function_nats: further price of functions that formulas seldom have: by how much the logarithm of their share of all
      functions is below that of the exponential, which is common, in the mean of the share in 119 laws (lists `feynman`
      and `laws`, where all but the arcsine occur in none, counted as half) and of that in the paper's generator.
    nested_nats: further price of a function inside another one, as in `exp(-arctan(0.4*x))`, which on forty rows is as
      near as an exponential beside a constant: of 55 functions in lists `feynman` and `laws` one is nested, of 309 in
      publications (docs/results) 51, most of them squares of logarithms in an exponential; counted as one in ten.
    frequency_nats: further price of a wave, for each unit of the logarithm of how many frequencies and phases could be
      told from its own (`frequencies.log_frequencies`). At 1 one of 245 real tables gets another formula; at 2 six do
      (docs/results/real.md): waves of horse power, of the wind's speed, of a logarithm of solubility give way to what
      one would sign, three series lose a wave, and the mean R2 stays.
    vague_errors, vague_nats: further price of a constant that is no more than so many standard errors from 0, alone or
      because others make up for it: a sum without such a term loses two nats, and a form in which several are such,
      `30*(exp(-11.3*x) + 2.7e-22)**(-0.005) - 30`, shows a limit of itself. 0.05 +- 0.04 beside a logistic is one.
    num_folds: of cross-validation; five, as Breiman and Spector (1992) recommend.
    blocks_per_fold: of a series, whose neighbours may err alike. With one block a fold the first fifth of
      `5.6*exp(-0.83*x) + 1.9` on 40 rows was extrapolated from the others, with six times the error of interpolation,
      and `exp(24*exp(-0.035*x) - 22.3) + 1.9` was recommended.
    max_rows: of cross-validation. Its standard error is then below 5 %, and it takes no longer than the rounding.
    worthwhile_r2: cross-validated R2 from which a formula is preferred to a bare mean: what a trial with 91 data
      sets found to lose nothing.
    sign_errors: standard errors by which the share of unseen rows that a formula predicts better than the mean must be
      above a half, where mean squares prefer the mean: four leave one chance in thirty thousand (the sign test).
    line_room: share of the variance by which a formula may predict rows not seen worse than a straight line of all
      columns or of some: an eighth of what `evaluation/real_faults.py` counts as a fault. At twice and four times as
      much one and two more of forty drawn tables had one, at none a formula got longer (docs/results/real.md).
    rows_per_coefficient: of a straight line that may take the place of a formula which does not predict clearly better:
      ten, as of any regression (Harrell, Regression Modeling Strategies, 2015, 4.4). Of 117 tables that may be looked
      at five of fewer rows got a line for it that predicts worse, one a better one.
    noise_share: of data sets of pure noise that may get anything but a constant.
    chance_nats: logarithm of how many formulas are looked at for each node that they are longer. Of noise, pools of 370
      functions and their pairs need 0.5; from 0.5 to 1 the sets that may be looked at lose nothing in R2, and answers
      get shorter (12, 10 and 9 nodes).
    further_nats: the same where the simpler formula is one already: a term is added to it out of ten thousand columns
      with inner constants of their own, under eight functions of y. At 0.75 one law in five under 3 % noise got a wave
      besides; at 2 a second column that matters was left out of one real table in eight (docs/results/real.md).
    line_share: part of `noise_share` granted to the straight line, the formula that needs no search.
    simple_share, simple_factor: the `simple` line may leave so much of the variance unexplained, or so many times what
      the recommended one leaves: what the eye does not see in a plot.
  """

  exact: float = 1e-12
  points_between: int = 8
  num_segments: int = 256
  max_neighbours: int = 65_536
  num_box_points: int = 1000
  leap: float = 1.0
  box_leap: float = 10.0
  level: float = 0.25
  hugging: float = 1e-6
  low_power: float = 0.25
  pole_errors: float = 3.0
  pole_share: float = 0.1
  pole_misses: float = 0.05
  pole_rows: int = 2
  even_steps: float = 0.01
  half_turn: float = math.pi
  phase_edges: float = 0.1
  wave_rows: int = 4
  angle_turns: float = 2.0
  largest_exponent: float = 12.0
  largest_uneven: float = 5.0
  odd_nats: float = 14.0
  odd_gain: float = 2.0
  nats_per_node: float = 1.0
  function_nats: tuple[tuple[str, float], ...] = (
    ("tan", 1.6), ("cot", 1.6), ("asin", 1.8), ("acos", 2.2), ("atan", 2.2), ("acot", 2.2))
  nested_nats: float = 2.3
  frequency_nats: float = 2.0
  vague_errors: float = 2.0
  vague_nats: float = 3.0
  num_folds: int = 5
  blocks_per_fold: int = 4
  max_rows: int = 1024
  worthwhile_r2: float = 0.1
  sign_errors: float = 4.0
  line_room: float = 0.0025
  rows_per_coefficient: int = 10
  noise_share: float = 0.05
  chance_nats: float = 0.75
  further_nats: float = 1.25
  line_share: float = 0.02
  simple_share: float = 0.01
  simple_factor: float = 2.0

  def __post_init__(self) -> None:
    check_names("function_nats", [name for name, _ in self.function_nats], FUNCTIONS)
    if not 0 <= self.phase_edges < 0.5:
      raise InputError(f"phase_edges: expected a share of at least 0, below a half, got {self.phase_edges}")


@dataclasses.dataclass(frozen=True)
class LossConfig:
  """How losses other than squares become weights of rows (`selection.losses`).

  Attributes:
    sources: of the first look that log, huber and auto take: those that need no model and take a second or two.
    max_looks: first looks at most: where y spans a decade, `auto` takes a second one under 1/y**2, or may miss the law;
      `huber` looks again, under what the look before has made of the rows, while that look was misled.
    misled: a look was, where squared errors under its weights are so many times those under the weights it has found:
      of normal errors Huber's take a sixth.
    huber_neighbours: rows beside each whose median tells, before any formula, which rows are far off: six, so that
      with a fifth of them wrong seldom half are.
    huber_freedom: degrees of freedom of Student's distribution, by which formulas are compared where a few errors are
      gross: two still have a scale that a fifth of such errors does not double; num_scale_turns: for that scale.
    num_fitted: formulas of a first look, the shortest descriptions, that are fitted under the weights they give.
    num_turns: fits of a formula, each under the weights of the one before; a dozen leave constants to four digits.
    nats_per_node: price of a node of the formula that weights are found around, as `SelectionConfig.nats_per_node`.
    log_reach: factor between formula and y beyond which the logarithm is cut: what is as far from y says nothing of
      small errors, and a row of the wrong sign must not weigh without bound.
    huber_errors: robust standard errors from which on errors count less: 95 % of the efficiency of least squares where
      errors are normal (Huber 1964); huber_gross: from which on an error adds no more, whatever its size.
    min_rows: fewer do not tell how errors grow, nor what neighbours have in common; max_growth: largest exponent of |y|
      that is looked at.
    growth_nats: evidence that errors grow at all: odds of twenty to one; simple_nats: what an exponent of 1 or 1/2 may
      be less likely than the best one and be taken for it.
    smallest_share: share of the rows whose |y| counts as larger than it is: where y passes 0, errors do not vanish.
    look_share: of `max_time` that the first look takes at most: it seldom needs two seconds.
  """

  sources: tuple[str, ...] = ("closed_forms", "guesses", "library")
  max_looks: int = 4
  misled: float = 2.0
  huber_neighbours: int = 6
  huber_freedom: float = 2.0
  num_scale_turns: int = 30
  num_fitted: int = 8
  num_turns: int = 12
  nats_per_node: float = 2.0
  log_reach: float = 30.0
  huber_errors: float = 1.345
  huber_gross: float = 3.0
  min_rows: int = 20
  max_growth: float = 2.0
  growth_nats: float = 3.0
  simple_nats: float = 1.0
  smallest_share: float = 0.05
  look_share: float = 0.3

  def __post_init__(self) -> None:
    check_counts(self, "max_looks", "huber_neighbours", "num_scale_turns", "num_fitted", "num_turns", "min_rows")
    check_names("sources", self.sources, SOURCES)


@dataclasses.dataclass(frozen=True)
class HintsConfig:
  """When residuals of a fit by plain squares are taken to ask for another loss (`selection.residuals`).

  Of 200 tables of twelve laws of one and two columns with 20 to 200 rows and normal errors of 0.3 to 50 % of y's
  spread, searched for 1.2 s each, one got a hint, of 66 exact ones none.

  Attributes:
    min_rows: fewer tell neither.
    max_rows: of more rows a sample by the seed is looked at, in some milliseconds.
    exact: errors of a smaller share of y's standard deviation are those of the digits of a table: four of them give
      up to 3e-4.
    far: robust standard deviations from which on a row is far from all others: of normal errors of 20 rows, whose
      median is uncertain by a fifth, one set in two hundred has such a row; of many rows next to none.
    few: largest share of rows that are the exception: of more the rest is not known to be the rule.
    rows_per_part, max_parts: rows of like predictions whose errors are compared, and how many such parts there are.
    together: share of far rows that have one beside them in x which lies `off` on the same side, from which on they are
      taken for a peak that the formula misses: of one row in ten at random one in seven has.
    chance, chance_beside: with which errors that do not grow look as if they did, and with which the differences of
      those of neighbouring rows do. A parabola for an exponential leaves more where it is large: one in twenty such
      fits passed the first test, so both are asked, each beyond `chance_beside`. The sum of their deviates is that of
      the two chances: of 60 counts over a factor of 16 that finds four in ten, the first beyond `chance` by itself one
      in six; of 15 000 sets of equal errors the sum finds 8, the first none.
    ratio, tail: how much larger the largest predictions are than the least, but for this share of them at each end,
      for weights by size to change anything.
    wide: largest value by the least from which on y spans decades: below, the small half of the range is within a
      factor of 30 of the large one, and weights of squares are no other than those of most tables.
    min_small: small values that are to be there: the median of fewer is that of one or two rows.
    missed: share of a small value that the errors of most are to exceed: from 1 on a formula says no more of them than
      0 would.
    beyond_scatter: times the scatter of neighbouring small rows that errors there are to be: noise alone gives 0.7.
  """

  min_rows: int = 20
  max_rows: int = 4096
  exact: float = 3e-4
  far: float = 6.0
  few: float = 0.2
  rows_per_part: int = 10
  max_parts: int = 10
  off: float = 2.0
  together: float = 0.5
  chance: float = 1e-4
  chance_beside: float = 0.01
  ratio: float = 10.0
  tail: float = 0.05
  wide: float = 1e3
  min_small: int = 10
  missed: float = 1.0
  beyond_scatter: float = 3.0

  def __post_init__(self) -> None:
    check_counts(self, "min_rows", "max_rows", "rows_per_part", "max_parts", "min_small")
