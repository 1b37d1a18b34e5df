package image

import (
	"os"
	"slices"
	"strings"

	"orrery/internal/site/distro"
	"orrery/internal/tree"
)

// baseFiles are the files of every base image, in addition to those of its distribution. A change to
// any of them requires a new version: the constant fit in package spec.
var baseFiles = []distro.File{
	// Each node gets its own version of these. With an empty machine-id, unlike a missing one,
	// systemd does not treat the boot as a first boot.
	{Path: "/etc/machine-id"},
	{Path: "/etc/resolv.conf"},
	{Path: "/etc/hostname"},
	// The names of all nodes are in a directory that the host shares with the nodes. So the host
	// can change them without doing anything on the nodes.
	{Path: "/etc/hosts", Text: "orrery/hosts", Link: true},
	// Text is in UTF-8 everywhere, without the package locales.
	{Path: "/etc/default/locale", Text: "LANG=C.UTF-8\n"},
	{Path: "/etc/locale.conf", Text: "LANG=C.UTF-8\n"},
}

// adaptTree adapts a tree to be a node's. The tree must be a whole system of its distribution.
func adaptTree(d *distro.Distribution, dir string) error {
	in, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := writeFiles(in, slices.Concat(baseFiles, d.Packages.Fittings, d.Services.Fittings)...); err != nil {
		return err
	}
	if err := in.MkdirAll("etc/orrery", os.Geteuid(), os.Getegid()); err != nil {
		// the directory that the host shares with its nodes
		return err
	}
	if err := adaptSSH(d, in); err != nil {
		return err
	}
	// Remove settings for building the image: nodes fetch packages and start services differently.
	for _, name := range slices.Concat(d.Packages.FromMaking,
		[]string{d.Packages.Guard.Path, "var/lib/dbus/machine-id", ".dockerenv"}) {
		if err := in.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// adaptSSH configures the SSH server to use only the node's own key, which comes from the host.
// Generating keys takes longer than the whole boot.
func adaptSSH(d *distro.Distribution, in *tree.Root) error {
	names, err := in.Names("etc/ssh", maxNames)
	if err != nil && !isMissing(err) {
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
		return nil // an imported image without sshd: the engine can reach the node without it
	}
	own := distro.File{Path: "/etc/ssh/sshd_config.d/orrery.conf",
		Text: "HostKey /etc/ssh/ssh_host_ed25519_key\nUseDNS no\n"}
	return writeFiles(in, own, d.Services.StartsWith(d.SSH))
}

// writeFiles replaces files of a tree. They belong to the root user of the tree, which on disk is the
// host's.
func writeFiles(in *tree.Root, files ...distro.File) error {
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
