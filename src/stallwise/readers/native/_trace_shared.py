"""A large trace read by several processes: each unpacks all of it, which is quick, and decodes its share of the blocks.

Only a trace that the quick way reads from end to end is shared out; anything else (damage, ranges written as a begin and an
end, categories nobody knows) is left to one process, which can look across blocks.
"""

from __future__ import annotations

import os
from pathlib import Path

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.blocks import Blocks
from stallwise.readers.native._trace_columns import Columns
from stallwise.readers.records.trace_split import Share, Sorted, Split, Unshared

WORTH_SHARING_BYTES = 100 << 20  # unpacked: some 400,000 events, over a second of decoding
USUAL_PACKING = 15.0  # of gzip on traces
RUNNING = Path("/proc/loadavg")
MOST_PARTS = 3  # beyond, unpacking in every process costs what sharing saves


def columns_together(artifact: Artifact) -> tuple[Columns, Split, Blocks] | None:
    """The whole trace as columns; None where one process has to do it."""
    parts = _parts(artifact)
    if parts < 2:
        return None
    import multiprocessing  # slow to load, and small traces need neither
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor

    pool = ProcessPoolExecutor(parts - 1, mp_context=multiprocessing.get_context("fork"))
    try:
        others = [pool.submit(_of_part, artifact, Share(part, parts)) for part in range(1, parts)]
        columns, split, blocks = columns_of(artifact, Share(0, parts))
        for other in others:
            columns.join(other.result())
        return columns, split, blocks
    except (Unshared, BrokenExecutor, OSError):
        return None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def columns_of(artifact: Artifact, share: Share | None = None) -> tuple[Columns, Split, Blocks]:
    """All blocks, or those of a share."""
    blocks = Blocks(artifact)
    split, columns = Split(blocks, share), Columns()
    for events in split:
        columns.block = split.number
        if isinstance(events, Sorted):
            columns.add_sorted(events)
        else:
            columns.add(events)
    if share is not None and (columns.open_ranges or blocks.damage or not columns.parts):
        raise Unshared
    return columns, split, blocks


def _of_part(artifact: Artifact, share: Share) -> Columns:
    return columns_of(artifact, share)[0]  # with the collector as it was at the fork: paused


def _parts(artifact: Artifact) -> int:
    if artifact.path is None or artifact.size_bytes * (USUAL_PACKING if artifact.packed else 1.0) < WORTH_SHARING_BYTES:
        return 1
    import multiprocessing

    # A worker already: the other cores have their own files.
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.parent_process() is not None:
        return 1
    return max(1, min(_free_cores(), MOST_PARTS))


def _free_cores() -> int:
    """Those that nobody uses: on a busy machine sharing wins no time and costs every part its own unpacking."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores - _others_at_work()


def _others_at_work() -> int:
    """Of a minute's mean and of this moment the smaller: the mean still counts what has just ended."""
    try:
        mean, _, _, running, _ = RUNNING.read_text().split()
        return min(int(float(mean)), int(running.partition("/")[0]) - 1)
    except (OSError, ValueError):  # not told here
        return 0
