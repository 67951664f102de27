"""TensorBoard, Weights & Biases and MLflow, for those who have them. They run in the watcher, never in the job."""

from __future__ import annotations

from collections.abc import Callable

from stallwise.errors import BadRequest

Sink = Callable[[dict[str, float], int], None]


def open_sinks(names: tuple[str, ...]) -> list[Sink]:
    """The sinks asked for; a missing package is a clear error."""
    return [_OPEN[name]() for name in names]


def _tensorboard() -> Sink:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise BadRequest("TensorBoard is not installed here", hint="pip install tensorboard torch") from error
    writer = SummaryWriter("stallwise_tb")

    def log(scalars: dict[str, float], step: int) -> None:
        for name, value in scalars.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return log


def _wandb() -> Sink:
    try:
        import wandb
    except ImportError as error:
        raise BadRequest("wandb is not installed here", hint="pip install wandb") from error
    run = wandb.init(project="stallwise")
    return lambda scalars, step: run.log(scalars, step=step)


def _mlflow() -> Sink:
    try:
        import mlflow
    except ImportError as error:
        raise BadRequest("mlflow is not installed here", hint="pip install mlflow") from error
    return lambda scalars, step: mlflow.log_metrics({k.replace("/", "."): v for k, v in scalars.items()}, step=step)


_OPEN: dict[str, Callable[[], Sink]] = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}
