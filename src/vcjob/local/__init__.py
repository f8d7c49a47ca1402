"""The engine of this machine: object store, gang scheduler, node, network, names, sandbox."""
