"""What no reader may stumble over: words and files of any kind."""

from __future__ import annotations

import time
from collections.abc import Iterable

from hypothesis import strategies as st

from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch, Reader
from peakgate.readers.place import FLAG, Place, Stated
from peakgate.readers.settings import Settings

PLAIN = st.one_of(
    st.text(max_size=12),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(st.one_of(st.text(max_size=4), st.integers()), max_size=3),
    st.sampled_from(["-1", "0", "1e400", "true", "None", "${a}", "9" * 5000, 1 << 20000, "bf16", "full"]),
)


def settings_over(keys: Iterable[str]) -> st.SearchStrategy[Settings]:
    """Settings with any value under names that a reader looks at."""
    return st.dictionaries(st.sampled_from(sorted(keys)), PLAIN, max_size=12).map(
        lambda leaves: Settings({key: Stated(value, Place(kind=FLAG, key=key)) for key, value in leaves.items()})
    )


def launch_of_words(words: Iterable[str], files: dict[str, str] | None = None) -> Launch:
    """A launch of plain words."""
    place = Place(kind=FLAG)
    return Launch(words=[Stated(word, place) for word in words], files=GivenFiles(files or {}))


def seconds(reader: Reader, launch: Launch) -> float:
    """How long a reader takes."""
    begin = time.perf_counter()
    assert reader.recognises(launch)
    reader.read(launch)
    return time.perf_counter() - begin
