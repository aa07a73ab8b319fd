"""A DAG for Apache Airflow 3: every hour a snapshot, the load and its page; every night compaction.

Samples come from `kreassign collect`, which runs all the time as a service of its own: a rate needs what was before.
Copy this file into the folder of the DAGs, and set the two addresses. Where workers do not share a disk, keep all tasks
on one of them (`queue`), for the tables are in a directory.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

PLACES = {"KREASSIGN_BOOTSTRAP_SERVER": "broker-1:9092", "KREASSIGN_DATA": "/srv/kreassign/data"}
DEFAULTS = {"retries": 2, "retry_delay": timedelta(minutes=5)}
START = pendulum.datetime(2025, 1, 1, tz="UTC")

# One run at a time: two loads of the same tables would only repeat each other's work.
with DAG("kreassign_load", schedule="@hourly", start_date=START, catchup=False, max_active_runs=1,
         default_args=DEFAULTS, tags=["kafka"]):  # fmt: skip
    snapshot = BashOperator(task_id="snapshot", bash_command="kreassign snapshot", env=PLACES, append_env=True)
    load = BashOperator(
        task_id="load",
        bash_command="kreassign load --quality --page /srv/kreassign/load.html",
        env=PLACES,
        append_env=True,
        execution_timeout=timedelta(minutes=50),
    )
    # The last line of a task's output is its XCom: other tasks can read the figures of the load there.
    figures = BashOperator(
        task_id="figures",
        bash_command="kreassign show-load --format json | tr -d '\\n'",
        env=PLACES,
        append_env=True,
    )
    snapshot >> load >> figures

with DAG("kreassign_compact", schedule="@daily", start_date=START, catchup=False, max_active_runs=1,
         default_args=DEFAULTS, tags=["kafka"]):  # fmt: skip
    BashOperator(task_id="compact", bash_command="kreassign compact --keep-days 90", env=PLACES, append_env=True)
