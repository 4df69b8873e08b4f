"""Tables with payloads in notebooks: ``%load_ext iac_query``.

Packs and batches show themselves without it. A pyarrow.Table has no HTML of its own, so this gives
it some where it has payloads, and leaves other tables as they are.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ._html import table_html
from .images import IMAGE_TYPE

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(ipython: Any) -> None:
    """Shows tables with payloads as HTML. Called by ``%load_ext iac_query``."""
    _formatter(ipython).for_type(pa.Table, _payloads_html)


def unload_ipython_extension(ipython: Any) -> None:
    """Called by ``%unload_ext iac_query``."""
    _formatter(ipython).pop(pa.Table, None)


def _formatter(ipython: Any) -> Any:
    return ipython.display_formatter.formatters["text/html"]


def _payloads_html(table: pa.Table) -> str | None:
    """None, which leaves it to what the table says of itself, where there is no payload."""
    has_payloads = any(
        field.name == "payload" or field.type == IMAGE_TYPE for field in table.schema
    )
    return table_html(table) if has_payloads else None
