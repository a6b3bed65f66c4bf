import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0050_claims_to_read")]

    operations = [
        migrations.CreateModel(
            name="RuntimeFact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("key", models.CharField(max_length=40)),
                ("at", models.DateTimeField()),
                ("data", models.JSONField()),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runtime_facts",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "ordering": ["at", "pk"],
                "indexes": [models.Index(fields=["job", "at"], name="runtime_facts_by_time")],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "attempt", "key"), name="runtime_fact_once")
                ],
            },
        ),
        migrations.AddField("attempt", "facts_due_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("attempt", "facts_of", models.JSONField(blank=True, null=True)),
    ]
