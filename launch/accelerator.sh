#!/usr/bin/env bash
# Some minutes of an accelerator, in order of worth: a larger network (configs/wide.py), the tests that need one, what else has not been timed on one.
# Usage: launch/accelerator.sh FOLDER MINUTES [DATA...]
# DATA: folders of data_gen.generate, without spaces in their names. So many minutes in all: generators begin on three quarters of the cores, some steps are compiled and timed, as many as the
# time holds are trained on DATA and on what has been generated meanwhile, beside them the tests, and the model goes to OUT (default: FOLDER/out) in files of at
# most 15 MB with the metrics and logs. The same command again, with the minutes that there are now, goes on with the run; once it is complete, the benchmarks have what is left.
# CONFIG (default: wide), FLAGS of launch.train, SEED, NUM_TRIED steps, STEPS in place of those that the rate gives, which saves compiling again, PLATFORMS (default: cuda,cpu);
# LAWS, UNIVARIATE, BIVARIATE: processes that generate, AGAINST: folders whose functions they keep out, LAWS_REPEATS (default: 1): times that folders of laws count.
set -uo pipefail

folder=${1:?expected a folder}
minutes=${2:?expected minutes}
shift 2
python=${PYTHON:-python3}
config=${CONFIG:-wide}
out=${OUT:-$folder/out}
seed=${SEED:-4001}
cores=$(nproc)
begin=$(date +%s)
lists=symformer_jax/evaluation/problem_lists
export JAX_PLATFORMS=${PLATFORMS:-cuda,cpu} PYTHONUNBUFFERED=1
export JAX_COMPILATION_CACHE_DIR=$folder/programs JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.3
mkdir -p "$folder/data" "$out"

# More equations than there is time for: what has been written when training begins is used.
generate() {  # name, config, seed, processes, equations of others to keep out
  local name=$1 data_config=$2 seed=$3 workers=$4 excluded=$5
  [ "$workers" -gt 0 ] || return 0
  JAX_PLATFORMS=cpu setsid nice -n 10 "$python" -m data_gen.generate --config="configs/data/$data_config.py" --simplify=rules --seed="$seed" \
    --equations=4000000 --shard_equations=16384 --workers="$workers" --exclude="$excluded" ${AGAINST:+--against="$AGAINST"} \
    --out="$folder/data/$name" > "$out/$name.log" 2>&1 < /dev/null &
  echo $! > "$folder/$name.pid"
}

