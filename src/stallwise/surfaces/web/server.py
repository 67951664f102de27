"""A small HTTP server for this machine only: loopback, a token, same origin, one folder, limits on everything."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from select import select
from socket import MSG_PEEK, SHUT_RDWR
from threading import BoundedSemaphore, Timer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from stallwise.errors import StallwiseError, UnreadableInput
from stallwise.evidence.words import Words
from stallwise.render import strict_json
from stallwise.surfaces.web import answers
from stallwise.surfaces.web.drill_api import drill
from stallwise.surfaces.web.folder import Folder
from stallwise.surfaces.web.uploads import TooLarge, Uploads
from stallwise.surfaces.web.worker_process import WorkerProcess

MOST_JSON_BYTES = 64 << 10
SOCKET_TIMEOUT_S = 30.0
HEAD_S = 30.0  # for the request line and all headers together, and for an idle connection
AT_ONCE = 4  # diagnoses side by side; each has a process of its own
MOST_ANSWERS = 20  # to the questions of one diagnosis
MOST_CONNECTIONS = 64
LOOPBACK = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_FRAME = "frame-ancestors 'self'; sandbox allow-scripts"


class Refused(Exception):
    """A request that gets a status and a sentence."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status, self.problem = status, problem


class LocalPage(ThreadingHTTPServer):
    """The server with what its requests share."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, folder: Path, *, port: int = 0, limit_bytes: int = 500 << 20, token: str = "") -> None:
        self.folder = Folder(folder)
        self.uploads = Uploads(limit_bytes)
        self.token = token or secrets.token_urlsafe(32)
        self.at_once = BoundedSemaphore(AT_ONCE)
        self._connections = BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address to open, token and all."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

    def server_close(self) -> None:
        super().server_close()
        self.uploads.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread each, and no more of them than a few browsers need."""
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes early is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: LocalPage
    protocol_version = "HTTP/1.1"
    server_version = "stallwise"
    sys_version = ""
    timeout = SOCKET_TIMEOUT_S
    _patience: Timer
    _body_left = 0  # bytes of this request that nobody has read: they must not be taken for the next one

    def log_message(self, format: str, *args: Any) -> None:
        """Requests carry the token: nothing is logged."""

    def handle_one_request(self) -> None:
        """A head must come at once: drop by drop it would hold a thread for ever."""
        self._patience = Timer(HEAD_S, self._give_up)
        self._patience.daemon = True
        self._patience.start()
        try:
            super().handle_one_request()
        finally:
            self._patience.cancel()

    def _give_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)

    def _gone(self) -> bool:
        """Whether the browser has hung up while it waited."""
        try:
            ready, _, _ = select([self.connection], [], [], 0)
            return bool(ready) and not self.connection.recv(1, MSG_PEEK)
        except (OSError, ValueError):
            return True

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_POST(self) -> None:
        self._guarded(self._post)

    def _guarded(self, act: Callable[[], None]) -> None:
        self._patience.cancel()
        self._body_left = 0
        try:
            self._check_sender()
            act()
        except Refused as refused:
            self.close_connection = True  # a body that was not read must not be taken for the next request
            self._json({"problem": refused.problem}, refused.status)
        except StallwiseError as error:
            self.close_connection = self.close_connection or self._body_left > 0
            status = 413 if isinstance(error, TooLarge) else 422
            self._json({"problem": error.problem, "hint": error.hint}, status)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # internal error; the page says so and goes on
            self.close_connection = True
            self._json({"problem": f"internal error: {type(error).__name__}"}, 500)

    def _check_sender(self) -> None:
        """Only a page of ours, under our own name (no rebound DNS), from our own origin, with the token."""
        names = {f"{host}:{self.server.port}" for host in (LOOPBACK, "localhost")}
        if self.headers.get("Host", "") not in names:
            raise Refused(403, "this page answers only under its own address")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{n}" for n in names}:
            raise Refused(403, "this request comes from another origin")
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise Refused(403, "this request comes from another site")
        query = parse_qs(urlsplit(self.path).query)
        given = self.headers.get("X-Stallwise-Token") or (query.get("token") or [""])[0]
        if self.command == "POST":  # a form of another site cannot set a header
            given = self.headers.get("X-Stallwise-Token") or ""
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            raise Refused(401, "the token is missing or wrong: open the address that stallwise ui printed")

    def _get(self) -> None:
        path = urlsplit(self.path).path
        if path == "/":
            nonce = secrets.token_urlsafe(16)
            self._send(_page(nonce), "text/html; charset=utf-8", POLICY.format(nonce=nonce))
        elif path == "/api/catalog":
            self._json(answers.catalog())
        elif path == "/api/files":
            folder = self.server.folder
            rows = [{"path": folder.relative(p), "size_bytes": p.stat().st_size} for p in folder.files()]
            self._json({"folder": folder.root.name, "files": rows})
        elif path.startswith("/report/"):
            html = self.server.uploads.reports.get(path.removeprefix("/report/"))
            if html is None:
                raise Refused(404, "that report is gone: make it again")
            self._send(html, "text/html; charset=utf-8", REPORT_FRAME)
        else:
            raise Refused(404, "there is nothing here")

    def _post(self) -> None:
        path = urlsplit(self.path).path
        if path == "/api/upload":
            self._upload()
        elif path == "/api/diagnose":
            self._json(_diagnose(self.server, self._body(), self._gone))
        elif path in _VERBS:
            self._json(_VERBS[path](self.server, self._body()))
        else:
            raise Refused(404, "there is nothing here")

    def _upload(self) -> None:
        uploads = self.server.uploads
        length = self._length(uploads.limit_bytes)
        bundle = self.headers.get("X-Bundle") or uploads.new()
        name = unquote(self.headers.get("X-Name", "file"))
        stored = uploads.put(bundle, name, self.rfile, length)
        self._body_left = 0
        self._json({"bundle": bundle, "name": stored})

    def _length(self, most: int) -> int:
        text = self.headers.get("Content-Length", "")
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            self.close_connection = True
            raise Refused(411, "the length of the body is missing")
        self._body_left = length = int(text)
        if length > most:
            self.close_connection = True  # what follows is not read
            raise TooLarge(
                f"{length / 1e6:,.1f} MB are more than the limit of {most / 1e6:,.1f} MB",
                hint="diagnose large files on the command line, or start with --max-upload 2GB",
            )
        return length

    def _body(self) -> dict[str, Any]:
        try:
            found = json.loads(self.rfile.read(self._length(MOST_JSON_BYTES)) or b"{}")
            self._body_left = 0
        except (ValueError, RecursionError) as error:
            raise Refused(400, "the body is not JSON") from error
        if not isinstance(found, dict):
            raise Refused(400, "the body must be a JSON object")
        return found

    def _json(self, value: Mapping[str, Any], status: int = 200) -> None:
        self._send(strict_json.dumps(value, ensure_ascii=False), "application/json", "default-src 'none'", status)

    def _send(self, text: str, kind: str, policy: str, status: int = 200) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind), ("Content-Length", str(len(content))), ("Content-Security-Policy", policy),
            ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
        ):  # fmt: skip
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


