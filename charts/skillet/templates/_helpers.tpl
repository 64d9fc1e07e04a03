{{/* Names, labels and image references. */}}

{{- define "skillet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "skillet.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "skillet.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "skillet.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "skillet.serviceAccountName" -}}
{{- default (include "skillet.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "skillet.confirmationKeySecret" -}}
{{- default (printf "%s-confirmation" (include "skillet.fullname" .)) .Values.gateway.confirmationKey.secret }}
{{- end }}

{{- define "skillet.selectorLabels" -}}
app.kubernetes.io/name: {{ include "skillet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "skillet.sources.selectorLabels" -}}
app.kubernetes.io/name: {{ include "skillet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: sources
{{- end }}

{{- define "skillet.broker.selectorLabels" -}}
app.kubernetes.io/name: {{ include "skillet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: broker
{{- end }}

{{/* The Secret with the certificate of operator and broker. */}}
{{- define "skillet.broker.tlsSecret" -}}
{{- .Values.broker.tlsSecret | default (printf "%s-broker-tls" (include "skillet.fullname" .)) }}
{{- end }}

{{- define "skillet.broker.tlsVolume" -}}
- name: broker-tls
  secret:
    secretName: {{ include "skillet.broker.tlsSecret" . }}
{{- end }}

{{- define "skillet.broker.tlsMount" -}}
- name: broker-tls
  mountPath: /broker-tls
  readOnly: true
{{- end }}

{{- define "skillet.workspaces.selectorLabels" -}}
app.kubernetes.io/name: {{ include "skillet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: workspaces
{{- end }}

{{/* The Secret with the certificate of the store of workspaces and its clients. */}}
{{- define "skillet.workspaces.tlsSecret" -}}
{{- .Values.workspaces.tlsSecret | default (printf "%s-workspaces-tls" (include "skillet.fullname" .)) }}
{{- end }}

{{- define "skillet.workspaces.tlsVolume" -}}
- name: workspaces-tls
  secret:
    secretName: {{ include "skillet.workspaces.tlsSecret" . }}
{{- end }}

{{- define "skillet.workspaces.tlsMount" -}}
- name: workspaces-tls
  mountPath: /workspaces-tls
  readOnly: true
{{- end }}

{{/* The way to the store, for operator and gateway. */}}
{{- define "skillet.workspaces.clientEnv" -}}
- name: WORKSPACES_ADDRESS
  value: "{{ include "skillet.fullname" . }}-workspaces.{{ .Release.Namespace }}.svc:{{ regexFind "[0-9]+$" .Values.workspaces.address }}"
- name: WORKSPACES_TLS_FOLDER
  value: "/workspaces-tls"
{{- end }}

{{/* (list $ "broker" "name-of-the-secret"): a certificate for the DNS name skillet-broker with its authority. What is there stays. */}}
{{- define "skillet.identitySecret" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- $name := index . 2 }}
{{- $there := dig "data" dict (lookup "v1" "Secret" $root.Release.Namespace $name) -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "skillet.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $component }}
type: kubernetes.io/tls
data:
  {{- if index $there "ca.crt" }}
  {{- range $key := list "ca.crt" "tls.crt" "tls.key" }}
  {{ $key }}: {{ index $there $key | quote }}
  {{- end }}
  {{- else }}
  {{- $dns := printf "skillet-%s" $component }}
  {{- $authority := genCA (printf "%s-authority" $dns) 3650 }}
  {{- $certificate := genSignedCert $dns nil (list $dns) 3650 $authority }}
  ca.crt: {{ $authority.Cert | b64enc | quote }}
  tls.crt: {{ $certificate.Cert | b64enc | quote }}
  tls.key: {{ $certificate.Key | b64enc | quote }}
  {{- end }}
{{- end }}

{{/* For every object of the release. */}}
{{- define "skillet.labels" -}}
app.kubernetes.io/name: {{ include "skillet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: skillet
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{/* (list $ "shell"): the value shellImage, or the image of this release's version. */}}
{{- define "skillet.image" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $own := index $root.Values (printf "%sImage" $name) }}
{{- if not (or $own $root.Values.imageRegistry) }}
{{- fail (printf "imageRegistry is required: no public registry has Skillet's images. Build them by `make images`, push them to a registry of yours, and name it: --set imageRegistry=registry.example.com/skillet (or set %sImage and the other images)" $name) }}
{{- end }}
{{- default (printf "%s/%s:%s" (trimSuffix "/" $root.Values.imageRegistry) $name $root.Chart.AppVersion) $own }}
{{- end }}

{{/* A container of Pod Security level "restricted" that cannot write to its own root. */}}
{{- define "skillet.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "skillet.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}
