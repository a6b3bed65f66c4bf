"""Entitlement as a Django application."""

from django.apps import AppConfig


class QuotasConfig(AppConfig):
    name = "quotas"
    verbose_name = "Quotas"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from fleet.services.authorization import access, oidc_accounts
        from quotas.models import Queue, QuotaTree
        from quotas.services import scopes, team_leads

        access.FURTHER.update(dict.fromkeys((QuotaTree.kind, Queue.kind), scopes.leads_of))
        oidc_accounts.LEADS.append(team_leads.replace)
