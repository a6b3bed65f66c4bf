from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("fleet", "0041_node_problems")]

    operations = [
        AddIndexOnline(
            "node",
            models.Index(fields=["cluster"], condition=~models.Q(problem=""), name="nodes_with_problems"),
        ),
    ]
