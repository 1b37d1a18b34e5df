package docs_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/apply/local/memory"
	"orrery/internal/apply/remote"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/host/path"
	"orrery/internal/host/schedule"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
	"orrery/test/need"
)

// A machine has nodes, networks and layers in memory, so that any user can run what the documents
// say. The real worker carries out the steps on it.
type machine struct {
	dirs    host.Dirs
	address string              // at which other machines reach it
	others  map[string]*machine // by the address in the site file

	mu    sync.Mutex
	hosts map[string]*fake.Host // by site
}

func newMachine(t *testing.T, address string) *machine {
	t.Helper()
	need.SameIDs(t)
	dir := need.MemoryDir(t)
	return &machine{address: address, dirs: host.Dirs{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")},
		hosts: map[string]*fake.Host{}}
}

// of returns what the machine has of a site.
func (m *machine) of(key string) *fake.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hosts[key] == nil {
		h := fake.NewHost(key, "local", 16, 1<<36)
		h.Answers = serve
		h.Addresses = []observe.Address{{Prefix: m.address + "/24", Link: "eth0", MTU: 1500}}
		m.hosts[key] = h
	}
	return m.hosts[key]
}

// serve answers every request to a port of a node with success.
func serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // it is in memory
	if _, err := c.Read(make([]byte, 4096)); err == nil {
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	}
}

// nodesInMemory is an engine for the nodes of a site, or of all sites if all is set.
type nodesInMemory struct {
	*fake.Engine
	name string
	all  *machine
}

// List returns the nodes that have this engine.
func (n nodesInMemory) List(ctx context.Context, key string) (nodes []observe.Node, err error) {
	if n.all == nil {
		nodes, err = n.Engine.List(ctx, key)
	} else {
		n.all.mu.Lock()
		defer n.all.mu.Unlock()
		for key, h := range n.all.hosts {
			more, wrong := h.List(ctx, key)
			nodes, err = append(nodes, more...), errors.Join(err, wrong)
		}
	}
	return slices.DeleteFunc(nodes, func(o observe.Node) bool { return o.Engine != n.name }), err
}

func (nodesInMemory) Idmap(engine.Ref) (int, error)                        { return os.Geteuid(), nil }
func (nodesInMemory) Disable(context.Context, engine.Ref, ...string) error { return nil }
func (nodesInMemory) Inject(context.Context, engine.Ref, ...host.File) error {
	return errors.ErrUnsupported
}

type layersInMemory = fake.Layers

// layersWithUsers are layers whose files are only the users and groups that roles name as owners.
type layersWithUsers struct{ layersInMemory }

func (l layersWithUsers) BuildBase(ctx context.Context, layer *spec.Layer, m site.Mirror, say func(string)) error {
	return errors.Join(l.layersInMemory.BuildBase(ctx, layer, m, say), l.writeUsers(layer))
}

func (l layersWithUsers) BuildLayer(ctx context.Context, layer *spec.Layer, m site.Mirror,
	fill func(context.Context, host.Runner) error, say func(string)) error {
	return errors.Join(l.layersInMemory.BuildLayer(ctx, layer, m, fill, say), l.writeUsers(layer))
}

func (l layersWithUsers) writeUsers(layer *spec.Layer) (err error) {
	for _, name := range []string{"passwd", "group"} {
		err = errors.Join(err, host.WriteFile(host.File{Path: filepath.Join(l.Tree(layer.Digest), "etc", name),
			Content: []byte("root:x:0:0:::\npostgres:x:100:100:::\n"), Mode: 0o644}))
	}
	return err
}

type volumesInMemory = fake.Volumes

// volumesAsDirectories have a directory each, which volume ls and adopt look for.
type volumesAsDirectories struct {
	volumesInMemory
	dirs host.Dirs
}

func (v volumesAsDirectories) List(key string) ([]observe.Volume, error) {
	return volume.List(v.dirs, key)
}

func (v volumesAsDirectories) Provide(_ context.Context, n *spec.Node, m spec.Mount, _ volume.NodeRoot) error {
	return os.MkdirAll(volume.Path(v.dirs, n.Site, n.Name, m), 0o755)
}

// Erase and Drop delete directories, too.
func (v volumesAsDirectories) Erase(path string) error {
	return errors.Join(os.RemoveAll(path), v.volumesInMemory.Erase(path))
}

func (v volumesAsDirectories) Drop(n *spec.Node, m spec.Mount) error {
	return errors.Join(os.RemoveAll(volume.Path(v.dirs, n.Site, n.Name, m)), v.volumesInMemory.Drop(n, m))
}

// Host returns the machine as a host of a site.
func (m *machine) Host(name, key string, secrets apply.Secrets) apply.Host {
	in := m.of(key)
	engines := map[string]engine.Engine{}
	for _, kind := range []string{"lxc", "kvm"} {
		e := nodesInMemory{Engine: in.Engine, name: kind}
		if key == "" {
			e.all = m
		}
		engines[kind] = e
	}
	h := local.ThisMachine(name, key, m.dirs, engines, secrets)
	h.Waiter = m
	h.Backends = memory.Backends(in, m.dirs)
	h.Backends.Layers = layersWithUsers{h.Backends.Layers.(fake.Layers)}
	h.Backends.Volumes = volumesAsDirectories{h.Backends.Volumes.(fake.Volumes), m.dirs}
	return h.Host
}

// Reach connects to a helper on another machine, as over ssh.
func (m *machine) Reach(ctx context.Context, h site.Host) (*remote.Link, error) {
	other, ok := m.others[h.Address]
	if !ok {
		return nil, problem.New(problem.Failed, "host %s does not answer", h.Name)
	}
	near, far := net.Pipe()
	go func() { _ = remote.Serve(context.Background(), far, other, other.Self()) }() // it ends with the connection
	return remote.Open(ctx, h.Name, near, "", func(cause error) error { return cause })
}

// Self identifies machines by the path of their state.
func (m *machine) Self() remote.Greeting { return remote.Greeting{Machine: m.dirs.State} }

func (*machine) Allowed() error                                { return nil }
func (*machine) Inspect() doctor.Facts                         { return nil }
func (*machine) Later(context.Context, schedule.Job) error     { return nil }
func (*machine) Waiting() ([]schedule.Pending, error)          { return nil, nil }
func (*machine) Cancel(string) error                           { return nil }
func (*machine) Guard(...*spec.Node) (letGo func(), err error) { return func() {}, nil }

// Outfit installs nothing, because nothing is missing.
func (*machine) Outfit(context.Context, []string, func(string)) ([]string, error) { return nil, nil }

func (*machine) Measure(context.Context, remote.Experiment, func(string), io.Writer) error {
	return errors.ErrUnsupported
}

// Try returns that all packets arrive.
func (*machine) Try(_ context.Context, ways []path.Route) (all []int) {
	for _, w := range ways {
		all = append(all, w.Size)
	}
	return all
}
