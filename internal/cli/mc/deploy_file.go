package mc

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/bundle"
)

// fileObjects are those of the file, moved to the wanted Namespace and marked
// as ours, so that they can be replaced and removed again.
func (o DeployOptions) fileObjects() ([]*unstructured.Unstructured, string, error) {
	objects, err := readBundle(o.Manifest, o.Role, o.Namespace)
	if err != nil {
		return nil, "", &exit.Error{Code: exit.Usage, Cause: fmt.Errorf("cannot use the manifest file: %w", err)}
	}
	sum := sha256.Sum256(o.Manifest)
	return objects, "sha256:" + hex.EncodeToString(sum[:]), nil
}

func readBundle(text []byte, role config.Role, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := bundle.Parse(text)
	if err != nil {
		return nil, err
	}
	bundle.Move(objects, cmp.Or(bundle.Namespace(objects), usualNamespace(role)), namespace)
	bundle.Own(objects)
	bundle.Sort(objects)
	return objects, nil
}

func usualNamespace(role config.Role) string {
	if role == config.Leader {
		return v1alpha1.DefaultLeaderNamespace
	}
	return v1alpha1.DefaultMemberNamespace
}

func lower(kind string) string { return strings.ToLower(kind) }
