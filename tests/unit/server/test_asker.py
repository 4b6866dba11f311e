"""What a request says of who asks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.server.asker import LONGEST_REASON, LONGEST_USER, check_asker
from peakgate.server.errors import PeakgateError


@pytest.mark.parametrize("user", ["", "c/1000", "alice@example.org", "Jürgen Groß", "x" * LONGEST_USER])
def test_names_are_taken(user: str) -> None:
    """Of a cluster's users, and of a site's own."""
    check_asker(user, "y" * LONGEST_REASON)


@given(user=st.text(max_size=LONGEST_USER + 20), reason=st.text(max_size=40))
def test_whatever_comes_is_taken_or_named(user: str, reason: str) -> None:
    """What passes is one line that fits its column; what does not names its field."""
    is_user_good = len(user) <= LONGEST_USER and user.isprintable() and user == user.strip()
    want = {name for name, is_good in (("user", is_user_good), ("try_reason", reason.isprintable())) if not is_good}
    if not want:
        check_asker(user, reason)
        return
    with pytest.raises(PeakgateError) as caught:
        check_asker(user, reason)
    assert {each.field for each in caught.value.fields} == want
