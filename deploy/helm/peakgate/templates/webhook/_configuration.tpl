{{/* What both configurations say of their one webhook: (list $ "/path"). */}}
{{- define "peakgate.webhook" -}}
{{- $root := index . 0 -}}
{{- $name := include "peakgate.name" $root -}}
{{- $webhook := $root.Values.webhook -}}
admissionReviewVersions: [v1]
# A prediction is stored, and of a dry run none.
sideEffects: NoneOnDryRun
failurePolicy: {{ $webhook.failurePolicy }}
timeoutSeconds: {{ $webhook.timeoutSeconds }}
matchPolicy: Equivalent
clientConfig:
  service:
    name: {{ $name }}-webhook
    namespace: {{ $root.Release.Namespace }}
    path: {{ index . 1 }}
    port: 443
  {{- if eq $webhook.certificates.source "secret" }}
  caBundle: {{ required "webhook.certificates.caBundle: the authority that signed the Secret's certificate" $webhook.certificates.caBundle | b64enc }}
  {{- end }}
namespaceSelector:
  matchExpressions:
    {{- with $webhook.namespaces }}
    - key: kubernetes.io/metadata.name
      operator: In
      values:
        {{- toYaml . | nindent 8 }}
    {{- end }}
    # A webhook in front of its own pods could keep itself from coming back.
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
        {{- toYaml (concat $webhook.excludedNamespaces (list $root.Release.Namespace $root.Values.agent.namespace) | uniq) | nindent 8 }}
matchConditions:
  # Mirror pods, whose makers cannot be told anything.
  - name: not-of-a-node
    expression: "!('system:nodes' in request.userInfo.groups)"
  # What a controller makes is judged at its root: a refusal there reaches the person.
  - name: not-of-a-controller
    expression: "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)"
rules:
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
    scope: Namespaced
  - apiGroups: [batch]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [jobs]
    scope: Namespaced
  # Its job may change; of a Job and its like it may not.
  - apiGroups: [batch]
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [cronjobs]
    scope: Namespaced
  - apiGroups: [jobset.x-k8s.io]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [jobsets]
    scope: Namespaced
  - apiGroups: [kubeflow.org]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [pytorchjobs, mpijobs]
    scope: Namespaced
  - apiGroups: [trainer.kubeflow.org]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [trainjobs]
    scope: Namespaced
  - apiGroups: [ray.io]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [rayjobs]
    scope: Namespaced
  - apiGroups: [batch.volcano.sh]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [jobs]
    scope: Namespaced
  - apiGroups: [kueue.x-k8s.io]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [workloads]
    scope: Namespaced
{{- end -}}
