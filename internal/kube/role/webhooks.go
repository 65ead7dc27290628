package role

import (
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/certificate"
	"github.com/lockstep-dev/lockstep/internal/kube/webhook"
	plan "github.com/lockstep-dev/lockstep/internal/plan/certificate"
)

// Webhooks are where and how a role serves admission.
type Webhooks struct {
	// Address to listen on, host:port. Empty serves nothing.
	Address string
	// Names are DNS names and addresses the webhooks are asked under, beside those of
	// their Service.
	Names []string
	// CertificateLife is how long a key pair is good for; zero means 90 days.
	CertificateLife time.Duration
}

// drain is how long a replica that goes still answers.
const drain = 3 * time.Second

// certificates are the settings of the key pair of a role's webhooks.
func (o Options) certificates(r config.Role) certificate.Settings {
	validating, mutating := config.WebhookConfigurations(r, o.Namespace)
	service := config.WebhookService + "." + o.Namespace
	return certificate.Settings{
		Namespace: o.Namespace, Secret: config.WebhookSecret, Validating: validating, Mutating: mutating,
		Names: append([]string{service + ".svc", service + ".svc.cluster.local"}, o.Webhooks.Names...),
		Times: plan.Times{Life: o.Webhooks.CertificateLife}, Controller: o.One(),
	}
}

// WebhookCaches are the kinds that serving webhooks reads; none when a role
// serves none.
func (o Options) WebhookCaches(r config.Role) map[client.Object]cache.ByObject {
	if o.Webhooks.Address == "" {
		return nil
	}
	return o.certificates(r).ByObject()
}

// Serve adds the webhooks of a role to its manager. A replica is ready once it
// can answer, and answers for a while after its loops have stopped: Start waits
// for that.
func (o Options) Serve(mgr *Manager, r config.Role, handler http.Handler) error {
	if o.Webhooks.Address == "" {
		return nil
	}
	serving, err := certificate.Setup(mgr, o.certificates(r), o.Now)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", serving.Ready); err != nil {
		return err
	}
	mgr.webhooks = &webhook.Server{
		Address: o.Webhooks.Address, Handler: handler, Certificate: serving.Get, Drain: o.Scale(drain),
	}
	return mgr.Add(mgr.webhooks)
}
