"""Places of the Kafka jars that the testbed runs."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.errors import JarsMissing

JARS_VARIABLE = "KREASSIGN_JVM"
_DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "build" / "jvm"


def jars_folder() -> Path:
    """The folder with one sub-folder of jars per profile of jvm/pom.xml; KREASSIGN_JVM overrides build/jvm."""
    return Path(os.environ.get(JARS_VARIABLE) or _DEFAULT_FOLDER)


def spark_kafka_jars() -> Path:
    """The folder with the jars of Spark's Kafka source; raises JarsMissing with the command that fetches them."""
    folder = jars_folder() / "spark-kafka-4.0.0"
    if not any(folder.glob("*.jar")):
        raise JarsMissing(f"no jars of Spark's Kafka source in {folder}; run: make jars")
    return folder


def tiered_storage_jar() -> Path:
    """The jar with Kafka's stand-in for remote storage; raises JarsMissing with the command that fetches it.

    That of 4.3.1 is the last that is in the registry; brokers of 4.4.0 lack classes that it needs.
    """
    jar = jars_folder() / "kafka-tiered-4.3.1" / "kafka-storage-4.3.1-test.jar"
    if not jar.is_file():
        raise JarsMissing(f"no {jar.name} in {jar.parent}; run: make jars")
    return jar


def class_path(version: str) -> str:
    """The class path of a Kafka version, jar by jar; raises JarsMissing with the command that fetches them."""
    folder = jars_folder() / f"kafka-{version}"
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise JarsMissing(f"no jars of Kafka {version} in {folder}; run: make jars")
    return os.pathsep.join(map(str, jars))


def class_archive(name: str) -> Path:
    """The archive of class data of `kafka-4.4.0`, or `spark`, which need not be there (see `testbed.class_data`)."""
    return jars_folder() / f"{name}.jsa"
