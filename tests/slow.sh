#!/usr/bin/env bash
# The tests marked slow, kill -9 among them, and those of tests/thorough.txt, which every other run leaves out: when what
# they test has changed. Takes some three quarters of an hour on two cores. Without arguments the command is then run on several hundred
# data sets in one process (tests/soak.py), some ten minutes of a core more.
# Usage: tests/slow.sh [PYTEST_ARGUMENTS...]   (PYTHON=... for another interpreter)
set -euo pipefail
cd "$(dirname "$0")/.."
"${PYTHON:-python3}" -m pytest -q -m '(slow or thorough) and not gpu' "$@"
if [[ $# -eq 0 ]]; then "${PYTHON:-python3}" tests/soak.py; fi
