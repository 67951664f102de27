"""Open the local page: drop files, move sliders, drill."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from stallwise.render import strict_json as json


@click.command(epilog="Examples: stallwise ui; stallwise ui runs/ --port 8123 --no-browser")
@click.argument("folder", type=click.Path(file_okay=False), default=".")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; default: any free one.")
@click.option("--max-upload", default="500MB", show_default=True, help="Most bytes that one drop may hold.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON.")
def command(folder: str, port: int, max_upload: str, no_browser: bool, as_json: bool) -> None:
    """Serve the page for FOLDER on this machine only, until stopped with Ctrl-C."""
    from stallwise.errors import StallwiseError
    from stallwise.surfaces.web.server import LocalPage
    from stallwise.units import Unit, parse

    signal.signal(signal.SIGTERM, _leave)  # what was dropped on the page goes with it
    try:
        page = LocalPage(Path(folder), port=port, limit_bytes=int(parse(max_upload, Unit.BYTE)))
    except OSError as error:
        raise StallwiseError(f"cannot listen on port {port}: {error.strerror}", hint="leave --port away") from error
    try:
        click.echo(json.dumps({"url": page.url}) if as_json else page.url)
        click.echo("on this machine only; Ctrl-C stops it", err=True)
        if not no_browser:
            import webbrowser

            webbrowser.open(page.url)
        page.serve_forever()
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    finally:
        page.server_close()


def _leave(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)
