"""Run Volcano Jobs, whose pods find each other by name, on this machine or on Kubernetes."""

__version__ = "0.1.0"
