"""Codecs of records: the built-in ones, and those that users register."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from . import _native
from ._options import (
    MAX_BATCH_BYTES,
    MAX_IMAGE_BYTES,
    MAX_RECORD_BYTES,
    MAX_SAMPLES,
    OnError,
    read_options,
    worker_count,
)
from .batch import ContiguousRecordBatch
from .errors import CodecError
from .images import ImageBatch, array_shape, as_image, single_image

__all__ = ["Codec"]


class _CodecType(type):
    """Makes ``isinstance(x, Codec)`` ask what x can do, not what it derives from."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        methods = ("encode", "decode", "parameters")
        return (
            cls is Codec
            and not isinstance(instance, type)
            and isinstance(getattr(instance, "name", None), str)
            and all(callable(getattr(instance, method, None)) for method in methods)
        )


class Codec(metaclass=_CodecType):
    """How records are encoded. :meth:`create` makes one; subclass it to add another.

    A subclass has ``name``, ``encode(object) -> bytes``, ``decode(payload)`` and
    ``parameters() -> Mapping``, what the header keeps of it. Register it under its name, so that
    packs that use it can be read.
    """

    NONE: ClassVar[str] = "none"
    BROTLI: ClassVar[str] = "brotli"
    ZSTD: ClassVar[str] = "zstd"
    JXL: ClassVar[str] = "jxl"
    JPEG: ClassVar[str] = "jpeg"
    JPEG2000: ClassVar[str] = "jpeg2000"
    JPEGLS: ClassVar[str] = "jpegls"

    _registered: ClassVar[dict[str, Callable[..., Codec]]] = {}

    name: str

    @staticmethod
    def create(name: str, /, **params: Any) -> Codec:
        """The codec called ``name``, a built-in or a registered one.

        Of bytes:

        * ``none``: the bytes themselves.
        * ``zstd``: ``level`` 19 (-131072 to 22; 0 is the library's own default, 3). RFC 8878.
        * ``brotli``: ``quality`` 11 (0 to 11), ``lgwin`` 24 (10 to 24). RFC 7932.

        Of images, arrays (height, width[, channels]):

        * ``jxl``, ISO/IEC 18181: ``lossless`` False, ``distance`` 1.0 (above 0, to 25), ``effort``
          7 (1 to 10), ``usecontainer`` None. uint8, uint16, float16 and float32 with 1 to 4
          channels (the second or fourth is alpha).
        * ``jpeg``, ITU-T T.81: ``quality`` 90 (1 to 100), ``progressive`` False, ``subsampling``
          "420" ("444", "422"), ``lossless`` False (process 14). uint8 with 1 or 3 channels,
          without loss uint16 as well. To decode what TIFF files hold: ``tables_base64``,
          ``encoded_color_space`` ("YCbCr", "RGB").
        * ``jpeg2000``, ISO/IEC 15444-1 and -15: ``profile`` "classic" or "ht", ``lossless`` True,
          ``container`` "j2k" ("jp2" to decode only). uint8 and uint16 with 1, 3 or 4 channels. To
          decode codestreams of ITU-R BT.601 components: ``encoded_color_space`` "YCbCr".
        * ``jpegls``, ISO/IEC 14495-1: ``near_lossless`` 0 (to 255), ``bits_per_sample`` None (2 to
          16). uint8 and uint16 with 1, 3 or 4 channels.

        Raises ValueError for an unknown or impossible parameter, CodecError for an unknown codec.
        """
        if not isinstance(name, str):
            raise TypeError(f"codec name is {name!r}, expected a str")
        if name in Codec._registered:
            return Codec._registered[name](**params)
        try:
            text = json.dumps(params, allow_nan=False)
        except TypeError as error:
            raise ValueError(f"codec {name}: {error}") from error
        return _wrapped(_native.make_codec(name, text))

    @staticmethod
    def register(name: str, factory: Callable[..., Codec], *, replace: bool = False) -> None:
        """Makes ``create(name, **params)`` and packs that name it use ``factory(**params)``.

        Raises ValueError for a built-in name, or one that is taken unless ``replace``.
        """
        builtin = [value for key, value in vars(Codec).items() if key.isupper()]
        if name in builtin:
            raise ValueError(f"codec {name!r} is built in and cannot be replaced")
        if name in Codec._registered and not replace:
            raise ValueError(f"codec {name!r} is registered already, pass replace=True")
        Codec._registered[name] = factory

    def encode(self, obj: Any) -> bytes:
        """One object as a payload."""
        raise CodecError(f"codec {self.name} does not encode")

    def decode(self, payload: Any) -> Any:
        """The object of a payload."""
        raise CodecError(f"codec {self.name} does not decode")

    def encode_many(self, objects: Iterable[Any], workers: int | None = None) -> list[bytes]:
        """Payloads of many objects, in order. A registered codec works through them serially."""
        worker_count(workers)
        return [self.encode(obj) for obj in objects]

    def decode_many(self, payloads: Iterable[Any], workers: int | None = None) -> list[Any]:
        """Objects of many payloads, in order. A registered codec works through them serially."""
        worker_count(workers)
        return [self.decode(payload) for payload in payloads]

    def parameters(self) -> Mapping[str, Any]:
        """What the header's ``codec_params`` keep; empty when they are left out."""
        return {}


