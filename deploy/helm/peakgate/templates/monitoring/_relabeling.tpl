{{/* The job and the node that rules and dashboards speak of, whatever the release is called. */}}
{{- define "peakgate.jobRelabeling" -}}
relabelings:
  - targetLabel: job
    replacement: peakgate-{{ . }}
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: node
{{- end -}}
