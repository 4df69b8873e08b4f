"""One DICOM file on its way into a pack: what is kept of its header, and its frames."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydicom import dcmread
from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.multival import MultiValue
from pydicom.uid import UID, ExplicitVRBigEndian

from . import exact, frames, schema, template
from .columns import TagColumn
from .deflated import require_bounded
from .frames import ImagePixel
from .model import has_empty_numbers, model_of

_UNDEFINED = 0xFFFFFFFF  # of a length that only a delimiter ends: PS3.5 7.1.1


@dataclass
class Frame:
    """A frame as it is to be encoded: an array or bytes."""

    instance: Instance
    codec_id: int
    data: Any


@dataclass
class StoredFrame:
    """An encoded frame: where it lies in the spool, and where it will in the data."""

    codec_id: int
    spooled: int
    length: int
    crc32: int
    offset: int = 0


@dataclass
class Instance:
    """An instance without its pixels. ``model`` and ``header`` are encoded."""

    source: str
    digest: bytes
    patient_id: str
    study_uid: str
    series_uid: str
    modality: str
    sop_instance_uid: str
    instance_number: int
    transfer_syntax: str
    pixel: ImagePixel | None
    number_of_frames: int
    model: bytes
    tags: list[Any]
    empty_numbers: bool
    header: bytes = b""
    offset: int = 0  # of its frames in the data
    frames: list[StoredFrame] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        """The series it belongs to."""
        return self.study_uid, self.series_uid

    @property
    def order(self) -> tuple[Any, ...]:
        """What rows are sorted by."""
        return (*self.key, self.instance_number, self.sop_instance_uid)

    @property
    def for_peer(self) -> bool:
        """Whether iatro-base-iac 0.1.4 reads such an instance as what it is."""
        if self.empty_numbers or self.transfer_syntax == ExplicitVRBigEndian:
            return False
        pixel = self.pixel
        if pixel is None:
            return True
        gray = pixel.photometric_interpretation in ("MONOCHROME1", "MONOCHROME2")
        colour = pixel.photometric_interpretation == "RGB"
        return (
            self.number_of_frames == 1
            and pixel.pixel_keyword == "PixelData"
            and pixel.bits_allocated in (8, 16)
            and (pixel.samples_per_pixel, gray, colour) in ((1, True, False), (3, False, True))
        )


def read_dataset(data: bytes) -> Dataset:
    """The dataset of a file's bytes. Raises what pydicom raises where they are none, ValueError
    for an image that ends before its pixels, within an element, which pydicom takes as it is.
    """
    require_bounded(data)
    ds = dcmread(io.BytesIO(data))
    if frames.pixel_element(ds) is None and _is_image(ds):
        for tag in ds.keys():  # noqa: SIM118, keys stay raw
            raw = ds.get_item(tag)
            if not isinstance(raw, RawDataElement) or raw.length == _UNDEFINED:
                continue
            if len(raw.value or b"") < raw.length:
                raise ValueError(f"ends within its element {tag}, before its pixels")
    return ds


def _is_image(ds: Dataset) -> bool:
    sop_class = ds.get("SOPClassUID") or ds.file_meta.get("MediaStorageSOPClassUID")
    return "Rows" in ds or "Image Storage" in UID(str(sop_class or "")).name


def instance_of(
    ds: Dataset, data: bytes, source: str, columns: Sequence[TagColumn]
) -> tuple[Instance, dict[str, Any]]:
    """The instance and its model. Raises ValueError, AttributeError for what cannot be kept."""
    uid = _text(ds, "SOPInstanceUID") or _text(ds.file_meta, "MediaStorageSOPInstanceUID")
    if not uid:
        raise ValueError("has no SOP Instance UID (0008,0018)")
    has_pixels = frames.pixel_element(ds) is not None
    pixel = ImagePixel.of(ds) if has_pixels else None
    model = model_of(ds)
    instance = Instance(
        source=source,
        digest=hashlib.blake2b(data).digest(),
        patient_id=_text(ds, "PatientID"),
        study_uid=_text(ds, "StudyInstanceUID"),
        series_uid=_text(ds, "SeriesInstanceUID"),
        modality=_text(ds, "Modality"),
        sop_instance_uid=uid,
        instance_number=_instance_number(ds),
        transfer_syntax=_text(ds.file_meta, "TransferSyntaxUID"),
        pixel=pixel,
        number_of_frames=frames.number_of_frames(ds) if has_pixels else 0,
        model=schema.METADATA_CODEC.encode(template.dumped(model).encode()),
        tags=[column.value(model["dataset"]) for column in columns],
        empty_numbers=has_empty_numbers(model["dataset"]),
    )
    return instance, model


def _text(ds: Dataset, keyword: str) -> str:
    value = ds.get(keyword)
    if isinstance(value, MultiValue):
        value = "\\".join(map(str, value))  # PS3.5 6.4
    return "" if value is None else str(value).strip()


def _instance_number(ds: Dataset) -> int:
    """Instance Number (0020,0013), -1 where it is absent or no integer of 32 bits."""
    try:
        value = ds.get("InstanceNumber")
        number = int(value)
    except (OverflowError, TypeError, ValueError):
        return -1
    if number != value:
        return -1
    return number if -(1 << 31) <= number < 1 << 31 else -1


def frames_as_pixels(ds: Dataset, instance: Instance) -> Iterator[Frame]:
    """Each frame's pixels, as arrays for JPEG XL, those that it cannot hold as bytes."""
    pixel = instance.pixel
    if pixel is None:
        return
    in_jxl = pixel.dtype.itemsize <= 2 and pixel.samples_per_pixel in (1, 3)
    for array in frames.decoded_frames(ds, pixel):
        if in_jxl:
            yield Frame(instance, schema.PIXELS_JXL, array.view(f"u{array.dtype.itemsize}"))
        else:
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            yield Frame(instance, schema.PIXELS_ZSTD, little.tobytes())


def frames_as_they_are(ds: Dataset, data: bytes, instance: Instance) -> Iterator[Frame]:
    """Each frame's bytes; the instance gets what else the file consists of.

    Where frames share bytes, or pydicom alone reads them, it gets the whole file, and frames are
    kept as their pixels.
    """
    pixel = instance.pixel
    encoded = None if pixel is None else frames.encoded_frames(ds, pixel)
    if pixel is None or encoded is None or not frames.are_readable(encoded, pixel):
        instance.header = _encoded(exact.whole(data))
        yield from frames_as_pixels(ds, instance)
        return
    encapsulated = pixel.transfer_syntax.is_encapsulated
    instance.header = _encoded(exact.cut(data, ds, encoded, encapsulated=encapsulated))
    for frame, array in zip(encoded, frames.decoded_frames(ds, pixel), strict=True):
        yield Frame(instance, frames.stored_frame(frame, array, pixel), frame)


def header_without_pixels(ds: Dataset, data: bytes, instance: Instance) -> bytes:
    """The bytes of a file whose pixels are stored in another way."""
    if instance.pixel is None:
        return _encoded(exact.whole(data))
    value = bytes(ds.get_item(frames.pixel_element(ds)).value)
    return _encoded(exact.cut(data, ds, [value], encapsulated=False))


def _encoded(header: bytes) -> bytes:
    return schema.METADATA_CODEC.encode(header)
