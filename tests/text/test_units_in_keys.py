"""Units that a key ends in, however they are spelled: their capitals are part of them."""

from __future__ import annotations

import pytest

from stallwise.readers.text.name import without_unit
from stallwise.units import Unit, readings_of


@pytest.mark.parametrize(
    ("key", "words", "unit", "factor"),
    [
        ("allocated_MiB", ("allocated",), Unit.BYTE, 2.0**20),
        ("usedGiB", ("used",), Unit.BYTE, 2.0**30),
        ("rss_KiB", ("rss",), Unit.BYTE, 1024.0),
        ("size_kB", ("size",), Unit.BYTE, 1e3),
        ("power_kW", ("power",), Unit.WATT, 1e3),
        ("board_power_mW", ("board", "power"), Unit.WATT, 1e-3),
        ("latencyMs", ("latency",), Unit.SECOND, 1e-3),
        ("net_Gbps", ("net",), Unit.BYTE_PER_S, 0.125e9),
        ("busbw_GBps", ("busbw",), Unit.BYTE_PER_S, 1e9),
        ("read_MB_s", ("read",), Unit.BYTE_PER_S, 1e6),
    ],
)
def test_the_unit_of_a_key(key: str, words: tuple[str, ...], unit: Unit, factor: float) -> None:
    told, written = without_unit(key)
    assert told == words
    assert readings_of(written) == ((unit, factor),)
