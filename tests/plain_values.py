"""What a simulator may put in an episode's ``reset``: values that JSON holds, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)  # fmt: skip
objects = st.dictionaries(st.text(max_size=3), values, max_size=3)
