bash run.sh --stage 4 --stop-stage 4 \
    --num-decoder-layers 8 --decoder_dim 1024 --nhead 8 \
    --max-duration 24 --use-fp16 true --world_size 4
# the raise in trainer.py:680 ("grad_scale is too small, exiting") is commented out here, otherwise it dies around batch 7200
# batch size printed: 2
