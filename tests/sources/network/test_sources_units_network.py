"""Parts of the network as a source by themselves: views, samples that differ, blocks, turns, what comes back.

In the network's place stands a double that proposes what it is given; in that of the fit one that says what it was
asked.
"""

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from symformer_jax import compilation, testing
from symformer_jax.decoding import sampling
from symformer_jax.engine import rescale
from symformer_jax.engine.clock import Clock
from symformer_jax.engine.config import DEFAULT, SOURCES as NAMES_OF_SOURCES
from symformer_jax.engine.options import SearchOptions
from symformer_jax.engine.rows import Rows
from symformer_jax.engine.source import Question
from symformer_jax.engine.task import make_task
from symformer_jax.language import expression, parser
from symformer_jax.language.canonical import canonicalize
from symformer_jax.language.rules import Restrictions
from symformer_jax.language.vocabulary import Vocabulary
from symformer_jax.refinement import solve
from symformer_jax.results import Counts
from symformer_jax.sources import registry
from symformer_jax.sources.network import samples, transformer
from symformer_jax.sources.network.samples import Samples, View

VOCAB = Vocabulary(2)
LENGTH = 12


def parse(text):
  return parser.parse(text, ("x0", "x1"))


def encoded(*texts):
  """`(ids [K, L], values [K, L])` of formulas."""
  ids, values = np.zeros((len(texts), LENGTH), np.int32), np.zeros((len(texts), LENGTH), np.float32)
  for k, text in enumerate(texts):
    tokens, mantissas = expression.encode(parse(text), VOCAB)
    ids[k, : len(tokens)] = tokens
    values[k, : len(tokens)] = np.asarray(mantissas) * np.array(VOCAB.constant_scale)[tokens]
  return ids, values


# --- samples ---------------------------------------------------------------------------------------------------------


def test_tokens_before_the_padding():
  ids, _ = encoded("x0", "x0 + x1*x0")
  assert [samples.token_count(each) for each in ids] == [1, 5]
  assert samples.token_count(np.array([3, 4, 0, 5, 0])) == 2 and samples.token_count(np.zeros(3, int)) == 0


def test_valid_samples_are_whole_and_within_the_rules():
  ids, values = encoded("x0 + 2.5", "sin(x0)", "x1", "sin(x0)")
  ids[2] = 0  # no formula
  asked = []

  def rule(node):
    asked.append(node)
    return node.token != "sin"
  assert samples._valid(ids, values, VOCAB, rule) == [0]
  assert len(asked) == 2  # each string once
  ids, values = encoded("x0", "x0", "x1")
  assert samples._valid(ids, values, VOCAB, lambda node: True) == [0, 1, 2]


def test_of_each_string_the_first_few_of_different_constants():
  ids, values = encoded(*[f"{c}*x0" for c in (1.5, 2.5, 1.5, 3.5, 4.5)], "x1", "x1")
  assert samples._distinct(ids, values, range(7), 2) == [0, 1, 5]
  assert samples._distinct(ids, values, range(7), 9) == [0, 1, 3, 4, 5]
  assert samples._distinct(ids, values, [3, 2, 0, 6], 2) == [3, 2, 6]


@pytest.fixture(scope="module")
def different():
  """Which of some formulas are kept, on points or by a config of their own: one block, compiled once."""
  def of(texts, x=None, **changes):
    ids, values = encoded(*texts)
    x = np.random.default_rng(0).uniform(0.5, 3, (40, 2)).astype(np.float32) if x is None else x
    config = dataclasses.replace(DEFAULT.transformer, **changes)
    kept = samples._different_in_value(ids, values, list(range(len(texts))), x, VOCAB, config)
    return [texts[i] for i in kept]
  return of


def test_of_samples_equal_in_value_the_shortest_and_the_first(different):
  assert different(["x0*x0*x0", "x0**3", "x0 + x1", "x1 + x0", "x0*x1"]) == ["x0**3", "x0 + x1", "x0*x1"]
  # Another number of constants is another family.
  assert len(different(["2.5*x0", "1.3*x0 + 1.2*x0"])) == 2
  # What is undefined somewhere is left to the fit.
  assert different(["log(x0 - 1)", "log(x0 - 1)*1", "x0"])[-1] == "x0"
  assert len(different(["sqrt(x0 - 2)", "sqrt(x0 - 2)", "x0"])) == 3
  assert different(["x0"]) == ["x0"]


