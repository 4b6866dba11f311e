{{/* Name of the release's objects: the release's own where it says peakgate. */}}
{{- define "peakgate.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects a component's pods: (list $ "server"). */}}
{{- define "peakgate.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: peakgate
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of an object of a component: (list $ "server"). */}}
{{- define "peakgate.labels" -}}
{{- $root := index . 0 -}}
{{ include "peakgate.selector" . }}
app.kubernetes.io/version: {{ $root.Values.image.tag | default $root.Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* A component's image: (list $ "repository"); without the repository that of all. */}}
{{- define "peakgate.image" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.image -}}
{{- with .registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- index $ 1 | default .repository }}:{{ .tag | default $root.Chart.AppVersion -}}
{{- if not (index $ 1) }}{{ with .digest }}@{{ . }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* What every pod has: (list $ "server" .Values.server). */}}
{{- define "peakgate.scheduling" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The replicas of a component on different nodes, where there are any. */}}
{{- define "peakgate.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "peakgate.selector" . | nindent 8 }}
{{- end -}}

{{/* The pod's security context under the policy "restricted"; 10001 is the image's user. */}}
{{- define "peakgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "peakgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "peakgate.serverAddress" -}}
{{ include "peakgate.name" . }}-server.{{ .Release.Namespace }}.svc:50551
{{- end -}}

{{/* SQLite has one writer; PostgreSQL any number of servers. */}}
{{- define "peakgate.serverReplicas" -}}
{{- if .Values.database.existingSecret -}}
{{ .Values.server.replicas | default 2 }}
{{- else -}}
{{- if gt (int .Values.server.replicas) 1 -}}
{{- fail "server.replicas: SQLite serves one server; name a PostgreSQL URL's Secret in database.existingSecret" -}}
{{- end -}}
1
{{- end -}}
{{- end -}}

{{/* The database's URL as an environment variable. */}}
{{- define "peakgate.databaseEnv" -}}
- name: PEAKGATE_DATABASE_URL
{{- if .Values.database.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
{{- else }}
  value: sqlite:////var/lib/peakgate/peakgate.sqlite3
{{- end }}
{{- end -}}

{{- define "peakgate.certificateSecret" -}}
{{- with .Values.webhook.certificates -}}
{{- if eq .source "secret" -}}
{{ required "webhook.certificates.existingSecret: the Secret with tls.crt and tls.key" .existingSecret }}
{{- else -}}
{{ include "peakgate.name" $ }}-webhook-tls
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether monitors and rules are wanted: "true" or empty. */}}
{{- define "peakgate.monitoring" -}}
{{- $wanted := toString .Values.monitoring.enabled -}}
{{- if or (eq $wanted "true") (and (eq $wanted "auto") (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
true
{{- end -}}
{{- end -}}
