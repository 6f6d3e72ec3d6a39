"""The measurement of generation: a setting agrees with itself, others mostly; the pool's figures fit together."""

import pytest

from configs.data import univariate
from data_gen import benchmark, config as config_lib

CONFIG = config_lib.from_dict({**univariate.get_config().to_dict(), "simplify": "rules"})


def test_agreement_and_rates():
  result = benchmark.measure_agreement(CONFIG, 12, seed=5)
  assert list(result) == ["simplify", "fast", "rules"]
  assert result["simplify"]["agreement"] == 1
  assert result["fast"]["agreement"] >= 0.75 and result["rules"]["agreement"] >= 0.5
  assert result["rules"]["equations_per_s"] > result["simplify"]["equations_per_s"]


def test_the_pool_is_measured_after_its_first_chunks():
  result = benchmark.measure_scaling(CONFIG, 1, 128, seed=5)
  assert result["candidates"] == 128 and 0.3 < result["accepted"] < 0.6
  # Two figures of one run: rates by CPU and wall time differ by the cores that were used.
  assert result["equations_per_s"] == pytest.approx(result["equations_per_cpu_s"] * result["cores"])
  assert result["cores"] < 1.05 and result["bytes"] > 15
