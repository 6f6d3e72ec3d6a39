#!/usr/bin/env bash
# Small changes of the code that its tests should notice; lists those that nobody did. At the end of every large change.
# Usage: tests/mutation.sh [--num=20] [--seed=0] MODULE_OR_FOLDER... [--tests FILE...]
# (PYTHON=... for another interpreter; by default a module is asked for by the tests that bear its name)
set -euo pipefail
exec "${PYTHON:-python3}" "$(dirname "$0")/mutation.py" "$@"
