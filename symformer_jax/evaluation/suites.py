"""THE table of suites: which problems are asked, in which variants, by which method."""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import difflib

from symformer_jax.commands.search_config import load_search_config
from symformer_jax.engine.config import DEFAULT, SearchConfig
from symformer_jax.errors import InputError
from symformer_jax.evaluation import problems as problems_lib
from symformer_jax.evaluation.answers import LOWEST_ERROR, MOST_ACCURATE, RECOMMENDED, Method
from symformer_jax.evaluation.problems import Problem


@dataclasses.dataclass(frozen=True)
class Settings:
  """What the user asked for; None leaves a suite its default.

  Attributes:
    list: one of `problems.LISTS`.
    problems: a problem file; then `list` is not read.
    data: a generated data set, whose validation split gives fresh equations; None for those that ship.
    variables: of the fresh equations that ship: 1 or 2.
    num_equations: fresh equations, or rows of a list.
    skip: those before the first that is asked.
    num_samples, top_k, refine, max_time, recombine: see `answers.Method`.
    search_config: `FILE` or `FILE:NAME`, what steers the search; suites that compare configs start from it.
    noise: standard deviation of the noise on y, relative to its RMS.
    seeds: each problem is asked so many times, with different points and samples.
    baseline: other systems that are asked the same (see `peers.PEERS`).
    predictions: a file of formulas, for the baseline `file`.
    max_abs_value: largest size of a value of the truth; points of larger ones are left out.
  """

  list: str | None = None
  problems: str | None = None
  data: str | None = None
  variables: int = 1
  num_equations: int | None = None
  skip: int = 0
  num_samples: int | None = None
  top_k: int | None = None
  refine: str | None = None
  max_time: float | None = None
  recombine: bool | None = None
  search_config: str | None = None
  noise: float | None = None
  seeds: int = 1
  baseline: tuple[str, ...] = ()
  predictions: str | None = None
  max_abs_value: float | None = None


@dataclasses.dataclass(frozen=True)
class Task:
  """One row of results.

  Attributes:
    variant: what distinguishes this row from others of the same problem, as in `noise=0.01`; may be empty.
    problem: where its points come from.
    method: how it is answered.
    seed: of the points, the noise and the samples.
    noise: see `Settings`; scoring points carry none.
    num_points: training points; the problem's own number when None.
    distance: when given, scoring points lie outside the box, at most so far from it.
    encoding: when given, the encoding of constants that the model must have been trained with.
  """

  variant: str
  problem: Problem
  method: Method
  seed: int
  noise: float = 0.0
  num_points: int | None = None
  distance: float | None = None
  encoding: str | None = None

  @property
  def key(self) -> tuple[str, str, str]:
    """What identifies a row of a results file."""
    return self.variant, self.problem.name, str(self.seed)

  @property
  def question(self) -> "Task":
    """The task without what concerns scoring alone: equal questions have equal answers."""
    return dataclasses.replace(self, variant="", distance=None)


Variant = tuple[str, dict]
_TASK_FIELDS = ("noise", "num_points", "distance", "encoding")


@dataclasses.dataclass(frozen=True)
class Suite:
  """One row of the table.

  Attributes:
    title: the question, for the report's heading.
    default_list: the list of problems, or None for fresh equations.
    num_equations: how many by default; None for all. Chosen so that a suite takes less than an hour on 2 cores.
    method: how they are answered.
    variants: `(label, changes)`; changes are fields of `Task` or `Method`, or `problem` or `config`, a function of it.
  """

  title: str
  default_list: str | None
  num_equations: int | None
  method: Method
  variants: Sequence[Variant] = (("", {}),)


def _without_source(name: str) -> Callable[[SearchConfig], SearchConfig]:
  return lambda config: dataclasses.replace(config, sources=tuple(s for s in config.sources if s != name))


def _only_sources(*names: str) -> Callable[[SearchConfig], SearchConfig]:
  return lambda config: dataclasses.replace(config, sources=names)


def _without_family(part: str, field: str, name: str) -> Callable[[SearchConfig], SearchConfig]:
  """The config without one name of a field of a part of it."""
  def change(config: SearchConfig) -> SearchConfig:
    changed = getattr(config, part)
    names = tuple(other for other in getattr(changed, field) if other != name)
    return dataclasses.replace(config, **{part: dataclasses.replace(changed, **{field: names})})
  return change


