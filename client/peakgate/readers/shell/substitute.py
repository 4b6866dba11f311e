"""`$(…)`: the few commands whose output follows from their words, and counts of GPUs and nodes; another one is not known."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable

from peakgate.readers.shell.arithmetic import arithmetic
from peakgate.readers.shell.lexer import tokens_of
from peakgate.readers.shell.tokens import Operator, RawWord
from peakgate.readers.shell.values import Segment, Shell, Value, assumed_in, known, text_of

LONGEST = 2000
Fields = Callable[[Iterable[RawWord], Shell], list[Value]]
_SCRIPT_FOLDER = re.compile(r"dirname[^|;]*(BASH_SOURCE|\$\{?0\b|realpath|readlink)")
_GPU_COUNTS = (
    re.compile(r"nvidia-smi.*(wc\s+-l|grep\s+-c)"),
    re.compile(r"CUDA_VISIBLE_DEVICES.*(wc\b|NF\b|grep\s+-c)"),
    re.compile(r"cuda\.device_count\(\)|accelerator\.device_count\(\)"),
    re.compile(r"GPU_DEVICE_ORDINAL.*wc\b"),
)
_NODE_COUNTS = (re.compile(r"scontrol\s+show\s+hostnames?.*wc\s+-l"), re.compile(r"SLURM_(JOB_)?NODELIST.*wc\s+-l"))
_FOLDER = re.compile(r"\s*cd\s+(\S+|\"[^\"]+\")\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*$")
_PIPED = re.compile(r"(\s*echo\s[^|]*)\|\s*bc\s*$")
_NODES = re.compile(r"scontrol\s+show\s+hostnames?[^|]*$")


def substituted(raw: str, line: int, shell: Shell, fields: Fields) -> list[Value]:
    """What a command substitution gives, one value a word that is not known."""
    unknown = Segment(f"$({' '.join(raw[:80].split())})", line, shell.file, known=False)
    if len(raw) > LONGEST:
        return [(unknown,)]
    if _NODES.search(raw) and (nodes := _variable("SLURM_NNODES", shell)).isdigit() and int(nodes) < LONGEST:
        return [(unknown,)] * int(nodes)
    text: str | None = _counted(raw, shell)
    if not text:
        text = posixpath.dirname(shell.file) or "." if _SCRIPT_FOLDER.search(raw) and shell.file else _output(raw, line, shell, fields)
    return [(unknown,)] if text is None else [(Segment(text, line, shell.file, assumed=_assumed(raw, shell)),)] if text else []


def _assumed(raw: str, shell: Shell) -> str:
    """The variable of an image that what it prints rests on."""
    if not shell.imaged:
        return ""
    values = {name: shell.get(name) for name in re.findall(r"[A-Za-z_]\w*", raw)}
    unset = (name for name in re.findall(r"\$\{([A-Za-z_]\w*):?[-=+]", raw) if name not in shell.variables)
    return next((found for value in values.values() if value and (found := assumed_in(value))), next(unset, ""))


def _counted(raw: str, shell: Shell) -> str:
    """GPUs of this node, or nodes, where a script counts them."""
    if any(pattern.search(raw) for pattern in _GPU_COUNTS):
        visible = _variable("CUDA_VISIBLE_DEVICES", shell)
        return str(len(visible.split(","))) if visible else _variable("SLURM_GPUS_ON_NODE", shell)
    return _variable("SLURM_NNODES", shell) if any(pattern.search(raw) for pattern in _NODE_COUNTS) else ""


def _variable(name: str, shell: Shell) -> str:
    value = shell.get(name)
    return text_of(value) if value is not None and known(value) else ""


def _output(raw: str, line: int, shell: Shell, fields: Fields) -> str | None:
    """The output of one simple command of the table."""
    if match := _FOLDER.match(raw):
        raw = f"realpath {match[1]}"
    calculated = _PIPED.match(raw)
    words = tokens_of((calculated[1] if calculated else raw.strip()) + "\n", line)[:-1]
    if len(words) == 2 and isinstance(words[0], RawWord) and words[0].plain == "cat" and isinstance(words[1], Operator) and words[1].here:
        return words[1].here.text.rstrip("\n")
    if not words or any(isinstance(word, Operator) for word in words) or len(words) > 50:
        return None
    program = words[0].plain if isinstance(words[0], RawWord) else ""
    if program not in _PROGRAMS or any(
        "$(" in part.text or "`" in part.text for word in words if isinstance(word, RawWord) for part in word.parts
    ):
        return None
    values = fields([word for word in words[1:] if isinstance(word, RawWord)], shell)
    if not all(map(known, values)):
        return None
    program = "bc" if calculated else program
    return _PROGRAMS[program]([text_of(value) for value in values])


def _summed(words: list[str]) -> str | None:
    result = arithmetic(" ".join(words), lambda _: None)
    return None if result is None else str(result)


def _calculated(words: list[str]) -> str | None:
    """What `echo … | bc` prints of whole numbers."""
    return _summed(words) if re.fullmatch(r"[\d\s+*/()-]+", " ".join(words)) else None


_PROGRAMS: dict[str, Callable[[list[str]], str | None]] = {
    "echo": lambda words: " ".join(word for word in words if word not in ("-n", "-e")),
    "dirname": lambda words: (posixpath.dirname(words[-1]) or ".") if words else None,
    "basename": lambda words: posixpath.basename(words[0]).removesuffix(words[1] if len(words) > 1 else "\0") if words else None,
    "realpath": lambda words: words[-1] if words else None,
    "readlink": lambda words: words[-1] if words else None,
    "pwd": lambda _: ".",
    "expr": _summed,
    "bc": _calculated,
}
