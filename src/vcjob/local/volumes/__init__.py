"""A pod's volumes: what each needs on this machine, and what of it each container gets to see."""
