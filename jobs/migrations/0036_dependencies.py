import django.db.models.deletion
from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0035_incident_indexes")]

    operations = [
        migrations.CreateModel(
            name="Dependency",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("kind", models.CharField(blank=True, max_length=63)),
                ("on", models.CharField(max_length=3)),
                ("last", models.CharField(blank=True, max_length=16)),
                ("met_at", models.DateTimeField(blank=True, null=True)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dependencies",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("met_at__isnull", True)),
                        fields=["namespace", "name"],
                        name="dependencies_open",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("job", "name", "kind"), name="dependency_once")],
            },
        ),
        migrations.AddField("job", "awaits", models.JSONField(blank=True, null=True)),
        AddIndexOnline(
            "job",
            models.Index(fields=["state"], condition=models.Q(awaits__isnull=False), name="jobs_awaiting"),
        ),
    ]
