"""The callbacks: which steps they record, what they write, and that a failure never ends a training."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from warpline.errors import WarplineError
from warpline.ui import artifacts, training
from warpline.ui.training import Recorded, StepRecorder


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> ModuleType:
    """A small stand-in for a package that is not installed."""
    made = ModuleType(name)
    vars(made).update(content)
    monkeypatch.setitem(sys.modules, name, made)
    return made


class FakeProfile:
    """Takes the place of `warpline.profile`."""

    def __init__(self, name: str, **options: Any) -> None:
        self.options, self.said = options, [name]
        self.folder = self.trace = None
        FakeProfile.last = self

    def __enter__(self) -> FakeProfile:
        self.said.append("enter")
        return self

    def __exit__(self, *_: object) -> None:
        self.said.append("exit")
        self.folder, self.trace = Path("folder"), Path("folder/trace.json")

    def step(self) -> None:
        self.said.append("step")


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorded:
    """What every recording is explained as."""
    device = SimpleNamespace(window_ns=1000, busy_ns=250)
    shown, step_ns = SimpleNamespace(busiest=(device, None)), SimpleNamespace(expected=2_000_000)
    diagnosis = SimpleNamespace(devices=[device], shown=shown, steps=[1, 2], step_ns=step_ns)
    files = [tmp_path / name for name in ("trace.json", "report.html", "diagnosis.md")]
    for file in files:
        file.write_text("x")
    made = Recorded(tmp_path, files[0], diagnosis, files[1], files[2])  # type: ignore[arg-type]
    monkeypatch.setattr(training, "profile", FakeProfile)
    monkeypatch.setattr(training, "explained", lambda folder, trace: made)
    return made


def test_the_recorder_ends_itself_after_its_steps_and_tells_the_sinks(answer: Recorded) -> None:
    told: list[Recorded] = []
    recorder = StepRecorder(start=2, steps=3, sinks=[told.append])
    recorder.step()
    recorder.begin()
    for _ in range(40):
        recorder.step()
    recorder.finish()
    recorder.begin()
    assert (FakeProfile.last.options["skip"], FakeProfile.last.options["steps"]) == (2, 3)
    warmup = FakeProfile.last.said.count("step") - 2 - 3 - 1
    assert warmup >= 0
    assert FakeProfile.last.said[-1] == "exit"
    assert told == [answer]
    assert answer.numbers == {"warpline/step_ms": 2.0, "warpline/gpu_busy_pct": 25.0}


def test_a_failure_is_one_line_and_no_more(
    answer: Recorded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(_: Recorded) -> None:
        raise ConnectionError("no\nnetwork")

    recorder = StepRecorder(start=0, steps=1, sinks=[offline])
    recorder.begin()
    recorder.finish()
    assert capsys.readouterr().err == "warpline: the steps are not explained: ConnectionError: no network\n"

    def refused(self: FakeProfile) -> FakeProfile:
        raise WarplineError("profiler-on", "another profiler is active")

    monkeypatch.setattr(FakeProfile, "__enter__", refused)
    other = StepRecorder(start=0, steps=1)
    other.begin()
    other.step()
    other.finish()
    assert other.recorded is None
    assert "profiler-on" in capsys.readouterr().err


def test_the_trainer_of_hugging_face_calls_it(answer: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    module(monkeypatch, "transformers", TrainerCallback=object)
    monkeypatch.delitem(sys.modules, "warpline.ui.hugging_face", raising=False)
    callback = importlib.import_module("warpline.ui.hugging_face").WarplineTrainerCallback(start=0, steps=1)
    callback.on_train_begin(None, SimpleNamespace(is_world_process_zero=True), None)
    callback.on_step_end(None, None, None, model=1)
    assert callback.recorded is None
    callback.on_train_end(None, None, None)
    assert callback.recorded is answer
    other = importlib.import_module("warpline.ui.hugging_face").WarplineTrainerCallback()
    other.on_train_begin(None, SimpleNamespace(is_world_process_zero=False), None)
    other.on_train_end(None, None, None)
    assert other.recorded is None, "only the first process records"


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning_calls_it(package: str, answer: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None if package == "pytorch_lightning" else ModuleType("lightning"))
    module(monkeypatch, package, Callback=object)
    monkeypatch.delitem(sys.modules, "warpline.ui.lightning", raising=False)
    callback = importlib.import_module("warpline.ui.lightning").WarplineCallback(start=0, steps=1)
    callback.on_train_start(SimpleNamespace(is_global_zero=True), None)
    callback.on_train_batch_end(None, None, None, None, 0)
    callback.on_train_end(None, None)
    assert callback.recorded is answer


def test_wandb_gets_files_report_and_numbers(answer: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: dict[str, Any] = {}

    class Artifact:
        def __init__(self, name: str, type: str) -> None:  # noqa: A002 - W&B's name
            self.name, self.type, self.files = name, type, []

        def add_file(self, path: str) -> None:
            self.files.append(Path(path).name)

    run = SimpleNamespace(id="r1", log_artifact=lambda one: logged.update(artifact=one), log=logged.update)
    package = module(monkeypatch, "wandb", run=run, Artifact=Artifact, Html=lambda text: ("html", text))
    artifacts.to_wandb(answer)
    assert (logged["artifact"].name, logged["artifact"].type) == ("warpline-r1", "profile")
    assert logged["artifact"].files == ["trace.json", "report.html", "diagnosis.md"]
    assert logged["warpline/report"] == ("html", "x")
    assert logged["warpline/step_ms"] == 2.0
    package.run = None  # type: ignore[attr-defined]
    with pytest.raises(WarplineError, match="no-run"):
        artifacts.to_wandb(answer)


def test_mlflow_gets_files_and_numbers(answer: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    files, numbers = [], {}
    module(
        monkeypatch,
        "mlflow",
        log_artifact=lambda path, artifact_path: files.append((Path(path).name, artifact_path)),
        log_metrics=numbers.update,
    )
    artifacts.to_mlflow(answer)
    assert [name for name, _ in files] == ["trace.json", "report.html", "diagnosis.md"]
    assert numbers == {"warpline/step_ms": 2.0, "warpline/gpu_busy_pct": 25.0}


def test_real_steps_on_the_cpu_are_recorded_and_explained(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    recorder = StepRecorder(start=2, steps=2, output=tmp_path / "out")
    recorder.begin()
    x = torch.ones(16, 16)
    for _ in range(12):
        x = (x @ x).tanh()
        recorder.step()
    recorder.finish()
    found = recorder.recorded
    assert found is not None
    assert found.report.read_text().startswith("<!doctype html>")
    assert found.summary.read_text().startswith("# ")
    assert found.diagnosis.trace.step_ns is not None


def test_a_real_trainer_of_hugging_face(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    sys.modules.pop("warpline.ui.hugging_face", None)
    callback = importlib.import_module("warpline.ui.hugging_face").WarplineTrainerCallback(
        start=2, steps=2, output=tmp_path / "out"
    )

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": ((self.layer(x) - labels) ** 2).mean()}

    rows = [{"x": torch.ones(4), "labels": torch.ones(1)} for _ in range(40)]
    options = transformers.TrainingArguments(
        str(tmp_path / "trainer"), max_steps=12, per_device_train_batch_size=2, use_cpu=True, report_to=[]
    )
    transformers.Trainer(model=Model(), args=options, train_dataset=rows, callbacks=[callback]).train()
    assert callback.recorded is not None


def test_a_real_run_of_mlflow(answer: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    with mlflow.start_run() as run:
        artifacts.to_mlflow(answer)
    assert mlflow.get_run(run.info.run_id).data.metrics["warpline/step_ms"] == 2.0


def test_a_real_trainer_of_lightning(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")
    sys.modules.pop("warpline.ui.lightning", None)
    callback = importlib.import_module("warpline.ui.lightning").WarplineCallback(
        start=2, steps=2, output=tmp_path / "out"
    )

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.layer(batch).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = lightning.Trainer(
        max_steps=12, accelerator="cpu", callbacks=[callback], default_root_dir=tmp_path, **quiet
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(40, 4), batch_size=2))
    assert callback.recorded is not None


def test_a_real_run_of_wandb_without_a_network(
    answer: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", dir=str(tmp_path), project="test") as run:
        artifacts.to_wandb(answer)
        assert run.summary["warpline/step_ms"] == 2.0
    (report,) = tmp_path.glob("wandb/offline-run-*/files/media/html/warpline/report_*.html")
    assert answer.report.read_text() in report.read_text()
