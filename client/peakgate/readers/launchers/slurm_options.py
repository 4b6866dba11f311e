"""Options of sbatch, salloc and srun: which have a word behind them (sbatch(1), salloc(1), srun(1); container options of Pyxis).

Imports nothing of weight: `peakgate sbatch` looks here before it knows whether a job is of interest at all.
"""

from __future__ import annotations

SHORT = {
    "A": "account", "a": "array", "B": "extra_node_info", "b": "begin", "C": "constraint", "c": "cpus_per_task", "D": "chdir",
    "d": "dependency", "e": "error", "F": "nodefile", "G": "gpus", "i": "input", "J": "job_name", "L": "licenses", "M": "clusters",
    "m": "distribution", "N": "nodes", "n": "ntasks", "o": "output", "p": "partition", "q": "qos", "r": "relative", "S": "core_spec",
    "T": "threads", "t": "time", "w": "nodelist", "x": "exclude",
}  # fmt: skip
"""Short options with a value."""

BARE = frozenset({
    "exclusive", "overlap", "exact", "label", "unbuffered", "no_kill", "kill_on_bad_exit", "overcommit", "oversubscribe", "quiet",
    "verbose", "hold", "immediate", "pty", "preserve_env", "contiguous", "requeue", "no_requeue", "disable_status", "no_allocate",
    "no_shell", "spread_job", "use_min_nodes", "wait", "test_only", "parsable", "ignore_pbs", "whole", "multi_prog", "reboot",
    "propagate", "get_user_env", "nice", "x11", "share", "no_container_mount_home", "container_mount_home", "container_remap_root",
    "no_container_remap_root", "container_writable", "container_readonly", "no_container_entrypoint", "container_entrypoint", "help",
    "usage", "version", "bell", "no_bell", "external_launcher", "bcast", "compress", "send_libs", "resv_ports", "interactive", "stepmgr",
})  # fmt: skip
"""Long options without a word behind them."""
