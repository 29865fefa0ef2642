{{- /* What a gateway is told wherever it runs. */ -}}
{{- define "lockstep.gatewayFlags" -}}
http_listen: 0.0.0.0:8080
health_listen: 0.0.0.0:50054
{{- if .Values.tokenizer.enabled }}
tokenizer_address: {{ .Release.Name }}-tokenizer:50055
{{- else }}
model: {{ include "lockstep.model" . | quote }}
{{- end }}
{{- /* Leaders are found by their addresses: the certificate has a name. */}}
{{- if .Values.tls.internal.enabled }}
worker_tls_ca: /tls/ca.crt
worker_tls_name: {{ .Release.Name }}-worker
client_tls_certificate: /tls/tls.crt
client_tls_key: /tls/tls.key
{{- if .Values.tokenizer.enabled }}
tokenizer_tls_ca: /tls/ca.crt
{{- end }}
{{- end }}
{{- with .Values.gateway.apiKeys }}
{{- if .secret }}
api_keys_file: {{ printf "/api-keys/%s" .key | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "lockstep.gatewayProbes" -}}
# Not readiness: there may be no worker group yet.
startupProbe: {{- include "lockstep.probe" (dict "port" 50054 "service" "liveness" "period" 2 "failures" 60) | nindent 2 }}
readinessProbe: {{- include "lockstep.probe" (dict "port" 50054 "service" "readiness" "period" 5 "failures" 2) | nindent 2 }}
livenessProbe: {{- include "lockstep.probe" (dict "port" 50054 "service" "liveness" "period" 10 "failures" 6) | nindent 2 }}
{{- end -}}

{{- define "lockstep.gatewayMounts" -}}
{{- if not .Values.tokenizer.enabled }}
- {{ include "lockstep.modelMount" . }}
{{- end }}
{{- if .Values.tls.internal.enabled }}
- {name: tls, mountPath: /tls, readOnly: true}
{{- end }}
{{- if .Values.gateway.apiKeys.secret }}
- {name: api-keys, mountPath: /api-keys, readOnly: true}
{{- end }}
{{- end -}}

{{- define "lockstep.apiKeysVolume" -}}
{name: api-keys, secret: {secretName: {{ .Values.gateway.apiKeys.secret }}, defaultMode: 0440}}
{{- end -}}

{{- /* A gateway of one group, in its leader's Pod: a sidecar, which starts before
the worker and ends after it, and so after the last stream. */ -}}
{{- define "lockstep.leadersGateway" -}}
{{- $gateway := .Values.gateway -}}
{{- $flags := merge (dict
      "listen" "127.0.0.1:50051"
      "workers" "127.0.0.1:50052"
      "drain_timeout" 5) (include "lockstep.gatewayFlags" . | fromYaml) -}}
{{- include "lockstep.anyContainer" (dict "root" . "name" "gateway" "values" $gateway) }}
restartPolicy: Always
args: {{- include "lockstep.flags" (merge (deepCopy $gateway.flags) $flags) | trim | nindent 2 }}
{{- if and .Values.model.hub.name (not .Values.tokenizer.enabled) }}
env: {{- include "lockstep.hubEnvironment" . | nindent 2 }}
{{- end }}
# Other names than the worker's have.
ports:
  - {name: http, containerPort: 8080}
  - {name: gateway-health, containerPort: 50054}
  - {name: gateway-metrics, containerPort: 9090}
{{ include "lockstep.gatewayProbes" . }}
{{- with include "lockstep.gatewayMounts" . | trim }}
volumeMounts: {{- . | nindent 2 }}
{{- end }}
{{- end -}}
