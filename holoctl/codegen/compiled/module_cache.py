"""A folder of compiled modules that no other user can write to, and the modules loaded from it.

A loaded module runs in this process with all its rights. So the folder, and every folder above it,
is checked before anything is built or read, and the loaded bytes are those that were built, or read
and hashed: a private copy of them, independent of later changes of the file.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from holoctl.base.errors import HoloctlError

__all__ = ["cache_folder", "keep", "kept", "loaded", "loaded_library", "private_folder"]

_Found = TypeVar("_Found")

LARGEST = 2**28
"""Bytes of a module; no law is nearly as large."""

OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Where compiled modules are kept: ``HOLOCTL_CACHE``, or the user's cache."""
    given = os.environ.get("HOLOCTL_CACHE")
    try:
        if given:
            return Path(given).expanduser()
        if sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:  # there is no such user, or no home
        raise _refused(f"there is no folder for compiled laws: {error}") from None
    return base / "holoctl"


def private_folder(path: Path) -> Path:
    """The folder without links, made for this user alone if it does not exist.

    Raises
    ------
    HoloctlError
        If it cannot be made, or if others could change what is in it: by writing to it, or by
        putting another folder in its place.
    """
    try:
        folder = Path(os.path.realpath(path))
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        for place in reversed(missing):
            place.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(f"{folder} is no folder")
        places = [(place, place.stat()) for place in (folder, *folder.parents)]
    except OSError as error:
        raise _refused(f"the compiled law cannot be kept in {path}: {error}") from error
    if not hasattr(os, "geteuid"):
        return folder
    ours = {0, os.geteuid()}
    _, found = places[0]
    if found.st_uid not in ours or found.st_mode & OTHERS:
        raise _refused(
            f"{folder} belongs to another user, or others may write to it, so no code is built or "
            "loaded there"
        )
    owners = ours | {places[-1][1].st_uid}  # whoever owns / owns all this, also in a container
    for place, found in places[1:]:
        shared = found.st_mode & stat.S_IWOTH or (
            found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid)
        )
        # in a sticky folder, such as /tmp, others cannot rename what is ours
        if found.st_uid not in owners or (shared and not found.st_mode & stat.S_ISVTX):
            raise _refused(
                f"{place} belongs to another user, or others may write to it, who could put "
                f"another folder in the place of {folder}, so no code is built or loaded there"
            )
    return folder


def kept(path: Path) -> bytes | None:
    """A module that `keep` put into a private folder; None where none is, or it was harmed.

    Raises
    ------
    HoloctlError
        For what is no regular file, is not this user's alone, or cannot be read.
    """
    try:
        data, mark = _read(path), _read(_mark(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(f"the compiled law cannot be read from {path.parent}: {error}") from error
    return data if hashlib.sha256(data).hexdigest().encode() == mark.strip() else None


def keep(path: Path, data: bytes) -> None:
    """Put a module, and its hash beside it, into a private folder, each in one step.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for place, content in (
            (path, data),
            (_mark(path), hashlib.sha256(data).hexdigest().encode()),
        ):
            new = Path(folder) / place.name
            new.write_bytes(content)
            new.chmod(0o644)
            new.replace(place)


@cache
def loaded(module: str, data: bytes, folder: Path) -> Any:
    """The module of these bytes, by way of a copy in a new folder of this user's alone.

    Raises
    ------
    HoloctlError
        If it cannot be loaded.
    """

    def load(path: Path) -> Any:
        loader = importlib.machinery.ExtensionFileLoader(module, str(path))
        spec = importlib.util.spec_from_file_location(module, path, loader=loader)
        if spec is None:
            raise ImportError(f"{path} is no extension module")
        found = importlib.util.module_from_spec(spec)
        loader.exec_module(found)
        return found

    return _loaded(module, data, folder, importlib.machinery.EXTENSION_SUFFIXES[0], load)


@cache
def loaded_library(name: str, data: bytes, folder: Path) -> ctypes.CDLL:
    """The shared library of these bytes, likewise.

    Raises
    ------
    HoloctlError
        If it cannot be loaded.
    """
    return _loaded(name, data, folder, ".so", lambda path: ctypes.CDLL(str(path)))


def _loaded(
    name: str, data: bytes, folder: Path, suffix: str, load: Callable[[Path], _Found]
) -> _Found:
    try:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as private:
            path = Path(private) / f"{name}{suffix}"
            path.write_bytes(data)
            path.chmod(0o500)
            return load(path)
    except (OSError, ImportError) as error:
        raise _refused(f"the compiled law cannot be loaded from {folder}: {error}") from error


def _read(path: Path) -> bytes:
    """The bytes of a regular file of this user's: no link is followed, no pipe waited for."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
        flags |= getattr(os, name, 0)
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise OSError(f"{path.name} is no regular file of at most {LARGEST} bytes")
        if hasattr(os, "geteuid") and (
            found.st_uid not in {0, os.geteuid()} or found.st_mode & OTHERS
        ):
            raise OSError(f"{path.name} belongs to another user, or others may write to it")
        return file.read(LARGEST)


def _mark(path: Path) -> Path:
    """The file with the hash of a module."""
    return path.with_name(path.name + ".sha256")


def _own_group(gid: int) -> bool:
    """Whether a group is this user's alone, as systems make one for each user."""
    with contextlib.suppress(ImportError, KeyError):
        import grp
        import pwd

        group, me = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
        alone = all(member == me.pw_name for member in group.gr_mem)
        return alone and (group.gr_gid, group.gr_name) == (me.pw_gid, me.pw_name)
    return False


def _refused(reason: str) -> HoloctlError:
    return HoloctlError(f"{reason}; name another folder in the environment variable HOLOCTL_CACHE")
