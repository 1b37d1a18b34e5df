// Package backends provides what the nodes of a host need in addition to their engine.
//
// This is networks, layers, volumes, kernel settings and records. Each is an interface, so that
// tests can replace this machine.
package backends

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/hostsfile"
	"orrery/internal/host/schedule"
	"orrery/internal/image"
	"orrery/internal/network"
	"orrery/internal/network/wireguard"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/site/traffic"
	"orrery/internal/treesync/chunks"
	"orrery/internal/volume"
)

// A Set has one backend of each kind.
type Set struct {
	Networks Networks
	Traffic  Traffic
	Layers   Layers
	Packages Packages
	Volumes  Volumes
	Kernel   Kernel
	Records  Records
	Claims   Claims
	Timers   Timers
	Hosts    hostsfile.File
}

// Local returns the backends of this machine.
func Local(dirs host.Dirs) Set {
	store := image.Open(dirs.State)
	return Set{
		Networks: bridges{}, Traffic: shapes{}, Layers: store, Packages: store.Cache, Volumes: disks{dirs},
		Kernel:  sysctls{dirs},
		Records: records{dirs}, Claims: dirs, Timers: timers{},
		Hosts: hostsfile.Local(dirs),
	}
}

// Timers run command lines of this program repeatedly (package schedule).
type Timers interface {
	Set(t schedule.Timers) (notes []string, err error)
}

type timers struct{}

func (timers) Set(t schedule.Timers) ([]string, error) { return t.Apply() }

// Networks creates networks, and moves the links of nodes from one to another (package network).
type Networks interface {
	Observe(key string) ([]observe.Network, error)
	Make(ctx context.Context, n spec.Network, nodes func() ([]network.Port, error)) error
	Remove(ctx context.Context, n spec.Network) error
	MoveLinks(ctx context.Context, moves []network.Move, live ...string) error
	AddAntiSpoof(ctx context.Context, ports []network.Port) error
	RemoveAntiSpoof(ctx context.Context, site string, still []network.Port) error
	Sweep(ctx context.Context) error
	Around(key string) ([]observe.Address, observe.HostNetworking, error)
	// Encrypts returns an Unable problem if the kernel cannot encrypt. Prime must be called before
	// Make. It gives the host's private key to the kernel for an encrypted network.
	Encrypts() error
	Prime(n spec.Network, private string) error
}

// Traffic limits what passes through the ports of nodes (package network).
type Traffic interface {
	// Lacks returns why the kernel cannot do what limits need, or the zero Missing.
	Lacks(l traffic.Limits) observe.Missing
	// Observe sets the limits that are in force for running nodes.
	Observe(nodes []observe.Node) error
	// Set changes the limits of a node that runs.
	Set(n *spec.Node) error
	// Sweep removes what nodes left that have ended on their own.
	Sweep() error
}

type shapes struct{}

func (shapes) Lacks(l traffic.Limits) observe.Missing { return network.LacksForTraffic(l) }
func (shapes) Observe(nodes []observe.Node) error     { return network.ObserveTraffic(nodes) }
func (shapes) Set(n *spec.Node) error                 { return network.SetTraffic(n) }
func (shapes) Sweep() error                           { return network.SweepTraffic() }

// Layers builds and stores layers. An image.Store implements it.
type Layers interface {
	Layers() (map[string]bool, error)
	BuildBase(ctx context.Context, l *spec.Layer, m site.Mirror, say func(string)) error
	BuildLayer(ctx context.Context, l *spec.Layer, m site.Mirror, fill func(ctx context.Context, in host.Runner) error,
		say func(string)) error
	OpenLog(digest string) (*host.Log, error)
	Record(digest string) (*image.Record, error)
	Tree(digest string) string
	Took(title string) time.Duration
	ContentInfo(digest string) (image.ContentInfo, error)
	Serve(ctx context.Context, digest string, c io.ReadWriter) error
	Download(ctx context.Context, l *spec.Layer, content string, from []chunks.Source, say, doubt func(string)) error
	Receive(ctx context.Context, digest string, rw io.ReadWriter) error
	Sweep() error
}

// Packages fetches packages and installs them in a layer that is being built. An image.Cache
// implements it.
type Packages interface {
	Install(ctx context.Context, in host.Runner, d *distro.Distribution, packages []string, log io.Writer) error
	FillKernel(ctx context.Context, in host.Runner, l *spec.Layer, log io.Writer) error
}

