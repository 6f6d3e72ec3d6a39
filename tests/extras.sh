#!/usr/bin/env bash
# Installs the extras [tfds], [beam] and [browser] into an environment of its own and tests what needs them: TensorFlow,
# Beam and a browser are far larger than all the rest. .ci/run calls it when what they are for has changed.
# Usage: tests/extras.sh [PYTHON], default python3. Another environment may be given by EXTRAS_VENV.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
if [[ -z "${EXTRAS_VENV:-}" ]]; then
  EXTRAS_VENV=$(mktemp -d)
  trap 'rm -rf "$EXTRAS_VENV"' EXIT
  "${1:-python3}" -m venv "$EXTRAS_VENV"
  "$EXTRAS_VENV/bin/pip" install --quiet '.[test,tfds,beam,browser]'
fi
# Their own conftest and no other: TensorFlow and Beam warn in their own ways.
PYTHONPATH="$root:$root/tests/data_gen:$root/tests/presentation" "$EXTRAS_VENV/bin/python" -m pytest -q -p no:cacheprovider --confcutdir=tests/extras tests/extras/*_extra.py
