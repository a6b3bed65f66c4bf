"""Decodes the few messages that kubectl always sends as protobuf: small core kinds that it creates itself, and reviews.

Only the fields listed here are decoded. A message with any other field is refused, so that no data is lost silently. Responses
are JSON, which these commands accept.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fleet.kube.requests.status import KubeError

MAGIC = b"k8s\x00"

Value = int | bytes
Reader = Callable[[list[Value]], Any]
"""Decodes all values of one field, in their order."""
Fields = Mapping[int, tuple[str, Reader]]


def document(raw: bytes) -> dict[str, Any]:
    """The object in the envelope."""
    try:
        envelope = _grouped(raw[len(MAGIC) :])
        head = _message(_HEAD)(envelope.get(1, [b""]))
        fields = _KNOWN.get((head.get("apiVersion", ""), head.get("kind", "")))
        if fields is None:
            kind = f"{head.get('apiVersion', '')} {head.get('kind', '')}"
            raise KubeError(415, f"{kind} is not read as protobuf here: write a manifest and apply it")
        return {**head, **_message(fields)(envelope.get(2, [b""]))}
    except (IndexError, UnicodeDecodeError, TypeError) as e:
        raise KubeError(400, "the body is not a valid Kubernetes protobuf message") from e


def _grouped(message: bytes) -> dict[int, list[Value]]:
    grouped: dict[int, list[Value]] = {}
    for number, value in _parts(message):
        grouped.setdefault(number, []).append(value)
    return grouped


def _message(fields: Fields) -> Reader:
    """A decoder of one message. Empty fields are omitted. Duplicate messages are refused, because a server would merge them."""

    def read(values: list[Value]) -> dict[str, Any]:
        if len(values) > 1:
            raise KubeError(400, "a part of the object is duplicated")
        document: dict[str, Any] = {}
        for number, inner in _grouped(bytes(_bytes(values[-1]))).items():
            if number in fields:
                name, reader = fields[number]
                if (value := reader(inner)) not in ("", {}, False):
                    document[name] = value
            elif any(inner):
                raise KubeError(415, f"field {number} is not read as protobuf here: write a manifest and apply it")
        return document

    return read


def _text(values: list[Value]) -> str:
    return _bytes(values[-1]).decode()


def _encoded(values: list[Value]) -> str:
    return base64.b64encode(_bytes(values[-1])).decode()


def _truth(values: list[Value]) -> bool:
    return bool(values[-1])


def _number(values: list[Value]) -> int:
    value = values[-1]
    if not isinstance(value, int):
        raise TypeError(value)
    return value - (1 << 64) if value >> 63 else value


def _each(reader: Reader) -> Reader:
    """A decoder of a list with one value for each entry."""
    return lambda values: [reader([value]) for value in values]


def _either(values: list[Value]) -> int | str:
    """A port by number or by name, as the message's first field says."""
    parts = _grouped(_bytes(values[-1]))
    return _text(parts.get(3, [b""])) if any(parts.get(1, [0])) else _number(parts.get(2, [0]))


def _unread(values: list[Value]) -> str:
    """Ignores the status, which only the server sets."""
    return ""


def _entries(reader: Reader) -> Reader:
    """A decoder of a map with one message of key and value for each entry."""

    def read(values: list[Value]) -> dict[str, Any]:
        pairs = [_grouped(_bytes(value)) for value in values]
        return {_text(pair.get(1, [b""])): reader(pair.get(2, [b""])) for pair in pairs}

    return read


def _texts(*names: str) -> Fields:
    """Text fields with the numbers 1, 2, ..."""
    return {number: (name, _text) for number, name in enumerate(names, 1)}


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise TypeError(value)
    return value


