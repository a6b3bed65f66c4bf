from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0049_claim_nodes")]

    operations = [
        AddIndexOnline(
            "claimlocation",
            models.Index(
                fields=["read_due_at"], condition=models.Q(node_terms__isnull=True), name="claims_to_read"
            ),
        ),
    ]
