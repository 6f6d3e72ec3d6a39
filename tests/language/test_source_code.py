"""Exports mean what the formula means: each against the interpreter, text by what its language makes of it."""

import ctypes
import re
import shutil
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symformer_jax.errors import InputError
from symformer_jax.language import expression, functions, interpreter, operators, parser, programs, source_code
from symformer_jax.language.expression import Node, number, variable

NUM_FORMULAS, NUM_COLUMNS, NUM_POINTS = 1000, 3, 16
NAMES = ("a", "b", "c")


def random_tree(rng, size, table=operators.MODEL_OPERATORS):
  """A tree of about `size` operators; half of the exponents are whole numbers, as those of fits are."""
  if size == 0:
    kinds = [lambda: variable(int(rng.integers(NUM_COLUMNS)))] * 3 + [
      lambda: number(float(rng.integers(-5, 6))), lambda: number(float(rng.normal() * 3)),
      lambda: number(float(rng.normal() * 10.0 ** rng.integers(-9, 9)))]
    return kinds[rng.integers(len(kinds))]()
  op = table[rng.integers(len(table))]
  if op.name == "pow" and rng.random() < 0.7:
    exponent = float(rng.integers(-4, 8)) if rng.random() < 0.7 else float(rng.normal())
    return Node("pow", (random_tree(rng, size - 1, table), number(exponent)))
  first = int(rng.integers(size)) if op.arity == 2 else size - 1
  sizes = [first, size - 1 - first][: op.arity]
  return Node(op.name, tuple(random_tree(rng, n, table) for n in sizes))


@pytest.fixture(scope="module")
def case():
  """`(trees, x [N, D], values [K, N] of the interpreter in float64, points [K, N] where digits are kept)`."""
  rng = np.random.default_rng(3)
  nodes = [random_tree(rng, int(rng.integers(1, 9))) for _ in range(NUM_FORMULAS)]
  x = rng.uniform(-2.5, 2.5, (NUM_POINTS, NUM_COLUMNS))
  vocab = programs.base_vocabulary(NUM_COLUMNS)
  ids, values = programs.encode_programs(nodes, vocab, num_programs=NUM_FORMULAS, length=24)
  with jax.enable_x64(True):
    found = np.asarray(interpreter.evaluate_many(
      jnp.asarray(ids), jnp.asarray(values), jnp.broadcast_to(x, (NUM_FORMULAS, *x.shape)), vocab=vocab))
  # Where a sum cancels or a sine turns often, rounding shows: extended precision tells.
  long = np.array([expression.evaluate(node, x.astype(np.longdouble)) for node in nodes])
  with np.errstate(all="ignore"):
    is_kept = np.abs(found - long) <= 1e-13 * np.abs(long)
  is_defined = np.isfinite(found)
  assert is_defined.mean() > 0.4 and (is_kept & is_defined).sum() > 0.95 * is_defined.sum()
  return nodes, x, found, is_kept & is_defined


def check(case, values, first=NUM_FORMULAS):
  """Asserts values [K, N] of the first K formulas, and that what is undefined is not made up."""
  _, _, expected, is_kept = (part[:first] for part in case)
  values = np.asarray(values)
  assert values.shape == expected.shape and values.dtype == np.float64
  np.testing.assert_allclose(values[is_kept], expected[is_kept], rtol=1e-12)
  is_nan = np.isnan(expected)
  assert np.isnan(values[is_nan]).mean() > 0.99  # of 0/0 beside a cancelled factor not


def run_all(texts, columns, num_points=NUM_POINTS):
  """Values [K, N] of Python texts in this process."""
  values = []
  for text in texts:
    scope = {}
    exec(compile(text, "export", "exec"), scope)  # this project's own text
    values.append(np.broadcast_to(np.asarray(scope["formula"](*columns)), num_points))
  return np.array(values)


def test_jax_callables(case):
  nodes, x, _, _ = case
  with jax.enable_x64(True):
    check(case, [functions.jax_function(node)(x) for node in nodes])


