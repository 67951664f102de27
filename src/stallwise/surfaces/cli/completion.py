"""Print the shell's completion script."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json

SHELLS = ("bash", "zsh", "fish")
WHERE = {
    "bash": 'eval "$(stallwise completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(stallwise completion zsh)" in ~/.zshrc',
    "fish": "stallwise completion fish > ~/.config/fish/completions/stallwise.fish",
}


@click.command(epilog='Examples: eval "$(stallwise completion bash)"; stallwise completion fish | source')
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print script and place as JSON.")
def command(shell: str, as_json: bool) -> None:
    """Print the completion script of SHELL; --json adds where it belongs."""
    from click.shell_completion import get_completion_class

    from stallwise.surfaces.cli import main

    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(main, {}, "stallwise", "_STALLWISE_COMPLETE").source()
    click.echo(json.dumps({"shell": shell, "where": WHERE[shell], "script": source}, indent=2) if as_json else source)
