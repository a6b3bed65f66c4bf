"""OpenTelemetry traces, off unless an OTLP endpoint is set. The SDK is an optional extra, imported only when tracing is on.

The steps of one trace run in several processes, so the context that joins their spans is stored with the row they are about, as
a W3C ``traceparent``. Nothing here knows what is traced. Spans leave the process by a background thread; an endpoint that is
slow or unreachable costs spans, and never delays a request or a scheduling cycle.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings
from structlog import get_logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as SdkSpan

log = get_logger(__name__)

Attribute = str | int | float | bool
_SERVICE = "convoy"


@dataclass(frozen=True, slots=True)
class Span:
    """One step that has begun. While tracing is off it has no context, and its end records nothing."""

    context: str = ""
    """The ``traceparent`` for spans below this one; at most 55 characters."""
    _sdk: "SdkSpan | None" = None

    def end(self, error: str = "", *, at: datetime | None = None, **attributes: Attribute) -> None:
        """Hands the span to the exporter, as failed if there is an error; ``at`` is when it ended, if not now."""
        if self._sdk is None:
            return
        from opentelemetry.trace import Status, StatusCode

        self._sdk.set_attributes(_named(attributes))
        if error:
            self._sdk.set_status(Status(StatusCode.ERROR, error))
        self._sdk.end(_nanoseconds(at) if at else None)


def begin(name: str, *, parent: str = "", at: datetime | None = None, **attributes: Attribute) -> Span:
    """Begins a span below ``parent``, or a new trace; ``at`` is when the step began, if not now."""
    current = provider()
    if current is None:
        return Span()
    from opentelemetry.context import Context
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    wire = TraceContextTextMapPropagator()
    # Below the stored parent and no other: what the calling thread does beside this is not part of the trace.
    above = wire.extract({"traceparent": parent}, Context())
    tracer = current.get_tracer(_SERVICE)
    span = tracer.start_span(name, above, attributes=_named(attributes), start_time=_nanoseconds(at) if at else None)
    carrier: dict[str, str] = {}
    wire.inject(carrier, set_span_in_context(span, Context()))
    return Span(carrier.get("traceparent", ""), span)


@lru_cache(maxsize=1)
def provider() -> "TracerProvider | None":
    """This process's SDK, configured by its own variables (``OTEL_*``). None: no endpoint is set, or it is not installed."""
    if not settings.CONVOY_TRACING:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as e:
        log.error("tracing is off: install convoy[tracing], or unset OTEL_EXPORTER_OTLP_ENDPOINT", error=str(e))
        return None
    resource = Resource.create({"service.name": _SERVICE}).merge(OTELResourceDetector().detect())
    tracer_provider = TracerProvider(resource=resource)
    tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return tracer_provider


def _named(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    return {f"convoy.{name}": value for name, value in attributes.items()}


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1e6) * 1000
