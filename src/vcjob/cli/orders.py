"""Commands (bus.volcano.sh): what a user asks of a Job, as vcctl asks it."""

from vcjob.api.kinds import COMMAND, JOB
from vcjob.api.types import Job, Object
from vcjob.core.actions import Action


def order(job: Job, action: Action, reason: str = "") -> Object:
    """The Command that asks for ``action`` on a Job. It goes when the Job goes."""
    metadata = job.metadata
    owner = {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {
            "generateName": f"{metadata.name}-{action.lower()}-",
            "namespace": metadata.namespace,
            "ownerReferences": [owner],
        },
        "action": str(action),
        "target": owner,
        **({"reason": reason} if reason else {}),
    }
