"""An AdmissionCheck controller for Kueue, which knows the flavor that a workload was given.

`peakgate kueue run` watches and decides, `peakgate kueue release` is the break-glass. What they call of the API server stands in
permissions.py, which the chart's roles are compared with; the Lease must exist, without a spec, and is never created.

A ClusterQueue opts in by naming an AdmissionCheck with `spec.controllerName: peakgate.io/kueue` in its admissionChecksStrategy. The
annotation `peakgate.io/mode` of the check says what a rejection does: off, warn (Ready with a message) or enforce (Rejected, upon which
Kueue deactivates the workload). `peakgate.io/release: REASON` on it makes every pending workload Ready at once.

Without the controller (kueue pkg/cache/scheduler/clusterqueue.go, pkg/controller/core/workload_controller.go): a check that was never
Active makes its ClusterQueue inactive, whose workloads wait without quota. A check that is Active stays so, for nobody but this
controller changes that: workloads reserve quota and wait with the check Pending until the quota is used up; what was admitted runs on;
nothing times out. So there are two replicas with a lease, and an alert when nobody leads. Then, in this order: `peakgate kueue release`,
which sets pending checks Ready, needs no controller and may be repeated (`--every`); or taking the check out of the ClusterQueue, after
which Kueue drops its states from the workloads and admits them.
"""
