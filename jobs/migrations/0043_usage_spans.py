from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0042_claimed_at")]

    operations = [
        migrations.CreateModel(
            name="UsageSpan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("job_uid", models.UUIDField()),
                ("number", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=16)),
                ("begin", models.DateTimeField()),
                ("end", models.DateTimeField(db_index=True)),
                ("gpus", models.PositiveIntegerField()),
                ("outcome", models.CharField(blank=True, max_length=32)),
                ("namespace", models.CharField(max_length=63)),
                ("user", models.CharField(blank=True, max_length=150)),
                ("leaf", models.CharField(blank=True, max_length=700)),
                ("cluster", models.CharField(blank=True, max_length=63)),
                ("model", models.CharField(blank=True, max_length=253)),
                ("price", models.FloatField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job_uid", "number", "kind", "begin"), name="usage_span_once")
                ],
            },
        ),
        migrations.AddField("job", "accounted", models.BooleanField(db_default=False, default=False)),
        AddIndexOnline(
            "job",
            models.Index(
                fields=["finished_at"],
                condition=models.Q(accounted=False, finished_at__isnull=False),
                name="jobs_unaccounted",
            ),
        ),
    ]
