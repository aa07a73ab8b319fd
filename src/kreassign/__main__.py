"""`python -m kreassign`: the command `kreassign`."""

from kreassign.cli.main import main

main()
