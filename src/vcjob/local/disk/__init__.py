"""The engine's objects on disk."""
