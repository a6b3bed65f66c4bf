"""Settings of the operator: frozen dataclasses whose fields state their environment variable, unit, bounds and meaning.

The composition root reads each class once from the environment (`read`) and hands the values down; nothing below reads the
environment. `docs/operations.md` is checked against the same fields (`table`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")


class SettingInvalid(ValueError):
    """A value that makes no sense; the text names the variable, its value and the remedy."""


@dataclass(frozen=True, slots=True)
class Spec:
    env: str
    help: str
    """What it does, with its unit."""
    least: float
    most: float
    or_off: bool = False
    """Whether it may also be 0, which is less than the least."""


def setting(
    default: float | bool, env: str, help_text: str, *, least: float = 0, most: float = math.inf, or_off: bool = False
) -> Any:
    """A field of a settings class, read from ``env``; its type is that of ``default``."""
    return field(default=default, metadata={"spec": Spec(env, help_text, least, most, or_off)})


def read_settings(cls: type[T], environ: Mapping[str, str]) -> T:
    """The settings as the environment has them. Raises `SettingInvalid` with one sentence for each bad value."""
    values: dict[str, float | bool] = {}
    faults: list[str] = []
    for known in _specs(cls):
        spec, text = known.metadata["spec"], environ.get(known.metadata["spec"].env, "")
        if not text.strip():
            continue
        value = _value(text.strip(), known.default)
        if value is None or not (spec.least <= value <= spec.most or (spec.or_off and value == 0)):
            faults.append(f"{spec.env}={text!r} is not {_expected(known)}: correct it, or unset it for {known.default}")
        else:
            values[known.name] = value
    if faults:
        raise SettingInvalid("; ".join(faults))
    return cls(**values)


def table(classes: Iterable[type]) -> list[str]:
    """Rows of the documentation: variable, default, bounds and meaning of every setting."""
    return [
        f"| `{spec.env}` | {_shown(known.default)} | {_range(known)} | {spec.help} |"
        for cls in classes
        for known in _specs(cls)
        for spec in [known.metadata["spec"]]
    ]


def names(classes: Iterable[type]) -> set[str]:
    return {known.metadata["spec"].env for cls in classes for known in _specs(cls)}


def _specs(cls: type) -> list[Field[Any]]:
    return [known for known in fields(cls) if "spec" in known.metadata]


def _value(text: str, default: Any) -> float | bool | None:
    if isinstance(default, bool):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    try:
        number = int(text) if isinstance(default, int) else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _expected(known: Field[Any]) -> str:
    kind = "a whole number " if isinstance(known.default, int) else "a number "
    return _range(known) if isinstance(known.default, bool) else kind + _range(known)


def _range(known: Field[Any]) -> str:
    spec: Spec = known.metadata["spec"]
    if isinstance(known.default, bool):
        return "true or false"
    if math.isinf(spec.most):
        return f"from {_shown(spec.least)}"
    return f"from {_shown(spec.least)} to {_shown(spec.most)}{', or 0' if spec.or_off else ''}"


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.15g}"
