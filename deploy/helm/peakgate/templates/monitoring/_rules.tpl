{{- /* A PrometheusRule of a file of deploy/prometheus: (list $ "files/NAME.yml"). */ -}}
{{- define "peakgate.rules" }}
{{- $ := index . 0 }}
{{- $path := index . 1 }}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ include "peakgate.name" $ }}-{{ base $path | trimSuffix ".yml" }}
  namespace: {{ $.Release.Namespace }}
  labels:
    {{- include "peakgate.labels" (list $ "monitoring") | nindent 4 }}
    {{- with $.Values.monitoring.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- $runbook := $.Values.monitoring.runbook | default "docs/runbook.md" }}
  {{- $.Files.Get $path | replace "runbook_url: docs/runbook.md#" (printf "runbook_url: %s#" $runbook) | nindent 2 }}
{{- end }}
