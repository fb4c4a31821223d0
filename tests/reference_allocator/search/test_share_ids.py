"""Share ids depend only on what is shared, and are UUIDs."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from reference_allocator.search.result import derived_share_id

_SPACE = uuid.UUID("5f0ae5b2-9a49-5d0e-8a3c-0d6f6a1c9d55")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_share_id_is_the_name_based_uuid_of_its_text(text: str) -> None:
    assert derived_share_id(text) == str(uuid.uuid5(_SPACE, text))
