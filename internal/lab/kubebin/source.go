package kubebin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

//go:embed source/*.txt
var embedded embed.FS

// sources are the files of the module, without the .txt that keeps the go
// command from taking the copy for a module or a package.
var sources = []string{"go.mod", "go.sum", "main.go"}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`)

// version is the Kubernetes version that is built.
type version struct {
	full, major, minor string
}

func sourceVersion() (version, error) {
	mod, err := embedded.ReadFile("source/go.mod.txt")
	if err != nil {
		return version{}, err
	}
	match := kubernetesVersion.FindSubmatch(mod)
	if match == nil {
		return version{}, fmt.Errorf("the control plane's go.mod requires no k8s.io/kubernetes")
	}
	return version{full: string(match[1]), major: string(match[2]), minor: string(match[3])}, nil
}

// sourceHash tells builds of different sources apart.
func sourceHash() (string, error) {
	hash := sha256.New()
	for _, name := range sources {
		data, err := embedded.ReadFile("source/" + name + ".txt")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// writeSource writes the module into a folder.
func writeSource(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range sources {
		data, err := embedded.ReadFile("source/" + name + ".txt")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
