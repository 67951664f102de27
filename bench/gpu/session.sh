#!/usr/bin/env bash
# One sitting on a GPU machine: overhead, ceilings, and the planted examples under `stallwise run`. Usage: session.sh OUT
out=${1:?usage: session.sh OUT}
export PYTHONPATH="$PWD/src:${EXTRA_PACKAGES:-}" PYTHONUNBUFFERED=1 STALLWISE_PROFILE=/tmp/hardware.json
python3 bench/span_cost.py | tee "$out/span_cost.txt"
timeout 330 python3 bench/gpu/overhead.py 2>&1 | tee "$out/overhead.txt" | cut -c1-300
python3 -m stallwise measure --json >"$out/measure.json" 2>"$out/measure.txt"; tail -20 "$out/measure.txt"
for name in slow_loader slow_checkpoint garbage eval_in_loop healthy; do
    timeout 60 python3 -m stallwise run -o "/tmp/run_$name" --json -- python3 "examples/$name.py" >"$out/run_$name.json" 2>/tmp/err || tail -3 /tmp/err
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(sys.argv[1], d['ranked'][:3], d['findings'][0]['headline'] if d['findings'] else '')" "$out/run_$name.json"
done
tar czf "$out/runs.tgz" -C /tmp $(cd /tmp && ls -d run_*)
