"""The flags of symformer_jax.infer: light, so that --help waits for nothing."""

from absl import flags

from symformer_jax.commands import table_flags

FLAGS = flags.FlagValues()
DATA = flags.DEFINE_list(
  "data", None, "Files and globs, separated by commas: .csv, .tsv, .txt, .dat, .xlsx, .parquet or .npz. Required.",
  flag_values=FLAGS)
TARGET = flags.DEFINE_string(
  "target", None, "Column to explain; by default the last one with numbers. Several, separated by commas, get an "
  "answer each; a name with a comma in it stands in double quotes among them.", flag_values=FLAGS)
FEATURES = flags.DEFINE_list(
  "features", None, "Columns to explain it by; by default all others with numbers, dates or times.", flag_values=FLAGS)
CATEGORIES = flags.DEFINE_list(
  "categories", None, "Columns, of text for example, that become a column of 0 and 1 for each of their values.",
  flag_values=FLAGS)
DECIMAL, SEPARATOR, SHEET = table_flags.define(FLAGS)
TIME_UNIT = flags.DEFINE_string(
  "time_unit", None, "What dates and times are counted in: years (decimal ones), or days, hours, minutes or seconds "
  "since the first. By default what suits their span.", flag_values=FLAGS)
WEIGHTS = flags.DEFINE_string(
  "weights", None, "Column of weights, at least 0: how much each row counts in fitting, choice, standard errors, R2 "
  "and RMSE; only ratios matter.", flag_values=FLAGS)
SIGMA = flags.DEFINE_string(
  "sigma", None, "Column of standard deviations of the target, above 0: rows count as 1/sigma**2.", flag_values=FLAGS)
LOSS = flags.DEFINE_string(
  "loss", "squared", "Which errors are to be small: squared; relative (rows count as 1/y**2); log (log|y| is fitted); "
  "huber (rows far from the formula count less); auto (as errors grow with |y|, found by a first look).",
  flag_values=FLAGS)
MODEL = flags.DEFINE_string(
  "model", "auto", "A shipped model's name, a model's folder, or auto: the shipped model for so many variables.",
  flag_values=FLAGS)
SAMPLES = flags.DEFINE_integer("samples", 1024, "Candidates drawn from the model for each file.", flag_values=FLAGS)
STRATEGY = flags.DEFINE_string(
  "strategy", "top_k", "How candidates are drawn: top_k, temperature, nucleus, greedy, beam, or distinct (sampling "
  "without replacement).", flag_values=FLAGS)
TEMPERATURE = flags.DEFINE_float(
  "temperature", 1.0, "Below 1 candidates are likelier, above 1 more varied.", flag_values=FLAGS)
TOP_K = flags.DEFINE_integer(
  "top_k", 20, "Tokens among which each step of sampling chooses.", flag_values=FLAGS)
REFINE = flags.DEFINE_string(
  "refine", "lm", "How constants are fitted: lm (damped least squares), bfgs, gd or none.", flag_values=FLAGS)
RECOMBINE = flags.DEFINE_bool(
  "recombine", True, "Let the sources that need no model compete with it: rational functions, sums of library columns "
  "(small functions with inner constants on a grid) and of parts of candidates, functions of sums, growth, evolution.",
  flag_values=FLAGS)
GUESS = flags.DEFINE_multi_string(
  "guess", [], "A formula in the column names that joins the search, its constants fitted; may be given several times. "
  "Names that are no plain words stand in backticks: '2*`girth (in)`'.", flag_values=FLAGS)
TEMPLATE = flags.DEFINE_string(
  "template", None, "A form that every formula is to have: unknown functions of columns and unknown constants, such as "
  "'f(x)*exp(-k*t)' or 'a*t + f(x, z)'. It is solved for the functions; rules and guesses are theirs.",
  flag_values=FLAGS)
SEARCH_CONFIG = flags.DEFINE_string(
  "search_config", None, "What steers the search: a Python file with get_config(), such as configs/search/default.py, "
  "and a name after a colon where it has several.", flag_values=FLAGS)
OPERATORS = flags.DEFINE_list(
  "operators", None, "Operators a formula may use, such as +,*,pow,exp; by default all that models know.",
  flag_values=FLAGS)
ADD_OPERATORS = flags.DEFINE_list(
  "add_operators", [], "Operators that no model knows, beside all others or those of --operators: tanh, sinh, cosh, "
  "abs, sign, min, max. Sources that need no model make formulas with them.", flag_values=FLAGS)
FORBID = flags.DEFINE_list("forbid", [], "Operators that no formula may use.", flag_values=FLAGS)
REQUIRE = flags.DEFINE_list("require", [], "Columns that every formula must contain.", flag_values=FLAGS)
EXCLUDE = flags.DEFINE_list("exclude", [], "Columns that no formula may contain.", flag_values=FLAGS)
MAX_EXPONENT = flags.DEFINE_float(
  "max_exponent", None, "Largest exponent, at least 1; exponents are then numbers.", flag_values=FLAGS)
MAX_COMPLEXITY = flags.DEFINE_integer(
  "max_complexity", None, "Nodes that a formula may have: of 2*x + 1 five. Nothing longer is searched or listed.",
  flag_values=FLAGS)
MAX_DEPTH = flags.DEFINE_integer(
  "max_depth", None, "Levels of the expression tree; a bare variable has one, a sum of three terms three.",
  flag_values=FLAGS)
UNNESTED = flags.DEFINE_list(
  "unnested", [], "Operators none of which may stand inside another of them, such as sin,cos,exp.",
  flag_values=FLAGS)
