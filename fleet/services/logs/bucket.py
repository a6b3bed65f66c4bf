"""Kept logs as objects of a bucket in S3, or of a server that speaks like it. Knows nothing of their contents.

Silence and refusals are one error. Its message has the server's word for it, and neither the credentials nor the address:
readers of the namespace see it.
"""

import re

import urllib3
from django.utils import timezone

from fleet.core.log_bucket import LogBucket
from fleet.core.request_signature import signed_headers

_LONGEST_S = 10.0
"""Of one request; all logs of a pod are stored while its claim lasts."""
_CODE = re.compile(rb"<Code>(\w{1,64})</Code>")
_http = urllib3.PoolManager(maxsize=8)


class BucketFailed(Exception):
    """The bucket did not take, give or delete an object. The message says why."""


def write(bucket: LogBucket, name: str, content: bytes) -> None:
    _ask(bucket, "PUT", name, content)


def read(bucket: LogBucket, name: str) -> bytes | None:
    """Nothing when the bucket does not have it."""
    return _ask(bucket, "GET", name)


def delete(bucket: LogBucket, name: str) -> None:
    """Also of what is not there."""
    _ask(bucket, "DELETE", name)


def _ask(bucket: LogBucket, method: str, name: str, body: bytes = b"") -> bytes | None:
    url = bucket.address(name)
    type_of_body = {"Content-Type": "application/octet-stream"} if method == "PUT" else {}
    headers = signed_headers(method, url, body, type_of_body, bucket.credentials, timezone.now())
    try:
        answer = _http.request(
            method,
            url,
            body=body or None,
            headers=headers,
            timeout=urllib3.Timeout(total=_LONGEST_S),
            redirect=False,
            retries=False,
        )
    except urllib3.exceptions.HTTPError as e:
        raise BucketFailed(f"the bucket does not answer ({type(e).__name__}); see CONVOY_LOGS_S3") from e
    if 200 <= answer.status < 300:
        return answer.data
    code = _CODE.search(answer.data[:4096])
    word = code.group(1).decode() if code else ""
    if answer.status == 404 and word != "NoSuchBucket" and method != "PUT":
        return None
    raise BucketFailed(f"the bucket answered {answer.status} {word}".rstrip() + "; see CONVOY_LOGS_S3")
