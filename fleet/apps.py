"""Supply as a Django application."""

from importlib import import_module

from django.apps import AppConfig

from fleet import tracing


class FleetConfig(AppConfig):
    name = "fleet"
    verbose_name = "Fleet"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # At the start and not with the first span: loading the SDK takes a second, and spans begin inside transactions.
        tracing.provider()
        import_module("fleet.api.sign_in.sign_in_audit")
