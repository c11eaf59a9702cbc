"""Files and folders that only their owner may read or change, and that appear whole: the parts of the cache.

A file is opened only if it is a regular file of this user: a link, FIFO, socket, device or another user's file is an
error, and opening it never waits. What is being written has a temporary name and a lock that ends with its process; it
gets its own name by one rename. What is removed loses its name by one rename first.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

FOLDER_MODE = 0o700
FILE_MODE = 0o600
WRITING, REMOVING = ".writing-", ".removing-"
"""Prefixes of temporary names."""
_SAFELY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OCCUPIED = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
_ATTEMPTS = 10


class NotPrivate(OSError):
    """Something else is there, or somebody else's file."""


def folder_until_exit() -> Path:
    """A new folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="warpline-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def own_folder(path: Path) -> Path:
    """Create the folder and its missing parents for this user alone; one that exists must belong to this user and be no
    link, which somebody else may have put there. Permissions of an existing one are the user's own choice."""
    if not path.is_dir():
        if not path.parent.is_dir():
            own_folder(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir(FOLDER_MODE)
    if not is_own_folder(path):
        raise NotPrivate(errno.EPERM, "not a folder of this user", str(path))
    return path


def is_own_folder(path: Path) -> bool:
    """Whether a folder of this user is there, and no link."""
    try:
        state = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()


def private_folder(path: Path) -> Path:
    """The same for a folder that nobody else may read or change."""
    if stat.S_IMODE(own_folder(path).stat().st_mode) & ~FOLDER_MODE:
        path.chmod(FOLDER_MODE)
    return path


@contextlib.contextmanager
def opened_folder(path: str | Path, folder: int | None = None) -> Iterator[int]:
    """A descriptor of a folder of this user, by its path, or by its name in an open folder; a link is an error.

    The files in it stay the same even if its name is given to another.
    """
    descriptor = os.open(path, _SAFELY | os.O_DIRECTORY, dir_fd=folder)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise NotPrivate(errno.EPERM, "another user's folder", str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(path: str | Path, folder: int | None = None) -> BinaryIO:
    """Open a regular file of this user for reading, by its path, or by its name in an open folder."""
    descriptor = os.open(path, _SAFELY, dir_fd=folder)
    state = os.fstat(descriptor)
    if stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid():
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotPrivate(errno.EPERM, "not a regular file of this user", str(path))


def create_file(path: Path) -> BinaryIO:
    """Create a file for writing; nothing may be there yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, FILE_MODE), "wb")


@contextlib.contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A locked folder to write in, removed at the end unless it was renamed."""
    path = Path(tempfile.mkdtemp(prefix=WRITING, dir=parent))
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: the age tells
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        remove(path)
        os.close(descriptor)


def publish(temporary: Path, target: Path) -> None:
    """Give the temporary its own name, in place of whatever has that name."""
    for _ in range(_ATTEMPTS):
        try:
            temporary.replace(target)
        except OSError as error:
            if error.errno not in _OCCUPIED:
                raise
            discard(target)
        else:
            return
    raise NotPrivate(errno.EBUSY, "the name is taken again and again", str(target))


def discard(path: Path) -> None:
    """Take the name from whatever is there, and remove it. Who has opened it can still read it."""
    doomed = path.with_name(f"{REMOVING}{os.getpid()}-{os.urandom(8).hex()}")
    with contextlib.suppress(OSError):
        path.rename(doomed)
        remove(doomed)


def remove(path: Path) -> None:
    """Remove a file, link or folder if it exists."""
    try:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return
    if is_folder:
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def discard_abandoned(path: Path) -> bool:
    """Discard a file or folder that no process has locked, and return whether that was so.

    Where locks do not work nobody can tell, and it stays. Nobody locks links, FIFOs, sockets and devices.
    """
    try:
        descriptor = os.open(path, _SAFELY)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENXIO}:
            return False
        discard(path)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        discard(path)  # under our lock: who waits for it sees that the name is gone
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
