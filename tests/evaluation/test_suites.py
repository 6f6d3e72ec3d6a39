"""The table of suites, and the rows it asks for."""

import dataclasses

import pytest

from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import DataError, InputError
from symformer_jax.evaluation import answers, choices, published, suites
from symformer_jax.evaluation.suites import SUITES, Settings, find_suite, make_tasks


@pytest.fixture
def own_file(tmp_path):
  path = tmp_path / "own.csv"
  path.write_text("family,name,n_vars,expression,ranges\nf,a,1,x^2,0:1\nf,b,2,x*y,0:1;0:1\n", encoding="utf-8")
  return str(path)


@pytest.mark.parametrize("name", [n for n, s in SUITES.items() if s.default_list])
def test_every_suite_of_a_list_asks_all_its_rows_per_variant(name):
  tasks = make_tasks(SUITES[name], Settings())
  assert len(tasks) == {"examples": 16, "laws": 36}.get(name, 59) * len(SUITES[name].variants)
  assert len({t.key for t in tasks}) == len(tasks) == len({t.question for t in tasks})


@pytest.mark.parametrize("name", [n for n in SUITES if n not in ("ablation", "sources")])
def test_variants_do_what_their_label_says(name, own_file):
  for task in make_tasks(SUITES[name], Settings(problems=own_file)):
    key, _, value = task.variant.partition("=")
    found = {"noise": task.noise, "points": task.num_points, "samples": task.method.num_samples,
             "refine": task.method.refine, "distance": task.distance, "scale": task.problem.box[0][1],
             "shift": task.problem.box[0][0], "max_time": task.method.max_time}
    if task.variant == "search":
      assert task.method == dataclasses.replace(SUITES[name].method, choice=answers.MOST_ACCURATE)
    else:
      assert task.variant in ("", "as given") or str(found[key]).removesuffix(".0") == value


def test_recombination_is_left_out_where_the_user_says_so(own_file):
  assert all(task.method.recombine for task in make_tasks(SUITES["paper"], Settings()))
  assert not any(task.method.recombine for task in make_tasks(SUITES["noise"], Settings(recombine=False)))


def test_the_users_settings_win_over_the_suite_and_the_variant_over_both(own_file):
  settings = Settings(problems=own_file, num_samples=7, top_k=3, refine="none", max_time=2.0)
  method = make_tasks(SUITES["paper"], settings)[0].method
  assert method == answers.Method(answers.MOST_ACCURATE, 7, 3, "none", 2.0)
  assert {t.method.refine for t in make_tasks(SUITES["in_domain"], settings)} == {"none", "lm"}
  assert {t.method.num_samples for t in make_tasks(SUITES["samples"], settings)} == {16, 64, 256, 1024, 4096, 16384}


def test_the_papers_protocol():
  assert SUITES["in_domain"].method == answers.Method(answers.LOWEST_ERROR, 256, 16, "lm")
  assert SUITES["in_domain"].num_equations == 256
  assert (SUITES["paper"].method.num_samples, SUITES["paper"].method.top_k) == (1024, 20)


def test_lists_seeds_and_counts():
  tasks = make_tasks(SUITES["paper"], Settings(list="reference", num_equations=3, seeds=2))
  assert [t.key for t in tasks][:3] == [("", "Nguyen-1", "0"), ("", "Nguyen-1", "1"), ("", "Nguyen-2", "0")]
  assert len(tasks) == 6
  reference = make_tasks(SUITES["paper"], Settings(list="reference"))
  assert sum(t.problem.num_variables == 1 for t in reference) == 40


def test_the_rows_of_the_papers_ablation():
  asked = {t.variant: (t.encoding, t.method.refine) for t in make_tasks(SUITES["ablation"], Settings(num_equations=1))}
  assert asked == {
    "no constants + BFGS": ("skeleton", "bfgs"), "base": ("base", "none"), "base + gradient": ("base", "gd"),
    "extended": ("extended", "none"), "extended + BFGS init": ("extended", "bfgs"),
    "extended + gradient": ("extended", "gd"), "extended + LM": ("extended", "lm")}
  method = SUITES["ablation"].method
  assert (method.choice, method.num_samples, method.top_k) == (answers.LOWEST_ERROR, 256, 20)
  assert set(published.ABLATION) < set(asked)


