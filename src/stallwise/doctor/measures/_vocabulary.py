"""What names mean, whatever the vendor or year: operators, kernels, runtime calls and annotations.

Operators are trusted before kernel names: a kernel's name is the library's own affair and changes with every release.
Each table is tried top down; the first match wins.
"""

# ruff: noqa: E501 - patterns are read as one line
from __future__ import annotations

import re
from enum import IntEnum, IntFlag
from functools import lru_cache
from typing import TypeVar


class Work(IntEnum):
    """What a kernel is for."""

    OTHER = 0
    GEMM = 1
    CONV = 2
    ATTENTION = 3
    SOFTMAX = 4
    NORM = 5
    ELEMENTWISE = 6
    REDUCTION = 7
    CAST = 8
    LAYOUT = 9
    INDEX = 10
    LOSS = 11
    OPTIMIZER = 12
    COMMUNICATION = 13
    FUSED = 14  # made by a compiler out of several pointwise or reduction operators
    COPY = 15  # memcpy and memset
    COPY_OP = 16  # a copy operator before its reason (cast or layout) is known


T = TypeVar("T")
Table = tuple[tuple[T, re.Pattern[str]], ...]


def _table(*rows: tuple[T, str]) -> Table[T]:
    """Patterns for names in lower case: a third of the time that ignoring case takes."""
    return tuple((meaning, re.compile(pattern.lower())) for meaning, pattern in rows)


def _first(table: Table[T], name: str, otherwise: T) -> T:
    lowered = name.lower()
    return next((meaning for meaning, pattern in table if pattern.search(lowered)), otherwise)


# Two tables, alike because both sort names into the same kinds of work: operators are spelled otherwise than kernels.
_OPERATORS = _table(
    (Work.COMMUNICATION, r"^(c10d|nccl|rccl|gloo|record_param_comms|dist::|_c10d_functional)|nccl:|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"),
    (Work.OPTIMIZER, r"_fused_(adam|adamw|sgd|adagrad|lamb)|^Optimizer\."),
    (Work.ATTENTION, r"attention|flash_attn|flash::|fmha|sdpa|paged_attn|::mha_|unified_attn"),
    (Work.CONV, r"conv(olution)?(_|\d|$|Backward|TransposeBackward)|::conv|miopen_conv|cudnn_conv|slow_conv"),
    (Work.GEMM, r"::(mm|bmm|addmm|baddbmm|addbmm|matmul|linear|_scaled_mm|_grouped_mm|_int_mm|mv|addmv|dot|einsum|_sparse_mm)(_out|_backward)?$|gemm|fused_moe|fused_experts|marlin|machete"),
    (Work.LOSS, r"nll_loss|cross_entropy|_log_softmax|mse_loss|binary_cross|smooth_l1|ctc_loss|kl_div"),
    (Work.SOFTMAX, r"softmax|masked_fill"),
    (Work.NORM, r"(layer|rms|batch|group|instance|local_response)_?norm|LayerNorm|RMSNorm|BatchNorm|GroupNorm"),
    (Work.INDEX, r"embedding|::index|index_(put|select|add|copy|fill)|gather|scatter|take_along|lookup|fbgemm|::nonzero|masked_select|::unique|permute_(1D|2D|sparse)|jagged|one_hot"),
    (Work.COPY_OP, r"::(copy_|_to_copy|to|contiguous|clone|_copy_from|copy|cat|stack|_reshape_alias|reshape|permute|transpose|t|repeat|expand|roll|flip|pad|constant_pad_nd|split_with_sizes_copy|view_copy|_foreach_copy_|channel_shuffle|pixel_shuffle|pixel_unshuffle|im2col|col2im)$"),
    (Work.REDUCTION, r"::(sum|mean|max|min|amax|amin|prod|norm|linalg_vector_norm|std|var|argmax|argmin|any|all|cumsum|cumprod|logsumexp|topk|sort|argsort|histc|bincount|median|kthvalue|multinomial|_foreach_norm|aminmax|cross)(_out|_backward)?$|pool|upsample|interpolate"),
    (Work.FUSED, r"triton_(poi|red|per|for)|CompiledFxGraph|Inductor"),
)  # fmt: skip

