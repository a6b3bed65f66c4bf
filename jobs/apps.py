"""Demand as a Django application; on start it registers with the fleet the objects of members that it follows."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from fleet.api.system import CHECKS
        from fleet.queries import ABOUT
        from fleet.services.authorization import access
        from jobs import queries, receivers
        from jobs.kinds import registry
        from jobs.models import Job
        from jobs.services.failover import restored
        from jobs.services.follow import status
        from jobs.services.inspect import copy_events
        from jobs.services.scheduling import unreadable_rows
        from jobs.services.scheduling.decisions import rejections
        from jobs.services.scheduling.demand import demand_provider

        status.register()
        copy_events.register()
        demand_provider.register()
        receivers.connect()
        access.GENERAL.update({kind.resource.kind: "Job" for kind in registry.everything()})
        CHECKS["placements"] = rejections.problem
        CHECKS["records"] = unreadable_rows.problem
        CHECKS["copies"] = restored.problem
        ABOUT["cluster"] = lambda name: queries.event_of(Job.objects.filter(cluster__name=name))
        ABOUT["queue"] = lambda path: queries.event_of(queries.in_queue(Job.objects.all(), path))
