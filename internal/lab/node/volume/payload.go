// Package volume fills the volumes of a Pod with files.
//
// Files says what a volume should hold; it is pure. Write makes a folder hold
// it, in one step, so that a program never sees half of a change.
package volume

import (
	"fmt"
	"io/fs"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
)

// File is one file of a volume.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// Inputs is everything the content of a volume may depend on.
type Inputs struct {
	Pod     *corev1.Pod
	Facts   downward.Facts
	Objects podref.Objects
	Tokens  map[TokenSpec]string
}

// Unsupported says which volume of the Pod cannot be given to a local process,
// and why; it is nil when all can.
func Unsupported(pod *corev1.Pod) error {
	for _, v := range pod.Spec.Volumes {
		if err := unsupported(v); err != nil {
			return fmt.Errorf("volume %q: %w", v.Name, err)
		}
	}
	return nil
}

func unsupported(v corev1.Volume) error {
	switch s := v.VolumeSource; {
	case s.HostPath != nil:
		return fmt.Errorf("hostPath %q is refused, because a lab never touches files outside its folder; use emptyDir, configMap, secret or projected", s.HostPath.Path)
	case s.Projected != nil:
		for _, source := range s.Projected.Sources {
			if source.ServiceAccountToken == nil && source.ConfigMap == nil && source.Secret == nil && source.DownwardAPI == nil {
				return fmt.Errorf("this projected source is not supported; use serviceAccountToken, configMap, secret or downwardAPI")
			}
		}
	case s.EmptyDir == nil && s.ConfigMap == nil && s.Secret == nil && s.DownwardAPI == nil:
		return fmt.Errorf("volumes of this kind are not supported; use emptyDir, configMap, secret, downwardAPI or projected")
	}
	return nil
}

// Files is what a volume should hold, by path inside it. It is nil for a
// volume whose content is the program's own affair (emptyDir).
func Files(v corev1.Volume, in Inputs) (map[string]File, error) {
	if v.EmptyDir != nil {
		return nil, nil
	}
	b := builder{Inputs: in, files: map[string]File{}, mode: corev1.ProjectedVolumeSourceDefaultMode}
	var err error
	switch s := v.VolumeSource; {
	case s.ConfigMap != nil:
		b.setMode(s.ConfigMap.DefaultMode)
		err = b.configMap(s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
	case s.Secret != nil:
		b.setMode(s.Secret.DefaultMode)
		err = b.secret(s.Secret.SecretName, s.Secret.Items, s.Secret.Optional)
	case s.DownwardAPI != nil:
		b.setMode(s.DownwardAPI.DefaultMode)
		err = b.downward(s.DownwardAPI.Items)
	case s.Projected != nil:
		b.setMode(s.Projected.DefaultMode)
		err = b.projected(s.Projected.Sources)
	}
	if err != nil {
		return nil, fmt.Errorf("volume %q: %w", v.Name, err)
	}
	return b.files, nil
}

// builder collects the files of one volume; later sources win over earlier.
type builder struct {
	Inputs
	files map[string]File
	mode  int32
}

func (b *builder) setMode(mode *int32) {
	if mode != nil {
		b.mode = *mode
	}
}

func (b *builder) projected(sources []corev1.VolumeProjection) error {
	for _, s := range sources {
		var err error
		switch {
		case s.ServiceAccountToken != nil:
			err = b.token(s.ServiceAccountToken)
		case s.ConfigMap != nil:
			err = b.configMap(s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = b.secret(s.Secret.Name, s.Secret.Items, s.Secret.Optional)
		case s.DownwardAPI != nil:
			err = b.downward(s.DownwardAPI.Items)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) token(s *corev1.ServiceAccountTokenProjection) error {
	token, ok := b.Tokens[tokenSpec(s)]
	if !ok {
		return fmt.Errorf("there is no token for the ServiceAccount %q yet", b.Pod.Spec.ServiceAccountName)
	}
	// A token is for its owner only, whatever the mode of the volume.
	mode := int32(0o600)
	return b.put(s.Path, []byte(token), &mode)
}

func (b *builder) configMap(name string, items []corev1.KeyToPath, optional *bool) error {
	object, ok := b.Objects.ConfigMaps[name]
	if !ok {
		return missing(optional, "ConfigMap %q does not exist", name)
	}
	data := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for key, value := range object.Data {
		data[key] = []byte(value)
	}
	for key, value := range object.BinaryData {
		data[key] = value
	}
	return b.keys("ConfigMap", name, data, items, optional)
}

func (b *builder) secret(name string, items []corev1.KeyToPath, optional *bool) error {
	object, ok := b.Objects.Secrets[name]
	if !ok {
		return missing(optional, "Secret %q does not exist", name)
	}
	return b.keys("Secret", name, object.Data, items, optional)
}

// keys puts the named keys at their paths, or all keys at their own names.
func (b *builder) keys(kind, name string, data map[string][]byte, items []corev1.KeyToPath, optional *bool) error {
	for key, value := range data {
		if len(items) > 0 {
			break
		}
		if err := b.put(key, value, nil); err != nil {
			return err
		}
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			if err := missing(optional, "%s %q has no key %q", kind, name, item.Key); err != nil {
				return err
			}
			continue
		}
		if err := b.put(item.Path, value, item.Mode); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) downward(items []corev1.DownwardAPIVolumeFile) error {
	for _, item := range items {
		value, err := b.answer(item)
		if err != nil {
			return err
		}
		if err := b.put(item.Path, []byte(value), item.Mode); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) answer(item corev1.DownwardAPIVolumeFile) (string, error) {
	if item.FieldRef != nil {
		return downward.Field(b.Pod, item.FieldRef.FieldPath, b.Facts)
	}
	for i := range b.Pod.Spec.Containers {
		if c := &b.Pod.Spec.Containers[i]; item.ResourceFieldRef != nil && c.Name == item.ResourceFieldRef.ContainerName {
			return downward.Resource(c, item.ResourceFieldRef, b.Facts)
		}
	}
	return "", fmt.Errorf("downwardAPI item %q names neither a field nor a container", item.Path)
}

func (b *builder) put(path string, data []byte, mode *int32) error {
	if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
		return fmt.Errorf("the path %q leads out of the volume", path)
	}
	if mode == nil {
		mode = &b.mode
	}
	b.files[filepath.Clean(path)] = File{Data: data, Mode: fs.FileMode(*mode).Perm()}
	return nil
}

func missing(optional *bool, format string, args ...any) error {
	if optional != nil && *optional {
		return nil
	}
	return fmt.Errorf(format, args...)
}
