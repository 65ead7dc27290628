// Command kube is the Kubernetes control plane of the lab in one file: etcd,
// etcdutl, kube-apiserver and kube-controller-manager, chosen by the name the
// program is called with or by its first argument. They share most of their
// code, so one binary is a third of the size and of the build time of three.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	if run, ok := programs[name]; ok {
		run()
		return
	}
	if len(os.Args) > 1 {
		if run, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			run()
			return
		}
	}
	fmt.Fprintf(os.Stderr, "usage: %s etcd|etcdutl|kube-apiserver|kube-controller-manager [flags]\n", name)
	os.Exit(2)
}

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"etcdutl":                 func() { os.Exit(cli.Run(newEtcdutl())) },
	"kube-apiserver":          func() { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) },
	"kube-controller-manager": func() { os.Exit(cli.Run(controllermanager.NewControllerManagerCommand())) },
}

// newEtcdutl is the part of etcdutl that the lab needs: `snapshot restore`.
// The upstream root command lives in its package main and cannot be imported.
func newEtcdutl() *cobra.Command {
	cmd := &cobra.Command{Use: "etcdutl", Short: "Administrates etcd files while etcd is stopped"}
	cmd.AddCommand(etcdutl.NewSnapshotCommand())
	return cmd
}
