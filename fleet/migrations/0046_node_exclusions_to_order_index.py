from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("fleet", "0045_node_exclusions_ordered")]

    operations = [
        AddIndexOnline(
            "nodeexclusion",
            models.Index(fields=["cluster"], condition=models.Q(is_ordered=False), name="node_exclusions_to_order"),
        ),
    ]