stop_generators() {
  local file
  for file in "$folder"/*.pid; do
    if [ -e "$file" ]; then kill -TERM -- "-$(cat "$file")"; rm "$file"; fi
  done
}

stop_checks() {  # each of them ends by itself with the time
  [ -z "${checks:-}" ] || kill "$checks" 2> /dev/null
}
trap 'stop_generators; stop_checks' EXIT

data_flags() {  # of the folders given and those generated, and how often each counts
  local found="" repeats="" data
  for data in "$@" "$folder"/data/*; do
    if compgen -G "$data/symformer_equations/*/*/*train.tfrecord*" > /dev/null; then
      found="$found'$data',"
      case $(basename "$data") in laws*) repeats="$repeats${LAWS_REPEATS:-1}," ;; *) repeats="${repeats}1," ;; esac
    fi
  done
  echo "--config.data.dirs=($found) --config.data.repeats=($repeats)"
}

train() {  # folder of the run, flags
  local workdir=$1; shift
  # shellcheck disable=SC2086
  "$python" -m launch.train --config="configs/$config.py" --workdir="$workdir" --config.seed="$seed" $data "$@" ${FLAGS:-}
}

left() {  # minutes that are left, less so many
  "$python" -c "import sys, time; print(float(sys.argv[1]) - (time.time() - float(sys.argv[2])) / 60 - float(sys.argv[3]))" "$minutes" "$begin" "$1"
}

limited() {  # a command that has what is left and no more
  timeout "$("$python" -c "print(max(int(60 * $(left 0.1)), 1))")" "$@"
}

benchmarks() {  # folder of their figures
  local what
  mkdir -p "$1"
  for what in decode refine interpret; do limited "$python" -m launch.benchmark --what="$what" --out="$1/$what.json" > "$1/$what.txt" 2>&1; done
}

plan=$folder/plan
if [ ! -e "$plan" ]; then
  generate laws laws "$seed" "${LAWS:-$((cores / 2))}" "configs/data/excluded.csv,fresh,$lists/feynman.csv,$lists/laws.csv"
  generate univariate univariate $((seed + 1)) "${UNIVARIATE:-$((cores / 8))}" configs/data/excluded.csv,fresh
  generate bivariate bivariate $((seed + 2)) "${BIVARIATE:-$((cores / 8))}" configs/data/excluded.csv,fresh
  data=$(data_flags "$@")
  if [ -n "${STEPS:-}" ]; then  # the program of the run itself, which is then kept: schedules are part of it
    tried="--config.num_steps=$STEPS --config.optimizer.decay_steps=$((STEPS / 2)) --max_minutes=0.1"
  else
    tried="--config.num_steps=${NUM_TRIED:-160} --config.log_every=20"
  fi
  # shellcheck disable=SC2086
  train "$folder/try" $tried --config.checkpoint_every=0 2>&1 | tee "$out/try.log"
  stop_generators
  sleep 1
  # A quarter of a minute for what is no step; the second half of the steps at a falling rate.
  steps=${STEPS:-$("$python" - "$folder/try" "$(left 0.25)" <<'END'
import json, pathlib, statistics, sys
folder = pathlib.Path(sys.argv[1])
lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
rate = statistics.median([line["examples_per_s"] for line in lines if line["kind"] == "train"][1:])
batch = json.loads((folder / "config.json").read_text())["data"]["batch_size"]
# Three quarters of a minute to compile for this number of steps, and a tenth because rates vary and tests run beside.
print(max(int(rate / batch * 60 * (float(sys.argv[2]) - 0.75) * 0.9), 1))
END
)}
  [ -n "$steps" ] || { echo "error: no rate, see $out/try.log" >&2; exit 1; }
  echo "$(data_flags "$@") --config.num_steps=$steps --config.optimizer.decay_steps=$((steps / 2))" > "$plan"
fi
data=$(cat "$plan")
echo "$data"

if [ ! -e "$folder/checked" ]; then  # beside the training; the benchmarks for their programs, which are kept
  (
    renice -n 10 $BASHPID > /dev/null
    export XLA_PYTHON_CLIENT_MEM_FRACTION=.1
    limited "$python" -m pytest -m gpu tests/accelerator -q --maxfail=20 -p no:cacheprovider --durations=20 > "$out/tests.log" 2>&1
    benchmarks "$folder/first"
    touch "$folder/checked"
  ) &
  checks=$!
fi

train "$folder/run" --max_minutes="$(left 0.75)" 2>&1 | tee "$out/train.log" | grep -E "00/|skipped|error|stopped|complete" --line-buffered
if grep -q "config.max_gradient_norm" "$out/train.log"; then  # from the last checkpoint on, in full precision
  train "$folder/run" --config.compute_dtype=float32 --max_minutes="$(left 0.75)" 2>&1 | tee -a "$out/train.log" | tail -n 20
fi
cp "$folder/run/metrics.jsonl" "$out/"
rm -f "$out"/model.tar.gz.*
"$python" -m launch.export --workdir="$folder/run" --name="$config" --out="$folder/model" && tar czf - -C "$folder" model | split -b 15000000 -d - "$out/model.tar.gz."

if grep -q "complete at step" "$out/train.log"; then
  [ -z "${checks:-}" ] || limited tail --pid="$checks" -f /dev/null
  benchmarks "$out"
  tail -n 30 "$out"/{refine,decode,interpret}.txt
fi
if [ -e "$out/tests.log" ]; then tail -n 40 "$out/tests.log"; fi
ls -l "$out"
