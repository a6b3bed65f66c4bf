from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0017_pod_ends")]

    operations = [
        migrations.CreateModel(
            name="NamespacePolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63, unique=True)),
                (
                    "pod_security",
                    models.CharField(
                        choices=[
                            ("privileged", "privileged"),
                            ("baseline", "baseline"),
                            ("restricted", "restricted"),
                        ],
                        max_length=10,
                    ),
                ),
                ("service_accounts", models.JSONField(default=list)),
                ("capabilities", models.JSONField(default=list)),
                ("host_paths", models.JSONField(default=list)),
                ("host_network", models.BooleanField(default=False)),
                ("node_name", models.BooleanField(default=False)),
                ("updated_at", models.DateTimeField()),
            ],
            options={"ordering": ["name"], "verbose_name_plural": "namespace policies"},
        ),
    ]
