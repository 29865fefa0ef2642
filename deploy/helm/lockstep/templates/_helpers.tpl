{{- /* NAME of a component: RELEASE-COMPONENT. */ -}}
{{- define "lockstep.name" -}}
{{ .root.Release.Name }}-{{ .component }}
{{- end -}}

{{- define "lockstep.selector" -}}
app.kubernetes.io/name: lockstep
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "lockstep.labels" -}}
{{ include "lockstep.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end -}}

{{- define "lockstep.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* What --model is: in the volume, or of a hub. */ -}}
{{- define "lockstep.model" -}}
{{- $model := .Values.model -}}
{{- if eq (empty $model.path) (empty $model.hub.name) -}}
{{- fail "model: exactly one of path and hub.name must be set" -}}
{{- end -}}
{{ $model.hub.name | default (printf "/models/%s" $model.path) }}
{{- end -}}

{{- define "lockstep.modelMount" -}}
{name: models, mountPath: /models, readOnly: {{ empty .Values.model.hub.name }}}
{{- end -}}

{{- /* Of a hub's model, whose files are kept in the volume. */ -}}
{{- define "lockstep.hubEnvironment" -}}
- {name: HF_HOME, value: /models}
{{- with .Values.model.hub.endpoint }}
- {name: HF_ENDPOINT, value: {{ quote . }}}
{{- end }}
{{- with .Values.model.hub.token }}
{{- if .secret }}
- name: HF_TOKEN
  valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* preStop + drain + margin: nothing is killed that could still end. */ -}}
{{- define "lockstep.grace" -}}
{{ add .preStopSeconds .drainSeconds .exitMarginSeconds }}
{{- end -}}

{{- define "lockstep.resources" -}}
{{- $all := merge (dict "cpu" .cpu "memory" .memory) (.extended | default dict) -}}
requests: {{- toYaml $all | nindent 2 }}
limits: {{- toYaml $all | nindent 2 }}
{{- end -}}

{{- /* What every Pod has. */ -}}
{{- define "lockstep.pod" -}}
automountServiceAccountToken: {{ .asksApiServer | default false }}
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .root.Values.podSecurity.runAsUser }}
  runAsGroup: {{ .root.Values.podSecurity.runAsUser }}
  fsGroup: {{ .root.Values.podSecurity.fsGroup }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* A container that others call until preStop is over. */ -}}
{{- define "lockstep.container" -}}
{{ include "lockstep.anyContainer" . }}
lifecycle: {preStop: {sleep: {seconds: {{ .values.preStopSeconds }}}}}
{{- end -}}

{{- /* What every container has: `name` is that of the binary, too. */ -}}
{{- define "lockstep.anyContainer" -}}
name: {{ .name }}
image: {{ include "lockstep.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: [/usr/local/bin/{{ .name }}]
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources: {{- include "lockstep.resources" .values.resources | nindent 2 }}
{{- end -}}

{{- define "lockstep.flags" -}}
{{- range $name, $value := . }}
- {{ printf "--%s=%v" $name $value | quote }}
{{- end }}
{{- end -}}

{{- /* A probe of the health port: service, and how long it may fail. */ -}}
{{- define "lockstep.probe" -}}
grpc: {port: {{ .port }}, service: {{ .service }}}
periodSeconds: {{ .period }}
failureThreshold: {{ .failures }}
timeoutSeconds: 5
{{- end -}}

{{- define "lockstep.modelVolume" -}}
{{- $volume := deepCopy .Values.model.volume -}}
{{- $isCache := not (empty .Values.model.hub.name) -}}
{{- if and $isCache $volume.image -}}
{{- fail "model.volume: an image can not be written to, which the files of model.hub are" -}}
{{- end -}}
{{- with $volume.persistentVolumeClaim }}{{ $_ := set . "readOnly" (not $isCache) }}{{ end -}}
name: models
{{ toYaml $volume }}
{{- end -}}

{{- /* What a server shows gateways, and wants of them. */ -}}
{{- define "lockstep.serverTls" -}}
tls_certificate: /tls/tls.crt
tls_key: /tls/tls.key
tls_client_ca: /tls/ca.crt
{{- end -}}

{{- define "lockstep.tlsVolume" -}}
{name: tls, secret: {secretName: {{ include "lockstep.name" . }}-tls, defaultMode: 0440}}
{{- end -}}

{{- /* Of a Service's port: HTTP/2 without TLS, unless there is some. */ -}}
{{- define "lockstep.h2c" -}}
{{- if not . }}, appProtocol: kubernetes.io/h2c{{ end -}}
{{- end -}}

{{- /* Replicas apart, as far as there are hosts and zones. */ -}}
{{- define "lockstep.spread" -}}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: {matchLabels: {{ toJson $.selector }}}
{{- end }}
{{- end -}}

{{- /* Of a NetworkPolicy: the way to the hub, wherever that is. */ -}}
{{- define "lockstep.hubEgress" -}}
- ports:
    {{- range .Values.networkPolicy.hubPorts }}
    - {port: {{ . }}}
    {{- end }}
{{- end -}}

{{- /* Of a NetworkPolicy: who may read metrics. */ -}}
{{- define "lockstep.scrapers" -}}
{{- with .Values.networkPolicy.monitoring }}
- ports: [{port: metrics}]
  from: {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}
