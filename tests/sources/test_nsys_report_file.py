"""Reports are exported with the nsys at hand, and the version wall is explained before it is hit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nsys_files import small

from warpline.errors import UnreadableFile, WarplineError
from warpline.sources.cache_limit import make_room
from warpline.sources.nsys import export_report, read_nsys_report, report_version

HEADER = b"NVIDIA Tegra Profiler Report 2025@5@2@266-255236693005v0.\n\x0bLocal (CLI)\x12\n" + bytes(200)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools that is the whole PATH, and a cache."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("WARPLINE_NSYS", raising=False)
    monkeypatch.setenv("WARPLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def install_nsys(shop: Path, version: str, export: str) -> Path:
    """A stand-in for nsys, which says its version and runs ``export`` with $OUT as the output."""
    nsys = shop / "tools" / "nsys"
    nsys.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version {version}"; exit 0; fi\n'
        f'echo "$@" >> {shop}/calls\n'
        'while [ $# -gt 0 ]; do if [ "$1" = -o ]; then OUT=$2; fi; shift; done\n'
        f"{export}\n"
    )
    nsys.chmod(0o755)
    return nsys


def report(shop: Path, header: bytes = HEADER, name: str = "run.nsys-rep") -> Path:
    path = shop / name
    path.write_bytes(header)
    return path


def test_a_report_is_exported_once_and_read(shop: Path) -> None:
    small().write(shop / "ready.sqlite")
    install_nsys(shop, "2025.5.2.266-255236693005v0", f"cp {shop}/ready.sqlite $OUT")
    path = report(shop)
    assert read_nsys_report(path).tables["gpu"].height == 4
    assert read_nsys_report(path).tables["gpu"].height == 4
    calls = (shop / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].startswith("export --type sqlite --lazy=true --force-overwrite=true -o ")
    assert [item.suffix for item in (shop / "cache").iterdir()] == [".sqlite"]


def test_a_changed_report_is_exported_again(shop: Path) -> None:
    small().write(shop / "ready.sqlite")
    install_nsys(shop, "2026.1.1.0", f"cp {shop}/ready.sqlite $OUT")
    path = report(shop)
    first = export_report(path, shop / "mine")
    path.write_bytes(HEADER + b"more")
    second = export_report(path, shop / "mine")
    assert first != second
    assert first.parent == shop / "mine"


def test_without_nsys_the_error_says_what_to_type(shop: Path) -> None:
    with pytest.raises(WarplineError) as caught:
        read_nsys_report(report(shop))
    assert caught.value.code == "nsys-missing"
    assert "nsys 2025.5.2.266 or newer" in caught.value.hint
    assert "nsys export --type sqlite -o run.sqlite run.nsys-rep" in caught.value.hint


def test_an_older_nsys_is_not_even_tried(shop: Path) -> None:
    install_nsys(shop, "2024.6.1.90-246135240584v0", "exit 1")
    with pytest.raises(WarplineError) as caught:
        read_nsys_report(report(shop))
    assert caught.value.code == "nsys-version-wall"
    assert "written by nsys 2025.5.2.266" in caught.value.message
    assert "2024.6.1.90" in caught.value.message
    assert "install nsys 2025.5.2.266 or newer" in caught.value.hint
    assert not (shop / "calls").exists()


@pytest.mark.parametrize("version", ["2025.5.2.1-1v0", "2025.6.1", "2026.1.1.5"])
def test_the_same_release_or_a_newer_one_will_do(version: str, shop: Path) -> None:
    small().write(shop / "ready.sqlite")
    install_nsys(shop, version, f"cp {shop}/ready.sqlite $OUT")
    assert read_nsys_report(report(shop)).tables["gpu"].height == 4


@pytest.mark.parametrize("number", [b"1\n", b"36398880.\n"])
def test_headers_without_a_version_leave_it_to_nsys(number: bytes, shop: Path) -> None:
    path = report(shop, b"NVIDIA Tegra Profiler Report " + number + bytes(100), "old.qdrep")
    assert report_version(path) is None
    said = "Report was created in Nsight Systems version (2026.1), newer than this"
    install_nsys(shop, "2024.1.1.0", f"echo '{said}' >&2; exit 1")
    with pytest.raises(WarplineError) as caught:
        read_nsys_report(path)
    assert caught.value.code == "nsys-version-wall"
    assert "2024.1.1.0" in caught.value.message


def test_the_version_is_read_from_the_header(shop: Path) -> None:
    assert str(report_version(report(shop))) == "2025.5.2.266"


def test_warpline_nsys_overrides_the_path(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small().write(shop / "ready.sqlite")
    nsys = install_nsys(shop, "2026.1.1.0", f"cp {shop}/ready.sqlite $OUT")
    elsewhere = nsys.rename(shop / "my-nsys")
    monkeypatch.setenv("WARPLINE_NSYS", str(elsewhere))
    assert read_nsys_report(report(shop)).tables["gpu"].height == 4
    monkeypatch.setenv("WARPLINE_NSYS", str(shop / "absent"))
    with pytest.raises(WarplineError, match="WARPLINE_NSYS"):
        read_nsys_report(report(shop, HEADER + b"x"))


def test_a_failed_export_leaves_nothing_in_the_cache(shop: Path) -> None:
    install_nsys(shop, "2026.1.1.0", "echo half > $OUT; echo 'Error: report is corrupted at /home/ada/x' >&2; exit 3")
    with pytest.raises(WarplineError) as caught:
        read_nsys_report(report(shop))
    assert caught.value.code == "nsys-export-failed"
    assert "report is corrupted at …/x" in caught.value.message
    assert list((shop / "cache").iterdir()) == []


def test_success_without_a_file_is_a_failure(shop: Path) -> None:
    install_nsys(shop, "2026.1.1.0", "exit 0")
    with pytest.raises(WarplineError, match="nsys-export-failed"):
        read_nsys_report(report(shop))


def test_a_raw_stream_needs_its_own_importer(shop: Path) -> None:
    path = report(shop, b"\x00\x01stream" + bytes(300), "run.qdstrm")
    with pytest.raises(WarplineError, match="is a raw stream of Nsight Systems"):
        read_nsys_report(path)
    install_nsys(shop, "2026.1.1.0", "echo 'Importer error: not found' >&2; exit 1")
    with pytest.raises(WarplineError) as caught:
        read_nsys_report(path)
    assert caught.value.code == "nsys-version-wall"
    assert "QdstrmImporter" in caught.value.hint


def test_an_nsys_that_cannot_run_is_survived(shop: Path) -> None:
    nsys = shop / "tools" / "nsys"
    nsys.write_bytes(b"\x7fELFnot really")
    nsys.chmod(0o755)
    with pytest.raises(WarplineError, match="nsys"):
        read_nsys_report(report(shop))


def test_a_cache_that_cannot_be_written_does_not_stop_the_export(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small().write(shop / "ready.sqlite")
    install_nsys(shop, "2026.1.1.0", f"cp {shop}/ready.sqlite $OUT")
    (shop / "file").write_text("in the way")
    monkeypatch.setenv("WARPLINE_CACHE", str(shop / "file" / "cache"))
    assert read_nsys_report(report(shop)).tables["gpu"].height == 4


def test_exports_count_and_one_in_use_is_not_removed(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small().write(shop / "ready.sqlite")
    install_nsys(shop, "2026.1.1.0", f"cp {shop}/ready.sqlite $OUT")
    unused = shop / "cache" / "old-0123456789abcdef.sqlite"
    unused.parent.mkdir()
    unused.write_bytes(bytes(1000))
    other = shop / "cache" / "mine.sqlite"
    other.write_bytes(bytes(1000))
    used = export_report(report(shop))
    monkeypatch.setenv("WARPLINE_CACHE_BYTES", "10")
    make_room()
    assert not unused.exists()
    assert used.exists()
    assert used.stat().st_mode & 0o777 == 0o600
    assert other.exists()


def test_a_link_in_place_of_an_export_is_replaced(shop: Path) -> None:
    small().write(shop / "ready.sqlite")
    install_nsys(shop, "2026.1.1.0", f"cp {shop}/ready.sqlite $OUT")
    path = report(shop)
    export = export_report(path)
    export.unlink()
    export.symlink_to(shop / "elsewhere")
    (shop / "elsewhere").write_bytes(b"not an export")
    assert read_nsys_report(path).tables["gpu"].height == 4
    assert not export.is_symlink()
    assert (shop / "elsewhere").read_bytes() == b"not an export"


def test_an_absent_report(shop: Path) -> None:
    with pytest.raises(UnreadableFile):
        read_nsys_report(shop / "nothing.nsys-rep")
