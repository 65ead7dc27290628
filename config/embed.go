// Package config holds what is installed in a cluster, as data: the CRDs, made
// from the API packages, and the manifests of each role.
//
// The files are plain manifests that kubectl can apply as they are, with
// `kubectl apply -k` per role. Render returns the same objects for another
// Namespace, image or configuration, and in the order in which they have to be
// created. Installer, charts, lab and tests all read them from here, so they see
// the same bytes.
package config

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcscrd "sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"
)

//go:embed crd/multicluster.crd.antrea.io_*.yaml crd/fleet.lockstep.dev_*.yaml leader/*.yaml member/*.yaml admission/leader/*.yaml admission/member/*.yaml
var files embed.FS

// Role is the part a controller plays in a ClusterSet.
type Role string

const (
	// Leader holds the common area and merges what members export.
	Leader Role = "leader"
	// Member exports to the common area and imports from it.
	Member Role = "member"
)

// wireCRDs are the kinds of multicluster.crd.antrea.io each role needs. The
// CRD of the legacy ClusterClaim is generated, so that tests can play an old
// cluster, but belongs to no role: installing it would bring back a kind that
// upstream removed.
var wireCRDs = map[Role][]string{
	Leader: {"clustersets", "memberclusterannounces", "resourceexports", "resourceimports"},
	Member: {"clusterinfoimports", "clustersets", "gateways", "labelidentities"},
}

// CRDs returns the CRDs a role needs, sorted by name. Those of a member
// include ServiceExport and ServiceImport of the MCS API, in v1alpha1 and v1beta1.
func CRDs(role Role) ([]*unstructured.Unstructured, error) {
	resources, ok := wireCRDs[role]
	if !ok {
		return nil, unknownRole(role)
	}
	var crds []*unstructured.Unstructured
	for _, resource := range resources {
		crd, err := readObject("crd/multicluster.crd.antrea.io_" + resource + ".yaml")
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	if role == Member {
		for name, text := range map[string][]byte{"ServiceExport": mcscrd.ServiceExportCRD, "ServiceImport": mcscrd.ServiceImportCRD} {
			crd, err := parseObject(text)
			if err != nil {
				return nil, fmt.Errorf("CRD of %s: %w", name, err)
			}
			crds = append(crds, crd)
		}
	}
	for _, crd := range crds {
		mark(crd)
	}
	sortForCreation(crds)
	return crds, nil
}

// LegacyCRDs returns the CRDs of kinds that upstream removed and that may
// still be found in a cluster. No role installs them.
func LegacyCRDs() ([]*unstructured.Unstructured, error) {
	crd, err := readObject("crd/multicluster.crd.antrea.io_clusterclaims.yaml")
	if err != nil {
		return nil, err
	}
	return []*unstructured.Unstructured{crd}, nil
}

// FleetCRDs returns the CRDs of our own kinds about several clusters together. No
// role installs them: whoever makes the first such object does, in the cluster
// where it lies.
func FleetCRDs() ([]*unstructured.Unstructured, error) {
	crd, err := readObject("crd/fleet.lockstep.dev_upgraderuns.yaml")
	if err != nil {
		return nil, err
	}
	mark(crd)
	return []*unstructured.Unstructured{crd}, nil
}

// kustomization lists the files of a folder for kustomize; it is no object.
const kustomization = "kustomization.yaml"

// manifests returns the files of a role, with or without its webhook
// configurations, in no particular order.
func manifests(role Role, admission bool) (map[string][]byte, error) {
	if _, ok := wireCRDs[role]; !ok {
		return nil, unknownRole(role)
	}
	dirs := []string{string(role)}
	if admission {
		dirs = append(dirs, path.Join("admission", string(role)))
	}
	texts := map[string][]byte{}
	for _, dir := range dirs {
		entries, err := fs.ReadDir(files, dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Name() == kustomization {
				continue
			}
			name := path.Join(dir, entry.Name())
			if texts[name], err = files.ReadFile(name); err != nil {
				return nil, err
			}
		}
	}
	return texts, nil
}

func readObject(name string) (*unstructured.Unstructured, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	obj, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return obj, nil
}

func parseObject(text []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	return obj, yaml.UnmarshalStrict(text, obj)
}

// mark adds the proof of origin, which neither the generator of CRDs nor the
// MCS project writes.
func mark(crd *unstructured.Unstructured) {
	labels := crd.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ManagedByLabel] = ManagedBy
	crd.SetLabels(labels)
}

func unknownRole(role Role) error {
	return fmt.Errorf("unknown role %q: use %q or %q", role, Leader, Member)
}
