package xen

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host/xl"
	"orrery/internal/image/rootfs"
	"orrery/internal/site"
)

// An environment is what a domain needs: the node's root in a mount namespace of its own, and files
// that the toolstack reads and runs. They stay while the domain runs, because the toolstack makes a
// new domain from them when the guest reboots.
type environment struct {
	domain
	overlay *rootfs.Overlay
	backend confine.Backend
	short   []int  // indexes of the node's disks that must grow
	record  string // path of the node's directory
	orrery  string // path of this program
}

func (f *environment) file(name string) string { return filepath.Join(f.run, name) }

// prepare prepares the foundation of a node's domain.
func prepare(ctx context.Context, nodes *nodedir.Nodes, m machine, r *nodedir.Record) (*environment, error) {
	if r.Imported() {
		return prepareImported(nodes, m, r)
	}
	return prepareLayered(ctx, nodes, m, r)
}

// prepareLayered prepares the foundation of a domain with a layered root.
func prepareLayered(ctx context.Context, nodes *nodedir.Nodes, m machine, r *nodedir.Record) (*environment, error) {
	from, err := vm.BootFiles(ctx, nodes, r)
	if err != nil {
		return nil, err
	}
	mounts, err := nodes.Mounts(r)
	if err != nil {
		return nil, err
	}
	f, err := newEnvironment(m, r, m.Overlay(nodes.Store, r))
	if err != nil {
		return nil, err
	}
	f.kernel, f.initramfs, f.shares = from.Kernel, from.Initramfs, []share{{"root", f.overlay.Target, "/"}}
	if r.Xen.Kind() == site.HVM { // QEMU boots the packaged kernel as a machine would
		f.kernel = filepath.Join(nodes.Store.Tree(r.Kernel), "boot", "vmlinuz-"+from.Release)
	}
	f.backend.Sees = append(f.backend.Sees, f.kernel, f.initramfs)
	for i, mount := range mounts {
		f.overlay.Binds = append(f.overlay.Binds, mount.Outside())
		f.shares = append(f.shares, share{"mount" + strconv.Itoa(i), mount.Bind, mount.Path})
		f.backend.Shares = append(f.backend.Shares, mount.Bind)
	}
	cover, err := m.diskDirCover(f.overlay.Target)
	if err != nil {
		return nil, err
	}
	f.overlay.Inside = append(f.overlay.Inside, cover)
	if err := f.addDisks(m, r); err != nil {
		return nil, err
	}
	return f, writeDiskNames(nodes.Dirs, m, r)
}

// newEnvironment returns what all domains need: a mount namespace of the node's own, and a QEMU that
// is confined to it.
func newEnvironment(m machine, r *nodedir.Record, on *rootfs.Overlay) (*environment, error) {
	model, err := xl.DeviceModel()
	if err != nil {
		return nil, err
	}
	orrery, err := os.Executable()
	if err != nil {
		return nil, err
	}
	on.Namespace = m.File("ids")
	f := &environment{overlay: on, orrery: orrery, record: m.Path(),
		domain: domain{name: m.domain(), run: m.Run, model: filepath.Join(m.Run, "model")}}
	f.backend = confine.Backend{
		Sandbox: confine.Sandbox{
			At: m.File("cell"), User: r.IDs().First, Sees: append(confine.QEMUPaths(model), "/usr/lib/xen"),
			Devices: []string{"xen/privcmd", "xen/evtchn", "xen/gntdev", "xen/xenbus"},
		},
		Program: model, Space: on.Namespace, Shares: []string{on.Target},
	}
	return f, nil
}

// write writes the files. Only root can read or run them.
func (f *environment) write(r *nodedir.Record) error {
	config, err := f.config(&r.Node)
	if err != nil {
		return err
	}
	backend, err := json.MarshalIndent(f.backend, "", "  ")
	if err != nil {
		return err
	}
	for _, dir := range []string{f.run, f.backend.At} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{"domain.cfg": config, "backend.json": string(backend), "model": f.modelScript()}
	for i := range r.NICs {
		files[filepath.Base(f.linkScriptPath(i))] = f.linkScript(i)
	}
	for name, text := range files {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(f.file(name), []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

// modelScript returns the script that the toolstack runs in place of QEMU.
func (f *environment) modelScript() string {
	return fmt.Sprintf("#!/bin/sh\nexec %s %s %s \"$@\"\n", shellQuote(f.orrery), ModelVerb,
		shellQuote(f.file("backend.json")))
}

// linkScript returns the script that the toolstack runs when a card appears, in place of its own
// scripts for bridges. The toolstack passes the name of the link in $vif, and waits for the status
// in xenstore.
func (f *environment) linkScript(i int) string {
	return fmt.Sprintf("#!/bin/sh -e\n[ \"$1\" = online ] || exit 0\n%s %s %s %d \"$vif\"\nexec xenstore-write \"$XENBUS_PATH/hotplug-status\" connected\n",
		shellQuote(f.orrery), LinkVerb, shellQuote(f.record), i)
}

// The verbs with which the toolstack runs this program for a domain.
const (
	ModelVerb = "xen-model"
	LinkVerb  = "xen-link"
)

func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
