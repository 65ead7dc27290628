package mc

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// resource is what "mc get" knows of one kind.
type resource struct {
	use     string
	aliases []string
	short   string
	list    func() client.ObjectList
	// keep leaves out what is not to be listed; nil keeps all.
	keep func(client.Object) bool
	// pick leaves out what others of the list stand for; nil leaves out none.
	pick func([]client.Object) []client.Object
	// alias is what an object goes by as a name; nil is its own.
	alias func(client.Object) string
	// header and rows are the wide table; the plain one has the first columns.
	header []string
	plain  int
	rows   func(client.Object) [][]string
	// called tells whether an object is meant by a name; nil compares its own.
	called func(object client.Object, name string) bool
	// public is the object as it is handed out; nil hands out the object itself.
	public func(client.Object) client.Object
}

// query is which objects are asked for.
type query struct {
	name          string
	namespace     string
	allNamespaces bool
	labels        client.MatchingLabels
}

func (q query) options(byName bool) []client.ListOption {
	options := []client.ListOption{q.labels}
	if !q.allNamespaces {
		options = append(options, client.InNamespace(q.namespace))
	}
	if q.name != "" && byName {
		options = append(options, client.MatchingFields{"metadata.name": q.name})
	}
	return options
}

func (q query) where() string {
	if q.allNamespaces {
		return "in any Namespace"
	}
	return fmt.Sprintf("in Namespace %q", q.namespace)
}

// find lists the objects, sorted by Namespace and name. A name that is not
// there is an error; an empty list is none.
func (r resource) find(ctx context.Context, c client.Client, q query) ([]client.Object, error) {
	list := r.list()
	if err := c.List(ctx, list, q.options(r.called == nil)...); err != nil {
		return nil, explain(fmt.Sprintf("cannot list %s %s", r.plural(), q.where()), err)
	}
	var found []client.Object
	err := apply.Each(list, func(object client.Object) error {
		if (r.keep == nil || r.keep(object)) && (q.name == "" || r.called == nil || r.called(object, q.name)) {
			found = append(found, object)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.pick != nil {
		found = r.pick(found)
	}
	if q.name != "" && len(found) == 0 {
		return nil, fmt.Errorf("no %s %q %s; list what there is with: lockstep mc get %s -A", r.use, q.name, q.where(), r.use)
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return found, nil
}

func (r resource) plural() string { return r.aliases[0] }

// print writes what was found; single means one object was asked for by name.
func (r resource) print(w io.Writer, c client.Client, format string, objects []client.Object, single bool) error {
	switch format {
	case "json", "yaml":
		value, err := r.encodable(c, objects, single)
		if err != nil {
			return err
		}
		return encode(w, format, value)
	case "name":
		for _, object := range objects {
			name := object.GetName()
			if r.alias != nil {
				name = r.alias(object)
			}
			fmt.Fprintf(w, "%s/%s\n", r.use, name)
		}
		return nil
	}
	columns := r.plain
	if format == "wide" {
		columns = len(r.header)
	}
	t := table{header: r.header[:columns]}
	for _, object := range objects {
		for _, row := range r.rows(object) {
			t.rows = append(t.rows, row[:columns])
		}
	}
	t.sort()
	return t.write(w)
}

// encodable is one object, or a list as kubectl prints and applies it.
func (r resource) encodable(c client.Client, objects []client.Object, single bool) (any, error) {
	items := make([]client.Object, len(objects))
	for i, object := range objects {
		if r.public != nil {
			object = r.public(object)
		}
		kind, err := apiutil.GVKForObject(object, c.Scheme())
		if err != nil {
			return nil, err
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		object.SetManagedFields(nil)
		items[i] = object
	}
	if single {
		return items[0], nil
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}, nil
}