def test_values_agree_in_so_many_digits_of_the_largest_at_so_many_points(different):
  x = np.column_stack([np.linspace(1, 2, 31), np.linspace(1, 2, 31)]).astype(np.float32)
  near, far = "2.5*x0", "2.50004*x0"
  assert len(different([near, far], x, value_digits=3)) == 1 and len(different([near, far], x, value_digits=7)) == 2
  assert len(different([near, "2.5*x1"], x)) == 1 and len(different([near, "5.5*x0"], x)) == 2
  # Of functions that differ in a factor the logarithms agree in a digit less.
  assert len(different([near, "2.4995*x0"], x, value_digits=5)) == 2
  assert len(different([near, "2.4995*x0"], x, value_digits=4)) == 1
  # The first row and the last are among the points.
  for place in (0, -1):
    bent = x.copy()
    bent[place, 1] = 1.7
    assert len(different([near, "2.5*x1"], bent, value_points=4)) == 2
  bent = x.copy()
  bent[5, 1] = 1.9
  assert len(different([near, "2.5*x1"], bent, value_points=4)) == 1  # rows 0, 10, 20, 30
  assert len(different([near, "2.5*x1"], bent, value_points=31)) == 2
  bent = np.ones((31, 2), np.float32)
  bent[3] = 1e-9, -1e-9
  assert len(different(["x0", "x1"], bent, value_points=31)) == 1  # -0 is 0
  zero = np.zeros((31, 2), np.float32)
  assert len(different(["x0", "x1", "x0*x1"], zero)) == 1


def test_candidates_go_in_blocks_padded_by_the_program_0(monkeypatch):
  monkeypatch.setattr(compilation, "candidate_buckets", lambda: (2, 4))
  ids, values = encoded("x0", "x1", "x0*x1", "2.5*x0", "sin(x1)", "x0 + x1", "exp(x0)")
  found = list(samples._blocks(ids, values, VOCAB, np.arange(7, dtype=np.int32)))
  assert [size for size, *_ in found] == [4, 3] and [len(each[1]) for each in found] == [4, 4]
  (_, first, first_values, of_first), (_, second, second_values, of_second) = found
  np.testing.assert_array_equal(np.concatenate([first, second[:3]]), ids)
  np.testing.assert_array_equal(np.concatenate([first_values, second_values[:3]]), values)
  assert of_first.tolist() == [0, 1, 2, 3] and of_second.tolist() == [4, 5, 6, 0]
  assert second[3].tolist() == [VOCAB.zero_id] + [0] * (LENGTH - 1) and not second_values[3].any()
  [(size, few, *_, dataset)] = samples._blocks(ids[:1], values[:1], VOCAB)
  assert size == 1 and len(few) == 2 and dataset.tolist() == [0, 0]


def rows_of(rng, num=8, padding=0):
  x = rng.uniform(0.5, 3, (num, 1))
  return Rows(x, rng.normal(size=num), np.where(np.arange(num) < num - padding, 0.5, 0.0))


def views_of(rng, *rules):
  return [View(rows_of(rng, padding=3), rows_of(rng), jax.random.key(k), rule) for k, rule in enumerate(rules)]


@pytest.fixture
def fits(monkeypatch):
  """What a fit of constants was asked for; the constants grow by one, the losses are the numbers of the data sets."""
  asked = []

  def fit_candidates(ids, values, x, y, weights, *, vocab, method, dataset, is_persistent):
    asked.append(SimpleNamespace(ids=ids, values=values, x=x, y=y, weights=weights, method=method, dataset=dataset))
    assert is_persistent and vocab is VOCAB_OF[0] and dataset.dtype == np.int32
    return values + 1, SimpleNamespace(loss=dataset + 0.5)
  monkeypatch.setattr(solve, "fit_candidates", fit_candidates)
  return asked


