"""Refused sign-ins that are too many to be written singly: one audit line for each address and minute, with their number."""

from enum import Enum

from fleet.services.auditing import refusal_counts
from fleet.services.auditing.refusal_counts import Sort

UNKNOWN = "(unknown)"


class Refusal(Enum):
    """(door, verb, kind, what was refused)"""

    PASSWORDS = ("console", "sign-in", "User", "beyond the limit of attempts to sign in, passwords not looked at")
    OIDC = ("console", "sign-in", "User", "to come back from the company's sign-in that were not believed")
    CODES = ("rest", "sign-in", "User", "with codes of the command line that are unknown, used or expired")
    TOKENS_AT_REST = ("rest", "use", "Token", "with tokens that are unknown, expired or revoked")
    TOKENS_AT_SOCKETS = ("websocket", "use", "Token", "with tokens that are unknown, expired or revoked")
    TOKENS_AT_KUBE = ("kubectl", "use", "Token", "with tokens that are unknown, expired or revoked")

    def of(self, address: str) -> Sort:
        door, verb, kind, what = self.value
        return Sort(door, verb, kind, UNKNOWN, "attempt/attempts", what, address=address[:64])


def count(address: str, refusal: Refusal) -> None:
    """Touches no database; from any thread."""
    refusal_counts.count(refusal.of(address))