_KERNELS = _table(
    (Work.COMMUNICATION, r"nccl|rccl|msccl|cross_device_reduce|all_?reduce|allgather|reduce_?scatter|all_?to_?all|sendrecv|nvshmem|quick_reduce|mscclpp|custom_ar|deep_?ep|dpsk::ep|(inter|intra)node::|multimem_|(one|two)_shot|symm_mem|hccl|oneccl|xccl"),
    (Work.ATTENTION, r"flash|fmha|sdpa|attention|attn_fwd|attn_bwd|_attn|paged_|mla_|mha_"),
    (Work.FUSED, r"^triton_(poi|red|per|for)_|^(loop|input)_\w*fusion|^wrapped_\w+$|^fusion(_\d+)*$"),
    (Work.OPTIMIZER, r"multi_tensor_apply|fused_?adam|fused_?sgd|adam_|lamb_"),
    (Work.ELEMENTWISE, r"rotary|rope_"),
    (Work.NORM, r"(layer|rms|batch|group|instance)_?norm|bn_(fw|bw)|welford|cuCompute|GammaBeta"),
    (Work.CONV, r"(?<![a-z])conv(?!ert)|implicit_gemm|winograd|dgrad|wgrad|fprop|[sh]cudnn|\dcudnn|miopen(?!.*(batch|norm|pool))|igemm|im2col|naive_conv|grouped_direct"),
    (Work.GEMM, r"gemm|gemv|cublas|cutlass|nvjet|xmma|wgmma|matmul|splitk|Cijk_|mfma|triton_(mm|tem)|fused_moe|^b?mm_|_b?mm_|dot_kernel|ampere_\w*_s\d+|volta_\w*_s\d+|marlin"),
    (Work.SOFTMAX, r"softmax"),
    (Work.INDEX, r"embedding|index|gather|scatter|lookup|nonzero|compact"),
    (Work.LAYOUT, r"transpose|CatArray|permute|nchwToNhwc|nhwcToNchw|tensorTransform|SubTensorOpWithScalar|contiguous|reshape|batched_transpose"),
    (Work.COPY_OP, r"direct_copy|copy_kernel|bfloat16_copy|bfloat16tofloat|float_copy|copy_device_to_device|CastTensor"),
    (Work.REDUCTION, r"reduce|reduction|argmax|cumsum|radix|sort|topk|scan|pool|histogram|cub::|rocprim|multinomial"),
    (Work.ELEMENTWISE, r"elementwise|vectorized|unrolled|pointwise|gelu|silu|relu|dropout|activation|act_and_mul|rotary|rope|fill"),
)  # fmt: skip


@lru_cache(maxsize=65536)
def work_of_operator(name: str) -> Work | None:
    """The purpose an operator's name tells; None for one that says nothing (a wrapper, a user range)."""
    # Every other ATen operator computes element by element: add, mul, sin, silu, where, dropout...
    return _first(_OPERATORS, name, Work.ELEMENTWISE if name.startswith("aten::") else None)


@lru_cache(maxsize=65536)
def work_of_kernel(name: str) -> Work:
    """The purpose a kernel's name tells."""
    return _first(_KERNELS, name, Work.OTHER)


class Host(IntFlag):
    """What a host event's name tells about why the host is not launching."""

    NONE = 0
    LAUNCH = 1
    SYNC = 2
    COPY_CALL = 4
    ALLOC = 8
    LOADER = 16
    CHECKPOINT = 32
    COMPILE = 64
    GC = 128
    OPTIMIZER = 256
    BACKWARD = 512
    EVALUATION = 1024
    LOADING_CODE = 2048
    COMMUNICATION = 4096
    TRANSFER = 8192


