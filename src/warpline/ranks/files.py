"""Which files of a folder are the ranks of one job: by what their headers say first, by their names second."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import UnreadableFile, UsageError
from warpline.ranks.merged_file import is_merged, ranks_of_places
from warpline.sources.detect import HEAD_BYTES
from warpline.sources.kineto.header import read_header
from warpline.sources.unpack import Packing, packing_of, unpacked_head
from warpline.trace.open import is_profile, profiles_in

_RANK = re.compile(r"(?i)(?<![a-z])(?:rank|worker|gpu|process|node_?rank)[-_.]?(\d{1,6})(?!\d)")
_PARALLEL = re.compile(r"(?i)(?<![a-z])(PP|DP|EP|TP)[-_](\d{1,5})(?!\d)")
"""Names of serving engines say the place in each dimension: `…-TP-0-DP-1.trace.json.gz`."""

MAX_RANKS = 1 << 20
"""No job has more; a larger number is damage."""


class RankFile(Struct, frozen=True):
    """One file of a job."""

    path: Path
    rank: int | None = None
    world_size: int | None = None
    url: str = ""
    """Where it lies, if it is not on this machine; `path` is then its place below the folder's URL."""
    merged: bool = False
    """Whether it holds several ranks."""

    @property
    def place(self) -> str:
        """What to read: the URL or the path."""
        return self.url or str(self.path)


class JobFiles(Struct, frozen=True):
    """The files of one job, or of one of its recordings."""

    name: str
    """What `--job` calls it: the folder of its files, and the number of the recording if there are several."""
    files: tuple[RankFile, ...]
    merged: tuple[Path, ...] = ()
    """Files of the folder that hold several ranks merged, which are left out."""


def jobs_of_folder(folder: Path) -> list[JobFiles]:
    """The jobs of a folder, the newest last; empty if its files are not ranks of a job."""
    return jobs_among(folder, ranked_files(folder))


def ranked_files(folder: Path) -> list[RankFile]:
    """Every profile of a folder, with its rank where its header or its name says one."""
    return _ranked([_looked_at(path, _head(path)) for path in profiles_in(folder)])


def jobs_of_url(url: str) -> list[JobFiles]:
    """The jobs below a URL, likewise."""
    try:
        from warpline.ranks.remote import listed  # noqa: PLC0415 - fsspec is an optional package
    except ModuleNotFoundError as error:
        raise UsageError("no-fsspec", "fsspec is not installed", "pip install fsspec") from error
    root = Path(url.rstrip("/").rpartition("/")[2])
    found = [(file, root / file.place) for file in listed(url) if is_profile(file.place.name)]
    return jobs_among(root, _ranked([replace(_looked_at(path, file.head), url=file.url) for file, path in found]))


def jobs_among(folder: Path, ranked: list[RankFile]) -> list[JobFiles]:
    """The jobs of these files of a folder, the newest last."""
    files = [file for file in ranked if not file.merged]
    merged = tuple(file.path for file in ranked if file.merged)
    if sum(file.rank is not None for file in files) < 2:
        return []
    by_place = defaultdict(list)
    for file in files:
        by_place[file.path.parent].append(file)
    whole = [file.rank for file in files if file.rank is not None]
    places = [files] if len(set(whole)) == len(whole) else list(by_place.values())
    jobs = chain.from_iterable(_recordings(folder, place) for place in places)
    found = [replace(job, merged=merged) for job in jobs if sum(file.rank is not None for file in job.files) > 1]
    return sorted(found, key=lambda job: natural_order(job.name))


