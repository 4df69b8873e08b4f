"""What a scan over packs will show, found before a row is read. All engines build on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from .._options import OnError, PathLike, read_options
from ..decoding.kinds import KINDS, Kind, PackKind
from ..errors import CodecError, PackError, StaleReferenceError
from ..pack import PackReader
from ..remote import RemoteOptions
from .columns import RECORD, PackColumn, lower_case, pack_columns
from .files import PackFile, pack_files
from .partitions import partitions
from .types import common_type

RECORD_TYPE = pa.struct({"pack": pa.string(), "row": pa.int64(), "stamp": pa.uint32()})

#: Decoded payloads that a batch of a scan holds, some 64 MiB, unless one record has more.
BATCH_BYTES = 64 << 20


@dataclass(frozen=True)
class ScanOptions:
    """The options of a scan, checked. They are those of :func:`iac_query.scan_arrow`."""

    as_: Kind | None = None
    into: str = "payload"
    layout: bool = False
    filename: bool | str = False
    hive_partitioning: bool = False
    workers: int | None = None
    verify: bool = True
    on_error: OnError = "raise"
    batch_bytes: int = BATCH_BYTES
    storage_options: Mapping[str, Any] | None = None
    remote: RemoteOptions | None = None

    def open(self, path: str) -> PackReader:
        """The pack at a path or URL."""
        return PackReader(path, self.storage_options, self.remote)

    def __post_init__(self) -> None:
        if self.as_ is not None and self.as_ not in KINDS:
            raise ValueError(f"as_ is {self.as_!r}, expected one of {', '.join(KINDS)}")
        if self.on_error == "skip":
            raise ValueError("on_error is 'skip', expected 'raise' or 'null': filter errors out")
        read_options(True, self.workers, self.verify, self.on_error)
        for name in ("layout", "hive_partitioning"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is {getattr(self, name)!r}, expected a bool")
        if not isinstance(self.filename, bool | str):
            raise TypeError(f"filename is {self.filename!r}, expected a bool or a column name")
        if isinstance(self.batch_bytes, bool) or not isinstance(self.batch_bytes, int):
            raise TypeError(f"batch_bytes is {self.batch_bytes!r}, expected an int")
        if self.batch_bytes < 1:
            raise ValueError(f"batch_bytes is {self.batch_bytes}, expected 1 or more")

    @property
    def error_column(self) -> str | None:
        """The column that says why payloads are missing."""
        return f"{self.into}_error" if self.on_error == "null" else None

    @property
    def filename_column(self) -> str | None:
        """The column of the packs' paths as the caller named them."""
        return "filename" if self.filename is True else self.filename or None


class Shape(NamedTuple):
    """What the packs of a scan can differ in: their columns, and their payloads' type or why
    there is none.
    """

    columns: tuple[PackColumn, ...]
    payload: pa.DataType | str


@dataclass
class ScanPlan:
    """Packs and the columns that they have together. It pickles, and opens no pack by itself."""

    options: ScanOptions
    files: list[PackFile]
    shapes: list[Shape] = field(default_factory=list)  # of each file
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    #: Columns that can be listed but not read, and why.
    problems: dict[str, str] = field(default_factory=dict)
    #: Values of a column for each file, from its path.
    constants: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def payload_columns(self) -> set[str]:
        """Names of the columns that payloads are decoded for."""
        return {self.options.into, self.options.error_column} & set(self.schema.names)

    def fields(self, names: Iterable[str]) -> pa.Schema:
        """The schema of some columns."""
        return pa.schema([self.schema.field(name) for name in names])

    def open(self, number: int) -> PackReader:
        """One of the packs. Raises StaleReferenceError when it shows other columns by now."""
        reader = self.options.open(self.files[number].path)
        if _shape(reader, self.options) != self.shapes[number]:
            error = StaleReferenceError(
                f"{reader.package_path}: the pack was replaced by one with other columns, scan it "
                "again"
            )
            error.pack = str(reader.package_path)
            raise error
        return reader

    def require(self, columns: Iterable[str]) -> None:
        """Raises KeyError for an unknown column, PackError for one that cannot be read."""
        for name in columns:
            if name not in self.schema.names:
                raise KeyError(f"no column {name!r}, there are {self.schema.names}")
            if name in self.problems:
                raise PackError(self.problems[name])


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows. pyarrow's own cannot be made for every type."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def plan_scan(paths: PathLike | Iterable[PathLike], options: ScanOptions) -> ScanPlan:
    """Opens every pack for a moment: a damaged one is an error here, and names itself."""
    plan = ScanPlan(options, pack_files(paths))
    known: dict[Shape, Shape] = {}
    for file in plan.files:
        file.require_text()
        with options.open(file.path) as reader:
            shape = _shape(reader, options)
            plan.shapes.append(known.setdefault(shape, shape))
    first = {shape: plan.files[plan.shapes.index(shape)].name for shape in known}
    fields = _table_fields(plan, first)
    fields.append(pa.field(RECORD, RECORD_TYPE))
    _add_constants(plan, fields)
    _add_payload(plan, fields, first)
    plan.schema = pa.schema(fields)
    return plan


