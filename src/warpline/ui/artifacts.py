"""Sinks for experiment trackers: the recording, its report and its numbers as artifacts of W&B and MLflow.

>>> WarplineCallback(sinks=[artifacts.to_wandb])
"""

from __future__ import annotations

from warpline.errors import WarplineError
from warpline.ui.training import Recorded

NAME = "warpline"


def to_wandb(recorded: Recorded) -> None:
    """Log to the W&B run that is active: an artifact with the files, the report as a panel, and the numbers."""
    import wandb  # noqa: PLC0415 - an optional package

    run = wandb.run
    if run is None:
        raise WarplineError("no-run", "no W&B run is active", "call wandb.init() before the training")
    artifact = wandb.Artifact(f"{NAME}-{run.id}", type="profile")
    for file in (recorded.trace, recorded.report, recorded.summary):
        artifact.add_file(str(file))
    run.log_artifact(artifact)
    run.log({**recorded.numbers, "warpline/report": wandb.Html(recorded.report.read_text(encoding="utf-8"))})


def to_mlflow(recorded: Recorded) -> None:
    """Log to the MLflow run that is active, or to a new one: the files, and the numbers as metrics."""
    import mlflow  # noqa: PLC0415 - an optional package

    for file in (recorded.trace, recorded.report, recorded.summary):
        mlflow.log_artifact(str(file), artifact_path=NAME)
    # MLflow keeps slashes in the names of metrics.
    mlflow.log_metrics(recorded.numbers)
