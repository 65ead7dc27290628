package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layoutDir is the OCI layout below the folder of the result.
const layoutDir = "oci"

// Save writes the index as OCI layout, and each image as an archive that
// `docker load` and `ctr image import` read. It says to log what it wrote.
func Save(out string, index v1.ImageIndex, stamp Stamp, log io.Writer) error {
	if err := makeRoom(out); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	// Tools find an image of a layout by this annotation of its entry.
	entry := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": stamp.Version}},
	})
	dir := filepath.Join(out, layoutDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := layout.Write(dir, entry); err != nil {
		return fmt.Errorf("cannot write the OCI layout %q: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "%s\t%s\n", digest, dir)
	for _, descriptor := range manifest.Manifests {
		if err := saveArchive(out, index, descriptor, stamp, log); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes what an earlier Save wrote, and nothing else: --out may name any
// folder by mistake. One that holds other things only is refused.
func makeRoom(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, layoutDir, "oci-layout")); err != nil {
		return fmt.Errorf("cannot write the image to %q: it is not empty and holds no earlier image; name another folder with --out", out)
	}
	written, err := filepath.Glob(filepath.Join(out, imageName+"-*.tar"))
	if err != nil {
		return err
	}
	for _, path := range append(written, filepath.Join(out, layoutDir)) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func saveArchive(out string, index v1.ImageIndex, descriptor v1.Descriptor, stamp Stamp, log io.Writer) error {
	image, err := index.Image(descriptor.Digest)
	if err != nil {
		return err
	}
	file := filepath.Join(out, strings.Join([]string{imageName, descriptor.Platform.OS, descriptor.Platform.Architecture}, "-")+".tar")
	images := map[name.Tag]v1.Image{}
	for _, tag := range []string{stamp.Version, "latest"} {
		tag, err := name.NewTag(imageName + ":" + tag)
		if err != nil {
			return fmt.Errorf("version %q cannot be a tag: %w", stamp.Version, err)
		}
		images[tag] = image
	}
	if err := tarball.MultiWriteToFile(file, images); err != nil {
		return fmt.Errorf("cannot write the archive %q: %w", file, err)
	}
	fmt.Fprintf(log, "%s\t%s\n", descriptor.Digest, file)
	return nil
}

// load reads the index that Save wrote.
func load(out string) (v1.ImageIndex, error) {
	dir := filepath.Join(out, layoutDir)
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the OCI layout %q: %w; build it with make image", dir, err)
	}
	entry, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := entry.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("the OCI layout %q holds %d images, not one; build it with make image", dir, len(manifest.Manifests))
	}
	return entry.ImageIndex(manifest.Manifests[0].Digest)
}

// Push copies what Save wrote to a registry, with the credentials that `docker
// login` keeps, and returns the reference with the digest.
func Push(ctx context.Context, out, reference string) (string, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return "", fmt.Errorf("%w; write it as registry.example.com/lockstep:v1", err)
	}
	index, err := load(out)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("cannot push to %s: %w", ref, err)
	}
	return ref.Context().Digest(digest.String()).String(), nil
}
