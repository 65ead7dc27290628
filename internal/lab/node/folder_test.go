package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestFolderNamesAreFileNames(t *testing.T) {
	folder := nodeFolder("/lab/pods")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: strings.Repeat("n", 63), Name: strings.Repeat("p", 253), UID: types.UID(strings.Repeat("u", 36)),
	}}
	name := filepath.Base(string(folder.of(pod)))
	if len(name) > 255 {
		t.Errorf("the name has %d bytes; a file name has at most 255", len(name))
	}
	if got := uidOf(name); got != pod.UID {
		t.Errorf("uidOf(%s) = %s; want %s", name, got, pod.UID)
	}
}

func TestSweepLeavesLogsOnly(t *testing.T) {
	folder := nodeFolder(t.TempDir())
	for _, uid := range []string{"here", "gone"} {
		of := podFolder(filepath.Join(string(folder), "ns_pod_"+uid))
		if err := of.prepare(); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{of.kubeconfig(), of.log("main"), of.log("main") + ".1"} {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := folder.sweep(map[types.UID]bool{"here": true}); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[string]string{"here": "kubeconfig main.log main.log.1 tmp", "gone": "main.log main.log.1"} {
		if got := names(t, filepath.Join(string(folder), "ns_pod_"+uid)); got != want {
			t.Errorf("%s: %s; want %s", uid, got, want)
		}
	}
	if err := nodeFolder(filepath.Join(string(folder), "none")).sweep(nil); err != nil {
		t.Errorf("sweep of a node without Pods: %v", err)
	}
}

func TestPruneKeepsTheNewest(t *testing.T) {
	folder := nodeFolder(t.TempDir())
	begin := time.Now().Add(-time.Hour)
	for i := range longestMemory + 2 {
		path := filepath.Join(string(folder), fmt.Sprintf("ns_pod_%03d", i))
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		at := begin.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.prune(map[types.UID]bool{"000": true}); err != nil { // old, but of a Pod that is here
		t.Fatal(err)
	}
	have := names(t, string(folder))
	if n := len(strings.Fields(have)); n != longestMemory+1 {
		t.Errorf("%d folders are left; want %d", n, longestMemory+1)
	}
	if strings.Contains(have, "_001") || !strings.Contains(have, "_000") {
		t.Errorf("the wrong ones are left: %s", have)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return strings.Join(list, " ")
}
