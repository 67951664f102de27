"""What a sentence loads: numbers of modules, which only go down. Seconds are for the benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys

SENTENCE = "my training is slow and GPU util is low, what is wrong here??"
COUNT = """
import json, sys
sys.argv = ["stallwise", "diagnose", sys.argv[1]]
from stallwise.surfaces.cli import run
try:
    run()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
MOST = (
    360  # 893 before provers and measures were loaded by their inputs, 566 before numpy was loaded by the first array
)
MOST_CAUSES, MOST_MEASURES = 10, 10  # with their packages: what reads any sentence, and what its facts ask for
NEVER = ("importlib.resources", "xml.parsers", "statistics", "jinja2", "torch", "numpy", "msgspec", "zipfile")


def test_a_sentence_loads_what_it_needs() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT, SENTENCE], capture_output=True, text=True)
    assert "input-starved" in done.stdout
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert len(loaded) <= MOST
    assert sum(name.startswith("stallwise.causes") for name in loaded) <= MOST_CAUSES
    assert sum(name.startswith("stallwise.doctor.measures") for name in loaded) <= MOST_MEASURES
    assert not set(NEVER) & set(loaded)
