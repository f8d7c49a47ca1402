"""Job plugins: one file each, pure functions from a Job to what it adds to pods and objects."""
