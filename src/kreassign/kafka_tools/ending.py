"""How a tool ends: exit code, and what goes to which stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

from kreassign.errors import KreassignError
from kreassign.kafka_tools.failures import PlainError, ToolError, UncaughtError, UsageError
from kreassign.kafka_tools.help_table import help_table
from kreassign.kafka_tools.options import Option

FAILED = 1
_INTERRUPTED = 130


def exit_code(job: Callable[[], None], options: Iterable[Option], *, escapes: bool = False) -> int:
    """Do the job, say on stderr why it failed if it does, and return the exit code.

    `escapes` is for a tool that lets its failures escape as Java exceptions.
    """
    try:
        job()
        sys.stdout.flush()
    except UsageError as failure:
        print(failure, help_table(options), sep="\n", file=sys.stderr)
    except PlainError as failure:
        if failure.also_said:
            print(failure.also_said, flush=True)
        if failure.message:
            print(failure.escaped() if escapes else failure, file=sys.stderr)
    except UncaughtError as failure:
        print(failure if escapes else failure.message, file=sys.stderr)
    except ToolError as failure:
        print(failure.message, *([f"Caused by: {failure.reason}"] if failure.reason else []), sep="\n", file=sys.stderr)
    except KreassignError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        # Nobody reads on; nor shall Python try to write what is left when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return _INTERRUPTED
    else:
        return 0
    return FAILED
