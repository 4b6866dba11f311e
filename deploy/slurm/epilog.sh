#!/bin/sh
# Slurm's Epilog and EpilogSlurmctld, or a part of them.
#
#   Epilog=/etc/slurm/peakgate-epilog             on the nodes: takes away the files that the prolog wrote
#   EpilogSlurmctld=/etc/slurm/peakgate-epilog    on the controller: tells the service how the job ended, once a job
#
# Takes a few milliseconds: what speaks to the service runs after it. Always ends well: an epilog that fails drains the node.

JOBS=/run/peakgate/jobs
PEAKGATE=peakgate
SECONDS_AT_MOST=60
# Where the service is; slurmctld hands its scripts no environment of its own.
[ -r /etc/peakgate/slurm.env ] && . /etc/peakgate/slurm.env

on_node() {
  for file in "$JOBS"/*.json; do
    [ -r "$file" ] && grep -q "\"job\": \"$SLURM_JOB_ID\"" "$file" && rm -f "$file"
  done
}

on_controller() {
  setsid timeout --kill-after=5 "$SECONDS_AT_MOST" "$PEAKGATE" slurm ended &
}

main() {
  [ -n "$SLURM_JOB_ID" ] || return
  case "$SLURM_SCRIPT_CONTEXT" in
    epilog_slurmctld) on_controller ;;
    *) on_node ;;
  esac
}

main < /dev/null > /dev/null 2>&1
exit 0
