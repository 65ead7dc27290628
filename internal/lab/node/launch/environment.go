package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
)

// environment holds variables in the order of their first definition.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if e.values == nil {
		e.values = map[string]string{}
	}
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

// assign sets a variable given as NAME=value.
func (e *environment) assign(variable string) {
	name, value, _ := strings.Cut(variable, "=")
	e.set(name, value)
}

func (e *environment) get(name string) (string, bool) {
	value, ok := e.values[name]
	return value, ok
}

// containerEnvironment is what the container asks for: envFrom first, then env,
// each of which may refer to what stands before it.
func containerEnvironment(in Inputs) (*environment, error) {
	env := &environment{}
	for _, from := range in.Container.EnvFrom {
		if err := addFrom(env, in, from); err != nil {
			return nil, err
		}
	}
	for _, v := range in.Container.Env {
		if v.ValueFrom == nil {
			env.set(v.Name, expand(v.Value, env.get))
			continue
		}
		value, ok, err := valueFrom(in, v.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", v.Name, err)
		}
		if ok {
			env.set(v.Name, value)
		}
	}
	return env, nil
}

func addFrom(env *environment, in Inputs, from corev1.EnvFromSource) error {
	values, err := allKeys(in, from)
	if err != nil {
		return fmt.Errorf("envFrom: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := from.Prefix + key
		if !strings.Contains(name, "=") { // cannot be said to a process
			env.set(name, values[key])
		}
	}
	return nil
}

func allKeys(in Inputs, from corev1.EnvFromSource) (map[string]string, error) {
	if ref := from.ConfigMapRef; ref != nil {
		object, ok := in.Objects.ConfigMaps[ref.Name]
		if ok {
			return object.Data, nil
		}
		return nil, missing(ref.Optional, "ConfigMap", ref.Name)
	}
	if ref := from.SecretRef; ref != nil {
		object, ok := in.Objects.Secrets[ref.Name]
		if !ok {
			return nil, missing(ref.Optional, "Secret", ref.Name)
		}
		values := make(map[string]string, len(object.Data))
		for key, value := range object.Data {
			values[key] = string(value)
		}
		return values, nil
	}
	return nil, nil
}

// valueFrom looks one value up; ok is false for an optional one that is not
// there.
func valueFrom(in Inputs, from *corev1.EnvVarSource) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = downward.Field(in.Pod, from.FieldRef.FieldPath, in.Facts)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = downward.Resource(in.Container, from.ResourceFieldRef, in.Facts)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		if object := in.Objects.ConfigMaps[ref.Name]; object != nil {
			if value, ok = object.Data[ref.Key]; ok {
				return value, true, nil
			}
		}
		return "", false, missing(ref.Optional, "ConfigMap", ref.Name+"/"+ref.Key)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		if object := in.Objects.Secrets[ref.Name]; object != nil {
			if data, ok := object.Data[ref.Key]; ok {
				return string(data), true, nil
			}
		}
		return "", false, missing(ref.Optional, "Secret", ref.Name+"/"+ref.Key)
	}
	return "", false, fmt.Errorf("this kind of valueFrom is not supported; use fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef")
}

func missing(optional *bool, kind, name string) error {
	if optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("%s %q does not exist", kind, name)
}
