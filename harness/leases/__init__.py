"""Who evaluates what: claims on a shared filesystem (see LEASES.md)."""
