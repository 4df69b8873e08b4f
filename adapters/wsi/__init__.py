"""Whole-slide images: ``wsi_image`` packs, a record a tile of the raster, one slide a pack.

Packs are exchanged with iatro-iac-adapters 0.1.4 in both directions. What its schema has no words
for goes into packs that say ``wsi_schema_version`` 2, which that package refuses to read.
"""

from .build import build_wsi_image_package
from .deepzoom import DeepZoom
from .read import WsiImageReader
from .sources import SourceError

__all__ = ["DeepZoom", "SourceError", "WsiImageReader", "build_wsi_image_package"]
