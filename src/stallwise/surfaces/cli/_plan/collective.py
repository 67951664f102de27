"""How long a collective should take, which algorithm wins, where it stops scaling."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan collective allreduce 2GB --gpus 512; "
    "stallwise plan collective allreduce 1GB --gpus 512 --seen 64=45ms --seen 128=52ms --seen 256=61ms --seen 512=340ms"
)
@click.argument("op")
@click.argument("size")
@click.option("--gpus", default=8, show_default=True, help="Ranks in the group.")
@click.option("--gpu", default="h100", show_default=True, help="Kind of GPU.")
@click.option("--domain", type=int, help="GPUs that share NVLink (8 in a DGX, 72 in an NVL72).")
@click.option("--per-domain", type=int, help="Ranks of this group per domain; 1 for data parallelism over TP=8.")
@click.option("--nic", help="Network per GPU, such as 400Gb/s.")
@click.option("--wiring", default="", help="Cards without NVLink: switch, root (one root complex) or sockets.")
@click.option("--peer-access/--no-peer-access", default=None, help="Whether such cards reach each other directly.")
@click.option("--level", "levels", multiple=True, help="Where the network narrows: 256:4 = 4:1 beyond 256 GPUs.")
@click.option("--measured", help="What you measured, such as 340ms: is it right?")
@click.option("--seen", multiple=True, help="A measured series over group sizes: RANKS=TIME, several times.")
@answer_options
def command(
    op: str,
    size: str,
    gpus: int,
    gpu: str,
    domain: int | None,
    per_domain: int | None,
    nic: str | None,
    wiring: str,
    peer_access: bool | None,
    levels: tuple[str, ...],
    measured: str | None,
    seen: tuple[str, ...],
    out: Output,
) -> None:
    """Expected time and bus bandwidth of OP (allreduce, allgather, reducescatter, alltoall...) on SIZE bytes."""
    from dataclasses import replace

    from stallwise.errors import BadRequest
    from stallwise.physics.costs.topology import Level
    from stallwise.physics.specs.cluster import cluster_of
    from stallwise.planner.collective import answer_collective
    from stallwise.units import Unit, parse

    def pair(text: str, mark: str, example: str) -> tuple[int, str]:
        left, found, right = text.partition(mark)
        if not found or not left.strip().isdecimal():
            raise BadRequest(f"'{text}' is not of the form {example}", hint=example)
        return int(left), right

    steps = [pair(text, ":", "256:4") for text in levels]
    series = [pair(text, "=", "512=340ms") for text in seen]
    cluster = cluster_of(gpu, gpus, domain=domain, nic_byte_per_s=parse(nic, Unit.BYTE_PER_S) if nic else None)
    cluster = replace(cluster, host_wiring=wiring, peer_access=peer_access)
    answer = answer_collective(
        op,
        parse(size, Unit.BYTE),
        cluster,
        per_domain=per_domain,
        levels=tuple(Level(n, parse(ratio, Unit.RATIO)) for n, ratio in steps),
        measured_s=parse(measured, Unit.SECOND) if measured else None,
        series=tuple((n, parse(text, Unit.SECOND)) for n, text in series),
    )
    from stallwise.render.documents.collective import document

    out.give(partial(document, answer), lambda: answer)
