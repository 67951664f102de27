"""The full state of a GPU as nvidia-smi -q words it, in text or XML: paths of names into the columns of a sample."""

from __future__ import annotations

import re

from stallwise.readers._gpu_samples import REASON_BITS, number

# Patterns over "section/.../key", lower case, words joined by underscores. The first match wins; later values of a
# column replace earlier ones only where the earlier is unknown.
PATTERNS: tuple[tuple[str, str], ...] = (
    (r"utilization/gpu(?:_util)?$", "utilisation_share"),
    (r"utilization/memory(?:_util)?$", "memory_utilisation_share"),
    (r"fb_memory_usage/used$", "memory_used_bytes"),
    (r"fb_memory_usage/total$", "memory_total_bytes"),
    (r"temperature/(?:gpu_current_temp|gpu_temp)$", "temperature_c"),
    (r"temperature/(?:memory_current_temp|memory_temp)$", "memory_temperature_c"),
    (r"temperature/(?:gpu_slowdown_temp|gpu_temp_slow_threshold)$", "slowdown_temperature_c"),
    (r"temperature/(?:memory_max_operating_temp|gpu_temp_max_mem_threshold)$", "memory_slowdown_temperature_c"),
    (r"temperature/(?:gpu_t_limit_temp|gpu_temp_tlimit)$", "thermal_margin_c"),
    (r"(?:^|/)(?:gpu_)?power_readings/(?:instantaneous_power_draw|instant_power_draw)$", "power_w"),
    (r"(?:^|/)(?:gpu_)?power_readings/(?:average_power_draw|power_draw)$", "power_w"),
    (r"(?:^|/)(?:gpu_)?power_readings/(?:current_power_limit|enforced_power_limit|power_limit)$", "power_limit_w"),
    (r"(?:^|/)(?:gpu_)?power_readings/default_power_limit$", "power_default_limit_w"),
    (r"(?:^|/)clocks/sm(?:_clock)?$", "clock_sm_hz"),
    (r"(?:^|/)clocks/mem(?:ory|_clock)$", "clock_memory_hz"),
    (r"max_clocks/sm(?:_clock)?$", "clock_sm_max_hz"),
    (r"max_clocks/mem(?:ory|_clock)$", "clock_memory_max_hz"),
    (r"pcie_gen(?:eration)?/current(?:_link_gen)?$", "pcie_gen"),
    (r"pcie_gen(?:eration)?/max(?:_link_gen)?$", "pcie_gen_max"),
    (r"link_widths?/current(?:_link_width)?$", "pcie_width"),
    (r"link_widths?/max(?:_link_width)?$", "pcie_width_max"),
    (r"pci/(?:replays_since_reset|replay_counter)$", "pcie_replays"),
    (r"remapped_rows/(?:correctable_error|remapped_row_corr)$", "remapped_correctable"),
    (r"remapped_rows/(?:uncorrectable_error|remapped_row_unc)$", "remapped_uncorrectable"),
    (r"remapped_rows/(?:pending|remapped_row_pending)$", "remap_pending"),
    (r"remapped_rows/(?:remapping_failure_occurred|remapped_row_failure)$", "remap_failed"),
    (r"retired_pages/pending(?:_page_blacklist|_blacklist|_retirement)?$", "remap_pending"),
)
# Counters that are summed: several kinds of memory each report their own.
SUMMED: tuple[tuple[str, str], ...] = (
    (r"ecc_errors/volatile/(?:\w+/)*\w*uncorrectable\w*$", "ecc_uncorrected"),
    (r"ecc_errors/volatile/(?:double_bit|uncorrectable)/total$", "ecc_uncorrected"),
    (r"ecc_errors/aggregate/(?:\w+/)*\w*uncorrectable\w*$", "ecc_uncorrected_ever"),
    (r"ecc_errors/aggregate/(?:double_bit|uncorrectable)/total$", "ecc_uncorrected_ever"),
    (r"ecc_errors/volatile/(?:\w+/)*\w*(?<!un)correctable\w*$", "ecc_corrected"),
    (r"ecc_errors/volatile/single_bit/total$", "ecc_corrected"),
    (r"ecc_errors/aggregate/(?:\w+/)*\w*(?<!un)correctable\w*$", "ecc_corrected_ever"),
    (r"ecc_errors/aggregate/single_bit/total$", "ecc_corrected_ever"),
)
_PATTERNS = tuple((re.compile(p), c) for p, c in PATTERNS)
_SUMMED = tuple((re.compile(p), c) for p, c in SUMMED)
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons/(?:.*/)?(?:clocks_(?:event|throttle)_reason_)?(\w+)$")
_FLAGS = {"yes": 1.0, "no": 0.0}


def word(text: str) -> str:
    """A name as one lower-case word."""
    return re.sub(r"[^a-z0-9]+", "_", text.strip().lower()).strip("_")


def take(path: str, text: str, values: dict[str, float]) -> None:
    """Stores one value of the report under the column it belongs to, if any."""
    reason = _REASON.search(path)
    if reason:
        if text.strip().lower() in ("active", "not active"):
            bit = REASON_BITS.get(reason[1], 0) if text.strip().lower() == "active" else 0
            values["reasons"] = float(int(values.get("reasons", 0.0)) | bit)
        return
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        value = number(text)
    if value != value:
        return
    for pattern, column in _SUMMED:
        if pattern.search(path):
            values[column] = values.get(column, 0.0) + value
            return
    for pattern, column in _PATTERNS:
        if pattern.search(path):
            values.setdefault(column, value)
            return
