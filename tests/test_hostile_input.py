"""Whatever a file holds: it is read, or refused in one line by an error for the user, and nothing is half-written.

Bounded, and the same examples in every run (see conftest). What is drawn is near to legal input: bytes at random are
refused by the first check.
"""

import csv
import hashlib
import io
import json
import warnings

from hypothesis import example, given, settings, strategies as st
import jax
import numpy as np
import pytest

from symformer_jax import infer, inference, testing
from symformer_jax.commands import result_lines, tables
from symformer_jax.errors import InputError, SymFormerError
from symformer_jax.estimator import SymFormerRegressor
from symformer_jax.evaluation import problems
from symformer_jax.language import expression, parser, printing
from symformer_jax.model import symformer
from symformer_jax.model.config import DecoderConfig, EncoderConfig, ModelConfig
from symformer_jax.pretrained import registry

CELLS = st.sampled_from(
  ["1", "2.5", "-3e4", "1,234", "1.234,5", "2020-01-05", "5/6/2020", "1:30", "# x", "", " ",
   "nan", "inf", "-inf", "1e999", "1e-320", "x", "1,5", '"', "'", "#", "0x10", "1_000",
   "1j", "True", "null", "\ufeff", "\x00", "٣", "é", "=1+1", "-", "5%", "1e", "1" * 400]
) | st.floats().map(repr) | st.text(max_size=4)
JSON = st.recursive(
  st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
  lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8)


def answer(ask, *errors):
  """What is answered; None where it is refused by one of the errors, in one line."""
  try:
    return ask()
  except errors as error:
    assert str(error) and "\n" not in str(error).rstrip() and len(str(error)) < 5000
    return None


@st.composite
def damaged(draw, data):
  """Bytes with a few of them changed, cut out, or the end cut off."""
  data = bytearray(data)
  for _ in range(draw(st.integers(0, 3))):
    data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
  begin = draw(st.integers(0, len(data)))
  del data[begin : begin + draw(st.sampled_from([0, 0, 0, 1, 7, len(data)]))]
  return bytes(data)


@st.composite
def replaced(draw, record):
  """A JSON value with one of its parts replaced by something else, or left out."""
  record = json.loads(json.dumps(record))
  place = record
  while True:
    key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    inner = place[key]
    if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
      break
    place = inner
  if draw(st.booleans()):
    place[key] = draw(JSON | st.sampled_from([-1, 0, 10**9, 1e400, "a", [], {}]))
  else:
    del place[key]
  return record


# --- tables ----------------------------------------------------------------------------------------------------


def check_table(path):
  table = answer(lambda: tables.read_table(str(path)), tables.TableError)
  if table is not None:
    assert np.isfinite(table.x).all() and np.isfinite(table.y).all() and len(table.y) >= tables.MIN_POINTS
    names = *table.features, table.target
    assert all(name and name.isprintable() for name in names) and len(set(names)) == len(names)
    node = expression.chain("+", [expression.variable(i) for i in range(len(table.features))])
    plain = [f"x{i}" for i in range(len(table.features))]
    assert parser.parse(printing.to_text(node, table.features), table.features) == parser.parse(
      printing.to_text(node, plain), plain)


@settings(max_examples=150)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=9), st.sampled_from(",;\t| "),
       st.sampled_from(["csv", "tsv", "txt"]))
@example([["a", "b"], *([str(i), str(i * i)] for i in range(6))], ",", "csv")
def test_tables_of_text(tmp_path_factory, rows, separator, suffix):
  path = tmp_path_factory.mktemp("table") / f"t.{suffix}"
  path.write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8")
  check_table(path)


@settings(max_examples=100)
@given(st.data())
def test_tables_of_arrays(tmp_path_factory, data):
  path = tmp_path_factory.mktemp("table") / "t.npz"
  arrays = {"x": np.arange(12.0).reshape(6, 2), "y": np.arange(6.0) ** 2}
  kind = data.draw(st.sampled_from(["f8", "f2", "i8", "u1", "?", "c16", "U3", "S3", "M8[s]", "m8[s]", "V4", "f8,f8"]))
  arrays["x" if data.draw(st.booleans()) else "z"] = np.zeros(data.draw(st.sampled_from([6, 5, (6, 2), ()])), kind)
  buffer = io.BytesIO()
  np.savez(buffer, **arrays)
  path.write_bytes(data.draw(damaged(buffer.getvalue())))
  check_table(path)


