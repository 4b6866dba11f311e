"""A launch while it is peeled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from peakgate.readers.arguments import Arguments, Word
from peakgate.readers.files import FileError, Files
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.resources import Resources, resources_around
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings
from peakgate.readers.shell.values import Budget, Segment, Variable

KNOWN_SCRIPTS = ("run_train.sh", "run_llama_train.sh")
"""Scripts that a reader knows when they are not at hand: torchtitan's (run_train.sh of each age)."""


@dataclass(slots=True)
class Peel:
    """`words`: what is left, the next launcher or the program first; the rest as in a Launch."""

    words: list[Word]
    environment: Settings
    files: Files
    around: Reading
    own: Reading
    launchers: list[str] = field(default_factory=list)
    flags: dict[str, Arguments] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    warnings: list[str] = field(default_factory=list)
    depth: int = 0
    budget: Budget = field(default_factory=Budget)
    """Of all scripts that the launch starts."""
    unsure: dict[str, Variable] = field(default_factory=dict)
    """Environment variables of which a part is not known: what the shell of a further script may still split into words."""
    may_not_run: bool = False
    may_come_too_late: bool = False
    unseen: bool = False
    """Whether the environment holds what nobody shows."""
    imaged: bool = False
    """Whether it runs in an image, which may set variables."""

    def note(self, name: str, arguments: Arguments | None = None) -> None:
        """Notes a launcher."""
        self.launchers.append(name)
        if arguments is not None:
            self.flags[name] = arguments

    def copy(self, words: list[Word], environment: Settings, files: Files) -> Peel:
        """The same around other words: a command of a script that is started."""
        return replace(
            self,
            words=words,
            environment=environment,
            files=files,
            launchers=list(self.launchers),
            flags=dict(self.flags),
            resources=self.resources.copy(),
            warnings=list(self.warnings),
            depth=self.depth + 1,
        )

    def set(self, name: str, stated: Stated) -> None:
        """Sets an environment variable."""
        self.environment = self.environment.merged(Settings({name: stated}))

    def settings_of(self, path: str) -> Settings:
        """The settings of a launcher's config file; empty with a warning when it cannot be read."""
        try:
            return read_settings(self.files.text(path), path)
        except FileError as error:
            self.warnings.append(f"{path} {error}: what it says is not read")
            return Settings()


Launcher = Callable[[Peel], None]
"""Takes its own words and flags off `words`, and notes what they say."""


def peel_of(launch: Launch) -> Peel:
    """A launch at the start."""
    return Peel(
        words=list(launch.words),
        environment=launch.environment,
        files=launch.files,
        around=launch.around,
        own=launch.own,
        launchers=list(launch.launchers),
        flags=dict(launch.launcher_flags),
        resources=resources_around(launch.around),
        unsure={name: Variable({"0": (Segment(f"${name}", 0, "", known=False),)}, exported=True) for name in launch.unvalued},
        unseen=launch.unseen,
        imaged=launch.imaged,
    )
