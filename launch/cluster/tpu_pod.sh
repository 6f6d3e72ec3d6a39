#!/bin/bash
# A training run on a Cloud TPU pod slice:
#   launch/cluster/tpu_pod.sh symformer us-east5-a v5p-256 configs/univariate.py gs://BUCKET/run gs://BUCKET/data
# Arguments: name, zone, accelerator type, config file, bucket folders of the run and of the data.
# Makes the slice unless it is there, installs this checkout on every host and starts the same command on all of them;
# jax.distributed knows the pod. The buckets are mounted, so checkpoints and shards are plain files. After a
# preemption, delete the slice and give the command again: the run resumes.
set -eu
name=$1 zone=$2 accelerator=$3 config=$4 run=$5 data=$6

gcloud compute tpus tpu-vm describe "$name" --zone="$zone" > /dev/null 2>&1 ||
  gcloud compute tpus tpu-vm create "$name" --zone="$zone" --accelerator-type="$accelerator" \
    --version=v2-alpha-tpuv5 --spot

on_all_hosts() {
  gcloud compute tpus tpu-vm ssh "$name" --zone="$zone" --worker=all --command="$1"
}

mount_bucket() { # gs://BUCKET/FOLDER -> /mnt/BUCKET/FOLDER
  local bucket=${1#gs://}
  bucket=${bucket%%/*}
  on_all_hosts "mountpoint -q /mnt/$bucket || (sudo mkdir -p -m 777 /mnt/$bucket && gcsfuse --implicit-dirs $bucket /mnt/$bucket)"
}

git archive --format=tar.gz --output=/tmp/symformer.tar.gz HEAD
gcloud compute tpus tpu-vm scp /tmp/symformer.tar.gz "$name:" --zone="$zone" --worker=all
on_all_hosts "mkdir -p symformer && tar -xzf symformer.tar.gz -C symformer && python3 -m venv venv && venv/bin/pip install -q './symformer[train,tpu]'"
mount_bucket "$run"
mount_bucket "$data"
on_all_hosts "cd symformer && ../venv/bin/python -m launch.train --distributed --config=$config --workdir=/mnt/${run#gs://} --config.data.dirs=\"('/mnt/${data#gs://}',)\""
