"""Sentences of checks on a plan, one per rule, so that tests name the rule and the facts of their case."""

from __future__ import annotations

SENTENCES = {
    # Replicas of partition {} of topic t
    "named twice": "t-{}: broker {} is named more than once",
    "not of the broker set": "t-{}: broker {} is not of the broker set of the partition",
    "gets a copy": "t-{}: broker {} gets a copy but {}",
    "moves between brokers": "t-{}: broker {} gets a copy, but nothing may go from broker to broker",
    "changes its directory": "t-{}: broker {} changes its log directory, which is not allowed",
    "may not lead": "t-{}: broker {} would lead, but may not",
    "still has a copy": "t-{}: broker {} still has a copy, but is to have none",
    "has lost its copy": "t-{}: broker {} has lost its copy, but is to have one",
    "no such directory": "t-{}: broker {} has no log directory {}",
    "closed directory": "t-{}: broker {} gets a copy in {}, which may receive nothing",
    "drained directory": "t-{}: broker {} still has its copy in {}, to be drained",
    "leaves a directory": "t-{}: broker {} leaves {} without need",
    # Partitions
    "must not move": "t-{} must stay (to stay); plan without that",
    "crowds a rack": "t-{} has more replicas in one rack than before",
    "still crowds a rack": "t-{} still has too many replicas in one rack",
    "moves without need": "t-{} goes from broker {} to {} without need",
    "leads without need": "t-{} changes its leader without need",
    "ordered without need": "t-{} has its replicas in another order without need",
    "no copy to read": "t-{} stays on broker {} (no live broker has a copy to replicate from); start a broker that "
    "has one, or delete the topic if its data may be lost, then plan again",
    "keeps its factor": "t-{} keeps {}, not {} (to stay); plan without that",
    # Brokers
    "over a limit": "{} rises to {}, {} above its limit of {}",
    "few leaders of a topic": "broker {} leads {} of topic {}, not {}",
    "few partitions to lead": "broker {} leads 0 partitions of topic {}, not 1; topic {} has {}, {} too few for 1 "
    "leader on each of {} brokers",
    "over the budget": "the budget of {} allows {}, the plan has {}",
    # Topics
    "uneven replicas": "topic {}: broker {} holds {} replicas, its share is {}",
    "uneven leaders": "topic {}: broker {} leads {} partitions, its share is {}",
    "no replica in the racks": "topic {}: {} partitions have no replica in rack {} that may lead",
    "leads from another rack": "topic {}: {} partitions do not lead from the first of rack {} that has a replica: they "
    "must not change, or a limit or the budget is in the way",
    # Losses
    "limit after a loss": "if {} is lost, broker {} has {}, its limit is then {}",
    "offline after a loss": "if {} is lost, {} partitions have no replica left",
    # Directories
    "full directory": "log directory {} of broker {} holds {} of what it may, {}",
}
"""Facts stand in the order in which they are said: partition, broker, amounts."""


def says(rule: str, *facts: object) -> str:
    """Fill the facts of a case into the sentence of a rule."""
    sentence = SENTENCES[rule]
    assert sentence.count("{}") == len(facts), sentence
    return sentence.format(*facts)
