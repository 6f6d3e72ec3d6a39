"""The command that measures the three settings: rate per core, and agreement with `expand(simplify(...))`.

python -m data_gen.benchmark --config=configs/data/univariate.py --trees=1000
"""

from collections import Counter
import sys
import time

from absl import app, flags
import numpy as np

from data_gen import exclusion, simplify
from data_gen.candidates import Generator
from data_gen.config import SIMPLIFIERS, GeneratorConfig
from data_gen.generate import load_config
from data_gen.workers import call_with_limit
from symformer_jax.errors import InputError, SymFormerError
from symformer_jax.language import expression

_TREES = flags.DEFINE_integer("trees", 1000, "Fresh trees to compare on.")


def measure(config: GeneratorConfig, num_trees: int, *, seed: int) -> dict[str, dict[str, float]]:
  """Simplifies the same trees in every setting.

  Trees are those that pass the numeric tests and that `simplify` brings under the longest length. CPU seconds are
  those of the process; the rate counts the drawing and testing of the raw trees, but not the final tests.
  Returns:
    By setting: `agreement` with `simplify` (token strings, 0 ... 1), `equations_per_s` of one core, `tokens` (mean).
  """
  generator = Generator(config, seed, exclusion.read_problems(None, config))
  seconds, same, tokens = Counter(), Counter(), Counter()
  num_kept = index = 0
  while num_kept < num_trees:
    rng = np.random.default_rng((seed, index))
    index += 1
    start = time.process_time()
    with np.errstate(all="ignore"):
      tree = generator.sampler.sample(rng)
      rule, *_ = generator._judge(tree, rng)
    seconds["numeric"] += time.process_time() - start
    if rule:
      continue
    strings = {}
    for setting in SIMPLIFIERS:
      start = time.process_time()
      strings[setting] = _tokens(tree, setting, generator)
      seconds[setting] += time.process_time() - start
    if 0 < len(strings["simplify"]) <= config.max_tokens:
      num_kept += 1
      for setting, ids in strings.items():
        same[setting] += ids == strings["simplify"]
        tokens[setting] += len(ids)
  return {
    setting: {
      "agreement": same[setting] / num_kept,
      "equations_per_s": num_kept / (seconds[setting] + seconds["numeric"]),
      "tokens": tokens[setting] / num_kept,
    }
    for setting in SIMPLIFIERS
  }


def _tokens(tree: expression.Node, setting: str, generator: Generator) -> list[int]:
  """Ids of the simplified tree; none when the setting fails or takes longer than the limit."""
  def make() -> list[int]:
    final = simplify.simplify(tree, setting, digits=generator.config.simplify_digits)
    return expression.encode(final, generator.vocab)[0]
  with np.errstate(all="ignore"):
    ids = call_with_limit(make, generator.config.time_limit_s)
  return ids if isinstance(ids, list) else []


def main(argv: list[str]) -> int:
  try:
    if len(argv) > 1:
      raise InputError(f"unexpected argument {argv[1]!r}: all arguments are flags, see --help")
    if flags.FLAGS.config is None:
      raise InputError("--config is required")
    result = measure(load_config(flags.FLAGS.config, {}), _TREES.value, seed=flags.FLAGS.seed)
  except SymFormerError as error:
    print(f"error: {error}", file=sys.stderr)
    return 2
  for setting, figures in result.items():
    print(setting, "  ".join(f"{name} {value:.4g}" for name, value in figures.items()))
  return 0


if __name__ == "__main__":
  app.run(main)
