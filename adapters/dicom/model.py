"""Headers as JSON: a dataset to the DICOM JSON model (PS3.18 F.2) and back.

A model is ``{"dataset": ..., "file_meta": ..., "preamble": base64 or None}``, and ``"errors"``
where elements are not what their VR says: those are kept as raw bytes.
"""

from __future__ import annotations

import base64
import contextlib
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from pydicom.dataelem import DataElement, RawDataElement
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.multival import MultiValue
from pydicom.tag import BaseTag, Tag
from pydicom.valuerep import ISfloat

#: Pixel Data, Float Pixel Data and Double Float Pixel Data: PS3.3 C.7.6.3, C.7.6.24, C.7.6.25.
PIXEL_ELEMENTS = (Tag(0x7FE00010), Tag(0x7FE00008), Tag(0x7FE00009))

#: Sequences in sequences, so that every reader has the stack for them.
MAX_SEQUENCE_DEPTH = 64

# Groups of commands and of file meta information: PS3.7 E.1, PS3.10 7.1. No dataset may have them.
NOT_OF_DATASETS = (0x0000, 0x0002)

Json = dict[str, Any]

# Bytes of a value of these VRs that belong together: their order is that of the file (PS3.5 7.3).
_WORDS = {"OW": 2, "OF": 4, "OL": 4, "OD": 8, "OV": 8}
_NUMBERS = {"DS": float, "IS": int}
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without pydicom's warnings about values that break a rule: they are kept as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def model_of(ds: Dataset) -> Json:
    """The model of a dataset as pydicom reads it, without its pixels, always little-endian.

    Elements that no dataset may have are left out. Raises RecursionError for sequences nested
    deeper than ``MAX_SEQUENCE_DEPTH``.
    """
    errors: list[Json] = []
    meta = getattr(ds, "file_meta", None) or FileMetaDataset()
    swaps = ds.original_encoding[1] is False
    preamble = getattr(ds, "preamble", None)
    model: Json = {
        "dataset": _elements(ds, "dataset", [], errors, swaps),
        "file_meta": _elements(meta, "file_meta", [], errors, False),
        "preamble": None if preamble is None else base64.b64encode(preamble).decode(),
    }
    if errors:
        model["errors"] = errors
    return model


def _elements(ds: Dataset, scope: str, path: list[Any], errors: list[Json], swaps: bool) -> Json:
    elements: Json = {}
    for tag in sorted(ds.keys()):
        if not path and tag in PIXEL_ELEMENTS:
            continue
        if not path and scope == "dataset" and tag.group in NOT_OF_DATASETS:
            continue
        key = f"{tag:08X}"
        raw = ds.get_item(tag)
        try:
            elements[key] = _element(ds[tag], scope, [*path, key], errors, swaps)
        except RecursionError:
            raise
        except Exception as error:  # of whatever kind a broken value raises in pydicom
            errors.append(_kept_raw(raw, scope, [*path, key], error))
    return elements


def _element(elem: DataElement, scope: str, path: list[Any], errors: list[Json], swaps: bool):
    if elem.VR == "SQ":
        if len(path) > 2 * MAX_SEQUENCE_DEPTH:
            raise RecursionError(f"has sequences nested deeper than {MAX_SEQUENCE_DEPTH} levels")
        items = [
            _elements(item, scope, [*path, number], errors, swaps)
            for number, item in enumerate(elem.value)
        ]
        return {"vr": "SQ", "Value": items} if items else {"vr": "SQ"}
    if swaps and elem.VR in _WORDS and elem.value:
        words = np.frombuffer(elem.value, f"u{_WORDS[elem.VR]}").byteswap()
        elem = DataElement(elem.tag, elem.VR, words.tobytes())
    if elem.VR in _NUMBERS:
        _require_decimal(elem)
    element = _multiple(elem) if elem.VM > 1 else elem.to_json_dict(None, 0)
    if any(isinstance(value, float) for value in element.get("Value", ())):
        element["Value"] = [_finite(value) for value in element["Value"]]
    return element


