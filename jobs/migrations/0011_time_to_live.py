"""How long a job is kept after its end, known to the fleet: of jobs that have not ended, as their manifests say."""

from typing import Any

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_ENDED = ("Succeeded", "Failed")
_PATHS = {
    "kubeflow.org/": ("spec", "runPolicy", "ttlSecondsAfterFinished"),
    "sparkoperator.k8s.io/": ("spec", "timeToLiveSeconds"),
    "ray.io/": (),
}


def fill(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Jobs that ended before stay: their owners did not know that they would be deleted."""
    rows = apps.get_model("jobs", "Job").objects.exclude(state__in=_ENDED).only("pk", "group", "manifest")
    for job in rows.order_by("pk").iterator(chunk_size=200):
        value: Any = job.manifest
        for name in _PATHS.get(job.group, ("spec", "ttlSecondsAfterFinished")):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
            rows.model.objects.filter(pk=job.pk).update(ttl_s=value)


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0012_lease_requests"),
        ("jobs", "0010_leaner_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="job", name="ttl_s", field=models.PositiveIntegerField(blank=True, null=True)
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("ttl_s__isnull", False)), fields=["ttl_s", "finished_at"], name="jobs_expiring"
            ),
        ),
    ]
