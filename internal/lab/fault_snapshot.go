package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/proc"
)

// snapshotFile is where a snapshot of this cluster is kept.
func (s *site) snapshotFile(name string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		return name, nil
	case name == "" || filepath.Base(name) != name:
		return "", fmt.Errorf("%q is neither a plain name nor an absolute path", name)
	}
	return filepath.Join(s.snapshots(), name+".db"), nil
}

// takeSnapshot copies etcd's content while it runs. The file appears when it
// is complete.
func (h *Host) takeSnapshot(ctx context.Context, name string) error {
	file, err := h.site.snapshotFile(name)
	if err != nil {
		return err
	}
	return h.site.withEtcd(ctx, func(client *clientv3.Client) error {
		content, err := client.Snapshot(ctx)
		if err != nil {
			return err
		}
		defer content.Close()
		unfinished := file + ".part"
		if err := copyTo(unfinished, content); err != nil {
			return errors.Join(err, os.Remove(unfinished))
		}
		return os.Rename(unfinished, file)
	})
}

func copyTo(path string, content io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// restore replaces etcd's content, with everything of the cluster stopped as the
// procedure for real clusters demands, and returns when the cluster is ready.
// When the snapshot is no good, the cluster goes on with what it had.
//
// The node agent is stopped too, and with it the processes of Pods: a watch
// that continues from a revision which no longer exists is silent, and a
// kubelet is restarted after a restore for the same reason.
func (h *Host) restore(ctx context.Context, name string, bump uint64) error {
	prepared := h.site.etcdData() + ".restored"
	if err := os.RemoveAll(prepared); err != nil {
		return err
	}
	if name != "" {
		if err := h.prepareRestore(ctx, name, bump, prepared); err != nil {
			return errors.Join(err, os.RemoveAll(prepared))
		}
	}
	err := h.stopAll(ctx)
	if err == nil {
		err = replaceDir(h.site.etcdData(), prepared, name != "")
	}
	for _, name := range componentNames {
		h.units[name].start()
	}
	h.agent.start()
	return errors.Join(err, h.WaitReady(ctx))
}

// prepareRestore turns a snapshot into a data directory beside the present one.
func (h *Host) prepareRestore(ctx context.Context, name string, bump uint64, dir string) error {
	file, err := h.site.snapshotFile(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	peer := h.site.url(h.site.Ports.EtcdPeer)
	args := append([]string{"snapshot", "restore", file}, flags(
		"data-dir="+dir,
		"name="+etcdMember,
		"initial-cluster="+etcdMember+"="+peer,
		"initial-advertise-peer-urls="+peer,
	)...)
	if bump > 0 {
		args = append(args, flags("bump-revision="+strconv.FormatUint(bump, 10), "mark-compacted")...)
	}
	p, err := proc.Start(h.site.command(component{Name: "etcdutl", Path: h.site.lab.Binaries.Etcdutl, Args: args}))
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Kill())
	}
	if exit := p.Exit(); exit.Code() != 0 {
		return exit
	}
	return nil
}

// stopAll stops the node agent and the components, each before the one it needs.
func (h *Host) stopAll(ctx context.Context) error {
	if err := h.agent.stop(ctx); err != nil {
		return err
	}
	for _, name := range slices.Backward(componentNames) {
		if err := h.units[name].stop(ctx); err != nil {
			return err
		}
	}
	return nil
}

// replaceDir removes a directory and, if there is a new one, puts it there.
func replaceDir(dir, prepared string, replace bool) error {
	if err := os.RemoveAll(dir); err != nil || !replace {
		return err
	}
	return os.Rename(prepared, dir)
}
