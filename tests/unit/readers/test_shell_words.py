"""Words of a command: quotes, escapes, expansions."""

from __future__ import annotations

import pytest
from tests.unit.readers.shells import commands, launches

from peakgate.readers.shell.script import is_script, words_of


@pytest.mark.parametrize(
    ("text", "want_words"),
    [
        ("train.py --a 1 --b=2", ["train.py", "--a", "1", "--b=2"]),
        ("train.py --a 'x y' \"z w\"", ["train.py", "--a", "x y", "z w"]),
        ("train.py a\\ b 'it'\\''s'", ["train.py", "a b", "it's"]),
        ("train.py --json '{\"a\": 1}'", ["train.py", "--json", '{"a": 1}']),
        ('train.py "{\\"a\\": 1}"', ["train.py", '{"a": 1}']),
        ("train.py \\\n  --a 1 \\\n  --b 2", ["train.py", "--a", "1", "--b", "2"]),
        ("train.py --a 1 # --b 2", ["train.py", "--a", "1"]),
        ("train.py --a=x#y", ["train.py", "--a=x#y"]),
        ("train.py $'a\\tb'", ["train.py", "a\tb"]),
        ("train.py '' \"\"", ["train.py", "", ""]),
        ("train.py 'open", ["train.py", "open"]),
        ("train.py --x $", ["train.py", "--x", "$"]),
    ],
)
def test_words_are_those_of_a_shell(text: str, want_words: list[str]) -> None:
    """Quotes and escapes fall away, comments and continued lines too."""
    assert [word.text for word in words_of(text)] == want_words


def test_given_words_stay_as_they_are() -> None:
    """A command behind -- has been through a shell already."""
    assert [word.text for word in words_of(["train.py", "$X", "a b", "#"])] == ["train.py", "$X", "a b", "#"]


@pytest.mark.parametrize(
    ("path", "text", "want"),
    [
        ("run.sh", "", True),
        ("job.SBATCH", "", True),
        ("train.slurm", "x", True),
        ("launch", "#!/usr/bin/env bash\n", True),
        ("launch", "#!/usr/bin/env python\n", False),
        ("launch", "#SBATCH --nodes=2\n", True),
        ("config.yaml", "#!/bin/sh ranges\n", True),
        ("config.yaml", "a: 1\n", False),
    ],
)
def test_a_script_is_known_by_its_name_or_first_line(path: str, text: str, want: bool) -> None:
    """A config file is none."""
    assert is_script(path, text) is want


