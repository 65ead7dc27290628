package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-dev/lockstep/internal/lab/node/volume"
)

// accountPath is where every client library looks for the credentials of its
// Pod, and where the API server's admission mounts them.
const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// fillVolumes makes the volumes of a Pod hold what they should hold now.
func (a *Agent) fillVolumes(ctx context.Context, o *observed) error {
	folder := o.local.folder
	if err := folder.prepare(); err != nil {
		return err
	}
	tokens, err := a.tokens(ctx, o)
	if err != nil {
		return err
	}
	in := volume.Inputs{Pod: o.part, Facts: o.facts, Objects: o.objects, Tokens: tokens}
	for _, v := range o.part.Spec.Volumes {
		files, err := volume.Files(v, in)
		if err != nil {
			return err
		}
		if files == nil {
			err = makeOwn(folder.volume(v.Name), v.Name, o.part)
		} else {
			_, err = volume.Write(folder.volume(v.Name), files)
		}
		if err != nil {
			return fmt.Errorf("volume %q: %w", v.Name, err)
		}
	}
	return a.writeKubeconfig(o)
}

// makeOwn makes the folder of a volume whose content is the programs' own, and
// the parts of it that are mounted alone.
func makeOwn(dir, name string, part *corev1.Pod) error {
	for c := range containers(part) {
		for _, m := range c.VolumeMounts {
			if m.Name == name && filepath.IsLocal(m.SubPath) {
				if err := os.MkdirAll(filepath.Join(dir, m.SubPath), 0o700); err != nil {
					return err
				}
			}
		}
	}
	return os.MkdirAll(dir, 0o700)
}

// accountMount is the mount of the ServiceAccount's credentials, or nil when
// the Pod does without.
func accountMount(c *corev1.Container) *corev1.VolumeMount {
	for i := range c.VolumeMounts {
		if c.VolumeMounts[i].MountPath == accountPath {
			return &c.VolumeMounts[i]
		}
	}
	return nil
}

// writeKubeconfig tells the processes of a Pod what a container finds out by
// itself: where the API server is, and the way to their own token. The cluster
// IP of the API server leads nowhere in a lab without a service proxy.
func (a *Agent) writeKubeconfig(o *observed) error {
	for c := range containers(o.part) {
		if mount := accountMount(c); mount != nil {
			// All containers mount the same volume: admission made it.
			token := filepath.Join(o.local.folder.volume(mount.Name), corev1.ServiceAccountTokenKey)
			return writeOnce(o.local.folder.kubeconfig(), kubeconfig(a.options.RESTConfig, token, o.part.Namespace))
		}
	}
	return nil
}

func kubeconfig(server *rest.Config, token, namespace string) clientcmdapi.Config {
	const name = "pod"
	config := *clientcmdapi.NewConfig()
	cluster := clientcmdapi.NewCluster()
	cluster.Server = server.Host
	cluster.CertificateAuthorityData = server.CAData
	cluster.CertificateAuthority = server.CAFile
	cluster.TLSServerName = server.ServerName
	cluster.InsecureSkipTLSVerify = server.Insecure
	user := clientcmdapi.NewAuthInfo()
	user.TokenFile = token // read again when the token is renewed
	at := clientcmdapi.NewContext()
	at.Cluster, at.AuthInfo, at.Namespace = name, name, namespace
	config.Clusters[name], config.AuthInfos[name], config.Contexts[name] = cluster, user, at
	config.CurrentContext = name
	return config
}

// writeOnce writes a kubeconfig unless the file holds it already: a process
// may be reading.
func writeOnce(path string, config clientcmdapi.Config) error {
	want, err := clientcmd.Write(config)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(path); err == nil && string(have) == string(want) {
		return nil
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, want, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
