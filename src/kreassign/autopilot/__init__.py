"""When a cluster is to be changed: observe → findings → decide → act, as values and tables. Pure.

Key files: `policy` (what operators allow), `observation` (the cluster at one time, unknown included), `detectors` (what
is wrong, by kind; of slow ones in `slow_brokers`), `symptoms` (what detectors return), `events` (the journal, and
states of a finding), `gates` (why not now), `core` (a tick).
`operations/autopilot.py` reads clusters, plans and runs for it: the autopilot decides when, they know how.
"""
