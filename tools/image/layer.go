package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layerOf is the whole file system of the image: the program, and a name for the
// user it runs as. There is no shell and no certificate store: the controllers
// trust the CA in the Secret of their leader, and their own API server's.
func layerOf(program string, modified time.Time) (v1.Layer, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, file := range []struct {
		name string
		mode int64
		text []byte
	}{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte("nonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{imageName, 0o755, text},
	} {
		header := &tar.Header{
			Name: file.name, Mode: file.mode, Size: int64(len(file.text)),
			Typeflag: tar.TypeReg, ModTime: modified, Format: tar.FormatUSTAR,
		}
		if file.text == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(file.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	// Compressed once; the header of gzip gets no time from this library.
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
