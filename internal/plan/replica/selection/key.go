package selection

import "strings"

// Key is the key of a Kubernetes object in etcd, taken apart. Core kinds and
// built-in groups are stored under their plural alone; custom resources under
// group and plural, so a dot in the first part tells them.
type Key struct {
	Group     string // of a custom resource; empty for all others
	Resource  string // "secrets", "services/specs", "machines"
	Namespace string // empty for kinds of the whole cluster
	Name      string
}

// twoParts are the resources whose place in etcd has two parts.
var twoParts = map[string]bool{"services": true}

// parseKey reads what follows the prefix. What is no object (a range, a part of
// a key) has an empty Name.
func parseKey(rest string) Key {
	parts := strings.Split(rest, "/")
	key := Key{Resource: parts[0]}
	parts = parts[1:]
	switch {
	case len(parts) == 0:
		return Key{Resource: key.Resource}
	case strings.Contains(key.Resource, "."):
		key.Group, key.Resource, parts = key.Resource, parts[0], parts[1:]
	case twoParts[key.Resource]:
		key.Resource, parts = key.Resource+"/"+parts[0], parts[1:]
	}
	switch len(parts) {
	case 1:
		key.Name = parts[0]
	case 2:
		key.Namespace, key.Name = parts[0], parts[1]
	}
	return key
}
