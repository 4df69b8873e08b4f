"""``python -m iac_query``."""

import sys

from .cli import main

sys.exit(main())
