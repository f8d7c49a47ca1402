"""The events and actions of lifecycle policies: one list for schema, checks and controller.

Source: admission.md section 3; lifecycle policies of job-api.md section 3.2.
"""

ANY_EVENT = "*"

# What a policy may wait for.
EVENTS = (
    *(ANY_EVENT, "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted"),
    *("TaskFailed", "JobUpdated"),
)

# What a policy, or a Command, may ask for.
ACTIONS = (
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition"),
    *("TerminateJob", "CompleteJob", "ResumeJob"),
)

# Known to the schema, but only the controller itself raises and takes them.
INTERNAL_EVENTS = ("PodRunning", "OutOfSync", "CommandIssued")
INTERNAL_ACTIONS = ("SyncJob", "EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue")
