package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// The Runner of openNodes is that of the host.
type openNodes struct{ engine.Engine }

func (openNodes) Runner(ref engine.Ref) host.Runner { return host.Local{Name: ref.Name} }

// TestCopyAlongLanes: a copy between nodes of two hosts goes directly, or through the control host,
// and completely or not at all. Whichever end fails, its error is returned.
func TestCopyAlongLanes(t *testing.T) {
	for addresses, relays := range map[[2]string]int32{{"root@127.0.0.2", "root@127.0.0.3"}: 0,
		{"one.example", "two.example"}: 2} {
		s, f, dials := &site.Site{Name: "karoo"}, &apply.Fleet{}, new(atomic.Int32)
		for i, address := range addresses {
			name, dirs := fmt.Sprint("sv", i+1), host.Dirs{State: t.TempDir(), Run: t.TempDir()}
			s.Hosts = append(s.Hosts, site.Host{Name: name, Address: address})
			f.All = append(f.All, apply.NewHostClient(name, s, dirs, func(apply.Secrets) apply.Host {
				return counted(ThisMachine(name, "karoo", dirs, map[string]engine.Engine{"open": openNodes{}}, nil), dials)
			}))
		}
		dir := t.TempDir()
		in := func(name string) string { return filepath.Join(dir, name) }
		must(t, os.MkdirAll(in("from/deep"), 0o750))
		must(t, os.WriteFile(in("from/deep/big"), []byte(strings.Repeat("0123456789", 500_000)), 0o640))
		must(t, os.Symlink("deep/big", in("from/link")))
		must(t, unix.Mkfifo(in("pipe"), 0o600))
		must(t, os.Mkdir(in("to"), 0o755))
		copied := func(from, into string, several bool) (bytes int64, err error) {
			e := apply.CopyTransfer{Host: "sv1", From: &spec.Node{Name: "a", Engine: "open"},
				To: &spec.Node{Name: "b", Engine: "open"}, Path: in(from), Into: in(into), Several: several}
			err = apply.CopyToNode(t.Context(), f, e, "sv2", func(n int64) { bytes += n })
			return bytes, err
		}
		bytes, err := copied("from", "to", true)
		must(t, err)
		text, err := os.ReadFile(in("to/from/link"))
		if err != nil || len(text) != 5_000_000 || bytes != int64(len(text)) || dials.Load() != relays {
			t.Errorf("%v: %d bytes are there, %d were told of and %d connections made: %v", addresses, len(text), bytes,
				dials.Load(), err)
		}
		if err := apply.CopyToNode(t.Context(), f, apply.CopyTransfer{
			Host: "sv2", From: &spec.Node{Name: "a", Engine: "open"}, To: &spec.Node{Name: "b", Engine: "open"},
			Path: in("from/deep/big"), Into: in("beside"),
		}, "sv2", nil); err != nil || !tree.Exists(in("beside")) {
			t.Errorf("on one host: %v", err)
		}
		for what, c := range map[string][3]string{
			"the end that gives": {"nothing", "to", "the file does not exist"},
			"the end that takes": {"from", "from/deep/big/in", "Not a directory"},
			"a pipe":             {"pipe", "to", "is a named pipe"},
		} {
			if _, err := copied(c[0], c[1], false); err == nil || !strings.Contains(err.Error(), c[2]) {
				t.Errorf("%s says: %v", what, err)
			}
		}
		if left, _ := filepath.Glob(in("to/.orrery*")); len(left) > 0 {
			t.Errorf("left is %q", left)
		}
	}
}