def _diagnose(server: LocalPage, body: dict[str, Any], gone: Callable[[], bool]) -> dict[str, Any]:
    """The report of a bundle, or of files of the chosen folder; words may come with them, or alone."""
    from stallwise.surfaces.web.report import report

    words = body.get("words", "")
    if not isinstance(words, str):
        raise Refused(400, "words are a text")
    replies = body.get("answers", [])
    if not isinstance(replies, list) or len(replies) > MOST_ANSWERS or not all(isinstance(r, str) for r in replies):
        raise Refused(400, f"answers are at most {MOST_ANSWERS} texts")
    if "bundle" in body:
        name = str(body["bundle"])
        base, paths = server.uploads.bundle(name), list(server.uploads.files(name))
    else:
        asked = body.get("paths", [])
        if not isinstance(asked, list) or not all(isinstance(p, str) for p in asked) or not (asked or words.strip()):
            raise Refused(400, "name the files to read, or say it in words")
        base = server.folder.root
        paths = [p for a in asked for p in server.folder.given(a)]
    paths += [Words(words)] if words.strip() else []
    if not paths:
        raise UnreadableInput("there is no file in it", hint="drop or choose a trace, a log, or a metrics page")
    with server.at_once:
        answer = WorkerProcess(report, paths, str(base), bool(body.get("share")), replies).wait(gone)
    return {"report": server.uploads.keep(answer.pop("html")), **answer}


_VERBS: dict[str, Callable[[LocalPage, dict[str, Any]], dict[str, Any]]] = {
    "/api/layout": lambda _, body: answers.layout(body),
    "/api/search": lambda _, body: answers.best_layouts(body),
    "/api/serve": lambda _, body: answers.service(body),
    "/api/pipeline": lambda _, body: answers.pipeline(body),
    "/api/drill/list": lambda _, body: drill("list", body),
    "/api/drill/start": lambda _, body: drill("start", body),
    "/api/drill/reply": lambda _, body: drill("reply", body),
    "/api/drill/rounds": lambda _, body: drill("rounds", body),
}


@cache
def _parts() -> tuple[str, str, str]:
    folder = files("stallwise.surfaces.web") / "assets"
    style = (files("stallwise.render") / "assets" / "document.css").read_text(encoding="utf-8")
    names = ("page.html", "page.css", "drill.js", "page.js")
    page, own, drill_script, script = ((folder / n).read_text(encoding="utf-8") for n in names)
    return page, style + own, drill_script + script


def _page(nonce: str) -> str:
    page, style, script = _parts()
    return page.replace("%STYLE%", style).replace("%SCRIPT%", script).replace("%NONCE%", nonce)
