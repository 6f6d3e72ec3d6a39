"""Every filter with a formula that trips it and one that just does not; boxes; exclusion by value."""

import numpy as np
import pytest

from configs.data import bivariate, nested, univariate
from data_gen import config as config_lib, domains, exclusion, filters, trees
from data_gen.candidates import Equation, Generator
from data_gen.stored import read_tree
from symformer_jax.errors import InputError
from symformer_jax.language import expression, printing
from symformer_jax.language.expression import Node, number, variable
from symformer_jax.language.parser import parse

UNIVARIATE = config_lib.from_dict({**univariate.get_config().to_dict(), "simplify": "rules"})
BIVARIATE = config_lib.from_dict({**bivariate.get_config().to_dict(), "simplify": "rules"})

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def judge(text: str, config=UNIVARIATE) -> str:
  """The rule that rejects a formula as it stands, or the empty string."""
  generator = Generator(config, 0, exclusion.read_problems(None, config))
  return generator._judge(parse(text, ("x", "y")), np.random.default_rng(0))[0]


def finish(text: str, problems=None) -> Equation | str:
  """What becomes of a formula that simplification has returned."""
  rng = np.random.default_rng(0)
  generator = Generator(UNIVARIATE, 0, problems or exclusion.read_problems(None, UNIVARIATE))
  tree = expression.sort_operands(parse(text, ("x",)))
  _, columns, y = generator._judge(tree, rng)
  return generator._finish(tree, columns, y, rng)


@pytest.mark.parametrize(
  ("text", "rule"),
  [
    ("log(-exp(x))", "no_finite_box"),
    ("sqrt(x - 2)", "no_finite_box"),
    ("log(x)", ""),
    ("exp(4*x)", "too_large"),  # exp(20) = 5e8
    ("exp(3*x)", ""),  # exp(15) = 3e6
    ("x - x + 2", "constant"),
    ("5 + x*1/10**7", "constant"),
    ("5 + x*x/10**4", ""),
    ("2*x + 3", "linear"),
    ("x + 2", ""),  # one operator
    ("x + 1 + x*x/10**6", ""),
  ],
)
def test_numeric_rules(text, rule):
  assert judge(text) == rule


@pytest.mark.parametrize(("text", "depth"), [
  ("2*x + 3", 0), ("x**3 - 2/x", 0), ("x*sin(2)", 0), ("x**3*x**(-2)", 0), ("sin(x) + x", 1), ("(x + 1)**3", 1),
  ("1/(x + 1)", 1), ("x**1.5", 1), ("2**x", 1), ("x**x", 1), ("sin(x)*cos(x)", 1), ("exp(x)/(x - 3)", 1),
  ("sin(x)**2", 1), ("sin(x**2 + x)", 1),
  ("tan(cos(x)) + x", 2), ("1/(1 + sqrt(x))", 2), ("sin(1/(x + 1))", 2), ("2**sin(x)", 2), ("(sin(x) + 1)**2", 2),
  ("x**(x**x)", 2), ("x/(1 - 1/(x - y))", 2), ("log(tan(cos(y)))*x", 3)])
def test_functions_one_inside_the_other(text, depth):
  assert filters.count_nesting(parse(text, ("x", "y"))) == depth


def raw(token: str, *args: Node) -> Node:
  return Node(token, args)


def test_differences_and_quotients_of_a_random_tree_count_as_well():
  x = variable(0)
  difference = raw("-", x, number(2.0))
  assert filters.count_nesting(raw("/", x, raw("sqrt", difference))) == 1
  assert filters.count_nesting(raw("/", raw("exp", x), difference)) == 1
  assert filters.count_nesting(raw("/", x, raw("-", x, raw("exp", x)))) == 2
  assert filters.count_nesting(raw("pow3", difference)) == filters.count_nesting(raw("inv", difference)) == 1
  assert filters.count_nesting(raw("pow", difference, number(-4.0))) == 1


