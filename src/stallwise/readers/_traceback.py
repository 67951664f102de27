"""Python tracebacks in logs: the frames, and which phase of a program they belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Frame(NamedTuple):
    """One line of a traceback."""

    file: str
    function: str
    code: str = ""


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_PREFIX = re.compile(r"^(?:\[(?:rank|default)?\d+\]:?\s?|\S*\(\w+ pid=\d+(?:, ip=\S+)?\)\s?|\d+:\s)+")

# In order: the narrow phases first. A phase holds when any frame matches its file, function or code.
_PHASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("capture", re.compile(r"capture_model|CUDAGraph|cuda_graph|graph_runner|capture_graph|make_graphed|cudagraph",
                           re.I)),
    ("evaluation", re.compile(r"validation_step|evaluat|eval_loop|eval_step|validate\b|val_step|prediction_step|"
                              r"\bpredict\b|_evaluate|test_step|\beval_epoch|evaluation_loop", re.I)),
    ("optimizer", re.compile(r"torch/optim/|optim/\w+\.py|_init_group|exp_avg|optimizer\.step|deepspeed/ops/adam|"
                             r"zero/stage\w*\.py.*step|apex/optimizers|bitsandbytes/optim", re.I)),
    ("gather", re.compile(r"_alloc_padded_unsharded_flat_param|unshard|all_gather|_fully_shard|partition_parameters|"
                          r"flat_param", re.I)),
    ("loss", re.compile(r"cross_entropy|loss_fct|nll_loss|log_softmax|loss_function|CrossEntropy|logits\.float\(\)|"
                        r"lm_head|compute_loss_func|\bsampler\b|_dummy_sampler|logits_processor|compute_logits", re.I)),
    ("attention scores", re.compile(r"softmax\(|attn_weights|attention_scores|baddbmm|torch\.bmm\(q|"
                                    r"matmul\(q(?:uery)?|get_attention_scores|attention_probs", re.I)),
    ("warm-up", re.compile(r"\bwarmup\b|warm_up|profile_run|determine_num_available|_dummy_run|memory_profiling",
                           re.I)),
    ("backward", re.compile(r"\.backward\(|autograd/|_engine_run_backward|backward_step", re.I)),
    ("load", re.compile(r"from_pretrained|load_state_dict|load_model|load_weights|\.to\(['\"]?cuda|\.cuda\(|"
                        r"torch/serialization|convert\b.*t\.to\(|weight_loader|initialize_model", re.I)),
    ("forward", re.compile(r"\bforward\b|_call_impl|generate|training_step|train_step", re.I)),
)  # fmt: skip


def frames_before(lines: Sequence[str], end: int, most: int = 120) -> list[Frame]:
    """The frames of the traceback that ends just before line `end` (0-based), outermost first."""
    found: list[Frame] = []
    for at in range(end - 1, max(-1, end - most), -1):
        line = _PREFIX.sub("", lines[at]).strip()
        if match := _FRAME.search(line):
            following = _PREFIX.sub("", lines[at + 1]).strip() if at + 1 < end else ""
            code = "" if _FRAME.search(following) else following
            found.append(Frame(match[1], match[3], code))
        elif line.startswith("Traceback (most recent call last)"):
            break
    return found[::-1]


def phase_of(frames: Sequence[Frame]) -> str:
    """What the program was doing: the narrowest phase any frame shows."""
    texts = [f"{f.file} {f.function} {f.code}" for f in frames]
    for phase, pattern in _PHASES:
        if any(pattern.search(text) for text in texts):
            return phase
    return ""


def place_of(frames: Sequence[Frame]) -> str:
    """The innermost line of the user's own code, or the innermost at all."""
    own = [f for f in frames if "site-packages" not in f.file and not f.file.startswith("torch/")]
    if not frames:
        return ""
    frame = own[-1] if own else frames[-1]
    return f"{frame.file.rsplit('/', 1)[-1]} {frame.function}" + (f": {frame.code}" if frame.code else "")
