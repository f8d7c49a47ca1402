"""What is to be installed on a cluster, as pure functions to objects."""