_RUNTIME = (
    (Host.LAUNCH, re.compile(r"launch|^hipExtModule|^cudaGraphLaunch|^mtia.*run", re.I)),
    (Host.SYNC, re.compile(r"synchronize|^cudaMemcpy$|^hipMemcpy$|hipMemcpyWithStream|cuMemcpy(D|H)to[DH]$", re.I)),
    (Host.COPY_CALL, re.compile(r"^(cuda|hip|cu)Memcpy", re.I)),
    (
        Host.ALLOC,
        re.compile(r"^(cuda|hip|cu)(Malloc|Free|HostAlloc|HostRegister|HostUnregister|Mem(Create|Map|Unmap|Release|Alloc))", re.I),
    ),
    (Host.LOADING_CODE, re.compile(r"module_?load|libraryload|GetFunction|lazy function", re.I)),
)  # fmt: skip

# The words people use for ranges of their own, next to the names that frameworks emit.
_RANGES = (
    (
        Host.LOADER,
        re.compile(
            r"DataLoader|data_?(wait|load|fetch|time|iter|prep)|(^|::|[# ])(data|input|batch)($|[# ])|(load|next|get|fetch|wait_for|prepare)_?(data|batch|input)"
            r"|input_?(wait|pipeline|fn)|utils/data/|dataset.*(getitem|next)|prefetch.*next|dali|webdataset|batch_?(wait|generator)",
            re.I,
        ),
    ),
    # Activation checkpointing shares the word and nothing else.
    (
        Host.CHECKPOINT,
        re.compile(
            r"^(?!.*(activation|recomput|gradient_?(ckpt|checkpoint)|CheckpointFunction|checkpoint_?wrapper|backward)).*"
            r"(torch\.save|save_(checkpoint|pretrained|model|state)|checkpoint_?(save|write)"
            r"|(^|[:_/# ])(ckpt|checkpoint|save)([:_/# ]|$)|state_dict_saver|async_?save)",
            re.I,
        ),
    ),
    (
        Host.COMPILE,
        re.compile(
            r"_dynamo/(convert_frame|eval_frame\.py.*compile|output_graph)|_compile\.compile_inner|compile_fx"
            r"|entire_frame_compile|backend_compile|inductor_compile|_inductor/(compile|codecache|graph|scheduler)"
            r"|triton/compiler|aot_?autograd.*compile|nvrtc|recompil|cudnn.*benchmark|autotune",
            re.I,
        ),
    ),
    (Host.GC, re.compile(r"\bgc\.(collect|callback)|built-in (function|method) collect|garbage.?collect|python_gc|^gc$|::gc$", re.I)),
    (Host.OPTIMIZER, re.compile(r"^Optimizer\.step|optimizer(_|::|\.)?step|(^|::)optim(izer)?$|adam.*\bstep\b", re.I)),
    # Before evaluation: the engine calls its nodes evaluate_function.
    (Host.BACKWARD, re.compile(r"autograd::engine::evaluate_function|(^|::|_| )backward([^a-z]|$)", re.I)),
    (Host.EVALUATION, re.compile(r"(^|[:_/# ])(eval|evaluate|evaluation|valid|validate|validation|metrics?|test_step|val_step)([:_/# ]|$)", re.I)),
    (Host.TRANSFER, re.compile(r"(^|[:_/# ])(h2d|host_?to_?device|to_(device|gpu|cuda)|copy_to_(gpu|device)|transfer)([:_/# ]|$)", re.I)),
    (Host.COMMUNICATION, re.compile(r"^(nccl|rccl|gloo|c10d):", re.I)),
)  # fmt: skip

_STEP = re.compile(
    r"^ProfilerStep\s*#?\s*\d+|^ProfilerStep\*$|^(train(ing)?_?)?(step|iteration|iter)[\s_#:]*\d*$", re.I
)
_ENGINE_STEP = re.compile(
    r"^execute_(context_|model|\d+_context)|^step\[|^gpu_model_runner: forward|^(decode|prefill|extend)_(step|batch)|^run_batch",
    re.I,
)


@lru_cache(maxsize=65536)
def runtime_meaning(name: str) -> Host:
    """What a call into the driver does."""
    for meaning, pattern in _RUNTIME:
        if pattern.search(name):
            return meaning
    return Host.NONE


