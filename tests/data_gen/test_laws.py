"""Random laws: what each of them keeps, what a configuration decides, and that the paper's generator is left alone."""

from collections import Counter
import dataclasses
import hashlib

import numpy as np
import pytest

from configs.data import laws as laws_config, univariate
from data_gen import config as config_lib, exclusion, laws, shapes
from data_gen.candidates import Generator
from data_gen.stored import read_tree
from symformer_jax.engine import rescale
from symformer_jax.engine.config import DEFAULT
from symformer_jax.errors import InputError
from symformer_jax.language import expression
from symformer_jax.language.expression import VARIABLE, number, variable, walk

NOTHING = shapes.Shapes({}, ())


def config_with(**changes):
  return config_lib.from_dict({**laws_config.get_config().to_dict(), **changes})


def draw(count, **changes):
  """The first laws of a configuration, and their points, drawn anew in their boxes [k, 200]."""
  sampler = laws.LawSampler(config_with(**changes))
  found = []
  for seed in range(count):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
      law = sampler.sample(rng)
    if law is not None:
      low, high = law.box.T[..., None]
      found.append((law, low + (high - low) * rng.random((len(law.box), 200))))
  return found


@pytest.fixture(scope="module")
def sample():
  return draw(400)


@pytest.fixture(scope="module")
def accepted():
  generator = Generator(config_with(), 5, NOTHING)
  outcomes = [generator.make(i) for i in range(300)]
  return generator, [outcome for outcome in outcomes if not isinstance(outcome, str)]


def test_nearly_every_draw_gives_a_law_with_values_in_its_box(sample):
  assert len(sample) > 390
  finite = [np.isfinite(expression.evaluate(law.tree, x.T)).all() for law, x in sample]
  assert np.mean(finite) > 0.9  # the law was looked at on other points


def test_every_variable_of_the_box_stands_in_the_law(sample):
  for law, _ in sample:
    assert {node.value for node in walk(law.tree) if node.token == VARIABLE} == set(range(len(law.box)))


def test_the_number_of_variables_is_that_of_the_configuration():
  found = draw(300, variables={"2": 3.0, "9": 1.0})
  counts = Counter(len(law.box) for law, _ in found)
  assert set(counts) == {2, 9}
  assert counts[2] / len(found) == pytest.approx(0.75, abs=0.08)


def test_laws_are_in_the_units_in_which_a_search_shows_data():
  for law, x in draw(150, small_as_given=0.0, centred=0.0):
    corners = np.concatenate([x, law.box], axis=1)  # the largest values are those of the box
    y = expression.evaluate(law.tree, x.T)
    if np.isfinite(y).all() and 0.1 < np.sqrt(np.mean(y**2)) < 500:  # the level is that of other points
      scaling = rescale._scaling(corners.T, np.resize(y, corners.shape[1]), config=DEFAULT.scaling)
      assert scaling.x_factors == pytest.approx((1.0,) * len(x)) and scaling.y_factor == 1


def test_other_units_are_the_same_law():
  tree = expression.chain("*", [variable(0), expression.power(variable(1), number(-2))])
  scales, offsets = np.array([4.0, 0.5]), np.array([0.0, 3.0])
  moved = laws._substitute(tree, scales, offsets)
  x = np.random.default_rng(0).uniform(1, 2, (20, 2))
  np.testing.assert_allclose(expression.evaluate(moved, x), 4 * x[:, 0] / (0.5 * x[:, 1] + 3) ** 2)


def test_every_interval_that_can_be_named_is_one(rng):
  for name in config_lib.INTERVALS:
    for _ in range(50):
      low, high = laws._INTERVALS[name](rng)
      assert low < high


def test_the_tables_of_configuration_and_of_laws_have_the_same_names():
  assert set(config_lib.FUNCTIONS) == set(laws._FUNCTIONS)
  assert set(config_lib.INTERVALS) == set(laws._INTERVALS)
  assert all(hasattr(laws._Draw, f"_{form}") for form in config_lib.FORMS)


