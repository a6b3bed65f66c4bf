"""Supply as a Django application."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings

from fleet import tracing
from fleet.core import devices


class FleetConfig(AppConfig):
    name = "fleet"
    verbose_name = "Fleet"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # At the start and not with the first span: loading the SDK takes a second, and spans begin inside transactions.
        tracing.provider()
        devices.add(settings.CONVOY_DEVICE_RESOURCES)
        import_module("fleet.db.value_lists")  # before the first connection, which it prepares
        import_module("fleet.api.sign_in.sign_in_audit")
