"""What each year and vendor called a sort of event, and what we call it (trace_kinds.toml)."""

from __future__ import annotations

from stallwise.evidence.timeline import Kind
from stallwise.readers._patterns import document, patterns

_P = patterns("trace")
_BY_CATEGORY, _QUEUE_WORDS = (
    {word: Kind[kind] for kind, words in document("native/trace_kinds")[table].items() for word in words}
    for table in ("category", "queue")
)
_BY_NAME = {
    "copy_name": Kind.MEMCPY, "memset_name": Kind.MEMSET, "kernel_name": Kind.KERNEL, "call_name": Kind.RUNTIME,
}  # fmt: skip
ENGINE_QUEUE = 254  # inner mark, resolved by name at the end
UNCATEGORISED = 255  # inner mark, resolved by lane at the end


class KindCodes(dict[str, int]):
    """Category to kind, filled as categories appear."""

    def __missing__(self, category: str) -> int:
        word = category.lower()
        if not word:
            code = UNCATEGORISED
        elif _P["runtime"].search(word):
            code = int(Kind.RUNTIME)
        elif _P["engine_queue"].match(word):
            code = ENGINE_QUEUE
        else:
            code = int(_BY_CATEGORY.get(word, Kind.OTHER))
        self[category] = code
        return code


def is_range(name: str) -> bool:
    """True for names that are ranges even where the trace calls them operators."""
    return _P["range"].match(name) is not None


def of_queue_word(name: str) -> Kind:
    """The kind of an entry of an accelerator's own queue."""
    return _QUEUE_WORDS.get(name, Kind.KERNEL)


def of_process(label: str, name: str) -> Kind:
    """The kind of an event without a category, from its process: the 2020 autograd profiler and JAX name those."""
    word = label.lower()
    if "cuda functions" in word or word.startswith("/device:"):
        lowered = name.lower()
        if lowered.startswith("memcpy"):
            return Kind.MEMCPY
        return Kind.MEMSET if lowered.startswith("memset") else Kind.KERNEL
    if "cpu functions" in word or word.startswith("/host:"):
        return Kind.CPU_OP
    return of_name(name)


def of_name(name: str) -> Kind:
    """The last resort: a copy says between what, and a compiled function of the device has a type and templates in its name."""
    for pattern, kind in (
        ("copy_name", Kind.MEMCPY),
        ("memset_name", Kind.MEMSET),
        ("kernel_name", Kind.KERNEL),
        ("call_name", Kind.RUNTIME),
    ):
        if _P[pattern].search(name):
            return kind
    return Kind.OTHER
