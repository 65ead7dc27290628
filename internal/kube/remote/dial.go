package remote

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

func direct(access clusterset.Access, config *rest.Config) (client.Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the credential for the leader at %s cannot be used: %w; check ca.crt and token of the member's Secret, or apply one made by \"lockstep mc create membertoken\"", access.Server, err)
	}
	direct, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: scheme.New(), Mapper: scheme.AreaMapper()})
	if err != nil {
		return nil, fmt.Errorf("cannot build a client for the leader at %s: %w", access.Server, err)
	}
	return direct, nil
}

func restConfig(access clusterset.Access, settings Settings) *rest.Config {
	config := &rest.Config{
		Host:            access.Server,
		BearerToken:     string(access.Token),
		TLSClientConfig: rest.TLSClientConfig{CAData: access.CA},
		UserAgent:       settings.UserAgent,
		QPS:             500,
		Burst:           1000,
		// A proxy named in the environment is for other traffic than this.
		Proxy: http.ProxyFromEnvironment,
	}
	if settings.QPS != 0 {
		config.QPS, config.Burst = settings.QPS, settings.Burst
	}
	if settings.Wrap != nil {
		config.Wrap(settings.Wrap)
	}
	return config
}
