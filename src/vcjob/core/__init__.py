"""The decisions: pure functions from Jobs and observed state to objects, problems and plans."""
