package filling

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/twins"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/twin"
	"orrery/internal/volume"
)

// An Original is a site on this machine that has a twin.
type Original struct {
	Dirs  host.Dirs
	Key   string
	Still func(path string) volume.FreezeFunc // freezes all nodes that write to a directory
}

// Fill fills the volumes of a twin once. The record of the twin says whether they are filled. A run
// that was killed leaves copies that are complete, or none.
func (o Original) Fill(ctx context.Context, name string, of []apply.VolumeCopy) (left []string, err error) {
	if err := twin.ValidName(name); err != nil {
		return nil, err
	}
	key := o.Key + "." + name
	r, err := twins.Read(o.Dirs, key)
	if err != nil || r.Filled {
		return nil, err
	}
	if r.Key() != key || r.Volumes != site.CopySnapshot {
		return nil, fmt.Errorf("the record of twin %s declares no copies of volumes", key)
	}
	for _, s := range of {
		made, err := o.copyVolume(ctx, key, s)
		for _, what := range made.Skipped {
			left = append(left, fmt.Sprintf("volume %s of %s: %s", s.To.Volume, s.Node, what))
		}
		if err != nil {
			return left, err
		}
	}
	if err := o.copySecrets(key); err != nil { // data may be of use only with the secrets that were generated for it
		return left, err
	}
	r.Filled = true
	return left, twins.Write(o.Dirs, r)
}

// copyVolume copies a volume. Its writers are frozen during the copy.
func (o Original) copyVolume(ctx context.Context, key string, s apply.VolumeCopy) (volume.CopyResult, error) {
	from, to := volume.Path(o.Dirs, o.Key, s.Node, s.From), volume.Path(o.Dirs, key, s.Node, s.To)
	if _, err := os.Stat(from); err != nil { // no node has written to it
		return volume.CopyResult{}, nil //nolint:nilerr // it begins empty
	}
	if _, err := os.Stat(to); err == nil {
		return volume.CopyResult{}, nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return volume.CopyResult{}, err
	}
	return volume.CloneLive(ctx, from, to, o.Still(from))
}

// copySecrets copies the secrets that were generated for the original to the twin.
func (o Original) copySecrets(key string) error {
	entries, err := os.ReadDir(o.Dirs.Secrets(o.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		// the twin has a certificate authority of its own
		if stored, err := (secret.Store{Dir: o.Dirs.Secrets(o.Key)}).Read(e.Name()); err == nil && stored.IsCertificate() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(o.Dirs.Secrets(o.Key), e.Name()))
		if err != nil {
			return err
		}
		if err := host.WriteFile(host.File{Path: filepath.Join(o.Dirs.Secrets(key), e.Name()), Content: text,
			Mode: 0o600}); err != nil {
			return fmt.Errorf("secret %s: %w", e.Name(), err)
		}
	}
	return nil
}