# Parts of the search that can be left out, each named in a field of the config.
_FAMILIES = tuple(
  (part, field, name) for part, field in (("library", "families"), ("products", "families"), ("terms", "links"))
  for name in getattr(getattr(DEFAULT, part), field) if name != "y")


def _moved(**change: float) -> Callable[[Problem], Problem]:
  return lambda problem: problems_lib.move_box(problem, **change)


SUITES: dict[str, Suite] = {
  "paper": Suite(
    "The paper's benchmark functions, points drawn as in training", "paper", None, Method(MOST_ACCURATE)),
  "official": Suite(
    "The benchmark functions on the ranges and numbers of points of their authors", "official", None,
    Method(MOST_ACCURATE)),
  "in_domain": Suite(
    "Fresh equations of the generator, by the paper's protocol and by the whole search", None, 256,
    Method(LOWEST_ERROR, 256, 16),
    (("refine=none", {"refine": "none"}), ("refine=lm", {"refine": "lm"}),
     ("search", {"refine": "lm", "choice": MOST_ACCURATE}))),
  "out_of_domain": Suite(
    "Fresh equations, judged outside the sampled box up to a distance", None, 1024, Method(LOWEST_ERROR, 256, 20),
    tuple((f"distance={d}", {"distance": float(d)}) for d in (1, 2, 5, 10, 20))),
  "ablation": Suite(
    "Encodings of constants and ways to fit them (the paper's ablation)", None, 256, Method(LOWEST_ERROR, 256, 20), (
      ("no constants + BFGS", {"encoding": "skeleton", "refine": "bfgs"}),
      ("base", {"encoding": "base", "refine": "none"}),
      ("base + gradient", {"encoding": "base", "refine": "gd"}),
      ("extended", {"encoding": "extended", "refine": "none"}),
      ("extended + BFGS init", {"encoding": "extended", "refine": "bfgs"}),
      ("extended + gradient", {"encoding": "extended", "refine": "gd"}),
      ("extended + LM", {"encoding": "extended", "refine": "lm"}))),
  "examples": Suite(
    "The sixteen formulas pictured in the paper", "examples", None, Method(RECOMMENDED, 256, 20)),
  "laws": Suite(
    "Textbook laws, their constants as they come, on the ranges they are measured on", "laws", None,
    Method(RECOMMENDED),
    (("noise=0", {"noise": 0.0}), ("noise=0.01", {"noise": 0.01}))),
  "samples": Suite(
    "How the number of samples counts, without refinement", None, 64, Method(LOWEST_ERROR, 256, 20, "none"),
    tuple((f"samples={n}", {"num_samples": n}) for n in (16, 64, 256, 1024, 4096, 16384))),
  "noise": Suite(
    "Noise on the target, relative to its RMS; scored on clean values", "reference", None,
    Method(RECOMMENDED, 256),
    tuple((f"noise={level:g}", {"noise": level}) for level in (0.0, 0.001, 0.01, 0.1))),
  "sources": Suite(
    "What each source of a normal search and each family of columns is worth: the same problems without it", None, 32,
    Method(RECOMMENDED), (
      ("everything", {}), ("network alone", {"config": _only_sources("closed_forms", "transformer")}),
      *((f"without {name}", {"config": _without_source(name)}) for name in DEFAULT.sources
        if name not in ("closed_forms", "guesses", *DEFAULT.budget.normal_without)),
      *((f"without {part} {name}", {"config": _without_family(part, field, name)})
        for part, field, name in _FAMILIES))),
  "anytime": Suite(
    "What more time finds: the same problems with so many seconds each", None, 32, Method(RECOMMENDED),
    tuple((f"max_time={seconds}", {"max_time": float(seconds)}) for seconds in (1, 3, 10, 30, 100, 300))),
  "points": Suite(
    "How the number of points counts", "reference", None, Method(RECOMMENDED, 256),
    tuple((f"points={n}", {"num_points": n}) for n in (16, 32, 64, 100, 256, 1000))),
  "ranges": Suite(
    "The same functions in other units: boxes scaled and shifted", "reference", None, Method(RECOMMENDED, 256),
    (("as given", {}), ("scale=10", {"problem": _moved(scale=10.0)}), ("scale=100", {"problem": _moved(scale=100.0)}),
     ("shift=10", {"problem": _moved(shift=10.0)}), ("shift=100", {"problem": _moved(shift=100.0)}))),
}
PROBLEMS_SUITE = Suite("The problems of a file", None, None, Method(RECOMMENDED))
# Data without a true formula: `real_runs` asks and judges them.
REAL = "real"
NAMES = (*SUITES, REAL)


