"""PodGroup, Queue and Command, the kinds around a Job: job-api.md sections 6 and 7."""

from vcjob.api.schema.job import NETWORK_TOPOLOGY, SHORT_TEXT, custom_object
from vcjob.api.schema.scheduling import LABEL_SELECTOR
from vcjob.api.schema.types import (
    BOOLEAN,
    COUNT,
    INTEGER,
    QUANTITY,
    RESOURCES,
    TEXT,
    TIME,
    Integer,
    ListOf,
    MapOf,
    Text,
    choice,
    field,
    record,
    required,
)

_QUEUE_NAME = Text("dns-1123-subdomain", max_length=253)

SUB_GROUP_POLICY = record(
    "SubGroupPolicySpec",
    {
        "name": field(TEXT, "Name of the group of groups: a task."),
        "labelSelector": field(LABEL_SELECTOR, "Which pods belong to it."),
        "matchLabelKeys": field(ListOf(TEXT), "Pods equal in these labels are one group."),
        "subGroupSize": field(INTEGER, "Pods in a group."),
        "minSubGroups": field(INTEGER, "Groups that must be placeable together."),
        "networkTopology": field(NETWORK_TOPOLOGY, "Where the pods of one group may run."),
    },
)

POD_GROUP = custom_object(
    "PodGroup",
    {
        "spec": field(
            record(
                "PodGroupSpec",
                {
                    "minMember": field(INTEGER, "Pods that must be placeable together."),
                    "minTaskMember": field(MapOf(INTEGER), "The same for each task."),
                    "queue": field(_QUEUE_NAME, "Scheduling queue.", default="default"),
                    "priorityClassName": field(TEXT, "Priority of the group."),
                    "minResources": field(MapOf(QUANTITY), "What those pods ask for together."),
                    "networkTopology": field(NETWORK_TOPOLOGY, "Where the pods may run."),
                    "subGroupPolicy": field(ListOf(SUB_GROUP_POLICY), "Groups within the group."),
                },
            ),
            "What must be placed together.",
        ),
        "status": field(
            record(
                "PodGroupStatus",
                {
                    "phase": field(
                        choice("Pending", "Running", "Unknown", "Inqueue", "Completed"),
                        "Whether the group was admitted.",
                    ),
                    "conditions": field(
                        ListOf(
                            record(
                                "PodGroupCondition",
                                {
                                    "type": field(TEXT, "Scheduled or Unschedulable."),
                                    "status": field(TEXT, "True, False or Unknown."),
                                    "transitionID": field(TEXT, "The decision it comes from."),
                                    "lastTransitionTime": field(TIME, "When it became so."),
                                    "reason": field(TEXT, "Why, in one word."),
                                    "message": field(TEXT, "Why, in one sentence."),
                                },
                            )
                        ),
                        "Why it can or cannot be placed.",
                    ),
                    "running": field(INTEGER, "Pods of the group that are Running."),
                    "succeeded": field(INTEGER, "Pods of the group that Succeeded."),
                    "failed": field(INTEGER, "Pods of the group that Failed."),
                },
            ),
            "What the scheduler decided.",
        ),
    },
    "The pods of a Job as the scheduler sees them: all or none.",
)

_NODE_GROUPS = record(
    "NodeGroupAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": field(
            ListOf(TEXT), "Groups of nodes that must be used (or avoided)."
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": field(
            ListOf(TEXT), "Groups of nodes that should be used (or avoided)."
        ),
    },
)

_CLUSTER = record(
    "Cluster",
    {
        "name": field(TEXT, "Name of the cluster."),
        "weight": field(INTEGER, "Its share of the jobs."),
        "capacity": field(MapOf(QUANTITY), "What it has for them."),
    },
)

QUEUE = custom_object(
    "Queue",
    {
        "spec": field(
            record(
                "QueueSpec",
                {
                    "weight": field(Integer(1, 65535), "Share among queues.", default=1),
                    "capability": field(RESOURCES, "Most that its jobs may use."),
                    "deserved": field(RESOURCES, "What its jobs may use although others wait."),
                    "reclaimable": field(BOOLEAN, "Whether others may take back what it lends."),
                    "guarantee": field(
                        record("Guarantee", {"resource": field(RESOURCES, "Amounts.")}),
                        "What is kept for it.",
                    ),
                    "affinity": field(
                        record(
                            "QueueAffinity",
                            {
                                "nodeGroupAffinity": field(_NODE_GROUPS, "Groups to use."),
                                "nodeGroupAntiAffinity": field(_NODE_GROUPS, "Groups to avoid."),
                            },
                        ),
                        "Groups of nodes that its jobs use or avoid.",
                    ),
                    "type": field(SHORT_TEXT, "A free word."),
                    "parent": field(_QUEUE_NAME, "The queue that it is a part of."),
                    "priority": field(COUNT, "Queues of higher priority are served first."),
                    "dequeueStrategy": field(
                        choice("fifo", "traverse"),
                        "Whether a job that does not fit holds up those behind it (fifo).",
                        default="traverse",
                    ),
                    "extendClusters": field(ListOf(_CLUSTER), "Clusters that jobs may go to."),
                },
            ),
            "What its jobs may use.",
        ),
        "status": field(
            record(
                "QueueStatus",
                {
                    "state": field(
                        choice("Open", "Closed", "Closing", "Unknown"),
                        "Only an Open queue takes new jobs.",
                    ),
                    "unknown": field(COUNT, "Groups of which some pods run, others cannot."),
                    "pending": field(COUNT, "Groups that wait to be admitted."),
                    "running": field(COUNT, "Groups that run."),
                    "inqueue": field(COUNT, "Groups that were admitted and wait for a place."),
                    "completed": field(COUNT, "Groups that have ended."),
                    "reservation": field(
                        record(
                            "Reservation",
                            {
                                "nodes": field(ListOf(TEXT), "Nodes by name."),
                                "resource": field(MapOf(QUANTITY), "What they have together."),
                            },
                        ),
                        "Nodes that are kept free for its jobs.",
                    ),
                    "allocated": field(MapOf(QUANTITY), "What its jobs have now."),
                },
            ),
            "How many groups of pods it holds, by phase.",
        ),
    },
    "A share of the machines, for Jobs to wait in.",
)

COMMAND = custom_object(
    "Command",
    {
        "action": field(TEXT, "What to do with the target: one of the actions of policies."),
        "target": field(
            record(
                "CommandTarget",
                {
                    "apiVersion": required(TEXT, "Group and version of its kind."),
                    "kind": required(TEXT, "Job or Queue."),
                    "name": required(TEXT, "Its name."),
                    "uid": required(TEXT, "Its metadata.uid: of namesakes only that one obeys."),
                    "controller": field(BOOLEAN, "Not used."),
                    "blockOwnerDeletion": field(BOOLEAN, "Not used."),
                },
            ),
            "The object that the command is for.",
        ),
        "reason": field(TEXT, "Why, in one word."),
        "message": field(TEXT, "Why, in one sentence."),
    },
    "An order to a Job or Queue, obeyed once.",
)
