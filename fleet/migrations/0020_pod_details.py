from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0019_audit_chain'),
    ]

    operations = [
        migrations.AddField(
            model_name='pod',
            name='details',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
    ]
