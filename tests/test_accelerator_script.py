"""launch/accelerator.sh: what it asks for, without an accelerator."""

from pathlib import Path
import subprocess

import pytest

SCRIPT = Path(__file__).parents[1] / "launch" / "accelerator.sh"


@pytest.mark.parametrize(("arguments", "message"), [((), "expected a folder"), (("x",), "expected minutes")])
def test_what_is_missing_is_said(arguments, message, tmp_path):
  done = subprocess.run(["bash", SCRIPT, *arguments], cwd=tmp_path, capture_output=True, text=True)
  assert done.returncode == 1 and message in done.stderr and not list(tmp_path.iterdir())


def test_it_is_bash():
  subprocess.run(["bash", "-n", SCRIPT], check=True)
