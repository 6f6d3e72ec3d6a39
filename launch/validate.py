"""Loss of a model on equations it was not trained on, by the number of their variables.

python -m launch.validate --model=NAME|DIR --data=DIR,DIR [--num_equations=N]
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare()

from absl import flags

from symformer_jax import compilation
from symformer_jax.commands import runner
from symformer_jax.pretrained import registry
from symformer_jax.training import evaluation

_FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string(
  "model", None, "Name of a shipped model, or a folder of launch.export.", flag_values=_FLAGS)
_DATA = flags.DEFINE_list(
  "data", None, "Folders of data_gen.generate; their validation splits are read.", flag_values=_FLAGS)
_NUM_EQUATIONS = flags.DEFINE_integer(
  "num_equations", 512, "Equations of each number of variables.", 1, flag_values=_FLAGS)

# What the table shows: a heading, the metric.
_COLUMNS = (("cross entropy", "cross_entropy"), ("token accuracy", "token_accuracy"),
            ("squared error of mantissas", "constant_mse"))


def main(argv: list[str]) -> int:
  """Prints a table in Markdown."""
  del argv
  compilation.use_cache()
  model = registry.load_model(_MODEL.value)
  found = evaluation.measure_by_variables(model, _DATA.value, num_equations=_NUM_EQUATIONS.value)
  print("| variables | equations | " + " | ".join(heading for heading, _ in _COLUMNS) + " |")
  print("|---" * (len(_COLUMNS) + 2) + "|")
  for count, metrics in found.items():
    print(f"| {count} | {metrics['equations']} | " + " | ".join(f"{metrics[name]:.3f}" for _, name in _COLUMNS) + " |")
  return runner.DONE


if __name__ == "__main__":
  flags.mark_flags_as_required(["model", "data"], flag_values=_FLAGS)
  runner.run(main, flag_values=_FLAGS)
