import hashlib
from pathlib import Path

from kreassign.planner import kernels, passes


def test_compiled_passes_are_renewed_when_what_they_call_changes() -> None:
    # The compiler keeps its work until the file of a function changes; it does not look at the functions called.
    source = Path(kernels.__file__).read_bytes()
    assert hashlib.sha256(source).hexdigest()[:12] == passes.KERNELS_DIGEST, "write this digest into passes.py"
