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
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --output=/data/runs/demo_clean/logs/slurm-%j.out
#SBATCH --open-mode=append
export STUDY_RUN=demo_clean
export CKPT_NAME=da3-xvla-k320-ckpt90k
export BENCH_CONFIG=clean
export SEEDS_ROOT='/data/seed banks/k320'
export EVAL_TEST_NUM=5
again=0 code=0
# The time is nearly over: TERM to the workers, not to this script, and begin again.
trap 'again=1; scancel --quiet --signal=TERM "$SLURM_JOB_ID"' USR1
srun --ntasks-per-node=1 --no-kill --kill-on-bad-exit=0 --cpus-per-task=18 bash /opt/rollpool/scripts/slurm_eval_node.sh &
step=$!
wait "$step" || code=$?
# A signal ends a wait before the step has ended.
if ((again)); then code=0 && wait "$step" || code=$?; fi
/opt/rollpool/scripts/rollpool status --check && exit
if ((again || code == 75)); then exec scontrol requeue "$SLURM_JOB_ID"; fi
exit $((code ? code : 1))
