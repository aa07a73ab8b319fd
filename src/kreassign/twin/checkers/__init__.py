"""What must hold of every twin after every step, whatever happens to it. One module per invariant."""

from kreassign.twin.checkers.table import CHECKERS, Checker, check_all, check_step, look

__all__ = ["CHECKERS", "Checker", "check_all", "check_step", "look"]
