"""Reads the values of flags: pairs, amounts, durations, mounts, tolerations. No I/O.

What cannot be read is refused with the flag, the value, and how it is written. Everything becomes data: no text is built from
values, so that no value can become another field of a manifest.
"""

import re
from collections.abc import Iterable

from frontend.cli import human
from frontend.cli.problems import Problem, usage

Data = dict[str, object]
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?", re.ASCII)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists")


def refused(flag: str, value: str, fault: str, hint: str) -> Problem:
    return usage(f"{flag}: {value!r} {fault}", hint)


def pairs(flag: str, texts: Iterable[str]) -> dict[str, str]:
    """``key=value`` of each text. Of several values for one key the last one counts."""
    read: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not key or not sign:
            raise refused(flag, text, "is not a key and a value", f"for example: {flag}=key=value")
        read[key] = value
    return read


def whole(flag: str, text: str, *, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or int(text) < least:
        raise refused(flag, text, f"is no whole number from {least} on", f"for example: {flag}={max(least, 1)}")
    return int(text)


def quantity(flag: str, text: str) -> str:
    """The amount as it is written. Empty means none."""
    if text and not _QUANTITY.fullmatch(text):
        raise refused(flag, text, "is not an amount", f"for example: {flag}=4 for cores, {flag}=16Gi for memory")
    return text


def quantities(flag: str, texts: Iterable[str]) -> dict[str, str]:
    """Amounts by resource: ``amd.com/gpu=1``."""
    return {name: quantity(f"{flag} {name}", amount) for name, amount in pairs(flag, texts).items()}


def seconds(flag: str, text: str) -> int:
    """A duration in whole seconds. Empty means none: 0."""
    try:
        return int(human.seconds(text)) if text else 0
    except ValueError as e:
        raise refused(flag, text, "is not a duration", f"for example: {flag}=2h22m") from e


def claims(flag: str, texts: Iterable[str]) -> dict[str, str]:
    """The mount path of each PersistentVolumeClaim: ``imagenet:/data``."""
    read: dict[str, str] = {}
    for text in texts:
        name, _, path = text.partition(":")
        if not name or not path.startswith("/"):
            raise refused(flag, text, "names no claim and mount path", f"for example: {flag}=imagenet:/data")
        if name in read:
            raise refused(flag, text, f"mounts {name} a second time", "mount it once, and use subdirectories of it")
        read[name] = path
    return read


def directories(flag: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Directories of the nodes with their mount paths: ``/data``, or ``/mnt/nas:/data``."""
    read = []
    for text in texts:
        host, sign, path = text.partition(":")
        path = path if sign else host
        if not host.startswith("/") or not path.startswith("/"):
            raise refused(flag, text, "names no directory of the nodes", f"for example: {flag}=/mnt/nas:/data")
        read.append((host, path))
    return read


def tolerations(flag: str, texts: Iterable[str]) -> list[Data]:
    """``all``, a taint's key, or ``key=value:effect,operator`` of which all but the key may be left out."""
    return [_toleration(flag, text) for text in texts]


def _toleration(flag: str, text: str) -> Data:
    hint = f"for example: {flag}=all, {flag}=gpu, {flag}=gpu=a100:NoSchedule,Equal"
    if text == "all":
        return {"operator": "Exists"}
    rest, _, operator = text.partition(",")
    taint, _, effect = rest.partition(":")
    key, sign, value = taint.partition("=")
    if not key:
        raise refused(flag, text, "names no taint", hint)
    if effect and effect not in _EFFECTS:
        raise refused(flag, text, f"has an effect that is none of {', '.join(_EFFECTS)}", hint)
    operator = operator or ("Equal" if sign else "Exists")
    if operator not in _OPERATORS:
        raise refused(flag, text, f"has an operator that is none of {', '.join(_OPERATORS)}", hint)
    if operator == "Exists" and value:
        raise refused(flag, text, "has a value, which the operator Exists does not compare", hint)
    toleration: Data = {"key": key, "operator": operator}
    if operator == "Equal":
        toleration["value"] = value
    return toleration | ({"effect": effect} if effect else {})