def _parts(message: bytes) -> Iterator[tuple[int, Value]]:
    """The field numbers and raw values of one message, in their order."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag & 7 == 0:
            number, position = _varint(message, position)
            yield tag >> 3, number
            continue
        if tag & 7 != 2:
            raise IndexError(position)
        size, position = _varint(message, position)
        if position + size > len(message):
            raise IndexError(position)
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = message[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


_HEAD = _texts("apiVersion", "kind")
_METADATA: Fields = {
    1: ("name", _text),
    3: ("namespace", _text),
    11: ("labels", _entries(_text)),
    12: ("annotations", _entries(_text)),
}
_ENV: Fields = _texts("name", "value")
_PORT: Fields = {1: ("name", _text), 2: ("hostPort", _number), 3: ("containerPort", _number), 4: ("protocol", _text)}
_CONTAINER: Fields = {
    1: ("name", _text),
    2: ("image", _text),
    3: ("command", _each(_text)),
    4: ("args", _each(_text)),
    5: ("workingDir", _text),
    6: ("ports", _each(_message(_PORT))),
    7: ("env", _each(_message(_ENV))),
    8: ("resources", _message({})),
    13: ("terminationMessagePath", _text),
    14: ("imagePullPolicy", _text),
    20: ("terminationMessagePolicy", _text),
}
_POD: Fields = {
    2: ("containers", _each(_message(_CONTAINER))),
    3: ("restartPolicy", _text),
    4: ("terminationGracePeriodSeconds", _number),
    5: ("activeDeadlineSeconds", _number),
    6: ("dnsPolicy", _text),
    7: ("nodeSelector", _entries(_text)),
    8: ("serviceAccountName", _text),
    10: ("nodeName", _text),
    19: ("schedulerName", _text),
}
_JOB: Fields = {
    1: ("parallelism", _number),
    2: ("completions", _number),
    3: ("activeDeadlineSeconds", _number),
    6: ("template", _message({1: ("metadata", _message(_METADATA)), 2: ("spec", _message(_POD))})),
    7: ("backoffLimit", _number),
    8: ("ttlSecondsAfterFinished", _number),
    9: ("completionMode", _text),
    10: ("suspend", _truth),
}
_TEMPLATE = _message({1: ("metadata", _message(_METADATA)), 2: ("spec", _message(_POD))})
_SELECTOR = _message({1: ("matchLabels", _entries(_text))})
_DEPLOYMENT: Fields = {
    1: ("replicas", _number),
    2: ("selector", _SELECTOR),
    3: ("template", _TEMPLATE),
    4: ("strategy", _message({1: ("type", _text)})),
}
_CRON_JOB: Fields = {
    1: ("schedule", _text),
    3: ("concurrencyPolicy", _text),
    4: ("suspend", _truth),
    5: ("jobTemplate", _message({1: ("metadata", _message(_METADATA)), 2: ("spec", _message(_JOB))})),
}
_SERVICE_PORT: Fields = {
    1: ("name", _text),
    2: ("protocol", _text),
    3: ("port", _number),
    4: ("targetPort", _either),
    5: ("nodePort", _number),
    6: ("appProtocol", _text),
}
_SERVICE: Fields = {
    1: ("ports", _each(_message(_SERVICE_PORT))),
    2: ("selector", _entries(_text)),
    3: ("clusterIP", _text),
    4: ("type", _text),
    7: ("sessionAffinity", _text),
    10: ("externalName", _text),
}
_DELETION: Fields = {
    1: ("gracePeriodSeconds", _number),
    2: ("preconditions", _message(_texts("uid", "resourceVersion"))),
    3: ("orphanDependents", _truth),
    4: ("propagationPolicy", _text),
    5: ("dryRun", _each(_text)),
}
_NAMED: Fields = {1: ("metadata", _message(_METADATA))}
_ASKING: Fields = {**_NAMED, 3: ("status", _unread)}
_ASKED = _texts("namespace", "verb", "group", "version", "resource", "subresource", "name")
_ACCESS: Fields = {
    1: ("resourceAttributes", _message(_ASKED)),
    2: ("nonResourceAttributes", _message(_texts("path", "verb"))),
}
_KNOWN: Mapping[tuple[str, str], Fields] = {
    ("v1", "ConfigMap"): {
        **_NAMED,
        2: ("data", _entries(_text)),
        3: ("binaryData", _entries(_encoded)),
        4: ("immutable", _truth),
    },
    ("v1", "Secret"): {
        **_NAMED,
        2: ("data", _entries(_encoded)),
        3: ("type", _text),
        4: ("stringData", _entries(_text)),
        5: ("immutable", _truth),
    },
    ("v1", "ServiceAccount"): _NAMED,
    ("v1", "Namespace"): {**_ASKING, 2: ("spec", _message({1: ("finalizers", _each(_text))}))},
    ("v1", "Service"): {**_ASKING, 2: ("spec", _message(_SERVICE))},
    ("batch/v1", "Job"): {**_ASKING, 2: ("spec", _message(_JOB))},
    ("batch/v1", "CronJob"): {**_ASKING, 2: ("spec", _message(_CRON_JOB))},
    ("apps/v1", "Deployment"): {**_ASKING, 2: ("spec", _message(_DEPLOYMENT))},
    ("scheduling.k8s.io/v1", "PriorityClass"): {
        **_NAMED,
        2: ("value", _number),
        3: ("globalDefault", _truth),
        4: ("description", _text),
        5: ("preemptionPolicy", _text),
    },
    **{(version, "DeleteOptions"): _DELETION for version in ("v1", "batch/v1", "meta.k8s.io/v1")},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {**_ASKING, 2: ("spec", _message(_ACCESS))},
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {1: ("metadata", _message(_METADATA)), 2: ("status", _unread)},
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {
        **_ASKING,
        2: ("spec", _message(_texts("namespace"))),
    },
}
