{{- /* The Pod of a leader or a follower. */ -}}
{{- define "lockstep.worker" -}}
{{- $worker := .worker -}}
metadata:
  labels:
    {{- include "lockstep.labels" .of | nindent 4 }}
    lockstep/role: {{ .role }}
  annotations:
    # A Pod that an autoscaler of nodes moves takes its group with it.
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    karpenter.sh/do-not-disrupt: "true"
spec:
  serviceAccountName: {{ .root.Release.Name }}-worker
  {{- include "lockstep.pod" (dict "root" .root "values" $worker) | nindent 2 }}
  {{- with $worker.schedulerName }}
  schedulerName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .grace }}
  {{- if eq .role "leader" }}
  topologySpreadConstraints: {{- include "lockstep.spread" (dict "selector" (dict
      "leaderworkerset.sigs.k8s.io/name" .name "leaderworkerset.sigs.k8s.io/worker-index" "0")) | trim | nindent 4 }}
  {{- end }}
  {{- $hasGateway := and .root.Values.inferencePool.enabled (eq .role "leader") }}
  {{- if $hasGateway }}
  initContainers:
    - {{ include "lockstep.leadersGateway" .root | nindent 6 | trim }}
  {{- end }}
  containers:
    - {{ include "lockstep.container" (dict "root" .root "name" "worker" "values" $worker) | nindent 6 | trim }}
      {{- $isOfHub := not (empty .root.Values.model.hub.name) }}
      {{- if or .several $isOfHub }}
      env:
        {{- if .several }}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- end }}
        {{- if $isOfHub }}
        {{- include "lockstep.hubEnvironment" .root | nindent 8 }}
        {{- end }}
      {{- end }}
      args: {{- include "lockstep.flags" (merge (deepCopy $worker.flags) .flags) | trim | nindent 8 }}
      ports:
        - {name: grpc, containerPort: 50052}
        - {name: health, containerPort: 50053}
        - {name: metrics, containerPort: 9091}
        {{- if .several }}
        - {name: rendezvous, containerPort: 7000}
        {{- end }}
      # Loading may take as long as this; from then on readiness decides who
      # gets requests, and liveness notices a step that hangs.
      startupProbe: {{- include "lockstep.probe" (dict "port" 50053 "service" "readiness" "period" 5
          "failures" (div $worker.startSeconds 5)) | nindent 8 }}
      readinessProbe: {{- include "lockstep.probe" (dict "port" 50053 "service" "readiness" "period" 5 "failures" 2) | nindent 8 }}
      livenessProbe: {{- include "lockstep.probe" (dict "port" 50053 "service" "liveness" "period" 10 "failures" 6) | nindent 8 }}
      volumeMounts:
        - {{ include "lockstep.modelMount" .root }}
        {{- if .root.Values.tls.internal.enabled }}
        - {name: tls, mountPath: /tls, readOnly: true}
        {{- end }}
        {{- if $worker.shmSize }}
        - {name: shm, mountPath: /dev/shm}
        {{- end }}
  volumes:
    - {{ include "lockstep.modelVolume" .root | nindent 6 | trim }}
    {{- if .root.Values.tls.internal.enabled }}
    - {{ include "lockstep.tlsVolume" .of }}
    {{- end }}
    {{- if and $hasGateway .root.Values.gateway.apiKeys.secret }}
    - {{ include "lockstep.apiKeysVolume" .root }}
    {{- end }}
    {{- with $worker.shmSize }}
    - name: shm
      emptyDir: {medium: Memory, sizeLimit: {{ . }}}
    {{- end }}
{{- end -}}
