"""Command lines of Java programs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from testbed.errors import JavaMissing
from testbed.jars import class_archive, class_path

# A short life on a small machine: the quick compiler only, the simple collector, no memory set aside beforehand.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData")
_LOGGING = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
)


def java_binary() -> str:
    """The `java` of JAVA_HOME, else of the PATH; JavaMissing if neither has one."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise JavaMissing("java was not found; install Java 17 or later, or set JAVA_HOME")
    return found


def node_command(
    version: str, main_class: str, argument: Path, *, heap: str, own_flags: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """A long-running Kafka or ZooKeeper process that logs to its standard error."""
    flags = (f"-Xmx{heap}", *QUICK_START, *_class_data(f"kafka-{version}"), "-XX:+ExitOnOutOfMemoryError", *_LOGGING)
    return (java_binary(), *flags, *own_flags, "-cp", class_path(version), main_class, str(argument))


def tool_command(version: str, main_class: str, *arguments: str, quick: bool = True) -> tuple[str, ...]:
    """A Kafka command-line tool; like in Kafka's own scripts it has 256 MB and logs warnings to standard error.

    Not `quick`, it starts as with Kafka's own scripts.
    """
    fixed = ("-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *_LOGGING)
    flags = (*QUICK_START, *_class_data(f"kafka-{version}")) if quick else ()
    return (java_binary(), *fixed, *flags, "-cp", class_path(version), main_class, *arguments)


def spark_flags() -> tuple[str, ...]:
    """Flags for a Spark that ends soon."""
    return (*QUICK_START, *_class_data("spark"))


def _class_data(name: str) -> tuple[str, ...]:
    """Flags that let Java use the archive of class data if there is one, and say nothing if it does not fit."""
    archive = class_archive(name)
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable", "-Xlog:all=error:stderr") if archive.exists() else ()
