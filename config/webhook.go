package config

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// WebhookService is where the API server finds the webhooks of a controller, and
	// WebhookSecret holds their key pair; both are in the controller's Namespace.
	WebhookService = "antrea-mc-webhook-service"
	WebhookSecret  = "antrea-mc-webhook-certificate"

	// labelServedIn says in which Namespace the controller behind a webhook
	// configuration is. It is the wire's: there its leader looks for configurations by it.
	labelServedIn = "served-in"
)

// validatingConfigurations and mutatingConfigurations are the names of the wire.
// A member of the wire has a mutating one as well, with nothing in it.
var (
	validatingConfigurations = map[Role]string{
		Leader: "antrea-multicluster-antrea-mc-validating-webhook-configuration",
		Member: "antrea-mc-validating-webhook-configuration",
	}
	mutatingConfigurations = map[Role]string{
		Leader: "antrea-multicluster-antrea-mc-mutating-webhook-configuration",
	}
)

// WebhookConfigurations are the names of the webhook configurations of a
// controller in a Namespace; mutating is empty where there is none.
func WebhookConfigurations(role Role, namespace string) (validating, mutating string) {
	suffix := ""
	if namespace != defaultNamespace(role) {
		suffix = "-" + namespace
	}
	validating = validatingConfigurations[role] + suffix
	if name, ok := mutatingConfigurations[role]; ok {
		mutating = name + suffix
	}
	return validating, mutating
}

// serve names a webhook configuration after the installation it belongs to.
func (r renderer) serve(meta *metav1.ObjectMeta) {
	meta.Name += r.suffix
	if _, ok := meta.Labels[labelServedIn]; ok {
		meta.Labels[labelServedIn] = r.Namespace
	}
}

// lead sends a webhook's requests, and only those of this installation, to its
// own controller.
func (r renderer) lead(to *admissionregistrationv1.WebhookClientConfig, selector *metav1.LabelSelector) {
	if to.Service != nil {
		to.Service.Namespace = r.Namespace
	}
	if selector != nil {
		selector.MatchLabels[corev1.LabelMetadataName] = r.Namespace
	}
}

// ownConfigurations keeps the rights on webhook configurations to those of this
// installation.
func (r renderer) ownConfigurations(rules []rbacv1.PolicyRule) {
	for i := range rules {
		if slices.Contains(rules[i].APIGroups, admissionregistrationv1.GroupName) {
			for j := range rules[i].ResourceNames {
				rules[i].ResourceNames[j] += r.suffix
			}
		}
	}
}
