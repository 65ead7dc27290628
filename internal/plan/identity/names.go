package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The names below are the wire's: other programs form and look up the same.

// AnnounceName names the MemberClusterAnnounce of a cluster:
// member-announce-from-<cluster>.
func AnnounceName(cluster string) string { return "member-announce-from-" + cluster }

// leasePrefix cannot be confused with the Leases of elections, which have the
// bare name of a role.
const leasePrefix = "lockstep-member-"

// LeaseName names the Lease that a member of ours renews in the common area:
// lockstep-member-<cluster>. It is no name of the wire.
func LeaseName(cluster string) string { return leasePrefix + cluster }

// LeaseOwner is the cluster that a Lease of the common area has its name from.
func LeaseOwner(lease string) (cluster string, ok bool) {
	return strings.CutPrefix(lease, leasePrefix)
}

// ServiceExportName names the ResourceExport with the ports of a Service:
// <cluster>-<namespace>-<name>-service.
func ServiceExportName(cluster string, service types.NamespacedName) string {
	return cluster + "-" + ServiceImportName(service)
}

// EndpointsExportName names the ResourceExport with the endpoints of a Service:
// <cluster>-<namespace>-<name>-endpoints.
func EndpointsExportName(cluster string, service types.NamespacedName) string {
	return cluster + "-" + EndpointsImportName(service)
}

// ServiceImportName names the ResourceImport of a merged Service:
// <namespace>-<name>-service.
func ServiceImportName(service types.NamespacedName) string {
	return JoinedName(service) + "-service"
}

// EndpointsImportName names the ResourceImport of merged endpoints:
// <namespace>-<name>-endpoints.
func EndpointsImportName(service types.NamespacedName) string {
	return JoinedName(service) + "-endpoints"
}

// ServiceImportAside names the import of a Service whose ServiceImportName stands
// for another: <namespace>-<name>-<8 hex digits>-service. Who reads it goes by the
// tuple in its spec.
func ServiceImportAside(service types.NamespacedName) string {
	return joinedAside(service) + "-service"
}

// EndpointsImportAside is the same for the merged endpoints.
func EndpointsImportAside(service types.NamespacedName) string {
	return joinedAside(service) + "-endpoints"
}

// joinedAside tells two Services that meet in JoinedName apart: the slash that is
// hashed can be in neither part.
func joinedAside(service types.NamespacedName) string {
	sum := sha256.Sum256([]byte(service.String()))
	return JoinedName(service) + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}

// ClusterInfoName names the ResourceExport and the ResourceImport with the
// network of a cluster, and the ClusterInfoImport made of it: <cluster>-clusterinfo.
func ClusterInfoName(cluster string) string { return cluster + "-clusterinfo" }

// JoinedName is <namespace>-<name>, which the wire's names of imports, and with
// the cluster those of exports, are made of. Dashes are allowed in both parts,
// so two Services can meet in one: a-b/c and a/b-c.
func JoinedName(service types.NamespacedName) string { return service.Namespace + "-" + service.Name }

// JoinedNameOf reads it back from the name of an import, or of an export of
// that cluster; ok is false for any other name.
func JoinedNameOf(object, cluster string) (joined string, ok bool) {
	if cluster != "" {
		if object, ok = strings.CutPrefix(object, cluster+"-"); !ok {
			return "", false
		}
	}
	if joined, ok = strings.CutSuffix(object, "-service"); ok {
		return joined, true
	}
	return strings.CutSuffix(object, "-endpoints")
}

const (
	importedPrefix = "antrea-mc-"
	// hashDigits of SHA-256 tell two shortened names apart: 32 bits, so two of
	// a thousand long names in one namespace meet with a chance of 1 in 8,600.
	hashDigits = 8
)

// NameOfImported reads back the name of an import whose Service was not
// shortened, as none of upstream's is.
func NameOfImported(service string) (name string, ok bool) {
	return strings.CutPrefix(service, importedPrefix)
}

// ImportedServiceName names the Service that stands for an import of this name
// in the same namespace: antrea-mc-<name>.
//
// The wire cannot import names beyond 53 characters, because a Service name
// ends at 63. A longer one keeps its beginning and ends in a hash of the whole
// instead, antrea-mc-<beginning>-<8 hex digits>: 54 + 1 + 8 = 63.
func ImportedServiceName(name string) string {
	full := importedPrefix + name
	if len(full) <= validation.DNS1035LabelMaxLength {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	keep := validation.DNS1035LabelMaxLength - len("-") - hashDigits
	return full[:keep] + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}
