import pytest

from kreassign.errors import InputError
from kreassign.model.plan_facts import RackPrices
from kreassign.planner import Band, RackRule, solve
from kreassign.planner.goals import DISK, GOALS, LEADERS, REPLICAS
from kreassign.planner.problem.goals_file import parse_band, parse_goals, parse_policy
from kreassign.planner.problem.policy import BrokerSet, PlanPolicy
from tests.planner.small_problems import brokers, partition, posed

WHOLE = """
racks = "strict"
tolerance = 5
disk-reserve = 20
reads-per-write = 3
excluded-topics = ["__.*"]
excluded-brokers = [9]

[[goals]]
name = "disk"

[[goals]]
name = "leaders"
tolerance = 15
weight = 2

[[goals]]
name = "replicas"
tolerance = "any"

[capacity]
disk = "2TB"
net-in = "100 MB/s"
replicas = 4000

[broker-capacity.7]
disk = "4TB"
cores = 16

[shares]
7 = 2

[broker-sets.payments]
brokers = [1, 2, 3]
topics = ["pay.*"]

[least-topic-leaders]
orders = 2
"""


def test_every_key_is_read() -> None:
    assert parse_policy(WHOLE) == PlanPolicy(
        bands=(Band(DISK, 0.05, 2.0), Band(LEADERS, 0.15, 2.0), Band(REPLICAS, None)),
        racks=RackRule.STRICT,
        capacity={"disk": 2e12, "net-in": 1e8, "replicas": 4000.0},
        broker_capacity={7: {"disk": 4e12, "cores": 16.0}},
        shares={7: 2.0},
        broker_sets=(BrokerSet("payments", (1, 2, 3), ("pay.*",)),),
        least_topic_leaders={"orders": 2},
        excluded_topics=("__.*",),
        excluded_brokers=(9,),
        disk_reserve=0.2,
        reads_per_write=3.0,
    )


def test_racks_of_brokers_are_read() -> None:
    assert parse_policy("[broker-racks]\n7 = 'a'\n12 = 'b'").broker_racks == {7: "a", 12: "b"}


def test_prices_of_racks_are_read() -> None:
    text = "[rack-prices]\nbetween = 0.01\n'a:b' = 0.02"
    assert parse_policy(text).rack_prices == RackPrices(0.01, {("a", "b"): 0.02})
    for wrong in ("a = 1", "'a:' = 1", "'a:b' = -1", "between = 'x'"):
        with pytest.raises(InputError, match="rack-prices"):
            parse_policy(f"[rack-prices]\n{wrong}")


def test_racks_of_leaders_are_read() -> None:
    text = "[leader-racks]\n'orders.*' = ['a', 'b']"
    assert parse_policy(text).leader_racks == {"orders.*": ("a", "b")}
    for wrong in ("[]", "['a', 'a']", "'a'", "[1]"):
        with pytest.raises(InputError, match=r"leader-racks\.t must "):
            parse_policy(f"[leader-racks]\nt = {wrong}")


def test_an_empty_file_is_the_default_policy() -> None:
    assert parse_policy("") == PlanPolicy()


def test_a_tolerance_alone_is_that_of_all_goals() -> None:
    assert parse_policy("tolerance = 3").bands == tuple(Band(goal, 0.03) for goal in GOALS)


def test_a_tolerance_from_outside_is_for_goals_that_state_none() -> None:
    goals = ("name = 'disk'\ntolerance = 3", "name = 'cpu'\ntolerance = 'any'", "name = 'leaders'", "name = 'failover'")
    text = "tolerance = 7\n" + "".join(f"[[goals]]\n{goal}\n" for goal in goals)
    found = parse_policy(text, 0.2)
    assert [band.tolerance for band in found.bands] == [0.03, None, 0.2]
    assert found.failover == 0.2
    assert {band.tolerance for band in parse_policy("tolerance = 7", 0.2).bands} == {0.2}


