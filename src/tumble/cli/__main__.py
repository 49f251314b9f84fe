"""`python -m tumble.cli` is the command `tumble`."""

import sys

from . import main

sys.exit(main())