def _shape(reader: PackReader, options: ScanOptions) -> Shape:
    payload: pa.DataType | str
    try:
        payload = PackKind(reader.native, options.as_).type or (
            f"{reader.package_path}: images have no tensor type before they are read, use "
            "as_='image' and decode them later"
        )
    except CodecError as error:
        payload = str(error)
    if options.as_ is not None and isinstance(payload, str):
        raise CodecError(payload)
    return Shape(pack_columns(reader, options.layout), payload)


def _table_fields(plan: ScanPlan, first: dict[Shape, str]) -> list[pa.Field]:
    """Columns of all index tables, then of all slide tables, by name whatever its case. Types that
    do not go together make a text column that cannot be read.
    """
    groups: dict[str, list[tuple[PackColumn, str]]] = {}
    for table in ("index", "slide", None, "place"):
        for shape, path in first.items():
            for column in shape.columns:
                if column.table == table:
                    groups.setdefault(lower_case(column.name), []).append((column, path))
    fields = []
    for members in groups.values():
        name = members[0][0].name
        type = common_type(column.type for column, _ in members)
        if type is None:
            type = pa.string()
            plan.problems[name] = _conflict(members)
        fields.append(pa.field(name, type))
    return fields


def _conflict(members: list[tuple[PackColumn, str]]) -> str:
    (a, first), (b, second) = next(
        (earlier, later)
        for i, later in enumerate(members)
        for earlier in members[:i]
        if common_type([earlier[0].type, later[0].type]) is None
    )
    return (
        f"{second}: column {b.name!r}: it has type {b.type} here and {a.type} in {first}, which do "
        "not go together; scan these packs apart and cast one of them"
    )


def _add_constants(plan: ScanPlan, fields: list[pa.Field]) -> None:
    options = plan.options
    names = {lower_case(field.name): i for i, field in enumerate(fields)}
    in_tables = len(fields) - 1
    if options.filename_column:
        if lower_case(options.filename_column) in names:
            raise _taken("filename", options.filename_column)
        names[lower_case(options.filename_column)] = len(fields)
        plan.constants[options.filename_column] = pa.array(file.filename for file in plan.files)
        fields.append(pa.field(options.filename_column, pa.string()))
    if not options.hive_partitioning:
        return
    for key, values in partitions(plan.files).items():
        at = names.setdefault(lower_case(key), len(fields))
        if in_tables <= at < len(fields):
            raise _taken("hive_partitioning", key)
        plan.constants[key] = values
        if at < in_tables:  # the folder has the last word
            plan.problems.pop(fields[at].name, None)
            fields[at] = pa.field(key, values.type)
        else:
            fields.append(pa.field(key, values.type))


def _taken(option: str, name: str) -> ValueError:
    return ValueError(f"{option} adds the column {name!r}, but there is one of that name")


def _add_payload(plan: ScanPlan, fields: list[pa.Field], first: dict[Shape, str]) -> None:
    into, error_column = plan.options.into, plan.options.error_column
    names = {lower_case(field.name) for field in fields}
    for name in filter(None, (into, error_column)):
        if lower_case(name) in names:
            raise ValueError(f"there is a column {name!r} already, pass another name as into=")
    kinds: dict[pa.DataType | str, str] = {}
    for shape, path in first.items():
        kinds.setdefault(shape.payload, path)
    type = next(iter(kinds))
    for problem in kinds:
        if isinstance(problem, str):
            type, plan.problems[into] = pa.large_binary(), problem
            break
    else:
        if len(kinds) > 1:
            (one, path), (other, other_path) = list(kinds.items())[:2]
            plan.problems[into] = (
                f"payloads of {path} are {one}, those of {other_path} {other}: pass as_='bytes' or "
                "scan them apart"
            )
            type = pa.large_binary()
    fields.append(pa.field(into, type))
    if error_column:
        fields.append(pa.field(error_column, pa.string()))
        if into in plan.problems:
            plan.problems[error_column] = plan.problems[into]
