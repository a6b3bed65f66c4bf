from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("fleet", "0048_node_not_ready_since")]

    operations = [
        AddIndexOnline("node", models.Index(fields=["cluster"], condition=models.Q(ready=False), name="nodes_not_ready")),
    ]
