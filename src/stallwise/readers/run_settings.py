"""Settings that logs, namespaces and config files state: loader workers, precision, where the data lies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source

FORMAT = "run settings"
_WORKERS = re.compile(
    r"\b(?:num_workers|dataloader_num_workers|workers|n_workers|loader_workers)['\"]?\s*[:= ]\s*(\d+)\b"
)
_SUGGESTED = re.compile(
    r"will create (\d+) worker processes in total.*?suggested max number of worker in current system is (\d+)"
)
_PRECISION = re.compile(
    r"\b(?:precision|amp_dtype|mixed_precision|dtype|opt_level|amp)\b['\"]?\s*[:=]?\s*['\"]?(?:torch\.)?"
    r"(amp_bf16|amp_fp16|bf16-mixed|16-mixed|bfloat16|float16|bf16|fp16|fp8|tf32|float32|fp32|O1|O2)\b",
    re.IGNORECASE,
)
_FLAG = re.compile(r"\b(fp16|bf16|fp8)['\"]?\s*[:=]\s*(True|true|1|yes)\b")
_ON_THE_FLY = re.compile(r"on[- ]the[- ]fly|tokeniz(?:ing|ation) (?:while|during) training", re.IGNORECASE)
_NETWORK_MOUNT = re.compile(
    r"type (?:fuse[.\w]*|nfs\d?|cifs|smb\w*|ceph|lustre|gpfs|beegfs|s3fs|gcsfuse)|\b(?:s3|gs|hdfs|abfs)://|"
    r"mounted? (?:drive|bucket|nfs)|drive/MyDrive",
    re.IGNORECASE,
)
_NAMES = {"o1": "fp16", "o2": "fp16", "amp_bf16": "bf16", "amp_fp16": "fp16", "bf16-mixed": "bf16", "16-mixed": "fp16",
          "bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}  # fmt: skip
_HINT = re.compile(
    rb"worker|fp16|bf16|fp8|precision|dtype|on[- ]the[- ]fly|type fuse|type nfs|opt_level", re.IGNORECASE
)
MAX_BYTES = 64 << 20


def recognises(name: str, head: bytes) -> bool:
    """Any text that mentions one of the settings."""
    start = head[:262144]
    return b"\x00" not in start[:4096] and b"traceEvents" not in start and bool(_HINT.search(start))


def read(artifact: Artifact) -> Iterator[Item]:
    """Each setting once, at its first place."""
    seen: set[str] = set()
    for number, text in enumerate(artifact.text(MAX_BYTES).splitlines(), 1):
        for fact in _facts(text[:20000], Source(artifact.name, f"line {number}")):
            if fact.quantity.name not in seen:
                seen.add(fact.quantity.name)
                yield fact


def _facts(text: str, source: Source) -> Iterator[Fact]:
    if match := _SUGGESTED.search(text):
        yield Fact(run.LOADER_WORKERS, float(match[1]), source, note="in total")
        yield Fact(run.CPU_CORES, float(match[2]), source)
    if match := _WORKERS.search(text):
        yield Fact(run.LOADER_WORKERS, float(match[1]), source)
    if match := _FLAG.search(text):
        yield Fact(run.PRECISION, match[1].lower(), source)
    elif match := _PRECISION.search(text):
        word = match[1].lower()
        yield Fact(run.PRECISION, _NAMES.get(word, word), source)
    elif re.search(r"16-bits training: True|Using amp fp16", text):
        yield Fact(run.PRECISION, "fp16", source)
    if _ON_THE_FLY.search(text):
        yield Fact(run.ON_THE_FLY, 1.0, source)
    if _NETWORK_MOUNT.search(text):
        yield Fact(run.NETWORK_STORAGE, 1.0, source)
