"""The code of a reason becomes a column of its own, and the index of lists wide enough for every filter."""

from typing import Any

from django.db import migrations
from django.db.models.fields.json import KeyTextTransform

import jobs.models.listed


def fill(apps: Any, schema_editor: Any) -> None:
    apps.get_model("jobs", "Job").objects.filter(reason__isnull=False).update(reason_code=KeyTextTransform("code", "reason"))


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0007_binding_placement"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="job", name="jobs_listed"),
        migrations.RemoveField(model_name="job", name="reason_code"),
        migrations.AddField(
            model_name="job",
            name="reason_code",
            field=jobs.models.listed.CodeField(blank=True, editable=False, max_length=64, null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name="job",
            index=jobs.models.listed.Wide(
                fields=[
                    "created_at",
                    "state",
                    "kind",
                    "namespace",
                    "name",
                    "leaf",
                    "cluster",
                    "gpus",
                    "reason_code",
                    "policy",
                    "priority",
                    "suspended",
                    "started_at",
                    "finished_at",
                ],
                name="jobs_listed",
            ),
        ),
    ]
