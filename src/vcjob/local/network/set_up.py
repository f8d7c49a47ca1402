"""What the node process runs inside its network namespace before the first pod."""

import gc
import os
import socket
import sys
from collections.abc import Iterable
from typing import NoReturn

from vcjob.local.names.server import NameServer, bind
from vcjob.local.network import PodNetwork
from vcjob.local.network.addresses import NODE_ADDRESS
from vcjob.local.network.netlink import NetlinkError


def set_up_network() -> tuple[PodNetwork, tuple[int, ...]]:
    """Set up the node's network, and start the name server on the node's address.

    Returns the network, and the descriptor over which the engine feeds the name server
    (``names.server.encode_update``); when its last copy is closed, the name server ends. A trial
    pod is made too, so that a kernel without links for pods is found here. Raises OSError.
    """
    try:
        network = PodNetwork()
        network.try_out()
    except NetlinkError as error:
        raise OSError(error.number, str(error)) from error
    return network, (start_name_server(str(NODE_ADDRESS)),)


def start_name_server(address: str) -> int:
    """Start a name server in a process of its own; returns the descriptor of its feed."""
    datagrams, stream = bind(address)
    feed, served = socket.socketpair()
    with datagrams, stream, served:
        sys.stdout.flush()
        sys.stderr.flush()
        if os.fork() == 0:
            _serve_and_exit(datagrams, stream, served)
    return feed.detach()


def _serve_and_exit(
    datagrams: socket.socket, stream: socket.socket, feed: socket.socket
) -> NoReturn:
    """Be the name server, in a forked process that must never return into its caller's frames."""
    code = 1
    try:
        _close_all_but(each.fileno() for each in (datagrams, stream, feed))
        gc.freeze()  # keeps the memory that it shares with the node shared
        NameServer(datagrams, stream, feed).serve()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(code)


def _close_all_but(kept: Iterable[int]) -> None:
    """Close descriptors beyond the standard ones, above all the node's socket to the engine."""
    start = 3
    for fd in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(start, fd)
        start = fd + 1
