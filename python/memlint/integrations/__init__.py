"""Callbacks for those who own the training loop. Each imports its framework, and nothing else does."""
