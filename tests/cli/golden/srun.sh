STUDY_RUN=demo_clean CKPT_NAME=da3-xvla-k320-ckpt90k BENCH_CONFIG=clean SEEDS_ROOT='/data/seed banks/k320' EVAL_TEST_NUM=5 \
  srun --job-name=demo_clean --nodes=4 --partition=gb10 '--nodelist=trt-gb10-[3-6]' --gres=gpu:1 --cpus-per-task=18 --time=600 --exclusive --ntasks-per-node=1 --no-kill --kill-on-bad-exit=0 \
  bash /opt/rollpool/scripts/slurm_eval_node.sh
