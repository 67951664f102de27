"""A date at the beginning of a line is no pair of GPUs, and counters of a port are no queue of requests."""

from __future__ import annotations

from pathlib import Path

from stallwise.doctor.examine import diagnose
from stallwise.readers import run_outcomes

PORTS = "".join(
    f"node-{n:02} mlx5_0 port 1: state ACTIVE rate 400 Gb/sec (4X NDR) symbol_error 0 link_downed 0 port_xmit_wait {1200 + n}\n"
    for n in range(4)
)


def test_dates_are_no_pairs() -> None:
    for stamp in ("2026-11-10T09:01:0{}Z", "11-10 09:01:0{}"):
        log = "".join(f"{stamp.format(n)} INFO gateway: request done\n" for n in range(5))
        assert not run_outcomes.recognises("gateway.log", log.encode())
    assert run_outcomes.recognises("pairs.txt", b"0,1: ok\n0,2: hangs\n")


def test_counters_of_ports_are_no_requests(tmp_path: Path) -> None:
    (tmp_path / "ports.txt").write_text(PORTS)
    found = diagnose(str(tmp_path / "ports.txt"), workers=1, cache=False)
    assert found.state.value == "unclear" and "queue-saturated" not in found.ranked
