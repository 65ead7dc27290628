// Package joinfile reads and writes the two files that carry a membership from
// the leader to a member: the join config and the token Secret.
//
// Reading is strict, since a misspelt key would otherwise be a silent default.
package joinfile

import (
	"fmt"
	"strings"
)

// The type of a join config; it is a file, never an object of an API server.
const (
	APIVersion = "multicluster.antrea.io/v1alpha1"
	Kind       = "ClusterSetJoinConfig"
)

// Config is the content of a join config. The first four are what the leader
// knows; the others are the member's to fill.
type Config struct {
	ClusterSetID    string
	LeaderClusterID string
	LeaderNamespace string
	LeaderAPIServer string

	ClusterID       string
	Namespace       string
	TokenSecretName string
	TokenSecretFile string
}

// fields binds each key of the file to its place, in the order of the file.
func (c *Config) fields() []field {
	return []field{
		{"clusterSetID", &c.ClusterSetID, ""},
		{"leaderClusterID", &c.LeaderClusterID, ""},
		{"leaderNamespace", &c.LeaderNamespace, ""},
		{"leaderAPIServer", &c.LeaderAPIServer, ""},
		{"clusterID", &c.ClusterID, "ID of the joining cluster"},
		{"namespace", &c.Namespace, "Namespace of the member controller in the joining cluster"},
		{"tokenSecretName", &c.TokenSecretName, "Secret in that Namespace that holds the member token"},
		{"tokenSecretFile", &c.TokenSecretFile, "file with the manifest of that Secret"},
	}
}

type field struct {
	key   string
	value *string
	// hint is what a member has to know of a key that may be empty.
	hint string
}

// Render is the file; keys that are empty and may be so appear as comments.
func (c Config) Render() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "---\napiVersion: %s\nkind: %s\n", APIVersion, Kind)
	for _, f := range c.fields() {
		switch {
		case *f.value != "" || f.hint == "":
			fmt.Fprintf(&out, "%s: %s\n", f.key, scalar(*f.value))
		default:
			fmt.Fprintf(&out, "# %s\n#%s: \"\"\n", f.hint, f.key)
		}
	}
	return []byte(out.String())
}