def job_of_folder(folder: str | Path, name: str | None = None) -> tuple[JobFiles, list[JobFiles]]:
    """The job of that name in a folder or below a URL, else the newest, and the others."""
    jobs = jobs_of_url(str(folder)) if "://" in str(folder) else jobs_of_folder(Path(folder))
    if not jobs:
        raise UnreadableFile("not-a-job", f"{folder} does not hold several ranks of one job", "name one file")
    chosen = jobs[-1] if name is None else next((job for job in jobs if job.name == name), None)
    if chosen is None:
        listed = ", ".join(job.name for job in jobs)
        raise UsageError("no-such-job", f"{folder} has no job {name!r}", f"one of: {listed}")
    return chosen, [job for job in jobs if job is not chosen]


def _recordings(folder: Path, files: Sequence[RankFile]) -> list[JobFiles]:
    """The files of one place as recordings: the n-th file of each rank belongs to the n-th."""
    place = _place(folder, files)
    seen: dict[int, int] = defaultdict(int)
    found: dict[int, list[RankFile]] = defaultdict(list)
    for file in sorted(files, key=lambda file: natural_order(file.path.name)):
        number = 0 if file.rank is None else seen[file.rank]
        if file.rank is not None:
            seen[file.rank] += 1
        found[number].append(file)
    if len(found) == 1:
        return [JobFiles(place, tuple(found[0]))]
    if len(found[1]) * 2 < len(found[0]):  # a few ranks twice are copies, not another recording
        return [JobFiles(place, tuple(chain.from_iterable(found.values())))]
    return [JobFiles(f"{place}#{number + 1}", tuple(some)) for number, some in sorted(found.items())]


def _place(folder: Path, files: Sequence[RankFile]) -> str:
    parents = {file.path.parent for file in files}
    inner = parents.pop() if len(parents) == 1 else folder
    return str(inner.relative_to(folder)) if inner != folder else folder.resolve().name


def _looked_at(path: Path, head: bytes) -> RankFile:
    """The file with what its header says."""
    world = _distributed_info(head)
    found = [world.get(key) for key in ("rank", "world_size")]
    rank, size = (value if type(value) is int and 0 <= value <= MAX_RANKS else None for value in found)
    return RankFile(path, rank, size, merged=is_merged(head))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _distributed_info(head: bytes) -> dict[str, Any]:
    try:
        packing = packing_of(head)
        if packing is not Packing.PLAIN:
            head, _ = unpacked_head(head, packing, HEAD_BYTES)
        if head.lstrip()[:1] != b"{":
            return {}
        info = read_header(head, complete=True).keys.get("distributedInfo")
    except (ValueError, UnreadableFile):
        return {}
    return info if isinstance(info, dict) else {}


def groups_of_file(path: Path) -> int:
    """How many process groups its header lists; 0 if it lists none."""
    groups = _distributed_info(_head(path)).get("pg_config")
    return len(groups) if isinstance(groups, list) else 0


def _ranked(files: list[RankFile]) -> list[RankFile]:
    """The files with ranks, and those that hold several ranks merged."""
    return [*_numbered([file for file in files if not file.merged]), *(file for file in files if file.merged)]


def _numbered(files: list[RankFile]) -> list[RankFile]:
    """The files with ranks; where no header has one, by name."""
    if any(file.rank is not None for file in files):
        return [file if file.rank is not None else replace(file, rank=_rank_in_name(file.path)) for file in files]
    places = [{name.lower(): int(at) for name, at in _PARALLEL.findall(file.path.name)} for file in files]
    found = []
    for file, place, rank in zip(files, places, ranks_of_places(places), strict=True):
        named = _rank_in_name(file.path)
        found.append(replace(file, rank=rank if named is None and place else named))
    return found


def _rank_in_name(path: Path) -> int | None:
    """The rank that the name of the file says, else the name of its folder."""
    for name in (path.name, path.parent.name):
        found = _RANK.search(name)
        if found:
            return int(found[1])
    return None


def natural_order(text: str) -> tuple[tuple[int, str], ...]:
    """The order of names in which 9 comes before 10."""
    return tuple((int(word), "") if word.isdecimal() else (0, word) for word in re.split(r"(\d{1,18})", text))
