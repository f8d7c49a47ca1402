"""All doors, by the subresource of pods that each answers for."""

from collections.abc import Mapping

from vcjob.local.agent.agent import Agent
from vcjob.local.apiserver.server import Door
from vcjob.local.doors.attaching import AttachDoor
from vcjob.local.doors.executing import ExecDoor
from vcjob.local.doors.forwarding import ForwardDoor
from vcjob.local.doors.logs import LogDoor


def doors(agent: Agent) -> Mapping[str, Door]:
    """What answers requests about the pods of an agent, for ``ApiServer``."""
    around = agent.surroundings
    return {
        "log": LogDoor(around.cluster, around.logs),
        "exec": ExecDoor(around.cluster, agent.inside),
        "attach": AttachDoor(around.cluster, around.logs, agent.inside),
        "portforward": ForwardDoor(around.cluster, around.node),
    }
