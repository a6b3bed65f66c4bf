"""Supply as rows: clusters, their nodes and pods, what is held of them, and the fleet's own bookkeeping."""

from fleet.models.access import Grant, SigninLink, Token
from fleet.models.audit import AuditChain, AuditEntry, AuditSink
from fleet.models.cluster import Cluster
from fleet.models.ended_pod import ArchivedLog, EndedPod
from fleet.models.event import Event
from fleet.models.field_owners import FieldOwners
from fleet.models.gpu import GpuHour, GpuScrape, NodeReading
from fleet.models.hold import Hold
from fleet.models.identity import Identity
from fleet.models.journal import JournalEntry
from fleet.models.member_agent import AgentState, MemberAgent, agent_state
from fleet.models.member_credentials import CredentialsState, MemberCredentials, credentials_state
from fleet.models.namespace import Namespace
from fleet.models.namespace_policy import NamespacePolicy
from fleet.models.node import Node
from fleet.models.node_exclusion import NodeExclusion
from fleet.models.passkey import Passkey
from fleet.models.pod import Pod
from fleet.models.process import ClockReading, ClockStep, Heartbeat, Lease, LeaseRequests
from fleet.models.saved_view import SavedView
from fleet.models.second_factor import RecoveryCode, SecondFactor
from fleet.models.sign_in import LoginCode, OidcIdentity, SpentState

__all__ = [
    "ArchivedLog",
    "AuditChain",
    "AuditEntry",
    "AuditSink",
    "ClockReading",
    "ClockStep",
    "Cluster",
    "EndedPod",
    "Event",
    "FieldOwners",
    "GpuHour",
    "GpuScrape",
    "Grant",
    "Heartbeat",
    "Hold",
    "Identity",
    "JournalEntry",
    "Lease",
    "LeaseRequests",
    "LoginCode",
    "CredentialsState",
    "AgentState",
    "MemberAgent",
    "agent_state",
    "MemberCredentials",
    "credentials_state",
    "Namespace",
    "NamespacePolicy",
    "Node",
    "NodeExclusion",
    "NodeReading",
    "OidcIdentity",
    "Passkey",
    "Pod",
    "RecoveryCode",
    "SavedView",
    "SecondFactor",
    "SigninLink",
    "SpentState",
    "Token",
]
