package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/distro"

	"golang.org/x/sys/unix"
)

// fittings are put into every base image, besides those of its distribution. Changing any of them needs a new version: constant fit in
// package spec.
var fittings = []distro.File{
	// Each node gets its own of these. An empty machine-id, unlike a missing one, does not make the boot a first boot.
	{Path: "/etc/machine-id"},
	{Path: "/etc/resolv.conf"},
	{Path: "/etc/hostname"},
	// Names of all nodes, in a directory that the host shares with them: they change without anything being done on the nodes.
	{Path: "/etc/hosts", Text: "orrery/hosts", Link: true},
	// Text is UTF-8 everywhere, without the locales package.
	{Path: "/etc/default/locale", Text: "LANG=C.UTF-8\n"},
	{Path: "/etc/locale.conf", Text: "LANG=C.UTF-8\n"},
}

// fit makes a tree fit for being a node; it must be a whole system of its distribution.
func fit(d *distro.Distribution, tree string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range slices.Concat(fittings, d.Packages.Fittings, d.Services.Fittings) {
		if err := install(f, root, tree); err != nil {
			return err
		}
	}
	if err := root.MkdirAll("etc/orrery", 0o755); err != nil { // where the host puts what it tells its nodes
		return err
	}
	if err := fitSSH(d, root, tree); err != nil {
		return err
	}
	// How the image was made is not how the node is to fetch packages, nor how it is to start services.
	return clear(root, append(d.Packages.FromMaking, d.Packages.Guard.Path[1:], "var/lib/dbus/machine-id", ".dockerenv")...)
}

// fitSSH has the node's own key, which it gets from the host, and none else: making keys takes longer than the whole boot.
func fitSSH(d *distro.Distribution, root *os.Root, tree string) error {
	keys, err := filepath.Glob(filepath.Join(tree, "etc/ssh/ssh_host_*"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := clear(root, "etc/ssh/"+filepath.Base(key)); err != nil {
			return err
		}
	}
	if _, err := root.Stat("usr/sbin/sshd"); err != nil {
		return nil // an imported image without it: the engine reaches the node all the same
	}
	if err := put(tree, "/etc/ssh/sshd_config.d/orrery.conf", "HostKey /etc/ssh/ssh_host_ed25519_key\nUseDNS no\n"); err != nil {
		return err
	}
	return install(d.Services.StartsWith(d.SSH), root, tree)
}

func install(f distro.File, root *os.Root, tree string) error {
	if !f.Link {
		return put(tree, f.Path, f.Text)
	}
	name := strings.TrimPrefix(f.Path, "/")
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := clear(root, name); err != nil {
		return err
	}
	return root.Symlink(f.Text, name)
}

// clear removes files of a tree, if they are there.
func clear(root *os.Root, names ...string) error {
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}