@pytest.mark.parametrize("name", config_lib.FUNCTIONS)
def test_each_function_occurs_and_its_argument_is_where_it_shows(name):
  found = draw(12, functions={name: 1.0}, forms={"function": 1.0}, single_forms={"function": 1.0},
               variables={"1": 1.0}, repeats={"0": 1.0}, intervals={"near": 1.0})
  assert found
  for law, x in found:
    assert np.ptp(expression.evaluate(law.tree, x.T)) > 0


def test_what_is_accepted_is_the_law_in_its_box(accepted):
  generator, equations = accepted
  assert len(equations) > 240
  for equation in equations:
    tree = read_tree(equation.ids, np.frombuffer(equation.constants, np.float32), generator.vocab)
    used = {node.value for node in walk(tree) if node.token == VARIABLE}
    count = int((equation.domain[:, 0] < equation.domain[:, 1]).sum())
    assert equation.domain.shape == (9, 2) and not equation.domain[count:].any()
    assert max(used) < count and len(equation.ids) <= 50
    low, high = equation.domain.T[..., None]
    y = expression.evaluate(tree, (low + (high - low) * np.random.default_rng(0).random((9, 50))).T)
    assert np.isfinite(y).mean() > 0.8 and np.nanmax(np.abs(y)) < 1e8


def test_a_candidate_is_the_same_whoever_makes_it(accepted):
  generator, _ = accepted
  other = Generator(config_with(), 5, NOTHING)
  for index in (7, 3):
    first, second = generator.make(index), other.make(index)
    assert str(first) == str(second)


def test_laws_of_a_list_are_kept_out(tmp_path):
  path = tmp_path / "list.csv"
  path.write_text("family,name,n_vars,expression\nme,mine,2,3*x**2/y\nme,short,2,x*y\n")
  config = config_with(variables={"2": 1.0}, repeats={"0": 1.0}, forms={"monomial": 1.0})
  problems = shapes.read_problems(path, config)
  assert problems.names == ("mine",)  # x*y belongs to everybody
  outcomes = Counter(outcome if isinstance(outcome, str) else "" for outcome in
                     (Generator(config, 1, problems).make(i) for i in range(300)))
  assert outcomes["excluded: mine"] > 0
  generator = Generator(config, 1, problems)
  found = [outcome for outcome in (generator.make(i) for i in range(300)) if not isinstance(outcome, str)]
  kept = {shapes.shape(read_tree(e.ids, np.frombuffer(e.constants, np.float32), generator.vocab)) for e in found}
  assert kept and not kept & set(problems.by_shape)


@pytest.mark.parametrize(("change", "message"), [
  ({"functions": {"sinh": 1.0}}, "a key of functions is 'sinh', expected one of .*did you mean 'sin'"),
  ({"variables": {"10": 1.0}}, "a key of variables is '10', expected one of 1, 2"),
  ({"exponents": {"half": 1.0}}, "a key of exponents is 'half', expected a number such as -1 or 3/2"),
  ({"intervals": {}}, "all probabilities of intervals are zero"),
  ({"interval": {}}, "unknown key 'interval', .*did you mean 'intervals'"),
])
def test_an_unusable_config_says_what_is_wrong(change, message):
  with pytest.raises(InputError, match=message):
    config_with(**change)


def test_the_papers_configuration_knows_nothing_of_laws():
  described = dataclasses.asdict(config_lib.from_dict(univariate.get_config().to_dict()))
  assert "kind" not in described  # its manifests, and so its folders, stay as they were


def test_the_papers_equations_are_those_of_before_there_were_laws():
  generator = Generator(config_lib.from_dict({**univariate.get_config().to_dict(), "simplify": "rules"}), 3,
                        exclusion.read_problems(None, config_lib.from_dict(univariate.get_config().to_dict())))
  text = repr([o if isinstance(o, str) else (o.ids, o.domain.tolist()) for o in map(generator.make, range(200))])
  assert hashlib.sha256(text.encode()).hexdigest()[:16] == "44d6fc002d08bfc6"