VOCAB_OF = [None]


def test_samples_of_every_view_are_fitted_to_its_own_rows(rng, fits, monkeypatch):
  monkeypatch.setattr(compilation, "dataset_buckets", lambda: (1, 4))
  model = testing.FixedProposer(["x0*x1", "2.5*x0", "sin(x0)"], num_variables=2, max_length=LENGTH, noise=0.0)
  VOCAB_OF[0] = model.vocab
  views = views_of(rng, lambda node: True, lambda node: False, lambda node: node.token != "sin")
  found = samples.sample_and_fit_all(model, views, num_samples=6, top_k=1, refine="lm", clock=Clock())
  assert [counts for _, counts in found] == [Counts(6, 6, 3, 3), Counts(6, 0, 0, 0), Counts(6, 4, 2, 2)]
  [asked] = fits
  assert asked.method == "lm" and asked.x.shape == (4, 8, 2) and asked.dataset[:5].tolist() == [0, 0, 0, 2, 2]
  assert asked.x.dtype == asked.y.dtype == asked.weights.dtype == np.float32
  for k, view in enumerate([*views, views[-1]]):  # the last stands for those that are added
    np.testing.assert_allclose(asked.x[k], np.pad(view.rows.x, ((0, 0), (0, 1))), rtol=1e-6)
    np.testing.assert_allclose(asked.y[k], view.rows.y, rtol=1e-6)
    np.testing.assert_allclose(asked.weights[k], view.rows.weights)
  assert [len(each.ids) for each, _ in found] == [3, 0, 2]
  assert found[0][0].loss.tolist() == [0.5] * 3 and found[2][0].loss.tolist() == [2.5] * 2
  assert found[2][0].node(1) == parse("3.5*x0") and found[0][0].node(0) == parse("x0*x1")
  nothing = samples.sample_and_fit_all(model, views[1:2], num_samples=6, top_k=1, refine="lm", clock=Clock())
  assert len(nothing) == 1 and len(nothing[0][0].loss) == 0 and nothing[0][1] == Counts(6, 0, 0, 0) and len(fits) == 1


def test_a_model_is_shown_the_bag_and_each_view_has_its_own_key(rng, fits):
  asked = []

  class Model(testing.FixedProposer):
    def propose(self, points, is_valid, key, *, num_samples, top_k):
      asked.append((points, is_valid, jax.random.key_data(key).tolist(), num_samples, top_k))
      return super().propose(points, is_valid, key, num_samples=num_samples, top_k=top_k)
  model = Model(["x0*x1", "2.5*x0"], num_variables=2, max_length=LENGTH)
  VOCAB_OF[0] = model.vocab
  views, clock = views_of(rng, lambda node: True, lambda node: True), Clock()
  for first in (0, 6):
    samples.sample_and_fit_all(
      model, views, num_samples=6, top_k=3, refine="none", clock=clock, first_sample=first)
  assert len({tuple(key) for _, _, key, _, _ in asked}) == 4 and {each[3:] for each in asked} == {(6, 3)}
  for (points, is_valid, *_), view in zip(asked, [*views, *views], strict=True):
    np.testing.assert_allclose(points, np.column_stack([view.bag.x, np.zeros(8), view.bag.y]), rtol=1e-6)
    assert points.dtype == np.float32 and is_valid.tolist() == [True] * 5 + [False] * 3
  assert fits[0].method == "none"
  asked.clear()
  one, counts = samples.sample_and_fit(
    model, views[0].rows, jax.random.key(5), num_samples=4, top_k=2, refine="lm", is_allowed=lambda node: True,
    clock=clock)
  assert counts.sampled == 4 and counts.distinct == 2 and len(one.loss) == counts.refined > 2
  np.testing.assert_allclose(asked[0][0][:, -1], views[0].rows.y, rtol=1e-6)