def _multiple(elem: DataElement) -> Json:
    """Several values, null for an empty one (PS3.18 F.2.5), at which pydicom fails."""
    if elem.VR in _NUMBERS:
        number = _NUMBERS[elem.VR]
        values = [None if _is_empty(value) else number(value) for value in elem.value]
        return {"vr": elem.VR, "Value": values}
    if elem.VR == "PN" and not all(elem.value):
        names = [DataElement(elem.tag, "PN", name).to_json_dict(None, 0) for name in elem.value]
        return {"vr": "PN", "Value": [name.get("Value", [None])[0] for name in names]}
    return elem.to_json_dict(None, 0)


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def has_empty_numbers(elements: Json) -> bool:
    """Whether a value of DS or IS is null, for which pydicom's own reader writes "None"."""
    return any(
        any(map(has_empty_numbers, element.get("Value", ())))
        if element["vr"] == "SQ"
        else element["vr"] in _NUMBERS and None in element.get("Value", ())
        for element in elements.values()
    )


def _require_decimal(elem: DataElement) -> None:
    """Raises ValueError for numbers as text that are another number than the text says: integers
    with a fraction or beyond what a float holds, and Python's underscores.
    """
    values = elem.value if isinstance(elem.value, MultiValue) else [elem.value]
    for value in values:
        text = getattr(value, "original_string", "")
        if isinstance(value, ISfloat) or "_" in text:
            raise ValueError(f"is no {elem.VR}")


def _finite(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _kept_raw(raw: Any, scope: str, path: list[Any], error: Exception) -> Json:
    value = raw.value
    if not isinstance(value, bytes):  # pydicom took it, but not JSON
        value = str(value).encode()
    vr = raw.VR or "UN"
    numeric = vr in _NUMBERS
    code = "invalid_numeric_value" if numeric else "invalid_element_value"
    kept: Json = {
        "code": code,
        "scope": scope,
        "path": path,
        "source_vr": vr,
        "stored_vr": "UN",
        "raw_base64": base64.b64encode(value).decode(),
        "exception": type(error).__name__,
    }
    if numeric and value.isascii():
        kept.update(stored_vr=vr, value=value.decode())
    return kept


def dataset_of(model: Json) -> Dataset:
    """The dataset of a model, with file meta information and preamble, without pixels."""
    ds = Dataset.from_json(_with_floats(model["dataset"]))
    ds.file_meta = FileMetaDataset()
    ds.file_meta.update(Dataset.from_json(_with_floats(model["file_meta"])))
    ds.preamble = base64.b64decode(model["preamble"] or "") or b"\0" * 128
    _empty_numbers(ds, model["dataset"])
    for error in model.get("errors", ()):
        _restore(ds.file_meta if error["scope"] == "file_meta" else ds, error)
    return ds


def _with_floats(elements: Json) -> Json:
    """Numbers that JSON has no notation for as floats again."""
    out = {}
    for key, element in elements.items():
        if element["vr"] in ("FL", "FD", "DS"):
            values = [_NOT_FINITE.get(v, v) for v in element.get("Value", ())]
            element = {**element, "Value": values} if values else element
        elif element["vr"] == "SQ":
            items = [_with_floats(item) for item in element.get("Value", ())]
            element = {**element, "Value": items} if items else {"vr": "SQ", "Value": []}
        out[key] = element
    return out


def _empty_numbers(ds: Dataset, elements: Json) -> None:
    """Empty values of DS and IS as pydicom has them when it reads a file."""
    for key, element in elements.items():
        values = element.get("Value", ())
        if element["vr"] == "SQ":
            for number, item in enumerate(values):
                _empty_numbers(ds[Tag(int(key, 16))].value[number], item)
        elif element["vr"] in _NUMBERS and None in values:
            elem = ds[Tag(int(key, 16))]
            elem.value = ["" if value is None else value for value in elem.value]


def _restore(ds: Dataset, error: Json) -> None:
    *way, last = error["path"]
    for step in way:
        ds = ds[Tag(int(step, 16))].value if isinstance(step, str) else ds[step]
    tag = BaseTag(int(last, 16))
    raw = base64.b64decode(error["raw_base64"])
    if error["stored_vr"] == "UN":
        ds[tag] = DataElement(tag, "OB", raw)
        ds[tag].VR = "UN"  # from the start, pydicom would read the bytes as the VR that it knows
    else:
        ds[tag] = RawDataElement(tag, error["stored_vr"], len(raw), raw, 0, False, True)
