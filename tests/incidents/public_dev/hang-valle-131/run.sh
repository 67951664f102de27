python3 bin/trainer.py --max-duration 40 --num-buckets 6 --filter-min-duration 0.5 \
  --drop-last False --world-size 4 --train-stage 1 --dtype bfloat16 --exp-dir exp/valle_dev