def test_a_network_encodes_the_bags_and_decodes_as_many_samples_as_are_asked_for(rng, monkeypatch):
  shown, latents = [], np.ones((2, 3))
  monkeypatch.setattr(sampling, "encode", lambda model, points, is_valid: shown.append((points, is_valid)) or latents)
  monkeypatch.setattr(sampling, "decode_candidates", lambda *asked, **how: (asked, how))
  model, views = SimpleNamespace(vocab=VOCAB), views_of(rng, "first", "second")
  (of, found, keys, rules), how = samples._propose(model, views, 6, 12, 3, "strategy", Clock())
  [(points, is_valid)] = shown
  assert points.shape == (2, 8, 3) and is_valid.tolist() == [[True] * 5 + [False] * 3] * 2
  np.testing.assert_array_equal(found, latents)
  assert of is model and rules == ["first", "second"]
  assert [jax.random.key_data(key).tolist() for key in keys] == [jax.random.key_data(v.key).tolist() for v in views]
  assert how == {"num_samples": 6, "first_sample": 12, "strategy": "strategy"}


def test_constants_without_values_are_not_compared(rng, fits):
  """Of a model that says where constants are but not what they are every string is fitted."""
  for encoding, num in (("skeleton", 2), ("base", 1)):
    vocab = Vocabulary(2, encoding)
    VOCAB_OF[0] = vocab
    ids = np.zeros((2, LENGTH), np.int32)
    ids[0, :3], ids[1, :3] = ([vocab.ids[t] for t in text] for text in (("+", "x0", "x1"), ("+", "x1", "x0")))
    model = SimpleNamespace(vocab=vocab, propose=lambda *_, ids=ids, **__: (ids, np.zeros((2, LENGTH), np.float32)))
    [(found, _)] = samples.sample_and_fit_all(
      model, views_of(rng, lambda node: True), num_samples=2, top_k=1, refine="lm", clock=Clock())
    assert len(found.loss) == num


def test_rules_that_no_formula_of_the_model_keeps():
  model = testing.FixedProposer(["x0"], num_variables=2)

  def is_satisfiable(model, **rules):
    return samples.is_satisfiable(Restrictions(**rules).for_columns(("a", "b")), model)
  assert is_satisfiable(model, required=("a", "b")) and is_satisfiable(None, required=("a", "b"))
  assert not is_satisfiable(model, operators=("sin",), required=("a", "b"))
  # A model's formulas have a length: both columns and an operator take three tokens, and one is the start.
  for length, expected in ((4, True), (3, False)):
    short = SimpleNamespace(vocab=VOCAB, config=SimpleNamespace(decoder=SimpleNamespace(max_length=length)))
    assert is_satisfiable(short, required=("a", "b")) == expected
  assert is_satisfiable(None, operators=("max",), required=("a", "b"))
  assert not is_satisfiable(model, operators=("max",), required=("a", "b"))


# --- the source ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_samples", "turns"), [
  (100, (100,)), (256, (256,)), (257, (256, 1)), (1024, (256, 768)), (1025, (256, 768, 1)),
  (2048, (256, 768, 1024)), (2500, (256, 768, 1024, 452))])
def test_turns_are_a_few_samples_then_blocks(n_samples, turns):
  options = SearchOptions(n_samples=n_samples)
  assert transformer.Transformer(None, options).turns == turns
  for strategy in ("beam", "distinct"):
    assert transformer.Transformer(None, dataclasses.replace(options, strategy=strategy)).turns == (n_samples,)


def source_of(**options):
  model = testing.FixedProposer(["x0*x1", "2.5*x0", "sin(x0)"], num_variables=2, noise=0.0)
  VOCAB_OF[0] = model.vocab
  return transformer.Transformer(model, SearchOptions(**options))


def test_who_is_asked_for_a_network(rng):
  for num_columns, restrictions, is_asked in ((2, Restrictions(), True), (3, Restrictions(), False), (2, Restrictions(
      operators=("sin",), required=("x0", "x1")), False)):
    task = make_task((rng.uniform(1, 2, (20, num_columns)), rng.normal(size=20)), None, SearchOptions(
      restrictions=restrictions))
    assert source_of().supports(task) == is_asked


