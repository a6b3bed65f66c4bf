"""Whether traces are sent: decided by OpenTelemetry's own variables, so that a collector is set as for any other program."""

import environ
from django.core.exceptions import ImproperlyConfigured

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_on(env: environ.Env) -> bool:
    """Raises `ImproperlyConfigured` for an endpoint that is no HTTP address: batch after batch would be lost."""
    for name in _ENDPOINTS:
        endpoint = env.str(name, default="")
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise ImproperlyConfigured(f"{name}={endpoint} is not an http:// or https:// address")
    return any(env.str(name, default="") for name in _ENDPOINTS) and not env.bool("OTEL_SDK_DISABLED", default=False)
