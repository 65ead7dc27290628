package identity

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// PolicyImportName names the ResourceImport of a policy:
// <name>-antreaclusternetworkpolicy. A policy belongs to no Namespace; an export
// that names one all the same has it in front, and may meet another one there.
func PolicyImportName(policy types.NamespacedName) string {
	if policy.Namespace != "" {
		return JoinedName(policy) + policyImportSuffix
	}
	return policy.Name + policyImportSuffix
}

// ImportedPolicyName names the ClusterNetworkPolicy that stands for an import of
// this name: antrea-mc-<name>.
func ImportedPolicyName(name string) string { return importedPrefix + name }

// IsImportedPolicyName tells whether an importer could have given that name.
func IsImportedPolicyName(policy string) bool { return strings.HasPrefix(policy, importedPrefix) }

// IsPolicyImportName tells whether a ResourceImport of that name could stand for
// a policy.
func IsPolicyImportName(name string) bool { return strings.HasSuffix(name, policyImportSuffix) }

const policyImportSuffix = "-antreaclusternetworkpolicy"
