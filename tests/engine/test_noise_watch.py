"""When a search ends because what a formula leaves looks like noise: the statistic, and the watch over a pool."""

import dataclasses

import jax
import numpy as np
import pytest

from symformer_jax import results
from symformer_jax.engine import loop, noise
from symformer_jax.engine.config import DEFAULT
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.pool import Candidate, Pool
from symformer_jax.engine.source import Proposal
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser


@pytest.mark.parametrize("num_columns", [1, 3])
@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy", "standard_exponential"])
@pytest.mark.parametrize("is_even", [True, False])
def test_noise_seldom_looks_like_more(num_columns, draw, is_even):
  """It need not be normal, nor everywhere as large: only without order."""
  rng = np.random.default_rng(3)
  found = []
  for _ in range(400):
    x = rng.normal(size=(80, num_columns))
    errors = getattr(rng, draw)(80) * (1 if draw != "standard_exponential" else rng.choice([-1, 1], 80))
    errors *= 1 if is_even else np.exp(x[:, 0])
    found.append(noise.looks_like_noise(errors, x, range(num_columns), chance=0.1))
  assert 0.83 < np.mean(found) < 0.99


def test_what_a_formula_leaves_is_seen_and_its_constants_are_counted():
  rng = np.random.default_rng(0)
  x = rng.uniform(0, 6, (100, 1))
  rest = 0.8 * np.sin(x[:, 0]) + rng.normal(size=100)
  [alone], [beside] = noise.smoothness(rest, x), noise.smoothness(rest, x, num_constants=10)
  assert 2.5 < alone < beside - 0.5
  assert not noise.looks_like_noise(rest, x, [0])
  rest[7] = 1e6  # an outlier hides nothing
  assert not noise.looks_like_noise(rest, x, [0])


def test_constants_take_from_what_neighbours_share():
  """Of noise to which a line of eight harmonics was fitted the statistic, corrected, has mean 0."""
  rng, x = np.random.default_rng(5), np.linspace(0, 1, 100)[:, None]
  design = np.concatenate([np.cos(np.pi * np.arange(8) * x)], axis=1)
  found = [[], []]
  for _ in range(300):
    y = rng.normal(size=100)
    errors = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    for kept, count in zip(found, (0, 8), strict=True):
      kept += noise.smoothness(errors, x, num_constants=count)
  assert np.mean(found[0]) < -0.6 and abs(np.mean(found[1])) < 0.2


def test_what_depends_on_two_columns_together_is_seen_by_the_nearest_rows():
  rng = np.random.default_rng(0)
  x = rng.uniform(-1, 1, (300, 2))
  found = noise.smoothness(x[:, 0] * x[:, 1], x)
  assert max(found[:2]) < 3 < 9 < found[2]


def test_columns_that_do_not_count_and_equal_rows_are_no_neighbours_of_themselves():
  rng = np.random.default_rng(0)
  x = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)  # each row twice
  errors = np.tile([1.0, -1.0], 20)
  assert max(noise.smoothness(errors, x)) < 0  # all pairs are of opposite signs
  assert noise.smoothness(np.zeros(40), x) == [0.0] * 3
  smooth = x[:, 0] + rng.normal(size=40)
  assert not noise.looks_like_noise(x[:, 0], x, [0]) and noise.looks_like_noise(smooth - x[:, 0], x, [1])
  assert not noise.looks_like_noise(np.where(np.arange(40) == 3, np.inf, errors), x, [0])


def test_rows_that_are_equal_in_a_column_tell_nothing_by_their_order_in_the_table():
  """Of a table in the order of y, neighbours among rows of the same x would be alike."""
  rng = np.random.default_rng(6)
  x = np.repeat(np.arange(5.0), 40)
  y = x + rng.normal(size=200)
  order = np.lexsort((y, x))
  assert np.all(np.diff(y[order].reshape(5, 40)) >= 0)
  for columns in (x[order][:, None], np.stack([x[order], x[order]], axis=1)):
    assert noise.looks_like_noise((y - x)[order], columns, range(columns.shape[1]))
  assert not noise.looks_like_noise(y[order], x[order][:, None], [0])


