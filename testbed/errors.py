"""Errors of a testbed cluster."""

from __future__ import annotations


class JavaMissing(RuntimeError):
    """There is no Java on this machine."""


class JarsMissing(RuntimeError):
    """The jars of a version have not been fetched."""


class NodeFailed(RuntimeError):
    """A node ended by itself, or did not become ready."""


class Refused(RuntimeError):
    """A node answered with an error code."""


class NotController(Refused):
    """A node answered that another one is the controller; it may have done what was asked before."""


class DoneBefore(Refused):
    """A node answered that there is such a topic already, or none any more."""


class RecordsLost(RuntimeError):
    """Acknowledged records cannot be read back as they were written."""