def test_numpy_text_in_a_process_of_its_own(case, tmp_path):
  nodes, x, _, _ = case
  texts = [source_code.write(node, NAMES, "numpy") for node in nodes]
  np.save(tmp_path / "x.npy", x)
  script = ["import warnings\nwarnings.simplefilter('ignore')\nvalues = []\nimport numpy\nx = numpy.load('x.npy')\n"]
  script += [f"{text}\nvalues.append(numpy.broadcast_to(formula(*x.T), {NUM_POINTS}))\n" for text in texts]
  (tmp_path / "run.py").write_text("".join(script) + "numpy.save('y.npy', values)\n")
  subprocess.run([sys.executable, "-I", "run.py"], cwd=tmp_path, check=True)
  check(case, np.load(tmp_path / "y.npy"))


def test_jax_text_is_that_of_numpy_and_runs(case):
  nodes, x, _, _ = case
  texts = [source_code.write(node, NAMES, "jax") for node in nodes]
  for node, text in zip(nodes, texts, strict=True):
    expected = source_code.write(node, NAMES, "numpy").replace("import numpy as np", "import jax.numpy as jnp")
    assert re.sub(r"\b(\d{10,})\.0\b", r"\1", text) == re.sub(r"\bnp\.", "jnp.", expected)
  with jax.enable_x64(True):
    check(case, run_all(texts[:50], x.T), first=50)


def test_torch(case):
  torch = pytest.importorskip("torch")
  nodes, x, _, _ = case
  points = torch.as_tensor(x)
  check(case, [functions.torch_function(node)(points).numpy() for node in nodes])
  check(case, run_all([source_code.write(node, NAMES, "torch") for node in nodes], points.T))
  assert functions.torch_function(parser.parse("x**2"))(torch.tensor([[3]])).dtype == torch.float32
  slope, = torch.autograd.grad(functions.torch_function(parser.parse("x**2"))(t := torch.tensor(
    [[3.0]], requires_grad=True)).sum(), t)
  assert slope == 6


class Tensor(np.ndarray):
  """In the place of torch's, which need not be installed."""

  device = "here"

  def is_floating_point(self):
    return self.dtype.kind == "f"

  def to(self, dtype):
    return self.astype(dtype)


def test_torch_is_given_floats_of_the_tensors_own_precision_and_device(monkeypatch):
  asked = []

  def as_tensor(value, dtype=None, device=None):
    asked.append((dtype, device))
    return np.asarray(value, dtype).view(Tensor)
  monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(
    as_tensor=as_tensor, get_default_dtype=lambda: np.float32, broadcast_to=np.broadcast_to))
  function = functions.torch_function(parser.parse("0.5*x**2 + y", ["x", "y"]))
  for x, dtype in (([[1, 2], [3, 4]], np.float32), ([[1.0, 2.0], [3.0, 4.0]], np.float64)):
    y = function(x)
    assert y.tolist() == [2.5, 8.5] and y.dtype == dtype
    assert asked[-1] == (dtype, "here")
  assert functions.torch_function(number(2.5))(np.zeros((3, 1))).tolist() == [2.5] * 3


def test_without_torch_it_is_said(monkeypatch):
  monkeypatch.setitem(sys.modules, "torch", None)
  with pytest.raises(InputError, match=r"torch is not installed: pip install '\.\[torch\]'"):
    functions.torch_function(number(1))


@pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler")
def test_c_compiled(case, tmp_path):
  nodes, x, _, _ = case
  texts = [source_code.write(node, NAMES, "c") for node in nodes]
  (tmp_path / "all.c").write_text("".join(
    text.replace("double formula(", f"double formula{k}(") for k, text in enumerate(texts)))
  subprocess.run(["gcc", "-std=c99", "-pedantic", "-Wall", "-Werror", "-O0", "-shared", "-fPIC", "all.c", "-o",
                  "all.so", "-lm"], cwd=tmp_path, check=True)
  library = ctypes.CDLL(str(tmp_path / "all.so"))
  values = np.empty((NUM_FORMULAS, NUM_POINTS))
  for k in range(NUM_FORMULAS):
    function = getattr(library, f"formula{k}")
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * NUM_COLUMNS
    values[k] = [function(*row) for row in x.tolist()]
  check(case, values)


