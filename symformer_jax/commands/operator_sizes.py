"""Sizes of what operators are applied to, as `--max_sizes` names them."""

from collections.abc import Sequence

from symformer_jax.errors import InputError


def read_sizes(entries: Sequence[str]) -> dict[str, tuple[int | None, ...]]:
  """`["sin=3", "pow=9:1"]` as `{"sin": (3,), "pow": (9, 1)}`; no size at all, as in `/=:5`, is none.

  Raises:
    InputError: for what is no `OPERATOR=SIZE` or `OPERATOR=SIZE:SIZE`, and an operator that stands twice.
  """
  sizes: dict[str, tuple[int | None, ...]] = {}
  for entry in entries:
    name, sign, text = (part.strip() for part in entry.rpartition("="))
    try:
      if not sign or not name:
        raise ValueError
      size = tuple(int(part) if part.strip() else None for part in text.split(":"))
    except ValueError:
      raise InputError(
        f"--max_sizes: expected OPERATOR=SIZE or OPERATOR=SIZE:SIZE, such as sin=3 or pow=9:1, got {entry!r}") from None
    if name in sizes:
      raise InputError(f"--max_sizes: {name!r} stands twice")
    sizes[name] = size
  return sizes
