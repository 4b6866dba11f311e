{{- define "peakgate.egressToNames" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end -}}

{{- define "peakgate.egressToServer" -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "peakgate.selector" (list . "server") | nindent 10 }}
  ports:
    - port: grpc
{{- end -}}

{{/* Its Service's port and the usual one behind it; there is no selector for it. */}}
{{- define "peakgate.egressToApiServer" -}}
- ports:
    - port: 443
    - port: 6443
{{- end -}}
