"""`python -m tests.clients`: walk foreign clients over a twin and over real Kafka, and tell what differs."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click

from kreassign.twin.server import serving
from testbed import ClusterSpec, KafkaCluster
from tests.clients.known import unexpected
from tests.clients.programs import PROGRAMS, Program, build
from tests.clients.walks import differences, prepare, walk
from tests.conformance.clusters import NEWEST, small_twin

BROKERS = 4


def present(programs: Iterable[Program]) -> list[Program]:
    """Clients whose language is installed, built; a line for each language that is not."""
    wanted = list(programs)
    languages = list(dict.fromkeys(one.language for one in wanted))
    for language in languages:
        if language.is_here:
            build(language)
        else:
            named = ", ".join(one.client for one in wanted if one.language is language)
            click.echo(f"skipped, because {language.value} is not on this machine: {named}")
    return [one for one in wanted if one.language.is_here]


def compare(program: Program, twin: str, kafka: str) -> bool:
    """Walk one client over both; print what differs. Whether all of that is known."""
    topic = f"walk-{program.name}"
    on_twin, on_kafka = walk(program, twin, topic), walk(program, kafka, topic)
    found = differences(on_twin, on_kafka)
    surprises = unexpected(program.name, found)
    click.echo(
        f"{program.client}: {len(on_twin)} calls, {len(on_twin) - len(found)} equal, {len(surprises)} unexpected"
    )
    for one in found:
        mark = "!" if one in surprises else " "
        click.echo(f"  {mark} {one.step}: twin {json.dumps(one.on_twin)}, Kafka {json.dumps(one.on_kafka)}")
    return not surprises


@click.command()
@click.option("--only", multiple=True, type=click.Choice([one.name for one in PROGRAMS]), help="Walk only these.")
def main(only: tuple[str, ...]) -> None:
    """Walk foreign clients over a twin and over real Kafka. Exit code 1 if one finds what is not known to differ."""
    programs = present(one for one in PROGRAMS if not only or one.name in only)
    with (
        KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as kafka,
        serving(small_twin(NEWEST, BROKERS)) as twin,
    ):
        for servers in (kafka.bootstrap_servers, twin.bootstrap_servers):
            prepare(servers)
        as_expected = [compare(program, twin.bootstrap_servers, kafka.bootstrap_servers) for program in programs]
    if not all(as_expected):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
