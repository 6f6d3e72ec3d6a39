"""All parts in one."""

import dataclasses

from symformer_jax.engine.config.columns import LibraryConfig, ProductsConfig, ScreeningConfig
from symformer_jax.engine.config.compositions import CompositionsConfig
from symformer_jax.engine.config.enumeration import EnumerationConfig, ShortFormsConfig
from symformer_jax.engine.config.evolution import EvolutionConfig
from symformer_jax.engine.config.exact_factors import ExactFactorsConfig
from symformer_jax.engine.config.inner_functions import (
  CurveFitsConfig,
  InnerPairsConfig,
  OscillationsConfig,
  TwoConstantsConfig,
)
from symformer_jax.engine.config.loop import BudgetConfig, NoiseConfig, PoolConfig, ScalingConfig
from symformer_jax.engine.config.names import SOURCES, check_names
from symformer_jax.engine.config.partitions import PartitionsConfig
from symformer_jax.engine.config.product_units import ProductUnitsConfig
from symformer_jax.engine.config.rationals import (
  ExactFractionsConfig,
  FractionPursuitConfig,
  FunctionFractionsConfig,
  LinkedFractionsConfig,
  QuadraticsConfig,
  RationalsConfig,
  TranscendentalFractionsConfig,
)
from symformer_jax.engine.config.reductions import ReductionsConfig
from symformer_jax.engine.config.ridges import CurvesConfig, RidgesConfig
from symformer_jax.engine.config.selection import ChoiceConfig, HintsConfig, LossConfig, SelectionConfig
from symformer_jax.engine.config.sums import (
  ClosedFormsConfig,
  GrowthConfig,
  PairsConfig,
  PairsInsideConfig,
  PursuitConfig,
  RemaindersConfig,
  SubsetsConfig,
  SubsetsInsideConfig,
  TermsConfig,
  TriplesConfig,
)
from symformer_jax.engine.config.templates import GuessesConfig, TemplatesConfig
from symformer_jax.engine.config.transformer import TransformerConfig
from symformer_jax.engine.config.unknown_functions import (
  ReplacementsConfig,
  SeparableConfig,
  SingleIndexConfig,
  VaryingConfig,
)
from symformer_jax.engine.config.waves import PhasesConfig, WaveFractionsConfig
from symformer_jax.errors import InputError
from symformer_jax.ranges import SHARE, Range, check_counts, check_ranges

_COUNT, _ABOVE = Range(1, 2**31 - 1), Range(0, 1e300, is_above=True)
_CHANCE = Range(0, 1, is_above=True, is_below=True)
# What a search divides by, takes the logarithm of, or cannot be without, beside what parts check themselves. (Of a
# source a fault leaves that out for a turn.) Arrays grow with the square of the constants of a formula.
RANGES = {
  "scaling.box": _ABOVE,
  "scaling.small_x": _ABOVE,
  "scaling.smallest_y": _ABOVE,
  "scaling.largest_y": _ABOVE,
  "scaling.comfortable_y": _ABOVE,
  "noise.chance": _CHANCE,
  "pool.max_constants": Range(1, 256),
  "pool.equal_values": _ABOVE,
  "selection.max_rows": _COUNT,
  "selection.last_rows": _COUNT,
  "selection.nearly": Range(1, 1e300),
  "budget.choice_share": SHARE,
  "choice.num_folds": Range(2, 2**31 - 1),
  "choice.max_rows": _COUNT,
  "choice.noise_share": _CHANCE,
  "choice.odd_gain": _ABOVE,
  "choice.rows_per_coefficient": _COUNT,
  "hints.chance_beside": _CHANCE,
  "evolution.equal_loss": _ABOVE,
  "evolution.temperature": _ABOVE,
}


@dataclasses.dataclass(frozen=True)
class SearchConfig:
  """All that steers a search. Hashable: a search is a function of data, model, options and this."""

  # Which sources there are, see `sources.registry.SOURCES`; they are asked in that table's order.
  sources: tuple[str, ...] = SOURCES
  closed_forms: ClosedFormsConfig = ClosedFormsConfig()
  transformer: TransformerConfig = TransformerConfig()
  scaling: ScalingConfig = ScalingConfig()
  screening: ScreeningConfig = ScreeningConfig()
  library: LibraryConfig = LibraryConfig()
  products: ProductsConfig = ProductsConfig()
  pursuit: PursuitConfig = PursuitConfig()
  product_units: ProductUnitsConfig = ProductUnitsConfig()
  curves: CurvesConfig = CurvesConfig()
  wave_fractions: WaveFractionsConfig = WaveFractionsConfig()
  phases: PhasesConfig = PhasesConfig()
  pairs: PairsConfig = PairsConfig()
  pairs_inside: PairsInsideConfig = PairsInsideConfig()
  triples: TriplesConfig = TriplesConfig()
  subsets: SubsetsConfig = SubsetsConfig()
  subsets_inside: SubsetsInsideConfig = SubsetsInsideConfig()
  single_index: SingleIndexConfig = SingleIndexConfig()
  separable: SeparableConfig = SeparableConfig()
  reductions: ReductionsConfig = ReductionsConfig()
  partitions: PartitionsConfig = PartitionsConfig()
  varying: VaryingConfig = VaryingConfig()
  exact_factors: ExactFactorsConfig = ExactFactorsConfig()
  ridges: RidgesConfig = RidgesConfig()
  compositions: CompositionsConfig = CompositionsConfig()
  growth: GrowthConfig = GrowthConfig()
  remainders: RemaindersConfig = RemaindersConfig()
  replacements: ReplacementsConfig = ReplacementsConfig()
  terms: TermsConfig = TermsConfig()
  rationals: RationalsConfig = RationalsConfig()
  quadratics: QuadraticsConfig = QuadraticsConfig()
  exact_fractions: ExactFractionsConfig = ExactFractionsConfig()
  function_fractions: FunctionFractionsConfig = FunctionFractionsConfig()
  linked_fractions: LinkedFractionsConfig = LinkedFractionsConfig()
  transcendental_fractions: TranscendentalFractionsConfig = TranscendentalFractionsConfig()
  fraction_pursuit: FractionPursuitConfig = FractionPursuitConfig()
  enumeration: EnumerationConfig = EnumerationConfig()
  two_constants: TwoConstantsConfig = TwoConstantsConfig()
  inner_pairs: InnerPairsConfig = InnerPairsConfig()
  curve_fits: CurveFitsConfig = CurveFitsConfig()
  short_forms: ShortFormsConfig = ShortFormsConfig()
  oscillations: OscillationsConfig = OscillationsConfig()
  evolution: EvolutionConfig = EvolutionConfig()
  budget: BudgetConfig = BudgetConfig()
  noise: NoiseConfig = NoiseConfig()
  pool: PoolConfig = PoolConfig()
  selection: SelectionConfig = SelectionConfig()
  choice: ChoiceConfig = ChoiceConfig()
  loss: LossConfig = LossConfig()
  hints: HintsConfig = HintsConfig()
  guesses: GuessesConfig = GuessesConfig()
  templates: TemplatesConfig = TemplatesConfig()

  def __post_init__(self) -> None:
    check_names("sources", self.sources, SOURCES)
    check_counts(self)
    check_ranges(self, RANGES)
    if self.choice.line_share >= self.choice.noise_share:
      raise InputError(f"choice.line_share must be below the {self.choice.noise_share:g} of choice.noise_share, got "
                       f"{self.choice.line_share:g}")


# Functions take their parts of this where none are given.
DEFAULT = SearchConfig()