def test_the_watch_sees_a_short_formula_that_describes_the_data_in_a_few_nats_more():
  """A straight line of R2 .4 is no shorter description than the mean by four nats a node, and what is left is noise."""
  rng = np.random.default_rng(1)
  x = np.linspace(0, 1, 46)[:, None]
  y = 2.8 * x[:, 0] + rng.normal(size=46)
  mean, slope = float(np.mean(y)), np.polyfit(x[:, 0], y, 1)
  line = f"{slope[0]}*x0 + {slope[1]}"
  watch, pool = watch_of(y, x, [f"{mean}", line])
  assert not watch.has_stalled(pool) and is_met(watch, pool)
  assert watch.best.node == parser.parse(f"{mean}", ("x0",)) and len(watch.others) == 1
  assert not noise.looks_like_noise(mean - y, x, [0])
  for change in ({"near": 1e-3}, {"short": 1}):
    strict = noise.NoiseWatch(make_task((x, y), None, SearchOptions()), dataclasses.replace(DEFAULT.noise, **change))
    assert not strict.has_stalled(pool) and strict.has_stalled(pool) and not strict.leaves_noise()
  many = [f"{slope[0]}*x0 + {slope[1] + k / 1e3}" for k in range(20)]
  watch, pool = watch_of(y, x, [f"{mean}", *many])
  watch.has_stalled(pool)
  assert len(watch.others) == DEFAULT.noise.num_others


def test_where_no_column_counts_there_are_no_neighbours():
  assert noise.looks_like_noise(np.arange(40.0), np.zeros((40, 2)), [])


def watch_of(y, x, texts):
  """A watch, and a pool that holds a task's formulas."""
  task = make_task((x, y), None, SearchOptions())
  pool = Pool(task.variance, len(task.fit_rows))
  for text in texts:
    node = parser.parse(text, task.names)
    pool.insert([Candidate(node, float(np.mean((parser_values(node, x) - y) ** 2)))])
  return noise.NoiseWatch(task), pool


def is_met(watch, pool):
  return watch.has_stalled(pool) and watch.leaves_noise()


def parser_values(node, x):
  from symformer_jax.language import expression

  return expression.evaluate(node, x)


def test_the_watch_waits_for_a_turn_without_gain_and_for_noise():
  rng = np.random.default_rng(1)
  x = rng.uniform(0.5, 4, (120, 1))
  law = 2 * np.sin(3 * x[:, 0])
  y = law + 0.1 * rng.normal(size=120)
  watch, pool = watch_of(y, x, ["2*sin(3*x0)"])
  assert not is_met(watch, pool)  # the turn that found it
  assert is_met(watch, pool)
  pool.insert([Candidate(parser.parse("1.999*sin(3*x0)", ("x0",)), pool.best.mse * 0.999)])
  assert is_met(watch, pool)  # less than a nat
  watch, pool = watch_of(y, x, ["0.5*x0"])
  assert not is_met(watch, pool) and not is_met(watch, pool)  # a wave is left


def test_the_shortest_description_is_watched_not_the_least_error():
  rng = np.random.default_rng(1)
  x = rng.uniform(0.5, 4, (60, 1))
  y = 2 * x[:, 0] + 0.1 * rng.normal(size=60)
  watch, pool = watch_of(y, x, ["2*x0"])
  is_met(watch, pool)
  long = "2*x0 + 0.001*sin(3.1*x0) + 0.001*sin(4.7*x0) + 0.002*cos(7.7*x0)"
  pool.insert([Candidate(parser.parse(long, ("x0",)), pool.best.mse * 0.95)])
  assert is_met(watch, pool)


def test_who_asked_for_more_is_given_it():
  config = DEFAULT.noise
  assert "thorough" not in config.efforts
  with pytest.raises(ValueError, match="efforts"):
    dataclasses.replace(config, efforts=("slow",))


@pytest.mark.parametrize(("num", "share", "expected"), [(14, 0.11, True), (15, 0.11, False), (14, 0.09, False)])
def test_few_rows_that_differ_and_are_poorly_explained_leave_doubt(num, share, expected):
  x = np.repeat(np.linspace(0, 1, num), 3)
  task = make_task((x, x**2), None, SearchOptions())
  watch = noise.NoiseWatch(task)
  assert watch.is_in_doubt is (num < 15)  # nothing has been found
  watch.best = Candidate(parser.parse("x0", ("x0",)), share * task.variance)
  assert watch.is_in_doubt is expected


@pytest.mark.parametrize(("num", "share", "text", "expected"), [
  (60, 9.9e-4, "x0**2 + 2.5*x0 + sin(x0)", True), (59, 9.9e-4, "x0**2 + 2.5*x0 + sin(x0)", False),
  (60, 1.1e-3, "x0**2 + 2.5*x0 + sin(x0)", False), (60, 9.9e-4, "x0**2 + 2.5*x0 + sin(1/x0)", False),
])
def test_short_formulas_that_explain_nearly_all_of_many_rows_may_be_clear(num, share, text, expected):
  x = np.repeat(np.linspace(0, 1, num), 2)
  task = make_task((x, x**2), None, SearchOptions())
  watch = noise.NoiseWatch(task)
  assert not watch.may_be_clear and not watch.best_leaves_noise()  # nothing has been found
  node = parser.parse(text, ("x0",))
  assert expression.complexity(node) in (10, 11)
  watch.best = Candidate(node, share * task.variance)
  assert watch.may_be_clear is expected


