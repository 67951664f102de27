"""The page and the MCP server answer many: a hostile file costs its own answer only, and nothing outlives who asked."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stallwise.errors import StallwiseError
from stallwise.surfaces.web import server
from stallwise.surfaces.web.folder import Folder
from stallwise.surfaces.web.worker_process import WorkerProcess
from tests.trust.inputs import GOOD_LOG
from tests.web.pages import ask, local_page


def slow(seconds: float) -> dict[str, Any]:
    time.sleep(seconds)
    return {"slept": seconds}


def endless() -> dict[str, Any]:
    while True:
        pass


def dies() -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def refuses() -> dict[str, Any]:
    raise StallwiseError("no", hint="yes")


def breaks() -> dict[str, Any]:
    raise KeyError("x")


def not_a_number() -> dict[str, Any]:
    return {"x": float("nan"), "y": [float("inf")], "text": "\ud800"}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().split()[2] != "Z"


def test_a_question_apart_is_answered_given_up_cancelled_or_lost_alone() -> None:
    assert WorkerProcess(slow, 0.0).wait() == {"slept": 0.0}
    assert WorkerProcess(not_a_number).wait() == {"x": None, "y": [None], "text": "\ud800"}
    with pytest.raises(StallwiseError, match="no"):
        WorkerProcess(refuses).wait()
    with pytest.raises(StallwiseError, match="internal error: KeyError"):
        WorkerProcess(breaks).wait()
    with pytest.raises(StallwiseError, match="more memory or time"):
        WorkerProcess(dies).wait()
    given_up = WorkerProcess(endless, limit_s=0.3)
    with pytest.raises(StallwiseError, match="given up"):
        given_up.wait()
    assert not alive(given_up.pid)
    left = WorkerProcess(endless)
    with pytest.raises(ConnectionResetError):
        left.wait(lambda: True)
    assert not alive(left.pid)


def test_one_endless_question_keeps_nobody_else_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.log").write_text(GOOD_LOG)
    started: list[WorkerProcess] = []
    real = server.WorkerProcess

    def once_endless(act: Any, *arguments: Any) -> WorkerProcess:
        started.append(real(endless) if not started else real(act, *arguments))
        return started[-1]

    monkeypatch.setattr(server, "WorkerProcess", once_endless)
    with local_page(tmp_path) as page:
        head = (
            f"POST /api/diagnose HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nX-Stallwise-Token: {page.token}\r\n"
            "Content-Length: 23\r\n\r\n"
        )
        first = socket.create_connection(("127.0.0.1", page.port))
        first.sendall(head.encode() + b'{"paths": ["good.log"]}')
        while not started:
            time.sleep(0.02)
        answer = ask(page, "/api/diagnose", {"paths": ["good.log"]})
        assert answer.status == 200 and answer.json["state"] == "sick"
        assert alive(started[0].pid)
        first.close()  # the browser hangs up: its work ends
        deadline = time.monotonic() + 10
        while alive(started[0].pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not alive(started[0].pid)


def test_a_head_that_comes_drop_by_drop_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.5)
    with local_page(tmp_path) as page, socket.create_connection(("127.0.0.1", page.port)) as client:
        client.settimeout(10)
        began = time.monotonic()
        with pytest.raises(OSError):  # broken pipe or reset
            while time.monotonic() - began < 10:
                client.sendall(b"G")
                time.sleep(0.1)
                client.setblocking(False)
                try:
                    if client.recv(1) == b"":
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                client.setblocking(True)
        assert time.monotonic() - began < 5


def test_a_loop_of_links_in_the_folder_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "good.log").write_text(GOOD_LOG)
    assert [p.name for p in Folder(tmp_path).files()] == ["good.log"]


def test_a_cancelled_call_ends_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="the extra [mcp] is not installed")
    from stallwise.surfaces.mcp import server as mcp_server

    started: list[WorkerProcess] = []

    def asked(act: Any, *arguments: Any) -> WorkerProcess:
        started.append(WorkerProcess(endless))
        return started[-1]

    monkeypatch.setattr(mcp_server, "WorkerProcess", asked)
    built = mcp_server.build_server(tmp_path)

    async def cancelled() -> None:
        call = asyncio.ensure_future(built.call_tool("files", {}))
        while not started:
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    assert not alive(started[0].pid)


def test_answers_of_tools_are_json_by_the_book(tmp_path: Path) -> None:
    from stallwise.render import strict_json
    from stallwise.surfaces.mcp.tools import answer

    found = answer(str(tmp_path), "plan", "formula", {"name": "pipeline-bubble"})
    assert strict_json.loads(strict_json.dumps({**found, "x": float("inf")}))["x"] is None


def test_threads_of_the_page_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with local_page(tmp_path) as page:
        before = threading.active_count()
        clients = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(20)]
        time.sleep(0.5)
        assert threading.active_count() - before <= 2 * 3
        for client in clients:
            client.close()
