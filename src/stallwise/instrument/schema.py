"""The lines of a record file: one JSON object a line, keys kept short since a run writes one line a step for days.

    {"k": "run",  "v": 1, "rank": 0, "world": 8, "pid": ..., "host": "...", "t": epoch_s, "env": {...}}
    {"k": "step", "n": 12, "t": epoch_s, "d": seconds, "s": {"forward": host_s}, "m": {...}}
    {"k": "mark", "name": "...", "n": 12, "t": epoch_s, "note": "..."}
    {"k": "stack", "n": 12, "t": epoch_s, "text": "..."}        every thread, when no step ended for too long
    {"k": "end",  "n": 12, "t": epoch_s, "why": "exit" | "exception" | "signal 15"}

Times are seconds. `s` holds host seconds by stage, `m` gauges. Device seconds by stage follow in a line of their own,
{"k": "gpu", "n": 11, "g": {...}}, when the events of step 11 have passed. A torn last line is normal.
"""

VERSION = 1

# The seven stages of a training step. `side` is what no other stage covers: logging, checkpoints, evaluation, the rest.
BATCH_WAIT = "batch_wait"
H2D = "h2d"
FORWARD = "forward"
BACKWARD = "backward"
GRADIENT_SYNC = "gradient_sync"
OPTIMIZER = "optimizer"
SIDE = "side"
STAGES = (BATCH_WAIT, H2D, FORWARD, BACKWARD, GRADIENT_SYNC, OPTIMIZER, SIDE)

# Parts of side work that have a name of their own.
CHECKPOINT = "checkpoint"
COLLECTION = "gc"
EVALUATION = "evaluation"


def file_name(rank: int) -> str:
    """One file a rank; nobody shares a file or a lock."""
    return "rank-%05d.jsonl" % rank
