"""The search with one thing left out, or one constant changed: what each is worth.

A name is that of what is left out: `no_waves`, a family of columns; `no_products_sums`, one of factors of products of
many variables; `no_link_ln`, a function of y; `no_rewriting_powers`, a way to write a formula; or one of `CHANGES`.
Those of `BudgetConfig.normal_without` are asked with a limit of time, or thoroughly, alone.
Read by `symformer_jax.commands.search_config.load_search_config("configs/search/ablation.py:no_waves")`.
Cost: that of the search itself, for each name.
"""

from ml_collections import ConfigDict

from configs.search import default
from symformer_jax.engine.config import DEFAULT, PRODUCTS_FAMILIES, REWRITINGS
from symformer_jax.errors import InputError, suggest


def _each_left_out(field: str, prefix: str, names: tuple[str, ...]) -> dict[str, dict]:
  return {f"{prefix}{left_out}": {field: tuple(name for name in names if name != left_out)} for left_out in names}


# By default nothing is evolved: what is left out of evolution is compared with `evolved`.
_EVOLVED = {"budget.normal": DEFAULT.budget.thorough, "noise.efforts": ()}

# Name -> what is changed; constants go to half or twice their value, or to where they choose nothing.
CHANGES = {
  **{f"no_{left_out}": {"sources": tuple(name for name in DEFAULT.sources if name != left_out)}
     for left_out in ("reductions", "partitions", "rationals", "quadratics", "short_forms", "oscillations", "curves",
                      "two_constants", "wave_fractions", "phases", "exact_fractions", "function_fractions",
                      "linked_fractions", "transcendental_fractions", "single_index", "separable", "pairs_inside",
                      "triples", "subsets", "varying", "pairs", "ridges", "subsets_inside", "enumeration",
                      "transformer", "growth", "remainders", "replacements", "compositions", "product_units",
                      "inner_pairs", "exact_factors", "curve_fits", "fraction_pursuit")},
  "no_order_of_errors": {"noise.asked_under_errors": ()},
  "no_sole_column": {"screening.has_sole_column": False},
  "no_exponential_products": {"closed_forms.has_exponentials": False},
  "no_plain_waves": {"closed_forms.has_waves": False},
  "no_sigmoids": {"closed_forms.has_sigmoids": False},
  "no_sums_of_powers": {"closed_forms.has_powers": False},
  "no_formulas_of_few_operators": {"enumeration.turns": (8,)},
  "no_neighbours_of_rough_slopes": {"reductions.neighbours.blurred": float("inf")},
  "no_hurry_to_noise": {"noise.asked_before_hurry": (("closed_forms", 10**6),)},
  "no_tried_changes": {"reductions.tried.most_left": 0.0},
  "no_bends": {"reductions.tried.bend": 0.0, "noise.learning_curve.bend": 0.0},
  "no_first_turns_of_tried_changes": {"reductions.tried.first": ()},
  "no_shifted_changes": {"reductions.most_shifted": -1.0},
  "no_coordinates": {"reductions.coordinates.most_error": 0.0},
  "no_groups_under_noise": {"partitions.most_noise": 0.0},
  "fewer_product_units": {"product_units.num_alike": 12},
  "no_library": {"library.families": ()},
  "no_factors": {"products.families": ()},
  "no_links": {"terms.links": ("y",)},
  "no_products_of_parts": {"terms.use_products": False},
  "no_rewritings": {"selection.rewritings": ()},
  "no_sums_of_all_columns": {"terms.searches": DEFAULT.terms.searches[1:]},
  "no_long_sums": {"terms.searches": DEFAULT.terms.searches[:-1]},
  "half_the_waves": {"library.num_waves": 200, "library.num_multiplied_waves": 20, "library.num_other_waves": 50,
                     "library.num_plane_waves": 10, "library.num_decaying_waves": 50, "library.num_many_waves": 1250},
  "coarse_grids": {"library.rates": (0.1, 50.0, 12), "library.decays": (0.3, 20.0, 4),
                   "library.distances": (0.003, 5.0, 8), "library.num_places": 10, "library.widths": (0.02, 1.0, 4)},
  "coarse_ridges": {"ridges.grids.away": (0.03, 0.7), "ridges.grids.centres": (0.0, 1.0),
                    "ridges.grids.widths": (0.07, 0.6), "ridges.grids.rates": (1.2, 8.0)},
  "one_start_of_ridges": {"ridges.starts_per_sum": 1},
  "narrow_beams": {"pursuit.num_first": 4, "pursuit.num_pairs": 8, "pursuit.num_beams": 4},
  "wide_beams": {"pursuit.num_first": 16, "pursuit.num_pairs": 32, "pursuit.num_beams": 16},
  "few_rows": {"terms.num_rows": 64},
  "few_fitted_sums": {"terms.num_fitted": 128},
  "few_donors": {"pool.num_donors": 128},
  "few_finalists": {"pool.num_best": 16, "pool.num_per_complexity": 1, "pool.num_finalists": 32},
  "one_start": {"transformer.starts_per_string": 1},
  "few_survivors": {"transformer.num_best": 16, "transformer.num_per_length": 1},
  "evolved": _EVOLVED,
  "few_children": _EVOLVED | {"evolution.num_children": 1024},
  "few_evolved_fits": _EVOLVED | {"evolution.num_screened": 64, "evolution.num_near": 24},
  "small_niches": _EVOLVED | {"evolution.num_per_niche": 2},
  "old_alone": _EVOLVED | {"evolution.layer_generations": 1},
  "all_turns": {"noise.efforts": ()},
  "no_end_at_the_nearest": {"noise.large": 1.0},
  "no_logarithms": {"closed_forms.has_logarithms": False},
  "no_waves_of_sums": {"phases.sums.max_pairs": 0},
  "no_price_of_frequencies": {"choice.frequency_nats": 0.0},
  "no_forms_if_rounded": {"reductions.sources_if_rounded": ()},
  "no_waiting_in_smaller_tables": {"reductions.waiting": ("separable", "closed_forms")},
  "cheap_nodes": {"selection.nats_per_node": 1.0},
  "dear_nodes": {"selection.nats_per_node": 4.0},
}
ABLATIONS = {
  **_each_left_out("library.families", "no_", DEFAULT.library.families),
  **_each_left_out("products.families", "no_products_", PRODUCTS_FAMILIES),
  **_each_left_out("terms.links", "no_link_", DEFAULT.terms.links),
  **_each_left_out("selection.rewritings", "no_rewriting_", REWRITINGS),
  **CHANGES,
}


def get_config(name: str) -> ConfigDict:
  """Differences from `default`: those of the name."""
  if name not in ABLATIONS:
    raise InputError(f"unknown ablation {name!r}: {suggest(name, ABLATIONS)}")
  config = default.get_config()
  config.update_from_flattened_dict(ABLATIONS[name])
  return config
