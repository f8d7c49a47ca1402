"""One table of all fields: our own kinds and the pod template of Kubernetes."""
