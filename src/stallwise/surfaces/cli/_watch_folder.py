"""The loop behind `stallwise watch DIR`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

from stallwise.doctor.live import LiveView, load, look
from stallwise.errors import BadRequest, UnreadableInput
from stallwise.render import strict_json as json
from stallwise.render.documents.live_view import as_prometheus, document
from stallwise.render.text import to_text
from stallwise.surfaces.cli._fitted import colored
from stallwise.surfaces.cli._scalar_sinks import Sink, open_sinks
from stallwise.surfaces.cli._streams import reader_left


def watch_folder(
    folder: str,
    *,
    every_s: float,
    once: bool,
    as_json: bool,
    port: int | None = None,
    sinks: tuple[str, ...] = (),
    ideal_step_s: float | None = None,
) -> None:
    """Looks again and again until the job ends or the user does."""
    path = Path(folder)
    if not path.is_dir():
        raise UnreadableInput(
            f"there is no folder {folder}", hint="record a job first: stallwise record -- python train.py"
        )
    latest: list[str] = ["# waiting for the first step\n"]
    server = _serve(port, lambda: latest[0]) if port is not None else None
    opened = open_sinks(sinks)
    try:
        while True:
            view = look(load(path))
            latest[0] = as_prometheus(view)
            _show(view, as_json, once, ideal_step_s)
            _log(view, opened)
            if once or reader_left() or (view.ended and len(view.ended) >= view.expected_ranks):
                return
            time.sleep(every_s)
    except KeyboardInterrupt:
        return
    finally:
        if server is not None:
            server.shutdown()


def _show(view: LiveView, as_json: bool, once: bool, ideal_step_s: float | None) -> None:
    if as_json:
        click.echo(json.dumps({**asdict(view), "hanging": view.hanging}))
        return
    mfu = ideal_step_s / view.step_s if ideal_step_s and view.step_s else view.gauges.get("mfu")
    if sys.stdout.isatty() and not once:
        click.echo("\x1b[H\x1b[2J", nl=False)
    click.echo(to_text(document(view, mfu), color=colored()), color=colored())


def _log(view: LiveView, sinks: list[Sink]) -> None:
    scalars = {"step_s": view.step_s, **{f"stage/{k}_s": v for k, v in view.stages.items()}}
    for sink in sinks:
        sink({f"stallwise/{k}": v for k, v in scalars.items()}, view.step)


def _serve(port: int, text: Callable[[], str]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text().encode() if self.path == "/metrics" else b"see /metrics\n"
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise BadRequest(
            f"cannot serve on port {port}: {error.strerror}", hint="choose another --prometheus PORT"
        ) from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
