"""Demand as a Django application; on start it tells the fleet which members' objects it follows."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs import receivers
        from jobs.services import population, status

        status.register()
        population.register()
        receivers.connect()
