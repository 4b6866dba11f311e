"""What only stands around a command (containers, environments, profilers, remote starters): a row a program."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from peakgate.readers.arguments import Word
from peakgate.readers.launchers.flags import taken
from peakgate.readers.launchers.state import Launcher, Peel
from peakgate.readers.place import VARIABLE, Place, Stated

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """`verbs`: words of which one must follow; `valued`: flags with a word behind them, or `bare`: flags without one, all others having
    one; `operands`: words between the flags and the command (an image, a duration); `variables`: flags whose value is NAME=value."""

    verbs: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    bare: frozenset[str] | None = None
    operands: int = 0
    variables: frozenset[str] = field(default_factory=frozenset)

    def __call__(self, peel: Peel) -> None:
        """Takes the wrapper off; without its verb it starts nothing (`conda activate`, `docker pull`)."""
        rest = peel.words[1:]
        if self.verbs:
            at = next((at for at, word in enumerate(rest[:4]) if word.text in self.verbs), None)
            if at is None:
                peel.words = []
                return
            rest = rest[at + 1 :]
        self._note_variables(rest, peel)
        by_default = self.bare is not None
        counts = dict.fromkeys(self.bare or (), 0) if by_default else dict.fromkeys(self.valued, 1)
        arguments, rest = taken(rest, counts, int(by_default))
        rest = rest[self.operands :]
        if rest and rest[0].text == "--":
            rest = rest[1:]
        if rest:
            peel.note(peel.words[0].text.rpartition("/")[2], arguments)
        peel.words = rest

    def _note_variables(self, words: list[Word], peel: Peel) -> None:
        """`-e NAME=value` and `--env=NAME=value` of a container; its own words behind the image are passed over as well."""
        for at, word in enumerate(words[:200]):
            name, joined, value = word.text.partition("=")
            if name.lstrip("-") not in self.variables or not name.startswith("-"):
                continue
            given = Stated(value, word.place) if joined else words[at + 1] if at + 1 < len(words) else word
            note_variable(given, peel)


def note_variable(word: Word, peel: Peel) -> None:
    """`NAME=value`."""
    key, joined, value = word.text.partition("=")
    if joined:
        peel.set(key, Stated(value, Place(kind=VARIABLE, key=key, file=word.place.file, line=word.place.line)))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DOCKER = Wrapper(
    verbs=_names("run exec"),
    bare=_names(
        "rm d detach i interactive t tty it ti itd dit di td privileged init P publish_all read_only no_healthcheck oom_kill_disable q "
        "quiet disable_content_trust sig_proxy replace"
    ),
    operands=1,
    variables=_names("e env"),
)
_APPTAINER = Wrapper(
    verbs=_names("exec run shell"),
    valued=_names(
        "B bind home H pwd W workdir S scratch env env_file overlay o hostname network network_args app mount security fusemount cwd"
    ),
    operands=1,
    variables=_names("env"),
)
_VENV = Wrapper(
    verbs=_names("run"), valued=_names("with with_requirements p python extra group project directory env_file package n name prefix e")
)

WRAPPERS: dict[str, Launcher] = {
    "nohup": Wrapper(),
    "time": Wrapper(valued=_names("f o format output")),
    "exec": Wrapper(valued=_names("a")),
    "command": Wrapper(),
    "setsid": Wrapper(),
    "stdbuf": Wrapper(valued=_names("i o e input output error")),
    "nice": Wrapper(valued=_names("n adjustment")),
    "ionice": Wrapper(valued=_names("c n")),
    "chrt": Wrapper(operands=1),
    "taskset": Wrapper(operands=1),
    "timeout": Wrapper(valued=_names("s signal k kill_after"), operands=1),
    "unbuffer": Wrapper(),
    "sudo": Wrapper(valued=_names("u user g group")),
    "strace": Wrapper(valued=_names("o e p")),
    "numactl": Wrapper(valued=_names("N m l C i p cpunodebind membind physcpubind interleave preferred")),
    "nsys": Wrapper(
        verbs=_names("profile launch"),
        bare=_names("f_ w_ stop_on_exit_ wait_ gpu_metrics_ help h"),
    ),
    "ncu": Wrapper(valued=_names("o export k kernel_name c launch_count s launch_skip set section metrics target_processes")),
    "nvprof": Wrapper(valued=_names("o export_profile log_file")),
    "dlprof": Wrapper(),
    "py-spy": Wrapper(verbs=_names("record"), valued=_names("o output r rate f format d duration")),
    "scalene": Wrapper(),
    "compute-sanitizer": Wrapper(valued=_names("tool log_file")),
    "catchsegv": Wrapper(),
    "memray": Wrapper(verbs=_names("run"), valued=_names("o output")),
    "coverage": Wrapper(verbs=_names("run"), valued=_names("source omit")),
    "xvfb-run": Wrapper(valued=_names("n s e")),
    "docker": _DOCKER,
    "podman": _DOCKER,
    "nerdctl": _DOCKER,
    "nvidia-docker": _DOCKER,
    "apptainer": _APPTAINER,
    "singularity": _APPTAINER,
    "enroot": Wrapper(verbs=_names("start"), valued=_names("c conf e env m mount"), operands=1, variables=_names("e env")),
    "shifter": Wrapper(valued=_names("image volume module env e V")),
    "uv": _VENV,
    "poetry": _VENV,
    "pdm": _VENV,
    "pipenv": _VENV,
    "hatch": _VENV,
    "rye": _VENV,
    "pixi": Wrapper(verbs=_names("run"), valued=_names("e environment manifest_path")),
    "conda": Wrapper(verbs=_names("run"), valued=_names("n name p prefix cwd")),
    "mamba": Wrapper(verbs=_names("run"), valued=_names("n name p prefix cwd")),
    "micromamba": Wrapper(verbs=_names("run"), valued=_names("n name p prefix cwd")),
    "ray": Wrapper(
        verbs=_names("submit"),
        valued=_names(
            "address runtime_env runtime_env_json working_dir submission_id job_id entrypoint_num_cpus entrypoint_num_gpus metadata_json"
        ),
    ),
}


def env(peel: Peel) -> None:
    """`env NAME=value … command`."""
    arguments, rest = taken(peel.words[1:], {"u": 1, "unset": 1, "C": 1, "chdir": 1, "S": 0}, 0)
    peel.words = rest
    assigned(peel)
    if peel.words:
        peel.note("env", arguments)


def assigned(peel: Peel) -> None:
    """Variables in front of a command."""
    while peel.words and _ASSIGNED.match(peel.words[0].text):
        note_variable(peel.words[0], peel)
        peel.words = peel.words[1:]