def find_suite(name: str | None, settings: Settings) -> Suite:
  """The suite by name, or that of `settings.problems`.

  Raises:
    InputError: unknown name (says which exist), none or two ways to name the problems.
  """
  if settings.problems is not None:
    if name is not None:
      raise InputError(f"--suite={name} and --problems={settings.problems}: expected one of them")
    return PROBLEMS_SUITE
  if name is None:
    raise InputError(f"expected --suite (one of {', '.join(NAMES)}) or --problems")
  if name not in SUITES:
    close = difflib.get_close_matches(name, NAMES)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(f"unknown suite {name!r}: expected one of {', '.join(NAMES)}{hint}")
  return SUITES[name]


def make_tasks(suite: Suite, settings: Settings) -> list[Task]:
  """All rows of a suite, variant by variant.

  Raises:
    InputError: for settings that do not suit; DataError for unusable data.
  """
  problems = _problems(suite, settings)
  tasks = [task for label, changes in suite.variants
           for task in _variant_tasks(suite, settings, problems, label, dict(changes))]
  return tasks + [task for peer in settings.baseline for task in _peer_tasks(tasks, suite, peer)]


def _peer_tasks(tasks: Sequence[Task], suite: Suite, peer: str) -> list[Task]:
  """The same questions for a peer; variants that differ in the model's own method are one to it, but for time."""
  methods = {field.name for field in dataclasses.fields(Method)} - {"max_time"} | {"encoding"}  # `config` among them
  own = {label for label, changes in suite.variants if set(changes) <= methods}
  found = [dataclasses.replace(
    task, variant=" ".join(filter(None, (peer, "" if task.variant in own else task.variant))),
    method=Method(peer=peer, max_time=task.method.max_time), encoding=None) for task in tasks]
  return list(dict.fromkeys(found))


def _problems(suite: Suite, settings: Settings) -> list[Problem]:
  count = settings.num_equations or suite.num_equations
  end = None if count is None else settings.skip + count
  if settings.problems is not None:
    problems = problems_lib.read_problems(settings.problems)
  elif name := settings.list or suite.default_list:
    problems = problems_lib.load_list(name)
  else:
    directory = settings.data or problems_lib.FRESH_EQUATIONS[settings.variables]
    assert end is not None, "a suite of fresh equations says how many"
    problems = problems_lib.load_equations(directory, num_equations=end)
    if len(problems) < end and settings.num_equations is not None:
      skipped = f" after {settings.skip}" if settings.skip else ""
      raise InputError(f"--num_equations={count}{skipped}: the validation split of {str(directory)!r} has "
                       f"{len(problems)}")
  if settings.skip >= len(problems):
    raise InputError(f"--skip={settings.skip}: there are {len(problems)} problems")
  problems = problems[settings.skip : end]
  if settings.max_abs_value is not None:
    problems = [dataclasses.replace(problem, largest=settings.max_abs_value) for problem in problems]
  return problems


def search_config(spec: str | None) -> SearchConfig:
  """The config that `FILE` or `FILE:NAME` names, the default one without a name."""
  return DEFAULT if spec is None else load_search_config(spec)


def _variant_tasks(
  suite: Suite, settings: Settings, problems: Sequence[Problem], label: str, changes: dict
) -> Iterator[Task]:
  """The user's settings win over the suite's method, the variant over both: it is what is asked."""
  change_problem = changes.pop("problem", lambda problem: problem)
  change_config = changes.pop("config", lambda config: config)
  fields = {"noise": settings.noise or 0.0, **{k: v for k, v in changes.items() if k in _TASK_FIELDS}}
  asked = {name: getattr(settings, name) for name in ("num_samples", "top_k", "refine", "max_time", "recombine")}
  asked = {name: value for name, value in asked.items() if value is not None}
  of_method = {k: v for k, v in changes.items() if k not in _TASK_FIELDS}
  config = change_config(search_config(settings.search_config))
  method = dataclasses.replace(suite.method, **{**asked, **of_method}, config=config)
  for problem in problems:
    for seed in range(settings.seeds):
      yield Task(label, change_problem(problem), method, seed, **fields)