# --- models ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  config = ModelConfig(
    encoder=EncoderConfig(width=4, num_heads=1, head_dim=4, ff_dim=4, num_layers=1, num_inducing=1, num_seeds=1),
    decoder=DecoderConfig(width=4, num_heads=1, head_dim=4, ff_dim=4, num_layers=1, max_length=5, regression_hidden=2))
  folder = tmp_path_factory.mktemp("model")
  registry.save_model(folder, name="m", config=config, params=symformer.init_params(config, jax.random.key(0)), card={})
  return folder


def check_model(folder):
  found = answer(lambda: registry.load_model(str(folder)), SymFormerError)
  if found is not None:
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found.params))


@settings(max_examples=60)
@given(st.data())
def test_cards(tmp_path_factory, model, data):
  folder = tmp_path_factory.mktemp("copy")
  card = json.loads((model / "card.json").read_text())
  text = json.dumps(data.draw(replaced(card) | JSON)).encode()
  (folder / "card.json").write_bytes(data.draw(damaged(text) | st.just(text)))
  (folder / "weights.npz").write_bytes((model / "weights.npz").read_bytes())
  check_model(folder)


@settings(max_examples=60)
@given(st.data())
def test_weights(tmp_path_factory, model, data):
  folder = tmp_path_factory.mktemp("copy")
  weights = data.draw(damaged((model / "weights.npz").read_bytes()))
  card = json.loads((model / "card.json").read_text()) | {"weights_sha256": hashlib.sha256(weights).hexdigest()}
  (folder / "card.json").write_text(json.dumps(card))
  (folder / "weights.npz").write_bytes(weights)
  check_model(folder)


# --- problem files, formulas, JSON -----------------------------------------------------------------------------


FORMULAS = st.lists(
  st.sampled_from(["x", "y", "z", "1", "2.5", "1e308", "+", "-", "*", "/", "**", "^", "(", ")", "sin(", "log(", "pow(",
                   ",", " ", "e", "pi", ".", "1e", "_", "'", "\n", "\x00", "²", "x0"]), max_size=12).map("".join)


@settings(max_examples=200)
@given(FORMULAS)
def test_formulas(text):
  node = answer(lambda: parser.parse(text), InputError)
  if node is not None:
    with np.errstate(all="ignore"):
      assert expression.evaluate(node, np.ones((2, 3))).shape == (2,)


@settings(max_examples=100)
@given(st.lists(st.tuples(
  CELLS, st.sampled_from("abc") | CELLS, st.sampled_from(["1", "2", "3"]) | CELLS, FORMULAS | st.just("x + 1"),
  st.sampled_from(["0:1", "", "0:1;1:2", "1:0", "-1e308:1e308", "0:1e-320", "a:b", ":"]) | CELLS), max_size=3),
  st.data())
def test_problem_files(tmp_path_factory, rows, data):
  path = tmp_path_factory.mktemp("problems") / "p.csv"
  lines = io.StringIO()
  csv.writer(lines).writerows([problems.COLUMNS, *rows])
  text = lines.getvalue().encode("utf-8", "surrogatepass")
  path.write_bytes(data.draw(damaged(text) | st.just(text)))
  for problem in answer(lambda: problems.read_problems(path), InputError) or []:
    points = answer(lambda p=problem: problems.draw_points(p, rng=np.random.default_rng(0)), InputError)
    assert points is None or np.isfinite(points).all()


SAVED = {
  "format": "symformer-regressor-1", "n_features": 1, "names": ["x0"], "feature_names": None, "best": 0,
  "params": {"model": "auto", "n_samples": 3, "restrictions": {"forbidden": ["exp"]},
             "config": {"pool": {"fit_rows": 9}}},
  "front": [{"expression": "2.5*x0", "mse": 1.0, "r2": 0.5, "relative_error": None,
             "constants": [{"value": 2.5, "stderr": None, "exact": None}]}]}


SAVED_WITH_SEARCH = SAVED | {
  "format": "symformer-regressor-2", "front": [SAVED["front"][0] | {"tree": ["*", "sin", "x0", 2.5]}], "search": {
    "status": "ok", "message": "", "counts": {"sampled": 3}, "seconds": {"total": 1.5}, "seed": 0, "num_points": 9,
    "model": "fixed", "rounds": [{"sampled": 0, "best": "x0", "r2": None, "source": "library", "gained": True,
                                  "seconds": 0.5}],
    "ended_by": "exact", "weights": [1.0, 2.0], "seen": {
      "ranges": {"x0": [0.0, 1.0]}, "unused": [], "noise": 0.1, "loss": "huber", "exponent": None, "num_light": 1,
      "rejected": [{"expression": "x0", "complexity": 1, "r2": 0.5, "reason": "a leap"}]}}}


