package charts_test

import (
	"os"
	"path/filepath"
	"testing"

	helmcmd "helm.sh/helm/v4/pkg/cmd"
	helmkube "helm.sh/helm/v4/pkg/kube"
	"k8s.io/component-base/cli"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
)

// TestMain lets this program stand for the command lines of Helm and kubectl as
// well, under their names, so that a test can type what a user types on a machine
// that has neither. What it runs is what their own main functions run.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "helm":
		helmkube.ManagedFieldsManager = "helm"
		command, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], helmcmd.SetupLogging)
		if err != nil || command.Execute() != nil {
			os.Exit(1)
		}
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	default:
		os.Exit(m.Run())
	}
}
