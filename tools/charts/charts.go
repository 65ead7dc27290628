// Package charts makes the Helm charts of both roles out of what config.Render
// makes, so that a chart cannot say anything else than the manifests do.
//
//	config.Render ─► objects ─► marks where values go ─► templates
//	source/       ─► Chart.yaml, values, schema, notes, named templates
//
// A mark is a word that stands for one value. Everything without a mark is
// copied, so a new rule or a new object reaches the charts by itself.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/config"
)

// Charts are the names, which are also the folders below charts/.
const (
	CRDs   = "lockstep-crds"
	Leader = "lockstep-leader"
	Member = "lockstep-member"
)

// Roles maps the chart of a controller to its role.
var Roles = map[string]config.Role{Leader: config.Leader, Member: config.Member}

//go:embed source
var source embed.FS

// Files returns all files of all charts by their path below charts/.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	if err := crdChart(files); err != nil {
		return nil, fmt.Errorf("chart %s: %w", CRDs, err)
	}
	for chart, role := range Roles {
		if err := roleChart(files, chart, role); err != nil {
			return nil, fmt.Errorf("chart %s: %w", chart, err)
		}
	}
	return files, nil
}

// crdChart holds the kinds of all roles, each under the condition that one of
// its roles is wanted.
func crdChart(files map[string][]byte) error {
	if err := copySource(files, "crds", CRDs, nil); err != nil {
		return err
	}
	roles := map[string][]config.Role{} // by name of the CRD
	crds := map[string]*unstructured.Unstructured{}
	for _, role := range []config.Role{config.Leader, config.Member} {
		list, err := config.CRDs(role)
		if err != nil {
			return err
		}
		for _, crd := range list {
			crds[crd.GetName()] = crd
			roles[crd.GetName()] = append(roles[crd.GetName()], role)
		}
	}
	for name, crd := range crds {
		text, err := crdTemplate(crd, roles[name])
		if err != nil {
			return err
		}
		files[path.Join(CRDs, "templates", name+".yaml")] = text
	}
	return nil
}

func roleChart(files map[string][]byte, chart string, role config.Role) error {
	defaults, err := config.Render(role, config.Options{})
	if err != nil {
		return err
	}
	words := []string{"@role@", string(role), "@namespace@", namespaceOf(defaults)}
	if err := copySource(files, "role", chart, words); err != nil {
		return err
	}
	if err := copySource(files, string(role), chart, words); err != nil {
		return err
	}
	text, err := configurationFile(defaults)
	if err != nil {
		return err
	}
	files[path.Join(chart, configPath)] = []byte(text)

	objects, err := config.Render(role, config.Options{Namespace: markNamespace, Image: markImage, Admission: true})
	if err != nil {
		return err
	}
	for _, obj := range objects {
		switch obj.GetKind() {
		case "Namespace", "CustomResourceDefinition":
			continue // Helm keeps its records in the first; the second have a chart
		}
		name := strings.ToLower(obj.GetKind()) + "-" + strings.TrimSuffix(obj.GetName(), "-"+markNamespace) + ".yaml"
		if files[path.Join(chart, "templates", name)], err = template(obj); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if obj.GroupVersionKind().Group == admissionregistrationv1.GroupName {
			files[path.Join(chart, "templates", name)] = onlyWith(".Values.admission.enabled", files[path.Join(chart, "templates", name)])
		}
	}
	return nil
}

// copySource copies a folder of source/ into a chart. Words are pairs of what
// is replaced by what.
func copySource(files map[string][]byte, dir, chart string, words []string) error {
	root := path.Join("source", dir)
	return fs.WalkDir(source, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := source.ReadFile(name)
		if err != nil {
			return err
		}
		// embed leaves out names that begin with "_".
		target := strings.Replace(strings.TrimPrefix(name, root+"/"), "named.tpl", "_named.tpl", 1)
		files[path.Join(chart, target)] = []byte(strings.NewReplacer(words...).Replace(string(text)))
		return nil
	})
}

// namespaceOf is the Namespace of the objects of a role.
func namespaceOf(objects []*unstructured.Unstructured) string {
	for _, obj := range objects {
		if obj.GetNamespace() != "" {
			return obj.GetNamespace()
		}
	}
	return ""
}
