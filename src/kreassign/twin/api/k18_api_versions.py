"""ApiVersions: which APIs in which versions a node offers, and the features of its cluster.

Versions: 0-3 on 3.7; 0-4 on 3.9, 4.2, 4.3.
Permission: none; answered before a client is authenticated too.

Behaviour:
- A version that is not offered gets an answer in version 0 with UNSUPPORTED_VERSION and the range of this API alone.
- Only APIs that the twin has are listed.
- A client that names its software with other than letters, digits, dots and dashes gets INVALID_REQUEST.

Left out:
- Features of 3.7 and 3.9 other than metadata.version.
"""

from __future__ import annotations

import re

from kreassign.model.error_codes import INVALID_REQUEST
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FEATURES_EPOCH = 1


def _handle(request: Request) -> Message:
    response = api.API_VERSIONS.response
    if request.version >= 3 and not _is_named_properly(request.message):
        return response(error_code=INVALID_REQUEST, api_keys=[])
    release = request.cluster.version
    return response(
        api_keys=[
            response.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in release.all_versions(request.node.endpoint).items()
        ],
        supported_features=[
            response.SupportedFeatureKey(name=feature.name, min_version=feature.low, max_version=feature.high)
            for feature in release.features
            # Clients before version 4 take a lowest level of 0 for an error.
            if feature.low > 0 or request.version >= 4
        ],
        finalized_features_epoch=_FEATURES_EPOCH,
        finalized_features=[
            response.FinalizedFeatureKey(
                name=feature.name, max_version_level=feature.finalized, min_version_level=feature.finalized
            )
            for feature in release.features
            if feature.finalized > 0
        ],
    )


def _is_named_properly(message: Message) -> bool:
    names = (message.client_software_name, message.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)


HANDLERS = (Handler(api.API_VERSIONS, _handle),)
