"""Whether packs are as they should be, and packs without what is damaged.

``container`` checks what all packs have in common; what records of a payload type must hold is
said by the adapter of that type, see ``iac_query.adapters.validate``.
"""

from ._repair import RepairReport, repair
from ._validate import validate
from .report import Finding, PackReport, ValidationReport

__all__ = ["Finding", "PackReport", "RepairReport", "ValidationReport", "repair", "validate"]