// Volumes manages data that outlives nodes (package volume).
type Volumes interface {
	List(key string) ([]observe.Volume, error)
	Provide(ctx context.Context, n *spec.Node, m spec.Mount, root volume.NodeRoot) error
	ProvideCopy(ctx context.Context, n *spec.Node, m spec.Mount, root volume.NodeRoot,
		still volume.FreezeFunc) (volume.CopyResult, error)
	// Erase removes the volume at a path that List returned.
	Erase(path string) error
	// Drop removes a node's directory of a volume.
	Drop(n *spec.Node, m spec.Mount) error
	// DropCopies removes all copies that were made for a release.
	DropCopies(key string, release int) error
	Sweep(key string) error
	Release() error
}

// Kernel has the kernel settings that many nodes need.
type Kernel interface {
	Settings(names []string) map[string]string
	Prepare(ctx context.Context, settings map[string]string) error
	Restore(ctx context.Context) error
}

// Records has the records of nodes (package nodedir).
type Records interface {
	Read(site string, id int) (*nodedir.Record, error)
	All(site string) ([]nodedir.Found, error)
}

// Claims records, for the whole machine, in which state directory each site is kept (host.Dirs).
type Claims interface {
	Claim(ctx context.Context, key string) error
	Yield(ctx context.Context, key string)
	Elsewhere(key string) error
}

// The backends of this machine.
type (
	bridges struct{}
	disks   struct{ dirs host.Dirs }
	sysctls struct{ dirs host.Dirs }
	records struct{ dirs host.Dirs }
)

func (bridges) Observe(key string) ([]observe.Network, error) { return network.Observe(key) }
func (bridges) Make(ctx context.Context, n spec.Network, nodes func() ([]network.Port, error)) error {
	return network.Make(ctx, n, nodes)
}
func (bridges) Remove(ctx context.Context, n spec.Network) error { return network.Remove(ctx, n) }
func (bridges) MoveLinks(ctx context.Context, moves []network.Move, live ...string) error {
	return network.MoveLinks(ctx, moves, live...)
}
func (bridges) AddAntiSpoof(ctx context.Context, ports []network.Port) error {
	return network.AddAntiSpoof(ctx, ports)
}
func (bridges) RemoveAntiSpoof(ctx context.Context, site string, still []network.Port) error {
	return network.RemoveAntiSpoof(ctx, site, still)
}
func (bridges) Sweep(ctx context.Context) error { return network.Sweep(ctx) }
func (bridges) Encrypts() error                 { return wireguard.Supported() }
func (bridges) Prime(n spec.Network, private string) error {
	return wireguard.SetPrivateKey(n, private)
}
func (bridges) Around(key string) ([]observe.Address, observe.HostNetworking, error) {
	return network.Around(key)
}

func (d disks) List(key string) ([]observe.Volume, error) { return volume.List(d.dirs, key) }
func (d disks) Provide(ctx context.Context, n *spec.Node, m spec.Mount, root volume.NodeRoot) error {
	return volume.Provide(ctx, d.dirs, n.Site, n.Name, m, root)
}
func (d disks) ProvideCopy(ctx context.Context, n *spec.Node, m spec.Mount, root volume.NodeRoot,
	still volume.FreezeFunc) (volume.CopyResult, error) {
	return volume.ProvideCopy(ctx, d.dirs, n.Site, n.Name, m, root, still)
}
func (d disks) Erase(path string) error { return volume.Erase(path) }
func (d disks) Drop(n *spec.Node, m spec.Mount) error {
	return volume.Erase(volume.Path(d.dirs, n.Site, n.Name, m))
}
func (d disks) DropCopies(key string, release int) error {
	paths, _ := filepath.Glob(filepath.Join(d.dirs.VolumeCopies(key, release), "*", "*"))
	var err error
	for _, path := range paths {
		err = errors.Join(err, volume.Erase(path))
	}
	return err
}
func (d disks) Sweep(key string) error { return volume.Sweep(d.dirs, key) }
func (d disks) Release() error         { return volume.Release(d.dirs) }

func (sysctls) Settings(names []string) map[string]string { return host.ReadSettings(names) }
func (s sysctls) Prepare(ctx context.Context, settings map[string]string) error {
	return host.RaiseSettings(ctx, s.dirs.Run, settings)
}
func (s sysctls) Restore(ctx context.Context) error { return host.RestoreSettings(ctx, s.dirs.Run) }
func (r records) Read(site string, id int) (*nodedir.Record, error) {
	return nodedir.Of(r.dirs, site, id).Read()
}
func (r records) All(site string) ([]nodedir.Found, error) { return nodedir.All(r.dirs, site) }
