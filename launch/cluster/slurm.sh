#!/bin/bash
# A training run on Slurm: sbatch --nodes=4 launch/cluster/slurm.sh configs/univariate.py /shared/run /shared/data
# Arguments: config file, work directory and data folder, both on a file system that all nodes see.
# One process per GPU; Slurm tells jax.distributed who they are. Two minutes before the time limit the processes are
# told to save, leave with exit code 75, and the job goes back into the queue, where the same command resumes.
#SBATCH --job-name=symformer
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
config=$1 workdir=$2 data=$3

srun --kill-on-bad-exit=0 python -m launch.train --distributed --config="$config" --workdir="$workdir" \
  --config.data.dirs="('$data',)"
code=$?
if [ "$code" -eq 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
