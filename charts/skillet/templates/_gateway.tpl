{{/* The gateway's container, the same beside the operator and in a Deployment of its own. */}}

{{/* "true" where it runs beside the operator, else nothing. */}}
{{- define "skillet.gateway.isSidecar" -}}
{{- if and .Values.gateway.enabled (eq (int .Values.gateway.replicas) 0) }}true{{ end }}
{{- end }}

{{/* "true" where it runs in a Deployment of its own, else nothing. */}}
{{- define "skillet.gateway.isAlone" -}}
{{- if and .Values.gateway.enabled (gt (int .Values.gateway.replicas) 0) }}true{{ end }}
{{- end }}

{{- define "skillet.gateway.serviceAccountName" -}}
{{- if include "skillet.gateway.isAlone" . }}{{ include "skillet.fullname" . }}-gateway{{ else }}{{ include "skillet.serviceAccountName" . }}{{ end }}
{{- end }}

{{/* By which the pods are chosen in which it runs. */}}
{{- define "skillet.gateway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "skillet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ if include "skillet.gateway.isAlone" . }}gateway{{ else }}operator{{ end }}
{{- end }}

{{/* "true" where it has files of Secrets or of a model, else nothing. */}}
{{- define "skillet.gateway.hasVolumes" -}}
{{- if or .Values.gateway.tlsSecret .Values.gateway.confirmationKey.enabled .Values.gateway.embeddings.volume }}true{{ end }}
{{- end }}

{{- define "skillet.gateway.volumes" -}}
{{- with .Values.gateway.tlsSecret }}
- name: tls
  secret:
    secretName: {{ . }}
{{- end }}
{{- if .Values.gateway.confirmationKey.enabled }}
- name: confirmation-key
  secret:
    secretName: {{ include "skillet.confirmationKeySecret" . }}
    items:
      {{- /* In the chart's own Secret it has always one name. */}}
      - key: {{ ternary .Values.gateway.confirmationKey.key "key" (not (empty .Values.gateway.confirmationKey.secret)) }}
        path: key
{{- end }}
{{- with .Values.gateway.embeddings.volume }}
- name: embeddings
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "skillet.gateway.container" -}}
- name: gateway
  image: {{ include "skillet.image" (list . "operator") | quote }}
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  args: [gateway]
  env:
    - name: NAMESPACE
      valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
    - name: GATEWAY_ADDRESS
      value: {{ .Values.gateway.address | quote }}
    - name: GATEWAY_PROBES_ADDRESS
      value: {{ .Values.gateway.probesAddress | quote }}
    {{- if .Values.gateway.confirmationKey.enabled }}
    - name: CONFIRMATION_KEY_FILE
      value: "/var/run/secrets/skillet-confirmation/key"
    {{- end }}
    {{- if .Values.gateway.tlsSecret }}
    - name: TLS_CERTIFICATE_FILE
      value: "/tls/tls.crt"
    - name: TLS_KEY_FILE
      value: "/tls/tls.key"
    {{- end }}
    {{- if .Values.gateway.embeddings.volume }}
    - name: EMBEDDINGS_FOLDER
      value: {{ printf "/embeddings/%s" .Values.gateway.embeddings.path | trimSuffix "/" | quote }}
    {{- end }}
    {{- if .Values.workspaces.enabled }}
    {{- include "skillet.workspaces.clientEnv" . | nindent 4 }}
    {{- end }}
    # One heap per thread would hold what a thread once needed.
    - name: MALLOC_ARENA_MAX
      value: "1"
    - name: LOG_FORMAT
      value: {{ .Values.logFormat | quote }}
    - name: LOG_FILTER
      value: {{ .Values.logFilter | quote }}
    {{- with .Values.telemetry.otlpEndpoint }}
    - name: OTEL_EXPORTER_OTLP_ENDPOINT
      value: {{ . | quote }}
    {{- end }}
  ports:
    - name: gateway
      containerPort: {{ regexFind "[0-9]+$" .Values.gateway.address }}
    - name: gateway-probes
      containerPort: {{ regexFind "[0-9]+$" .Values.gateway.probesAddress }}
  livenessProbe:
    httpGet:
      path: /healthz
      port: gateway-probes
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet:
      path: /readyz
      port: gateway-probes
    periodSeconds: 2
    timeoutSeconds: 2
  resources:
    {{- toYaml .Values.gateway.resources | nindent 4 }}
  securityContext:
    {{- include "skillet.containerSecurityContext" . | nindent 4 }}
  {{- if or (include "skillet.gateway.hasVolumes" .) .Values.workspaces.enabled }}
  volumeMounts:
    {{- if .Values.gateway.tlsSecret }}
    - name: tls
      mountPath: /tls
      readOnly: true
    {{- end }}
    {{- if .Values.gateway.confirmationKey.enabled }}
    - name: confirmation-key
      mountPath: /var/run/secrets/skillet-confirmation
      readOnly: true
    {{- end }}
    {{- if .Values.gateway.embeddings.volume }}
    - name: embeddings
      mountPath: /embeddings
      readOnly: true
    {{- end }}
    {{- if .Values.workspaces.enabled }}
    {{- include "skillet.workspaces.tlsMount" . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
