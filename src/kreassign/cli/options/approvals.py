"""Options of approvals: those that a run needs (`approval: ApprovalOptions`), and the key of who signs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click

from kreassign.cli.options.values import INPUT_FILE, WholeRange, option_group
from kreassign.model.approvals import ApprovalRule
from kreassign.operations.approvals import MOST_SIGNATURES, SignedApprovals, check_signers
from kreassign.operations.plan_files import PlanFile, request_path, require_approval

key_option = click.option(
    "--key",
    type=INPUT_FILE,
    help="Sign with this key by `ssh-keygen`; a public key is for one that an agent has.  [default: no signature]",
)
"""Parameter `key: Path | None`."""


class ApprovalOptions(NamedTuple):
    """Approval rules of a run: if it needs any, who may sign (None: no signature needed), and how many must."""

    is_required: bool
    allowed_signers: Path | None
    least: int

    def refuse_unapproved(self, plan: Path, file: PlanFile) -> None:
        """Raise InputError if the approval without signature that a run needs is lacking.

        Signed ones are checked with the cluster.
        """
        if self.is_required and self.allowed_signers is None:
            require_approval(plan, file)

    def signed(self, plan: Path) -> SignedApprovals | None:
        """The signed approvals that the run of a plan needs; None if none are. Raises InputError without a signer."""
        if self.allowed_signers is None:
            return None
        check_signers(self.allowed_signers)
        return SignedApprovals(request_path(plan), self.allowed_signers, ApprovalRule(self.least))


def read_approval(require_approval: bool, allowed_signers: Path | None, least: int | None) -> ApprovalOptions:
    """Build ApprovalOptions. Raises click.UsageError for options of signed approvals without --require-approval."""
    if allowed_signers is None and least is not None:
        raise click.UsageError("only signed approvals are counted; specify --allowed-signers too")
    if allowed_signers is not None and not require_approval:
        raise click.UsageError("signers are for --require-approval; specify it too, or leave them out")
    return ApprovalOptions(require_approval, allowed_signers, least or 1)


approval_options = option_group(
    "approval",
    (
        click.option(
            "--require-approval",
            is_flag=True,
            help="Run only if the plan, as it is now, was approved (`kreassign approve`).",
        ),
        click.option(
            "--allowed-signers",
            type=INPUT_FILE,
            help="With --require-approval: count approvals that are signed by keys of FILE, in the format of "
            "`ssh-keygen`, not by the proposer, in the last 24 hours, for this plan and cluster as they are.  "
            "[default: one approval without signature]",
        ),
        click.option(
            "--approvals",
            "least",
            type=WholeRange(min=1, max=MOST_SIGNATURES),
            help="With --allowed-signers: how many people must approve.  [default: 1]",
        ),
    ),
    read_approval,
)
"""Add `--require-approval`, `--allowed-signers` and `--approvals`: keyword `approval: ApprovalOptions`."""
