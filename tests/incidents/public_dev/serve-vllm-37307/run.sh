vllm serve /models/llama-70b-fp8 --tensor-parallel-size 4 --max-num-batched-tokens 24000 --no-enable-prefix-caching
vllm bench serve --dataset-name random --random-input-len 40000 --random-output-len 1000 --num-prompts 100 --max-concurrency 100
