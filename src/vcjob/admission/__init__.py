"""What stands before a cluster's API: defaults and checks of Jobs and Queues, by webhooks."""
