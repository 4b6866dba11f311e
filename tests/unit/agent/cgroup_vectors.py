"""Texts of /proc/PID/cgroup and what runs there: (text, kind, job, step, task, container), or (text,) for outside every scheduler.

Written by hand after the code that makes the names: Slurm src/plugins/cgroup/{v1,v2} and src/common/{log.c,sluid.h} (284c3b9), the
kubelet's cgroup_manager_linux.go, containerd, CRI-O, runc's systemd driver, docker, podman, LXC and systemd; nested paths as kind, k3s,
MicroK8s, Slurm-in-Kubernetes and rootless engines make them.
"""

from __future__ import annotations

ID = "a" * 12 + "0123456789abcdef" * 3 + "beef"
INNER = "b" * 12 + "fedcba9876543210" * 3 + "cafe"
SHORT = ID[:12]
POD = "1843d150-0a1b-4c2d-8e3f-001122334455"
UNDER = POD.replace("-", "_")
OTHER_POD = "9c9c9c9c-0a1b-4c2d-8e3f-001122334455"
STATIC = "0123456789abcdef" * 2
SLUID = "sEKNKTV3WPV500"
STEPD = "0::/system.slice/slurmstepd.scope"
USER = "0::/user.slice/user-1000.slice/user@1000.service"
KUBE = "0::/kubepods.slice/kubepods-burstable.slice"

SLICE = f"kubepods-burstable-pod{UNDER}.slice"
SESSION = "1:name=systemd:/user.slice/user-1.slice/session-3.scope\n"
BEST = "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort"
KUBELET = "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"

Vector = tuple[str, str, str, str, str, str] | tuple[str]


def _slurm(text: str, job: str, step: str = "", task: str = "") -> Vector:
    return text, "slurm", job, step, task, ""


def _pod(text: str, pod: str = POD, container: str = SHORT) -> Vector:
    return text, "kubernetes", pod, "", "", container


def _container(text: str) -> Vector:
    return text, "container", SHORT, "", "", SHORT


SLURM: dict[str, Vector] = {
    "v1": _slurm("11:memory:/slurm/uid_1000/job_402/step_0/task_1\n1:name=systemd:/", "402", "0", "1"),
    "v1, several slurmd": _slurm("11:memory:/slurm_node7/uid_1000/job_402/step_batch", "402", "batch"),
    "v1, extern step": _slurm("4:freezer:/slurm/uid_0/job_77/step_extern", "77", "extern"),
    "v1, interactive step": _slurm("4:freezer:/slurm/uid_5/job_77/step_interactive/task_0", "77", "interactive", "0"),
    "v1, job without a step": _slurm("12:cpuset:/\n11:memory:/slurm/uid_0/job_7\n", "7"),
    "v1, only one controller constrained": _slurm("9:cpu:/\n8:devices:/slurm/uid_3/job_12/step_4\n7:memory:/user.slice", "12", "4"),
    "v1, podman inside": _slurm(f"7:devices:/slurm/uid_3/job_12/step_4/libpod-{ID}", "12", "4"),
    "v2 before 26.05": _slurm(f"{STEPD}/job_123/step_0/user/task_0", "123", "0", "0"),
    "v2, several slurmd": _slurm("0::/system.slice/node7_slurmstepd.scope/job_123/step_extern/user/task_0", "123", "extern", "0"),
    "v2, node name with underscores": _slurm("0::/system.slice/gpu_a_01_slurmstepd.scope/job_5/step_2/user/task_3", "5", "2", "3"),
    "v2, task outside a number": _slurm(f"{STEPD}/job_123/step_extern/user/task_special", "123", "extern", "special"),
    "v2, batch script": _slurm(f"{STEPD}/job_123/step_batch/user/task_0", "123", "batch", "0"),
    "v2, salloc's interactive step": _slurm(f"{STEPD}/job_123/step_interactive/user/task_0", "123", "interactive", "0"),
    "v2, the step's own slurmstepd": _slurm(f"{STEPD}/job_123/step_0/slurm", "123", "0"),
    "v2, het step component": _slurm(f"{STEPD}/job_124/step_0+1/user/task_0", "124", "0+1", "0"),
    "v2, large numbers": _slurm(f"{STEPD}/job_67043328/step_4294901760/user/task_127", "67043328", "4294901760", "127"),
    "v2, a site's CgroupSlice": _slurm("0::/hpc.slice/hpc-jobs.slice/slurmstepd.scope/job_9/step_1/user/task_0", "9", "1", "0"),
    "v2, group removed under the process": _slurm(f"{STEPD}/job_123/step_0/user/task_0 (deleted)", "123", "0", "0"),
    "v2, step group removed": _slurm(f"{STEPD}/job_123/step_0 (deleted)", "123", "0"),
    "26.05": _slurm(f"{STEPD}/{SLUID}/step_0/user/task_0", SLUID, "0", "0"),
    "26.05, batch": _slurm(f"{STEPD}/{SLUID}/step_batch/user/task_0", SLUID, "batch", "0"),
    "26.05, several slurmd": _slurm(f"0::/system.slice/n1_slurmstepd.scope/{SLUID}/step_extern/user/task_0", SLUID, "extern", "0"),
    "26.05, no step yet": _slurm(f"{STEPD}/{SLUID}", SLUID),
    "26.05, CgroupJobIdPaths": _slurm(f"{STEPD}/job_402/step_0/user/task_0", "402", "0", "0"),
    "podman inside": _slurm(f"{STEPD}/job_9/step_0/user/task_0/libpod-{ID}.scope", "9", "0", "0"),
    "podman inside, with its own children": _slurm(f"{STEPD}/job_9/step_0/user/task_0/libpod-{ID}/container", "9", "0", "0"),
    "pyxis and enroot keep the step's group": _slurm(f"{STEPD}/job_9/step_0/user/task_5", "9", "0", "5"),
    "docker inside a SLUID": _slurm(f"{STEPD}/{SLUID}/step_1/user/task_0/docker/{ID}", SLUID, "1", "0"),
    "Slurm in a pod": _slurm(f"{KUBE}/{SLICE}/cri-containerd-{ID}.scope/system.slice/slurmstepd.scope/job_5/step_0", "5", "0"),
    "Slurm in docker": _slurm(f"0::/docker/{ID}/system.slice/slurmstepd.scope/job_5/step_0/user/task_0", "5", "0", "0"),
    "seen from another cgroup namespace": _slurm("0::/../slurmstepd.scope/job_5/step_0/user/task_0", "5", "0", "0"),
    "a job group made inside a job": _slurm(f"{STEPD}/job_9/step_0/user/task_0/slurmstepd.scope/job_10/step_0", "9", "0", "0"),
    "pam_slurm_adopt beside a session": _slurm(SESSION + f"{STEPD}/job_9/step_extern/user/task_special", "9", "extern", "special"),
}  # fmt: skip

