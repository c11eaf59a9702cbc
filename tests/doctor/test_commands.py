"""Command lines before they are run: what would go wrong, and the line as it should be typed."""

from __future__ import annotations

import pytest
from doctor_machines import FakeMachine
from msgspec.structs import replace

from warpline.doctor.command_line import line_of, parse_line
from warpline.doctor.commands import examine_command
from warpline.doctor.model import Examination
from warpline.errors import UsageError

HERE = FakeMachine(folders={".": (), "/tmp": ()})
GOOD = (
    "NSYS_NVTX_PROFILER_REGISTER_ONLY=0 nsys profile -t cuda,nvtx --sample=none --cpuctxsw=none --capture-range=nvtx "
    "--nvtx-capture=step --capture-range-end=stop -o /tmp/r python train.py"
)


def alarms(examination: Examination) -> dict[str, str]:
    return {check.name: check.state for check in examination.checks if check.state in ("problem", "warning")}


@pytest.mark.parametrize(
    "line",
    [
        GOOD,
        "ncu --target-processes all -k regex:gemm -c 3 --clock-control none -o /tmp/k python train.py",
        "docker run --rm --gpus all --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 -v $PWD:/work img python train.py",
        "nsys stats report.nsys-rep",
        "nsys export --type sqlite report.nsys-rep",
        "ncu --query-metrics --chip gh100",
        "export NSYS_NVTX_PROFILER_REGISTER_ONLY=0 && " + GOOD.partition(" ")[2],
        "cd /work && " + GOOD,
        GOOD.partition(" ")[2].replace("nsys profile", "nsys profile --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0"),
    ],
)
def test_a_good_line_is_left_alone(line: str) -> None:
    examination = examine_command(line, HERE)
    assert examination.verdict == "ok", examination.checks
    assert examination.corrected == ""


def test_the_seeds_first_line_is_put_right() -> None:
    examination = examine_command(
        "nsys profile --trace=cuda,nvtx,osrt \\\n  --capture-range=nvtx \\\n  --capture-range-end=stop -o out \\\n"
        "  docker run --rm --gpus all pytorch python scripts/gpu_test.py",
        HERE,
    )
    assert {6, 8} <= {check.failure for check in examination.checks if check.state == "problem"}
    assert examination.corrected == (
        "docker run --rm --gpus all --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 -v $PWD:/work -w /work "
        "-e NSYS_NVTX_PROFILER_REGISTER_ONLY=0 pytorch nsys profile --trace=cuda,nvtx,osrt --capture-range=nvtx "
        "--capture-range-end=stop -o out --sample=none --cpuctxsw=none --nvtx-capture=NAME python scripts/gpu_test.py"
    )


@pytest.mark.parametrize(
    "line",
    [
        "nsys profile python train.py",
        "ncu -k '.*gemm.*' --set full python train.py",
        "nsys profile -c cudaProfilerApi -d 10 -t osrt -- vllm serve m -tp 4",
        "docker run --rm img ncu -k void python a.py",
        "torchrun --nproc-per-node 4 nsys profile -o r python t.py",
        "nsys profile docker run --rm --gpus all img bash -c 'python a.py --x 1'",
        "sudo -E nsys profile -s cpu --kill=sigkill python a.py",
        "nsys profile -t cuda -t cudnn -t cuda,nvtx python a.py",
    ],
)
def test_a_corrected_line_needs_no_further_correction(line: str) -> None:
    corrected = examine_command(line, HERE).corrected
    assert corrected
    again = examine_command(corrected, HERE)
    assert again.corrected == "", (corrected, again.corrected)


