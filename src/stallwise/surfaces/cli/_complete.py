"""What the shell may complete: files where files are read, and the names that our own lists hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

import click
from click.shell_completion import CompletionItem

FILES = {"paths", "path", "runs", "run", "target", "folder", "trace", "file"}


class Completed(click.types.StringParamType):
    """A text whose beginnings are known; the shell completes file names itself, with all their odd letters."""

    def __init__(self, names: Callable[[], Iterable[str]] | None, *, listed: bool = False) -> None:
        self.names, self.listed = names, listed

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if self.names is None:
            return [CompletionItem(incomplete, type="file")]
        before, comma, begun = incomplete.rpartition(",") if self.listed else ("", "", incomplete)
        return [CompletionItem(before + comma + name) for name in sorted(self.names()) if name.startswith(begun)]


def complete(command: click.Command) -> click.Command:
    """Gives every plain text of a command the list that it is chosen from, where there is one."""
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        complete(below)
    for param in command.params:
        if type(param.type) is not click.types.StringParamType:
            continue
        wanted = [o.lstrip("-") for o in param.opts] if isinstance(param, click.Option) else []
        names = next(
            (LISTS[w] for w in (*wanted, f"{command.name} {param.name}", param.name or "") if w in LISTS), None
        )
        if names is not None or param.name in FILES:
            param.type = Completed(names, listed=bool(LISTED & set(wanted)))
    return command


def _constant(place: str) -> Callable[[], Iterable[str]]:
    """The words of a constant, or of a function that lists them, named as module:NAME; imported when the shell asks."""

    def words() -> Iterable[str]:
        module, _, name = place.partition(":")
        found = getattr(import_module(module), name)
        return [str(word) for word in (found() if callable(found) else found)]

    return words


def _causes() -> Iterable[str]:
    from stallwise.causes import all_rules

    return [rule.cause for rule in all_rules()]


def _explained() -> Iterable[str]:
    from stallwise.drill.explain import concepts

    return [*_causes(), *concepts()]


def _limits() -> Iterable[str]:
    return ["any", "unclear", *_causes()]


def _families() -> Iterable[str]:
    from stallwise.causes import all_rules

    return {rule.family for rule in all_rules()}


def _models() -> Iterable[str]:
    from stallwise.physics.specs.models import model_names

    return model_names()


def _gpus() -> Iterable[str]:
    from stallwise.physics.specs.hardware import all_gpus

    return [g.name for g in all_gpus()]


def _clusters() -> Iterable[str]:
    return [f"{count}x{name}" for count in (8, 64, 512) for name in _gpus()]


def _schedules() -> Iterable[str]:
    from stallwise.physics.sim.schedules import all_schedules

    return all_schedules()


def _formulas() -> Iterable[str]:
    from stallwise.physics.costs.formulas import all_formulas

    return all_formulas()


def _facts() -> Iterable[str]:
    from stallwise.evidence.catalog import quantities

    return {f"{word}=" for quantity in quantities().values() for word in (quantity.name, *quantity.aliases)}


def _kinds() -> Iterable[str]:
    from stallwise.planner.validation import all_kinds

    return all_kinds()


def _trials() -> Iterable[str]:
    from stallwise.experiment.trials import all_changes

    return [change.name for change in all_changes()]


LISTS: dict[str, Callable[[], Iterable[str]]] = {
    "cause": _causes,
    "explain name": _explained,
    "fail-on": _limits,
    "family": _families,
    "model": _models,
    "models which": _models,
    "gpu": _gpus,
    "cluster": _clusters,
    "schedule": _schedules,
    "formula name": _formulas,
    "fact": _facts,
    "kind": _kinds,
    "select": _causes,
    "ignore": _causes,
    "only": _trials,
    "skip": _trials,
    "precision": _constant("stallwise.physics.specs.layout:PRECISIONS"),
    "optimizer": _constant("stallwise.physics.specs.layout:OPTIMIZERS"),
    "offload": _constant("stallwise.physics.specs.layout:OFFLOADS"),
    "framework": _constant("stallwise.physics.specs.recipe:FRAMEWORKS"),
    "attention": _constant("stallwise.physics.specs.recipe:ATTENTION"),
    "kernels": _constant("stallwise.physics.specs.recipe:KERNELS"),
    "tp-overlap": _constant("stallwise.physics.specs.recipe:TP_OVERLAP"),
    "scaling": _constant("stallwise.physics.specs.recipe:SCALINGS"),
    "gather": _constant("stallwise.physics.specs.recipe:GATHERS"),
    "engine": _constant("stallwise.physics.specs.deployment:ENGINES"),
    "sort": _constant("stallwise.planner.serving:SORTS"),
    "policy": _constant("stallwise.physics.sim.policies:policies"),
    "topic": _constant("stallwise.drill.deck:topics"),
    "facts words": _constant("stallwise.evidence.catalog:quantities"),
}
LISTED = {"only", "skip"}  # several names with commas between them