def test_what_is_clear_is_judged_by_its_own_errors():
  rng = np.random.default_rng(1)
  x = rng.uniform(0.5, 4, (120, 1))
  y = 2 * np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=120)
  watch, pool = watch_of(y, x, ["2*sin(3*x0)"])
  watch.look(pool)
  assert watch.best_leaves_noise()
  watch.others = (watch.best,)
  watch.best = Candidate(parser.parse("0.5*x0", ("x0",)), 1.0)
  assert watch.leaves_noise() and not watch.best_leaves_noise()


def test_a_search_that_finds_no_more_ends_where_the_nearest_leaves_noise():
  """Among many rows a weak bend is more than chance, and pays for no node."""
  rng = np.random.default_rng(4)
  x = np.linspace(0, 1, 200)
  y = x + 0.24 * np.sin(14 * x) + 0.3 * rng.normal(size=200)
  line, waves = "1.0*x0", "1.0*x0 + 0.24*sin(14*x0) + 0.001*exp(x0)/(x0 + 2)"
  asked = [name for name, turns in DEFAULT.noise.asked_if_long for _ in range(turns)]
  short_of = dataclasses.replace(DEFAULT, noise=dataclasses.replace(DEFAULT.noise, near=1e-9))
  assert watched_turns(x, y, (line, waves), asked, short_of) == (results.NOISE, len(asked))  # not before all of them
  assert watched_turns(x, y, (line,), asked, short_of) == ("", len(asked))  # a bend is left
  assert watched_turns(x, x + 2 * np.sin(14 * x), (line, waves), asked, short_of) == ("", len(asked))
  small = x + 0.08 * (y - x)  # noise is less than a hundredth of y's variance
  assert watched_turns(x, small, (line, "1.0*x0 + 0.0192*sin(14*x0) + 0.0001*exp(x0)/(x0 + 2)"), asked, short_of) == (
    "", len(asked))


def watched_turns(x, y, texts, asked, config):
  """How a search ends in which every turn finds the same formulas, and after how many turns; no constant is fitted."""
  options = SearchOptions(config=config, refine="none")
  task = make_task((x, y), None, options)
  search = loop.Search(task, [], options, jax.random.key(0))
  search.states |= dict.fromkeys(asked)  # they have more to say
  nodes = [parser.parse(text, task.names) for text in texts]
  made = tuple(Candidate(node, float(np.mean((parser_values(node, x[:, None]) - y) ** 2))) for node in nodes)
  for name in asked:
    if not search.ended_by:
      search.close_turn(Named(name), Proposal(candidates=made, state=()), [], 0.0)
  return search.ended_by, len(search.progress)


def test_a_fit_that_has_not_ended_is_none_of_the_data(monkeypatch):
  """A network's formula comes with the constants of a fit in single precision and of few steps."""
  rng = np.random.default_rng(2)
  x = np.linspace(0.3, 5, 80)
  y = 2.5 * np.exp(-0.7 * x) + 0.3 + 0.01 * rng.normal(size=80)
  found = {}
  for method in ("lm", "none"):
    options = SearchOptions(refine=method)
    task = make_task((x, y), None, options)
    search = loop.Search(task, [], options, jax.random.key(0))
    node = parser.parse("2.4*exp(-0.65*x0) + 0.29", task.names)
    mse = float(np.mean((parser_values(node, x[:, None]) - y) ** 2))
    for _ in range(2):
      search.close_turn(Named("library"), Proposal(candidates=(Candidate(node, mse),)), [], 0.0)
    found[method] = search.ended_by
    assert (search.pool.best.mse < 1.1e-4 < 5e-4 < mse) is (method == "lm")
  assert found == {"lm": results.NOISE, "none": ""}
  # What has been fitted to its end is not fitted again.
  asked = []
  monkeypatch.setattr(loop, "_fit", lambda *rest: asked.append(rest) or [[Candidate(node, mse)]])
  search = loop.Search(task, [], SearchOptions(), jax.random.key(0))
  for _ in range(3):
    search.close_turn(Named("library"), Proposal(candidates=(Candidate(node, mse),)), [], 0.0)
  assert len(asked) == 1 and search.ended_by == ""


@dataclasses.dataclass(frozen=True)
class Named:
  """A source of which the name is all that counts."""

  name: str
