// Package sshconfig installs the ssh configuration of a site for a user: a file of its own, which one
// line of ~/.ssh/config includes, and the public host keys of the nodes.
//
// It is a package of its own because it is an operation, as each of the packages beside it is.
package sshconfig

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
)

// Places below the home directory.
const (
	sshDir = ".ssh"
	config = ".ssh/config"
	dir    = ".ssh/orrery.d" // a file for each site
)

// include is the line that includes the files of all sites. ssh reads the path as one below ~/.ssh.
const include = "Include orrery.d/*.conf"

// An Installed says what was installed or removed.
type Installed struct {
	File   string `json:"file"`
	Config string `json:"config"` // the file that includes it
	// Keys reports whether the nodes' host keys are known, without which ssh connects to none.
	Keys bool `json:"keys"`
}

// Install writes the configuration of a site and includes it, if it is not included yet. The nodes'
// host keys are those in the file knownHosts, which only root may read.
func Install(s *site.Site, knownHosts string) (*Installed, error) {
	if s.Twin != "" {
		return nil, problem.New(problem.Usage, "the configuration of a twin cannot be installed: its nodes have the addresses of the site").
			Try("orrery --twin %s ssh-config > FILE, and ssh -F FILE", s.Twin)
	}
	keys, err := os.ReadFile(knownHosts)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, problem.New(problem.Unable, "only root can read the host keys of the nodes").
			Try("sudo orrery ssh-config --install; it installs them for you, not for root")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	h, err := openHome()
	if err != nil {
		return nil, err
	}
	defer h.close()
	for _, name := range []string{sshDir, dir} {
		if err := h.makeDir(name); err != nil {
			return nil, err
		}
	}
	known := path.Join(dir, s.Name+".known_hosts")
	if err := h.write(known, keys, 0o600); err != nil {
		return nil, err
	}
	file := path.Join(dir, s.Name+".conf")
	if err := h.write(file, inventory.FullSSHConfig(s, h.path(known)), 0o600); err != nil {
		return nil, err
	}
	at, err := h.editConfig(func(old []byte) []byte {
		if slices.ContainsFunc(slices.Collect(bytes.Lines(old)), isInclude) {
			return old
		}
		// The first line, because after the first Host it would hold for that host only.
		return append([]byte(include+"\n"), old...)
	})
	if err != nil {
		return nil, err
	}
	return &Installed{File: h.path(file), Config: h.path(at), Keys: len(keys) > 0}, nil
}

// Uninstall removes what Install has written for a site. If no other site is left, it also removes
// the line that includes them.
func Uninstall(name string) (*Installed, error) {
	h, err := openHome()
	if err != nil {
		return nil, err
	}
	defer h.close()
	file := path.Join(dir, name+".conf")
	done := &Installed{File: h.path(file), Config: h.path(config)}
	for _, gone := range []string{file, path.Join(dir, name+".known_hosts")} {
		if err := h.remove(gone); err != nil {
			return nil, err
		}
	}
	left, err := fs.Glob(h.root.FS(), dir+"/*.conf")
	if err != nil || len(left) > 0 {
		return done, err
	}
	if _, err = h.editConfig(func(old []byte) []byte {
		return bytes.Join(slices.DeleteFunc(slices.Collect(bytes.Lines(old)), isInclude), nil)
	}); err != nil {
		return nil, err
	}
	_ = h.root.Remove(dir) // unless the user keeps something else there
	return done, nil
}

func isInclude(line []byte) bool { return strings.TrimSpace(string(line)) == include }

// editConfig changes the user's own configuration, if the edit makes a difference. It returns the
// file, which may be the one that a link leads to.
func (h *home) editConfig(edit func(old []byte) []byte) (string, error) {
	at, err := h.resolve(config)
	if err != nil {
		return "", err
	}
	old, mode, err := h.read(at)
	if err != nil {
		return "", err
	}
	if fresh := edit(slices.Clone(old)); !bytes.Equal(fresh, old) {
		err = h.write(at, fresh, mode)
	}
	return at, err
}