@pytest.mark.parametrize(("text", "words"), [
    ("goals = [[3\n", "not TOML: "),
    ("goal = 3", "unknown key 'goal'; known are goals, racks"),
    ("goals = 3", "goals must be an array of tables"),
    ("[[goals]]\nnam = 'disk'", "goals: unknown key 'nam'"),
    ("[[goals]]\nweight = 1", "every goal needs a name"),
    ("[[goals]]\nname = 'dsk'", "there is no goal 'dsk'; there are disk, .*, topic-spread, topic-leaders, failover"),
    ("[[goals]]\nname = 'disk'\ntolerance = 'wide'", "goal disk: tolerance: 'wide' is not a number"),
    ("[[goals]]\nname = 'disk'\n[[goals]]\nname = 'disk'", "goal disk is named more than once"),
    ("[[goals]]\nname = 'failover'\n[[goals]]\nname = 'failover'", "goal failover is named more than once"),
    ("[[goals]]\nname = 'topic-spread'\ntolerance = 1e300", "goal topic-spread: a tolerance of 1e.298 is not"),
    ("[[goals]]\nname = 'disk'\nweight = 0", "goal disk: a weight of 0 is not from 0.001 to 1,000,000"),
    ("goals = []", "goals: none is named"),
    ("tolerance = -1", "tolerance: -1 is not a number of 0 or more"),
    ("racks = 'odd'", "racks: 'odd' is none of strict, even, none"),
    ("[capacity]\ndisk = '2 bananas'", "capacity.disk: '2 bananas' is not an amount"),
    ("[capacity]\ndisc = 3", "there is no goal 'disc'"),
    ("[capacity]\ndisk = 1e308", r"capacity.disk: 1e.308 is too large; the largest is \d+ \(2.63 - 1\)"),
    ("[capacity]\ncores = 0", "capacity.cores: a broker has some"),
    ("[broker-capacity.7]\ncores = 'many'", "broker-capacity.7.cores: 'many' is not an amount"),
    ("[broker-capacity.1]\ndisk = '1TB'\n[broker-capacity.01]\ndisk = '2TB'",
     "broker-capacity: 1 and 01 are one broker; write it once"),
    ("[shares]\n1 = 2\n001 = 3", "shares: 1 and 001 are one broker; write it once"),
    ("[broker-racks]\n1 = 'a'\n01 = 'b'", "broker-racks: 1 and 01 are one broker; write it once"),
    ("[least-topic-leaders]\norders = 1.5", "least-topic-leaders.orders: 1.5 is not a whole number"),
    ("[least-topic-leaders]\norders = 1e300", "least-topic-leaders.orders: 1e.300 is not a whole number"),
    ("[broker-sets.a]\nbrokers = []\ntopics = ['x']", "broker-sets.a.brokers names no broker"),
    ("[broker-sets.a]\nbrokers = [1]\ntopics = ['(']", "broker-sets.a.topics: '.' is not a regular expression"),
    ("excluded-topics = ['(']", "excluded-topics: '.' is not a regular expression"),
    ("[leader-racks]\n'(' = ['a']", "leader-racks: '.' is not a regular expression"),
    ("[consumer-racks]\n'(' = { a = 1 }", "consumer-racks: '.' is not a regular expression"),
    ("tolerance = 1e308", "goal disk: a tolerance of 1e.306 is not from 0 to 100"),
    ("capacity = 3", "capacity must be a table"),
    ("[shares]\nbig = 2", "shares: 'big' is not the id of a broker"),
    ("[broker-sets.a]\ntopics = ['x']", "broker-sets.a.brokers must be an array of broker ids"),
    ("[broker-sets.a]\nbrokers = [1]\ntopics = 'x'", "broker-sets.a.topics must be an array of texts"),
    ("[broker-sets.a]\nbrokers = [1]\ntopics = ['x']\nracks = 1", "broker-sets.a: unknown key 'racks'"),
    (
        "[broker-sets.a]\nbrokers = [1]\ntopics = ['x']\n[broker-sets.b]\nbrokers = [2, 1]\ntopics = ['y']",
        "broker-sets: broker 1 is in a and in b: put it into one",
    ),
    ("disk-reserve = 150", "disk-reserve: 150 is not below 100"),
    ("[broker-racks]\nbig = 'a'", "broker-racks: 'big' is not the id of a broker"),
    ("[broker-racks]\n7 = 3", "broker-racks.7 must be the name of a rack"),
    ("disk-reserve = true", "disk-reserve: true is not a number"),
    ("disk-reserve = 07:00:00", "disk-reserve: 07:00:00 is not a number"),
    ("racks = [2027-01-31, true]", r"racks: \[2027-01-31, true\] is none of"),
    ("tolerance = inf", "tolerance: inf is not a number of 0 or more"),
    ("[[goals]]\nname = 'disk'\nweight = nan", "goal disk: weight: nan is not a number of 0 or more"),
])  # fmt: skip
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_policy(text)


