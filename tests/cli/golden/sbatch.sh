#!/usr/bin/env bash
#SBATCH --job-name=demo_clean
#SBATCH --nodes=4
#SBATCH --partition=gb10
#SBATCH --nodelist=trt-gb10-[3-6]
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=18
#SBATCH --time=600
#SBATCH --exclusive
#SBATCH --ntasks-per-node=1
#SBATCH --no-kill
#SBATCH --output=/data/runs/demo_clean/logs/slurm-%j.out
#SBATCH --open-mode=append
export STUDY_RUN=demo_clean
export CKPT_NAME=da3-xvla-k320-ckpt90k
export BENCH_CONFIG=clean
export SEEDS_ROOT='/data/seed banks/k320'
export EVAL_TEST_NUM=5
code=0
srun --ntasks-per-node=1 --no-kill --kill-on-bad-exit=0 --cpus-per-task=18 bash /opt/rollpool/scripts/slurm_eval_node.sh || code=$?
/opt/rollpool/scripts/rollpool status --check || exit $((code ? code : 1))
