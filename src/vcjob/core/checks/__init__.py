"""The rules that a Job must keep, one concern a file; each answers with problems."""
