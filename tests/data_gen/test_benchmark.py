"""The measurement of the settings: the setting compared with agrees with itself, the others mostly."""

from configs.data import univariate
from data_gen import benchmark, config as config_lib


def test_agreement_and_rates():
  config = config_lib.from_dict(univariate.get_config().to_dict())
  result = benchmark.measure(config, 12, seed=5)
  assert list(result) == ["simplify", "fast", "rules"]
  assert result["simplify"]["agreement"] == 1
  assert result["fast"]["agreement"] >= 0.75 and result["rules"]["agreement"] >= 0.5
  assert result["rules"]["equations_per_s"] > result["simplify"]["equations_per_s"]
