#!/usr/bin/env bash
# What a short loan of an accelerator is for, in order of worth: a larger network (configs/wide.py), the tests that need one, rates.
# Usage: launch/accelerator.sh try FOLDER [DATA...]            minutes: generators begin on all cores but two, some steps are trained (their rate; what is compiled is kept), tests, rates of a search
#        launch/accelerator.sh train FOLDER MINUTES [DATA...]  so many minutes in all: as many steps as they hold on DATA and on what has been generated, then the model
# DATA: folders of data_gen.generate. What comes of it goes to OUT (default: FOLDER/out) in files of at most 15 MB: model.tar.gz.00, ... , metrics, logs.
# CONFIG (default: wide), FLAGS of launch.train, SEED, NUM_TRIED steps, STEPS in place of those that the rate gives, PLATFORMS (default: cuda,cpu); LAWS, UNIVARIATE, BIVARIATE: processes that generate, AGAINST: folders whose functions they keep out.
set -uo pipefail

stage=${1:?expected try or train}
folder=${2:?expected a folder}
shift 2
python=${PYTHON:-python3}
config=${CONFIG:-wide}
out=${OUT:-$folder/out}
seed=${SEED:-4001}
export JAX_PLATFORMS=${PLATFORMS:-cuda,cpu}
lists=symformer_jax/evaluation/problem_lists
mkdir -p "$folder/data" "$out"

# Some equations more than there is time for; what has been written when training begins is used.
generate() {  # name, config, seed, processes, equations of others to keep out
  local name=$1 data_config=$2 seed=$3 workers=$4 excluded=$5
  [ "$workers" -gt 0 ] || return 0
  JAX_PLATFORMS=cpu setsid nice -n 10 "$python" -m data_gen.generate --config="configs/data/$data_config.py" --simplify=rules --seed="$seed" \
    --equations=4000000 --shard_equations=16384 --workers="$workers" --exclude="$excluded" ${AGAINST:+--against="$AGAINST"} \
    --out="$folder/data/$name" > "$folder/$name.log" 2>&1 < /dev/null &
  echo $! > "$folder/$name.pid"
}

folders() {  # those given and those generated, as a tuple of Python
  local found="" data
  for data in "$@" "$folder"/data/*; do
    if compgen -G "$data/symformer_equations/*/*/*train.tfrecord*" > /dev/null; then found="$found'$data',"; fi
  done
  echo "($found)"
}

train() {  # folder of the run, flags
  local workdir=$1; shift
  "$python" -m launch.train --config="configs/$config.py" --workdir="$workdir" --config.seed="$seed" --config.data.dirs="$dirs" "$@" ${FLAGS:-}
}

pack() {  # folder of the run, name
  "$python" -m launch.export --workdir="$1" --name="$config" --out="$folder/$2" && tar czf - -C "$folder" "$2" | split -b 15000000 -d - "$out/$2.tar.gz."
}

case $stage in
  try)
    cores=$(nproc)
    generate laws laws "$seed" "${LAWS:-$((cores * 5 / 8))}" "configs/data/excluded.csv,fresh,$lists/feynman.csv,$lists/laws.csv"
    generate univariate univariate $((seed + 1)) "${UNIVARIATE:-$((cores / 8))}" configs/data/excluded.csv,fresh
    generate bivariate bivariate $((seed + 2)) "${BIVARIATE:-$((cores / 8))}" configs/data/excluded.csv,fresh
    dirs=$(folders "$@")
    train "$folder/try" --config.num_steps="${NUM_TRIED:-300}" --config.log_every=20 --config.checkpoint_every=0 2>&1 | tail -n 40 | tee "$out/try.log"
    cp "$folder/try/metrics.jsonl" "$out/try.jsonl"
    timeout "${TEST_SECONDS:-90}" "$python" -m pytest -m gpu tests/accelerator -q -x --maxfail=20 -p no:cacheprovider --durations=20 > "$out/tests.log" 2>&1
    tail -n 60 "$out/tests.log"
    for log in "$folder"/*.log; do tail -qn 1 "$log"; echo; done
    ;;
  train)
    minutes=${1:?expected minutes}; shift
    for pid in "$folder"/*.pid; do kill -TERM -- "-$(cat "$pid")"; done
    sleep 1
    dirs=$(folders "$@")
    # The median of the rates seen, a twelfth of the time for what is no step, and the second half at a falling rate.
    steps=$("$python" - "$folder/try/metrics.jsonl" "$minutes" <<'EOF'
import json, statistics, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
rates = [line["examples_per_s"] for line in lines if line["kind"] == "train"][2:]
batch = json.load(open(sys.argv[1].replace("metrics.jsonl", "config.json")))["data"]["batch_size"]
print(max(int(statistics.median(rates) / batch * 60 * float(sys.argv[2]) * 11 / 12) // 100 * 100, 10))
EOF
    )
    steps=${STEPS:-$steps}
    echo "$steps steps on $dirs"
    train "$folder/run" --config.num_steps="$steps" --config.optimizer.decay_steps=$((steps / 2)) --max_minutes="$minutes" > "$out/train.log" 2>&1
    cp "$folder/run/metrics.jsonl" "$out/"
    pack "$folder/run" model
    cp "$folder"/data/*/symformer_equations/*/*/manifest.json "$out/" 2> /dev/null || true
    tail -n 3 "$out/train.log"
    ls -l "$out"
    ;;
  *) echo "error: unknown stage '$stage': expected try or train" >&2; exit 2 ;;
esac