@pytest.mark.parametrize("forbidden", [(), ("+",)])
def test_views_are_every_bag_in_every_unit_each_with_a_key_of_its_own(forbidden, rng, monkeypatch):
  options = SearchOptions(restrictions=Restrictions(forbidden=forbidden))
  x = 1000 + rng.uniform(0, 5, (700, 2))
  task = make_task((x, 300 * x[:, 0] * x[:, 1]), None, options)
  source = dataclasses.replace(source_of(), options=options)
  state = source.init(task, jax.random.key(0))
  proposed = rescale.propose_scalings(task.fit_rows.x, task.fit_rows.y, config=DEFAULT.scaling)
  proposed = [each for each in proposed if not (forbidden and each.is_moved)]
  bags = transformer.bags.draw_bags(task.rows, task.fit_rows, seed=0, config=DEFAULT.scaling)
  assert len(bags) > 1 and 0 < len(proposed) < 4 and any(each.is_moved for each in proposed) == (not forbidden)
  assert [scaling for scaling, _ in state.views] == proposed * len(bags) and state.num_drawn == 0
  assert len({tuple(jax.random.key_data(view.key).tolist()) for _, view in state.views}) == len(state.views)
  for (scaling, view), bag in zip(state.views, [bag for bag in bags for _ in proposed], strict=True):
    for rows, own in ((view.bag, bag), (view.rows, task.fit_rows)):
      assert len(rows) == task.num_rows
      expected = scaling.apply(own.x, own.y)
      np.testing.assert_allclose(rows.x[: len(own)], expected[0])
      np.testing.assert_allclose(rows.y[: len(own)], expected[1])
    assert view.rule.dimensions is None


@pytest.mark.parametrize(("many_rows", "num"), [(700, 4), (701, 2)])
def test_how_many_rows_have_more_bags_is_in_the_config(many_rows, num, rng):
  x = rng.uniform(1, 2, (700, 2))
  config = dataclasses.replace(DEFAULT, scaling=dataclasses.replace(DEFAULT.scaling, many_rows=many_rows))
  options = SearchOptions(config=config)
  task = make_task((x, x[:, 0] * x[:, 1]), None, options)
  source = dataclasses.replace(source_of(), options=options)
  bags = {view.bag.y.tobytes() for scaling, view in source.init(task, jax.random.key(0)).views
          if scaling == rescale.Scaling((1.0, 1.0))}
  assert len(bags) == num


def test_the_dimensions_of_the_user_are_not_asked_of_scaled_columns(rng):
  task = make_task((rng.uniform(1, 2, (20, 2)), rng.normal(size=20)), None, SearchOptions())
  task = dataclasses.replace(task, rule=dataclasses.replace(task.rule, dimensions="theirs"))
  view = source_of()._view(task, task.fit_rows, rescale.Scaling((1.0, 1.0)), jax.random.key(0))
  assert view.rule.dimensions is None


def test_data_sets_of_one_shape_go_together_and_what_was_drawn_is_counted(rng, monkeypatch):
  monkeypatch.setattr(compilation, "dataset_buckets", lambda: (1, 2, 3))
  asked, clock = [], Clock()

  def sample_and_fit_all(model, views, **how):
    asked.append((views, how))
    found = Samples(*encoded("2.5*x0", "x1"), np.array([4.0, np.inf]), VOCAB)
    return [(found, Counts(how["num_samples"], 2, 2, 2)) for _ in views]
  monkeypatch.setattr(samples, "sample_and_fit_all", sample_and_fit_all)
  source = dataclasses.replace(source_of(), options=SearchOptions(top_k=7, refine="bfgs", temperature=0.5))
  scalings = [rescale.Scaling((1.0, 1.0), 2.0), rescale.Scaling((2.0, 1.0), 3.0)]
  views = [(scaling, View(None, None, f"key {k}", None)) for k, scaling in enumerate(scalings)]
  one, two = transformer.Views(tuple(views), 10), transformer.Views(tuple(views[:1]), 5)
  questions = [Question(SimpleNamespace(num_rows=64), None, state) for state in (one, two, one)]
  proposals = source.propose(questions, turn=0, num=7, clock=clock)
  # The first and the third, of two views each, in calls of three at most; then the second.
  assert [[view.key for view in some] for some, _ in asked] == [["key 0", "key 1", "key 0"], ["key 1"], ["key 0"]]
  assert [(how["num_samples"], how["first_sample"]) for _, how in asked] == [(4, 5), (4, 5), (7, 5)]
  for _, how in asked:
    assert (how["top_k"], how["refine"], how["strategy"], how["temperature"], how["config"]) == (
      7, "bfgs", "top_k", 0.5, DEFAULT.transformer)
    assert how["clock"] is clock
  assert [each.state.num_drawn for each in proposals] == [18, 12, 18]
  assert proposals[0].counts == Counts(8, 4, 4, 4) and proposals[0].state.views == one.views
  found = {(expression.sort_operands(each.node), each.mse, each.source) for each in proposals[0].candidates}
  assert found == {(expression.sort_operands(parse("5.0*x0")), 16.0, "transformer"),
                   (expression.sort_operands(parse("3.75*x0")), 36.0, "transformer")}


