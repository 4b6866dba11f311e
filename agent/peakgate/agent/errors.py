"""What can go wrong in the agent. One root; every error says what to do."""

from __future__ import annotations

from peakgate.agent.reactions import Reaction, rule_of

BAD_USAGE = 2
"""Exit status, as for every verb of the command."""


class AgentError(Exception):
    """The root. `remedy` is one line for a person, or empty."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class UsageError(AgentError):
    """The options do not make sense together, or name something that does not exist."""


class MissingPartError(AgentError):
    """A package or a program that this node lacks."""


class NvmlError(AgentError):
    """An NVML call failed. `code` is nvmlReturn_t, `gpu` the UUID or empty for a call about the whole node.

    pynvml's own exceptions cannot be hashed or compared with other exceptions, so they never leave `nvml.py`.
    """

    def __init__(self, *, function: str, code: int, gpu: str = "", detail: str = "") -> None:
        message = f"{function} failed with NVML code {code}" + (f" ({detail})" if detail else "") + (f" on {gpu}" if gpu else "")
        super().__init__(message, remedy=rule_of(code).remedy)
        self.function = function
        self.code = code
        self.gpu = gpu

    @property
    def reaction(self) -> Reaction:
        """What follows from it."""
        return rule_of(self.code).reaction


class ServiceUnavailableError(AgentError):
    """The service did not take a message now; it is sent again. `retry_after_seconds` is what the service asked for, or 0."""

    def __init__(self, message: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class MessageRefusedError(AgentError):
    """The service will never take this message as it is."""


class KubeletError(AgentError):
    """The kubelet did not answer. `code` is gRPC's status code as a word."""

    def __init__(self, *, method: str, code: str, detail: str = "") -> None:
        super().__init__(f"the kubelet's {method} failed with {code}" + (f" ({detail})" if detail else ""))
        self.code = code


class ClusterApiError(AgentError):
    """The Kubernetes API server cannot be read."""
