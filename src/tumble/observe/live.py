"""HDF5 files that any program can open at every moment of their writing, and after the writer was killed.

HDF5's mode for one writer and many readers (SWMR) writes in such an order that the file makes sense after each system
call. What stands in the way is the superblock, the first 48 bytes: it says that somebody writes, which makes other
programs refuse the file, and where the file ends. HDF5 writes it when a file is opened, switched to SWMR and closed,
and not between if datasets are flushed one by one. So a file is opened under a temporary name, gets a superblock of
ours, and only then its own name; before it grows we write the superblock, in one call; and it is never closed: HDF5's
descriptor is turned away from it, so that what HDF5 writes in closing (or cannot write, on a full disk) goes nowhere.

Metadata lie within pages of 4096 bytes (`PAGED`), so that even a kill in the middle of a system call leaves the old or
the new.
"""

from __future__ import annotations

import os
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import FileError, message
from ..files import nowhere, sync

__all__ = ["FORMAT_BOUNDS", "PAGED", "LiveFile"]

FORMAT_BOUNDS = ("v110", "v110")
"""Readable by HDF5 1.10 and newer, whatever library wrote it."""
PAGED = {"fs_strategy": "page", "fs_page_size": 4096}
SIZE, FLAGS, END, CHECKSUM = 48, 11, slice(28, 36), slice(44, 48)
"""Of a superblock of version 3."""
SPARE = 2**20
"""Bytes of room beyond what the next frame needs."""
HEAD = 2**16
"""What HDF5 may read again in closing: the superblock and its extension."""


class LiveFile:
    """An HDF5 file, made and closed under a temporary name, that is being written."""

    def __init__(self, temporary: Path) -> None:
        import h5py

        self._temporary: Path | None = temporary
        self._size = 0
        """Length that the file was given"""
        self._mark, self._mark_at = b"", 0
        # The log driver (which logs nothing) writes like the usual one, but HDF5 shares a file only between handles of
        # one driver: a program that reads its own run is kept apart from the writer, whose superblock it would write.
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        access.set_fapl_log(os.devnull.encode(), 0, 0)
        access.set_cache(0, 0, 0, 1.0)  # rows go to the disk at once: nothing to keep, for each of many datasets
        access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
        self.h5: Any = h5py.File(h5py.h5f.open(os.fsencode(temporary), h5py.h5f.ACC_RDWR, fapl=access))
        self._handle = int(self.h5.id.get_vfd_handle())
        head = os.pread(self._handle, SIZE, 0)
        if head[8] != 3 or struct.unpack("<I", head[CHECKSUM])[0] != lookup3(head[:44]):
            remedy = "Use HDF5 1.10 or newer, or say which version this is in an issue."
            raise FileError(
                message(str(temporary), "must have a superblock of version 3", f"version {head[8]}", remedy)
            )
        self._head = head

    def start(self, mark: str = "") -> None:
        """From here on no dataset can be made, and every write leaves a file that can be read.

        mark: a text in the file that no other file has."""
        try:
            self.h5.swmr_mode = True
            self._set_end(self._used)
            self._mark_at = os.pread(self._handle, HEAD, 0).find(mark.encode())
            self._mark = mark.encode() if self._mark_at > 0 else b""
        except BaseException:
            self.leave()
            raise

    @property
    def _used(self) -> int:
        """Bytes up to which HDF5 has placed something, or may have."""
        return int(self.h5.id.get_filesize())

    def make_room(self, size: int) -> None:
        """To be called before so many bytes are written: the file gets their room on the disk and ends behind it. A
        disk that is full is met here and not by HDF5, and no index ever points beyond the end in the superblock."""
        needed = self._used + size
        if needed > self._end:
            _reserve(self._handle, self._end, needed + SPARE - self._end)
            self._set_end(needed + SPARE)
            self._size = self._end

    def _set_end(self, end: int) -> None:
        """Write a superblock that says where the file ends, and that nobody writes it."""
        head = bytearray(os.pread(self._handle, SIZE, 0))
        head[FLAGS] = 0
        head[END] = struct.pack("<Q", end)
        head[CHECKSUM] = struct.pack("<I", lookup3(bytes(head[:44])))
        os.pwrite(self._handle, head, 0)
        self._end, self._head = end, bytes(head)

    @property
    def is_intact(self) -> bool:
        """Whether the file is as long as it was made, with our superblock and mark: nobody else cut it or wrote into
        it."""
        if os.fstat(self._handle).st_size < self._size or os.pread(self._handle, SIZE, 0) != self._head:
            return False
        return os.pread(self._handle, len(self._mark), self._mark_at) == self._mark

    def sync(self) -> None:
        """Wait until all is on the disk."""
        os.fsync(self._handle)

    @property
    def published(self) -> bool:
        """Whether the file has its own name."""
        return self._temporary is None

    def publish(self, path: Path) -> None:
        """Give the file its own name, in place of whatever had it."""
        self.sync()
        if self._temporary is not None:
            os.replace(self._temporary, path)
        self._temporary = None
        sync(path.parent)

    def is_at(self, path: Path) -> bool:
        """Whether a name stands for this file."""
        try:
            return os.path.samestat(os.fstat(self._handle), os.stat(path))
        except OSError:
            return False

    def leave(self) -> None:
        """Let go of the file as it stands; a file without a name is removed. Again does nothing."""
        if not self.h5:
            return
        if self.is_intact:
            self.trim()
        with tempfile.TemporaryFile() if not hasattr(os, "memfd_create") else nowhere() as other:
            other.write(os.pread(self._handle, HEAD, 0))
            other.flush()
            os.dup2(other.fileno(), self._handle, inheritable=False)
        with suppress(RuntimeError, OSError):  # HDF5 is upset where it could not write, and holds nothing of ours
            self.h5.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def trim(self) -> None:
        """Give the room at the end back, until some is made again."""
        end = min(self._used, os.fstat(self._handle).st_size)
        with suppress(OSError):
            self._set_end(end)
            self._size = end
            os.ftruncate(self._handle, end)


def _reserve(handle: int, start: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, start, size)
    else:
        os.ftruncate(handle, start + size)


def lookup3(data: bytes) -> int:
    """HDF5's checksum, Bob Jenkins' lookup3 (public domain)."""
    mask = 0xFFFFFFFF

    def turned(x: int, k: int) -> int:
        return ((x << k) | (x >> (32 - k))) & mask

    left = len(data)
    a = b = c = (0xDEADBEEF + left) & mask
    words = struct.unpack(f"<{-(-left // 12) * 3}I", data + bytes(-left % 12))
    for i in range(0, len(words), 3):
        a, b, c = (a + words[i]) & mask, (b + words[i + 1]) & mask, (c + words[i + 2]) & mask
        if left - 4 * i <= 12:
            break
        for k in (4, 6, 8, 16, 19, 4):
            a = ((a - c) & mask) ^ turned(c, k)
            c = (c + b) & mask
            a, b, c = b, c, a
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - turned(b, k)) & mask
        a, b, c = b, c, a
    return b
