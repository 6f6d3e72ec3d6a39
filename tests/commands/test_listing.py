"""The listing on a terminal: names are shown as they are."""

from symformer_jax.commands import listing


def test_brackets_of_units_are_no_markup(capsys):
  header = ("", "", "v [m/s] =", "complexity", "R2", "RMSE", "")
  listing._print_rich("t.csv: v [m/s]", header, [("->", "0", "`t [s]`", "1", "1", "0", "")])
  shown = capsys.readouterr().out
  assert "t.csv: v [m/s]" in shown and "v [m/s] =" in shown and "`t [s]`" in shown
