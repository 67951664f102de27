"""A local page in a thread, asked the way a browser or a stranger would."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from stallwise.surfaces.web.server import LocalPage


@contextmanager
def local_page(folder: Path, **settings: Any) -> Iterator[LocalPage]:
    """Serves until the block ends."""
    page = LocalPage(folder, **settings)
    thread = Thread(target=page.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield page
    finally:
        page.shutdown()
        page.server_close()
        thread.join()


class Answer:
    """Status, headers and body."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


def ask(page: LocalPage, path: str, body: Any = None, *, token: str | None = "", **headers: str) -> Answer:
    """One request; the token is right unless another (or None) is given."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    sent = {k.replace("_", "-"): v for k, v in headers.items()}
    if token is not None:
        sent["X-Stallwise-Token"] = token or page.token
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request("GET" if body is None else "POST", path, data, sent)
        return Answer(connection.getresponse())
    finally:
        connection.close()
