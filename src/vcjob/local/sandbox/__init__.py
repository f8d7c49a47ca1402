"""What a container sees and may do: the sandbox's arguments, safe paths, visibility of commands."""
