"""What no reader may stumble over: words and files of any kind."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch, Reader
from peakgate.readers.place import FLAG, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.v1.document import DocumentError, parse_job

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


def read_soundly(reader: Reader, launch: Launch) -> Reading:
    """What a reader makes of a launch, whatever it is: fields that a job document has, each with its place, and no exception's text."""
    reading = reader.read(launch)
    assert all(str(stated.place) for stated in reading.fields.values())
    assert all((*reading.warnings, *reading.unread))
    assert not any(word in sentence for sentence in (*reading.warnings, *reading.unread) for word in ("Error(", "Traceback"))
    assert not any("is not a field here" in why for why in refused(reading.document()))
    return reading


def refused(document: Mapping[str, object]) -> list[str]:
    """What a job document is refused for: values out of range are."""
    try:
        parse_job(document)
    except DocumentError as error:
        return [why for _, why in error.fields]
    return []


def seconds(reader: Reader, launch: Launch) -> float:
    """CPU that a reader takes."""
    begin = time.process_time()
    assert reader.recognises(launch)
    reader.read(launch)
    return time.process_time() - begin
