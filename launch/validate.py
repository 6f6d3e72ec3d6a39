"""Loss of a model on equations it was not trained on, by the number of their variables.

python -m launch.validate --model=NAME|DIR --data=DIR,DIR [--num_equations=N]
"""

if __name__ == "__main__":
  from symformer_jax.commands import startup  # first: the other imports take seconds

  startup.prepare(__doc__, "launch.flags.validate", extra="train")

from launch.flags import validate as asked
from symformer_jax import compilation
from symformer_jax.commands import runner
from symformer_jax.pretrained import registry
from symformer_jax.training import evaluation

# What the table shows: a heading, the metric.
_COLUMNS = (("cross entropy", "cross_entropy"), ("token accuracy", "token_accuracy"),
            ("squared error of mantissas", "constant_mse"))


def main(argv: list[str]) -> int:
  """Prints a table in Markdown."""
  del argv
  compilation.use_cache()
  runner.refuse_empty(asked.MODEL, asked.DATA)
  name, folders = runner.required(asked.MODEL), runner.required(asked.DATA)
  found = evaluation.measure_by_variables(
    registry.load_model(name), folders, num_equations=asked.NUM_EQUATIONS.value)
  print("| variables | equations | " + " | ".join(heading for heading, _ in _COLUMNS) + " |")
  print("|---" * (len(_COLUMNS) + 2) + "|")
  for count, metrics in found.items():
    print(f"| {count} | {metrics['equations']} | " + " | ".join(f"{metrics[name]:.3f}" for _, name in _COLUMNS) + " |")
  return runner.DONE


if __name__ == "__main__":
  runner.run(main, flag_values=asked.FLAGS)
