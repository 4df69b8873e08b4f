"""Writes keywords.inc, the keywords and tags of PS3.6 sections 6 to 9 and PS3.7 annex E.

    python make_keywords.py > keywords.inc

The standard's tables are taken from pydicom's data dictionary (MIT licence), which is generated
from them.
"""

import pydicom
from pydicom.datadict import DicomDictionary

# Of a keyword that several tags have, the current one, which comes first in a sort by "Retired".
entries = sorted(
    (keyword, retired, tag)
    for tag, (_, _, _, retired, keyword) in DicomDictionary.items()
    if keyword
)
print(f"// Made by make_keywords.py with pydicom {pydicom.__version__}; sorted by keyword.")
last = ""
for keyword, _, tag in entries:
    if keyword != last:
        print(f'{{"{keyword}", 0x{tag:08X}}},')
    last = keyword
