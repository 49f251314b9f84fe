"""`python -m tumble` is the command `tumble`."""

from .cli import main

main()