@pytest.mark.parametrize(
    ("setup", "word", "want"),
    [
        ("X=8", "$X", ["8"]),
        ("X=8", "${X}k", ["8k"]),
        ("X='a b'", "$X", ["a", "b"]),
        ("X='a b'", '"$X"', ["a b"]),
        ("X='a b'", "'$X'", ["$X"]),
        ("X='a b'", "--n=$X", ["--n=a", "b"]),
        ("", "${X:-8}", ["8"]),
        ("X=", "${X:-8}", ["8"]),
        ("X=", "${X-8}", []),
        ("Y=3", "${X:-${Y:-4}}", ["3"]),
        ("", '${X:-"a b"}', ["a", "b"]),
        (": ${X:=5}", "$X", ["5"]),
        ("X=1", "${X:+--flag}", ["--flag"]),
        ("", "${X:+--flag}", []),
        ("X=1", "${X:?must be set}", ["1"]),
        ("A=(1 2 'x y')", '"${A[@]}"', ["1", "2", "x y"]),
        ("A=(1 2 'x y')", "${A[@]}", ["1", "2", "x", "y"]),
        ("A=(1 2 'x y')", '"${A[*]}"', ["1 2 x y"]),
        ("A=(1 2 3)", "${#A[@]}", ["3"]),
        ("A=(5 6 7)", "${A[1]}", ["6"]),
        ("A=(5 6 7)", "${A[-1]}", ["7"]),
        ("A=(5 6 7); I=2", "${A[$I]}", ["7"]),
        ("A=(5 6 7); I=2", "${A[I]}", ["7"]),
        ("A=(1)\nA+=(2 3)", "${A[@]}", ["1", "2", "3"]),
        ("X=a\nX+=b", "$X", ["ab"]),
        ("declare -A M=([7b]=32 [13b]=40); S=13b", "${M[$S]}", ["40"]),
        ("declare -A M; M[7b]=32", "${M[7b]}", ["32"]),
        ("P=/data/llama/config.json", "${P##*/}", ["config.json"]),
        ("P=/data/llama/config.json", "${P%/*}", ["/data/llama"]),
        ("P=/data/llama/config.json", "${P#/data/}", ["llama/config.json"]),
        ("P=a.tar.gz", "${P%%.*}", ["a"]),
        ("P=a-b-c", "${P//-/_}", ["a_b_c"]),
        ("P=a-b-c", "${P/-/_}", ["a_b-c"]),
        (f"P='--fp16 --data $D {'--x ' * 200}--fp16'", "${P//--fp16/--bf16}", ["--bf16", "--data", "$D", *["--x"] * 200, "--bf16"]),
        ('P="--fp16 --data $UNSET"', "${P//--fp16/--bf16}", ["--bf16", "--data", "$UNSET"]),
        ("P=abcdef", "${P:2:3}", ["cde"]),
        ("P=abc", "${P^^} ${P^}", ["ABC", "Abc"]),
        ("P=ABC", "${P,,}", ["abc"]),
        ("P=abc", "${#P}", ["3"]),
        ("N=X; X=9", "${!N}", ["9"]),
        ("A=4; B=8", "$((A * B + 1))", ["33"]),
        ("A=7", "$(($A / 2)) $((A % 4)) $((2 ** 3))", ["3", "3", "8"]),
        ("A=7", "$((A > 5 ? 1 : 0))", ["1"]),
        ("A=1; ((A++)) ; ((A += 4))", "$A", ["6"]),
        ("let N=2*3", "$N", ["6"]),
        ("P=/a/b.sh", "$(basename $P) $(dirname $P)", ["b.sh", "/a"]),
        ("", "$(expr 4 '*' 8)", ["32"]),
        ("X=$(echo 5)", "$X", ["5"]),
        ("A=32; B=2", "$(expr $A / 8 / $B)", ["2"]),
        ("A=4", '$(echo "$A * 3" | bc)', ["12"]),
        ('D=$(cd "$(dirname "$0")" && pwd)', "$D/c.yaml", ["./c.yaml"]),
    ],
)
def test_expansions(setup: str, word: str, want: list[str]) -> None:
    """Each as Bash makes it."""
    assert commands(f"{setup}\npython train.py -- {word}\n") == [["train.py", "--", *want]]


@pytest.mark.parametrize(
    ("setup", "word", "want"),
    [
        ("", "$HIDDEN", "$HIDDEN"),
        ("", "--n=${HIDDEN}", "--n=${HIDDEN}".replace("{", "").replace("}", "")),
        ("X=$(hostname)", "$X", "$(hostname)"),
        ("X=`hostname -i`", '"$X:80"', "$(hostname -i):80"),
        ("read X", "$X", "$X"),
        ("", "$((X * 2))", "$((X * 2))"),
        ("", "${X%.*}", "${X%.*}"),
        ("", "$1", "$1"),
    ],
)
def test_what_is_not_known_keeps_its_name(setup: str, word: str, want: str) -> None:
    """So that the setting which needs it says what is missing."""
    assert commands(f"{setup}\npython train.py --n {word}\n") == [["train.py", "--n", want]]


def test_an_unset_list_of_arguments_is_none() -> None:
    """`$EXTRA_ARGS` and `$@` stand for any number of words, mostly none."""
    assert commands('python train.py --bf16 $EXTRA_ARGS "$@" ${ARGS[@]} --lr 1\n') == [["train.py", "--bf16", "--lr", "1"]]


def test_words_have_the_line_where_they_stand() -> None:
    """Also those of an array, of a text over several lines, of a continued command."""
    script = 'A=(\n  --x 1\n  --y 2  # why\n)\nB="--z 3\n--w 4"\npython train.py \\\n  ${A[@]} $B --last\n'
    (launch,) = launches(script)
    assert {word.text: word.place.line for word in launch.words} == {
        "train.py": 7, "--x": 2, "1": 2, "--y": 3, "2": 3, "--z": 5, "3": 5, "--w": 6, "4": 6, "--last": 8
    }  # fmt: skip
    assert {word.place.file for word in launch.words} == {"run.sh"}
