"""What steers the search: what is tried, how many of it, and where one choice gives way to another.

One frozen part for each room, all in `SearchConfig`. Functions take the part they need; the defaults are those of a
search. What guards the arithmetic alone (rounding, overflow, shapes to compile) stands where it is used. Variants are
files in configs/search, read by `commands.search_config`.
"""

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
from symformer_jax.engine.config.loop import BudgetConfig, LearningCurveConfig, NoiseConfig, PoolConfig, ScalingConfig
from symformer_jax.engine.config.names import (
  EDITS,
  EFFORTS,
  FUNCTIONS,
  LIBRARY_FAMILIES,
  LINKS,
  PRODUCTS_FAMILIES,
  REWRITINGS,
  SOURCES,
  TIERS,
  VIEW_FUNCTIONS,
)
from symformer_jax.engine.config.partitions import PartitionsConfig
from symformer_jax.engine.config.product_units import ProductUnitsConfig
from symformer_jax.engine.config.rationals import (
  EliminationConfig,
  ExactFractionsConfig,
  FactoringConfig,
  FractionPursuitConfig,
  FunctionFractionsConfig,
  LinkedFractionsConfig,
  QuadraticsConfig,
  RationalsConfig,
  TranscendentalFractionsConfig,
  TranscendentsConfig,
  ViewsConfig,
)
from symformer_jax.engine.config.reductions import (
  CoordinatesConfig,
  NeighboursConfig,
  ReductionsConfig,
  SurrogateConfig,
  TrendConfig,
  TriedChangesConfig,
)
from symformer_jax.engine.config.ridges import CurvesConfig, RidgeGrids, RidgesConfig, SumSizes
from symformer_jax.engine.config.search import DEFAULT, SearchConfig
from symformer_jax.engine.config.selection import ChoiceConfig, HintsConfig, LossConfig, SelectionConfig
from symformer_jax.engine.config.sums import (
  ClosedFormsConfig,
  ExponentialProductsConfig,
  GrowthConfig,
  LinearExponentsConfig,
  LogarithmsOfSumsConfig,
  PairsConfig,
  PairsInsideConfig,
  PlainWavesConfig,
  PowerSumsConfig,
  PursuitConfig,
  RemaindersConfig,
  Search,
  SigmoidsConfig,
  SubsetsConfig,
  SubsetsInsideConfig,
  TermsConfig,
  TriplesConfig,
)
from symformer_jax.engine.config.templates import GuessesConfig, TemplatesConfig
from symformer_jax.engine.config.transformer import TransformerConfig
from symformer_jax.engine.config.unknown_functions import (
  FormsConfig,
  MonotoneConfig,
  ReplacementsConfig,
  SeparableConfig,
  SingleIndexConfig,
  VaryingConfig,
)
from symformer_jax.engine.config.waves import PhasesConfig, WaveFractionsConfig, WaveProductsConfig, WaveSumsConfig

__all__ = [
  "BudgetConfig", "ChoiceConfig", "ClosedFormsConfig", "CompositionsConfig", "CoordinatesConfig", "CurveFitsConfig",
  "CurvesConfig", "DEFAULT", "EDITS", "EFFORTS", "EliminationConfig", "EnumerationConfig", "EvolutionConfig",
  "ExactFactorsConfig", "ExactFractionsConfig", "ExponentialProductsConfig", "FUNCTIONS", "FactoringConfig",
  "FormsConfig", "FractionPursuitConfig", "FunctionFractionsConfig", "GrowthConfig", "GuessesConfig", "HintsConfig",
  "InnerPairsConfig", "LIBRARY_FAMILIES", "LINKS", "LearningCurveConfig", "LibraryConfig", "LinearExponentsConfig",
  "LinkedFractionsConfig",
  "LogarithmsOfSumsConfig", "LossConfig", "MonotoneConfig", "NeighboursConfig", "NoiseConfig", "OscillationsConfig",
  "PRODUCTS_FAMILIES", "PairsConfig", "PairsInsideConfig", "PartitionsConfig", "PhasesConfig", "PlainWavesConfig",
  "PoolConfig", "PowerSumsConfig", "ProductUnitsConfig", "ProductsConfig", "PursuitConfig", "QuadraticsConfig",
  "REWRITINGS", "RationalsConfig", "ReductionsConfig", "RemaindersConfig", "ReplacementsConfig", "RidgeGrids",
  "RidgesConfig", "SOURCES", "ScalingConfig", "ScreeningConfig", "Search", "SearchConfig", "SelectionConfig",
  "SeparableConfig", "ShortFormsConfig", "SigmoidsConfig", "SingleIndexConfig", "SubsetsConfig", "SubsetsInsideConfig",
  "SumSizes", "SurrogateConfig", "TIERS", "TemplatesConfig", "TermsConfig", "TranscendentalFractionsConfig",
  "TranscendentsConfig", "TransformerConfig", "TrendConfig", "TriedChangesConfig", "TriplesConfig",
  "TwoConstantsConfig", "VIEW_FUNCTIONS", "VaryingConfig", "ViewsConfig", "WaveFractionsConfig", "WaveProductsConfig",
  "WaveSumsConfig",
]
