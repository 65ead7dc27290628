package volume_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
	"github.com/lockstep-dev/lockstep/internal/lab/node/volume"
)

func TestFiles(t *testing.T) {
	in := volume.Inputs{
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}},
		Objects: podref.Objects{
			ConfigMaps: map[string]*corev1.ConfigMap{"settings": {
				Data:       map[string]string{"a.yaml": "a", "b.yaml": "b"},
				BinaryData: map[string][]byte{"raw": {0xff}},
			}},
			Secrets: map[string]*corev1.Secret{"tls": {Data: map[string][]byte{"tls.key": []byte("key")}}},
		},
		Tokens: map[volume.TokenSpec]string{{Seconds: 3607}: "token", {Audience: "vault", Seconds: 3600}: "other"},
	}
	yes, mode, item, seconds := true, int32(0o400), int32(0o440), int64(3607)
	settings, absent := local("settings"), local("absent")
	for name, test := range map[string]struct {
		source corev1.VolumeSource
		want   string // sorted "path mode data", or the error
	}{
		"all keys": {
			corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: settings}},
			"a.yaml 644 a; b.yaml 644 b; raw 644 \xff",
		},
		"chosen keys, paths and modes": {
			corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: settings, DefaultMode: &mode,
				Items: []corev1.KeyToPath{{Key: "a.yaml", Path: "sub/c.yaml"}, {Key: "b.yaml", Path: "b", Mode: &item}},
			}},
			"b 440 b; sub/c.yaml 400 a",
		},
		"absent":   {corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: absent}}, `volume "v": ConfigMap "absent" does not exist`},
		"optional": {corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "absent", Optional: &yes}}, ""},
		"absent key": {
			corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls", Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			`volume "v": Secret "tls" has no key "ca.crt"`,
		},
		"path out of the volume": {
			corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls", Items: []corev1.KeyToPath{{Key: "tls.key", Path: "../x"}}}},
			`volume "v": the path "../x" leads out of the volume`,
		},
		"downward": {
			corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
			}}},
			"name 644 web",
		},
		"projected": {
			corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "vault", Audience: "vault"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: settings, Items: []corev1.KeyToPath{{Key: "a.yaml", Path: "ca.crt"}}}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("tls")}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
				}}},
			}}},
			"ca.crt 644 a; namespace 644 shop; tls.key 644 key; token 600 token; vault 600 other",
		},
		"no token yet": {
			corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "nobody"}},
			}}},
			`volume "v": there is no token for the ServiceAccount "" yet`,
		},
		"emptyDir": {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, ""},
	} {
		files, err := volume.Files(corev1.Volume{Name: "v", VolumeSource: test.source}, in)
		var parts []string
		for _, path := range slices.Sorted(maps.Keys(files)) {
			parts = append(parts, fmt.Sprintf("%s %o %s", path, files[path].Mode, files[path].Data))
		}
		got := strings.Join(parts, "; ")
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnsupported(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.Volumes = []corev1.Volume{{Name: "ok", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if err := volume.Unsupported(pod); err != nil {
		t.Errorf("Unsupported(emptyDir) = %v", err)
	}
	for want, source := range map[string]corev1.VolumeSource{
		`hostPath "/etc" is refused`:             {HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}},
		`volumes of this kind are not supported`: {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}},
		`this projected source is not supported`: {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}}}},
	} {
		pod.Spec.Volumes[0].VolumeSource = source
		if err := volume.Unsupported(pod); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Unsupported = %v; want %q", err, want)
		}
	}
}

func TestTokens(t *testing.T) {
	source := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	other := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "x", Audience: "x"}}
	pod := &corev1.Pod{}
	pod.Spec.Volumes = []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source, other}}}},
		{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}}}},
	}
	want := []volume.TokenSpec{{Seconds: 3600}, {Audience: "x", Seconds: 3600}}
	if diff := cmp.Diff(want, volume.TokenSpecs(pod)); diff != "" {
		t.Errorf("TokenSpecs (-want +got):\n%s", diff)
	}
	issued := time.Unix(0, 0)
	if got := volume.RenewAt(issued, issued.Add(time.Hour)).Sub(issued); got != 48*time.Minute {
		t.Errorf("a token of 1h is renewed after %s; want 48m", got)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	write := func(want bool, files map[string]volume.File) {
		t.Helper()
		changed, err := volume.Write(dir, files)
		if err != nil || changed != want {
			t.Fatalf("Write = %v, %v; want %v", changed, err, want)
		}
		// Beside the visible names there are only ..data and what it points to.
		names := map[string]bool{"..data": true}
		for path := range files {
			name, _, _ := strings.Cut(path, "/")
			names[name] = true
			if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != string(files[path].Data) {
				t.Errorf("%s = %q, %v; want %q", path, got, err, files[path].Data)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != len(names)+1 {
			t.Errorf("the volume holds %v, %v; want %v and one folder", entries, err, names)
		}
	}
	one := map[string]volume.File{"a": {Data: []byte("1"), Mode: 0o644}, "sub/b": {Data: []byte("2"), Mode: 0o600}}
	write(true, one)
	write(false, one)
	if info, err := os.Stat(filepath.Join(dir, "a")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode of a: %v, %v; want 644", info.Mode(), err)
	}
	write(true, map[string]volume.File{"a": {Data: []byte("1"), Mode: 0o600}, "sub/b": {Data: []byte("2"), Mode: 0o600}}) // a mode alone
	write(true, map[string]volume.File{"c": {Data: []byte("3"), Mode: 0o644}})
	write(true, map[string]volume.File{})
	write(false, map[string]volume.File{})
	// What an interrupted write left behind goes with the next one.
	if err := os.Mkdir(filepath.Join(dir, "..left"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(true, one)
}

// A reader that follows ..data once never sees parts of two versions.
func TestWriteIsOneStep(t *testing.T) {
	dir := t.TempDir()
	version := func(n int) map[string]volume.File {
		data := []byte(fmt.Sprint(n))
		return map[string]volume.File{"a": {Data: data, Mode: 0o600}, "b": {Data: data, Mode: 0o600}}
	}
	if _, err := volume.Write(dir, version(0)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			at, err := os.Readlink(filepath.Join(dir, "..data"))
			if err != nil {
				t.Error(err)
				return
			}
			a, errA := os.ReadFile(filepath.Join(dir, at, "a"))
			b, errB := os.ReadFile(filepath.Join(dir, at, "b"))
			gone := os.IsNotExist(errA) || os.IsNotExist(errB) // the next version came in between
			if !gone && (string(a) != string(b) || len(a) == 0) {
				t.Errorf("saw %q and %q together", a, b)
			}
		}
	})
	for n := range 300 {
		if _, err := volume.Write(dir, version(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
}

func TestModesAreNotSubjectToTheUmask(t *testing.T) {
	dir := t.TempDir()
	if _, err := volume.Write(dir, map[string]volume.File{"open": {Mode: 0o666}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "open")); err != nil || info.Mode().Perm() != fs.FileMode(0o666) {
		t.Errorf("mode %v, %v; want 666", info.Mode(), err)
	}
}

func local(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
