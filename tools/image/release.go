package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// pluginName is the program under the name kubectl looks for.
	pluginName = "kubectl-" + imageName
	// sumsFile lists the archives as sha256sum(1) does, so that -c checks them.
	sumsFile = "SHA256SUMS"
	// manifestFile is the plugin manifest with version and sums filled in.
	manifestFile = "lockstep.yaml"
)

// errNotBuilt tells that the manifest names a platform that was not asked for.
var errNotBuilt = errors.New("no archive was built for it")

// Release compiles the program for each platform ("darwin/arm64") and writes to the
// folder out one archive each, their sums, and the manifest of the plugin index that
// names them. It says to log what it wrote.
func Release(ctx context.Context, root, out string, platforms []string, stamp Stamp, log io.Writer) error {
	if err := prepare(out); err != nil {
		return err
	}
	sums := map[string]string{}
	for _, text := range platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return fmt.Errorf("platform %q: %w; write it as linux/amd64", text, err)
		}
		fmt.Fprintf(log, "compiling for %s\n", platform)
		archive, err := pack(ctx, root, platform, stamp)
		if err != nil {
			return err
		}
		name := platform.OS + "-" + platform.Architecture
		if err := os.WriteFile(filepath.Join(out, archiveName(name)), archive, 0o644); err != nil {
			return err
		}
		sums[name] = fmt.Sprintf("%x", sha256.Sum256(archive))
		fmt.Fprintf(log, "%s  %s\n", sums[name], filepath.Join(out, archiveName(name)))
	}
	if err := os.WriteFile(filepath.Join(out, sumsFile), []byte(list(sums)), 0o644); err != nil {
		return err
	}
	return saveManifest(root, out, stamp.Version, sums, log)
}

func archiveName(platform string) string { return pluginName + "-" + platform + ".tar.gz" }

// prepare removes what an earlier Release wrote, and nothing else: an archive of a
// platform that is not built this time would belong to another version.
func prepare(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	written, err := filepath.Glob(filepath.Join(out, archiveName("*")))
	if err != nil {
		return err
	}
	for _, path := range append(written, filepath.Join(out, sumsFile), filepath.Join(out, manifestFile)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// pack compiles for one platform and returns the archive: the program and the
// licence, dated as the source is, whoever builds it and when.
func pack(ctx context.Context, root string, platform *v1.Platform, stamp Stamp) ([]byte, error) {
	scratch, err := os.MkdirTemp("", "lockstep-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	program := filepath.Join(scratch, pluginName)
	if err := compile(ctx, root, program, platform, stamp); err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive) // its header has no time unless it is given one
	w := tar.NewWriter(zipped)
	for _, file := range []struct {
		name, from string
		mode       int64
	}{
		{pluginName, program, 0o755},
		{"LICENSE", filepath.Join(root, "LICENSE"), 0o644},
	} {
		text, err := os.ReadFile(file.from)
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(text)), Typeflag: tar.TypeReg, ModTime: stamp.Created, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

// list is what sha256sum(1) prints.
func list(sums map[string]string) string {
	var text strings.Builder
	for _, platform := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&text, "%s  %s\n", sums[platform], archiveName(platform))
	}
	return text.String()
}

// saveManifest writes the manifest, unless it names platforms that were left out.
func saveManifest(root, out, version string, sums map[string]string, log io.Writer) error {
	form, err := os.ReadFile(filepath.Join(root, "config", "krew", "lockstep.yaml"))
	if err != nil {
		return err
	}
	manifest, err := fill(string(form), version, sums)
	if errors.Is(err, errNotBuilt) {
		fmt.Fprintf(log, "%s is not written: %v\n", manifestFile, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot fill in the plugin manifest: %w", err)
	}
	path := filepath.Join(out, manifestFile)
	fmt.Fprintln(log, path)
	return os.WriteFile(path, manifest, 0o644)
}

// fill puts version and sums, by platform ("linux-amd64"), into the manifest.
func fill(form, version string, sums map[string]string) ([]byte, error) {
	parsed, err := template.New("manifest").Option("missingkey=error").Funcs(template.FuncMap{
		"sha256": func(platform string) (string, error) {
			if sum := sums[platform]; sum != "" {
				return sum, nil
			}
			return "", fmt.Errorf("it names %s, and %w", platform, errNotBuilt)
		},
	}).Parse(form)
	if err != nil {
		return nil, err
	}
	var filled bytes.Buffer
	err = parsed.Execute(&filled, map[string]string{"Version": version})
	return filled.Bytes(), err
}
