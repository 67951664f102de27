#!/usr/bin/env bash
# One sitting on a GPU machine: overhead, ceilings, and the planted examples under `stallwise run`. Usage: session.sh OUT
out=${1:?usage: session.sh OUT}
export PYTHONPATH="$PWD/src:${EXTRA_PACKAGES:-}" PYTHONUNBUFFERED=1 STALLWISE_PROFILE=/tmp/hardware.json
for name in slow_loader slow_checkpoint garbage eval_in_loop healthy; do
    timeout 60 python3 -m stallwise run -o "/tmp/run_$name" --json -- python3 "examples/$name.py" >"/tmp/run_$name.json" 2>/tmp/err || tail -3 /tmp/err
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(sys.argv[1], d['ranked'][:3], d['findings'][0]['headline'] if d['findings'] else '')" "/tmp/run_$name.json"
done
ls -R /tmp/run_slow_loader; head -c 1500 /tmp/run_slow_loader/log.txt
tar czf "$out/runs.tgz" -C /tmp $(cd /tmp && ls -d run_*)
timeout 60 python3 -m stallwise numerics bench/gpu/growing_model.py --short 512 --long 8192 --long 32768 2>&1 | head -20
python3 bench/span_cost.py | tee "$out/span_cost.txt"
timeout 400 python3 bench/gpu/overhead.py 2>&1 | tee "$out/overhead.txt" | cut -c1-300
