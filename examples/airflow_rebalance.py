"""Two DAGs for Apache Airflow 3: a check every night, and every week a plan that waits for approval and runs.

The plan is made from a snapshot, rehearsed on a simulated cluster, and shown on a page. Whoever has looked at it lets
it run with `kreassign approve plan.json` in the folder; until then a task tries again and again, and after two days it
gives up. All tasks need that folder: where workers do not share a disk, keep them on one of them (`queue`).
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

FOLDER = "/srv/kreassign/weekly"
PLACES = {
    "KREASSIGN_BOOTSTRAP_SERVER": "broker-1:9092",
    "KREASSIGN_STATE_DIR": "/srv/kreassign/state",
    "KREASSIGN_THROTTLE": "50MB/s",
}
START = pendulum.datetime(2025, 1, 1, tz="UTC")
HERE = {"env": PLACES, "append_env": True, "cwd": FOLDER}

with DAG("kreassign_check", schedule="@daily", start_date=START, catchup=False, tags=["kafka"]):
    # The log of a failed task says how the cluster drifts, partition by partition.
    BashOperator(task_id="check", bash_command="kreassign plan check placement.json", **HERE)

with DAG("kreassign_weekly", schedule="@weekly", start_date=START, catchup=False, max_active_runs=1, tags=["kafka"]):
    snapshot = BashOperator(task_id="snapshot", bash_command="kreassign snapshot --out cluster.json.gz", **HERE)
    plan = BashOperator(
        task_id="plan",
        bash_command="kreassign plan rebalance --snapshot cluster.json.gz --out plan.json --current-out before.json",
        **HERE,
    )
    rehearse = BashOperator(
        task_id="rehearse", bash_command="kreassign rehearse plan.json --snapshot cluster.json.gz", **HERE
    )
    page = BashOperator(task_id="page", bash_command="kreassign report --plan plan.json --out plan.html", **HERE)
    # Every five minutes for two days.
    approved = BashOperator(
        task_id="approved",
        bash_command="kreassign run plan.json --require-approval --expect-current before.json --dry-run",
        retries=576,
        retry_delay=timedelta(minutes=5),
        **HERE,
    )
    # A task that was killed leaves its run to be resumed; Airflow's next attempt does that.
    run = BashOperator(
        task_id="run",
        bash_command="kreassign run plan.json --require-approval --expect-current before.json --yes || "
        "kreassign resume last",
        retries=3,
        retry_delay=timedelta(minutes=5),
        execution_timeout=timedelta(hours=20),
        **HERE,
    )
    declare = BashOperator(task_id="declare", bash_command="kreassign plan check placement.json --update", **HERE)
    snapshot >> plan >> rehearse >> page >> approved >> run >> declare
