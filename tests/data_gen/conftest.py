"""A small data set, made once."""

from pathlib import Path

import pytest
from small_runs import make, small_job


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
  """The folder of the shards of an undisturbed run; tests that change it work on a copy."""
  return make(small_job(tmp_path_factory.mktemp("made")))
