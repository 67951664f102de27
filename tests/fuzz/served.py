"""Damaged files, odd questions and broken requests at the two servers: the page and, where its package is there, MCP.

A server is started once a process and asked again and again, as a browser or an agent would; it must answer each time, never
with a bug of its own, and still be there afterwards.
"""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import json
import random
import socket
import tempfile
import threading
from collections.abc import Hashable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from stallwise.surfaces.web.server import LocalPage
from tests.fuzz.mutations import ODD, mutated
from tests.fuzz.tally import Told
from tests.fuzz.targets import skeleton

WAITS_S = 120.0  # for an answer, on a busy machine
POSTS = [
    "/api/diagnose", "/api/layout", "/api/search", "/api/serve", "/api/pipeline", "/api/drill/list", "/api/drill/start",
    "/api/drill/reply", "/api/drill/rounds", "/api/upload", "/api/nothing", "/",
]  # fmt: skip
KEYS = [
    "paths", "words", "answers", "share", "bundle", "model", "gpu", "gpus", "tp", "pp", "seq", "global_batch", "rate", "isl",
    "stages", "microbatches", "schedule", "name", "session", "text", "kind", "precision", "head_layers", "engine",
]  # fmt: skip
LIKELY: list[Any] = [
    "llama-3.1-8b", "h100", 8, 2, 1, "1f1b", "the loader is slow", ["case.toml"], 4096, "bf16", 0.5, True, "vllm", "new", "",
]  # fmt: skip
TOOLS = ["files", "diagnose", "compare", "explain", "drill", "lint", "plan", "simulate", "no-such-tool"]
ARGUMENTS = [
    "path", "paths", "facts", "part", "offset", "limit", "share", "answers", "good", "bad", "cause", "verb", "name", "text",
    "kind", "question", "unknown",
]  # fmt: skip
SENSE: dict[str, list[Any]] = {
    "part": ["findings", "hypotheses", "facts", "notes"], "verb": ["list", "start", "reply", "transcript"],
    "kind": ["layout", "serving", "formula"], "facts": [["mfu=0.22"], ["gpu=h100", "mfu=nan"]], "limit": [1, 5, 50],
    "offset": [0, 3], "cause": ["input-starved", "what is MFU?"], "question": [{"model": "llama-3.1-8b", "gpus": 8}],
}  # fmt: skip
HEAD = b"POST /api/diagnose HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Stallwise-Token: %s\r\nContent-Length: 22\r\n\r\n"
CASE = 'gpu = "h100"\ngpus = 8\nmfu = "22%"\n[before]\nmfu = "48%"\n'
CANCELLED = 0.1  # of the calls over MCP
NO_SUCH_METHOD = 501
BUGS = ("internal error", "a bug of stallwise", "Traceback (most recent")


@cache
def root() -> Path:
    """The folder that both servers were started for."""
    folder = Path(tempfile.mkdtemp(prefix="served-"))
    (folder / "case.toml").write_text(CASE)
    return folder


@cache
def page() -> LocalPage:
    """One for the whole process."""
    served = LocalPage(root(), limit_bytes=1 << 30)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    return served


