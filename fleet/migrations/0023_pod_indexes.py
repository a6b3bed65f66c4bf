from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    """A database that was migrated by a development version has them from 0020."""

    atomic = False
    dependencies = [
        ('fleet', '0022_cluster_circuit'),
    ]

    operations = [
        AddIndexOnline('pod', models.Index(fields=['namespace', 'name', 'cluster'], name='pod_in_order_of_lists')),
        AddIndexOnline('pod', models.Index(fields=['uid'], name='pod_by_uid')),
    ]
