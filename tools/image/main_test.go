package main

import (
	"archive/tar"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var (
	root      = filepath.Join("..", "..")
	platforms = []string{"linux/amd64", "linux/arm64"}
	stamp     = Stamp{Version: "v0.0.0-test", Commit: "0123456789abcdef", Created: time.Unix(1_700_000_000, 0).UTC()}
)

// One image from source to registry: what is built is valid, runs, is the same
// when it is built elsewhere, and arrives as it was sent.
func TestImage(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the program for two platforms; run without -short")
	}
	index := build(t, root)
	out := filepath.Join(t.TempDir(), "image")
	if err := Save(out, index, stamp, t.Output()); err != nil {
		t.Fatal(err)
	}
	saved, err := load(out)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := saved.Digest()
	if err != nil {
		t.Fatal(err)
	}

	t.Run("the layout is valid and holds both platforms", func(t *testing.T) {
		if err := validate.Index(saved); err != nil {
			t.Error(err)
		}
		manifest, err := saved.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, descriptor := range manifest.Manifests {
			found = append(found, descriptor.Platform.String())
		}
		if !slices.Equal(found, platforms) {
			t.Errorf("platforms %v, want %v", found, platforms)
		}
	})
	t.Run("each image runs the program as nobody in particular", func(t *testing.T) {
		for _, platform := range platforms {
			file, err := imageFor(t, saved, platform).ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if file.Platform().String() != platform || file.Config.User != nonroot || !slices.Equal(file.Config.Entrypoint, []string{"/lockstep"}) {
				t.Errorf("%s: %+v", platform, file)
			}
			for label, want := range map[string]string{
				"org.opencontainers.image.version": stamp.Version, "org.opencontainers.image.revision": stamp.Commit,
				"org.opencontainers.image.created": "2023-11-14T22:13:20Z", "org.opencontainers.image.licenses": "Apache-2.0",
			} {
				if got := file.Config.Labels[label]; got != want {
					t.Errorf("%s: label %s is %q, want %q", platform, label, got, want)
				}
			}
		}
	})
	t.Run("the program in it says which build it is", func(t *testing.T) {
		platform := "linux/" + runtime.GOARCH
		if runtime.GOOS != "linux" || !slices.Contains(platforms, platform) {
			t.Skipf("no image is for %s/%s", runtime.GOOS, runtime.GOARCH)
		}
		program := extract(t, imageFor(t, saved, platform))
		said, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
		want := "lockstep " + stamp.Version + " (commit " + stamp.Commit + ", " + runtime.Version() + ", " + platform + ")\n"
		if err != nil || string(said) != want {
			t.Errorf("it says %q, %v; want %q", said, err, want)
		}
	})
	t.Run("docker can load each archive", func(t *testing.T) {
		for _, platform := range platforms {
			archive := filepath.Join(out, "lockstep-"+strings.ReplaceAll(platform, "/", "-")+".tar")
			for _, tag := range []string{stamp.Version, "latest"} {
				reference, err := name.NewTag("lockstep:" + tag)
				if err != nil {
					t.Fatal(err)
				}
				loaded, err := tarball.ImageFromPath(archive, &reference)
				if err != nil {
					t.Fatalf("%s: %v", archive, err)
				}
				if err := validate.Image(loaded); err != nil {
					t.Errorf("%s: %v", archive, err)
				}
				got, err := loaded.ConfigName()
				want, wantErr := imageFor(t, saved, platform).ConfigName()
				if err := errors.Join(err, wantErr); err != nil || got != want {
					t.Errorf("%s holds image %s, the index %s (%v)", archive, got, want, err)
				}
			}
		}
	})
	t.Run("the same source in another folder gives the same digest", func(t *testing.T) {
		again, err := build(t, elsewhere(t)).Digest()
		if err != nil || again != digest {
			t.Errorf("digest %s, then %s (%v)", digest, again, err)
		}
	})
	t.Run("a registry gets what was built", func(t *testing.T) {
		t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials of whoever runs this
		server := httptest.NewServer(registry.New())
		defer server.Close()
		repository := strings.TrimPrefix(server.URL, "http://") + "/a/lockstep"
		pushed, err := Push(t.Context(), out, repository+":v1")
		if err != nil {
			t.Fatal(err)
		}
		if want := repository + "@" + digest.String(); pushed != want {
			t.Errorf("pushed as %s, want %s", pushed, want)
		}
		reference, err := name.ParseReference(repository + ":v1")
		if err != nil {
			t.Fatal(err)
		}
		arrived, err := remote.Index(reference)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(arrived); err != nil {
			t.Error(err)
		}
		if got, err := arrived.Digest(); err != nil || got != digest {
			t.Errorf("the registry has %s (%v), %s was built", got, err, digest)
		}
	})
}

