"""What tests of parts of sources share."""

import numpy as np
import pytest


@pytest.fixture
def errors_ignored():
  """As where relations of slopes are looked for: what is not finite is no change."""
  with np.errstate(all="ignore"):
    yield