@pytest.mark.parametrize(("text", "band"), [
    ("disk", Band(DISK, 0.1)),
    ("disk=5", Band(DISK, 0.05)),
    ("disk=5x2", Band(DISK, 0.05, 2.0)),
    ("disk=anyx3", Band(DISK, None, 3.0)),
])  # fmt: skip
def test_goals_of_flags(text: str, band: Band) -> None:
    assert parse_band(text, 0.1) == band


@pytest.mark.parametrize("text", [
    "disk=", "disk=wide", "disk=5xheavy", "disk=nan", "disk=infx2", "disk=5xnan", "topic-spread=inf", "failover=inf",
    "topic-leaders=x",
])  # fmt: skip
def test_a_goal_that_cannot_be_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=f"^'{text}' is not a goal; write for example"):
        parse_goals((text,), 0.1)


@pytest.mark.parametrize("weight", ["0", "-1", "1e-9", "1e300"])
def test_a_weight_that_the_search_cannot_use_is_refused(weight: str) -> None:
    with pytest.raises(InputError, match=r"goal disk: a weight of .* is not from 0.001 to 1,000,000"):
        parse_band(f"disk=10x{weight}", 0.1)


@pytest.mark.parametrize("name", ["disk", "topic-spread"])
def test_a_goal_named_twice_by_flags_is_refused(name: str) -> None:
    for again in (name, f"{name}=1"):
        with pytest.raises(InputError, match=f"goal {name} is named more than once"):
            parse_goals((name, again), 0.1)


@pytest.mark.parametrize("width", ["-1", "1e300"])
def test_a_tolerance_of_topics_that_means_nothing_is_refused(width: str) -> None:
    with pytest.raises(InputError, match=r"goal topic-spread: a tolerance of .* is not from 0 to 100"):
        parse_goals((f"topic-spread={width}",), 0.1)


@pytest.mark.parametrize(("goals", "alone"), [(("disk", "net-in"), 0), (("net-in", "disk"), 1)])
def test_where_not_all_bands_can_be_met_the_first_goal_is(goals: tuple[str, str], alone: int) -> None:
    loads = [(2, 1.0), (1, 2.0), (1, 1.0)]  # whichever of the first two is alone, the other resource is uneven
    parts = [partition(number, 1, gigabytes=size, write_bytes_per_s=rate) for number, (size, rate) in enumerate(loads)]
    bands = parse_goals(goals, 0.1).bands
    lists = solve(posed(brokers(1, 2), parts, bands=bands)).assignment.lists()
    assert [lists.count(one) == 1 for one in lists] == [number == alone for number in range(3)]
    text = "".join(f"[[goals]]\nname = '{goal}'\n" for goal in goals)
    assert parse_policy(text).bands == bands


def test_three_goals_weigh_two_to_one() -> None:
    bands = parse_goals(("disk", "cpu=5x7", "leaders"), 0.1).bands
    assert [band.weight for band in bands] == [2.0, 7.0, 1.0]
