"""States of cards, whether every card is a row or has columns of its own."""

from __future__ import annotations

from stallwise.evidence.reading import rows_of
from stallwise.readers.text.samples import cards


def test_cards_that_have_columns_of_their_own() -> None:
    keys = ("powerWatts", "enforcedPowerLimitWatts", "smClock", "temp")
    rows = rows_of(
        ["Step", *(f"run-1 - system/gpu.{gpu}.{key}" for gpu in (0, 3) for key in keys)],
        [[float(i), 348.0, 350.0, 1185.0, 61.0, 120.0, 350.0, 1980.0, 44.0] for i in range(5)],
        list(range(2, 7)),
    )
    tables = {t.scope.gpu: t for t in cards(rows, "system.csv")}
    assert sorted(tables) == [0, 3]
    assert tables[3].columns["power_w"][0] == 120.0
    assert tables[0].columns["temperature_c"][0] == 61.0
