"""The tools as an MCP server on stdin and stdout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec

from stallwise.errors import MissingExtra, StallwiseError
from stallwise.surfaces.mcp.tools import USUAL_ROWS, Tools, answer
from stallwise.surfaces.web.worker_process import WorkerProcess

P = ParamSpec("P")
Call = tuple[Any, ...]  # the name of a tool and what it is asked
INSTRUCTIONS = (
    "stallwise names the stage that stalls in GPU training and serving. Start with `files`, then `diagnose` with the paths "
    "(or with a complaint in words). Paths are relative to the folder that the server was started for. Long lists come in pages: "
    "ask again with next_offset. Gains are ranges with their basis; `state` is sick, healthy (by proof) or "
    "unclear: then say so, with what to capture next, and never call it healthy; `questions` says what to ask the user."
)


def build_server(root: Path) -> Any:
    """An MCPServer bound to one folder."""
    try:
        import anyio.to_thread
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise MissingExtra("mcp", "mcp") from error
    tools = Tools(root)
    server = MCPServer("stallwise", instructions=INSTRUCTIONS, log_level="ERROR")

    def answered(act: Callable[P, Call], ask: Callable[[Call], Awaitable[dict[str, Any]]]) -> Callable[P, Any]:
        """Our errors become a sentence for the agent; internal error never shows a traceback."""
        act.__annotations__["return"] = dict[str, Any]  # what the client gets

        @wraps(act)
        async def safe(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
            try:
                return await ask(act(*args, **kwargs))
            except StallwiseError as error:
                raise ToolError(f"{error.problem}. Try: {error.hint}" if error.hint else error.problem) from error
            except Exception as error:
                raise ToolError(f"a bug of stallwise: {type(error).__name__}") from error

        return safe

    async def in_worker(call: Call) -> dict[str, Any]:
        """In a process of its own, which ends when the call is cancelled or the client leaves."""
        asked = WorkerProcess(answer, str(root), *call)
        try:
            return await anyio.to_thread.run_sync(asked.wait, abandon_on_cancel=True)
        finally:
            asked.end()

    async def at_home(call: Call) -> dict[str, Any]:
        """Here: a round of the drill is remembered from call to call."""
        found: dict[str, Any] = await anyio.to_thread.run_sync(partial(getattr(tools, call[0]), *call[1:]))
        return found

    def tool(act: Callable[P, Call]) -> Callable[P, Any]:
        return answered(act, in_worker)

    def here(act: Callable[P, Call]) -> Callable[P, Any]:
        return answered(act, at_home)

    _doctor_tools(server, tool, here)
    _planner_tools(server, tool)
    return server


def _doctor_tools(server: Any, tool: Any, here: Any) -> None:
    @server.tool()  # type: ignore[untyped-decorator]
    @tool  # type: ignore[untyped-decorator]
    def files(path: str = "", offset: int = 0, limit: int = USUAL_ROWS) -> Call:
        """List files of the folder, or of a path inside it."""
        return ("files", path, offset, limit)

    @server.tool()  # type: ignore[untyped-decorator]
    @tool  # type: ignore[untyped-decorator]
    def diagnose(
        paths: list[str] | None = None,
        facts: list[str] | None = None,
        part: str = "findings",
        offset: int = 0,
        limit: int = USUAL_ROWS,
        share: bool = False,
        answers: list[str] | None = None,
    ) -> Call:
        """Name the stage that stalls: traces, logs, metrics, counters (any mix) and stated facts ("mfu=0.22").

        A complaint in the user's own words may stand among the paths: what is no file of the folder is read as a sentence.
        `part` picks the list to page through: findings, hypotheses, next, notes, contradictions, unknown, kernels, facts.
        `questions` of the answer holds the one that separates most, with choices: put it to the user and call again with all
        `answers` so far, in order (the words of a choice, the user's own, or "don't know").
        `share` replaces keys, host names, paths, code, models and prompts by stand-ins.
        """
        return ("diagnose", paths or [], facts or [], part, offset, limit, share, answers or [])

    @server.tool()  # type: ignore[untyped-decorator]
    @tool  # type: ignore[untyped-decorator]
    def compare(good: list[str], bad: list[str], offset: int = 0, limit: int = USUAL_ROWS) -> Call:
        """Say what changed between a good and a bad run, most seconds first."""
        return ("compare", good, bad, offset, limit)

    @server.tool()  # type: ignore[untyped-decorator]
    @tool  # type: ignore[untyped-decorator]
    def explain(cause: str = "", offset: int = 0, limit: int = USUAL_ROWS) -> Call:
        """The page of a cause (meaning, cost, look-alikes, fix) or of a concept (definition, formula, worked number).

        Without a name the list of all.
        """
        return ("explain", cause, offset, limit)

    @server.tool()  # type: ignore[untyped-decorator]
    @here  # type: ignore[untyped-decorator]
    def drill(verb: str = "list", name: str = "", text: str = "") -> Call:
        """Play or examine a round of the drill, or go through its cards.

        list: what there is. start: `name` is an incident's number, "new", "learn" or "cards:TOPIC"; gives the session.
        reply: `name` is the session, `text` one line as typed in the terminal ("ask dmesg", "commit", the account, "80%", ...).
        transcript: of a round that is over, with rubric and exact grades, for a comment on the prose; the grades stay as they are.
        """
        return ("drill", verb, name, text)

    @server.tool()  # type: ignore[untyped-decorator]
    @tool  # type: ignore[untyped-decorator]
    def lint(path: str, offset: int = 0, limit: int = USUAL_ROWS) -> Call:
        """Find lines of Python training scripts that stall the GPU, without running them."""
        return ("lint", path, offset, limit)


def _planner_tools(server: Any, tool: Any) -> None:
    @server.tool()  # type: ignore[untyped-decorator]
    @tool  # type: ignore[untyped-decorator]
    def plan(kind: str, question: dict[str, Any] | None = None) -> Call:
        """Predict before renting. Kinds and what `question` may hold:

        layout: model, gpu, gpus, seq, global_batch, tp, pp, cp, ep, vp, zero, micro_batch, recompute, precision.
        training: the same without the layout; the best layouts are searched.
        serving: model, gpu, engine, isl, osl, rate, ttft, tpot, prefix_hit.
        formula: name (none lists them) and its inputs.
        """
        return ("plan", kind, question or {})

    @server.tool()  # type: ignore[untyped-decorator]
    @tool  # type: ignore[untyped-decorator]
    def simulate(question: dict[str, Any] | None = None) -> Call:
        """Simulate a pipeline schedule: stages, microbatches, schedule, chunks, head_layers, p2p, input_grad, weight_grad."""
        return ("simulate", question or {})
