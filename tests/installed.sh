#!/usr/bin/env bash
# What was installed works away from the checkout, beside packages that have modules of the names of our folders.
# Usage: tests/installed.sh   in an environment into which the project was installed (not with --editable); .ci/run calls it.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
strangers=("$site/launch.py" "$site/configs.py" "$site/data_gen.py")
made=()
trap 'rm -rf "$scratch" "${made[@]}"' EXIT
cd "$scratch"

# Another package's modules, which stay what `import` finds.
for file in "${strangers[@]}"; do
  if [[ -e "$file" || -e "${file%.py}" ]]; then echo "error: $file is there already" >&2; exit 2; fi
  made+=("$file")
  echo 'OWNER = "another package"' > "$file"
done
python -c 'import launch, configs, data_gen, symformer_jax; assert launch.OWNER == configs.OWNER == data_gen.OWNER'

for command in "" -predict -train -export -card -validate -evaluate -benchmark -generate -inspect -beam; do
  "symformer$command" --help > help.txt
  grep --quiet --fixed-strings 'Flags:' help.txt
done

python -m symformer_jax.infer --data="$root/examples/kepler.csv" | tee kepler.txt
grep --quiet --fixed-strings 'recommended: period = axis**1.5' kepler.txt
python -m symformer_jax.infer --data="$root/examples/kepler.csv" --quiet --out=kepler.json
symformer-predict kepler.json "$root/examples/kepler.csv" > predicted.csv
grep --quiet 'predicted$' predicted.csv
# Workers are processes of their own, and a config file imports its sibling.
symformer-generate --config=configs/data/bivariate.py --simplify=rules --out=data --equations=256 --workers=2 --quiet
symformer-inspect data --samples=1 > inspected.txt
grep --quiet --fixed-strings 'symformer_equations/bivariate' inspected.txt
printf 'family,name,n_vars,expression,ranges\nown,square,1,x**2,0:5\n' > problems.csv
symformer-evaluate --problems=problems.csv --samples=64 --out=evaluation
test -s evaluation/report.md
