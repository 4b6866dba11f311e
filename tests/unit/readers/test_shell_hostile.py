"""What no one writes: the shell and the launchers answer fast, in little memory, and with nothing but a sentence."""

from __future__ import annotations

import contextlib
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.readers.limits import SECONDS

from peakgate.readers.files import FileError, GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.peel import launches_of
from peakgate.readers.shell.script import launches_of_command, launches_of_script, words_of

MEBIBYTES = 200


def read(text: str) -> None:
    """Reads a text as a script that may read itself; only FileError may be raised, and every word of a launch has its line."""
    with contextlib.suppress(FileError):
        for launch in launches_of_script(text, "run.sh", GivenFiles({"run.sh": text})):
            assert all(str(word.place) for word in launch.words)


HOSTILE = {
    "a million words": "python t.py " + "a " * 1_000_000,
    "a million flags": "torchrun " + "--a 1 " * 500_000,
    "a million lines": "python t.py\n" * 300_000,
    "nested sums": "$((" * 300_000,
    "nested defaults": "echo " + "${a:-" * 300_000,
    "nested substitutions": "echo " + "$(" * 300_000,
    "quotes": '"' * 1_000_001,
    "backquotes": "`" * 1_000_001,
    "nested groups": "(" * 500_000,
    "nested ifs": "if true; then " * 100_000,
    "nested functions": "function f { " * 50_000,
    "nested cases": "case $x in " * 50_000,
    "a variable that doubles": "A=aaaaaaaaaa\n" + "A=$A$A$A$A\n" * 50 + "python $A",
    "a variable that grows": "A=a\n" + "A+=' b c'\n" * 10_000 + "python $A",
    "an array that grows": "A=()\n" + "A+=(b c)\n" * 8_000 + 'python "${A[@]}"',
    "a function that calls itself": "f() { f; f; f; }\nf\npython t.py",
    "a script that starts itself": "bash run.sh\n" * 50,
    "a script that sources itself": "source run.sh\n" * 50,
    "text that evaluates itself": 'A=\'eval "$A"; eval "$A"\'; eval "$A"',
    "loops": "while true; do while true; do while true; do X=1; done; done; done",
    "branches": "".join(f"if [ $({at}) ]; then A{at}=1; fi\n" for at in range(5_000)),
    "here-documents": "cat <<EOF > f\nx\nEOF\n" * 10_000,
    "a here-document that never ends": "cat <<EOF > f\n" + "x$A y\n" * 300_000,
    "dollars": "$" * 1_000_000,
    "comments": "# a\n" * 500_000,
    "options": "#SBATCH -N 1\n" * 200_000,
    "own words": "#PEAKGATE a=1\n" * 200_000,
    "own words on a line": "#PEAKGATE " + "a=[[[[ " * 200_000,
    "variables": "".join(f"export A{at}=1\n" for at in range(2_000)) + "python t.py\n" * 2_000,
    "wrappers": "nohup " * 40_000 + "x",
    "shells": "bash -c " * 1_000 + "x",
    "patterns": "A=" + "a" * 300 + "\n" + "B=${A%%*b*b*b*b*b*b*b*b}\n" * 50 + "python $B",
    "a regular expression": "A=" + "a" * 190 + "\n" + "[[ $A =~ (a|aa)+$ ]] && B=1\n" * 50 + "python $B",
    "hosts": "mpirun -H " + "a:1," * 300_000 + " python t.py",
    "nothing": "\0" * 1000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_script_is_read_or_refused_in_time(name: str) -> None:
    """The processor's time, as other programs may run at the same time."""
    start = time.process_time()
    read(HOSTILE[name])
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("name", ["a million words", "backquotes", "a variable that doubles", "an array that grows", "variables"])
def test_a_hostile_script_takes_little_memory(name: str) -> None:
    """Beside its own text."""
    tracemalloc.start()
    try:
        read(HOSTILE[name][:1_000_000])
        assert tracemalloc.get_traced_memory()[1] < MEBIBYTES << 20
    finally:
        tracemalloc.stop()


def test_a_million_given_words() -> None:
    """The kernel lets a command have them."""
    start = time.process_time()
    with pytest.raises(FileError, match="more words"):
        list(launches_of_command(["torchrun", *["--a"] * 1_000_000], GivenFiles()))
    assert time.process_time() - start < SECONDS


PIECES = st.sampled_from(
    ["$", "${", "}", "$((", "))", "$(", ")", "(", "`", '"', "'", "\\", "\n", ";", ";;", "&&", "||", "|", "&", "<<EOF\n", "EOF\n", "<", ">",
     "#", "if ", "then ", "else ", "elif ", "fi ", "for ", "in ", "do ", "done ", "while ", "case ", "esac ", "function ", "{ ", "[[ ",
     "]] ", "[ ", "] ", "x", "A=", "A+=(", "A[", "]=", "${A[@]}", "${A:-", "${A//",
     "$A", "$1", "$@", "!", "-f ", "==", "=~ ", "python ", "torchrun ", "srun ",
     "bash -c ", "eval ", "source run.sh", "cd ", "set -- ", "shift ", "exit ", "return ", "break ", "#SBATCH ", "--gres=gpu:", "-N",
     "#PEAKGATE ", "a=b", "8", "--nnodes ", "--nproc_per_node=", "accelerate launch ", "deepspeed ", "mpirun -np ", "tune run ",
     "docker run ", " "]
)  # fmt: skip

BYTES = st.binary(max_size=300).map(lambda data: data.decode("utf-8", "replace"))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(
        st.lists(PIECES, max_size=60).map("".join),
        st.binary(max_size=300).map(lambda data: data.decode("utf-8", "replace")),
        st.text(max_size=200),
    )
)
def test_any_text_is_read(text: str) -> None:
    """Scripts of pieces, decoded bytes, any characters."""
    read(text)
    words_of(text)


@given(st.lists(st.one_of(PIECES.map(str.strip), st.text(max_size=20)), max_size=20))
def test_any_words_are_peeled(words: list[str]) -> None:
    """Words that a caller gives, behind any launcher."""
    found = list(launches_of(Launch(words=words_of(words), files=GivenFiles({"x": "#!/bin/sh\nx\n"}))))
    assert all(str(word.place) for launch in found for word in launch.words)
