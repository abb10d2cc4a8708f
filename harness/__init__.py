"""rollpool: evaluate robot policies in simulators, over a node pool or on one workstation."""

__version__ = "0.1.0"
