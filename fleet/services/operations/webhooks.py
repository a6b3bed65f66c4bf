"""Calls a webhook of the operator with a JSON document, signed so that the receiver knows who sent it and when."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import urllib3

from fleet.core.security.webhooks import Webhook, signature

_TIMEOUT_S = 5.0


class NotTaken(Exception):
    """The message says why; the call may be made again."""


def call(webhook: Webhook, document: Mapping[str, Any], now: datetime) -> None:
    """Raises NotTaken. Call it outside of a transaction.

    The signature is the HMAC-SHA256 of the time, a full stop and the body, as ``sha256=HEX``.
    """
    body, at = json.dumps(document).encode(), str(int(now.timestamp()))
    headers = {"Content-Type": "application/json", "X-Convoy-Timestamp": at}
    headers["X-Convoy-Signature"] = f"sha256={signature(webhook.secret, at, body)}"
    try:
        answer = _http.request(
            "POST", webhook.url, body=body, headers=headers, timeout=_TIMEOUT_S, redirect=False, retries=False
        )
    except (OSError, urllib3.exceptions.HTTPError) as e:
        raise NotTaken(f"the webhook cannot be reached: {e}"[:300]) from e
    if not 200 <= answer.status < 300:
        raise NotTaken(f"the webhook answered {answer.status}")


_http = urllib3.PoolManager(maxsize=1)
