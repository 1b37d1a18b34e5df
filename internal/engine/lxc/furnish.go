package lxc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/record"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
)

// Furnish writes files into the private layer of a node that does not run. Paths are followed inside the node's root only.
func (e *Engine) Furnish(_ context.Context, ref engine.Ref, files ...host.File) error {
	c := e.container(ref)
	r, err := record.Read(c.dir)
	if err != nil {
		return missing(c, err)
	}
	if c.running() {
		return problem.New(problem.Surprise, "node %s runs already", ref.Name).At(c.dir).Try("plan again")
	}
	o := e.overlay(c, r, nil)
	return o.Within(func() error {
		root, err := os.OpenRoot(c.rootfs())
		if err != nil {
			return err
		}
		defer root.Close()
		in := furniture{root, ids(r).First, append([]string{o.Upper}, o.Lower...)}
		for _, f := range files {
			if err := in.put(f); err != nil {
				return fmt.Errorf("file %s of node %s: %w", f.Path, ref.Name, err)
			}
		}
		return nil
	})
}

// furniture is the root of a node, seen from the host.
type furniture struct {
	root  *os.Root
	first int      // the id, on the host, of the node's root
	trees []string // that know the node's accounts
}

func (in furniture) put(f host.File) error {
	name := strings.TrimPrefix(path.Clean(f.Path), "/")
	uid, gid, err := image.Account(in.trees, f.Owner)
	if err != nil {
		return err
	}
	if err := in.directories(path.Dir(name)); err != nil {
		return err
	}
	if err := in.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if f.Link != "" {
		return errors.Join(in.root.Symlink(f.Link, name), in.root.Lchown(name, in.first, in.first))
	}
	file, err := in.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Content)
	// The owner comes before the mode: to change it clears the set-user-ID bit.
	return errors.Join(err, file.Chown(in.first+uid, in.first+gid), file.Chmod(fileMode(f.Mode)), file.Close())
}

// directories makes those that are missing, as the node's root would.
func (in furniture) directories(dir string) error {
	made := ""
	for _, part := range strings.Split(dir, "/") {
		made = filepath.Join(made, part)
		err := in.root.Mkdir(made, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err = errors.Join(err, in.root.Lchown(made, in.first, in.first)); err != nil {
			return err
		}
	}
	return nil
}

// fileMode gives Go's form of a mode as chmod(1) has it.
func fileMode(mode uint32) os.FileMode {
	m := os.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}
