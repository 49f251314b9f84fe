"""Files that are never half written, never written by two, and never the wrong ones."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import FileError, message

try:
    import fcntl
except ImportError:  # where there is none, nothing is locked
    fcntl = None

__all__ = ["Lock", "check_place", "check_readable", "is_file", "made_in_memory", "replacing", "sync", "unwritable"]

NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
"""What file systems answer that know no locks."""


def check_place(path: Path) -> None:
    """Refuse what cannot be a file of ours: a folder, a device, a name that is too long, a folder that is not there."""
    parent, name = path.parent, os.fsencode(path.name)
    try:
        longest = os.pathconf(parent, "PC_NAME_MAX") - len("..lock") if parent.is_dir() else len(name)
        if len(name) > longest:
            rule = f"must have a name of at most {longest} bytes, with room for a lock beside it"
            raise FileError(message(str(path), rule, f"{len(name)} bytes", "Choose a shorter name."))
        with contextlib.suppress(FileNotFoundError):
            path.stat()  # Path.is_file() and its sisters say no word about links in a circle
        if path.is_dir() or not parent.is_dir():
            got = "a folder" if path.is_dir() else f"no folder {parent}"
            remedy = "Create the folder or choose another name."
            raise FileError(message(str(path), "must be a file name in a folder that exists", got, remedy))
        if path.exists() and not path.is_file():
            remedy = "Choose another name: devices, pipes and sockets are left alone."
            raise FileError(message(str(path), "must be a regular file", "another kind of file", remedy))
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "")  # it could be replaced all the same, but somebody protected it
    except FileError:
        raise
    except (OSError, ValueError) as cause:  # ValueError: a name with a zero byte
        raise unwritable(path, cause) from cause


def is_file(path: Path) -> bool:
    """Whether there is a regular file of this name; no for names that no system takes."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def check_readable(path: Path) -> None:
    """Refuse a file that may not be read, before HDF5 calls it damaged."""
    if not os.access(path, os.R_OK):
        raise FileError(message(str(path), "must be readable", os.strerror(errno.EACCES), "Check its permissions."))


@contextlib.contextmanager
def made_in_memory(path: Path, **options: Any) -> Iterator[Any]:
    """A new HDF5 file that is written to the disk once it is complete: HDF5 never meets a disk that is full, which it
    takes badly."""
    import h5py

    with h5py.File(path, "w", driver="core", backing_store=False, block_size=2**20, **options) as file:
        yield file
        file.flush()
        image = file.id.get_file_image()
    path.write_bytes(image)


def with_number(cause: BaseException) -> BaseException:
    """HDF5 tells the system's error number in its text only."""
    _, found, rest = str(cause).partition("errno = ")
    number = rest.split(",")[0].strip()
    return OSError(int(number), os.strerror(int(number))) if found and number.isdigit() else cause


class PatientFile(io.FileIO):
    """A new file that takes everything, also where the disk is full: HDF5 does not survive an error in closing. `check`
    raises what went wrong."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """All of it."""
        left = memoryview(data).cast("B")
        try:
            while left and self.error is None:
                left = left[super().write(left) or 0 :]
        except OSError as cause:
            self.error = cause
        return memoryview(data).nbytes

    def truncate(self, size: int | None = None) -> int:
        """As for any file, or not at all."""
        try:
            return super().truncate(size)
        except OSError as cause:
            self.error = self.error or cause
            return size or 0

    def check(self) -> None:
        """Raise the first error that there was."""
        if self.error is not None:
            raise self.error


def nowhere() -> Any:
    """A file in memory, for what is written in vain."""
    return os.fdopen(os.memfd_create("tumble"), "w+b")


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place, safely on disk, once the block has succeeded."""
    path = Path(path)
    check_place(path)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        yield temporary
        sync(temporary)
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
        sync(path.parent)
    except OSError as cause:
        raise unwritable(path, cause) from cause
    finally:
        with contextlib.suppress(OSError):  # what went wrong was said already
            temporary.unlink(missing_ok=True)


def unwritable(path: Path, cause: BaseException) -> FileError:
    """The one sentence for a disk that is full, a folder that is read-only and their like."""
    number = getattr(cause, "errno", None)
    reason = os.strerror(number) if number else " ".join(str(cause).split())
    return FileError(message(str(path), "must be writable", reason, "Check the permissions and the free space."))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """The right to write a file, held by one process at a time through a file `.NAME.lock` beside it.

    The system gives it back when a process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._target, self._path, self._handle = path, path.with_name(f".{path.name}.lock"), -1
        self.acquire()

    def acquire(self) -> None:
        """Take the right, or refuse."""
        check_place(self._target)
        try:
            while self._handle < 0:
                self._handle = self._try(self._target)
        except OSError as cause:
            raise unwritable(self._target, cause) from cause

    def _try(self, path: Path) -> int:
        """A descriptor of the locked file; -1 where its last owner removed it meanwhile."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, self._path):
                with contextlib.suppress(OSError):  # a full disk is met where it matters, and the lock removed then
                    os.ftruncate(handle, 0)
                    os.write(handle, str(os.getpid()).encode())
                return handle
        except BlockingIOError as cause:
            owner = os.pread(handle, 20, 0).decode(errors="replace") or "another"
            os.close(handle)
            remedy = "Wait until it has ended, or choose another name."
            raise FileError(
                message(str(path), "must be written by one run at a time", f"process {owner} at work", remedy)
            ) from cause
        except BaseException as cause:
            if isinstance(cause, OSError) and cause.errno in NO_LOCKS:
                return handle
            os.close(handle)
            raise
        os.close(handle)
        return -1

    def release(self) -> None:
        """Give the right back; again does nothing."""
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        with contextlib.suppress(OSError):
            if _is_at(handle, self._path):  # somebody may have removed it, and another run have made its own
                self._path.unlink(missing_ok=True)
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether a name still stands for an open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
