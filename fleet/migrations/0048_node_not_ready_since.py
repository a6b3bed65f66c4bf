from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0047_node_taints_due_at")]

    operations = [
        migrations.AddField("node", "not_ready_since", models.DateTimeField(blank=True, null=True)),
    ]