func build(t *testing.T, root string) v1.ImageIndex {
	t.Helper()
	index, err := Build(t.Context(), root, platforms, stamp, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// elsewhere is a copy of what the program is made of, and of nothing else: the
// folders at the root that it has packages in, as the go command names them.
// They are copied whole, for what their packages embed.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range parts(t) {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func parts(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}", "./cmd/lockstep")
	list.Dir = root
	said, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list the packages of the program: %v", err)
	}
	const module = "github.com/lockstep-dev/lockstep/"
	var all []string
	for path := range strings.FieldsSeq(string(said)) {
		inside, ok := strings.CutPrefix(path, module)
		if !ok {
			t.Fatalf("package %s is at the root of the module: a copy of folders does not have it", path)
		}
		part, _, _ := strings.Cut(inside, "/")
		all = append(all, part)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func imageFor(t *testing.T, index v1.ImageIndex, platform string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform.String() == platform {
			image, err := index.Image(descriptor.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("no image for %s", platform)
	return nil
}

// extract writes the program of an image to a file, as a runtime would see it.
func extract(t *testing.T, image v1.Image) string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if err != nil {
			t.Fatalf("no program in the layer: %v", err)
		}
		if header.Uid != 0 || header.Mode&0o022 != 0 {
			t.Errorf("%s can be changed by the user of the image: owner %d, mode %o", header.Name, header.Uid, header.Mode)
		}
		if header.Name != imageName {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(t.TempDir(), imageName)
		if err := os.WriteFile(program, text, 0o700); err != nil {
			t.Fatal(err)
		}
		return program
	}
}

func TestWhatCannotBeDoneSaysWhy(t *testing.T) {
	cases := map[string]struct {
		args []string
		says string
	}{
		"a platform nobody knows":  {[]string{"build", "--root", root, "--out", t.TempDir(), "--platforms", "a/b/c/d"}, `platform "a/b/c/d"`},
		"nothing was built":        {[]string{"push", "--out", t.TempDir(), "registry.example.com/lockstep"}, "make image"},
		"a reference that is none": {[]string{"push", "--out", t.TempDir(), "No Reference"}, "registry.example.com/lockstep:v1"},
		"no source":                {[]string{"build", "--root", t.TempDir(), "--out", t.TempDir(), "--platforms", "linux/amd64"}, "cannot compile for linux/amd64"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), c.args)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
	if err := run(t.Context(), []string{"build"}); !errors.Is(err, errUsage) {
		t.Errorf("without an output folder: %v", err)
	}
}

// --out may name a folder by mistake: what Save did not write stays.
func TestSaveRemovesOnlyItsOwn(t *testing.T) {
	stamp := Stamp{Version: "v1"}
	files := func(dir string) (names []string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: empty.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Save(foreign, index, stamp, io.Discard); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if got := files(foreign); len(got) != 1 {
		t.Errorf("it holds %v", got)
	}
	own := filepath.Join(t.TempDir(), "image")
	for range 2 {
		if err := Save(own, index, stamp, io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, "notes.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, imageName+"-linux-old.tar"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Save(own, index, stamp, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(files(own), " "); got != imageName+"-linux-amd64.tar notes.txt oci" {
		t.Errorf("after another Save the folder holds %q", got)
	}
}
