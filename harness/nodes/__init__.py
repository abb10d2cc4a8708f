"""What a node of a pool needs before it evaluates: checks, copies on its own disk."""
