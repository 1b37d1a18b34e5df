package local

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/test/need"
)

// A viewed engine shows the files of its one node as directories.
type viewed struct {
	*fake.Engine
	dir string
}

func (v viewed) OpenRoot(engine.Ref) (*tree.Root, error) {
	return tree.Open(filepath.Join(v.dir, "root"))
}
func (v viewed) Private(engine.Ref) string     { return filepath.Join(v.dir, "upper") }
func (v viewed) Fill(engine.Ref, string) error { return errors.ErrUnsupported }
func (v viewed) Idmap(engine.Ref) (int, error) { return os.Geteuid(), nil }

// A served node is a running node in memory, with its files in directories.
type served struct {
	*testing.T
	*apply.HostClient
	dirs   host.Dirs
	engine viewed
	node   *spec.Node
	unit   string // what systemd reports of its service
	sick   bool
}

func newServed(t *testing.T) *served {
	t.Helper()
	need.SameIDs(t)
	s := &site.Site{
		Name: "karoo", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Roles: []site.Role{{
			Name: "web", Dir: "roles/web", Services: []string{"web.service"}, Changes: []string{"/etc/state"},
			Files: []site.File{
				{Path: "/etc/web.conf", Template: "t", Content: []byte("of {{ .Node.Name }}\n"), Owner: "root:root", Mode: 0o644},
				{Path: "/etc/state", Template: "s", Content: []byte("begun\n"), Owner: "root:root", Mode: 0o644},
				{Path: "/srv/web.py", Source: "web.py", Content: []byte("serve()\n"), Owner: "root:root", Mode: 0o644},
			},
			Health: []site.HealthCheck{{Command: []string{"ask"}, Timeout: time.Second, Interval: time.Second,
				Within: time.Second}},
		}},
		Nodes: []site.Node{{Name: "one", ID: 1, Image: "debian", Engine: "fake", Host: "local", Roles: []string{"web"}}},
	}
	dir := t.TempDir()
	n := &served{T: t, dirs: host.Dirs{State: dir, Run: dir}, engine: viewed{fake.New(), dir}, unit: "active"}
	n.engine.Command = n.command
	store := image.Open(dir)
	n.HostClient = apply.NewHostClient("local", s, n.dirs, func(secrets apply.Secrets) apply.Host {
		return ThisMachine("local", s.Key(), n.dirs, map[string]engine.Engine{"fake": n.engine}, secrets).Host
	})
	spelt, err := spec.NewBuilder(s).Node(&s.Nodes[0])
	n.must(err)
	n.node = spelt
	for path, text := range map[string]string{
		"root/etc/web.conf": "of one\n", "root/etc/state": "begun\n", "root/srv/web.py": "serve()\n",
		"root/usr/bin/tar": "tar", "upper/etc/web.conf": "of one\n",
		"root/etc/passwd": "root:x:0:0::/:\n", "root/etc/group": "root:x:0:\n",
	} {
		n.write(path, text)
	}
	n.writeTo(filepath.Join(store.Tree(spelt.Base), "usr/bin/tar"), "tar")
	n.writeTo(filepath.Join(store.Tree(spelt.Layer), "srv/web.py"), "serve()\n")
	n.must(n.engine.Create(t.Context(), spelt))
	n.must(n.engine.Start(t.Context(), engine.RefOf(spelt)))
	n.mark(engine.Progress{Configured: true, Config: spelt.Config, Proven: spelt.Config.Health})
	return n
}

func (n *served) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func (n *served) mark(m engine.Progress) {
	n.Helper()
	n.must(n.engine.SetProgress(n.T.Context(), engine.RefOf(n.node), m))
	r := &nodedir.Record{Node: *n.node, Configured: m.Configured, Proven: m.Proven, Active: m.Active}
	r.Config = m.Config
	dir := nodedir.Of(n.dirs, "karoo", 1)
	n.must(os.MkdirAll(dir.Path(), 0o755))
	n.must(dir.Write(r))
}

func (n *served) write(path, text string) { n.writeTo(filepath.Join(n.engine.dir, path), text) }

func (n *served) writeTo(path, text string) {
	n.Helper()
	n.must(os.MkdirAll(filepath.Dir(path), 0o755))
	n.must(os.WriteFile(path, []byte(text), 0o644))
}

// command does what the node does when it gets a command.
func (n *served) command(_ context.Context, _ engine.Ref, c host.Command) error {
	line := strings.Join(c.Args, " ")
	switch {
	case strings.HasPrefix(line, "systemctl show"):
		_, err := io.WriteString(c.Stdout, "LoadState=loaded\nActiveState="+n.unit+"\nSubState=x\nUnitFileState=enabled\n")
		return err
	case strings.HasPrefix(line, "/bin/sh -c systemctl enable"):
		n.unit = "active"
	case line == "ask" && n.sick:
		return errors.New("exit status 1")
	}
	return nil
}

// drift returns the drift of the node.
func (n *served) drift() []observe.Drift {
	n.Helper()
	nodes, err := n.engine.List(n.T.Context(), "karoo")
	n.must(err)
	n.must(n.DetectDrift(n.T.Context(), nodes, nil))
	return nodes[0].Drift
}

func (n *served) want(want ...string) []observe.Drift {
	n.Helper()
	all := n.drift()
	var got []string
	for _, d := range all {
		got = append(got, d.String())
	}
	if !slices.Equal(got, want) {
		n.Errorf("found is\n  %s\nnot\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return all
}

// needRoot skips a test that changes the owners of files.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes files of root's")
	}
}

