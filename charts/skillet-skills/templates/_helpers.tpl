{{/*
The enabled skills as one document: names of files in skills/, each with its manifest. A skill is enabled by skills.NAME.enabled,
or else by the value of its handler.
*/}}
{{- define "skillet-skills.enabled" -}}
{{- $enabled := dict }}
{{- $known := list }}
{{- range $path, $_ := .Files.Glob "skills/*.yaml" }}
{{- $name := base $path | trimSuffix ".yaml" }}
{{- $known = append $known $name }}
{{- $manifest := $.Files.Get $path | fromYaml }}
{{- if hasKey $manifest "Error" }}{{ fail (printf "%s: %s" $path $manifest.Error) }}{{ end }}
{{- $settings := get $.Values.skills $name | default dict }}
{{- $handler := keys $manifest.spec.run | first }}
{{- if ternary $settings.enabled (get $.Values.handlers $handler) (hasKey $settings "enabled") }}
{{- $_ := set $enabled $name (include "skillet-skills.manifest" (dict "root" $ "name" $name "manifest" $manifest "settings" $settings) | fromYaml) }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.skills }}
{{- if not (has $name $known) }}{{ fail (printf "skills.%s: the chart has no such skill; it has %s" $name (join ", " $known)) }}{{ end }}
{{- end }}
{{- toYaml $enabled }}
{{- end }}

{{/* One Skill: the manifest of the file with its script and the user's settings. */}}
{{- define "skillet-skills.manifest" -}}
{{- $values := .root.Values }}
{{- $spec := .manifest.spec }}
{{- $numbers := splitList "." $spec.version }}
{{- $_ := set $spec "version" (printf "%s.%s.%d" (index $numbers 0) (index $numbers 1) (int $values.versionPatch)) }}
{{- if hasKey .settings "mode" }}
{{- /* YAML takes a bare on or off for a boolean. */}}
{{- $_ := set $spec "mode" (get (dict "true" "on" "false" "off") (toString .settings.mode) | default .settings.mode) }}
{{- end }}
{{- with .settings.invocation }}{{ $_ := set $spec "invocation" . }}{{ end }}
{{- $limits := merge dict (.settings.limits | default dict) $values.limits ($spec.limits | default dict) }}
{{- if and $spec.run.sandbox (not $spec.run.sandbox.script) }}
{{- $_ := set $spec.run.sandbox "script" (.root.Files.Get (printf "scripts/%s.py" .name)) }}
{{- end }}
{{- with $limits }}{{ $_ := set $spec "limits" . }}{{ end }}
{{- $token := $values.github.tokenSecret }}
{{- if and $token.name (hasPrefix "github-" .name) }}
{{- $_ := set $spec.run.http.headers "Authorization" "Bearer {{SECRETS.TOKEN}}" }}
{{- $_ := set $spec.run.http "secrets" (list (dict "name" "TOKEN" "secret" $token.name "key" $token.key)) }}
{{- end }}
{{- $labels := dict "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/part-of" "skillet-skills" "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) }}
{{- $metadata := dict "name" .name "namespace" ($values.namespace | default .root.Release.Namespace) "labels" (merge dict $values.labels $labels) }}
{{- with $values.annotations }}{{ $_ := set $metadata "annotations" . }}{{ end }}
{{- dict "apiVersion" .manifest.apiVersion "kind" .manifest.kind "metadata" $metadata "spec" $spec | toYaml }}
{{- end }}

{{/* What SkillPolicy must have for the enabled skills, as JSON: hosts, builtins, names of the skills that use the token of GitHub. */}}
{{- define "skillet-skills.needs" -}}
{{- $hosts := list }}
{{- $builtins := list }}
{{- $github := list }}
{{- range $name, $skill := include "skillet-skills.enabled" . | fromYaml }}
{{- with $skill.spec.run.http }}
{{- $hosts = append $hosts (regexReplaceAll "^https://([^/?]+).*$" .url "${1}") }}
{{- if .secrets }}{{ $github = append $github $name }}{{ end }}
{{- end }}
{{- with $skill.spec.run.builtin }}
{{- $builtins = append $builtins . }}
{{- if ne . "web_search" }}{{ $hosts = append $hosts "*" }}{{ end }}
{{- end }}
{{- end }}
{{- dict "hosts" ($hosts | uniq | sortAlpha) "builtins" ($builtins | sortAlpha) "github" ($github | sortAlpha) | toJson }}
{{- end }}
