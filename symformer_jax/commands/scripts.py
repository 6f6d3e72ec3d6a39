"""The commands as an installation has them: `symformer` is `python -m symformer_jax.infer`, and so on."""

import functools
import runpy

from symformer_jax import installation


def _run(module: str) -> None:
  """As `python -m` does, wherever the programs lie; ends the process."""
  installation.add_to_path()
  runpy.run_module(module, run_name="__main__", alter_sys=True)


infer = functools.partial(_run, "symformer_jax.infer")
predict = functools.partial(_run, "symformer_jax.predict")
train = functools.partial(_run, "launch.train")
export = functools.partial(_run, "launch.export")
card = functools.partial(_run, "launch.card")
validate = functools.partial(_run, "launch.validate")
evaluate = functools.partial(_run, "launch.evaluate")
benchmark = functools.partial(_run, "launch.benchmark")
generate = functools.partial(_run, "data_gen.generate")
inspect = functools.partial(_run, "data_gen.inspect")
beam = functools.partial(_run, "data_gen.beam")