// TestProbe: drift of a node is found and repaired. If the run is killed, the records during the
// repair make the next run repair it.
func TestProbe(t *testing.T) {
	needRoot(t)
	n := newServed(t)
	n.want()
	n.unit, n.sick = "inactive", true
	n.write("root/etc/web.conf", "of me\n")
	n.write("root/etc/state", "grown\n")
	n.must(os.Remove(filepath.Join(n.engine.dir, "root/srv/web.py")))
	n.must(os.Remove(filepath.Join(n.engine.dir, "root/usr/bin/tar")))
	n.must(os.MkdirAll(filepath.Join(n.engine.dir, "upper/usr/bin"), 0o755))
	if err := unix.Mknod(filepath.Join(n.engine.dir, "upper/usr/bin/tar"), unix.S_IFCHR, 0); err != nil {
		t.Skipf("this user cannot make a whiteout: %v", err)
	}
	all := n.want(
		"program /usr/bin/tar is gone, not as in its layer",
		"file /srv/web.py is gone, not as in its layer",
		"file /etc/web.conf is changed, not as its role makes it",
		"service web.service is stopped, not running",
		"health command ask is failing (one: ask: exit status 1), not passed",
	)
	if all[1].Role != "web" || all[3].Kind != observe.DriftService || all[4].How != observe.Failing {
		t.Errorf("%+v", all)
	}
	n.mend(all)
	for path, text := range map[string]string{"usr/bin/tar": "tar", "srv/web.py": "serve()\n", "etc/state": "grown\n"} {
		if got, err := os.ReadFile(filepath.Join(n.engine.dir, "root", path)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if f, ok := n.engine.File(engine.RefOf(n.node), "/etc/web.conf"); !ok || string(f.Content) != "of one\n" {
		t.Errorf("/etc/web.conf: %q", f.Content)
	}
	if _, ok := n.engine.File(engine.RefOf(n.node), "/etc/state"); ok {
		t.Error("what the node may change was put there again")
	}
	nodes, _ := n.engine.List(t.Context(), "karoo")
	if !nodes[0].Configured || nodes[0].Proven != "" || n.unit != "active" {
		t.Errorf("it is on record as %+v, its service is %s", nodes[0], n.unit)
	}
	n.write("root/etc/web.conf", "of one\n") // the former write went to memory only
	n.must(os.Remove(filepath.Join(n.engine.dir, "upper/usr/bin/tar")))
	n.want()
}

// mend repairs drift after a first attempt that is killed half way, and checks that the attempt
// leaves the node marked as not configured.
func (n *served) mend(all []observe.Drift) {
	n.T.Helper()
	mend := &plan.Step{Kind: plan.RepairNode, Node: n.node, Old: n.node, Subject: "one", Drift: all}
	n.engine.Crash("Run", "one", 1)
	if err := n.Do(n.Context(), mend, func(string) {}); err == nil {
		n.T.Error("a run that was killed has mended it")
	}
	n.engine.Revive()
	if nodes, _ := n.engine.List(n.Context(), "karoo"); nodes[0].Configured || nodes[0].Proven != "" {
		n.T.Errorf("it is on record as %+v", nodes[0])
	}
	n.sick = false
	n.must(n.Do(n.Context(), mend, func(string) {}))
}

// TestProbeRendered: the part of TestProbe that does not need root: rendered files, services and
// health, but nothing of a layer.
func TestProbeRendered(t *testing.T) {
	n := newServed(t)
	r := &n.Site().Roles[0]
	r.Files = r.Files[:2]
	n.want()
	n.unit, n.sick = "inactive", true
	n.write("root/etc/web.conf", "of me\n")
	n.write("root/etc/state", "grown\n")
	all := n.want(
		"file /etc/web.conf is changed, not as its role makes it",
		"service web.service is stopped, not running",
		"health command ask is failing (one: ask: exit status 1), not passed",
	)
	n.mend(all)
	if f, ok := n.engine.File(engine.RefOf(n.node), "/etc/web.conf"); !ok || string(f.Content) != "of one\n" ||
		n.unit != "active" {
		t.Errorf("/etc/web.conf: %q; its service is %s", f.Content, n.unit)
	}
	n.write("root/etc/web.conf", "of one\n") // the former write went to memory only
	n.want()
	n.engine.Fail("Run", "one", 99, nil)
	if all := n.drift(); len(all) == 0 || all[len(all)-1].Kind != observe.DriftNode ||
		all[len(all)-1].How != observe.Unresponsive {
		t.Errorf("of a node that does not answer: %v", all)
	}
}

// TestProbeOther: changes that were not applied yet are not drift. Nodes that were not requested,
// that are in quarantine or do not run are not checked.
func TestProbeOther(t *testing.T) {
	needRoot(t)
	n := newServed(t)
	n.write("root/etc/web.conf", "of me\n")
	n.write("root/srv/web.py", "other()\n")
	n.unit = "inactive"
	nodes, err := n.engine.List(t.Context(), "karoo")
	n.must(err)
	n.must(n.DetectDrift(t.Context(), nodes, map[string]bool{"two": true}))
	staged := slices.Clone(nodes)
	staged[0].Staged = true
	n.must(n.DetectDrift(t.Context(), staged, nil))
	stopped := slices.Clone(nodes)
	stopped[0].State = observe.Stopped
	n.must(n.DetectDrift(t.Context(), stopped, nil))
	if d := slices.Concat(nodes[0].Drift, staged[0].Drift, stopped[0].Drift); len(d) > 0 {
		t.Errorf("found is %v", d)
	}
	r := &n.Site().Roles[0]
	r.Files[0].Content, r.Files[2].Content = []byte("new {{ .Node.Name }}\n"), []byte("new()\n")
	n.want("service web.service is stopped, not running")
	// it was not completely configured: its services and files will be applied with the rest
	n.mark(engine.Progress{Config: n.node.Config})
	n.want()
	r.Files[2].Content = []byte("serve()\n")
	n.want("file /srv/web.py is changed, not as in its layer")
}
