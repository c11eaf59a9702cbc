"""Where results go, what cannot be scrubbed, and that the input is never lost."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from kineto_files import frame, launched, write
from nsys_files import small
from paths import DATA

from warpline.errors import WarplineError
from warpline.scrub.file import check, default_output, scrub


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("trace.json", "trace.scrubbed.json"),
        ("trace.pt.trace.json.gz", "trace.pt.trace.scrubbed.json.gz"),
        ("profile.sqlite", "profile.scrubbed.sqlite"),
        ("profile.sqlite.gz", "profile.scrubbed.sqlite.gz"),
        ("trace", "trace.scrubbed"),
    ],
)
def test_the_result_lies_in_the_working_directory(name: str, expected: str) -> None:
    assert default_output(Path("folder", name)) == Path(expected)


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trace(folder: Path) -> Path:
    return write(folder, [*launched("gemm", 10, 20, 10, 1), frame("/home/alice/x.py(1): f", 0, 1, 1, None)])


def test_the_input_stays_and_the_result_is_never_replaced_unasked(tmp_path: Path) -> None:
    path = trace(tmp_path)
    before = path.read_bytes()
    first = scrub(path)
    assert path.read_bytes() == before
    with pytest.raises(WarplineError, match="would-overwrite"):
        scrub(path)
    assert scrub(path, force=True) == first
    with pytest.raises(WarplineError, match="would-overwrite"):
        scrub(path, path, force=True)
    assert path.read_bytes() == before


def test_in_place_replaces_the_file(tmp_path: Path) -> None:
    path = trace(tmp_path)
    assert scrub(path, in_place=True).output == path
    assert b"fileB.py" in path.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_only_the_owner_may_read_the_result(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        for path in (trace(tmp_path), small().write(tmp_path / "export.sqlite")):
            path.chmod(0o644)
            for number, end in enumerate(("", ".gz")):
                output = scrub(path, tmp_path / f"{path.name}.{number}{end}").output
                assert output is not None
                assert output.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_a_link_in_the_place_of_the_result_is_not_followed_unasked(tmp_path: Path) -> None:
    path = trace(tmp_path)
    (tmp_path / "trace.scrubbed.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(WarplineError, match="would-overwrite"):
        scrub(path)
    assert not (tmp_path / "elsewhere.json").exists()


def test_the_same_file_gives_the_same_bytes_and_a_clean_one_its_own(tmp_path: Path) -> None:
    for path in (trace(tmp_path), small().write(tmp_path / "export.sqlite")):
        for end in ("", ".gz"):
            outputs = [tmp_path / f"{path.name}.{number}.out{end}" for number in range(3)]
            scrub(path, outputs[0])
            scrub(path, outputs[1])
            scrub(outputs[0], outputs[2])
            assert outputs[0].read_bytes() == outputs[1].read_bytes() == outputs[2].read_bytes()


def test_numbers_do_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    events = [frame(f"/home/{name}/{name}.py(1): f", 0, 1, 1, None) for name in ("alice", "bob", "carol", "dan", "eve")]
    path = write(tmp_path, events, notes=["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    program = (
        "import sys; from pathlib import Path; from warpline.scrub.file import scrub; scrub(*map(Path, sys.argv[1:]))"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", program, str(path), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
        )
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert "/fileB.py(1): functionB" in (tmp_path / "1").read_text()


def test_the_suffix_of_the_output_says_whether_it_is_packed(tmp_path: Path) -> None:
    path = trace(tmp_path)
    scrub(path, tmp_path / "plain.json")
    scrub(path, tmp_path / "packed.json.gz")
    assert gzip.decompress((tmp_path / "packed.json.gz").read_bytes()) == (tmp_path / "plain.json").read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        (
            "a.nsys-rep",
            b"NVIDIA Tegra Profiler Report 2025@5@2@266",
            "nsys export --type sqlite -o a.sqlite a.nsys-rep",
        ),
        ("a.ncu-rep", b"NVR\x00abc", "warpline dive a.ncu-rep"),
        ("snapshot.pickle", b"\x80\x04\x95memory", "warpline memory snapshot.pickle"),
        ("a.json", b'{"segments": []}', "give a .json"),
    ],
)
def test_other_formats_are_refused_with_what_to_do(name: str, content: bytes, hint: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for work in (check, scrub):
        with pytest.raises(WarplineError, match="cannot-scrub") as caught:
            work(path)
        assert hint in caught.value.line()
    assert list(tmp_path.iterdir()) == [path]


def test_a_packed_file_that_is_cut_short_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    for source in (DATA / "kineto" / "layer_eager.json.gz", DATA / "nsys" / "graph_node.sqlite.gz"):
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes()[:-2000])
        with pytest.raises(WarplineError, match="damaged-file"):
            scrub(path)
        assert list(tmp_path.iterdir()) == [path]
        path.unlink()


def test_damaged_files_are_scrubbed_or_refused(tmp_path: Path) -> None:
    chance = random.Random(3)
    plain = trace(tmp_path).read_bytes()
    export = small().write(tmp_path / "seed.sqlite").read_bytes()
    for number in range(30):
        for name, content in (("t.json", plain), ("t.json.gz", gzip.compress(plain)), ("e.sqlite", export)):
            raw = bytearray(content)
            for _ in range(chance.randint(1, 40)):
                raw[chance.randrange(20, len(raw))] = chance.randrange(256)
            folder = tmp_path / f"{number}-{name}"
            folder.mkdir()
            path = folder / name
            path.write_bytes(raw[: chance.randint(len(raw) // 2, len(raw))] if number % 3 == 0 else raw)
            try:
                result = scrub(path, folder / "out")
            except WarplineError:
                assert list(folder.iterdir()) == [path]
            else:
                assert result.output is not None
                assert result.output.exists()
                assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(WarplineError, match="cannot-write"):
        scrub(trace(tmp_path), tmp_path / "absent" / "x.json")


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupt(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    path = trace(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        scrub(path, progress=interrupt)
    assert list(tmp_path.iterdir()) == [path]


def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    for path in (trace(tmp_path), small().write(tmp_path / "export.sqlite")):
        told: list[float] = []
        check(path, progress=told.append)
        assert told == sorted(told)
        assert told[-1] == 1.0
