from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0046_node_exclusions_to_order_index")]

    operations = [
        migrations.AddField("cluster", "node_taints_due_at", models.DateTimeField(blank=True, null=True)),
    ]