KUBERNETES: dict[str, Vector] = {
    "systemd, v2": _pod(f"{KUBE}/{SLICE}/cri-containerd-{ID}.scope"),
    "systemd, guaranteed": _pod(f"0::/kubepods.slice/kubepods-pod{UNDER}.slice/cri-containerd-{ID}.scope"),
    "systemd, best effort, v1": _pod(f"5:pids:/{BEST}-pod{UNDER}.slice/docker-{ID}.scope"),
    "cgroupfs, v1": _pod(f"9:memory:/kubepods/burstable/pod{POD}/{ID}"),
    "cgroupfs, guaranteed, v2": _pod(f"0::/kubepods/pod{POD}/{ID}"),
    "static pod": _pod(f"0::/kubepods.slice/kubepods-pod{STATIC}.slice/crio-{ID}.scope", STATIC),
    "static pod, cgroupfs": _pod(f"0::/kubepods/burstable/pod{STATIC}/{ID}", STATIC),
    "CRI-O": _pod(f"{KUBE}/{SLICE}/crio-{ID}.scope"),
    "CRI-O, v2 with a group of its own": _pod(f"{KUBE}/{SLICE}/crio-{ID}.scope/container"),
    "CRI-O's monitor": _pod(f"{KUBE}/{SLICE}/crio-conmon-{ID}.scope"),
    "containerd with the wrong driver": _pod(f"11:devices:/system.slice/containerd.service/{SLICE}:cri-containerd:{ID}"),
    "cgroup root of the kubelet, systemd": _pod(f"0::/{KUBELET}/kubelet-{SLICE}/cri-containerd-{ID}.scope"),
    "kind": _pod(f"0::/docker/{INNER}/kubelet/kubepods/burstable/pod{POD}/{ID}"),
    "kind, systemd": _pod(f"0::/system.slice/docker-{INNER}.scope/{KUBELET}/kubelet-{SLICE}/cri-containerd-{ID}.scope"),
    "k3s": _pod(f"0::/k3s/kubepods/burstable/pod{POD}/{ID}"),
    "MicroK8s": _pod(f"7:cpuset:/kubepods/besteffort/pod{POD}/{ID}"),
    "seen from another cgroup namespace": _pod(f"0::/../../kubepods-pod{UNDER}.slice/cri-containerd-{ID}.scope"),
    "docker in a pod": _pod(f"0::/kubepods/burstable/pod{POD}/{ID}/docker/{INNER}"),
    "a cluster in a pod": _pod(f"0::/kubepods/pod{POD}/{ID}/kubelet/kubepods/pod{OTHER_POD}/{INNER}"),
    "group removed under the process": _pod(f"0::/kubepods/pod{POD}/{ID} (deleted)"),
    "a pod's own group": _pod(f"0::/kubepods/burstable/pod{POD}", POD, ""),
    "Kata": _pod(f"0::/kubepods/burstable/pod{POD}/kata_overhead", POD, ""),
}  # fmt: skip

