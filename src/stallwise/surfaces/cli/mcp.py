"""Serve the doctor and the planner to agents over MCP (stdin and stdout)."""

from __future__ import annotations

from pathlib import Path

import click

from stallwise.render import strict_json as json


@click.command(
    epilog='Examples: stallwise mcp runs/; in a client: {"command": "stallwise", "args": ["mcp", "/data/runs"]}'
)
@click.argument("root", type=click.Path(file_okay=False), default=".")
@click.option("--json", "as_json", is_flag=True, help="Print the tools as JSON and leave.")
def command(root: str, as_json: bool) -> None:
    """Tools: files, diagnose, compare, explain, lint, plan, simulate. No file outside ROOT is ever read."""
    from stallwise.surfaces.mcp.server import build_server

    server = build_server(Path(root))
    if as_json:
        import asyncio

        tools = asyncio.run(server.list_tools())
        click.echo(json.dumps([{"name": t.name, "description": t.description} for t in tools], indent=2))
        return
    server.run(transport="stdio")
