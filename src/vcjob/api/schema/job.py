"""The Job (``batch.volcano.sh/v1alpha1``): job-api.md sections 3 and 4."""

from vcjob.api.policies import ACTIONS, EVENTS, INTERNAL_EVENTS
from vcjob.api.schema.meta import OBJECT_META
from vcjob.api.schema.pods import POD_TEMPLATE
from vcjob.api.schema.types import (
    COUNT,
    INTEGER,
    POSITIVE,
    TEXT,
    TIME,
    Field,
    ListOf,
    MapOf,
    Record,
    Text,
    Type,
    choice,
    field,
    record,
    required,
)
from vcjob.api.schema.volumes import PERSISTENT_VOLUME_CLAIM_SPEC

DURATION = Text("duration")
SHORT_TEXT = Text(max_length=253)

# The CRD takes the internal events; that policies may not use them is a rule of admission.
EVENT = Text(one_of=EVENTS, also=INTERNAL_EVENTS)

_ACTION = f"What to do: {', '.join(ACTIONS)}."

NETWORK_TOPOLOGY = record(
    "NetworkTopologySpec",
    {
        "mode": field(
            choice("hard", "soft"),
            "Whether the pods must (hard) or should (soft) stay within the tier.",
            default="hard",
        ),
        "highestTierAllowed": field(COUNT, "Highest tier that the pods may span, by number."),
        "highestTierName": field(SHORT_TEXT, "The same by name; give only one of the two."),
    },
)

POLICY = record(
    "LifecyclePolicy",
    {
        "action": field(TEXT, _ACTION),
        "event": field(EVENT, "What it is done upon. The first policy that matches counts."),
        "events": field(ListOf(EVENT), "Several events; united with event."),
        "exitCode": field(INTEGER, "Exit code, not 0, of a container; instead of events."),
        "timeout": field(DURATION, "How long to wait before the action: 10m, 1h30m."),
    },
)

PARTITION_POLICY = record(
    "PartitionPolicySpec",
    {
        "totalPartitions": required(POSITIVE, "Number of groups."),
        "partitionSize": required(POSITIVE, "Pods in a group."),
        "minPartitions": field(COUNT, "Groups that must be placeable together.", default=0),
        "networkTopology": field(NETWORK_TOPOLOGY, "Where the pods of one group may run."),
    },
)

DEPENDS_ON = record(
    "DependsOn",
    {
        "name": field(ListOf(TEXT), "Tasks that must be up first."),
        "iteration": field(TEXT, "any: one of them is enough; everything else means all."),
    },
)

TASK = record(
    "TaskSpec",
    {
        "name": field(
            Text("dns-1123-label", max_length=63),
            "Name, part of the pods' names. Default: default<position>.",
        ),
        "replicas": field(COUNT, "Number of pods."),
        "minAvailable": field(COUNT, "Pods that must be placeable together. Default: replicas."),
        "template": required(POD_TEMPLATE, "What each pod is made from."),
        "policies": field(ListOf(POLICY), "What happens upon which event; win over the job's."),
        "topologyPolicy": field(
            choice("none", "best-effort", "restricted", "single-numa-node"),
            "NUMA policy of the pods.",
        ),
        "maxRetry": field(COUNT, "Container restarts before TaskFailed. Default: 3."),
        "dependsOn": field(DEPENDS_ON, "Tasks that must be up before this one starts."),
        "partitionPolicy": field(PARTITION_POLICY, "How the pods are grouped."),
    },
)

VOLUME_CLAIM = record(
    "VolumeSpec",
    {
        "mountPath": required(
            Text("mount-path", min_length=1), "Where every container of every pod sees it."
        ),
        "volumeClaimName": field(SHORT_TEXT, "An existing claim."),
        "volumeClaim": field(PERSISTENT_VOLUME_CLAIM_SPEC, "A claim to be made for the Job."),
    },
)

JOB_SPEC = record(
    "JobSpec",
    {
        "schedulerName": field(
            Text(max_length=63), "Scheduler of pods that name none. Default: volcano."
        ),
        "minAvailable": field(
            COUNT, "Pods that must be placeable together. Default: the sum of the tasks'."
        ),
        "volumes": field(ListOf(VOLUME_CLAIM), "Claims mounted into every container."),
        "tasks": field(ListOf(TASK, min_items=1), "The tasks, in the order of their variables."),
        "policies": field(ListOf(POLICY), "What happens upon which event."),
        "plugins": field(MapOf(ListOf(TEXT)), "Plugins by name, each with its arguments."),
        "runningEstimate": field(DURATION, "How long it should run; a hint to people."),
        "queue": field(
            Text("dns-1123-subdomain", max_length=253), "Scheduling queue.", default="default"
        ),
        "maxRetry": field(COUNT, "How often the Job is tried. 0 means 3.", default=3),
        "ttlSecondsAfterFinished": field(COUNT, "Delete the Job this long after it finished."),
        "priorityClassName": field(
            Text("dns-1123-subdomain", max_length=253), "Priority of pods that name none."
        ),
        "minSuccess": field(POSITIVE, "Complete as soon as this many pods succeeded."),
        "networkTopology": field(NETWORK_TOPOLOGY, "Where the pods may run."),
    },
)

PHASES = (
    *("Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed"),
    *("Terminating", "Terminated", "Failed"),
)

JOB_STATUS = record(
    "JobStatus",
    {
        "state": field(
            record(
                "JobState",
                {
                    "phase": field(choice(*PHASES), "Where the Job is in its life."),
                    "reason": field(TEXT, "Why, in one word."),
                    "message": field(TEXT, "Why, in one sentence."),
                    "lastTransitionTime": field(TIME, "When that was last decided."),
                },
            ),
            "Where the Job is in its life, and why.",
        ),
        "minAvailable": field(COUNT, "spec.minAvailable as it was last acted on."),
        "taskStatusCount": field(
            MapOf(record("TaskState", {"phase": field(MapOf(INTEGER), "Pods by their phase.")})),
            "Pods by task and phase.",
        ),
        "pending": field(COUNT, "Pods that are Pending."),
        "running": field(COUNT, "Pods that are Running."),
        "succeeded": field(COUNT, "Pods that Succeeded."),
        "failed": field(COUNT, "Pods that Failed."),
        "terminating": field(COUNT, "Pods that are being deleted."),
        "unknown": field(COUNT, "Pods whose state is not known."),
        "version": field(INTEGER, "Rises with every restart of the whole Job."),
        "retryCount": field(INTEGER, "How often the Job was tried again."),
        "runningDuration": field(DURATION, "How long the Job ran."),
        "controlledResources": field(MapOf(TEXT), "What the controller keeps for the Job."),
        "conditions": field(
            ListOf(
                record(
                    "JobCondition",
                    {
                        "status": field(TEXT, "A phase."),
                        "lastTransitionTime": field(TIME, "When the Job last came into it."),
                    },
                )
            ),
            "When each phase was last entered.",
        ),
    },
)


def custom_object(name: str, fields: dict[str, Type | Field], doc: str) -> Record:
    """The record of a whole object: what every object has, and ``fields`` of its kind."""
    return record(
        name,
        {
            "apiVersion": required(TEXT, "Group and version of the kind."),
            "kind": required(TEXT, "Kind of the object."),
            "metadata": required(OBJECT_META, "Name, namespace, labels and the like."),
            **fields,
        },
        doc=doc,
    )


JOB = custom_object(
    "Job",
    {
        "spec": required(JOB_SPEC, "What shall run."),
        "status": field(JOB_STATUS, "What became of it. Written by the controller."),
    },
    "Tasks whose pods start together and know each other.",
)