def asked(method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """The status, and what came."""
    line = http.client.HTTPConnection("127.0.0.1", page().port, timeout=WAITS_S)
    try:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        line.request(method, path, body, {"X-Stallwise-Token": page().token, **named})
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def odd_object(r: random.Random, keys: list[str]) -> dict[str, Any]:
    """A question with some values that make sense and some that cannot."""
    return {r.choice(keys): r.choice(LIKELY if r.random() < 0.6 else ODD) for _ in range(r.randrange(7))}


def one_request(r: random.Random, path: Path, told: Told) -> Hashable:
    """A file dropped and diagnosed, a question that makes no sense, or bytes that are no request."""
    kind = r.choices(["dropped", "asked", "broken"], [0.5, 0.35, 0.15])[0]
    told.tally.commands[f"page {kind}"] += 1
    status, body = {"dropped": _dropped, "asked": _asked, "broken": _broken}[kind](r, path, told)
    text = body.decode("utf-8", "replace")
    told.tally.exits[f"page {status}"] += 1
    if (status >= 500 and status != NO_SUCH_METHOD) or any(bug in text for bug in BUGS):
        told.fails("escapes", f"the page: {status} {skeleton(text)}")
    if b"<script>alert(1)" in body and body.lstrip()[:1] == b"<":  # in JSON it is a text like any other
        told.fails("bad_pages", "markup over the page")
    if asked("GET", "/api/files")[0] != 200:
        told.fails("escapes", "the page answers no more")
    return kind, status, skeleton(text)[:40]


def _dropped(r: random.Random, path: Path, told: Told) -> tuple[int, bytes]:
    name = r.choice(
        [path.name, f"../{path.name}", "<script>alert(1)</script>.log", "a/b\\c.log", "\x1b[2J.json", "é" * 200]
    )
    status, body = asked("POST", "/api/upload", told.data, X_Name=quote(name, errors="replace"))
    if status != 200:
        return status, body
    question: dict[str, Any] = {"bundle": json.loads(body)["bundle"], "share": r.random() < 0.3}
    if r.random() < 0.2:
        question |= odd_object(r, ["words", "answers"])
    status, body = asked("POST", "/api/diagnose", json.dumps(question).encode())
    if status != 200:
        return status, body
    return asked("GET", f"/report/{json.loads(body)['report']}")


def _asked(r: random.Random, path: Path, told: Told) -> tuple[int, bytes]:
    body = json.dumps(odd_object(r, KEYS)).encode()
    if r.random() < 0.3:
        body = mutated(r, body, told.data)[1][:60_000]
    return asked("POST", r.choice(POSTS), body)


def _broken(r: random.Random, path: Path, told: Told) -> tuple[int, bytes]:
    """Bytes of a request that were damaged; nothing need be answered, and the page must live."""
    head = HEAD % (page().port, page().token.encode()) + b'{"paths":["case.toml"]}'
    sent = mutated(r, head, told.data)[1][:60_000]
    with socket.create_connection(("127.0.0.1", page().port), timeout=WAITS_S) as line:
        with suppress(OSError):
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(OSError):
            while block := line.recv(1 << 16):
                answer += block
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 2 and words[1].isdigit() else 0, answer


def has_mcp() -> bool:
    """Whether the package of the protocol is there."""
    return importlib.util.find_spec("mcp") is not None


@cache
def _server() -> Any:
    from stallwise.surfaces.mcp.server import build_server

    return build_server(root())


def odd_arguments(r: random.Random, name: str) -> dict[str, Any]:
    """What a confused agent may send: known and unknown names, values of every type."""
    found: dict[str, Any] = {}
    for key in r.sample(ARGUMENTS, r.randrange(6)):
        sense = SENSE.get(key, [name, [name], "case.toml", ["case.toml"]])
        found[key] = r.choice(sense) if r.random() < 0.6 else r.choice([o for o in ODD if _is_json(o)])
    return found


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False).encode()
    except (ValueError, TypeError):
        return False
    return not (isinstance(value, int) and abs(value) > 1 << 63)


def one_call(r: random.Random, path: Path, told: Told) -> Hashable:
    """A call of a tool, now and then given up before its answer."""
    kept = root() / "damaged"
    kept.mkdir(exist_ok=True)
    for old in kept.iterdir():
        old.unlink()
    (kept / path.name).write_bytes(told.data)
    tool, cancelled = r.choice(TOOLS), r.random() < CANCELLED
    arguments = odd_arguments(r, f"damaged/{path.name}")
    told.how += f" | {tool} {json.dumps(arguments)[:600]}"
    told.tally.commands[f"mcp {tool}"] += 1
    failed, text = asyncio.run(_called(tool, arguments, r.random() if cancelled else WAITS_S))
    told.tally.exits["mcp cancelled" if cancelled else f"mcp {'refused' if failed else 'answered'}"] += 1
    if any(bug in text for bug in BUGS):
        told.fails("escapes", f"mcp: {tool}: {skeleton(text)}")
    if not failed and not cancelled:
        json.loads(text, parse_constant=_no_number)
    return tool, failed, skeleton(text)[:40]


async def _called(tool: str, arguments: dict[str, Any], limit_s: float) -> tuple[bool, str]:
    from mcp import Client

    try:
        async with Client(_server()) as client:
            result = await asyncio.wait_for(client.call_tool(tool, arguments), limit_s)
    except BaseException as error:  # a refusal of the protocol's own, or a call that was given up
        leaf: BaseException = error
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        if type(leaf).__name__ not in ("MCPError", "McpError", "ToolError", "TimeoutError"):
            raise
        return True, str(leaf)
    text = result.content[0].text if result.content else ""
    return bool(getattr(result, "is_error", False) or getattr(result, "isError", False)), text


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")
