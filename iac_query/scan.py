"""Scans over packs for query engines that speak Arrow. SQL has ``iac_scan``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ._options import OnError, PathLike
from .decoding.kinds import Kind
from .engines.arrow import record_batches
from .remote import RemoteOptions
from .scanning.plan import BATCH_BYTES, ScanOptions, plan_scan

if TYPE_CHECKING:
    import polars as pl

__all__ = ["scan_arrow", "scan_iac"]


def scan_arrow(
    paths: PathLike | Iterable[PathLike],
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
    as_: Kind | None = None,
    *,
    into: str = "payload",
    layout: bool = False,
    filename: bool | str = False,
    hive_partitioning: bool = False,
    workers: int | None = None,
    verify: bool = True,
    on_error: OnError = "raise",
    batch_bytes: int = BATCH_BYTES,
    storage_options: Mapping[str, Any] | None = None,
    remote: RemoteOptions | None = None,
) -> pa.RecordBatchReader:
    """Records of packs as Arrow record batches, payloads decoded for just the rows of a filter.

    The columns are those of ``iac_scan`` in SQL: of the index tables, of the slide tables, and
    ``record`` (struct of pack, row and stamp), then ``payload``. No payload is read when
    ``columns`` leaves it out. The reader can be read once, by anything that takes Arrow streams:
    ``con.register("notes", reader)`` in any DuckDB connection, ``reader.read_pandas()``.

    * ``paths``: a path, a pattern (``*``, ``?``, ``[...]``, one ``**``), a URL or a list of them.
    * ``columns``: names in the order wanted; None for all.
    * ``filter``: an expression over any columns. Of conditions joined by ``&`` those that need no
      payload come first, so that payloads are decoded for the rows that are left.
    * ``as_``: what payloads come as, as in :func:`iac_query.decode`; None for what the packs'
      headers say. Where they differ, reading payloads is an error.
    * ``into``: the name of the payload column.
    * ``layout``: show the columns ``offset``, ``length`` and ``crc32`` as well, and of whole slides
      where their tiles lie: ``x``, ``y``, ``x_um``, ``y_um``, ``mpp_x``, ``mpp_y``.
    * ``filename``: add a column of that name (True: ``filename``) with the packs' paths as given.
    * ``hive_partitioning``: add a column for each folder called key=value.
    * ``workers``, ``verify``: as in :func:`iac_query.decode`.
    * ``on_error``: ``"raise"``, or ``"null"`` for a NULL payload and the reason in a column
      ``{into}_error``.
    * ``batch_bytes``: about how many bytes of decoded payloads a batch holds.
    * ``storage_options``, ``remote``: for URLs, as of :class:`PackReader`.

    Raises PackNotFoundError and PackError that name the pack, KeyError for unknown columns,
    ValueError for a name that is taken. Types of many packs are joined as in SQL; a column whose
    types do not go together is listed as text, and reading it is a PackError that names both.
    While it is read: StaleReferenceError for a pack that has got other columns, and the errors of
    :func:`iac_query.decode`.
    """
    options = ScanOptions(
        as_=as_,
        into=into,
        layout=layout,
        filename=filename,
        hive_partitioning=hive_partitioning,
        workers=workers,
        verify=verify,
        on_error=on_error,
        batch_bytes=batch_bytes,
        storage_options=storage_options,
        remote=remote,
    )
    return record_batches(plan_scan(paths, options), columns, filter)


def scan_iac(
    paths: PathLike | Iterable[PathLike],
    as_: Kind | None = None,
    *,
    into: str = "payload",
    layout: bool = False,
    filename: bool | str = False,
    hive_partitioning: bool = False,
    workers: int | None = None,
    verify: bool = True,
    on_error: OnError = "raise",
    batch_bytes: int = BATCH_BYTES,
    storage_options: Mapping[str, Any] | None = None,
    remote: RemoteOptions | None = None,
) -> pl.LazyFrame:
    """Records of packs as a Polars lazy frame, payloads decoded for just the rows of its filters.

    Columns and options are those of :func:`scan_arrow`. Polars hands over which columns a query
    needs and the filters that stand right on the frame. For payloads behind sorts and joins keep
    ``record`` and resolve it there: ``pl.col("record").iac.text()`` (see
    :mod:`iac_query.engines.polars`).

    Headers are read now, everything else when the frame is collected. Columns of types that Polars
    lacks are listed as String; reading them is a PackError.
    """
    from .engines.polars import lazy_frame

    options = ScanOptions(
        as_=as_,
        into=into,
        layout=layout,
        filename=filename,
        hive_partitioning=hive_partitioning,
        workers=workers,
        verify=verify,
        on_error=on_error,
        batch_bytes=batch_bytes,
        storage_options=storage_options,
        remote=remote,
    )
    return lazy_frame(plan_scan(paths, options))