def test_a_generator_may_be_asked_for_nested_formulas_alone():
  config = config_lib.from_dict({**nested.get_config().to_dict(), "simplify": "rules"})
  generator = Generator(config, 0, exclusion.read_problems(None, config))
  made = [generator.make(index) for index in range(600)]
  kept = [read_tree(list(e.ids), np.frombuffer(e.constants, np.float32), generator.vocab)
          for e in made if isinstance(e, Equation)]
  assert len(kept) >= 10 and all(filters.count_nesting(tree) >= 2 for tree in kept)
  assert {"plain", "plain_simplified"} <= {m for m in made if isinstance(m, str)}
  usual = Generator(UNIVARIATE, 0, exclusion.read_problems(None, UNIVARIATE))
  others = [usual.make(index) for index in range(600)]
  assert not {"plain", "plain_simplified"} & {m for m in others if isinstance(m, str)}
  # What both keep is the same.
  assert all(a == b for a, b in zip(made, others, strict=True) if isinstance(a, Equation))


def test_a_run_that_was_begun_before_formulas_could_be_asked_to_be_nested_goes_on():
  assert "min_nesting" not in config_lib.as_dict(UNIVARIATE)
  assert config_lib.as_dict(config_lib.from_dict(nested.get_config().to_dict()))["min_nesting"] == 2


def test_a_plane_is_linear_and_a_product_is_not():
  assert judge("2*x + 3*y - 1", BIVARIATE) == "linear"
  assert judge("x*y + 3*y - 1", BIVARIATE) == ""


@pytest.mark.parametrize(
  ("text", "rule"),
  [
    ("x**2 + 2e10", "constant_out_of_range"),
    ("x**2 + 9e9", ""),
    ("x**2*2e-11 + x**3", "constant_out_of_range"),
    ("x**2*2e-10 + x**3", ""),
    ("+".join(["sin(x**2)"] * 12 + ["sin(x)"]), ""),  # 12 times 3 tokens, 12 plus signs, and 2: 50
    ("+".join(["sin(x**2)"] * 12 + ["x*x"]), "too_long"),
  ],
)
def test_rules_on_the_final_formula(text, rule):
  if rule == "constant_out_of_range":
    assert filters.is_constant_out_of_range(parse(text), UNIVARIATE)
  elif "e" in text:
    assert not filters.is_constant_out_of_range(parse(text), UNIVARIATE)
  else:
    outcome = finish(text)
    assert outcome == rule if rule else isinstance(outcome, Equation) and len(outcome.ids) <= 50


def test_a_wrong_simplification_is_caught():
  generator = Generator(UNIVARIATE, 0, exclusion.read_problems(None, UNIVARIATE))
  rng = np.random.default_rng(0)
  _, columns, y = generator._judge(parse("sqrt(x**2)"), rng)
  assert generator._finish(parse("x"), columns, y, rng) == "wrong_simplification"
  assert isinstance(generator._finish(parse("sqrt(x**2)"), columns, y, rng), Equation)


def test_whole_exponents_survive_the_rounding_of_their_mantissas():
  outcome = finish("x**6 - 3.5*x")
  assert isinstance(outcome, Equation)
  np.testing.assert_array_equal(outcome.domain, [[-5, 5]])


@pytest.mark.parametrize(
  ("text", "box"), [("x", [-5, 5]), ("log(x)", [0, 5]), ("log(-x)", [-5, 0]), ("1/x", [-5, 5]), ("sqrt(x+5)", [-5, 5])]
)
def test_the_largest_finite_box_is_taken(text, box):
  found = domains.find_box(parse(text), np.random.default_rng(0), UNIVARIATE)
  assert found[0].tolist() == [box]
  columns, y = found[1:]
  assert columns.shape == (1, 100) and y.shape == (100,)
  assert ((columns > box[0]) & (columns <= box[1])).all() or box == [-5, 5]


def test_boxes_of_two_variables():
  sizes = [np.prod(box[:, 1] - box[:, 0]) for box in domains.boxes(2, 5.0)]
  assert sizes == [100] + [50] * 4 + [25] * 4
  found = domains.find_box(parse("log(x) + sqrt(-y)", ("x", "y")), np.random.default_rng(0), BIVARIATE)
  assert found[0].tolist() == [[0, 5], [-5, 0]]