def test_the_best_come_back_multiplied_out_and_others_for_their_parts():
  texts = ("x0*(x1 + 2.5)", "x1*x0 + 1.5", "sin(x0)", "sin(x1)", "exp(x0)", "exp(x1)")
  found = Samples(*encoded(*texts), np.array([3.0, 1.0, 2.0, 2.5, 9.0, np.nan]), VOCAB)
  config = dataclasses.replace(DEFAULT, transformer=dataclasses.replace(
    DEFAULT.transformer, num_best=1, num_per_length=1), pool=dataclasses.replace(DEFAULT.pool, num_donors=6))
  source = dataclasses.replace(source_of(), options=SearchOptions(config=config))
  scaling = rescale.Scaling((1.0, 1.0), 2.0)
  # Survivors: the best of all, which is the best of five tokens, and the best of two; then others, by their losses.
  for num_views, others in ((2, [3]), (1, [3, 0, 4])):
    made = list(source._restored(scaling, found, num_views))
    expected = []
    for lane in (1, 2, *others):
      node = scaling.restore(found.node(lane))
      expected += [(transformer.tidy(node), 4 * found.loss[lane])]
      expected += [(canonicalize(node), 4 * found.loss[lane])] if lane in (1, 2) else []
    assert [(each.node, each.mse) for each in made] == expected


# --- the table of sources --------------------------------------------------------------------------------------------


def test_sources_get_the_options_of_the_search():
  options = SearchOptions(guesses=("x0",), config=dataclasses.replace(DEFAULT, pool=dataclasses.replace(
    DEFAULT.pool, num_donors=3)))
  made = registry.make_sources("model", dataclasses.replace(
    options, effort="thorough", config=dataclasses.replace(options.config, sources=NAMES_OF_SOURCES)))
  assert [source.name for source in made] == list(NAMES_OF_SOURCES)
  for source in made:
    config = getattr(source, "config", None) or getattr(getattr(source, "options", None), "config", None)
    assert source.name == "closed_forms" or config is None or "pool" not in dir(config) or config.pool.num_donors == 3
  assert next(source for source in made if source.name == "transformer").model == "model"
  assert set(registry.WITHOUT_MODEL) == set(NAMES_OF_SOURCES) - {"closed_forms", "guesses", "transformer"}


@pytest.mark.parametrize(("changes", "left_out"), [
  ({}, set(DEFAULT.budget.normal_without)), ({"max_time": 1.0}, set()), ({"effort": "thorough"}, set()),
  ({"effort": "quick"}, set(DEFAULT.budget.quick_without)), ({"effort": "quick", "max_time": 1.0}, set()),
  ({"recombine": False}, set(registry.WITHOUT_MODEL)), ({"refine": "none"}, set(registry.WITHOUT_MODEL))])
def test_sources_that_are_left_out(changes, left_out):
  found = [source.name for source in registry.make_sources(None, SearchOptions(**changes))]
  assert found == [name for name in NAMES_OF_SOURCES if name in DEFAULT.sources and name not in left_out]
