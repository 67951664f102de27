"""The tools as an MCP server on stdin and stdout."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from stallwise.errors import MissingExtra, StallwiseError
from stallwise.mcp.tools import USUAL_ROWS, Tools

P = ParamSpec("P")
INSTRUCTIONS = (
    "stallwise names the stage that stalls in GPU training and serving. Start with `files`, then `diagnose` with the paths "
    "(or with facts in words). Paths are relative to the folder that the server was started for. Long lists come in pages: "
    "ask again with next_offset. Gains are ranges with their basis; `state` is sick, healthy (by proof) or "
    "unclear: then say so, with what to capture next, and never call it healthy."
)


def build_server(root: Path) -> Any:
    """An MCPServer bound to one folder."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise MissingExtra("mcp", "mcp") from error
    tools = Tools(root)
    server = MCPServer("stallwise", instructions=INSTRUCTIONS, log_level="ERROR")

    def said(act: Callable[P, dict[str, Any]]) -> Callable[P, dict[str, Any]]:
        """Our errors become a sentence for the agent; a bug of ours never shows a traceback."""

        @wraps(act)
        def safe(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
            try:
                return act(*args, **kwargs)
            except StallwiseError as error:
                raise ToolError(f"{error.problem}. Try: {error.hint}" if error.hint else error.problem) from error
            except Exception as error:
                raise ToolError(f"a bug of stallwise: {type(error).__name__}") from error

        return safe

    _doctor_tools(server, said, tools)
    _planner_tools(server, said, tools)
    return server


def _doctor_tools(server: Any, said: Any, tools: Tools) -> None:
    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def files(path: str = "", offset: int = 0, limit: int = USUAL_ROWS) -> dict[str, Any]:
        """List files of the folder, or of a path inside it."""
        return tools.files(path, offset, limit)

    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def diagnose(
        paths: list[str] | None = None,
        facts: list[str] | None = None,
        part: str = "findings",
        offset: int = 0,
        limit: int = USUAL_ROWS,
        share: bool = False,
    ) -> dict[str, Any]:
        """Name the stage that stalls: traces, logs, metrics, counters (any mix) and stated facts ("mfu=0.22").

        `part` picks the list to page through: findings, hypotheses, next, notes, contradictions, unknown, kernels, facts.
        `share` replaces host names, paths, code and prompts by stand-ins.
        """
        return tools.diagnose(paths or [], facts or [], part, offset, limit, share)

    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def compare(good: list[str], bad: list[str], offset: int = 0, limit: int = USUAL_ROWS) -> dict[str, Any]:
        """Say what changed between a good and a bad run, most seconds first."""
        return tools.compare(good, bad, offset, limit)

    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def explain(cause: str = "", offset: int = 0, limit: int = USUAL_ROWS) -> dict[str, Any]:
        """The page of a cause (meaning, cost, look-alikes, fix) or of a concept (definition, formula, worked number).

        Without a name the list of all.
        """
        return tools.explain(cause, offset, limit)

    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def drill(verb: str = "list", name: str = "", text: str = "") -> dict[str, Any]:
        """Play or examine a round of the drill.

        list: the incidents. start: `name` is an incident's number or "new"; gives the session. reply: `name` is the session,
        `text` one line as typed in the terminal ("ask dmesg", "commit", "3 80%", ...). transcript: of a round that is over,
        with rubric and exact grades, for a comment on the prose; the grades stay as they are.
        """
        return tools.drill(verb, name, text)

    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def lint(path: str, offset: int = 0, limit: int = USUAL_ROWS) -> dict[str, Any]:
        """Find lines of Python training scripts that stall the GPU, without running them."""
        return tools.lint(path, offset, limit)


def _planner_tools(server: Any, said: Any, tools: Tools) -> None:
    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def plan(kind: str, question: dict[str, Any] | None = None) -> dict[str, Any]:
        """Predict before renting. Kinds and what `question` may hold:

        layout: model, gpu, gpus, seq, global_batch, tp, pp, cp, ep, vp, zero, micro_batch, recompute, precision.
        training: the same without the layout; the best layouts are searched.
        serving: model, gpu, engine, isl, osl, rate, ttft, tpot, prefix_hit.
        formula: name (none lists them) and its inputs.
        """
        return tools.plan(kind, question or {})

    @server.tool()  # type: ignore[untyped-decorator]
    @said  # type: ignore[untyped-decorator]
    def simulate(question: dict[str, Any] | None = None) -> dict[str, Any]:
        """Simulate a pipeline schedule: stages, microbatches, schedule, chunks, head_layers, p2p, input_grad, weight_grad."""
        return tools.simulate(question or {})
