package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	product = "github.com/lockstep-dev/lockstep"
	// imageName is the name of the image in the manifests, and of the program in it.
	imageName = "lockstep"
	// nonroot is the user of the manifests' runAsNonRoot; it owns nothing.
	nonroot = "65532:65532"
)

// Stamp is what a build knows of its source.
type Stamp struct {
	Version, Commit string
	// Created is the time of the source, not of the build: a clock would make
	// every build another.
	Created time.Time
}

// Build compiles the program in the module below root for each platform
// ("linux/arm64") and returns the images as one index. Progress goes to log.
func Build(ctx context.Context, root string, platforms []string, stamp Stamp, log io.Writer) (v1.ImageIndex, error) {
	scratch, err := os.MkdirTemp("", "lockstep-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, text := range platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, fmt.Errorf("platform %q: %w; write it as linux/amd64", text, err)
		}
		fmt.Fprintf(log, "compiling for %s\n", platform)
		program := filepath.Join(scratch, imageName)
		if err := compile(ctx, root, program, platform, stamp); err != nil {
			return nil, err
		}
		image, err := assemble(program, platform, stamp)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	// go-containerregistry would not say so if it appended nothing.
	manifest, err := index.IndexManifest()
	if err == nil && len(manifest.Manifests) != len(platforms) {
		err = fmt.Errorf("%d of %d platforms are in the index", len(manifest.Manifests), len(platforms))
	}
	return index, err
}

// compile makes a static program in which neither the place nor the time of
// the build can be seen.
func compile(ctx context.Context, root, out string, platform *v1.Platform, stamp Stamp) error {
	variables := product + "/internal/cli/version."
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", out,
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X %[1]sversion=%[2]s -X %[1]scommit=%[3]s", variables, stamp.Version, stamp.Commit),
		"./cmd/lockstep")
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off",
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot compile for %s: %w: %s\n%s", platform, err, command, output)
	}
	return nil
}

// assemble puts the program into an image.
func assemble(program string, platform *v1.Platform, stamp Stamp) (v1.Image, error) {
	layer, err := layerOf(program, stamp.Created)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: stamp.Created}, CreatedBy: "go build ./cmd/lockstep"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: stamp.Created}
	file.Config = v1.Config{
		User: nonroot, WorkingDir: "/",
		Entrypoint: []string{"/" + imageName},
		Env:        []string{"PATH=/"},
		Labels:     labels(stamp),
	}
	return mutate.ConfigFile(image, file)
}

// labels are those of the OCI image specification, "Pre-Defined Annotation Keys".
func labels(stamp Stamp) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "Lockstep",
		"org.opencontainers.image.description": "Controllers and command line of a Lockstep ClusterSet",
		"org.opencontainers.image.source":      "https://" + product,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     stamp.Version,
		"org.opencontainers.image.revision":    stamp.Commit,
		"org.opencontainers.image.created":     stamp.Created.Format(time.RFC3339),
	}
}