# Frames of Python stacks: a function of any program may be called load_data, so only well-known files count. Stacks have
# tens of thousands of names, so these are plain substrings.
_FRAMES = (
    (Host.LOADER, ("torch/utils/data/", "webdataset/", "nvidia/dali/", "streaming/base/")),
    (Host.CHECKPOINT, ("torch/serialization.py", "torch/distributed/checkpoint/", "safetensors/torch.py")),
    (Host.COMPILE, ("torch/_dynamo/convert_frame", "torch/_inductor/compile_fx", "triton/compiler/")),
    (Host.GC, ("method collect", "function collect", "gc.collect")),
)


def _is_frame(name: str) -> bool:
    return ".py(" in name or name.startswith(("<built-in", "nn.Module:"))


@lru_cache(maxsize=65536)
def range_meaning(name: str) -> Host:
    """What a named range, operator or Python frame is about."""
    if _is_frame(name):
        return next((meaning for meaning, parts in _FRAMES if any(p in name for p in parts)), Host.NONE)
    for meaning, pattern in _RANGES:
        if pattern.search(name):
            return meaning
    return Host.NONE


def names_a_step(name: str) -> bool:
    """A training step as the profiler or the user marks it."""
    return bool(_STEP.match(name))


def names_an_iteration(name: str) -> bool:
    """One iteration of a serving engine."""
    return bool(_ENGINE_STEP.match(name))


# How matrix kernels tell their arithmetic. Tensile writes types as letters after the layout: HHS, BBS, SB, DB, F8.
_PRECISION = _table(
    ("fp64", r"dgemm|_d884|f64f64|nvjet_(?:sm\d+_)?(?!sm\d)d|_DB_|_DD_|f64gemm|double"),
    ("fp8", r"e4m3|e5m2|fp8|_f8|nvjet_(?:sm\d+_)?(?!sm\d)qq|F8F8|float8"),
    ("tf32", r"tf32|tensorop_s1688(gemm|fprop|dgrad|wgrad)|nvjet_(?:sm\d+_)?(?!sm\d)s|xf32"),
    ("bf16", r"bf16|bfloat16|nvjet_(?:sm\d+_)?(?!sm\d)t|_BBS_|_BSS_|_BB_|_B_BS_"),
    ("fp16", r"fp16|f16|half|hgemm|[sh](884|1688|16816)|nvjet_(?:sm\d+_)?(?!sm\d)h|_HHS_|_HSS_|_HH_|_H_HS_|_HB_|hcudnn|fp32_icudnn"),
    ("int8", r"int8|i8i8|_i8|imma|s8s8|nvjet_(?:sm\d+_)?(?!sm\d)[ib]"),
    ("fp32", r"simt|sgemm|scudnn|f32f32|_f32_|ffma|_SB_|_S_B|float|fp32|gemv|gemmk1|gemm_?SN"),
)  # fmt: skip


@lru_cache(maxsize=65536)
def matrix_precision(kernel: str) -> str:
    """The arithmetic of a matrix or convolution kernel; empty when its name does not tell."""
    return _first(_PRECISION, kernel, "")


_NARROW = re.compile(r"align(1|2)\b|align(1|2)>", re.I)
_ALIGNED = re.compile(r"align(4|8|16)\b|align(4|8|16)>|aligna(4|8|16)|nvjet", re.I)
_SIMT = re.compile(r"simt|sgemm_(?!.*tensorop)", re.I)


@lru_cache(maxsize=65536)
def narrow_loads(kernel: str) -> bool:
    """A tensor-core kernel that may only load 1 or 2 elements at once, since rows do not start on 16 bytes."""
    return bool(_NARROW.search(kernel)) and not _SIMT.search(kernel)


_TILE = re.compile(r"(?<![\dx])(\d{1,3})x(\d{1,3})(?![\d])")


@lru_cache(maxsize=65536)
def few_rows(kernel: str) -> bool:
    """A matrix kernel made for a handful of rows: matrix times vector, or a tile at most 16 wide."""
    if "gemv" in kernel.lower():
        return True
    tile = _TILE.search(kernel)
    return tile is not None and min(int(tile[1]), int(tile[2])) <= 16


@lru_cache(maxsize=65536)
def wide_loads(kernel: str) -> bool:
    """A kernel whose name says that it loads whole vectors."""
    return bool(_ALIGNED.search(kernel))
