"""The programs: how each is built, and what runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "clients"
_BUILD_TIMEOUT_S = 1_200.0


class Language(Enum):
    """Language of a program; the value is the command that has to be there."""

    GO = "go"
    NODE = "node"
    PYTHON = sys.executable

    @property
    def is_here(self) -> bool:
        """True if this machine has the language."""
        return shutil.which(self.value) is not None and (self is not Language.NODE or shutil.which("npm") is not None)


@dataclass(frozen=True, slots=True)
class Program:
    """A client's walk: `name` is also that of its program or file."""

    name: str
    client: str
    language: Language

    @property
    def command(self) -> tuple[str, ...]:
        """Command that starts the program, up to its arguments."""
        match self.language:
            case Language.GO:
                return (str(BUILD / self.name),)
            case Language.NODE:
                return (self.language.value, str(BUILD / "node" / f"{self.name}.mjs"))
            case Language.PYTHON:
                return (self.language.value, "-m", f"tests.clients.python.{self.name}")


PROGRAMS = (
    Program("kadm", "franz-go and kadm", Language.GO),
    Program("sarama", "Sarama", Language.GO),
    Program("kafkago", "kafka-go", Language.GO),
    Program("kafkajs", "kafkajs", Language.NODE),
    Program("platformatic", "@platformatic/kafka", Language.NODE),
    Program("librdkafka", "librdkafka (confluent-kafka)", Language.PYTHON),
    Program("kafka_python", "kafka-python", Language.PYTHON),
    Program("aio_kafka", "aiokafka", Language.PYTHON),
    Program("java_tools", "Kafka's command line tools", Language.PYTHON),
)


def build(language: Language) -> None:
    """Build what programs of a language need, with the versions that are pinned beside them."""
    BUILD.mkdir(parents=True, exist_ok=True)
    if language is Language.GO:
        _run("go", "build", "-mod=readonly", "-o", f"{BUILD}/", "./...", folder=HERE / "go")
    if language is Language.NODE:
        shutil.copytree(HERE / "node", BUILD / "node", dirs_exist_ok=True)
        _run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", folder=BUILD / "node")


def _run(*command: str, folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=_BUILD_TIMEOUT_S)
