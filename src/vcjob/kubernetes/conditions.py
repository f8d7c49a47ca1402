"""What has to be so for an operator to do its work."""

from enum import StrEnum


class Condition(StrEnum):
    """The lines of the readiness probe, in the order in which one depends on another."""

    SERVER = "server"
    KINDS = "kinds"
    RIGHTS = "rights"
    SECRETS = "secrets"
    QUEUES = "queues"
    EVENTS = "events"
    VOLCANO = "volcano"
    SCHEDULER = "scheduler"
    LEASE = "lease"
    QUEUE = "queue"
    CACHES = "caches"
