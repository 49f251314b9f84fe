"""`python -m tumble` is the command `tumble`."""

import sys

from .cli import main

sys.exit(main())
