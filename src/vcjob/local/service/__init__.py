"""The engine as a process that serves until it is told to stop, and keeps its state on disk."""