@pytest.mark.parametrize(
  ("problem", "formula", "is_excluded"),
  [
    ("sin(x**2)*cos(x) - 1", "cos(x)*sin(x*x) - 1", True),
    ("log(x + 1) + log(x**2 + 1)", "log((x + 1)*(x**2 + 1))", True),
    ("cosh(x)", "(exp(x) + exp(-x))/2", True),
    ("sin(x**2)*cos(x) - 1", "sin(x**2)*cos(x) - 1.001", False),
    ("x**4 + x**3 + x**2 + x", "x**4 + x**3 + x**2 - x", False),
  ],
)
def test_problems_are_met_by_value(tmp_path, problem, formula, is_excluded):
  path = tmp_path / "problems.csv"
  path.write_text(f"family,name,n_vars,expression\nF,F-1,1,{problem}\n")
  problems = exclusion.read_problems(path, UNIVARIATE)
  assert bool(problems.matches(exclusion.probe(parse(formula), UNIVARIATE))) == is_excluded


def test_variables_of_a_problem_may_be_exchanged(tmp_path):
  path = tmp_path / "problems.csv"
  path.write_text("family,name,n_vars,expression\nF,F-1,2,sin(x) + y**3\n")
  problems = exclusion.read_problems(path, BIVARIATE)
  assert problems.matches(exclusion.probe(parse("x**3 + sin(y)", ("x", "y")), BIVARIATE)) == "F-1"
  assert exclusion.read_problems(path, UNIVARIATE).names == ()


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("a,b\n1,2\n", "row 2: expected columns family,name,n_vars,expression, got a,b"),
    ("family,name,n_vars,expression\nF,F-1,1,x +\n", "row 2: expected a number"),
  ],
)
def test_an_unusable_problem_file_says_why(tmp_path, text, message):
  path = tmp_path / "problems.csv"
  path.write_text(text)
  with pytest.raises(InputError, match=message):
    exclusion.read_problems(path, UNIVARIATE)
  with pytest.raises(InputError, match="cannot read problem file .*none.csv"):
    exclusion.read_problems(tmp_path / "none.csv", UNIVARIATE)
  with pytest.raises(InputError, match="^problem files: expected a name between two commas, got nothing$"):
    exclusion.read_problems(f"{exclusion.FRESH},", UNIVARIATE)


def test_two_writings_share_a_fingerprint_and_two_functions_do_not():
  def of(text):
    return exclusion.fingerprint(exclusion.probe(parse(text), UNIVARIATE))
  assert of("x**2 + 2*x + 1") == of("(x + 1)**2")
  assert of("sqrt(x)*3.1") == of("3.1*x**0.5")
  texts = ["x", "x**2", "sqrt(x)", "sqrt(-x)", "log(x)", "1/x", "x + 0.01", "sin(x)", "cos(x)"]
  assert len({of(text) for text in texts}) == len(texts)


def test_the_default_exclusions_have_more_than_two_operators():
  problems = exclusion.read_problems("configs/data/excluded.csv", BIVARIATE)
  assert len(set(problems.names)) == 49
  for _, tree in exclusion.read_rows("configs/data/excluded.csv", exclusion.VARIABLE_NAMES):
    assert trees.count_operators(tree) > 2, printing.to_text(tree)


def test_what_is_excluded_is_counted_by_problem(tmp_path):
  path = tmp_path / "problems.csv"
  path.write_text("family,name,n_vars,expression\nF,F-1,1,x**2 + x + 1\nF,F-2,1,sin(x) + x\n")
  problems = exclusion.read_problems(path, UNIVARIATE)
  assert finish("x + sin(x)", problems) == "excluded: F-2"
  assert isinstance(finish("x + cos(x)", problems), Equation)


def test_the_range_of_constants_has_no_sign():
  def is_out(value):
    return filters.is_constant_out_of_range(Node("*", (number(value), variable(0))), UNIVARIATE)
  assert not is_out(-3.5) and not is_out(-9e9) and is_out(-2e10) and is_out(-1e-12) and is_out(1e-12)


def test_functions_with_few_common_points_are_not_equal():
  first = np.arange(1.0, 11.0)
  for num_common, is_equal in ((4, False), (5, True)):
    second = np.where(np.arange(10) < num_common, first, np.nan)
    assert filters.is_equal(first, second) == filters.is_equal(second, first) == is_equal


def test_straightness_has_no_unit():
  x = np.linspace(-5, 5, 50)
  for unit in (1e-6, 1.0, 1e6):
    assert filters.is_near_linear(x[None], unit * (x + 1e-9 * x**2))
    assert not filters.is_near_linear(x[None], unit * (x + 1e-6 * x**2))
