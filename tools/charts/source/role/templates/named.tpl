{{- /* Made from tools/charts/source by `make generate`. */ -}}

{{- /* A controller outside the default Namespace of its role has cluster-scoped objects of its own. */ -}}
{{- define "lockstep.suffix" -}}
{{- if ne .Release.Namespace "@namespace@" -}}-{{ .Release.Namespace }}{{- end -}}
{{- end -}}

{{- /* A digest says more than a tag. */ -}}
{{- define "lockstep.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag }}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The file as it is, or with the changes of the values. */ -}}
{{- define "lockstep.config" -}}
{{- $file := .Files.Get "files/controller_manager_config.yaml" -}}
{{- if .Values.config -}}
{{- mergeOverwrite (fromYaml $file) .Values.config | toYaml -}}
{{- else -}}
{{- trimSuffix "\n" $file -}}
{{- end -}}
{{- end -}}

{{- /* On the Pods, so that another configuration replaces them. */ -}}
{{- define "lockstep.configHash" -}}
{{- printf "%s\n" (include "lockstep.config" .) | sha256sum | trunc 16 -}}
{{- end -}}
