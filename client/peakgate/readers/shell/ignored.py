"""Programs that prepare or watch a job and never train."""

from __future__ import annotations

# fmt: off
IGNORED = frozenset({
    # files and text
    "awk", "basename", "cat", "chmod", "chown", "cp", "curl", "cut", "date", "df", "diff", "dirname", "du", "echo", "envsubst", "find",
    "grep", "gunzip", "gzip", "head", "jq", "less", "ln", "ls", "md5sum", "mkdir", "mktemp", "more", "mount", "mv", "printf",
    "realpath", "rclone", "rm", "rmdir", "rsync", "scp", "sed", "seq", "sort", "stat", "sync", "tail", "tar", "tee", "touch", "tr",
    "umount", "uniq", "unzip", "vi", "wc", "wget", "which", "xargs", "yq", "zip",
    # the machine and its state
    "clear", "dcgmi", "free", "hostname", "htop", "id", "ifconfig", "ip", "ipcs", "kill", "killall", "lscpu", "lsof", "nc", "nproc",
    "numastat", "nvidia-smi", "nvitop", "ping", "pkill", "ps", "pwd", "reset", "scancel", "scontrol", "sacct", "sinfo", "squeue",
    "sleep", "ss", "stty", "sysctl", "tmux", "top", "tput", "uname", "uptime", "users", "w", "watch", "whoami",
    # packages, modules and clouds
    "apt", "apt-get", "aws", "az", "brew", "cmake", "conda-activate", "dnf", "docker-compose", "gcloud", "git", "gsutil", "hf",
    "huggingface-cli", "kubectl", "make", "ml", "module", "perl", "shuf", "ninja", "nvcc", "pip", "pip3", "rpm", "spack", "ssh",
    "ssh-keyscan", "sshd", "wandb", "yum", "tensorboard", "tensorboard_data_server", "mlflow", "nvidia-cuda-mps-control", "service",
    "systemctl", "sbcast", "login",
    # the shell's own that change nothing here
    ":", "alias", "bg", "builtin", "complete", "dirs", "disown", "fg", "hash", "history", "jobs", "logout", "rehash", "suspend",
    "times", "popd", "type", "ulimit", "umask", "unalias", "wait",
})
# fmt: on
MODULES = frozenset(
    {"pip", "venv", "virtualenv", "ensurepip", "ipykernel", "http.server", "json.tool", "site", "torch.utils.collect_env", "pytest"}
)
"""Modules of Python of the same kind."""

SOURCED = frozenset({"activate", ".bashrc", ".bash_profile", ".profile", ".zshrc", "conda.sh", "modules.sh", "setvars.sh", "lmod.sh"})
"""Files that are sourced for the programs they make available, not for settings of a job."""
