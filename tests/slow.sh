#!/usr/bin/env bash
# The tests marked slow, kill -9 among them, which every other run leaves out: when what they
# test has changed. Takes some half an hour on two cores.
# Usage: tests/slow.sh [PYTEST_ARGUMENTS...]   (PYTHON=... for another interpreter)
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${PYTHON:-python3}" -m pytest -q -m 'slow and not gpu' "$@"