def julia_body(text):
  return re.search(r"^  return (.*)$", text, re.MULTILINE)[1]


def test_julia_reads_as_our_own_grammar_does(case):
  """Its `^` binds as ours: tighter than a sign, and to the right."""
  nodes, x, _, _ = case
  values = []
  for node in nodes:
    text = source_code.write(node, NAMES, "julia")
    assert text.startswith("function formula(a, b, c)\n") and text.endswith("\nend\n")
    body = julia_body(text)
    # Whole numbers stand nowhere but as powers: elsewhere they would overflow.
    for digits in re.finditer(r"(?<![\w.])\d+\.?\d*(?:e[-+]?\d+)?", body):
      assert set(".e") & set(digits[0]) or body[digits.start() - 1] == "^"
    if "NaN" in body or "Inf" in body:
      values.append(np.full(NUM_POINTS, np.nan))
    else:
      values.append(expression.evaluate(parser.parse(body, NAMES), x))
  check(case, values)


@pytest.mark.skipif(not shutil.which("julia"), reason="no Julia")
def test_julia_itself(case, tmp_path):
  nodes, x, _, is_kept = case
  lines = []
  for k in range(NUM_FORMULAS):
    points = ", ".join(f"({', '.join(map(repr, row))})" for row in x[is_kept[k]].tolist())
    lines.append(source_code.write(nodes[k], NAMES, "julia").replace("function formula", f"function formula{k}"))
    lines.append(f"for p in [{points}]; println(formula{k}(p...)); end\n" if points else "")
  (tmp_path / "run.jl").write_text("".join(lines))
  out = subprocess.run(["julia", "run.jl"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
  np.testing.assert_allclose(np.array(out.split(), float), case[2][is_kept], rtol=1e-12)


# --- spreadsheets --------------------------------------------------------------------------------------------------


class Sheet:
  """Reads a spreadsheet's formula by its published precedences: sign, then `^` from the left, `* /`, `+ -`."""

  CALLS = {"SQRT": np.sqrt, "EXP": np.exp, "LN": np.log, "SIN": np.sin, "COS": np.cos, "TAN": np.tan,
           "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan, "TANH": np.tanh, "SINH": np.sinh, "COSH": np.cosh,
           "ABS": np.abs, "SIGN": np.sign, "MIN": np.minimum, "MAX": np.maximum}

  def __init__(self, text, columns):
    assert text[0] == "="
    self.tokens = re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?|[A-Za-z_]\w*|[-+*/^(),]", text[1:]) + [""]
    assert "".join(self.tokens) == text[1:].replace(" ", "")
    self.columns = columns

  def take(self, *tokens):
    return self.tokens.pop(0) if self.tokens[0] in tokens else None

  def value(self):
    found = self.sum()
    assert self.tokens == [""]
    return found

  def chain(self, inner, by_sign):
    found = inner()
    while sign := self.take(*by_sign):
      found = by_sign[sign](found, inner())
    return found

  def sum(self):
    return self.chain(self.product, {"+": np.add, "-": np.subtract})

  def product(self):
    return self.chain(self.power, {"*": np.multiply, "/": np.divide})

  def power(self):
    return self.chain(self.signed, {"^": np.power})

  def signed(self):
    return -self.signed() if self.take("-") else self.atom()

  def atom(self):
    if self.take("("):
      found = self.sum()
      assert self.take(")")
      return found
    token = self.tokens.pop(0)
    if token in self.CALLS:
      assert self.take("(")
      found = [self.sum()]
      while self.take(","):
        found.append(self.sum())
      assert self.take(")")
      return self.CALLS[token](*found)
    return self.columns[token] if token in self.columns else np.float64(token)


def test_excel_by_its_precedences(case):
  nodes, x, _, _ = case
  values = []
  with np.errstate(all="ignore"):
    for node in nodes:
      text = source_code.write(node, ("a", "b", "q"), "excel")
      assert text == source_code.write(node, NAMES, "excel").replace("c_", "q")
      columns = dict(zip(("a", "b", "q"), x.T, strict=True))
      is_error = "NA()" in text or "(1/0)" in text
      values.append(np.full(NUM_POINTS, np.nan) if is_error else np.broadcast_to(Sheet(text, columns).value(),
                                                                                 NUM_POINTS))
  check(case, values)


def test_excel_by_a_library(case):
  formulas = pytest.importorskip("formulas")
  nodes, x, expected, is_kept = case
  num_checked = 0
  for k in range(80):
    text = source_code.write(nodes[k], NAMES, "excel", cells=["A2", "B2", "C2"])
    points = np.flatnonzero(is_kept[k])
    if not len(points) or "$" in text or not re.search("[ABC]2", text):
      continue
    function = formulas.Parser().ast(text)[1].compile()
    row = dict(zip(("A2", "B2", "C2"), x[points[0]], strict=True))
    found = function(*(row[name] for name in function.inputs))
    assert float(np.ravel(np.asarray(found))[0]) == pytest.approx(expected[k, points[0]], rel=1e-12)
    num_checked += 1
  assert num_checked >= 30


@pytest.mark.parametrize(("formula", "text"), [
  ("-x**2", "=-(x^2)"), ("-x**2*y - 1", "=-(x^2*y) - 1"), ("x - y**2", "=x - y^2"), ("(-x)**2", "=(-x)^2"),
  ("x**(-2.5)", "=x^(-2.5)"), ("x**y**2", "=x^(y^2)"), ("(x**y)**2", "=(x^y)^2"), ("-2*x", "=-2*x"),
  ("exp(-x**2)", "=EXP(-(x^2))"), ("-1/x**2", "=-(1/x^2)"), ("1 - x**2", "=1 - x^2"), ("-x**2 - 1", "=-(x^2) - 1"),
  ("-x**2 + 1", "=1 - x^2"),
  ("1e-7*x", "=1e-07*x"),
])
def test_signs_and_powers_of_spreadsheets(formula, text):
  found = source_code.write(parser.parse(formula, ["x", "y"]), ["x", "y"], "excel")
  assert found == text
  values = {"x": np.float64(1.3), "y": np.float64(0.7)}
  assert Sheet(found, values).value() == pytest.approx(
    expression.evaluate(parser.parse(formula, ["x", "y"]), np.array([[1.3, 0.7]]))[0], rel=1e-15)


# --- rows, numbers, names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", operators.OPERATORS, ids=lambda op: op.name)
def test_every_row_has_every_language(op):
  node = Node(op.name, tuple(variable(i) for i in range(op.arity)))
  x = np.array([[0.3, 2.0], [0.7, -3.0], [0.95, 0.5]])
  expected = expression.evaluate(node, x)
  texts = {name: source_code.write(node, ["u", "v"], name) for name in source_code.LANGUAGES}
  columns = dict(zip("uv", x.T, strict=True))
  np.testing.assert_allclose(Sheet(texts["excel"], columns).value(), expected, rtol=1e-14)
  np.testing.assert_allclose(
    expression.evaluate(parser.parse(julia_body(texts["julia"]), ["u", "v"], expands=False), x), expected, rtol=1e-14)
  scope = {}
  exec(compile(texts["numpy"], "export", "exec"), scope)  # this project's own text
  np.testing.assert_allclose(scope["formula"](*x.T), expected, rtol=1e-14)
  in_c = re.search("return (.*);", texts["c"])[1]
  # C as Python reads it: the same signs, and a function for powers.
  scope = {"pow": np.power, **{name: getattr(np, name) for name in (
    "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "fabs")}, "fmin": np.minimum, "fmax": np.maximum,
           "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, **columns}
  in_c = in_c.replace("(double)", "1.0*")  # a truth value there is a number
  np.testing.assert_allclose(eval(in_c, scope), expected, rtol=1e-14)  # this project's own text
  for language in ("jax", "torch"):
    assert re.sub(r"\b(jnp|torch)\.", "np.", texts[language].split("return ")[1]) == texts["numpy"].split("return ")[1]


def test_torch_compares_tensors_with_tensors():
  torch = pytest.importorskip("torch")
  node = parser.parse("max(0.1, min(x, 2.5)) + min(x, y)", ["x", "y"])
  scope = {}
  exec(compile(source_code.write(node, ["x", "y"], "torch"), "export", "exec"), scope)  # this project's own text
  x = np.array([[0.01, 3.0], [1.0, 0.5], [4.0, 3.5]])
  expected = np.maximum(0.1, np.minimum(x[:, 0], 2.5)) + np.minimum(x[:, 0], x[:, 1])
  np.testing.assert_array_equal(scope["formula"](*torch.as_tensor(x).T).numpy(), expected)
  np.testing.assert_array_equal(functions.torch_function(node)(torch.as_tensor(x)).numpy(), expected)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 6.02214076e23, -1.6e-19, 2.0, -7.0, 1e15, 123456789012345678.0, 5e-324])
def test_numbers_keep_every_digit(value):
  node = Node("*", (number(value), variable(0)))
  for language in source_code.LANGUAGES:
    text = source_code.write(node, ["x"], language).rsplit("return ", 1)[-1]
    [digits] = [d for d in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text) if float(d) != 1]
    assert float(digits) == value
    assert language not in ("c", "julia") or "." in digits or "e" in digits


@pytest.mark.parametrize(("value", "texts"), [
  (np.nan, ["np.nan", "jnp.nan", "torch.nan", "NAN", "NaN", "NA()"]),
  (np.inf, ["np.inf", "jnp.inf", "torch.inf", "INFINITY", "Inf", "(1/0)"]),
])
def test_what_is_undefined_without_a_variable_is_said(value, texts):
  node = parser.parse("log(0 - 1)" if np.isnan(value) else "1/(1 - 1)")
  for language, text in zip(source_code.LANGUAGES, texts, strict=True):
    assert text in source_code.write(node, ["x"], language)


@pytest.mark.parametrize("text", ["3000000000*x", "x - 2147483648", "-99999999999/x", "x**3000000000"])
def test_whole_numbers_beyond_int32_run_in_jax_without_x64(text):
  node, x = parser.parse(text, ["x"]), np.array([0.5, 1.0])
  with jax.enable_x64(False):
    [found] = run_all([source_code.write(node, ["x"], "jax")], [x], num_points=2)
  np.testing.assert_allclose(found, expression.evaluate(node, x[:, None]), rtol=1e-6)
  assert source_code.write(number(2.0**31 - 1), ["x"], "jax").endswith(", 2147483647, float)\n")


@pytest.mark.parametrize("text", ["37", "2*sin(1) - 7", "log(0 - 1)", "1/(1 - 1)"])
def test_what_depends_on_no_column_has_the_shape_of_the_first(text):
  node, x = parser.parse(text, ["class", "v"]), np.array([[1, 2], [3, 4], [5, 6]])
  with jax.enable_x64(True):
    for language in ("numpy", "jax", "torch"):
      if language == "torch":
        pytest.importorskip("torch")
      scope = {}
      exec(compile(source_code.write(node, ["class", "v"], language), "export", "exec"), scope)  # this project's own
      found = np.asarray(scope["formula"](*x.T))
      assert found.shape == (3,) and found.dtype == (np.float32 if language == "torch" else np.float64)
      np.testing.assert_allclose(found, expression.evaluate(node, x.astype(float)), rtol=1e-6)
  assert source_code.write(number(37), [], "numpy").endswith("return 37\n")


@pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler")
def test_no_column_of_c_is_a_macro_of_the_compiler():
  found = subprocess.run(["gcc", "-dM", "-E", "-D_GNU_SOURCE", "-x", "c", "-"], input="#include <math.h>", text=True,
                         capture_output=True, check=True).stdout
  macros = re.findall(r"^#define ([A-Za-z]\w*) ", found, re.MULTILINE)
  assert {"M_PI", "M_E", "FP_NAN", "MATH_ERRNO", "HUGE_VAL", "NAN", "INFINITY"} <= set(macros)
  assert source_code.safe_names(macros, "c") == tuple(f"{name}_" for name in macros)
  assert source_code.safe_names(["M_sun", "MATH", "M", "FPS"], "c") == ("M_sun", "MATH", "M", "FPS")


HOSTILE = ["depth (m)", "depth_m", "class", "exp", "np", "x\n  import os", '"""', "*/", "\\", "Δt", "température", "",
           "1st", "_a", "formula", "A1", "r", "TRUE", "true", "End", "end", "a" * 300, "a" * 299 + "b", "x;y", "#=",
           "ﬁ", "fi"]


@pytest.mark.parametrize("language", source_code.LANGUAGES)
def test_names_are_safe_different_and_kept_where_they_can_be(language):
  safe = source_code.safe_names(HOSTILE, language)
  keys = [name.lower() for name in safe] if language == "excel" else safe
  assert len(set(keys)) == len(HOSTILE)
  spec = source_code.LANGUAGES[language]
  for name in safe:
    assert name.isidentifier() and name not in spec.words
    assert name.isascii() or language in ("numpy", "jax", "torch")
  assert safe[1] == "depth_m" and safe[0] == "depth_m_" and safe[HOSTILE.index("fi")] == "fi"
  assert (safe[HOSTILE.index("_a")] == "_a") == (language in ("numpy", "jax", "torch"))
  assert (safe[HOSTILE.index("exp")] == "exp") == (language in ("numpy", "jax", "torch"))
  assert (safe[HOSTILE.index("A1")] == "A1") == (language != "excel")


@pytest.mark.parametrize("language", ["numpy", "c"])
def test_texts_with_hostile_names_run(language, tmp_path):
  node = expression.chain("+", [Node("*", (number(1.5 + i), variable(i))) for i in range(len(HOSTILE))])
  x = np.arange(1.0, len(HOSTILE) + 1)
  text = source_code.write(node, HOSTILE, language)
  expected = expression.evaluate(node, x[None])[0]
  if language == "numpy":
    assert run_all([text], x[:, None])[0, 0] == pytest.approx(expected, rel=1e-14)
  elif shutil.which("gcc"):
    (tmp_path / "f.c").write_text(text)
    subprocess.run(["gcc", "-Wall", "-Werror", "-shared", "-fPIC", "f.c", "-o", "f.so"], cwd=tmp_path, check=True)
    function = ctypes.CDLL(str(tmp_path / "f.so")).formula
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * len(x)
    assert function(*x) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("language", source_code.LANGUAGES)
def test_names_of_sixty_signs_are_kept_and_longer_ones_cut(language):
  assert source_code.safe_names(["n" * 60, "m" * 61], language) == ("n" * 60, "m" * 60)


def test_renamed_columns_are_said():
  text = source_code.write(variable(0), ["depth (m)\n*/"], "c")
  assert '  // depth_m: the column "depth (m)\\n*/"\n  return depth_m;\n' in text
  assert "the column" not in source_code.write(variable(0), ["depth"], "c")


@pytest.mark.parametrize(("options", "message"), [
  ({"language": "pyton"}, "unknown language 'pyton': expected one of numpy, jax, torch, c, julia, excel"),
  ({"language": "juliet"}, "unknown language 'juliet': did you mean 'julia'?"),
  ({"language": "c", "cells": ["A2"]}, "cells: only the language 'excel' has them, got 'c'"),
  ({"language": "excel", "cells": ["A2", "B2"]}, "cells: expected 1, one for each column"),
  ({"language": "excel", "cells": ["A2+1"]}, "cells: expected references such as 'A2'"),
])
def test_what_cannot_be_written_is_said(options, message):
  with pytest.raises(InputError, match=re.escape(message)):
    source_code.write(variable(0), ["x"], **options)
