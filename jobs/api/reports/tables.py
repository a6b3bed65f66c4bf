"""What reports over a time share: their parameters, and their answer as JSON or comma-separated values."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from fleet.errors import invalid
from jobs.api.export import Line, plain
from jobs.api.reports.series import moment

OwnerT = TypeVar("OwnerT", bound=StrEnum)
_FORMS = ("json", "csv")
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Period:
    begin: datetime
    end: datetime
    as_csv: bool


@dataclass(frozen=True, slots=True)
class Asked(Generic[OwnerT]):
    by: OwnerT
    begin: datetime
    end: datetime
    as_csv: bool


def parameters(owners: type[StrEnum], default: timedelta) -> list[OpenApiParameter]:
    by = f"a team is a namespace; default: {next(iter(owners))}"
    return [OpenApiParameter("by", str, enum=[*owners], description=by), *period_parameters(default)]


def period_parameters(default: timedelta, or_else: str = "") -> list[OpenApiParameter]:
    days = f"ISO 8601; default: {default.days} days before `to`{or_else}"
    return [
        OpenApiParameter("from", OpenApiTypes.DATETIME, description=days),
        OpenApiParameter("to", OpenApiTypes.DATETIME, description="ISO 8601; default: now"),
        OpenApiParameter("form", str, enum=list(_FORMS), description="default: json"),
    ]


def read(request: Request, owners: type[OwnerT], default: timedelta, now: datetime) -> Asked[OwnerT]:
    """What the query asks for. Raises `InvalidInput`."""
    by = request.query_params.get("by") or next(iter(owners))
    if by not in [*owners]:
        raise invalid("by", f"must be one of {', '.join(owners)}")
    period = read_period(request, default, now)
    return Asked(owners(by), period.begin, period.end, period.as_csv)


def read_period(request: Request, default: timedelta, now: datetime, earliest: datetime | None = None) -> Period:
    """The time that the query asks for, and whether as a file. Raises `InvalidInput`.

    Without a begin it is no longer than `default`, and not before the earliest that the report has.
    """
    params = request.query_params
    form = params.get("form") or "json"
    if form not in _FORMS:
        raise invalid("form", "must be json or csv")
    end = moment(params, "to") or now
    usual = end - default if earliest is None or earliest >= end else max(end - default, earliest)
    return Period(moment(params, "from") or usual, end, form == "csv")


def as_csv(header: list[str], rows: Iterable[Iterable[Any]], filename: str) -> HttpResponse:
    writer = csv.writer(Line())
    lines = [header, *([plain("" if cell is None else cell) for cell in row] for row in rows)]
    answer = HttpResponse("".join(map(writer.writerow, lines)), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{filename}.csv"'
    return answer


def hours(ms: int) -> float:
    return round(ms / _HOUR_MS, 6)
