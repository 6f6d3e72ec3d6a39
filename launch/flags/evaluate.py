"""The flags of launch.evaluate: light, so that --help waits for nothing."""

import math

from absl import flags

from symformer_jax.evaluation import choices

FLAGS = flags.FLAGS
SUITE = flags.DEFINE_string("suite", None, f"What is asked: {', '.join(choices.SUITES)}.")
PROBLEMS = flags.DEFINE_string(
  "problems", None, f"A CSV of your own problems instead, with columns {','.join(choices.PROBLEM_COLUMNS)}; "
  "variables x, y, z...; ranges lo:hi;lo:hi, or an empty cell for the largest finite box made of -5, 0 and 5.")
LIST = flags.DEFINE_enum("list", None, choices.LISTS, "The list of benchmark functions of a suite.")
MODEL = flags.DEFINE_string(
  "model", "auto", "auto (by the number of variables), a shipped model's name, a folder, or for the suite ablation "
  "a folder that holds one model of each encoding.")
OUT = flags.DEFINE_string("out", None, "Folder of the results; made when it does not exist.")
DATA = flags.DEFINE_string("data", None, "A generated data set, whose validation split gives fresh equations.")
VARIABLES = flags.DEFINE_integer("variables", 1, "Variables of the fresh equations that ship.", 1, 2)
NUM_EQUATIONS = flags.DEFINE_integer("num_equations", None, "Problems asked; the suite's number by default.", 1)
SKIP = flags.DEFINE_integer("skip", 0, "Problems left out before the first that is asked.", 0)
SAMPLES = flags.DEFINE_integer("samples", None, "Candidates drawn per problem; the suite's number by default.", 1)
TOP_K = flags.DEFINE_integer("top_k", None, "Tokens among which each step of sampling chooses.", 1)
REFINE = flags.DEFINE_enum("refine", None, ["lm", "bfgs", "gd", "none"], "How constants are fitted.")
RECOMBINE = flags.DEFINE_bool(
  "recombine", None, "Whether the sources that need no model (sums of library columns and of parts) compete with it; "
  "answers that are bare samples (in suites such as in_domain and ablation) know none.")
SEARCH_CONFIG = flags.DEFINE_string(
  "search_config", None, "What steers the search: a Python file with get_config(), such as configs/search/default.py, "
  "and a name after a colon where it has several.")
SEEDS = flags.DEFINE_integer("seeds", 1, "How often each problem is asked, with other points and samples.", 1)
NOISE = flags.DEFINE_float("noise", None, "Standard deviation of noise on y, relative to its RMS.", 0.0)
flags.register_validator(
  NOISE, lambda value: value is None or math.isfinite(value), "expected a finite number")
BASELINE = flags.DEFINE_list(
  "baseline", [], "Other systems asked the same, with equal points, seeds, cores and time: "
  f"{', '.join(choices.PEERS)}.")
BASELINE_PYTHON = flags.DEFINE_string(
  "baseline_python", None, "The Python in whose environment those systems are; by default this one.")
PREDICTIONS = flags.DEFINE_string(
  "predictions", None, f"For --baseline=file: a CSV of formulas found elsewhere, with columns "
  f"{','.join(choices.PREDICTION_COLUMNS)}, and seed and seconds if wanted.")
SEEN = flags.DEFINE_list(
  "seen", [], "Generated folders that the model was trained on, to tell which problems it has met; by default from the "
  "hash files that its card names.")
SETS = flags.DEFINE_enum(
  "sets", "all", ["all", "open", "aside", "drawn_open", "drawn_aside"], "Of the suite real: all data sets of its list, "
  "those that may be looked at while developing, or those set aside; or tables drawn by a rule, which nobody chose: "
  "again those that may be looked at, or those set aside.")
MAX_ABS_VALUE = flags.DEFINE_float(
  "max_abs_value", None, f"Points at which the truth is larger in size are left out; by default "
  f"{choices.LARGEST_VALUE:g}, as in training. Laws in SI units may want more.", 0.0)
flags.register_validator(
  MAX_ABS_VALUE, lambda value: value is None or value > 0, "expected a number above 0: no point has less")
MAX_TIME = flags.DEFINE_float("max_time", None, "Seconds per problem after which no further turn is begun.", 0.0)
