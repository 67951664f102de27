"""What our own recorder leaves beside its records: bundle.json (how the job ended), processes.jsonl (which of its processes were
reached), trials.json of `stallwise try`, and the window in which only the device was traced.

That window shows kernels as they run without a profiler on the host. Whoever replays the full trace reads it beside that; by
itself it names no step.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import job, run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source, Table
from stallwise.readers._cells import json_of
from stallwise.readers._patterns import patterns
from stallwise.readers.native.torch_trace import DEVICE_ONLY
from stallwise.readers.shapes.tree import tree_of

FORMAT = "stallwise bundle"
CAPTURE = "stallwise record -o RUN_DIR -- python train.py"
EXCLUSIVE = True
FIRST = re.compile(rb'^\s*\{\s*"(stallwise_bundle"|k": "process"|schema":\s*"stallwise\.trials/1")')
_P = patterns("stacks")


def recognises(name: str, head: bytes) -> bool:
    """Our own first words, or the name that the recorder gives a trace: its bytes are those of any other."""
    return FIRST.match(head) is not None or (name.endswith(DEVICE_ONLY) and b'"schemaVersion"' in head)


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts of the end; of trials one table, its rows as they are."""
    source, begun = Source(artifact.name), FIRST.match(artifact.head)
    if begun is None:  # the window
        return
    if begun[1].startswith(b"k"):
        yield from _processes(artifact, source)
        return
    about = json_of(artifact.text(), artifact.name, "record the job again")
    if begun[1].startswith(b"schema"):
        yield Table("trials", {}, source, meta=about)
        return
    yield from _setting(about, source)
    if isinstance(about.get("exit_code"), int):
        yield from _end(about, source)
    if isinstance(about.get("logged_steps"), dict):
        yield from _logged_steps(about["logged_steps"], source)


def _setting(about: dict[str, Any], source: Source) -> Iterator[Item]:
    """What the job ran on and how it was started."""
    cpus, command = about.get("cpus"), about.get("command")
    if isinstance(cpus, int) and not isinstance(cpus, bool) and cpus > 0:
        yield Fact(run.CPU_CORES, float(cpus), source)
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command) or not command:
        return
    yield Fact(job.COMMAND, shlex.join(command), source)
    script = next((part for part in command if part.endswith(".py")), None)
    if script is not None:
        yield Fact(job.SCRIPT, script, source)


def _end(about: dict[str, Any], source: Source) -> Iterator[Item]:
    code = int(about["exit_code"])
    yield Fact(job.EXIT_CODE, float(code), source)
    if about.get("signal_name"):
        yield Fact(job.SIGNAL, str(about["signal_name"]), source)
    words = [str(line) for line in about.get("last_words", []) if isinstance(line, str)]
    errors = [line for line in words if _P["names_itself"].match(line) and not line.startswith("stallwise:")]
    if code != 0 and words:
        yield Fact(job.LAST_WORDS, (errors or words)[-1].strip()[:300], source)
    kernel = [str(line) for line in about.get("kernel", [])]
    if about.get("oom_kills"):
        yield Fact(job.KILLED_FOR_MEMORY, f"the control group counts {about['oom_kills']} killed for memory", source)
    elif kernel:
        yield Fact(job.KILLED_FOR_MEMORY, kernel[-1], source)


def _logged_steps(logged: dict[str, Any], source: Source) -> Iterator[Item]:
    """What the job's own output counted, timed from outside."""
    try:
        number, seconds = (np.array(logged[key], dtype=np.float64) for key in ("n", "s"))
    except (KeyError, TypeError, ValueError):
        return
    if len(number) == len(seconds) > 0 and np.isfinite(seconds).all():
        at = Source(source.file, f"times of the lines '{str(logged.get('line'))[:60]}'")
        yield Series(run.STEP_TIME, number, seconds, at)
        yield Fact(job.STEP_BOUNDARY, "a line of the output", at)


def _processes(artifact: Artifact, source: Source) -> Iterator[Item]:
    """A run whose processes never imported a framework has nothing that could be recorded."""
    found = tree_of(artifact.name, artifact.text())
    entries = found if isinstance(found, list) else [found]
    seen = [str(entry.get("what")) for entry in entries if isinstance(entry, dict)]
    yield Fact(job.PROCESSES, float(seen.count("begin")), source)
    if seen and not {"torch", "jax"} & set(seen):
        kept = "what it told by stallwise's verbs" if "verbs" in seen else "its output"
        yield Fact(job.RECORDER_NOTE, f"no process of the job imported torch or jax: only {kept} was recorded", source)
