"""The three settings: same value as the tree, same form for plain formulas, and what is done with SymPy's oddities."""

import numpy as np
import pytest

from configs.data import univariate
from data_gen import config as config_lib, exclusion, filters, simplify, trees
from data_gen.candidates import Equation, Generator, read_tree
from symformer_jax.errors import ExpressionError
from symformer_jax.language import expression
from symformer_jax.language.parser import parse
from symformer_jax.language.vocabulary import Vocabulary

SETTINGS = ("simplify", "fast", "rules")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("(x + 1)**2 - x*x", "2*x + 1"),
    ("2*sin(-x)/4", "-0.5*sin(x)"),
    ("x/(x*x)", "1/x"),
    ("1/3 + x", "x + 0.33333333"),
    ("sqrt(x**2)", "sqrt(x**2)"),
    ("1.6157/(-x/1.9601 - 1/x - x)", "-1.6157*x/(1.5101781*x**2 + 1)"),
    ("cos(x + sin(4)) + 2.5", "cos(x - 0.7568025) + 2.5"),
    ("exp(x + 1)", "2.7182818*exp(x)"),
  ],
)
def test_all_settings_agree_on_plain_formulas(setting, text, expected):
  got = simplify.simplify(parse(text), setting, digits=8)
  assert got == expression.sort_operands(parse(expected))


def test_hyperbolic_functions_and_secants_of_sympy_have_tokens():
  for text in ("(exp(x) - exp(-x))/2", "1/cos(x) + sin(x)/cos(x)**2"):
    tree = simplify.simplify(parse(text), "simplify", digits=8)
    expression.encode(tree, Vocabulary(1))


def test_what_has_no_finite_value_is_inexpressible():
  with pytest.raises(ExpressionError):
    simplify.simplify(parse("x + log(0)"), "simplify", digits=8)


def test_rounding_drops_what_becomes_one_or_nothing():
  tree = parse("1.0000000001*x + 0")
  assert simplify.round_numbers(expression.sort_operands(tree), 8) == parse("x")


@pytest.mark.parametrize("setting", ["fast", "rules"])
def test_random_trees_keep_their_values_and_their_encoding_comes_back(setting):
  config = config_lib.from_dict({**univariate.get_config().to_dict(), "simplify": setting})
  generator = Generator(config, 5, exclusion.read_problems(None, config))
  vocab, num_accepted = Vocabulary(1), 0
  for index in range(400 if setting == "rules" else 60):
    outcome = generator.make(index)
    assert outcome == generator.make(index) or isinstance(outcome, Equation)
    if not isinstance(outcome, Equation):
      continue
    num_accepted += 1
    ids = list(outcome.ids)
    mantissas = np.frombuffer(outcome.constants, np.float32)
    tree = read_tree(ids, mantissas, vocab)
    again, values = expression.encode(tree, vocab)
    assert again == ids
    np.testing.assert_allclose(values, mantissas, rtol=5e-7)  # values are read to 7 digits
    raw = generator.sampler.sample(np.random.default_rng((5, index)))
    points = np.linspace(*outcome.domain[0], 203)[None, 1:-1]
    y, z = trees.values(raw, points), trees.values(tree, points)
    # A box found by 100 random points may hold places where the raw tree is undefined.
    if np.isfinite(y).mean() > 0.6:
      assert filters.is_equal(y, z) or "tan" in expression.to_text(raw) or _is_steep(raw, points)
  assert num_accepted > 20


def _is_steep(tree, points) -> bool:
  """Whether a change of the points in float32's last digits moves the values visibly."""
  return not filters.is_equal(trees.values(tree, points), trees.values(tree, points * (1 + 1e-6)))
