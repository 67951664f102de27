"""GPUs: what the vendor promises, by name. One file per GPU in `catalog/gpus`; every number has its source there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from stallwise.errors import BadRequest
from stallwise.tables import table

# What large copies and large GEMMs reach of the data sheet where nobody measured this very card: the H200 here reached
# 0.90 and 0.80, published A100 and H100 figures lie within 0.05 of these.
USUAL_BANDWIDTH_SHARE = 0.88
USUAL_MATRIX_SHARE = 0.78


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one SM (or compute unit) can hold at once."""

    warps: int
    blocks: int
    registers: int
    shared_bytes: int
    shared_bytes_per_block: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of accelerator. Rates are dense data-sheet peaks; see `achieved_*` for what code reaches."""

    name: str
    title: str
    vendor: str
    architecture: str
    compute_capability: str
    aliases: tuple[str, ...]
    source: str
    memory_bytes: float
    bandwidth_byte_per_s: float
    l2_bytes: float
    sm_count: int
    boost_hz: float
    nvlink_byte_per_s: float  # NVLink or Infinity Fabric, all links together, one direction; 0 without
    pcie_byte_per_s: float
    power_w: float
    peak_flop_per_s: Mapping[str, float]
    sm: Multiprocessor
    chip_link_byte_per_s: float = 0.0  # NVLink-C2C to a host processor beside it, this GPU's share, one direction
    price_dollar_per_hour: float | None = None
    achieved_share: Mapping[str, float] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, str]:
        """What other cards share with it: maker and generation."""
        return self.vendor, self.architecture

    def __hash__(self) -> int:  # its tables have none
        return hash(self.name)

    def peak(self, dtype: str) -> float:
        """Dense peak for this number type; one without its own matrix rate falls back to what the card really does."""
        for name in (dtype, *_FALLBACK.get(dtype, ())):
            if name in self.peak_flop_per_s:
                return self.peak_flop_per_s[name]
        return self.peak_flop_per_s["fp32"]

    def achieved_flop_per_s(self, dtype: str) -> float:
        """What a large library GEMM reaches."""
        return self.peak(dtype) * self.achieved_share.get(dtype, USUAL_MATRIX_SHARE)

    @property
    def achieved_byte_per_s(self) -> float:
        """What a large copy reaches, bytes read plus bytes written."""
        return self.bandwidth_byte_per_s * self.achieved_share.get("bandwidth", USUAL_BANDWIDTH_SHARE)

    @property
    def host_byte_per_s(self) -> float:
        """The fastest way to its host's memory."""
        return max(self.pcie_byte_per_s, self.chip_link_byte_per_s)

    def ridge(self, dtype: str) -> float:
        """FLOP per byte at which memory stops being the limit."""
        return self.peak(dtype) / self.bandwidth_byte_per_s


# A T4 has no bf16 and a V100 no tf32: such work runs as fp32 there; int4 weights are computed in 16 bit.
_FALLBACK = {
    "fp4": ("fp8", "bf16", "fp16"),
    "fp8": ("bf16", "fp16"),
    "bf16": ("fp32",),
    "fp16": ("bf16",),
    "tf32": ("fp32",),
    "int8": ("fp8", "fp16"),
    "fp64_tensor": ("fp64",),
    "fp16_vector": ("fp32",),
    "bf16_vector": ("fp32",),
}


@cache
def all_gpus() -> tuple[Gpu, ...]:
    """The catalogue, in order of name."""
    return tuple(_gpu(table(path)) for path in sorted((Path(__file__).parent / "catalog" / "gpus").glob("*.toml")))


def _gpu(entry: dict[str, Any]) -> Gpu:
    sm = Multiprocessor(**entry.pop("sm"))
    return Gpu(**{**entry, "aliases": tuple(entry["aliases"])}, sm=sm)


def find_gpu(name: str, *, memory_bytes: float | None = None) -> Gpu | None:
    """A GPU by slug, alias or driver string; memory tells twins apart (an A100 of 40 or 80 GB). None when unknown."""
    wanted = _plain(name)
    if not wanted:
        return None
    exact = [g for g in all_gpus() if wanted in {_plain(n) for n in _names(g)}]
    found = exact or _by_parts(_parts(name)) or _containing(wanted)
    if not found:
        return None
    return measured(_twin(found[0], memory_bytes) if memory_bytes else found[0])


