package launch_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
	"github.com/lockstep-dev/lockstep/internal/lab/node/launch"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
)

func TestProgram(t *testing.T) {
	images := map[string][]string{
		"lockstep":                 {"/bin/lockstep"},
		"ghcr.io/other/lockstep":   {"/bin/other"},
		"registry.example:5000/db": {"/bin/db"},
	}
	for image, want := range map[string]string{
		"lockstep":                              "/bin/lockstep",
		"lockstep:v1.2":                         "/bin/lockstep",
		"registry.example:5000/x/lockstep":      "/bin/lockstep",
		"registry.example:5000/x/lockstep:v1":   "/bin/lockstep",
		"ghcr.io/other/lockstep:v1@sha256:abcd": "/bin/other", // the full name is the stronger
		"registry.example:5000/db":              "/bin/db",    // a port is not a tag
		"lockstep-extras":                       "",
		"nginx":                                 "",
	} {
		argv, ok := launch.Program(images, image)
		if got := first(argv); got != want || ok != (want != "") {
			t.Errorf("Program(%s) = %q, %v; want %q", image, got, ok, want)
		}
	}
}

func TestComposeArgv(t *testing.T) {
	program := []string{"/real/bin/lockstep.test", "-quiet"}
	for name, test := range map[string]struct {
		command, args, want []string
	}{
		"the program plays the entrypoint": {
			args: []string{"run", "leader"},
			want: []string{"/real/bin/lockstep.test", "-quiet", "run", "leader"},
		},
		"a command replaces it": {
			command: []string{"/bin/sleep", "1"}, args: []string{"2"},
			want: []string{"/bin/sleep", "1", "2"},
		},
		"the image's own name is the program": {
			command: []string{"/lockstep", "run"}, args: []string{"leader"},
			want: []string{"/real/bin/lockstep.test", "-quiet", "run", "leader"},
		},
		"so is the program's file name": {
			command: []string{"lockstep.test", "run"},
			want:    []string{"/real/bin/lockstep.test", "-quiet", "run"},
		},
		"paths and variables": {
			args: []string{"--config=/etc/lockstep/$(FILE)", "--keep=$$(FILE)", "--unknown=$(NOBODY)", "--price=5$"},
			want: []string{
				"/real/bin/lockstep.test", "-quiet",
				"--config=/v/config/a.yaml", "--keep=$(FILE)", "--unknown=$(NOBODY)", "--price=5$",
			},
		},
	} {
		in := inputs()
		in.Program = program
		in.Container.Command, in.Container.Args = test.command, test.args
		in.Container.Env = []corev1.EnvVar{{Name: "FILE", Value: "a.yaml"}}
		got, err := launch.Compose(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got.Argv); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestComposeEnvironment(t *testing.T) {
	yes := true
	in := inputs()
	in.Defaults = []string{"HOME=/home", "COLOR=none"}
	in.Overrides = []string{"LOCKSTEP_LAB=/lab"}
	in.Container.EnvFrom = []corev1.EnvFromSource{
		{Prefix: "CM_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("settings")}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("absent"), Optional: &yes}},
	}
	in.Container.Env = []corev1.EnvVar{
		{Name: "COLOR", Value: "blue"},
		{Name: "LOCKSTEP_LAB", Value: "/elsewhere"},
		{Name: "GREETING", Value: "$(CM_word) from $(POD_IP) $(LATER)"},
		{Name: "POD_IP", ValueFrom: field("status.podIP")},
		{Name: "LATER", Value: "$(POD_IP):80"},
		{Name: "ACCOUNT", ValueFrom: field("spec.serviceAccountName")},
		{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("login"), Key: "password"}}},
		{Name: "NONE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("settings"), Key: "none", Optional: &yes}}},
		{Name: "CERTS", Value: "/etc/lockstep/tls/ca.crt:/usr/share/ca.crt"},
	}
	got, err := launch.Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HOME=/home",
		"COLOR=blue", // the container's own wins over a default
		"CM_word=hello",
		"LOCKSTEP_LAB=/lab",                      // and loses to an override
		"GREETING=hello from $(POD_IP) $(LATER)", // only what stands before can be referred to
		"POD_IP=127.4.0.9",
		"LATER=127.4.0.9:80",
		"ACCOUNT=seller",
		"PASSWORD=s3cret",
		"CERTS=/v/tls/ca.crt:/usr/share/ca.crt",
	}
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Errorf("Env (-want +got):\n%s", diff)
	}
}

