"""Applies the short times of `settings.CONSTANTS`, and a clock that can be wrong, to the imported product."""

import importlib
from datetime import datetime, timedelta
from typing import Any

from tests.faults.engine.settings import CALL_S, CONSTANTS, COOL_OFF_S
from tests.faults.engine.steps import Switchboard


def shorten() -> None:
    for place, value in CONSTANTS.items():
        module, _, path = place.partition(":")
        *classes, name = path.split(".")
        owner: Any = importlib.import_module(module)
        for part in classes:
            owner = getattr(owner, part)
        getattr(owner, name)
        setattr(owner, name, value)
    _shorten_calls()
    _shorten_cool_offs()


def _shorten_calls() -> None:
    from fleet.services.members import member_clients

    for function in (member_clients.client, member_clients.connect):
        assert function.__kwdefaults__["timeout_s"] == 10.0
        function.__kwdefaults__["timeout_s"] = CALL_S


def _shorten_cool_offs() -> None:
    from jobs.core.failover import rules

    for kind in (kind for kind in rules._ENDING if kind.cool_off):
        object.__setattr__(kind, "cool_off", timedelta(seconds=COOL_OFF_S))


def use_clock(board: Switchboard, slot: int) -> None:
    """This process reads the time as its machine's clock shows it, which is off by what the engine says."""
    from django.utils import timezone

    right = timezone.now

    def now() -> datetime:
        return right() + timedelta(seconds=board.offset(slot))

    timezone.now = now  # type: ignore[assignment]
