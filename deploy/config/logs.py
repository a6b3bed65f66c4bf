"""Structured logging: one event a line with ids as fields, JSON in production and readable text in ``manage.py up``.

Lines of libraries that use the standard ``logging`` module take the same path, so one process writes one format.
"""

import logging
import re
from typing import Any

import structlog

_SIGN_IN_LINK = re.compile(r"/signin/[\w-]+")
FORMATS = ("json", "console")
_QUIET = {
    "celery.app.trace": "WARNING",
    "celery.worker.strategy": "WARNING",
    "celery.beat": "WARNING",
    "urllib3": "ERROR",
    "axes": "WARNING",
}


def configured(output: str, level: str) -> dict[str, Any]:
    """The ``LOGGING`` setting for an output of `FORMATS` at a level name; configures structlog for this process as well.

    Raises ``ValueError`` for an unknown output or level, naming the setting to correct.
    """
    if output not in FORMATS:
        raise ValueError(f"CONVOY_LOG_FORMAT is {output!r}: set it to one of {', '.join(FORMATS)}")
    if not isinstance(logging.getLevelName(level), int):
        raise ValueError(f"CONVOY_LOG_LEVEL is {level!r}: set it to DEBUG, INFO, WARNING or ERROR")
    shared = _shared()
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendered(output)],
                "foreign_pre_chain": shared,
            }
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            **{name: {"level": quiet} for name, quiet in _QUIET.items()},
            # uvicorn brings handlers of its own; its lines belong into the same format.
            **{name: {"handlers": [], "propagate": True} for name in ("uvicorn", "uvicorn.error")},
            # Propagates again by itself once its parent is configured here: a line for each request of anybody.
            "uvicorn.access": {"handlers": [], "propagate": False},
        },
    }


def _shared() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        _without_sign_in_links,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]


def _without_sign_in_links(_: Any, __: str, event: Any) -> Any:
    """Django logs the path of each refused request, and a link whose code was wrong still signs in."""
    for key, value in event.items():
        text = value if isinstance(value, str) else str(value) if key == "request" else ""
        if "/signin/" in text:
            event[key] = _SIGN_IN_LINK.sub("/signin/...", text)
    return event


def _rendered(output: str) -> list[Any]:
    if output == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # structlog's default draws a frame with the values of all variables around each call. Some are credentials, and to draw
    # them takes a process tens of seconds when a database is away and each of its threads logs an error.
    plain = structlog.dev.plain_traceback
    return [
        structlog.dev.ConsoleRenderer(colors=False, timestamp_key="time", sort_keys=False, exception_formatter=plain)
    ]
