// Package kernel creates the files that a virtual machine boots from.
//
// They are an uncompressed kernel, which QEMU starts at once, and an initramfs with orrery-guest
// and the modules that it needs to mount the root. Both are created once, stored beside the tree of
// the layer, and removed with it.
package kernel

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// A Boot describes what a machine boots from.
type Boot struct {
	// path of the kernel: an ELF file for the PVH protocol or, on other processors, the packaged
	// file
	Kernel    string
	Initramfs string   // path
	Release   string   // of the kernel, as in uname -r
	Modules   []string // drivers and file systems in the initramfs, without those built into the kernel
}

// Has reports whether the initramfs has a module.
func (b *Boot) Has(module string) bool { return slices.Contains(b.Modules, module) }

// Files returns what a machine boots from, for a node with the given kernel layer
// (spec.Node.Kernel). Guest is the path of the program orrery-guest.
func Files(ctx context.Context, store *image.Store, layer, guest string) (*Boot, error) {
	dir := filepath.Dir(store.Tree(layer))
	b, err := files(ctx, store.Tree(layer), dir, guest)
	if err == nil || ctx.Err() != nil {
		return b, err
	}
	var p *problem.Problem
	if errors.As(err, &p) {
		return nil, err
	}
	return nil, problem.New(problem.Failed, "boot files could not be created from layer %s", layer).At(dir).
		Because(err).
		Try("orrery image verify %s", layer)
}

func files(ctx context.Context, top, dir, guest string) (*Boot, error) {
	in, err := tree.Open(top)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := findKernel(in)
	if err != nil {
		return nil, err
	}
	program, err := tree.ReadFile(guest, maxGuestBytes)
	if err != nil {
		return nil, problem.New(problem.Unable, "the guest program of virtual machines cannot be read").At(guest).
			Because(err).Try("make bin/orrery-guest")
	}
	b := &Boot{
		Kernel:    filepath.Join(dir, "vmlinux"),
		Initramfs: filepath.Join(dir, initramfsPrefix+spec.DigestBytes(append(program, layout...))), Release: s.release,
	}
	for _, m := range s.initramfsModules() {
		b.Modules = append(b.Modules, m.Name)
	}
	if tree.Exists(b.Kernel) && tree.Exists(b.Initramfs) {
		// write nothing: the store may be read-only, as in a rehearsal
		return b, nil
	}
	// machines that start at the same time create the files only once
	lock, err := host.WaitLock(ctx, filepath.Join(dir, "boot.lock"), host.Exclusive,
		"the lock of the kernel of virtual machines")
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if err := writeOnce(b.Kernel, func() ([]byte, error) { return s.kernel(ctx) }); err != nil {
		return nil, err
	}
	if err := writeOnce(b.Initramfs, func() ([]byte, error) { return s.initramfs(ctx, program) }); err != nil {
		return nil, err
	}
	return b, removeOldInitramfs(dir, b.Initramfs)
}

// Limits of what is read. Kernels, modules and programs are smaller than this.
const (
	maxKernelBytes = 512 << 20
	maxGuestBytes  = 64 << 20
	maxModuleBytes = 64 << 20
	maxListBytes   = 16 << 20
)

// layout is part of the name of each initramfs. A new layout makes all of them be created again.
const layout = "3"

const initramfsPrefix = "initramfs-"

// writeOnce creates a file unless it exists.
func writeOnce(path string, content func() ([]byte, error)) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := content()
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, text, 0o644)
}

// removeOldInitramfs removes initramfs files of other versions of orrery-guest. It keeps recent ones, because
// another version may be running and have just created its own.
func removeOldInitramfs(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !strings.HasPrefix(e.Name(), initramfsPrefix) || path == keep {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < 24*time.Hour {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
