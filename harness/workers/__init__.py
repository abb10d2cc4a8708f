"""The processes of a run: workers, and what they start."""
