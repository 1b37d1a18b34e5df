package rehearsal

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestMain(m *testing.M) {
	RunRole()
	os.Exit(m.Run())
}

func TestDrops(t *testing.T) {
	got := dropRules(map[int]Direction{1: Both, 2: To, 3: From, 4: ""})
	want := `table bridge cuts
delete table bridge cuts
table bridge cuts {
	chain forward {
		type filter hook forward priority 0;
		oifname "sv2" drop
		iifname "sv3" drop
	}
}
`
	if got != want {
		t.Errorf("the switch gets the rules\n%s\nand not\n%s", got, want)
	}
}

// TestGroups checks a machine with control groups of version 1, of version 2, or of version 1 with
// an empty hierarchy of version 2 beside them.
func TestGroups(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  map[string]bool // hierarchy → whether it is of version 2
		slow  []diskLimit
	}{
		"version 2": {
			[]string{"cgroup.controllers", "cgroup.procs", "init.scope/cgroup.procs"}, map[string]bool{"": true},
			[]diskLimit{{"orrery-hosts/a/sv1/io.max", "7:1 rbps=1000 wbps=1000"}},
		},
		"version 1": {
			[]string{"blkio/cgroup.procs", "cpu,cpuacct/cgroup.procs", "unified/cgroup.procs", "unified/cgroup.controllers"},
			map[string]bool{"blkio": false, "cpu,cpuacct": false, "unified": true},
			[]diskLimit{{"blkio/orrery-hosts/a/sv1/blkio.throttle.read_bps_device", "7:1 1000"},
				{"blkio/orrery-hosts/a/sv1/blkio.throttle.write_bps_device", "7:1 1000"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			for _, f := range c.files {
				path := filepath.Join(top, f)
				must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must(t, os.WriteFile(path, nil, 0o644))
			}
			must(t, os.Symlink("cpu,cpuacct", filepath.Join(top, "cpu")))
			got := map[string]bool{}
			for _, h := range hierarchies(top) {
				got[strings.TrimPrefix(strings.TrimPrefix(h.dir, top), "/")] = h.v2
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("the hierarchies are %v, not %v", got, c.want)
			}
			slow := diskLimits(top, "orrery-hosts/a/sv1", "7:1", 1000)
			for i := range slow {
				slow[i].file = strings.TrimPrefix(slow[i].file, top+"/")
			}
			if !slices.Equal(slow, c.slow) {
				t.Errorf("a slow disk is %v, not %v", slow, c.slow)
			}
		})
	}
	if b := diskLimits(t.TempDir(), "a", "7:1", 0); b[0].text != "7:1 rbps=max wbps=max" {
		t.Errorf("no bound on a disk is %q", b[0].text)
	}
}

// TestKeys checks that each host has a key of its own, which all others know by its name and its
// address.
func TestKeys(t *testing.T) {
	places := []Place{
		{Name: "sv1", Addresses: []netip.Prefix{netip.MustParsePrefix("10.8.1.1/24")}},
		{Name: "sv2", Aliases: []string{"sv2.example.org"}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.8.1.2/24")},
			Port: 2222},
	}
	k, err := newKeys(places)
	must(t, err)
	for i := 1; i <= 2; i++ {
		private, err := ssh.ParsePrivateKey([]byte(k.Hosts[i].Private))
		must(t, err)
		if want := []string{"sv1,10.8.1.1 ", "[sv2]:2222,[sv2.example.org]:2222,[10.8.1.2]:2222 "}[i-1] +
			string(ssh.MarshalAuthorizedKey(private.PublicKey())); !strings.Contains(k.known(places), want) {
			t.Errorf("%q is not among the known hosts\n%s", want, k.known(places))
		}
	}
	if k.Hosts[1] == k.Hosts[2] || k.User == k.Hosts[1] {
		t.Error("two have the same key")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
