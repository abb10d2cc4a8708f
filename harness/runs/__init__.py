"""What a run evaluates: its sealed settings and its population."""
