"""Tokens for Amazon MSK: a request signed by AWS's own library. Imported on use only: the library is an extra.

MSK brokers take the token as a bearer token (OAUTHBEARER), also where properties name the mechanism AWS_MSK_IAM of
AWS's Java library. The signature is valid for 15 minutes by AWS's clock.
"""

from __future__ import annotations

import logging
import re

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.exceptions import BotoCoreError, ClientError

from kreassign.admin.settings import MskIam
from kreassign.admin.tokens import Fetch, NoToken, Token
from kreassign.clock import Clock
from kreassign.errors import InputError, Unauthenticated

_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_LIFETIME_S = 900.0
_SESSION = "kreassign"
# At level DEBUG, AWS's libraries log what they sign, including a session token.
_TALKATIVE = ("botocore", "boto3", "urllib3")


def signed_tokens(settings: MskIam, host: str, clock: Clock) -> Fetch:
    """Return a source of tokens for the broker's region. Raises InputError if no region is set or in its host name."""
    del clock  # AWS's library reads the machine's clock.
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.INFO)
    region = settings.region or _region_of(host)

    def fetch(_timeout_s: float) -> Token:
        try:
            text = _signed(settings, region)
        except (BotoCoreError, ClientError, ValueError, AttributeError) as error:
            # The library raises AttributeError if it has no credentials at all.
            raise _failure(error) from None
        return Token.checked(text, settings, _LIFETIME_S)

    return fetch


def _region_of(host: str) -> str:
    found = _REGION.search(host)
    if found is None:
        raise InputError(
            f"the host {host} does not say its region of AWS: set awsStsRegion in sasl.jaas.config, such as us-east-1"
        )
    return found[1]


def _signed(settings: MskIam, region: str) -> str:
    if settings.role_arn is not None:
        name = settings.role_session_name or _SESSION
        signed = MSKAuthTokenProvider.generate_auth_token_from_role_arn(region, settings.role_arn, name)
    elif settings.profile is not None:
        signed = MSKAuthTokenProvider.generate_auth_token_from_profile(region, settings.profile)
    else:
        signed = MSKAuthTokenProvider.generate_auth_token(region)
    return str(signed[0])


def _failure(error: Exception) -> Unauthenticated | NoToken:
    kind = type(error).__name__
    if isinstance(error, BotoCoreError) and ("Connect" in kind or "Timeout" in kind):
        return NoToken(f"no token for Amazon MSK: AWS cannot be asked ({kind}); check the way to it")
    said = "there are no credentials of AWS" if isinstance(error, AttributeError) else f"AWS says {kind}"
    return Unauthenticated(
        f"SASL OAUTHBEARER: no token for Amazon MSK, since {said}. Check the profile, role or environment: "
        "aws sts get-caller-identity"
    )
