"""The node process: holds the namespaces and does what only their owner can do."""