CONTAINERS: dict[str, Vector] = {
    "docker, systemd": _container(f"0::/system.slice/docker-{ID}.scope"),
    "docker, cgroupfs, v1": _container(f"5:devices:/docker/{ID}"),
    "docker, own parent": _container(f"0::/machines.slice/machines-gpu.slice/docker-{ID}.scope"),
    "docker, systemd inside": _container(f"0::/system.slice/docker-{ID}.scope/init.scope"),
    "docker in docker": _container(f"0::/docker/{ID}/docker/{INNER}"),
    "docker, rootless": _container(f"{USER}/user.slice/docker-{ID}.scope"),
    "podman, root": _container(f"0::/machine.slice/libpod-{ID}.scope/container"),
    "podman, rootless": _container(f"{USER}/user.slice/libpod-{ID}.scope/container"),
    "podman, cgroupfs": _container(f"0::/libpod_parent/libpod-{ID}"),
    "podman from a unit": _container(f"{USER}/app.slice/train.service/libpod-payload-{ID}"),
    "nerdctl": _container(f"0::/system.slice/nerdctl-{ID}.scope"),
    "ECS": _container(f"9:memory:/ecs/{STATIC}/{ID}"),
}

NOBODY: dict[str, Vector] = {
    "slurmstepd waiting for its step": (f"{STEPD}/system",),
    "slurmd": ("0::/system.slice/slurmd.service",),
    "another cgroup namespace": ("0::/../../user.slice/user-1000.slice/session-3.scope",),
    "a user's session": ("0::/user.slice/user-1000.slice/session-3.scope",),
    "a systemd unit": ("0::/system.slice/train.service",),
    "LXC": ("0::/lxc.payload.trainer/system.slice/ssh.service",),
    "LXC, v1": ("4:memory:/lxc/trainer",),
    "no text": ("",),
    "no path": ("garbage\n12:memory\n",),
    "the root group": ("0::/",),
    "a letter that Crockford's base 32 lacks": (f"{STEPD}/sEKNKTV3WPVU00/step_0",),
    "a SLUID that is too long": (f"{STEPD}/{SLUID}0/step_0",),
    "a job number with more behind it": (f"{STEPD}/job_12x/step_0",),
    "a job number that is none": (f"{STEPD}/job_-1/step_0",),
    "no scope of slurmstepd": ("0::/system.slice/slurmstepd.scope.d/job_12/step_0",),
    "a user who names a group after a job": (f"{USER}/app.slice/slurmstepd.scope/job_402/step_0/user/task_0",),
    "a user who names a group after a SLUID": (f"{USER}/slurmstepd.scope/{SLUID}/step_0",),
    "a user who names groups as v1 does": (f"{USER}/slurm/uid_0/job_402/step_0",),
    "a user who names a group after a pod": (f"{USER}/kubepods/burstable/pod{POD}",),
    "a session that is named after a pod": (f"0::/user.slice/kubepods-pod{UNDER}.slice",),
    "a pod uid with mixed separators": ("0::/kubepods/pod1843d150-0a1b_4c2d-8e3f-001122334455",),
    "a tripod": (f"0::/system.slice/tripod{POD}.service",),
    "an id that is too short": (f"0::/system.slice/docker-{ID[:-1]}.scope",),
    "an id that is too long": (f"0::/system.slice/docker-{ID}0.scope",),
    "an id in capitals": (f"0::/system.slice/docker-{ID.upper()}.scope",),
}  # fmt: skip

GROUPS = {"slurm": SLURM, "kubernetes": KUBERNETES, "container": CONTAINERS, "nobody": NOBODY}