@settings(max_examples=200)
@given(st.data())
def test_saved_regressors(tmp_path_factory, data):
  path = tmp_path_factory.mktemp("saved") / "fit.json"
  text = json.dumps(data.draw(replaced(SAVED) | replaced(SAVED_WITH_SEARCH) | JSON)).encode()
  path.write_bytes(data.draw(damaged(text) | st.just(text) | st.just(b"[" * 100_000)))
  loaded = answer(lambda: SymFormerRegressor.load(path), InputError)
  if loaded is not None:  # what was read can be used
    with np.errstate(all="ignore"):
      assert answer(lambda: loaded.numpy(0)(np.ones((2, 1))).shape, InputError) == (2,)
    assert loaded.source("c", 0) and loaded.latex_table([0])


@settings(max_examples=60)
@given(st.data())
def test_lines_of_an_earlier_batch(tmp_path_factory, data):
  path = tmp_path_factory.mktemp("lines") / "all.jsonl"
  line = {"data": "a.csv", "status": "ok", "options": {"seed": 0}}
  text = json.dumps(data.draw(replaced(line) | JSON)).encode()
  before = data.draw(damaged(text + b"\n") | st.just(text + b"\n") | st.just(b"[" * 100_000 + b"\n"))
  path.write_bytes(before)
  lines = answer(lambda: result_lines.ResultLines(path, options={"seed": 0}, defaults={}, is_new=False), InputError)
  if lines is None:
    assert path.read_bytes() == before  # what is refused stays as it is


@settings(max_examples=40)
@given(st.data())
def test_a_file_that_the_command_cannot_use_leaves_nothing_behind(tmp_path_factory, data):
  folder = tmp_path_factory.mktemp("command")
  text = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(8))
  (folder / "t.csv").write_bytes(data.draw(damaged(text)))

  def search(*args, **options):
    raise InputError("far enough")
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(inference, "resolve_model", lambda name, *, num_variables: None)
    patch.setattr(inference, "search", search)
    infer.asked.FLAGS.unparse_flags()
    infer.asked.FLAGS(["infer", f"--data={folder}/t.csv", f"--out={folder}/t.json", f"--plot={folder}/t.png"])
    answer(lambda: infer.main([]), SymFormerError)
  assert [path.name for path in folder.iterdir()] == ["t.csv"]


def column(rng, num_rows, kind):
  """A column such as tables have that nobody looked at."""
  return {
    "normal": lambda: rng.normal(size=num_rows), "flag": lambda: rng.integers(0, 2, num_rows),
    "rare": lambda: rng.integers(0, 5, num_rows) == 0, "few": lambda: rng.integers(0, 4, num_rows),
    "level": lambda: np.full(num_rows, 9.81), "zero": lambda: np.zeros(num_rows),
    "large": lambda: rng.uniform(1, 2, num_rows) * 1e12, "small": lambda: rng.uniform(1, 2, num_rows) * 1e-12,
    "negative": lambda: -rng.uniform(1, 5, num_rows), "decades": lambda: np.exp(4 * rng.normal(size=num_rows)),
    "outlier": lambda: np.where(np.arange(num_rows) == 0, 1e6, rng.normal(size=num_rows)),
    "year": lambda: 1900 + np.arange(num_rows), "mirror": lambda: np.arange(num_rows) % 2 * 2 - 1,
  }[kind]().astype(float)


KINDS = ("normal", "flag", "rare", "few", "level", "zero", "large", "small", "negative", "decades", "outlier", "year",
         "mirror")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_source_fails_over_odd_tables(seed):
  """Flags, categories, equal columns, few rows, sizes of any kind: a search ends with formulas that have values."""
  rng = np.random.default_rng(seed)
  num_rows, num_columns = int(rng.choice([5, 8, 15, 40, 90])), int(rng.choice([1, 2, 3, 4, 6]))
  x = np.column_stack([column(rng, num_rows, str(kind)) for kind in rng.choice(KINDS, num_columns)])
  if num_columns > 1 and seed % 3 == 0:
    x[:, -1] = x[:, 0]
  y = [x @ rng.normal(size=num_columns), column(rng, num_rows, "flag"), rng.normal(size=num_rows),
       np.prod(np.clip(x, -1e3, 1e3), axis=1) + 0.01 * rng.normal(size=num_rows)][seed % 4]
  with warnings.catch_warnings():
    warnings.simplefilter("error", RuntimeWarning)
    [found] = inference.search(testing.FixedProposer(["x0", "x0**2 + 1"]), [(x, y)], effort="quick", max_time=10)
  assert found.message if found.best is None else np.isfinite(found.best.mse)
