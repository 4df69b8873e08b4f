"""Packs in DuckDB: connections with the extension that this package brings along.

The extension is not signed by DuckDB's makers. DuckDB loads such extensions only into an instance
that was started with ``allow_unsigned_extensions``, which :func:`connect` does; the instance then
accepts any other unsigned extension as well.
"""

from __future__ import annotations

import importlib.resources
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["connect", "load"]

_EXTENSION = "iac.duckdb_extension"

# Settings that DuckDB takes only once it runs, and those that would keep it from loading the
# extension, in the order to set them.
_SET_AFTER_LOAD = (
    "allowed_directories",
    "allowed_paths",
    "disabled_filesystems",
    "enable_external_access",
    "lock_configuration",
)


def connect(database: str | os.PathLike[str] = ":memory:", **config: Any) -> DuckDBPyConnection:
    """A DuckDB connection in which packs can be queried: ``FROM 'x.iac'``, ``iac_scan``.

    It has the temporary macros of sql/macros.sql as well.

    ``config`` is passed on to DuckDB: ``connect("cohort.db", threads=4, access_mode="read_only")``.
    The new instance allows unsigned extensions. Nothing is written to the database.
    """
    duckdb = _duckdb()
    late = [(name, config.pop(name)) for name in _SET_AFTER_LOAD if name in config]
    con = duckdb.connect(database, config={**config, "allow_unsigned_extensions": "true"})
    try:
        load(con)
        for name, value in late:
            con.execute(f"SET {name} = {_literal(value)}")
    except BaseException:
        con.close()
        raise
    return con


def load(con: DuckDBPyConnection) -> None:
    """Loads the extension into the instance of a connection, which gets the macros as well.

    The macros are temporary and so the connection's own: its cursors do not have them.

    Raises duckdb.IOException naming the setting when the instance refuses unsigned extensions.
    """
    duckdb = _duckdb()
    package = importlib.resources.files("iac_query")
    try:
        con.execute(f"LOAD {_literal(str(package / _EXTENSION))}")
    except duckdb.IOException as error:
        if "allow_unsigned_extensions" not in str(error):
            raise
        raise duckdb.IOException(
            "this DuckDB instance refuses unsigned extensions, and that of iac_query is unsigned: "
            'connect with duckdb.connect(..., config={"allow_unsigned_extensions": "true"}), '
            "or with iac_query.connect(...), which does so"
        ) from error
    con.execute((package / "sql" / "macros.sql").read_text(encoding="utf-8"))


def _duckdb() -> ModuleType:
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(
            "querying packs with SQL needs DuckDB: pip install iac-query[duckdb]"
        ) from error
    return duckdb


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return "'" + str(value).replace("'", "''") + "'"