MAX_SIZES = flags.DEFINE_list(
  "max_sizes", [], "The most nodes of what an operator is applied to, such as --max_sizes='sin=3, pow=9:1, /=:5': of a "
  "power base:exponent, of a fraction numerator:denominator, of + and * each term or factor; nothing or -1 for any.",
  flag_values=FLAGS)
UNITS = flags.DEFINE_list(
  "units", None, "The unit of each column and of the target, such as --units='x=m, t=s, y=m/s**2' (1 for none); header "
  "takes them from names such as 'girth (in)'. Then only formulas count that can have the target's dimension; values "
  "are never converted.", flag_values=FLAGS)
DIMENSIONLESS_CONSTANTS = flags.DEFINE_bool(
  "dimensionless_constants", False, "With --units: numbers in formulas have no unit; else one that multiplies or is "
  "added may have any.", flag_values=FLAGS)
SELECT = flags.DEFINE_string(
  "select", "recommended", "Which line of the front to take, to print its constants and to draw it: recommended; "
  "accurate, the one of least error; simple, the shortest that looks as good in a plot; or its number in the list.",
  flag_values=FLAGS)
ACCURACY = flags.DEFINE_float(
  "accuracy", None, "R2 at which no further turn is begun, such as 0.999999.", flag_values=FLAGS)
MAX_TIME = flags.DEFINE_float(
  "max_time", None, "Seconds that the search of a file takes unless it has met the data before: a turn in progress "
  "is then ended. By default --effort decides.", flag_values=FLAGS)
EFFORT = flags.DEFINE_string(
  "effort", "normal", "How much is tried: quick (about three fifths of the work of a normal search), normal, or "
  "thorough (ten times as much or more: what has been found is evolved); counted work, so that a seed fixes the "
  "answer. With --max_time formulas are evolved till then.", flag_values=FLAGS)
SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same answer on one platform.", flag_values=FLAGS)
OUT = flags.DEFINE_string(
  "out", None, "Where to write the results: FILE.json for one file (of several targets FILE-TARGET.json each), "
  "FILE.jsonl with a line for each of many, with --beam a folder. --plot, --report and --animate name their files "
  "likewise.",
  flag_values=FLAGS)
RESUME = flags.DEFINE_bool(
  "resume", False, "Go on with the .jsonl of an interrupted batch: files that have a line are left out.",
  flag_values=FLAGS)
OVERWRITE = flags.DEFINE_bool("overwrite", False, "Replace the file of --out when it exists.", flag_values=FLAGS)
PLOT = flags.DEFINE_string(
  "plot", None, "Where to draw data, formula (the recommended one, or that of --select) and front, of several columns "
  "also the formula over each of them: FILE.png, .pdf or .svg; one data file only.",
  flag_values=FLAGS)
REPORT = flags.DEFINE_string(
  "report", None, "Where to write one page with data, fit, front, constants, what was left out, and the formula (the "
  "recommended one, or that of --select) as code: FILE.html, which needs no network; one data file only.",
  flag_values=FLAGS)
ANIMATE = flags.DEFINE_string(
  "animate", None, "Where to film the eight best candidates on their way through refinement to the data: FILE.gif, or "
  "FILE.mp4 where ffmpeg is installed; one data file only.", flag_values=FLAGS)
DROP_MISSING = flags.DEFINE_bool(
  "drop_missing", False, "Leave out rows with text, missing or infinite values in a used column.", flag_values=FLAGS)
BEAM = flags.DEFINE_bool(
  "beam", False, "Search many files on a cluster, with Apache Beam (extra [beam]): --out is a folder, of this machine "
  "or gs://, s3://, hdfs://, as --data may be; results.jsonl in it has the lines of all files. Arguments after -- are "
  "Beam's, such as -- --runner=DataflowRunner --region=...; by default everything runs here.", flag_values=FLAGS)
BUNDLE = flags.DEFINE_integer(
  "bundle", 16, "With --beam, files that a worker takes at a time; an accelerator searches up to 64 in one call.", 1,
  flag_values=FLAGS)
QUIET = flags.DEFINE_bool("quiet", False, "Print nothing but errors.", flag_values=FLAGS)

# Parameters of `inference.search`, and of rules, whose flags have other names.
_FLAGS_OF = {"n_samples": "samples", "guesses": "guess", "forbidden": "forbid", "required": "require",
             "excluded": "exclude"}


def in_flags(message: str) -> str:
  """A message that begins with a parameter of the search, with the flag that sets it."""
  name, colon, rest = message.partition(": ")
  flag = _FLAGS_OF.get(name, name)
  if flag == "weights" and FLAGS["sigma"].value is not None:  # also in a worker, which has parsed no flags
    flag = "sigma"
  return f"--{flag}: {rest}" if colon and flag in FLAGS else message


# What decides an answer: lines of another setting are no part of a batch that is resumed.
DECISIVE = (
  TARGET, FEATURES, CATEGORIES, DECIMAL, SEPARATOR, SHEET, TIME_UNIT, WEIGHTS, SIGMA, LOSS, DROP_MISSING, MODEL,
  SAMPLES, STRATEGY, TEMPERATURE, TOP_K, REFINE, RECOMBINE, GUESS, TEMPLATE, SEARCH_CONFIG, OPERATORS, ADD_OPERATORS,
  FORBID, REQUIRE, EXCLUDE, MAX_EXPONENT, MAX_DEPTH, UNNESTED, MAX_COMPLEXITY, MAX_SIZES, UNITS,
  DIMENSIONLESS_CONSTANTS, SELECT, ACCURACY, MAX_TIME, EFFORT, SEED)
