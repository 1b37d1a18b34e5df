package image

import (
	"os"
	"slices"
	"strings"

	"orrery/internal/site/distro"
	"orrery/internal/tree"
)

// fittings are put into every base image, besides those of its distribution. Changing any of them
// needs a new version: constant fit in package spec.
var fittings = []distro.File{
	// Each node gets its own of these. An empty machine-id, unlike a missing one, does not make the
	// boot a first boot.
	{Path: "/etc/machine-id"},
	{Path: "/etc/resolv.conf"},
	{Path: "/etc/hostname"},
	// Names of all nodes, in a directory that the host shares with them: they change without anything
	// being done on the nodes.
	{Path: "/etc/hosts", Text: "orrery/hosts", Link: true},
	// Text is UTF-8 everywhere, without the locales package.
	{Path: "/etc/default/locale", Text: "LANG=C.UTF-8\n"},
	{Path: "/etc/locale.conf", Text: "LANG=C.UTF-8\n"},
}

// fit makes a tree fit for being a node; it must be a whole system of its distribution.
func fit(d *distro.Distribution, dir string) error {
	in, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := lay(in, slices.Concat(fittings, d.Packages.Fittings, d.Services.Fittings)...); err != nil {
		return err
	}
	if err := in.MkdirAll("etc/orrery", os.Geteuid(), os.Getegid()); err != nil {
		// where the host puts what it tells its nodes
		return err
	}
	if err := fitSSH(d, in); err != nil {
		return err
	}
	// How the image was made is not how the node is to fetch packages, nor how it is to start services.
	for _, name := range slices.Concat(d.Packages.FromMaking,
		[]string{d.Packages.Guard.Path, "var/lib/dbus/machine-id", ".dockerenv"}) {
		if err := in.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// fitSSH has the node's own key, which it gets from the host, and none else: making keys takes
// longer than the whole boot.
func fitSSH(d *distro.Distribution, in *tree.Root) error {
	names, err := in.Names("etc/ssh", maxNames)
	if err != nil && !absent(err) {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "ssh_host_") {
			if err := in.RemoveAll("etc/ssh/" + name); err != nil {
				return err
			}
		}
	}
	if _, err := in.Lstat("usr/sbin/sshd"); err != nil {
		return nil // an imported image without it: the engine reaches the node all the same
	}
	own := distro.File{Path: "/etc/ssh/sshd_config.d/orrery.conf",
		Text: "HostKey /etc/ssh/ssh_host_ed25519_key\nUseDNS no\n"}
	return lay(in, own, d.Services.StartsWith(d.SSH))
}

// lay makes files of a tree, whatever was there before. They belong to its root, which on disk is
// that of the host.
func lay(in *tree.Root, files ...distro.File) error {
	uid, gid := os.Geteuid(), os.Getegid()
	for _, f := range files {
		made := tree.File{Path: f.Path, Content: []byte(f.Text), Uid: uid, Gid: gid, Mode: 0o644}
		if f.Link {
			made.Link = f.Text
		}
		if err := in.RemoveAll(f.Path); err != nil {
			return err
		}
		if err := in.Put(made, uid, gid); err != nil {
			return err
		}
	}
	return nil
}
