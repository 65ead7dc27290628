package mc

import (
	"fmt"
	"io"
	"os"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
)

// joinFlags are the flags of join: options, and the files that complete them.
type joinFlags struct {
	JoinOptions
	configFile string
	tokenFile  string
	stdin      io.Reader
	// warn hears what of a file was ignored; nil hears nothing.
	warn Progress
}

// options reads the files. A value in the join config wins over its flag, so
// that a file handed out by the leader's administrator means the same to all.
func (f joinFlags) options() (JoinOptions, error) {
	var file joinfile.File
	if f.configFile != "" {
		data, err := f.read(f.configFile)
		if err == nil {
			file, err = joinfile.Parse(data)
		}
		if err != nil {
			return JoinOptions{}, unreadable("join config", f.configFile, err)
		}
		for _, sentence := range file.Ignored {
			f.warn.sayf("warning: ignored in join config %q: %s", f.configFile, sentence)
		}
	}
	f.override(file.Config)
	err := f.takeToken(file)
	return f.JoinOptions, err
}

func (f *joinFlags) override(config joinfile.Config) {
	for _, pair := range []struct {
		flag *string
		file string
	}{
		{&f.ClusterSet, config.ClusterSetID},
		{&f.ClusterID, config.ClusterID},
		{&f.Namespace, config.Namespace},
		{&f.LeaderClusterID, config.LeaderClusterID},
		{&f.LeaderNamespace, config.LeaderNamespace},
		{&f.LeaderAPIServer, config.LeaderAPIServer},
		{&f.TokenSecretName, config.TokenSecretName},
		{&f.tokenFile, config.TokenSecretFile},
	} {
		if pair.file != "" {
			*pair.flag = pair.file
		}
	}
}

// takeToken finds the source of the token: a name, then a file of its own, then
// the manifest beside the join config.
func (f *joinFlags) takeToken(file joinfile.File) error {
	switch {
	case f.TokenSecretName != "":
		return nil
	case f.tokenFile == "":
		f.Token = file.Token
		return nil
	}
	data, err := f.read(f.tokenFile)
	if err == nil {
		f.Token, err = joinfile.ParseToken(data)
	}
	if err != nil {
		return unreadable("token manifest", f.tokenFile, err)
	}
	return nil
}

func (f joinFlags) read(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(f.stdin)
	}
	return os.ReadFile(path)
}

func unreadable(what, path string, err error) error {
	return &exit.Error{Code: exit.Usage, Cause: fmt.Errorf("cannot use %s %q: %w", what, path, err)}
}
