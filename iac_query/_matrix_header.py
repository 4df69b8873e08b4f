"""What headers say of the matrix whose rows are a pack's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: Features beyond ``teacher_features``, whose published reader reads by row whatever the payload
#: type, and everything as float32. Without a ``dtype`` it fails instead of giving other values.
EXTENDED_FEATURES = "teacher_features_extended"

MATRIX_FIELDS = frozenset({"feature_dim", "dtype", "feature_dtype", "feature_record_bytes"})


def matrix_header(dim: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """What the header of a pack says of a matrix with ``dim`` values in a row."""
    return {
        "feature_dim": dim,
        "dtype": dtype.name,
        "feature_record_bytes": dim * dtype.itemsize,
    }


def named_for(payload_type: Any, header: Mapping[str, Any]) -> dict[str, Any]:
    """A header whose dtype has the name of such packs: ``feature_dtype`` in extended features."""
    if payload_type != EXTENDED_FEATURES:
        return dict(header)
    return {"feature_dtype" if key == "dtype" else key: value for key, value in header.items()}


def dtype_field(header: Mapping[str, Any]) -> str:
    """The field that names the dtype."""
    return "dtype" if "dtype" in header else "feature_dtype"
