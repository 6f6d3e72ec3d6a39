"""What a search does when it is not told otherwise; see symformer_jax/engine/config for what each value means.

Result: docs/results, all of it.
"""

import dataclasses

from ml_collections import ConfigDict

from symformer_jax.engine.config import SearchConfig


def get_config() -> ConfigDict:
  """No differences."""
  return ConfigDict(dataclasses.asdict(SearchConfig()))
