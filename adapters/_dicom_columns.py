"""What the index of DICOM instances has in version 2, besides what version 1 has."""

from __future__ import annotations

import pyarrow as pa

#: Of an instance's frames, which follow each other, only the first has a delta and a header.
FRAMES = pa.schema(
    {
        "frame_index": pa.uint32(),
        "number_of_frames": pa.uint32(),
        "planar_configuration": pa.uint8(),
        "codec_id": pa.uint8(),
    }
)

#: Where the bytes of the files' headers are kept.
EXACT = pa.schema({"dicom_header": pa.large_binary(), "dicom_header_crc32": pa.uint32()})
