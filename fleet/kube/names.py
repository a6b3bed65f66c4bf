"""Checks names by the rules of Kubernetes: RFC 1123 labels and subdomains, label keys and values.

Each function returns the fault as the end of a sentence that starts with the field's name. Empty if the name is valid.
"""

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)


def label_fault(name: object) -> str:
    """Checks a namespace or another DNS label."""
    return _fault(name, _LABEL, 63, "lower-case letters, digits and '-'")


def subdomain_fault(name: object) -> str:
    """Checks a DNS subdomain, which the names of most objects are."""
    return _fault(name, _SUBDOMAIN, 253, "lower-case letters, digits, '-' and '.'")


def pair_fault(key: object, value: object) -> str:
    """Checks key and value of a label. The key is a name with an optional DNS prefix and '/'."""
    if not isinstance(key, str) or not isinstance(value, str):
        return "must be text"
    prefix, slash, name = key.rpartition("/")
    if slash and _fault(prefix, _SUBDOMAIN, 253, "") or not name or not _VALUE.fullmatch(name) or len(name) > 63:
        return f"has the key {_shown(key)}, which is not a valid label key"
    if len(value) > 63 or not _VALUE.fullmatch(value):
        return f"has the value {_shown(value)}: at most 63 letters, digits, '-', '_' and '.', ends alphanumeric"
    return ""


def _fault(name: object, syntax: re.Pattern[str], longest: int, allowed: str) -> str:
    if not isinstance(name, str) or not name:
        return "is required" if name in (None, "") else f"must be text, not {_shown(name)}"
    if len(name) > longest:
        return f"must have at most {longest} characters, not {len(name)}"
    if not syntax.fullmatch(name):
        return f"must be {allowed}, and begin and end with a letter or digit, not {_shown(name)}"
    return ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
