"""URLs of packs: which are local files, and what of one may be shown and stored."""

from __future__ import annotations

import re
from urllib.parse import unquote

#: Between the links of a chained URL: ``zip://notes.iac::s3://bucket/packs.zip``.
CHAIN = "::"

# Not where it is in a password.
_LINKS = re.compile(rf"{CHAIN}(?![^/?#]*@)")

#: A host as it should be: a name or an address in brackets, and perhaps a port.
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")


def is_url(path: str) -> bool:
    """Whether a path is one for a file system other than the machine's own."""
    return "://" in path and not path.startswith("file://")


def local_path(path: str) -> str:
    """The path itself, or the one that a ``file://`` URL stands for."""
    if not path.startswith("file://"):
        return path
    return unquote(path.removeprefix("file://").removeprefix("localhost"))


def public_url(url: str) -> str:
    """The URL without user, password, query and fragment: what references and errors carry."""
    return CHAIN.join(_without_secrets(link) for link in _LINKS.split(url))


def _without_secrets(link: str) -> str:
    scheme, separator, rest = link.partition("://")
    if not separator:
        return link
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    if not _HOST.fullmatch(host) and "@" in rest:
        # "bob:hun/ter@host": a password that was not escaped.
        rest = rest.rpartition("@")[2]
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