def _by_parts(wanted: frozenset[str]) -> list[Gpu]:
    """Cards all of whose words stand in a driver string; the one that explains most, and that contradicts nothing.

    Whole words decide: an A100X, an A10G or an RTX A1000 is no A100 and no A10. Memory and form factor must agree.
    """
    memory = {float(m[1]) for part in wanted if (m := _GIGABYTES.match(part))}
    forms = {form for form in _FORMS if any(part.startswith(form) for part in wanted)}
    best: list[tuple[int, Gpu]] = []
    for card in all_gpus():
        for known in _names(card):
            parts = _parts(known)
            core = frozenset(p for p in parts if not _GIGABYTES.match(p) and not p.startswith(_FORMS))
            if core and core <= wanted and _agrees(card, memory, forms):
                best.append((len(parts & wanted), card))
    most = max((size for size, _ in best), default=0)
    return [card for size, card in best if size == most]


def _agrees(card: Gpu, memory: set[float], forms: set[str]) -> bool:
    stated = [g for g in memory if 0 < g < MOST_HBM_GB]
    if stated and all(abs(card.memory_bytes / (g * 2**30) - 1) > MEMORY_TWIN_SHARE for g in stated):
        return False
    own = {form for form in _FORMS if any(form in _plain(n) for n in _names(card))}
    return not forms or not own or bool(forms & own)


_VENDOR_WORDS = frozenset("nvidia amd tesla geforce instinct ati graphics device gpu radeon quadro".split())
_FORMS = ("sxm", "pcie", "nvl", "oam", "fhhl")
_GIGABYTES = re.compile(r"^(\d{2,3})gb$")
MOST_HBM_GB = 400  # beyond it a number is the host's memory ("GH200 480GB")


def _parts(name: str) -> frozenset[str]:
    """The words of a card's name, vendors left out; "80 GB" is one word."""
    counted = re.sub(r"^\s*\d+\s*[x×]\s*", "", name.lower())  # "8xH100"
    joined = re.sub(r"(\d{1,9})\s{0,9}gi?b\b", r" \1gb ", counted)
    return frozenset(w for w in re.split(r"[^a-z0-9]+", joined) if w and w not in _VENDOR_WORDS)


def profile_path() -> Path:
    """Where `stallwise measure` keeps what this machine's card reaches; STALLWISE_PROFILE overrides."""
    given = os.environ.get("STALLWISE_PROFILE")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(given) if given else home / "stallwise" / "hardware.json"


def measured(card: Gpu) -> Gpu:
    """The card with the shares measured on this machine, where somebody measured them."""
    try:
        shares = json.loads(profile_path().read_text(encoding="utf-8"))["achieved_share"][card.name]
        kept = {k: float(v) for k, v in shares.items() if 0 < float(v) <= PLAUSIBLE_SHARE}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return card
    return replace(card, achieved_share={**card.achieved_share, **kept})


PLAUSIBLE_SHARE = 1.1  # clocks above the data sheet's boost give a little more than its peak; more is a broken timer


def _containing(wanted: str) -> list[Gpu]:
    """Just "4090"  is enough when only one kind of card has it in its name."""
    return [g for g in all_gpus() if len(wanted) >= 4 and wanted in _plain(g.name)]


def _twin(found: Gpu, memory_bytes: float) -> Gpu:
    """The variant of this card with this much memory: an A100 of 40 GB reports itself as plain A100."""
    stem = found.name.split("-")[0]
    twins = [g for g in all_gpus() if g.name.split("-")[0] == stem and "pcie" not in g.name]
    for twin in (found, *twins):
        if abs(twin.memory_bytes / memory_bytes - 1) < MEMORY_TWIN_SHARE:
            return twin
    return found


MEMORY_TWIN_SHARE = 0.15  # drivers report up to a tenth less than the label; twins differ by a factor of two


def gpu(name: str) -> Gpu:
    """The same, or an error that names the nearest known GPU."""
    typed = _plain(name)
    found = find_gpu(name)
    # A driver string may carry more words than we know; a typed slug may not ("h100-sxn" is a typo, not an H100).
    if found is None or (" " not in name.strip() and not any(typed in _plain(n) for n in _names(found))):
        names = [n.lower() for g in all_gpus() for n in _names(g)]
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), names, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(g.name for g in all_gpus())}"
        raise BadRequest(f"no GPU called '{name}' is in the catalogue", hint=hint)
    return found


def _names(card: Gpu) -> tuple[str, ...]:
    return (card.name, card.title, *card.aliases)


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
