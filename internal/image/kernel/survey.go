package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"orrery/internal/guest/boot"
	"orrery/internal/tree"
)

// drivers and filesystems are what a guest may need before its root is mounted, and what nothing in
// the guest loads later, because there is no udev(7). Modules that a kernel has built in or does
// not have are left out.
var (
	drivers = []string{
		"virtio_pci", "virtio_console", "virtio_rng", "virtio_net", "virtio_blk", "virtio_scsi", "virtio_balloon",
		"9pnet_virtio", "e1000", "e1000e", "8139cp",
		"9pnet_xen", "xen_netfront", "xen_blkfront", boot.Checksums,
		// these tell the host that the guest's kernel has panicked; up to Linux 5.12 there is only
		// the first
		"pvpanic", "pvpanic_mmio",
	}
	filesystems = []string{"virtiofs", "9p", "overlay", "erofs", "ext4"}
)

// A kernelTree is a kernel in the tree of its layer.
type kernelTree struct {
	in      *tree.Root
	dir     string // directory of its modules, usr/lib/modules/RELEASE
	release string
	needs   map[string][]string // by the path of a module: the modules to load before it, in order
	aliases map[string][]string // by the name of a module
}

// findKernel finds the kernel of a layer and reads what depmod(8) has written about its modules.
func findKernel(in *tree.Root) (*kernelTree, error) {
	s := &kernelTree{in: in}
	for _, dir := range []string{"usr/lib/modules", "lib/modules"} {
		releases, err := in.Names(dir, 1<<10)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(releases) > 1 {
			return nil, fmt.Errorf("it has several kernels: %s", strings.Join(releases, ", "))
		}
		if len(releases) == 1 {
			s.dir, s.release = path.Join(dir, releases[0]), releases[0]
			break
		}
	}
	if s.release == "" {
		return nil, errors.New("it has no kernel")
	}
	list, err := in.ReadFile(path.Join(s.dir, "modules.dep"), maxListBytes)
	if err != nil {
		return nil, err
	}
	s.needs = parseModulesDep(string(list))
	if list, err = in.ReadFile(path.Join(s.dir, "modules.alias"), maxListBytes); err != nil {
		return nil, err
	}
	s.aliases = parseModulesAlias(string(list))
	return s, nil
}

// parseModulesDep parses modules.dep. It has a line for each module with all its dependencies, the first
// to load at the end.
func parseModulesDep(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		if file, needs, ok := strings.Cut(line, ":"); ok {
			first := strings.Fields(needs)
			slices.Reverse(first)
			all[strings.TrimSpace(file)] = first
		}
	}
	return all
}

// parseModulesAlias parses from modules.alias which devices and file systems the modules support.
func parseModulesAlias(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "alias" {
			continue
		}
		if kind, _, _ := strings.Cut(words[1], ":"); kind == "pci" || kind == "virtio" || kind == "xen" ||
			kind == "acpi*" || strings.HasPrefix(kind, "fs-") {
			all[words[2]] = append(all[words[2]], words[1])
		}
	}
	return all
}

// nameOf returns the name of the module in a file.
func nameOf(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// initramfsModules returns the modules for the initramfs, each after those that it needs. File is their path
// in the tree of modules.
func (s *kernelTree) initramfsModules() []boot.Module {
	byName := map[string]string{}
	for file := range s.needs {
		byName[nameOf(file)] = file
	}
	var all []boot.Module
	seen := map[string]bool{}
	add := func(file string) {
		if seen[file] {
			return
		}
		seen[file] = true
		m := boot.Module{Name: nameOf(file), File: file}
		m.Aliases = s.aliases[m.Name]
		for _, need := range s.needs[file] {
			m.Needs = append(m.Needs, nameOf(need))
		}
		all = append(all, m)
	}
	for _, name := range slices.Concat(drivers, filesystems) {
		file, ok := byName[name]
		if !ok {
			continue // built in, or missing in this kernel
		}
		for _, need := range s.needs[file] {
			add(need)
		}
		add(file)
	}
	return all
}

// module returns the uncompressed content of a module.
func (s *kernelTree) module(ctx context.Context, file string) ([]byte, error) {
	text, err := s.in.ReadFile(path.Join(s.dir, file), maxModuleBytes)
	if err != nil || bytes.HasPrefix(text, []byte("\x7fELF")) {
		return text, err
	}
	text, err = decompress(ctx, text, maxModuleBytes)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", file, err)
	}
	return text, nil
}

// kernel returns the kernel.
func (s *kernelTree) kernel(ctx context.Context) ([]byte, error) {
	for _, name := range []string{"boot/vmlinuz-" + s.release, path.Join(s.dir, "vmlinuz")} {
		text, err := s.in.ReadFile(name, maxKernelBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return uncompressed(ctx, text)
	}
	return nil, fmt.Errorf("it has modules for kernel %s, but not that kernel", s.release)
}
