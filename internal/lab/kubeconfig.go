package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// access is a kubeconfig with one context, named like the cluster, for the
// user whose certificate is in the given file. Certificates are embedded, so
// the result may be copied anywhere.
func (s *site) access(user string) (*clientcmdapi.Config, error) {
	var files [3][]byte
	for i, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		data, err := os.ReadFile(s.pki(name))
		if err != nil {
			return nil, fmt.Errorf("cannot read the credentials of cluster %q: %w", s.Name, err)
		}
		files[i] = data
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[s.Name] = &clientcmdapi.Cluster{Server: s.url(s.Ports.APIServer), CertificateAuthorityData: files[0]}
	config.AuthInfos[s.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: files[1], ClientKeyData: files[2]}
	config.Contexts[s.Name] = &clientcmdapi.Context{Cluster: s.Name, AuthInfo: s.Name}
	config.CurrentContext = s.Name
	return config, nil
}

// writeKubeconfig writes a user's access to the cluster's folder.
func (s *site) writeKubeconfig(user string) error {
	config, err := s.access(user)
	if err != nil {
		return err
	}
	return saveKubeconfig(config, s.kubeconfig(user))
}

// restConfig is the administrator's access without client-side rate limits:
// a test or a fault waits for the server, not for itself.
func (s *site) restConfig() (*rest.Config, error) {
	config, err := s.access("admin")
	if err != nil {
		return nil, err
	}
	r, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot use the credentials of cluster %q: %w", s.Name, err)
	}
	r.QPS, r.Burst = -1, 0
	return r, nil
}

// Kubeconfig is the path of the administrator's kubeconfig with one context
// per cluster of the lab.
func (s *Spec) Kubeconfig() string { return filepath.Join(s.Dir, "kubeconfig") }

// writeKubeconfig merges the access to all clusters; the first is the current.
func (s *Spec) writeKubeconfig() error {
	merged := clientcmdapi.NewConfig()
	for _, name := range s.ClusterNames() {
		site, err := s.site(name)
		if err != nil {
			return err
		}
		one, err := site.access("admin")
		if err != nil {
			return err
		}
		merged.Clusters[name], merged.AuthInfos[name], merged.Contexts[name] = one.Clusters[name], one.AuthInfos[name], one.Contexts[name]
	}
	merged.CurrentContext = s.Clusters[0].Name
	return saveKubeconfig(merged, s.Kubeconfig())
}

func saveKubeconfig(config *clientcmdapi.Config, path string) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", path, err)
	}
	return writeFile(path, data)
}
