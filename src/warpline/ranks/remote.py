"""Profiles in object stores and on other machines, by any URL that fsspec knows: `s3://bucket/profile_traces`."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fsspec
from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.sources.cache_folder import READER_VERSION
from warpline.sources.detect import HEAD_BYTES

CHECKSUMS = ("ETag", "etag", "md5Hash")
"""What S3, web servers and Azure, and Google's store call a checksum."""


class RemoteFile(Struct, frozen=True):
    """One file below a URL."""

    url: str
    place: Path
    """Where it lies below the URL."""
    head: bytes
    """Its first bytes, which name the rank."""


def listed(url: str) -> list[RemoteFile]:
    """The files below a URL."""
    try:
        system, root = fsspec.core.url_to_fs(url)
        names = sorted(system.find(root))
        return [
            RemoteFile(
                system.unstrip_protocol(name),
                Path(name.removeprefix(root).lstrip("/")),
                system.cat_file(name, start=0, end=HEAD_BYTES),
            )
            for name in names
        ]
    except (OSError, ValueError, ImportError) as error:
        raise UnreadableFile("unreadable-url", f"{url} cannot be listed: {error}", "check the URL") from error


def key(url: str) -> str:
    """What names the content of a file: its checksum where the store has one, else all that the store says of it. A
    listing and a look at one file give other fields, and the ukey of some stores is the URL alone."""
    system, name = fsspec.core.url_to_fs(url)
    about = system.info(name)
    checksums = {field: about[field] for field in CHECKSUMS if about.get(field)}
    state = f"{READER_VERSION} {url} {sorted((checksums or about).items())}"
    return hashlib.blake2b(state.encode(), digest_size=16).hexdigest()


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """A local copy of the file, as long as it is needed."""
    system, name = fsspec.core.url_to_fs(url)
    with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        local = Path(folder) / Path(name).name
        system.get_file(name, str(local))
        yield local