func TestComposeWorkingDir(t *testing.T) {
	for wanted, want := range map[string]string{
		"":                  "/work",
		"/etc/lockstep/sub": "/v/config/sub",
		"/app":              "/work", // a folder of the image
	} {
		in := inputs()
		in.Container.WorkingDir = wanted
		if got, err := launch.Compose(in); err != nil || got.Dir != want {
			t.Errorf("workingDir %q: %q, %v; want %q", wanted, got.Dir, err, want)
		}
	}
}

func TestComposeErrors(t *testing.T) {
	for want, change := range map[string]func(*corev1.Container){
		`environment variable A: Secret "login/user" does not exist`: func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("login"), Key: "user"}}}}
		},
		`envFrom: ConfigMap "absent" does not exist`: func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("absent")}}}
		},
		`mount /x: the Pod has no volume "absent"`: func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "absent", MountPath: "/x"}}
		},
		`mount /x: subPath "../other" leads out of the volume`: func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/x", SubPath: "../other"}}
		},
	} {
		in := inputs()
		change(in.Container)
		if _, err := launch.Compose(in); err == nil || err.Error() != want {
			t.Errorf("Compose = %v; want %s", err, want)
		}
	}
}

func TestRewrite(t *testing.T) {
	mounts := launch.NewMounts(
		launch.Mount{At: "/etc/app", Dir: "/v/etc/app/config"}, // contains its own mountPath
		launch.Mount{At: "/etc/app/tls/", Dir: "/v/tls"},
		launch.Mount{At: "/data", Dir: "/v/data"},
	)
	for in, want := range map[string]string{
		"/etc/app":                     "/v/etc/app/config",
		"/etc/app/a.yaml":              "/v/etc/app/config/a.yaml",
		"--f=/etc/app/tls/key":         "--f=/v/tls/key",
		"/etc/app/tls":                 "/v/tls",
		"file:///data/x?y=/data":       "file:///v/data/x?y=/v/data",
		"/data:/etc/app,/data":         "/v/data:/v/etc/app/config,/v/data",
		"/srv/data /database /data-2":  "/srv/data /database /data-2",
		`{"dir":"/data"}`:              `{"dir":"/v/data"}`,
		"nothing mounted, /etc/passwd": "nothing mounted, /etc/passwd",
	} {
		if got := mounts.Rewrite(in); got != want {
			t.Errorf("Rewrite(%q) = %q; want %q", in, got, want)
		}
	}
}

// inputs is a Pod with a ConfigMap and a Secret mounted, which each test
// changes a little.
func inputs() launch.Inputs {
	container := corev1.Container{
		Name: "main", Image: "registry.example/lockstep:v1",
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/lockstep"},
			{Name: "tls", MountPath: "/etc/lockstep/tls"},
		},
	}
	return launch.Inputs{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"},
			Spec:       corev1.PodSpec{ServiceAccountName: "seller"},
		},
		Container: &container,
		Program:   []string{"/bin/lockstep"},
		Facts:     downward.Facts{PodIP: netip.MustParseAddr("127.4.0.9")},
		Objects: podref.Objects{
			ConfigMaps: map[string]*corev1.ConfigMap{"settings": {Data: map[string]string{"word": "hello"}}},
			Secrets:    map[string]*corev1.Secret{"login": {Data: map[string][]byte{"password": []byte("s3cret")}}},
		},
		Volumes: map[string]string{"config": "/v/config", "tls": "/v/tls"},
		Dir:     "/work",
	}
}

func ref(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func first(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return argv[0]
}
