"""What a config may say: the numbers at the ends of what is allowed, and those just beyond; what each turn asks for."""

import pytest

from symformer_jax.engine.config import (
  BudgetConfig,
  ChoiceConfig,
  CompositionsConfig,
  CurveFitsConfig,
  CurvesConfig,
  EnumerationConfig,
  EvolutionConfig,
  ExactFactorsConfig,
  FunctionFractionsConfig,
  GrowthConfig,
  InnerPairsConfig,
  LinkedFractionsConfig,
  OscillationsConfig,
  PairsConfig,
  PairsInsideConfig,
  PhasesConfig,
  PlainWavesConfig,
  ProductUnitsConfig,
  RemaindersConfig,
  ReplacementsConfig,
  RidgesConfig,
  ScreeningConfig,
  SeparableConfig,
  ShortFormsConfig,
  SingleIndexConfig,
  SubsetsConfig,
  SubsetsInsideConfig,
  TransformerConfig,
  TriplesConfig,
  TwoConstantsConfig,
  VaryingConfig,
  WaveFractionsConfig,
)
from symformer_jax.engine.config.waves import WaveSumsConfig
from symformer_jax.errors import InputError


@pytest.mark.parametrize(("kind", "name", "allowed", "refused"), [
  (ScreeningConfig, "max_terms", (1,), (0, -1, 1.5, None)), (ScreeningConfig, "min_values", (8, 9), (7, 8.0, 99.5)),
  (ScreeningConfig, "share", (1e-9, 1, 1.0), (0, 0.0, 1.01, -0.5, "a")),
  (CompositionsConfig, "least_rows", (1e-9, 2.0), (0.0, -1.0)), (CompositionsConfig, "inner_powers", ((0.0,),), ((),)),
  (ShortFormsConfig, "num_rows", (ShortFormsConfig().num_largest,), (ShortFormsConfig().num_largest - 1,)),
  (EvolutionConfig, "max_tokens", (2, 30), (1, 31)), (ExactFactorsConfig, "degrees", ((1,),), ((),)),
  *((kind, "rounds", (((1, 1),), ((9, 1), (1, 9))), ((), ((0, 1),), ((1, 0),), ((9, 9), (1, 0)), ((1.5, 1),)))
    for kind in (InnerPairsConfig, CurveFitsConfig)),
  (OscillationsConfig, "arguments", ((1,),), ((),)),
  (BudgetConfig, "early", ((), (("pairs", 1, "library"),)), (
    (("pairs", 0, "library"),), (("pairs", 1.5, "library"),), (("pairs", 1, "library"), ("parts", 0, "library")))),
  (BudgetConfig, "first_of_one", ((), (("pairs", 1),)), ((("pairs", 0),), (("pairs", 1.5),))),
  *((BudgetConfig, effort, (0, 1), (-1, 1.5)) for effort in ("quick", "normal", "thorough")),
  (ProductUnitsConfig, "num_survivors", (ProductUnitsConfig().num_starts,), (ProductUnitsConfig().num_starts + 1,)),
  (RidgesConfig, "sums", (((1, 2, 2),) * 3, ((1, 3, 4),)), (
    ((1, 2, 2),) * 4, ((1, 1, 2),), ((1, 2, 0),), ((1, 2, 3),), ((1, 2, 2), (1, 2, 1)))),
  (ChoiceConfig, "phase_edges", (0, 0.0, 0.499), (-0.001, 0.5, 0.6)),
  (PlainWavesConfig, "periods_per_row", (1e-9,), (0.0, -1.0)),
  (TransformerConfig, "later_samples", (TransformerConfig().round_samples,), (TransformerConfig().round_samples - 1,)),
  (SeparableConfig, "degrees", ((1,), (2, 1)), ((), (0,), (2, 0))),
  (WaveSumsConfig, "num_frequencies", ((1,),), ((),)), (WaveSumsConfig, "edges", (0, 0.499), (-0.001, 0.5))])
def test_what_an_entry_may_be(kind, name, allowed, refused):
  for value in allowed:
    assert getattr(kind(**{name: value}), name) == value
  for value in refused:
    with pytest.raises(InputError, match=f"{name}: expected"):
      kind(**{name: value})


@pytest.mark.parametrize(("kind", "turns"), [
  (CompositionsConfig, [64] * 4), (EnumerationConfig, [8, 8]), (ShortFormsConfig, [16]), (ExactFactorsConfig, [32] * 3),
  (TwoConstantsConfig, [24, 72, 96, 96]), (InnerPairsConfig, [96]), (CurveFitsConfig, [48]), (OscillationsConfig, [48]),
  (FunctionFractionsConfig, [8]), (LinkedFractionsConfig, [8]), (RidgesConfig, [128] * 2), (CurvesConfig, [360]),
  (PairsConfig, [512]), (PairsInsideConfig, [1024]), (TriplesConfig, [256] * 4), (SubsetsConfig, [256]),
  (SubsetsInsideConfig, [128] * 6), (GrowthConfig, [512] * 2), (RemaindersConfig, [32] * 5),
  (ReplacementsConfig, [1] * 6), (VaryingConfig, [128] * 3), (SeparableConfig, [48, 128]), (SingleIndexConfig, [128]),
  (WaveFractionsConfig, [24] * 2), (PhasesConfig, [24] * 2)])
def test_so_many_formulas_are_asked_for_in_each_turn(kind, turns):
  """As `test_engine_units_config_loop` asks it of the sources."""
  assert list(kind().turns) == turns
