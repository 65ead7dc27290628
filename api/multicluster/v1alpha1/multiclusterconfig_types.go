package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MultiClusterConfig is the schema of the controllers' configuration file. It
// is never an object of an API server.
//
// +kubebuilder:object:root=true
// +kubebuilder:skip
type MultiClusterConfig struct {
	metav1.TypeMeta `json:",inline"`

	Health  HealthConfig  `json:"health,omitempty"`
	Metrics MetricsConfig `json:"metrics,omitempty"`
	Webhook WebhookConfig `json:"webhook,omitempty"`
	// Admission is Lockstep's own, and a leader's.
	Admission AdmissionConfig `json:"admission,omitempty"`

	// ServiceCIDR of this cluster; empty means: find out.
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// PodCIDRs to advertise; empty strings are dropped.
	PodCIDRs []string `json:"podCIDRs,omitempty"`
	// GatewayIPPrecedence: private (or internal), public (or external).
	GatewayIPPrecedence string `json:"gatewayIPPrecedence,omitempty"`
	// EndpointIPType: ClusterIP or PodIP.
	EndpointIPType EndpointIPType `json:"endpointIPType,omitempty"`
	// EnableStretchedNetworkPolicy must be equal on the leader and all members.
	EnableStretchedNetworkPolicy bool `json:"enableStretchedNetworkPolicy,omitempty"`
}

// HealthConfig: where probes are answered.
type HealthConfig struct {
	HealthProbeBindAddress string `json:"healthProbeBindAddress,omitempty"`
}

// MetricsConfig: where metrics are served; "0" turns them off.
type MetricsConfig struct {
	BindAddress string `json:"bindAddress,omitempty"`
}

// WebhookConfig: where admission is served.
type WebhookConfig struct {
	Port    *int   `json:"port,omitempty"`
	Host    string `json:"host,omitempty"`
	CertDir string `json:"certDir,omitempty"`
}

// AdmissionConfig: how strictly a leader judges requests to the common area. The
// zero value is the strict one.
type AdmissionConfig struct {
	// Administrators are names of users and groups that may do what a member may
	// not; empty means system:masters and kubeadm:cluster-admins.
	Administrators []string `json:"administrators,omitempty"`
	// TrustUnboundCredentials lets credentials with the member Role that are bound to
	// no cluster ID write exports of any; for the days of a migration only.
	TrustUnboundCredentials bool `json:"trustUnboundCredentials,omitempty"`
	// RequireExpiringTokens refuses members whose token never ends.
	RequireExpiringTokens bool `json:"requireExpiringTokens,omitempty"`
	// ReservedCIDRs may be claimed by no member.
	ReservedCIDRs []string `json:"reservedCIDRs,omitempty"`
}

// EndpointIPType says which addresses an exporter offers.
type EndpointIPType string

const (
	EndpointIPTypeClusterIP EndpointIPType = "ClusterIP"
	EndpointIPTypePodIP     EndpointIPType = "PodIP"
)
