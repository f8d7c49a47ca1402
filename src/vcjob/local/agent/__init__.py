"""The agent of this machine's node: makes bound pods real and tells what becomes of them."""
