"""Tables drawn by a rule: which are of use, what is their target, and who may look at them."""

import numpy as np
import pytest

from symformer_jax.evaluation import drawn_tables, real_data


def columns(**named):
  return {"": [str(i + 1) for i in range(20)], **{name: list(map(str, cells)) for name, cells in named.items()}}


@pytest.fixture
def values(rng):
  return {name: rng.normal(size=20).tolist() for name in "abc"}


def drawn(monkeypatch, **tables):
  monkeypatch.setattr(real_data, "pydataset_tables", lambda: iter(tables.items()))
  return {each.name: each for each in drawn_tables.load_drawn()}


def test_the_last_column_of_enough_values_is_the_target(monkeypatch, values):
  few = [0, 1] * 10
  found = drawn(monkeypatch, plain=columns(**values), coded=columns(**values, d=few, kind=["x", "y"] * 10))
  assert (found["plain"].target, found["plain"].features) == ("c", ("a", "b"))
  assert (found["coded"].target, found["coded"].features) == ("c", ("a", "b", "d"))
  assert found["coded"].source == "pydataset:coded" and found["coded"].family == "table"


def test_counts_constants_and_gaps_are_no_columns_and_few_rows_no_table(monkeypatch, values):
  holes = ["NA"] * 5 + values["b"][5:]
  found = drawn(
    monkeypatch, counted=columns(n=range(20), one=[1] * 20, holes=holes, **values), empty={},
    single=columns(a=values["a"]), few={name: cells[:14] for name, cells in columns(**values).items()},
    gaps=columns(a=values["a"], b=["NA", *values["b"][1:]], c=values["c"]))
  assert set(found) == {"counted", "gaps"} and found["counted"].features == ("a", "b")


def test_no_more_than_eight_columns_and_none_of_the_list(monkeypatch, rng):
  wide = columns(**{f"c{i}": rng.normal(size=20).tolist() for i in range(12)})
  found = drawn(monkeypatch, **{"wide": wide, "datasets/cars": wide})
  assert set(found) == {"wide"} and len(found["wide"].features) == 8 and found["wide"].target == "c11"


def test_order_and_half_depend_on_the_name_alone(monkeypatch, values):
  names = [f"table{i}" for i in range(60)]
  first = drawn(monkeypatch, **{name: columns(**values) for name in names})
  again = drawn(monkeypatch, **{name: columns(**values) for name in reversed(names)})
  assert list(first) == list(again) != names
  assert {n: s.is_set_aside for n, s in first.items()} == {n: s.is_set_aside for n, s in again.items()}
  assert 15 < np.sum([each.is_set_aside for each in first.values()]) < 45
