package charts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
)

// Marks are plain words in YAML, so that they need no quotes there. The first
// two go through config.Render and have to be valid for it.
const (
	markNamespace = "mark-namespace"
	markImage     = "mark-image"
	markReplicas  = "MarkReplicas"
	markPolicy    = "MarkPullPolicy"
	markVerbose   = "MarkVerbose"
	markHash      = "MarkConfigHash"
	markConfig    = "MarkConfig"
	markMap       = "MarkMap"    // the value of the same name, as it is
	markBlock     = "MarkBlock"  // the value of the same name, unless it is empty
	markScalar    = "MarkScalar" // likewise, on one line
)

// configPath is where a chart keeps the configuration file of its controller.
const configPath = "files/" + v1alpha1.ControllerConfigKey

const made = "{{- /* Made from config/ by `make generate`. */ -}}\n"

// template turns an object with the marks of config.Render into a template.
func template(obj *unstructured.Unstructured) ([]byte, error) {
	obj = obj.DeepCopy()
	switch obj.GetKind() {
	case "ConfigMap":
		if err := unstructured.SetNestedField(obj.Object, markConfig, "data", v1alpha1.ControllerConfigKey); err != nil {
			return nil, err
		}
	case "Deployment":
		if err := markDeployment(obj); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(obj.Object)
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(text), "{{") {
		return nil, errors.New("the object holds {{, which Helm would take for its own")
	}
	return []byte(made + fill(string(text))), nil
}

// markDeployment puts a mark wherever the values may say something else.
func markDeployment(obj *unstructured.Unstructured) error {
	spec, _, err := unstructured.NestedMap(obj.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	containers, _ := spec["containers"].([]any)
	if len(containers) != 1 {
		return fmt.Errorf("%d containers; the values speak of one", len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("a container is no map")
	}
	args, _ := container["args"].([]any)
	container["args"] = append(slices.Clone(args), markVerbose)
	container["imagePullPolicy"] = markPolicy
	container["resources"] = markMap
	for _, optional := range []string{"imagePullSecrets", "nodeSelector", "tolerations", "affinity"} {
		spec[optional] = markBlock
	}
	spec["priorityClassName"] = markScalar
	return errors.Join(
		unstructured.SetNestedMap(obj.Object, spec, "spec", "template", "spec"),
		unstructured.SetNestedField(obj.Object, markReplicas, "spec", "replicas"),
		unstructured.SetNestedField(obj.Object, markHash, "spec", "template", "metadata", "annotations", config.ConfigHashAnnotation),
	)
}

var (
	lineOfMap     = regexp.MustCompile(`(?m)^( *)(\w+): ` + markMap + `$`)
	lineOfBlock   = regexp.MustCompile(`(?m)^( *)(\w+): ` + markBlock + `$`)
	lineOfScalar  = regexp.MustCompile(`(?m)^( *)(\w+): ` + markScalar + `$`)
	lineOfVerbose = regexp.MustCompile(`(?m)^( *)- ` + markVerbose + `$`)
	lineOfConfig  = regexp.MustCompile(`(?m)^( *)(\S+): ` + markConfig + `$`)
	namespaceLine = regexp.MustCompile(`(?m): ` + markNamespace + `$`)
)

// fill replaces marks by what reads the values.
func fill(text string) string {
	text = block(text, lineOfMap, func(indent, key string) string {
		return fmt.Sprintf("%[1]s%[2]s:\n%[1]s  {{- toYaml .Values.%[2]s | nindent %[3]d }}", indent, key, len(indent)+2)
	})
	text = block(text, lineOfBlock, func(indent, key string) string {
		return fmt.Sprintf("%[1]s{{- with .Values.%[2]s }}\n%[1]s%[2]s:\n%[1]s  {{- toYaml . | nindent %[3]d }}\n%[1]s{{- end }}", indent, key, len(indent)+2)
	})
	text = block(text, lineOfScalar, func(indent, key string) string {
		return fmt.Sprintf("%[1]s{{- with .Values.%[2]s }}\n%[1]s%[2]s: {{ . | quote }}\n%[1]s{{- end }}", indent, key)
	})
	text = block(text, lineOfConfig, func(indent, key string) string {
		return fmt.Sprintf("%[1]s%[2]s: |\n%[1]s  {{- include \"lockstep.config\" . | nindent %[3]d }}", indent, key, len(indent)+2)
	})
	text = lineOfVerbose.ReplaceAllString(text, "$1{{- if eq .Values.logLevel \"debug\" }}\n$1- --verbose\n$1{{- end }}")
	text = namespaceLine.ReplaceAllString(text, ": {{ .Release.Namespace | quote }}")
	return strings.NewReplacer(
		"-"+markNamespace, `{{ include "lockstep.suffix" . }}`,
		markImage, `{{ include "lockstep.image" . | quote }}`,
		markReplicas, `{{ .Values.replicas }}`,
		markPolicy, `{{ .Values.image.pullPolicy }}`,
		markHash, `{{ include "lockstep.configHash" . | quote }}`,
	).Replace(text)
}

// block replaces whole lines; write gets their indent and key.
func block(text string, line *regexp.Regexp, write func(indent, key string) string) string {
	return line.ReplaceAllStringFunc(text, func(found string) string {
		parts := line.FindStringSubmatch(found)
		return write(parts[1], parts[2])
	})
}

// crdTemplate is a CRD that Helm updates on upgrade and keeps on uninstall.
func crdTemplate(crd *unstructured.Unstructured, roles []config.Role) ([]byte, error) {
	crd = crd.DeepCopy()
	annotations := crd.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["helm.sh/resource-policy"] = "keep"
	crd.SetAnnotations(annotations)
	text, err := yaml.Marshal(crd.Object)
	if err != nil {
		return nil, err
	}
	wanted := make([]string, 0, len(roles))
	for _, role := range roles {
		wanted = append(wanted, fmt.Sprintf("(has %q .Values.roles)", role))
	}
	condition := "or " + strings.Join(wanted, " ")
	if strings.HasSuffix(crd.GetName(), ".multicluster.x-k8s.io") {
		condition = fmt.Sprintf("and .Values.mcsAPI (%s)", condition)
	}
	// Descriptions may hold anything; Helm must not read them.
	escaped := strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`)
	return onlyWith(condition, []byte(made+escaped)), nil
}

// onlyWith is a template that makes nothing unless the values say so.
func onlyWith(condition string, template []byte) []byte {
	body := strings.TrimPrefix(string(template), made)
	return []byte(made + "{{- if " + condition + " }}\n" + body + "{{- end }}\n")
}

// configurationFile is the text of the controller's configuration.
func configurationFile(objects []*unstructured.Unstructured) (string, error) {
	for _, obj := range objects {
		if obj.GetKind() == "ConfigMap" {
			text, found, err := unstructured.NestedString(obj.Object, "data", v1alpha1.ControllerConfigKey)
			if err == nil && !found {
				err = fmt.Errorf("ConfigMap %q has no key %q", obj.GetName(), v1alpha1.ControllerConfigKey)
			}
			return text, err
		}
	}
	return "", errors.New("no ConfigMap was rendered")
}
