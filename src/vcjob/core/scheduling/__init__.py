"""Which gangs may start, and what they hold meanwhile: pure decisions, whoever schedules."""
