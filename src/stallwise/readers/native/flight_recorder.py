"""PyTorch flight-recorder dumps (pickle or JSON, versions 1 to 2.10): every recent collective of one rank.

Nothing in the pickle is executed. The rank is in the file's name (the dump itself does not carry it).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._cells import LARGEST_WHOLE, json_of
from stallwise.readers._collective_waits import UNKNOWN, Wait, waits_table
from stallwise.readers._patterns import patterns
from stallwise.readers._traceback import is_own
from stallwise.readers.native._plain_pickle import load_plain, looks_like_pickle

FORMAT = "flight recorder"
CAPTURE = (
    "TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_DEBUG_INFO_TEMP_FILE=fr/rank_ python train.py"
)
EXCLUSIVE = True
MAX_BYTES = 1 << 30
MAX_FRAMES = 64  # of one stack; deeper ones repeat
_P = patterns("stacks")


def recognises(name: str, head: bytes) -> bool:
    """A pickle or JSON with the keys that every version writes."""
    if not (looks_like_pickle(head) or head.lstrip()[:1] in (b"{", b"[")):
        return False
    return b"profiling_name" in head and (b"entries" in head[:65536] or b"seq_id" in head)


def read(artifact: Artifact) -> Iterator[Item]:
    """The table of this rank's collectives, oldest first."""
    with artifact.open() as stream:
        data = stream.read(MAX_BYTES)
    dump = load_plain(data, artifact.name) if looks_like_pickle(data) else json_of(data, artifact.name, "dump it again")
    entries = dump.get("entries", []) if isinstance(dump, dict) else dump
    if not isinstance(entries, list):
        raise UnreadableInput(
            f"{artifact.name} has no list of collectives", hint="dump it again with PyTorch 2.2 or newer"
        )
    rank = _rank(artifact.name, dump)
    status = dump.get("pg_status", {}) if isinstance(dump, dict) else {}
    waits = [w for e in entries if isinstance(e, dict) and (w := _wait(e, rank, status)) is not None]
    took = [e.get("duration_ms") for e in entries if isinstance(e, dict)]
    durations_s = [1e-3 * t for t in took if isinstance(t, int | float) and 0 < t < LARGEST_WHOLE]
    meta: dict[str, object] = {"dump": True, "rank": rank, "groups": _groups(dump), "durations_s": durations_s}
    yield waits_table(waits, artifact.name, meta)
    if rank < 0:
        yield Note("the file's name does not end with a rank", Source(artifact.name))
    if len(waits) < len(entries):
        yield Note(f"{len(entries) - len(waits)} records could not be read", Source(artifact.name), lost=True)


def _rank(name: str, dump: Any) -> int:
    if isinstance(dump, dict) and isinstance(dump.get("rank"), int):
        return int(dump["rank"])
    match = _P["rank_of_dump"].search(name)
    return int(match[1]) if match else -1


def _groups(dump: Any) -> dict[str, list[int]]:
    """Members of each group, where the dump lists them: "[0, 1, 2]" or a list."""
    found: dict[str, list[int]] = {}
    config = dump.get("pg_config", {}) if isinstance(dump, dict) else {}
    for key, group in config.items() if isinstance(config, dict) else ():
        ranks = group.get("ranks") if isinstance(group, dict) else None
        if isinstance(ranks, str):
            found[str(key)] = [int(n) for n in re.findall(r"(?<!\d)\d{1,9}(?!\d)", ranks[:100_000])]
        elif isinstance(ranks, list):
            found[str(key)] = [int(n) for n in ranks[:100_000] if isinstance(n, int)]
    return found


def _wait(entry: dict[str, Any], rank: int, status: Any) -> Wait | None:
    p2p = bool(entry.get("is_p2p"))
    sequence = entry.get("p2p_seq_id") if p2p else entry.get("collective_seq_id", entry.get("seq_id"))
    if not isinstance(sequence, int):
        return None
    group = entry.get("process_group")
    name = str(group[0]) if isinstance(group, (list, tuple)) and group else str(entry.get("pg_id", ""))
    mine = found if isinstance(status, dict) and isinstance(found := status.get(name), dict) else {}
    sizes = entry.get("input_sizes")
    return Wait(
        rank=rank,
        group=f"{name} p2p" if p2p else name,
        sequence=sequence,
        op=str(entry.get("profiling_name", ""))[:80],
        state=str(entry.get("state", "")),
        elements_in=_elements(sizes),
        elements_out=_elements(entry.get("output_sizes")),
        shape=str(sizes)[:80],
        dtype=_first(entry.get("input_dtypes")),
        enqueued=_int(mine.get("last_enqueued_collective")),
        completed=_int(mine.get("last_completed_collective")),
        time_s=_int(created) / 1e9 if isinstance(created := entry.get("time_created_ns"), int) else float("nan"),
        frame=_frame(entry.get("frames")),
        via="flight recorder",
        line=_int(entry.get("record_id")),
    )


def _int(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_WHOLE else UNKNOWN


def _elements(sizes: Any) -> int:
    """Elements over all tensors of one call."""
    if not isinstance(sizes, (list, tuple)):
        return UNKNOWN
    shapes = (shape[:16] if isinstance(shape, (list, tuple)) else () for shape in sizes[:4096])
    return min(sum(math.prod(dim for dim in shape if isinstance(dim, int)) for shape in shapes), 2**62)


def _first(value: Any) -> str:
    return str(value[0]) if isinstance(value, (list, tuple)) and value else ""


def _frame(frames: Any) -> str:
    """The innermost frame of the user's own code."""
    usable = [f for f in frames[:MAX_FRAMES] if isinstance(f, dict)] if isinstance(frames, (list, tuple)) else []
    if not usable:
        return ""
    frame = next((f for f in usable if is_own(str(f.get("filename", "")))), usable[0])
    return f"{frame.get('filename')}:{frame.get('line')} {frame.get('name')}"[:200]
