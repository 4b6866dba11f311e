#!/bin/sh
# Slurm's Prolog, or a part of it: writes which job holds which GPU, for the agent of this node.
#
#   Prolog=/etc/slurm/peakgate-prolog        (slurm.conf; PrologFlags=Alloc runs it before the job's first process)
#
# Takes a few milliseconds, calls nothing of Slurm before it ends, and always ends well: a prolog that fails drains the node.

JOBS=/run/peakgate/jobs
DRIVER=/proc/driver/nvidia/gpus
# Jobs on at most so many nodes ask the controller for their AdminComment, one call a node, after the prolog has ended; 0: none does.
# Batch jobs that the gate admitted have their prediction in the environment without it.
ASK_UP_TO_NODES=16

plain() { printf '%s' "$1" | tr -cd 'A-Za-z0-9_./@:-' | cut -c1-128; }

# UUIDs of the job's GPUs: named in CUDA_VISIBLE_DEVICES (MIG), else by the device's minor number, which is what Slurm counts by. NVML's own
# numbers are in another order on some hosts.
gpus() {
  case "$CUDA_VISIBLE_DEVICES" in
    *GPU-* | *MIG-*) printf '%s' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n'; return ;;
  esac
  wanted=",${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES},"
  for file in "$DRIVER"/*/information; do
    [ -r "$file" ] || continue
    minor='' uuid=''
    while IFS=':' read -r name value; do
      case "$name" in
        'Device Minor') minor=$(printf '%s' "$value" | tr -cd '0-9') ;;
        'GPU UUID') uuid=$(plain "$value") ;;
      esac
    done < "$file"
    case "$wanted" in *",$minor,"*) [ -n "$minor" ] && printf '%s\n' "$uuid" ;; esac
  done
}

document() {
  printf '{"cluster": "%s", "job": "%s", "restart": %d, "prediction": "%s", "user": "%s"}\n' \
    "$(plain "$SLURM_CLUSTER_NAME")" "$(plain "$SLURM_JOB_ID")" "${SLURM_JOB_RESTART_COUNT:-0}" "$1" "$(plain "$SLURM_JOB_USER")"
}

# Each file appears whole: it is written beside itself and renamed.
write_all() {
  for uuid in $1; do
    case "$uuid" in *[!A-Za-z0-9-]*) continue ;; esac
    document "$2" > "$JOBS/.$uuid.new" && mv -f "$JOBS/.$uuid.new" "$JOBS/$uuid.json"
  done
}

ask_later() {
  id=$(timeout 10 scontrol show job -o "$SLURM_JOB_ID" | sed -n 's/.*AdminComment=[^ ]*peakgate=\([A-Za-z0-9_-]*\).*/\1/p' | head -n 1)
  case "$id" in '' | unchecked) return ;; esac
  first=$(printf '%s\n' "$1" | head -n 1)
  grep -q "\"job\": \"$SLURM_JOB_ID\"" "$JOBS/$first.json" && write_all "$1" "predictions/$id"  # the job may have ended meanwhile
}

main() {
  [ -n "$SLURM_JOB_ID" ] && [ -n "${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}" ] || return
  mkdir -p "$JOBS" || return
  uuids=$(gpus)
  [ -n "$uuids" ] || return
  write_all "$uuids" ''
  [ "${SLURM_JOB_NUM_NODES:-1}" -le "$ASK_UP_TO_NODES" ] && ask_later "$uuids" &
}

main < /dev/null > /dev/null 2>&1
exit 0
