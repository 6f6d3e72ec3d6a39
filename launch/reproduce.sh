#!/usr/bin/env bash
# A model like a shipped one from nothing, in one run: data, training, export, every suite of evaluation, and its card; each step resumes.
# Usage: launch/reproduce.sh NAME [FOLDER]      NAME: univariate, univariate-quick, bivariate or tiny (a rehearsal of the steps)
#        launch/reproduce.sh NAME FOLDER evaluate      the suites alone, of the model NAME as it ships
# Everything is written below FOLDER (default: runs/NAME); the suites go to FOLDER/results/SUITE.
# Before atoms joined the search the suites of `univariate` took 36 minutes on one core, those of `bivariate` about twice that:
# fewer equations for the two long ones than launch.evaluate asks by itself. MINUTES=N bounds the training, EQUATIONS=N the data, NUM_EQUATIONS=N every suite.
set -euo pipefail

name=${1:?expected the name of a model: univariate, univariate-quick, bivariate or tiny}
folder=${2:-runs/$name}
only=${3:-}
python=${PYTHON:-python}
workers=${WORKERS:-$(nproc)}
# Huge pages: 1.4 times the speed of training on a CPU (docs/results/training_speed.md).
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}

# Per model: configurations, equations by the rules and by SymPy's cheap passes, variables.
case $name in
  univariate) data_config=univariate config=small_univariate rules=1000000 fast=120000 variables=1 ;;
  univariate-quick) data_config=univariate config=small rules=1000000 fast=120000 variables=1 ;;
  bivariate)  data_config=bivariate config=small_bivariate rules=1000000 fast=120000 variables=2 ;;
  tiny)       data_config=univariate config=tiny rules=2048 fast=0 variables=1 ;;
  *) echo "error: unknown model '$name': expected univariate, univariate-quick, bivariate or tiny" >&2; exit 2 ;;
esac
rules=${EQUATIONS:-$rules}

generate() {  # simplifier, equations, seed
  "$python" -m data_gen.generate --config="configs/data/$data_config.py" --simplify="$1" --out="$folder/data/$1" \
    --equations="$2" --validation=1024 --seed="$3" --workers="$workers"
}

train() {
  local dirs="'$folder/data/rules',"
  generate rules "$rules" 2
  if [ "$fast" -gt 0 ]; then
    generate fast "$fast" 1
    dirs="$dirs '$folder/data/fast'"
  fi
  "$python" -m launch.train --config="configs/$config.py" --workdir="$folder/run" --config.data.dirs="($dirs)" \
    ${MINUTES:+--max_minutes="$MINUTES"}
  "$python" -m launch.export --workdir="$folder/run" --name="$name" --out="$folder/model"
}

# A suite's exit code 1 says that rows have no answer (a model of one variable asked for two): the report has them.
evaluate() {  # folder of the results, flags
  local out=$1; shift
  "$python" -m launch.evaluate --model="$model" --out="$folder/results/$out" \
    "$@" ${NUM_EQUATIONS:+--num_equations="$NUM_EQUATIONS"} || [ $? -eq 1 ]
}

evaluate_all() {
  local count
  for count in $(seq "$variables"); do
    # Fresh equations of as many variables as the model knows, and of fewer.
    evaluate "in_domain-$count" --suite=in_domain --variables="$count"
    evaluate "out_of_domain-$count" --suite=out_of_domain --variables="$count" --num_equations=256
    evaluate "samples-$count" --suite=samples --variables="$count" --num_equations=16
  done
  evaluate paper --suite=paper
  evaluate reference --suite=paper --list=reference
  # The model alone: nothing but its own candidates and their constants.
  evaluate paper-alone --suite=paper --norecombine
  evaluate reference-alone --suite=paper --list=reference --norecombine
  for suite in official laws noise points ranges examples; do
    evaluate "$suite" --suite="$suite"
  done
}

if [ "$only" = evaluate ]; then
  model=$name
else
  train
  model=$folder/model
fi
evaluate_all
if [ "$only" != evaluate ]; then
  "$python" -m launch.card --model="$model" --results="$folder/results" --hardware="$(uname -m), $(nproc) CPU cores"
fi
