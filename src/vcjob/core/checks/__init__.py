"""The rules that a Job must keep, one concern a file. Each rule is pure and answers with problems."""