CASES: dict[str, tuple[str, str, str]] = {
    "no sampling wanted": ("nsys profile -t cuda,nvtx python a.py", "cpu-sampling", "--sample=none"),
    "no traces chosen": ("nsys profile -s none python a.py", "default-traces", "--trace=cuda,nvtx"),
    "no CUDA among them": ("nsys profile -t osrt python a.py", "cuda-not-traced", "--trace=cuda,osrt"),
    "traces given twice": (
        "nsys profile -t cuda -t nvtx python a.py",
        "trace-given-twice",
        "profile --trace=cuda,nvtx --",
    ),
    "no verb": ("nsys -t cuda python a.py", "no-verb", "nsys profile"),
    "range without a name": ("nsys profile -c nvtx python a.py", "nvtx-range-unnamed", "--nvtx-capture=NAME"),
    "range without its trace": (
        "nsys profile -t cuda -c nvtx -p x python a.py",
        "nvtx-not-traced",
        "--trace=cuda,nvtx",
    ),
    "range without an end": ("nsys profile -c cudaProfilerApi python a.py", "range-end", "--capture-range-end=stop"),
    "killed at the end": ("nsys profile -d 10 python a.py", "recording-cut-short", "--kill=none"),
    "killed at once": ("nsys profile --kill sigkill python a.py", "recording-cut-short", "--kill=none"),
    "graphs": ("nsys profile python a.py --cudagraph", "graph-as-one-bar", "--cuda-graph-trace=node"),
    "workers": ("nsys profile python a.py --num-workers 8", "forked-workers", "--trace-fork-before-exec=true"),
    "ranks": ("mpirun -np 4 nsys profile -o r python a.py", "one-report-for-all-ranks", "r.%q{OMPI_COMM_WORLD_RANK}"),
    "child processes": ("ncu -c 1 python a.py", "no-kernels-profiled", "--target-processes all"),
    "pattern": ("ncu -c 1 -k 'gemm|conv' python a.py", "no-kernels-profiled", '"regex:gemm|conv"'),
    "template": ("ncu -c 1 -k 'regex:add<4>' python a.py", "no-kernels-profiled", "--kernel-name-base demangled"),
    "mangled": ("ncu -c 1 -k _Z4gemmPf python a.py", "no-kernels-profiled", "--kernel-name-base mangled"),
    "NVTX filter": ("ncu -c 1 --nvtx-include step python a.py", "no-kernels-profiled", "--nvtx-include step/"),
    "everything": ("ncu --target-processes all python a.py", "unbounded", "--launch-count 10"),
    "no GPU": ("docker run img python a.py", "no-gpu-in-container", "--gpus all"),
    "little shared memory": ("docker run --gpus all img python a.py", "small-shared-memory", "--ipc=host"),
    "counters in a container": (
        "docker run --gpus all img ncu -c 1 python a.py",
        "counters-forbidden",
        "--cap-add=SYS_ADMIN",
    ),
    "report within the container": (
        "docker run --rm --gpus all img nsys profile python a.py",
        "report-lost",
        "-v $PWD:/work",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_named_and_put_right(case: str) -> None:
    line, name, correction = CASES[case]
    examination = examine_command(line, HERE)
    assert name in alarms(examination)
    assert correction in examination.corrected


@pytest.mark.parametrize(
    ("line", "name", "state"),
    [
        ("nsys profile", "no-program", "problem"),
        ("ncu --set full", "no-program", "problem"),
        ("docker run --gpus all", "no-image", "problem"),
        ("nsys profile docker compose up", "outside-the-container", "problem"),
        ("nsys profile ncu -c 1 python a.py", "two-cupti-clients", "problem"),
        ("ncu nsys profile python a.py", "two-cupti-clients", "problem"),
        ("nsys profile python a.py --profile", "two-cupti-clients", "warning"),
        ("VLLM_TORCH_PROFILER_DIR=x nsys profile python a.py", "two-cupti-clients", "warning"),
        ("nsys profile -o /absent/r python a.py", "no-such-folder", "problem"),
        ("ncu --kernel-regex gemm python a.py", "removed-option", "problem"),
        ("ncu -s 5000 -k gemm -c 1 python a.py", "no-kernels-profiled", "warning"),
    ],
)
def test_what_is_wrong_and_must_be_put_right_by_hand(line: str, name: str, state: str) -> None:
    assert alarms(examine_command(line, HERE))[name] in (state, "problem")


def test_a_program_without_a_profiler_cannot_be_judged() -> None:
    examination = examine_command("python train.py", HERE)
    assert examination.verdict == "unknown"


def test_the_script_is_read_where_it_is_here() -> None:
    def script(text: str) -> FakeMachine:
        return replace(HERE, files={"train.py": text})

    nvtx = GOOD.partition(" ")[2]
    assert "nvtx-range-unregistered" in alarms(examine_command(nvtx, script("nvtx.range_push('step')")))
    assert alarms(examine_command(nvtx, script("domain = nvtx.get_domain('x')"))) == {}
    api = "nsys profile -t cuda,nvtx -s none -c cudaProfilerApi --capture-range-end=stop -o /tmp/r python train.py"
    assert "range-never-begun" in alarms(examine_command(api, script("train()")))
    assert alarms(examine_command(api, script("torch.cuda.profiler.start()"))) == {}
    assert "two-cupti-clients" in alarms(
        examine_command(api, script("from torch.profiler import profile\nprofiler.start()"))
    )
    ncu = "ncu --target-processes all -c 1 --profile-from-start off python train.py"
    assert "two-cupti-clients" in alarms(examine_command(ncu, script("torch.profiler.profile()")))
    assert "no-kernels-profiled" not in {
        f.name for f in examine_command(ncu, script("cudart().cudaProfilerStart()")).checks
    }


def test_where_the_report_goes() -> None:
    line = "nsys profile -t cuda,nvtx -s none -o /tmp/r python a.py"
    locked = replace(HERE, locked=frozenset({"/tmp"}))
    assert alarms(examine_command(line, locked)) == {"folder-not-writable": "problem"}
    there = replace(HERE, files={"/tmp/r.nsys-rep": ""})
    examination = examine_command(line, there)
    assert alarms(examination) == {"report-exists": "warning"}
    assert "--force-overwrite=true" in examination.corrected
    assert alarms(examine_command(line.replace("-o", "-f true -o"), there)) == {}
    assert alarms(examine_command(line.replace("/tmp/r", "/x/$NAME"), HERE)) == {}


def test_the_environment_of_the_shell_counts() -> None:
    set_already = replace(HERE, environment={"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"})
    assert alarms(examine_command(GOOD.partition(" ")[2], set_already)) == {}


def test_a_report_is_read_in_the_container_that_recorded_it() -> None:
    container = "docker run --gpus all --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 -v $PWD:/work img"
    recording = GOOD.partition(" ")[2].replace("--capture-range=nvtx --nvtx-capture=step --capture-range-end=stop ", "")
    found = examine_command(f"{container} {recording} && nsys stats /tmp/r.nsys-rep", HERE)
    assert alarms(found)["another-nsys"] == "warning"
    assert found.corrected.endswith(f"&& {container} nsys stats /tmp/r.nsys-rep")
    assert "another-nsys" not in alarms(examine_command(f"{recording} && nsys stats /tmp/r.nsys-rep", HERE))


def test_a_line_is_taken_apart_and_put_together() -> None:
    text = 'A=1 sudo -E nsys profile -t cuda --stats=true -o "my report" python train.py --lr 0.1 && nsys stats r'
    assert parse_line(text).text() == text
    command = parse_line(text).commands[0]
    assert (command.tool, command.verb, command.value("--trace"), command.value("--stats")) == (
        "nsys",
        "profile",
        "cuda",
        "true",
    )
    assert command.program == ("python", "train.py", "--lr", "0.1")
    assert line_of(["nsys", "profile", "python", "a b.py"]).text() == 'nsys profile python "a b.py"'


def test_options_that_need_no_value() -> None:
    assert parse_line("nsys profile -f python a.py").commands[0].program == ("python", "a.py")
    assert parse_line("ncu --nvtx --csv python a.py").commands[0].program == ("python", "a.py")
    assert parse_line("docker run --rm -it img bash").commands[0].image == "img"


@pytest.mark.parametrize("text", ["", "   ", "&&", "nsys profile 'unclosed"])
def test_what_is_no_command_line_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        examine_command(text, HERE)


def test_an_option_with_one_dash_is_named_and_written_with_two() -> None:
    found = examine_command("nsys profile -capture-range=cudaProfilerApi python train.py", FakeMachine())
    assert "nsys profile has no option -capture-range" in [check.seen for check in found.checks]
    assert "nsys profile --capture-range=cudaProfilerApi " in found.corrected


def test_a_misspelt_command_and_option_are_named_and_the_program_stays_whole() -> None:
    found = examine_command(
        "nsys profil --capture-rnage=cudaProfilerApi --new-flag python train.py --lr 1", FakeMachine()
    )
    seen = [check.seen for check in found.checks]
    assert "nsys has no command profil" in seen
    assert "nsys profile has no option --capture-rnage" in seen
    assert found.corrected.startswith("nsys profile --capture-range=cudaProfilerApi --new-flag ")
    assert found.corrected.endswith("python train.py --lr 1")


def test_a_kernel_name_without_regex_is_a_warning() -> None:
    found = examine_command("ncu -k gemm --target-processes all -c 1 python train.py", FakeMachine())
    assert [check.state for check in found.checks if "-k gemm" in check.seen] == ["warning"]
