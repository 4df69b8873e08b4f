"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile

from ..._options import PathLike


def require_free(output_path: PathLike, overwrite: bool) -> str:
    """The absolute path, whose folder is made if need be. Raises FileExistsError where there is a
    file and not ``overwrite``, other OSErrors where none can be.
    """
    path = os.path.abspath(os.fsdecode(output_path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path}: is a folder")
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{path}: exists, pass overwrite=True")
    return path


def write_whole(output_path: PathLike, data: bytes, overwrite: bool) -> None:
    """Writes a file by another name first, with the mode that the umask gives."""
    path = require_free(output_path, overwrite)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        if overwrite:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)  # unlike a rename, an error where there is one meanwhile
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
