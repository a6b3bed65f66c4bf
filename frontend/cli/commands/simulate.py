"""``convoy simulate``: predicts how fast a model trains on a number of GPUs, by their location in the network."""

from typing import Annotated

import typer

from frontend.cli import session
from frontend.cli.client import Item


def simulate(
    context: typer.Context,
    gpus: Annotated[int, typer.Option(help="The number of GPUs.")],
    model: Annotated[str, typer.Option(help="A model with stored measurements: vgg16, resnet50.")] = "",
    step_seconds: Annotated[
        float | None, typer.Option(help="For another model: the time of one step without communication.")
    ] = None,
    gradient_bytes: Annotated[float | None, typer.Option(help="For another model: the size of its gradients.")] = None,
) -> None:
    """Predict the training speed of a model for every level of the network that its GPUs can span."""
    run = session.session_of(context)
    options = {"model": model, "gpus": gpus, "step_seconds": step_seconds, "gradient_bytes": gradient_bytes}
    params = {key: str(value) for key, value in options.items() if value not in (None, "")}
    results = run.api.get("speeds", params)["results"]
    unit = "SAMPLES/S" if model and step_seconds is None else "STEPS/S"
    rows = [
        [
            each["over"],
            f"{each['gbs']:g}",
            f"{each['step_s'] * 1000:.1f}",
            f"{each['per_gpu']:.1f}",
            f"{each['total']:.1f}",
        ]
        for each in results
    ]
    run.screen.table(["PLACE", "GB/S", "STEP (MS)", f"{unit}/GPU", unit], rows)


def described(speed: Item) -> str:
    """The predicted speed of a job as one line."""
    return (
        f"{speed['per_gpu']:.1f}/s per GPU, {speed['total']:.1f}/s in total, over {speed['over']} ({speed['gbs']:g} GB/s);"
        f" {speed['speedup']:.2f} times the slowest placement"
    )
