"""THE table of sources, in the order in which they are asked: cheap ones first, so that easy data are soon done."""

from collections.abc import Callable, Collection
from typing import Any

from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.source import Source
from symformer_jax.sources.closed_forms import ClosedForms
from symformer_jax.sources.compositions.compositions import Compositions
from symformer_jax.sources.curves.curve_fits import CurveFits
from symformer_jax.sources.curves.curves import Curves
from symformer_jax.sources.curves.inner_pairs import InnerPairs
from symformer_jax.sources.curves.oscillations import Oscillations
from symformer_jax.sources.curves.two_constants import TwoConstants
from symformer_jax.sources.enumeration.enumeration import Enumeration
from symformer_jax.sources.enumeration.short_forms import ShortForms
from symformer_jax.sources.evolution.evolution import Evolution
from symformer_jax.sources.fractions.exact_fractions import ExactFractions
from symformer_jax.sources.fractions.fraction_pursuit import FractionPursuit
from symformer_jax.sources.fractions.function_fractions import FunctionFractions
from symformer_jax.sources.fractions.linked_fractions import LinkedFractions
from symformer_jax.sources.fractions.quadratics import Quadratics
from symformer_jax.sources.fractions.rationals import Rationals
from symformer_jax.sources.fractions.transcendental_fractions import TranscendentalFractions
from symformer_jax.sources.guesses import Guesses
from symformer_jax.sources.network.transformer import Transformer
from symformer_jax.sources.powers.product_units import ProductUnits
from symformer_jax.sources.reductions.partitions import Partitions
from symformer_jax.sources.reductions.reductions import Reductions
from symformer_jax.sources.repairs.growth import Growth
from symformer_jax.sources.repairs.remainders import Remainders
from symformer_jax.sources.repairs.replacements import Replacements
from symformer_jax.sources.ridges.ridges import Ridges
from symformer_jax.sources.sums.pair_sums import PairSums
from symformer_jax.sources.sums.plain_sums import PairSumsInside, TripleSums
from symformer_jax.sources.sums.subset_sums import SubsetSums, SubsetSumsInside
from symformer_jax.sources.sums.terms import LibrarySums, PartSums
from symformer_jax.sources.unknowns.exact_factors import ExactFactors
from symformer_jax.sources.unknowns.separable import Separable
from symformer_jax.sources.unknowns.single_index import SingleIndex
from symformer_jax.sources.unknowns.varying import VaryingCoefficients
from symformer_jax.sources.waves.phases import Phases
from symformer_jax.sources.waves.wave_fractions import WaveFractions

CLOSED_FORMS, GUESSES, TRANSFORMER = "closed_forms", "guesses", "transformer"
SOURCES: dict[str, Callable[[Any, SearchOptions], Source]] = {
  CLOSED_FORMS: lambda model, options: ClosedForms(options.config),
  GUESSES: lambda model, options: Guesses(options.guesses, options.config.guesses),
  "enumeration": lambda model, options: Enumeration(options.config),
  "short_forms": lambda model, options: ShortForms(options.config),
  "quadratics": lambda model, options: Quadratics(options.config),
  "oscillations": lambda model, options: Oscillations(options.config),
  "rationals": lambda model, options: Rationals(options.config),
  "curve_fits": lambda model, options: CurveFits(options.config),
  "exact_fractions": lambda model, options: ExactFractions(options.config),
  "linked_fractions": lambda model, options: LinkedFractions(options.config),
  "two_constants": lambda model, options: TwoConstants(options.config),
  "function_fractions": lambda model, options: FunctionFractions(options.config),
  "curves": lambda model, options: Curves(options.config),
  "inner_pairs": lambda model, options: InnerPairs(options.config),
  "wave_fractions": lambda model, options: WaveFractions(options.config),
  "phases": lambda model, options: Phases(options),
  "single_index": lambda model, options: SingleIndex(options.config),
  "separable": lambda model, options: Separable(options),
  "library": lambda model, options: LibrarySums(options.config),
  "fraction_pursuit": lambda model, options: FractionPursuit(options.config),
  "product_units": lambda model, options: ProductUnits(options.config),
  "reductions": lambda model, options: _of_smaller_tables(model, options),
  "exact_factors": lambda model, options: ExactFactors(
    options, _named(options.config.exact_factors.sources, model, options)),
  "partitions": lambda model, options: Partitions(options, _named(options.config.partitions.sources, model, options)),
  "subsets": lambda model, options: SubsetSums(options.config),
  "varying": lambda model, options: VaryingCoefficients(options),
  "pairs": lambda model, options: PairSums(options.config),
  "pairs_inside": lambda model, options: PairSumsInside(options.config),
  "triples": lambda model, options: TripleSums(options.config),
  "ridges": lambda model, options: Ridges(options.config),
  "subsets_inside": lambda model, options: SubsetSumsInside(options.config),
  TRANSFORMER: Transformer,
  "parts": lambda model, options: PartSums(options.config),
  "growth": lambda model, options: Growth(options.config),
  "remainders": lambda model, options: Remainders(options.config),
  "replacements": lambda model, options: Replacements(
    options, _named(options.config.replacements.sources, model, options)),
  "transcendental_fractions": lambda model, options: TranscendentalFractions(options.config),
  "compositions": lambda model, options: Compositions(options),
  "evolution": lambda model, options: Evolution(options),
}
# Left out by `recombine=False`, and by `refine="none"`: their formulas are no good before their constants are fitted.
WITHOUT_MODEL = tuple(name for name in SOURCES if name not in (CLOSED_FORMS, GUESSES, TRANSFORMER))


def make_sources(model: Any, options: SearchOptions) -> list[Source]:
  """The sources of a search: those of the config, in the table's order; of a normal search without a limit of time
  without those that gain next to nothing, unless the config names no others.
  """
  names = _asked(options)
  if options.effort == "normal" and options.max_time is None:
    common = [name for name in names if name not in options.config.budget.normal_without]
    names = common if set(common) - {CLOSED_FORMS, GUESSES} else names
  return [SOURCES[name](model, options) for name in names]


def _asked(options: SearchOptions) -> list[str]:
  names = [name for name in SOURCES if name in options.config.sources]
  if options.effort == "quick" and options.max_time is None:
    names = [name for name in names if name not in options.config.budget.quick_without]
  if not options.recombine or options.refine == "none":
    names = [name for name in names if name not in WITHOUT_MODEL]
  return names


def _of_smaller_tables(model: Any, options: SearchOptions) -> Source:
  """What is asked of them is asked of the whole table as well."""
  config = options.config.reductions
  some = {*config.sources, *config.sources_if_rounded, *config.tried.sources}
  return Reductions(options, _named(some, model, options))


def _named(some: Collection[str], model: Any, options: SearchOptions) -> tuple[Source, ...]:
  """Those of the search's sources that are among some."""
  return tuple(SOURCES[name](model, options) for name in _asked(options) if name in some)
