"""An AdmissionCheck controller for Kueue, which knows the flavor that a workload was given.

`peakgate kueue run` watches and decides, `peakgate kueue release` is the break-glass. What they call of the API server stands in
permissions.py, which the chart's roles are compared with; the Lease must exist, without a spec, and is never created.

How a queue opts in, and what to do without the controller: docs/kueue.md. That nothing times out then is read from kueue
pkg/cache/scheduler/clusterqueue.go and pkg/controller/core/workload_controller.go: a check that was never Active makes its ClusterQueue
inactive, whose workloads wait without quota; one that is Active stays so, for nobody but this controller changes that.
"""
