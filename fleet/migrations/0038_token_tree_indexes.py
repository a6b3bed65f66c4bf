from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('fleet', '0037_token_parent'),
    ]

    operations = [
        AddIndexOnline('token', models.Index(fields=['parent'], name='token_by_parent')),
        AddIndexOnline('token', models.Index(fields=['minted_by'], name='token_by_minter')),
    ]
