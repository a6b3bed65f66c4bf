from typing import Any

import django.db.models.deletion
from django.db import migrations, models

FINISHED = ("Succeeded", "Failed")
IN_MEMBER = ("Sending", "Applied", "Suspending", "Suspended", "Withdrawing")


def claims_in(manifest: object) -> set[str]:
    """The claims that any pod template in it mounts."""
    if isinstance(manifest, list):
        return set().union(*map(claims_in, manifest))
    if not isinstance(manifest, dict):
        return set()
    source = manifest.get("persistentVolumeClaim")
    name = source.get("claimName") if isinstance(source, dict) else None
    return set().union({name} if isinstance(name, str) and name else (), *map(claims_in, manifest.values()))


def bind_known_claims(apps: Any, schema_editor: Any) -> None:
    Job, Work = apps.get_model("jobs", "Job"), apps.get_model("jobs", "Work")
    Dependent, Location = apps.get_model("jobs", "Dependent"), apps.get_model("jobs", "ClaimLocation")
    sent = set(Dependent.objects.filter(kind="PersistentVolumeClaim").values_list("namespace", "name"))
    live = Job.objects.exclude(state__in=FINISHED).only("uid", "namespace", "manifest", "roles")
    for job in live.order_by("pk").iterator(chunk_size=500):
        names = sorted(claims_in(job.manifest))
        if not names or not job.roles:
            continue
        Job.objects.filter(pk=job.pk).update(roles=[{**job.roles[0], "claims": names}, *job.roles[1:]])
        copies = Work.objects.filter(job_uid=job.uid, state__in=IN_MEMBER).values_list("cluster_id", "created_at")
        Location.objects.bulk_create(
            [
                Location(namespace=job.namespace, name=name, cluster_id=cluster, created_at=at)
                for cluster, at in copies
                for name in names
                if (job.namespace, name) in sent
            ],
            ignore_conflicts=True,
        )


class Migration(migrations.Migration):

    dependencies = [
        ("fleet", "__first__"),
        ("jobs", "0015_provenance"),
    ]

    operations = [
        migrations.CreateModel(
            name='ClaimLocation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('namespace', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('created_at', models.DateTimeField()),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='claim_locations', to='fleet.cluster')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('namespace', 'name', 'cluster'), name='claim_once_per_cluster')],
            },
        ),
        migrations.RunPython(bind_known_claims, migrations.RunPython.noop),
    ]
