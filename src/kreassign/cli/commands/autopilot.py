"""`kreassign autopilot`: look after a cluster by a policy; say what it does and why not; stop it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from threading import Event, Thread

import click
from click.core import ParameterSource

from kreassign.admin import AdminClient
from kreassign.autopilot.events import parse_name
from kreassign.autopilot.memory import Finding, Memory
from kreassign.autopilot.messages import Message
from kreassign.autopilot.policy import Kind, differences, explained
from kreassign.cli.next_command import next_command, print_next
from kreassign.cli.options.approvals import key_option
from kreassign.cli.options.cluster import ClusterOptions, cluster_options, of_run_options, run_cluster_options
from kreassign.cli.options.run import announce, metrics_port_option, run_context_options
from kreassign.cli.options.run_id import state_dir_option
from kreassign.cli.options.values import INPUT_FILE, parse_duration, parse_interval
from kreassign.cli.output import console, examples, format_option, names, print_json, text_table, warn
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, config_path, names_in
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import ClusterError, InputError, requires
from kreassign.executor.lease import OF_AUTOPILOTS, LeaseHolder, present_holder
from kreassign.model.authorization import error_text
from kreassign.model.text import counted
from kreassign.monitoring.metrics import AutopilotStatus
from kreassign.operations import autopilot_journal, autopilot_looks
from kreassign.operations.autopilot import Autopilot, watch_or_stand_by
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.autopilot_keeper import Vigil, decisions_from_afar
from kreassign.operations.autopilot_lease import AutopilotLease
from kreassign.operations.autopilot_messages import Tell, messaging
from kreassign.operations.monitoring import Monitoring, monitored
from kreassign.operations.run import RunContext
from kreassign.operations.run_journals import this_operator
from kreassign.report.text import format_bytes, format_time

DEFAULT = "watch"
TAKEN = ("--bootstrap-server", "--command-config", "--state-dir")


class PolicyGroup(click.Group):
    """Commands; a policy file in place of a command means `watch`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command if none is named."""
        if args and not args[0].startswith("-") and args[0] not in self.commands and not ctx.resilient_parsing:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


POLICY = click.argument("policy", type=INPUT_FILE)
WHY = click.option("--why", required=True, metavar="TEXT", help="The reason, for those who ask.")


@examples(
    "kreassign autopilot watch policy.toml --dry-run --bootstrap-server localhost:9092",
    "kreassign autopilot check policy.toml",
    "kreassign autopilot why policy.toml --bootstrap-server localhost:9092",
    "kreassign autopilot off --for 4h --why 'broker upgrade'",
)
@click.group(cls=PolicyGroup)
def autopilot() -> None:
    """Watch a cluster, and look after it, by a policy file.

    It finds what is wrong or will be, plans the least change, and runs it where the policy says so. By default it only
    reports.
    """


@examples(
    "kreassign autopilot watch policy.toml --dry-run --bootstrap-server localhost:9092",
    "kreassign autopilot watch policy.toml --once --bootstrap-server localhost:9092",
)
@autopilot.command()
@POLICY
@run_cluster_options
@run_context_options
@click.option("--dry-run", "is_dry", is_flag=True, help="Do everything but the runs, in a journal of its own.")
@click.option("--once", "is_once", is_flag=True, help="Look once, do what is due, and end.")
@click.option(
    "--take-over",
    "takes_over",
    is_flag=True,
    help="Go on at once where another process looks after the cluster: it is lost, or is to stop. A repair that it "
    "executes is waited for.  [default: stand by until it ends, or was not heard of for 40 s]",
)
@metrics_port_option
def watch(
    policy: Path,
    cluster: ClusterOptions,
    run_context: RunContext,
    is_dry: bool,
    is_once: bool,
    takes_over: bool,
    metrics_port: int | None,
) -> None:
    """Watch the cluster, and look after it by POLICY, until interrupted.

    One process at a time looks after a cluster; others stand by. The journal of decisions is in the state directory,
    and with --journal-to in a second place, from which another host goes on. A run that an interrupt leaves is resumed
    by the next start. POLICY is read again before each look (its receivers of messages are not).
    Kafka's own tools stop it:
    `kafka-configs --alter --entity-type brokers --entity-default --add-config kreassign-autopilot-off=true`.
    """
    found = autopilot_looks.read_policy(policy)
    # Service managers end it in good order: another host may go on at once.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        cluster.connect() as client,
        cluster.connect() as beside,
        cluster.connect_controllers() as controllers,
        _kept_beside(AutopilotLease(client, run_context.operator, SYSTEM_CLOCK), beside) as lease,
    ):
        context = replace(run_context, warn=warn, controllers=controllers)
        cluster_id = client.describe_cluster().cluster_id
        latest: dict[str, AutopilotStatus] = {}
        vigil = Vigil(SYSTEM_CLOCK, 0.0) if takes_over else Vigil(SYSTEM_CLOCK)
        with (
            monitored(
                context, Monitoring(metrics_port), announce, autopilots=lambda: tuple(latest.values())
            ) as watched,
            messaging(found.messages, cluster_id, SYSTEM_CLOCK, warn) as send,
        ):

            def begin() -> Autopilot:
                decisions = Decisions(
                    client,
                    autopilot_looks.read_policy(policy),
                    watched,
                    printing(send),
                    is_dry=is_dry,
                    report=lambda status: latest.update({status.cluster_id: status}),
                    reread=partial(autopilot_looks.read_policy, policy),
                    vigil=vigil,
                    lease=lease,
                )
                return Autopilot(decisions)

            if not is_once:
                with suppress(KeyboardInterrupt):
                    watch_or_stand_by(begin, warn, SYSTEM_CLOCK)
                return
            with begin() as pilot:
                pilot.look()
                click.echo(f"looked at cluster {cluster_id}: {counted(len(pilot.memory.open), 'open finding')}")
    print_next(next_command("autopilot", "status", *["--dry-run"] * is_dry, takes=TAKEN))


@examples(
    "kreassign autopilot watch-all policy.toml",
    "kreassign autopilot watch-all policy.toml prod test --dry-run",
)
@autopilot.command()
@POLICY
@click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
@click.option("--dry-run", "is_dry", is_flag=True, help="Do everything but the runs, in journals of their own.")
@click.option("--once", "is_once", is_flag=True, help="Look once at each, do what is due, and end.")
def watch_all(policy: Path, clusters: tuple[str, ...], is_dry: bool, is_once: bool) -> None:
    """Watch several clusters of the configuration file by POLICY, all of them unless some are named.

    Each has a process of its own, so that one that hangs or does not answer delays no other. A process that ends begins
    again after a minute. Options are those of `autopilot watch` in the file.
    """
    autopilot_looks.read_policy(policy)
    path = config_path()
    known = names_in(path)
    if strange := sorted(set(clusters) - known):
        raise InputError(f"there is no cluster {strange[0]!r} in {path}; it has: {', '.join(sorted(known)) or 'none'}")
    if not known:
        raise InputError(f"there is no cluster in {path}; `kreassign autopilot watch --bootstrap-server` needs no file")
    words = (str(policy), *["--dry-run"] * is_dry, *["--once"] * is_once)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # its children are not to outlive it
    watched = [_Watched(name, words, is_once) for name in sorted(set(clusters) or known)]
    with ThreadPoolExecutor(len(watched)) as pool:
        ends = [pool.submit(one.follow) for one in watched]
        try:
            codes = [one.result() for one in ends]
        finally:
            for one in watched:
                one.stop()
            signal.signal(signal.SIGTERM, before)
    print_next(next_command("autopilot", "status", *["--dry-run"] * is_dry, takes=TAKEN))
    if failed := [one.name for one, code in zip(watched, codes, strict=True) if code]:
        raise ClusterError(f"not looked after: {', '.join(failed)}; the reason is above")


AGAIN_S = 60.0
"""Time until the process of a cluster that ended begins again."""


class _Watched:
    """The process that watches one cluster. Its lines are printed with the name of the cluster before them."""

    def __init__(self, name: str, words: Iterable[str], is_once: bool) -> None:
        self.name, self._is_once = name, is_once
        self._command = (sys.executable, "-m", "kreassign", "--cluster", name, "autopilot", "watch", *words)
        self._stopped = Event()
        self._child: Popen[str] | None = None

    def follow(self) -> int:
        """Run it, again and again unless it is to look once, until it is stopped; return its last exit code."""
        # An address of the environment wins over that of the file, and would be that of all.
        environment = {key: value for key, value in os.environ.items() if key != ADDRESS_ENVIRONMENT}
        while True:
            with Popen(self._command, stdout=PIPE, stderr=STDOUT, text=True, env=environment) as child:
                self._child = child
                assert child.stdout is not None, "it is a pipe"
                for line in child.stdout:
                    click.echo(f"{self.name}: {line}", nl=False)
            if self._is_once or self._stopped.is_set():
                return child.returncode
            click.echo(f"{self.name}: its process ended with {child.returncode}; it begins again in {AGAIN_S:.0f} s")
            if self._stopped.wait(AGAIN_S):
                return child.returncode

    def stop(self) -> None:
        """End the process; what it had begun is settled by the next one."""
        self._stopped.set()
        if self._child is not None:
            self._child.terminate()


@contextmanager
def _kept_beside(lease: AutopilotLease, client: AdminClient) -> Iterator[AutopilotLease]:
    """Keep the lease while the process plans for minutes, by a thread with a client of its own."""
    stopped = Event()

    def beat() -> None:
        while not stopped.wait(lease.beat_s):
            lease.beat_beside(client, warn)

    thread = Thread(target=beat, name="lease of autopilots", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        stopped.set()
        thread.join()


def printing(send: Tell) -> Tell:
    """Send a message to the receivers of the policy, and print it."""

    def tell(message: Message) -> None:
        send(message)
        with suppress(OSError, ValueError):  # A full disk, or a terminal that was closed, stops no look.
            click.echo(str(message))

    return tell


@examples(
    "kreassign autopilot check policy.toml",
    "kreassign autopilot check policy.toml --against policy-in-use.toml",
)
@autopilot.command()
@POLICY
@click.option(
    "--against", type=INPUT_FILE, help="Show the lines in which POLICY differs from this one.  [default: none is shown]"
)
def check(policy: Path, against: Path | None) -> None:
    """Check POLICY, and explain what it lets happen, in sentences."""
    found = autopilot_looks.read_policy(policy)
    if against is None:
        for sentence in explained(found):
            click.echo(sentence)
    else:
        other = autopilot_looks.read_policy(against)
        lines = [
            f"[{table}] {key}: {here}, instead of {there}" for table, key, here, there in differences(found, other)
        ]
        click.echo("\n".join(lines) or "they say the same")
    print_next(next_command("autopilot", "replay", policy, takes=TAKEN))


@examples(
    "kreassign autopilot replay policy.toml --dry-run",
    "kreassign autopilot replay policy.toml --snapshots ./data",
)
@autopilot.command()
@POLICY
@of_run_options
@state_dir_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Over the journal of dry runs.")
@click.option(
    "--snapshots",
    metavar="DIR",
    help="Over the snapshots that `kreassign snapshot --data DIR` wrote, instead of a journal.  [default: the journal]",
)
@click.option("--of", "cluster_id", metavar="ID", help="Cluster of the snapshots.  [default: the only one there]")
@format_option
def replay(
    policy: Path,
    cluster: ClusterOptions,
    state_dir: Path,
    is_dry: bool,
    snapshots: str | None,
    cluster_id: str | None,
    output_format: str,
) -> None:
    """Play POLICY over the journal of decisions: what it would have repaired, when, and at what cost.

    Findings are those of the journal, or with --snapshots those that snapshots show, each of which counts until the
    next one. Reads nothing of the cluster, and changes nothing.
    """
    found = autopilot_looks.read_policy(policy)
    _check_source(has_snapshots=snapshots is not None)
    if snapshots is None:
        played = autopilot_journal.replayed(state_dir, _meant(cluster, state_dir, is_dry=is_dry), found, is_dry=is_dry)
    else:
        with requires("a replay over snapshots", "pyarrow", "tables"):
            from kreassign.operations.autopilot_replay import replayed_by_tables

        played = replayed_by_tables(snapshots, found, cluster_id)
    if output_format == "json":
        acts = [{"at_ms": one.at_ms, "kind": one.name.kind, "subject": one.name.subject,
                 "copied_bytes": one.copied_bytes} for one in played.acts]  # fmt: skip
        rest = [{"kind": name.kind, "subject": name.subject, "gates": dict(gates)}
                for name, gates in played.not_repaired.items()]  # fmt: skip
        print_json({"from_ms": played.from_ms, "to_ms": played.to_ms, "acts": acts, "not_repaired": rest})
        return
    known = format_bytes(sum(one.copied_bytes or 0 for one in played.acts))
    unknown = sum(one.copied_bytes is None for one in played.acts)
    cost = known + (f", and {unknown} without a plan in the journal" if unknown else "")
    times = f"from {format_time(played.from_ms)} to {format_time(played.to_ms)}"
    click.echo(f"{times} it would have acted {counted(len(played.acts), 'time')}: {cost}")
    for act in played.acts:
        amount = "no plan in the journal" if act.copied_bytes is None else format_bytes(act.copied_bytes)
        click.echo(f"{format_time(act.at_ms)} {act.name}: {amount}")
    for name, gates in played.not_repaired.items():
        click.echo(f"{name}: proposed, and not repaired")
        for gate, text in gates.items():
            click.echo(f"    {gate}: {text}")
    print_next(next_command("autopilot", "watch", policy, "--dry-run", takes=TAKEN))


@examples("kreassign autopilot why policy.toml --bootstrap-server localhost:9092")
@autopilot.command()
@POLICY
@cluster_options
@state_dir_option
@click.option("--dry-run", "is_dry", is_flag=True, help="By the journal of dry runs.")
@format_option
def why(policy: Path, cluster: ClusterOptions, state_dir: Path, is_dry: bool, output_format: str) -> None:
    """Show of each finding what keeps its repair from running, by a look of now; change nothing."""
    found = autopilot_looks.read_policy(policy)
    with cluster.connect() as client:
        memory = autopilot_journal.remembered(state_dir, client.describe_cluster().cluster_id, is_dry=is_dry)
        reasons = tuple(autopilot_looks.why(client, found, memory, state_dir))
    if output_format == "json":
        rows = [
            {"kind": one.name.kind, "subject": one.name.subject, "state": one.state, "seen": one.seen,
             "gates": dict(one.gates)}
            for one in reasons
        ]  # fmt: skip
        print_json({"findings": rows})
        return
    if not reasons:
        click.echo("there is no finding")
    for one in reasons:
        click.echo(f"{one.name} ({one.state}): {one.seen}")
        for gate, text in one.gates.items():
            click.echo(f"    {gate}: {text or 'open'}")


@examples(
    "kreassign autopilot status",
    "kreassign autopilot status --format json",
)
@autopilot.command()
@of_run_options
@state_dir_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Of the journal of dry runs.")
@click.option(
    "--journal-from",
    metavar="DEST",
    help="Show the decisions that another host keeps there (its --journal-to); needs --bootstrap-server.  "
    "[default: of --state-dir]",
)
@format_option
def status(
    cluster: ClusterOptions, state_dir: Path, is_dry: bool, journal_from: str | None, output_format: str
) -> None:
    """Show findings and repairs by the journal of decisions, without the cluster."""
    if journal_from is None:
        meant = _meant(cluster, state_dir, is_dry=is_dry)
        _show(autopilot_journal.remembered(state_dir, meant, is_dry=is_dry), output_format)
        return
    with cluster.connect() as client, decisions_from_afar(client, journal_from, is_dry=is_dry) as elsewhere:
        cluster_id = client.describe_cluster().cluster_id
        _show(autopilot_journal.remembered(elsewhere, cluster_id, is_dry=is_dry), output_format)


def _check_source(*, has_snapshots: bool) -> None:
    """Refuse typed options of a replay that say nothing about its source. Raises InputError."""
    context = click.get_current_context()
    others = (
        {"is_dry": "--dry-run", "bootstrap_server": "--bootstrap-server", "command_config": "--command-config",
         "state_dir": "--state-dir"} if has_snapshots else {"cluster_id": "--of"}
    )  # fmt: skip
    typed = [
        option for name, option in others.items() if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if typed:
        source = "a journal, not for --snapshots" if has_snapshots else "--snapshots, not for a journal"
        raise InputError(f"{', '.join(typed)}: only for {source}")


def _show(memory: Memory, output_format: str) -> None:
    if output_format == "json":
        print_json(_document(memory))
        return
    looked = "" if memory.looked_ms is None else f", looked at {format_time(memory.looked_ms)}"
    click.echo(f"cluster {memory.cluster_id}{looked}")
    if memory.keeper is not None and memory.keeper.journal_to is not None:
        click.echo(f"kept in {memory.keeper.journal_to}, too, by {memory.keeper.by}")
    if memory.off is not None:
        click.echo(f"off until {format_time(memory.off.until_ms)} by {memory.off.by}: {memory.off.why}")
    rows = [(str(one.name), one.state, format_time(one.since_ms), one.seen) for one in memory.open]
    console().print(text_table(names("finding", "state", "since", "seen"), rows) if rows else "there is no finding")
    acts = [
        (str(one.name), one.run_id, format_time(one.begun_ms), one.outcome or "runs", one.account)
        for one in memory.acts
    ]
    if acts:
        console().print(text_table(names("repair of", "run", "begun", "outcome", "promised, achieved"), acts))
    print_next(next_command("autopilot", "why", "POLICY", takes=TAKEN))


def _document(memory: Memory) -> dict[str, object]:
    return {
        "cluster_id": memory.cluster_id,
        "looked_ms": memory.looked_ms,
        "kept_in": None if memory.keeper is None else memory.keeper.journal_to,
        "kept_by": None if memory.keeper is None else memory.keeper.by,
        "off": None if memory.off is None else {"until_ms": memory.off.until_ms, "why": memory.off.why},
        "findings": [_row(one) for one in memory.open],
        "acts": [{**one._asdict(), "name": str(one.name), "moves": list(map(str, one.moves))} for one in memory.acts],
    }


def _row(one: Finding) -> dict[str, object]:
    return {
        "kind": one.name.kind,
        "subject": one.name.subject,
        "state": one.state,
        "since_ms": one.since_ms,
        "seen": one.seen,
        "problem": one.problem,
        "closed_gates": {} if one.gates is None else dict(one.gates.closed),
    }


@examples("kreassign autopilot off --for 4h --why 'broker upgrade'")
@autopilot.command()
@of_run_options
@state_dir_option
@click.option("--for", "for_s", type=parse_interval, required=True, metavar="TIME", help="How long, for example 4h.")
@WHY
def off(cluster: ClusterOptions, state_dir: Path, for_s: float, why: str) -> None:
    """Pause all repairs for a while.

    A repair that runs starts no further moves. The autopilot goes on watching.
    """
    _requests(cluster, state_dir).off(for_s, this_operator().name, why)
    until_ms = SYSTEM_CLOCK.now_ms() + round(for_s * 1000)
    click.echo(f"off until {format_time(until_ms)}")
    print_next(next_command("autopilot", "on", takes=TAKEN))


@examples("kreassign autopilot on")
@autopilot.command()
@of_run_options
@state_dir_option
def on(cluster: ClusterOptions, state_dir: Path) -> None:
    """Resume repairs."""
    _requests(cluster, state_dir).on(this_operator().name)
    click.echo("on, from the next look")


@examples("kreassign autopilot silence broker-gone 'broker 3' --for 24h --why 'new disk'")
@autopilot.command()
@click.argument("kind", type=click.Choice([one.value for one in Kind]))
@click.argument("subject")
@of_run_options
@state_dir_option
@click.option(
    "--for",
    "for_s",
    type=parse_duration,
    required=True,
    metavar="TIME",
    help="How long, for example 24h; 0s ends a silence.",
)
@WHY
def silence(kind: str, subject: str, cluster: ClusterOptions, state_dir: Path, for_s: float, why: str) -> None:
    """Pause what is done about one finding, by its KIND and SUBJECT as `status` shows them."""
    name = parse_name(Kind(kind), subject)
    _requests(cluster, state_dir).silence(name, for_s, this_operator().name, why)
    click.echo(f"{name} {'is silent' if for_s else 'is silent no more'}, from the next look")


@examples("kreassign autopilot approve broker-gone 'broker 3' --key ~/.ssh/id_ed25519")
@autopilot.command()
@click.argument("kind", type=click.Choice([one.value for one in Kind]))
@click.argument("subject")
@of_run_options
@state_dir_option
@key_option
@click.option("--dry-run", "is_dry", is_flag=True, help="What a dry run proposes.")
def approve(kind: str, subject: str, cluster: ClusterOptions, state_dir: Path, key: Path | None, is_dry: bool) -> None:
    """Approve the repair that is proposed for one finding, by its KIND and SUBJECT as `status` shows them.

    The proposal is signed with the key of --key. The repair begins once enough people have signed, and all gates are
    open; with any change of the cluster or of the plan the autopilot asks again.
    """
    if key is None:
        raise click.UsageError("approvals of repairs are signed; specify --key")
    name = parse_name(Kind(kind), subject)
    request = _requests(cluster, state_dir, is_dry=is_dry).approve(name, key, this_operator().user)
    for sentence in request.about:
        click.echo(sentence)
    click.echo(f"approved, until {format_time(request.expires_ms)}")
    print_next(next_command("autopilot", "why", "POLICY", takes=TAKEN))


def _requests(cluster: ClusterOptions, state_dir: Path, *, is_dry: bool = False) -> autopilot_journal.Requests:
    """Requests about the cluster that is meant, which another host may look after."""
    cluster_id, watcher = _meant(cluster, state_dir, is_dry=is_dry), partial(_watcher, cluster)
    return autopilot_journal.Requests(state_dir, cluster_id, watcher=watcher, is_dry=is_dry)


def _watcher(cluster: ClusterOptions) -> LeaseHolder | None:
    """Who looks after the cluster; where that cannot be asked, a warning says who does not hear the command."""
    why = "no address of it is known (--bootstrap-server)"
    if cluster.resolved().bootstrap_server is not None:
        try:
            with cluster.connect() as client:
                return present_holder(client, OF_AUTOPILOTS)
        except ClusterError as error:
            why = error_text(error)
    warn(f"whether another host looks after the cluster is not known, for {why}: a process there hears nothing of this")
    return None


def _meant(cluster: ClusterOptions, state_dir: Path, *, is_dry: bool = False) -> str:
    """Id of the cluster that is meant: that of the addresses, else the only one with an autopilot here."""
    return autopilot_journal.looked_after(state_dir, cluster.in_force(), is_dry=is_dry)
