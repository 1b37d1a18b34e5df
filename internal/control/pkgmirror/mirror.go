// Package pkgmirror keeps the packages of layers as an offline archive. It has Debian and Python
// packages in exact versions, in directories that apt and pip can install from. The same layers can
// then be built without other archives.
//
//	DIR/apt/            an archive for apt, signed; its key is apt/key.asc
//	  pool/SUITE/b/bash/bash_5.2.15-2_amd64.deb
//	  dists/SUITE/…     replaced as a whole, atomically
//	DIR/pypi/simple/    a simple index for pip (PEP 503)
//	  six/six-1.16.0-py2.py3-none-any.whl, six/index.html
//	DIR/.incoming       downloads in progress; no other process reads it
package pkgmirror

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Mirror is such a directory.
type Mirror struct {
	Dir      string
	Keys     string // home directory of GnuPG, with the key that signs the archive
	Store    *image.Store
	From     site.Mirror // where packages are fetched from
	Log      io.Writer
	Progress func(string)
}

// Upstream returns where packages come from if not from the mirror itself. It drops the parts of
// [mirror] that refer to its directory.
func Upstream(m site.Mirror, dir string) site.Mirror {
	if isInside(m.Apt, dir) {
		m.Apt, m.Key = "", nil
	}
	if isInside(m.Security, dir) {
		m.Security = ""
	}
	if isInside(m.PyPI, dir) {
		m.PyPI = ""
	}
	return m
}

func isInside(uri, dir string) bool {
	at, ok := access.LocalDir(uri)
	if !ok {
		return false
	}
	within, err := filepath.Rel(dir, at)
	return err == nil && filepath.IsLocal(within)
}

// URLs returns the values for [mirror] that use the directory.
func URLs(dir string) (apt, pypi string) {
	return "file://" + filepath.Join(dir, "apt"), "file://" + filepath.Join(dir, "pypi", "simple")
}

func (m *Mirror) apt() string      { return filepath.Join(m.Dir, "apt") }
func (m *Mirror) simple() string   { return filepath.Join(m.Dir, "pypi", "simple") }
func (m *Mirror) incoming() string { return filepath.Join(m.Dir, ".incoming") }

// lockDir prevents other processes from writing to the directory at the same time. The kernel releases
// the lock when the process ends.
func (m *Mirror) lockDir(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(m.incoming(), 0o755); err != nil {
		return nil, err
	}
	lock, err := host.TryLock(filepath.Join(m.Dir, ".lock"), host.Exclusive)
	if errors.Is(err, host.ErrHeld) {
		return nil, problem.New(problem.Locked, "another orrery process is writing to the mirror").At(m.Dir).
			Try("wait until it is done")
	}
	if err != nil {
		return nil, err
	}
	if err := m.clear(); err != nil {
		lock.Release()
		return nil, err
	}
	return lock.Release, ctx.Err()
}

// clear removes what killed runs left, even if there is nothing to fetch.
func (m *Mirror) clear() error {
	for _, pattern := range []string{filepath.Join(m.Dir, tmpPrefix+"*"), filepath.Join(m.apt(), unpublishedPrefix+"*")} {
		left, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Names of architectures that differ from Go's, in Debian and in Python.
var (
	architectures = map[string]string{"386": "i386", "arm": "armhf", "ppc64le": "ppc64el", "mips64le": "mips64el"}
	machines      = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "arm": "armv7l"}
)

// architecture returns this host's architecture in Debian's terms, and machine in Python's.
func architecture() string { return cmp.Or(architectures[runtime.GOARCH], runtime.GOARCH) }
func machine() string      { return cmp.Or(machines[runtime.GOARCH], runtime.GOARCH) }
