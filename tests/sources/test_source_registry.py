"""Which sources a search has."""

import dataclasses

from symformer_jax.engine.config import DEFAULT, SOURCES
from symformer_jax.engine.options import SearchOptions
from symformer_jax.sources import registry
from symformer_jax.sources.registry import make_sources


class Model:
  """As much of a model as sources look at when they are made."""

  name, vocab = "model", None


def names(**options):
  return [source.name for source in make_sources(Model(), SearchOptions(**options))]


def test_the_table_has_every_source_of_the_config_in_its_order():
  assert tuple(registry.SOURCES) == SOURCES
  assert tuple(names()) == DEFAULT.sources


def test_quick_leaves_out_what_takes_long_unless_time_is_given():
  assert set(names()) - set(names(effort="quick")) == {
    "subsets", "varying", "pairs", "ridges", "subsets_inside", "growth"}
  assert names(effort="quick", max_time=5.0) == names() == names(effort="thorough")


def test_without_recombination_or_fit_the_model_is_left_with_what_is_free():
  for options in ({"recombine": False}, {"refine": "none"}):
    assert names(**options) == ["closed_forms", "guesses", "transformer"]


def test_the_config_names_the_sources():
  config = dataclasses.replace(DEFAULT, sources=("growth", "closed_forms"))
  assert names(config=config) == ["closed_forms", "growth"]
