package nodedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/test/need"
)

// snares are links that a node's root may place where the host writes. Each leads to a file or
// directory of the host.
func snares(t *testing.T, root, outside string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "authorized_keys"), []byte("of the host\n"), 0o600))
	for link, to := range map[string]string{
		"etc/hostname":    filepath.Join(outside, "authorized_keys"),
		"etc/machine-id":  "../../../../../../../.." + outside + "/authorized_keys",
		"etc/resolv.conf": filepath.Join(outside, "new"), "etc/ssh": outside,
	} {
		must(t, os.RemoveAll(filepath.Join(root, link)))
		must(t, os.Symlink(to, filepath.Join(root, link)))
	}
	// A process whose root is the node's would follow the link to this directory of the node.
	must(t, os.MkdirAll(filepath.Join(root, outside), 0o755))
	must(t, os.Symlink(filepath.Join(outside, "authorized_keys"),
		filepath.Join(root, outside, "ssh_host_ed25519_key.pub")))
}

func untouched(t *testing.T, outside string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(outside, "authorized_keys")); err != nil || string(text) != "of the host\n" {
		t.Errorf("a file of the host holds %q: %v", text, err)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
		t.Errorf("beside it are %v: %v", names, err)
	}
}

// withKeys returns an engine in which a node has SSH host keys.
func withKeys(t *testing.T, site, node string) *Nodes {
	t.Helper()
	e := nodesIn(t.TempDir())
	keys := filepath.Join(e.Dirs.Keys(site), node)
	must(t, os.MkdirAll(keys, 0o700))
	must(t, os.WriteFile(filepath.Join(keys, "ssh_host_ed25519_key"), []byte("private\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(keys, "ssh_host_ed25519_key.pub"), []byte("ssh-ed25519 AAAA node\n"), 0o600))
	return e
}

// nodesIn returns Nodes in which no node runs.
func nodesIn(state string) *Nodes {
	return &Nodes{
		Dirs: host.Dirs{State: state, Run: filepath.Join(state, "run")}, Store: image.Open(state), Engine: "lxc",
		Slots:   filepath.Join(state, "slots"),
		Running: func(engine.Ref) bool { return false },
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPersonalise: the files that identify a node are written into its own tree, whatever links are
// there.
//
// Promise (Trees that others write): Identity and rendered files of a node go into its own tree, as
// its own root. With engine/nodedir.TestChangeWritesInsideTheNode, image.TestAccountInHostileTree.
func TestPersonalise(t *testing.T) {
	need.SameIDs(t)
	e := withKeys(t, "s", "a")
	top, outside := t.TempDir(), t.TempDir()
	snares(t, top, outside)
	root, err := tree.Open(top)
	must(t, err)
	defer root.Close()
	must(t, stoppedRoot{root: root, first: os.Geteuid()}.writeIdentity(e.Dirs,
		&spec.Node{Site: "s", Name: "a", ID: 1, MachineID: "0123"}))
	untouched(t, outside)
	for file, want := range map[string]string{
		"etc/hostname": "a\n", "etc/machine-id": "0123\n", "etc/ssh/ssh_host_ed25519_key.pub": "ssh-ed25519 AAAA node\n",
	} {
		if text, err := root.ReadFile(file, 1000); err != nil || string(text) != want {
			t.Errorf("%s holds %q: %v", file, text, err)
		}
	}
}

// TestChangeWritesInsideTheNode: when a stopped node gets another interface, its names and keys are
// written again, into its own tree and owned by its own root.
func TestChangeWritesInsideTheNode(t *testing.T) {
	need.Integration(t)
	e := withKeys(t, "it-change", "a")
	base := filepath.Join(e.Dirs.State, "store/ba5e/tree")
	must(t, os.MkdirAll(filepath.Join(base, "etc"), 0o755))
	n := &spec.Node{Site: "it-change", Name: "a", ID: 101, Engine: "lxc", MachineID: "0123", Base: "ba5e"}
	must(t, e.Create(t.Context(), n))
	outside := t.TempDir()
	upper := e.Private(engine.RefOf(n))
	snares(t, upper, outside)
	changed := *n
	changed.NICs = []spec.NIC{{Name: "eth0", Network: "lan", MAC: "02:00:00:00:00:01"}}
	must(t, e.Change(&changed, nil))
	untouched(t, outside)
	root, err := tree.Open(upper)
	must(t, err)
	defer root.Close()
	st, err := root.Lstat("etc/ssh/ssh_host_ed25519_key")
	if err != nil || st.Uid != 0 || st.Mode&0o7777 != 0o600 {
		t.Errorf("the key: %+v, %v", st, err)
	}

	must(t, root.Remove("etc/hostname"))
	must(t, root.MkdirAll("etc/hostname/in/the/way", 0, 0))
	if err := e.Change(n, nil); err == nil || !strings.Contains(err.Error(), "node a") {
		t.Errorf("a directory in the place of /etc/hostname: %v", err)
	}
}

// TestNameServersOfHost: name servers written by the host do not move with the node, as the other
// host writes its own. Those that the node has changed move with it.
func TestNameServersOfHost(t *testing.T) {
	mayChown(t)
	n, s := nodesIn(t.TempDir()), privileged(1, "one")
	conf := filepath.Join(n.Private(engine.RefOf(s)), resolvConf)
	must(t, n.Create(t.Context(), s))
	if of := n.HostSpecificFiles(s); len(of) != 1 || of[0] != resolvConf {
		t.Errorf("what is of the host is %q", of)
	}
	for what, change := range map[string]func() error{
		"another one": func() error { return os.WriteFile(conf, []byte("nameserver 192.0.2.1\n"), 0o644) },
		"none":        func() error { return nil },
		"a link":      func() error { return os.Symlink("/run/resolv.conf", conf) },
	} {
		must(t, os.RemoveAll(conf))
		must(t, change())
		if of := n.HostSpecificFiles(s); len(of) != 0 {
			t.Errorf("%s is of the host: %q", what, of)
		}
	}
	disk := *s
	disk.VM.Disk = "qcow2"
	for _, c := range []struct {
		node *spec.Node
		link string
		want string
	}{{s, "", Resolvers()}, {s, "/run/resolv.conf", ""}, {&disk, "", ""}} {
		other, layer := nodesIn(t.TempDir()), filepath.Join(t.TempDir(), "layer")
		must(t, os.MkdirAll(filepath.Join(layer, "etc"), 0o755))
		at := filepath.Join(other.Private(engine.RefOf(s)), resolvConf)
		if c.link != "" {
			must(t, os.Symlink(c.link, filepath.Join(layer, resolvConf)))
		}
		must(t, other.Receive(t.Context(), c.node, layer, engine.Progress{}, false))
		text, err := os.ReadFile(at)
		if string(text) != c.want || c.want != "" && err != nil {
			t.Errorf("there is %q: %v", text, err)
		}
		if to, _ := os.Readlink(at); to != c.link {
			t.Errorf("it leads to %q", to)
		}
	}
}
