package identity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ValidateCluster tells whether an ID can name a cluster: one RFC 1123 label
// of at most 63 characters.
//
// KEP-2149 would also allow dots and 128 characters. Both end in places that
// do not: a label value holds 63 characters, status.clusters[].cluster of a
// ServiceImport is one DNS label, and the dot divides the names of our slices.
func ValidateCluster(id string) error {
	if id == "" {
		return fmt.Errorf("cluster ID is empty: choose one DNS label, for example %q", "east")
	}
	if strings.Contains(id, ".") {
		return fmt.Errorf("cluster ID %q cannot be used: it contains a dot, which divides the cluster from the Service in names of the common area; use dashes instead", id)
	}
	if problems := validation.IsDNS1123Label(id); len(problems) > 0 {
		return fmt.Errorf("cluster ID %q cannot be used: %s; choose a DNS label of at most %d characters", id, problems[0], validation.DNS1123LabelMaxLength)
	}
	return nil
}
