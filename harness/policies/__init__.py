"""Policies: the published contract, and what makes a served policy of a user's model.

``policy/<name>/`` may import ``harness.policies.contract`` and nothing else of the toolkit.
"""

from harness.policies.contract import Policy, PolicyError, Session
from harness.policies.generate import fix_threads
from harness.policies.loading import load_policy

__all__ = ["Policy", "PolicyError", "Session", "fix_threads", "load_policy"]
