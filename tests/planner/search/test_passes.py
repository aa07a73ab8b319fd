import hashlib
from pathlib import Path

from kreassign.planner.search import kernels, passes, spread_pass

# The compiler keeps its work until the file of a function changes; it does not look at the functions called.


def digest(*modules) -> str:
    return hashlib.sha256(b"".join(Path(module.__file__).read_bytes() for module in modules)).hexdigest()[:12]


def test_compiled_passes_are_renewed_when_what_they_call_changes() -> None:
    assert digest(kernels) == passes.KERNELS_DIGEST, "write this digest into passes.py"


def test_the_compiled_pass_of_topic_spread_is_renewed_too() -> None:
    assert digest(kernels, passes) == spread_pass.PARTS_DIGEST, "write this digest into spread_pass.py"
