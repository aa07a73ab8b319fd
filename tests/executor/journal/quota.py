"""The answer of a kernel to a user whose disk quota is used up, though the disk has room: EDQUOT (seccomp, Linux)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform

_WRITES = {"x86_64": (1, 18), "aarch64": (64, 68)}
"""Numbers of write(2) and pwrite64(2), by machine."""
_LOAD, _IF_EQUAL, _IF_GREATER, _RETURN = 0x20, 0x15, 0x25, 0x06
_NUMBER, _DESCRIPTOR = 0, 16
"""Places of a system call's number and of its first argument."""
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000
_SET_FILTER, _KEEP_PRIVILEGES = 22, 38


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("then", ctypes.c_ubyte), ("other", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def use_up_quota() -> None:
    """Let every write of this process fail from now on, but for those to its standard streams."""
    write, write_at = _WRITES[platform.machine()]
    steps = (
        (_LOAD, 0, 0, _NUMBER),
        (_IF_EQUAL, 1, 0, write),
        (_IF_EQUAL, 0, 3, write_at),
        (_LOAD, 0, 0, _DESCRIPTOR),
        (_IF_GREATER, 0, 1, 2),
        (_RETURN, 0, 0, _FAIL_WITH | errno.EDQUOT),
        (_RETURN, 0, 0, _ALLOW),
    )
    instructions = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    kernel, program = ctypes.CDLL(None, use_errno=True), _Program(len(steps), instructions)
    for words in ((_KEEP_PRIVILEGES, 1, 0, 0, 0), (_SET_FILTER, 2, ctypes.byref(program), 0, 0)):
        if kernel.prctl(*words):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