class NativeCodec(Codec):
    """What the built-in codecs share. Thread-safe, picklable, without the GIL while they work."""

    def __init__(self, native: _native.Codec) -> None:
        self._native: Any = native
        self.name = native.name

    def parameters(self) -> dict[str, Any]:
        text = self._native.parameters
        return json.loads(text) if text else {}

    def _decode(
        self,
        payloads: Iterable[Any],
        workers: int | None,
        on_error: OnError,
        max_record_bytes: int,
        max_batch_bytes: int,
        max_samples: int,
    ) -> _native.Batch:
        _, threads, _, rule, *limits = read_options(
            True, workers, True, on_error, max_record_bytes, max_batch_bytes, max_samples
        )
        return self._native.decode_many(list(payloads), threads, rule, *limits)

    def __reduce__(self) -> tuple[Any, ...]:
        return _create, (self.name, self.parameters())

    def __repr__(self) -> str:
        params = "".join(f", {key}={value!r}" for key, value in self.parameters().items())
        return f"Codec.create({self.name!r}{params})"


class ByteCodec(NativeCodec):
    """A built-in codec of bytes."""

    def encode(self, obj: Any) -> bytes:
        """One payload. ``obj`` is bytes-like with contiguous memory, else TypeError."""
        return self._native.encode(obj)

    def encode_many(self, objects: Iterable[Any], workers: int | None = None) -> list[bytes]:
        """Payloads of many objects, in order, encoded in parallel."""
        return self._native.encode_many(list(objects), worker_count(workers))

    def decode(self, payload: Any, *, max_record_bytes: int = MAX_RECORD_BYTES) -> bytes:
        """The bytes of one payload. Raises CodecError when it is damaged or above the limit."""
        batch = self._decode([payload], 1, "raise", max_record_bytes, MAX_BATCH_BYTES, MAX_SAMPLES)
        return bytes(batch.data)

    def decode_many(
        self,
        payloads: Iterable[Any],
        workers: int | None = None,
        *,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> list[bytes]:
        """The bytes of many payloads, in order, decoded in parallel."""
        batch = self.decode_many_contiguous(payloads, workers, max_record_bytes=max_record_bytes)
        return [bytes(record) for record in batch]

    def decode_many_contiguous(
        self,
        payloads: Iterable[Any],
        workers: int | None = None,
        *,
        on_error: OnError = "raise",
        max_record_bytes: int = MAX_RECORD_BYTES,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> ContiguousRecordBatch:
        """Many payloads decoded in parallel into one piece of memory."""
        limits = (max_record_bytes, max_batch_bytes, MAX_SAMPLES)
        batch = self._decode(payloads, workers, on_error, *limits)
        return ContiguousRecordBatch.from_native(batch, on_error)


class ImageCodec(NativeCodec):
    """A built-in codec of images: arrays (height, width[, channels]) in and out.

    Arrays of another byte order or memory layout are converted first. One that the codec cannot
    store as promised is a ValueError: wrong dtype, number of channels or pixels, a value above
    ``bits_per_sample``.
    """

    def encode(self, obj: Any) -> bytes:
        """One image as a payload."""
        return self._native.encode_many([as_image(obj)], 1)[0]

    def encode_many(self, objects: Iterable[Any], workers: int | None = None) -> list[bytes]:
        """Payloads of many images, in order, encoded in parallel."""
        return self._native.encode_many([as_image(obj) for obj in objects], worker_count(workers))

    def shape_and_dtype(self, payload: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """What :meth:`decode` would give, from the start of a payload, without decoding it.

        Raises CodecError when the payload does not start as an image of this codec.
        """
        return _shape_and_dtype(*self._native.image_shape(payload))

    def check_whole(
        self, payloads: Iterable[Any], workers: int | None = None
    ) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shapes and dtypes of the images of many payloads, that are found whole, in parallel.

        Without decoding them: ``jpeg`` walks through the marker segments and scans up to EOI
        (ITU-T T.81 annex B) and asks for the tables that these need, ``jpeg2000`` through the main
        header and the tile-parts up to EOC (ISO/IEC 15444-1 annex A), and both for nothing but
        padding behind it, bytes of 00 or FF. Damage inside of coded samples is for decoding to
        find. Other codecs read the start of a payload, as :meth:`shape_and_dtype` does.

        Raises CodecError, whose ``row`` is the number of the payload, for one that is not whole.
        """
        native = self._native.check_whole(list(payloads), worker_count(workers))
        return [_shape_and_dtype(*found) for found in native]

    def decode(self, payload: Any, *, max_samples: int = MAX_SAMPLES) -> npt.NDArray[Any]:
        """The image of one payload, a writable array; (height, width) for one channel.

        Raises CodecError when the payload is damaged or has more than ``max_samples`` samples.
        """
        limits = (MAX_IMAGE_BYTES, MAX_BATCH_BYTES, max_samples)
        return single_image(self._decode([payload], 1, "raise", *limits))

    def decode_many(
        self,
        payloads: Iterable[Any],
        workers: int | None = None,
        *,
        max_samples: int = MAX_SAMPLES,
    ) -> list[npt.NDArray[Any]]:
        """The images of many payloads, in order, decoded in parallel."""
        batch = self.decode_many_contiguous(payloads, workers, max_samples=max_samples)
        return [np.array(image) for image in batch]

    def decode_many_contiguous(
        self,
        payloads: Iterable[Any],
        workers: int | None = None,
        *,
        on_error: OnError = "raise",
        max_samples: int = MAX_SAMPLES,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> ImageBatch:
        """Many payloads decoded in parallel into one piece of memory, each into its place."""
        limits = (MAX_IMAGE_BYTES, max_batch_bytes, max_samples)
        batch = self._decode(payloads, workers, on_error, *limits)
        return ImageBatch.from_native(batch, on_error)


@functools.lru_cache(256)
def _shape_and_dtype(
    height: int, width: int, channels: int, name: str
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return array_shape((height, width, channels)), np.dtype(name)


def _create(name: str, params: dict[str, Any]) -> Codec:
    return Codec.create(name, **params)


def _wrapped(native: _native.Codec) -> Codec:
    kind = ImageCodec if isinstance(native, _native.ImageCodec) else ByteCodec
    return kind(native)


def is_registered(name: object) -> bool:
    """Whether a user's codec answers to ``name``."""
    return isinstance(name, str) and name in Codec._registered


def codec_of_header(header: Mapping[str, Any]) -> Codec:
    """The codec that a pack's header names.

    Parameters that other writers left there and that decoding does not need are passed over.
    Raises CodecError for a codec that is neither built in nor registered.
    """
    name = header.get("codec", "none")
    params = header.get("codec_params") or {}
    if is_registered(name):
        return Codec.create(name, **params)
    if not isinstance(name, str):
        raise CodecError(f"unknown codec: {name!r}")
    text = json.dumps(params)
    try:
        return _wrapped(_native.make_codec(name, text))
    except CodecError:
        raise
    except (TypeError, ValueError):
        return _wrapped(_native.make_decoder(name, text))
