"""The live path against a real HTTP server on loopback: one that hangs, one that lies, one that restarts half-way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from stallwise.doctor.examine import examine
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.gather import gather, read_artifact
from stallwise.doctor.scraping import fetch_page, scrape_for
from stallwise.errors import UnreadableInput
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence
from stallwise.surfaces.cli import main
from stallwise.surfaces.cli._watch_url import watch_url


def page(running: float = 60, waiting: float = 30, kv: float = 0.99, preempted: float = 0, tokens: float = 0) -> str:
    return f"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}
vllm:num_requests_waiting{{engine="0",model_name="m"}} {waiting}
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {kv}
vllm:num_preemptions_total{{engine="0",model_name="m"}} {preempted}
vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="m"}} {tokens / 100}
"""


@contextmanager
def server(answer: Callable[[int, BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A server that calls `answer` with the number of the request."""
    count = iter(range(10_000))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(next(count), self)

        def log_message(self, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/metrics"
    finally:
        httpd.shutdown()
        httpd.server_close()


def send(handler: BaseHTTPRequestHandler, text: str) -> None:
    body = text.encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class FakeClock:
    """Time passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def watched(url: str, for_s: float = 20, timeout_s: float = 2.0) -> Evidence:
    clock = FakeClock()
    artifact = scrape_for(url, for_s, every_s=2, clock=clock, sleep=clock.sleep, timeout_s=timeout_s)
    evidence = Evidence(inputs=[url])
    evidence.formats, items = read_artifact(artifact)
    evidence.add(items)
    return evidence


def test_counters_of_a_live_server_become_rates_and_a_diagnosis() -> None:
    with server(lambda n, h: send(h, page(60 - 2 * n, 30 + 2 * n, 0.99, 7 * n, 1000 * n))) as url:
        diagnosis = examine(watched(url))
    assert diagnosis.ranked[0] == "kv-cache-preemption"
    assert diagnosis.evidence.value(serving.PREEMPTED) == 70
    assert diagnosis.evidence.value(serving.GENERATION_RATE) == pytest.approx(500)
    assert diagnosis.evidence.value(serving.ACHIEVED_RATE) == pytest.approx(5)


def test_a_calm_live_server_is_in_line_and_its_speed_is_not_claimed() -> None:
    with server(lambda n, h: send(h, page(20, 0, 0.4, 0, 2000 * n))) as url:
        answer = examine(watched(url))
    assert (
        answer.state is State.HEALTHY
    )  # for itself: no model and no card, so nothing tells how fast a token could come
    assert any("as fast as they could is not in this file" in p.says and not p.covers_run for p in answer.proofs)


def test_a_server_that_hangs_is_given_up_with_a_sentence() -> None:
    gate = threading.Event()
    with server(lambda n, h: gate.wait(5) and None) as url:
        with pytest.raises(UnreadableInput, match="cannot read"):
            fetch_page(url, timeout_s=0.1)
        gate.set()


def test_a_server_that_drips_bytes_is_given_up() -> None:
    gate = threading.Event()

    def drip(n: int, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not gate.wait(0.02):
            handler.wfile.write(b"#\n")
            handler.wfile.flush()

    with server(drip) as url:
        with pytest.raises(UnreadableInput):
            fetch_page(url, timeout_s=0.2)
        gate.set()


def test_a_server_that_hangs_now_and_then_is_read_in_between() -> None:
    gate = threading.Event()

    def sometimes(n: int, handler: BaseHTTPRequestHandler) -> None:
        if n == 3:
            gate.wait(5)
        else:
            send(handler, page(20, 0, 0.4, 0, 2000 * n))

    with server(sometimes) as url:
        evidence = watched(url, timeout_s=0.2)
        gate.set()
    assert len(evidence.table(serving.ENGINE_SAMPLES)[0]) == 10


def test_a_server_that_lies_is_not_believed() -> None:
    with server(lambda n, h: send(h, page(-3, 30, 7.5, 5 * n, 1000 * n))) as url:
        diagnosis = examine(watched(url))
    said = " ".join(note.text for note in diagnosis.notes)
    assert "not a share" in said and "negative" in said
    assert not diagnosis.evidence.table(serving.ENGINE_SAMPLES)


def test_a_restart_half_way_is_noticed_and_counted_from() -> None:
    def restarting(n: int, handler: BaseHTTPRequestHandler) -> None:
        born = 0 if n < 5 else 5
        send(handler, page(20, 0, 0.4, 2 * (n - born), 1000 * (n - born)))

    with server(restarting) as url:
        evidence = watched(url)
    assert evidence.value(serving.RESTARTED) == 1
    assert evidence.value(serving.PREEMPTED) == 2 * 5  # since the restart, never negative
    assert any("restarted" in note.text for note in evidence.notes)


def test_other_pages_and_closed_ports_are_said_plainly() -> None:
    with server(lambda n, h: send(h, "<html>hello</html>")) as url:
        page = gather([url])
        assert page.inputs == [url] and not page.facts, "text of no known kind: one cannot tell"
    with pytest.raises(UnreadableInput, match="tries"):
        scrape_for(url, 0.0, timeout_s=0.5)


def test_the_command_line_reads_a_live_address() -> None:
    with server(lambda n, h: send(h, page(60 - 2 * n, 30 + 2 * n, 0.99, 7 + 7 * n, 1000 * n))) as url:
        result = CliRunner().invoke(main, ["diagnose", url, "--for", "1ms", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["ranked"][0] == "kv-cache-preemption"


def test_watch_prints_a_line_a_look(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    with server(lambda n, h: send(h, page(60 - 2 * n, 30 + 2 * n, 0.99, 7 * n, 1000 * n))) as url:
        watch_url(url, every_s=2, as_json=True, looks=4, clock=clock, sleep=clock.sleep)
    looks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [look["running"] for look in looks] == [60, 58, 56, 54]
    assert looks[-1]["ranked"][0] == "kv-cache-preemption"
    assert looks[-1]["generation_token_per_s"] == 500