def test_noise_of_the_command_line_reaches_the_rows(own_file):
  assert {t.noise for t in make_tasks(suites.PROBLEMS_SUITE, Settings(problems=own_file, noise=0.01))} == {0.01}


@pytest.mark.parametrize(("name", "settings", "message"), [
  ("papers", Settings(), "unknown suite 'papers': expected one of paper, official, .*did you mean 'paper'"),
  (None, Settings(), r"expected --suite \(one of paper, .*\) or --problems"),
  ("paper", Settings(problems="a.csv"), "--suite=paper and --problems=a.csv: expected one of them"),
])
def test_which_suite(name, settings, message):
  with pytest.raises(InputError, match=message):
    find_suite(name, settings)


def test_fresh_equations_ship_and_are_limited():
  tasks = make_tasks(SUITES["in_domain"], Settings(num_equations=1024))
  assert len({task.problem.name for task in tasks}) == 1024
  with pytest.raises(InputError, match="--num_equations=1025: the validation split of .*univariate' has 1024"):
    make_tasks(SUITES["in_domain"], Settings(num_equations=1025))
  with pytest.raises(DataError, match="no validation shards in nowhere"):
    make_tasks(SUITES["in_domain"], Settings(data="nowhere"))


def test_problems_may_be_skipped():
  names = [task.problem.name for task in make_tasks(SUITES["paper"], Settings(list="reference", num_equations=5))]
  some = make_tasks(SUITES["paper"], Settings(list="reference", num_equations=2, skip=3))
  assert [task.problem.name for task in some] == names[3:]
  fresh = make_tasks(SUITES["in_domain"], Settings(num_equations=2, skip=1022))
  assert {task.problem.name for task in fresh} == {"fresh-1023", "fresh-1024"}
  with pytest.raises(InputError, match="--num_equations=2 after 1023: .* has 1024"):
    make_tasks(SUITES["in_domain"], Settings(num_equations=2, skip=1023))
  with pytest.raises(InputError, match="--skip=99: there are 59 problems"):
    make_tasks(SUITES["paper"], Settings(list="reference", skip=99))


def test_the_suite_of_sources_leaves_out_what_its_labels_say(own_file, tmp_path):
  configs = {task.variant: task.method.config for task in make_tasks(SUITES["sources"], Settings(problems=own_file))}
  assert configs["everything"] == DEFAULT and configs["network alone"].sources == ("closed_forms", "transformer")
  for name in (
      "reductions", "partitions", "product_units", "rationals", "quadratics", "short_forms", "oscillations",
      "curves", "two_constants", "wave_fractions", "phases", "exact_fractions", "function_fractions",
      "linked_fractions", "transcendental_fractions", "enumeration", "transformer", "single_index", "separable",
      "library", "subsets", "varying", "ridges", "subsets_inside", "parts", "growth", "remainders", "replacements",
      "evolution", "inner_pairs", "exact_factors", "curve_fits", "fraction_pursuit"):
    assert set(DEFAULT.sources) - set(configs[f"without {name}"].sources) == {name}
  assert "waves" not in configs["without library waves"].library.families
  assert set(DEFAULT.terms.links) - set(configs["without terms exp"].terms.links) == {"exp"}
  families = [*DEFAULT.library.families, *DEFAULT.products.families, *DEFAULT.terms.links]
  assert len(set(configs.values())) == len(configs) == 35 + len(families) - 1  # y itself stays

  # What a search config changes is changed in every variant.
  path = tmp_path / "few.py"
  path.write_text("def get_config(): return {'terms': {'num_fitted': 7}}")
  tasks = make_tasks(SUITES["sources"], Settings(problems=own_file, search_config=str(path)))
  assert {task.method.config.terms.num_fitted for task in tasks} == {7}


def test_the_flag_names_every_suite():
  assert choices.SUITES == suites.NAMES


def test_every_time_is_asked_of_every_system(own_file):
  settings = Settings(problems=own_file, baseline=("operon",), max_time=5.0)  # which the suite's times win over
  tasks = make_tasks(SUITES["anytime"], settings)
  times = [1, 3, 10, 30, 100, 300]
  assert [t.variant for t in tasks[::2]] == [f"{who}max_time={t}" for who in ("", "operon ") for t in times]
  assert [t.method.max_time for t in tasks[::2]] == [*times, *times]
  assert len({t.key for t in tasks}) == len(tasks) == 2 * 2 * 6
