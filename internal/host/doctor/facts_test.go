package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// fakeMachine returns a machine whose files are in a temporary directory.
func fakeMachine(t *testing.T, files map[string]string) machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		ok(t, os.MkdirAll(filepath.Dir(path), 0o755))
		ok(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return machine{root: root}
}

func expectFact(t *testing.T, got Fact, fine bool, value string) {
	t.Helper()
	if got.OK != fine || !strings.Contains(got.Value, value) {
		t.Errorf("got %+v, not ok=%v with %q", got, fine, value)
	}
	if !got.OK && got.Fix == "" {
		t.Errorf("no fix: %+v", got)
	}
}

func TestLookAtThisMachine(t *testing.T) {
	start := time.Now()
	links, err := os.ReadDir("/sys/class/net")
	ok(t, err)
	seen := map[string]bool{}
	for _, f := range Examine(t.TempDir()) {
		if f.Name == "" || f.Value == "" || seen[f.Name] || !f.OK && f.Fix == "" || f.OK && f.Fix != "" {
			t.Errorf("%+v", f)
		}
		seen[f.Name] = true
	}
	for _, name := range []string{"kernel", "cgroup", "LXC", "KVM", "nftables", "disk"} {
		if !seen[name] {
			t.Errorf("nothing about %s", name)
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, name := range []string{"trial", "peer"} {
		if _, err := os.Stat("/sys/class/net/" + name); err == nil {
			t.Errorf("link %s is left beside %v", name, links)
		}
	}
}

func TestKernelRelease(t *testing.T) {
	for release, fine := range map[string]bool{
		"6.1.0-18-amd64": true, "5.19.0": true, "5.18.0-rc1": false, "5.10.0-28-amd64": false, "4.19.0": false, "": false,
		"strange": false,
	} {
		expectFact(t, fakeMachine(t, map[string]string{"proc/sys/kernel/osrelease": release + "\n"}).release(), fine, release)
	}
}

const (
	mountsV2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsV1 = "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
		"33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"34 30 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
		"35 30 0:31 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n" +
		"36 30 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
	mountsHybrid = mountsV1 + "37 30 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)

func TestCgroups(t *testing.T) {
	for name, c := range map[string]struct {
		files       map[string]string
		fine        bool
		version     string
		all         bool
		controllers string
		swap        bool
	}{
		"v2": {
			map[string]string{
				"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
				"sys/fs/cgroup/system.slice/memory.swap.max": "max",
			}, true, "version 2", true, "memory (/sys/fs/cgroup)", true,
		},
		"v2 without memory": {
			map[string]string{"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "cpuset cpu pids\n"},
			true, "version 2", false, "missing: memory", false,
		},
		"v1": {
			map[string]string{"proc/self/mountinfo": mountsV1, "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": "9"},
			true, "version 1", true, "cpu (/sys/fs/cgroup/cpu,cpuacct)", true,
		},
		"hybrid": {
			map[string]string{"proc/self/mountinfo": mountsHybrid, "sys/fs/cgroup/unified/cgroup.controllers": ""},
			true, "hybrid", true, "freezer (/sys/fs/cgroup/freezer)", false,
		},
		"none": {map[string]string{"proc/self/mountinfo": "30 23 0:26 / / rw - ext4 /dev/sda rw\n"}, false, "not mounted",
			false, "missing: cpu", false},
	} {
		t.Run(name, func(t *testing.T) {
			facts := fakeMachine(t, c.files).cgroups()
			expectFact(t, facts[0], c.fine, c.version)
			expectFact(t, facts[1], c.all, c.controllers)
			expectFact(t, facts[2], c.swap, "")
			expectFact(t, facts[3], strings.HasPrefix(name, "v2"), "limited") // limit of the number of groups
			expectFact(t, facts[4], name == "v2", "io")
			if limited := name != "none" && name != "v1"; limited {
				expectFact(t, facts[5], limited, "BPF")
			} else {
				expectFact(t, facts[5], limited, "no controller devices")
			}
		})
	}
}

func TestProcessIDs(t *testing.T) {
	for text, value := range map[string]string{"32768\n": "4 nodes of 8192 processes; raised", "4194304\n": "512 nodes",
		"": "is missing"} {
		f := fakeMachine(t, map[string]string{"proc/sys/kernel/pid_max": text}).processIDs()
		expectFact(t, f, text != "", value)
	}
}

func TestIDRange(t *testing.T) {
	for text, fine := range map[string]bool{
		"":                                       true,
		"anna:100000:65536\nroot:165536:65536":   true,
		"anna:1899934464:65536":                  true, // ends just below the range
		"anna:1899934465:65536":                  false,
		"root:1900000000:1":                      false,
		"root:100000:2000000000":                 false,
		"root:2000000000:65536":                  false,
		"broken\nanna:x:y\n:::\nanna:1900000000": true,
	} {
		expectFact(t, fakeMachine(t, map[string]string{"etc/subgid": text}).idRange(), fine, "")
	}
}

func TestUserNamespacesTurnedOff(t *testing.T) {
	expectFact(t, fakeMachine(t, map[string]string{"proc/sys/user/max_user_namespaces": "0\n"}).userNamespaces(), false,
		"is 0")
}

func TestInitSystem(t *testing.T) {
	expectFact(t, fakeMachine(t, map[string]string{"proc/1/comm": "systemd\n"}).initSystem(), true, "systemd")
	expectFact(t, fakeMachine(t, map[string]string{"proc/1/comm": "runit\n"}).initSystem(), false, "runit")
}

func TestVirtualization(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"none":                  {"proc/cpuinfo": "processor : 0\nflags\t\t: fpu vmx\n"},
		"virtual machine":       {"proc/cpuinfo": "flags\t\t: fpu hypervisor\n"},
		"virtual machine (xen)": {"sys/hypervisor/type": "xen\n"},
		"container (lxc)":       {"run/systemd/container": "lxc\n"},
		"virtual machine (QEMU Standard PC), in it a container (docker)": {
			"proc/cpuinfo": "flags : hypervisor\n", "sys/class/dmi/id/sys_vendor": "QEMU\n",
			"sys/class/dmi/id/product_name": "Standard PC\n", ".dockerenv": "",
		},
	} {
		if got := fakeMachine(t, files).virtualization().Value; got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

func TestForwarding(t *testing.T) {
	for value, fine := range map[string]bool{"0": true, "1": true, "": false} {
		expectFact(t, fakeMachine(t, map[string]string{"proc/sys/net/ipv4/ip_forward": value}).forwarding(), fine, "")
	}
}

func TestFileSystem(t *testing.T) {
	expectFact(t, fileSystem(unix.EXT4_SUPER_MAGIC, "/x"), true, "ext4")
	expectFact(t, fileSystem(unix.OVERLAYFS_SUPER_MAGIC, "/x"), false, "overlayfs")
	expectFact(t, fileSystem(0x1234, "/x"), false, "0x1234")
	if disk("/no/such/directory")[0].Value == "" {
		t.Error("nothing about a directory that is not there yet")
	}
}

// TestFirewall checks a host with docker's chains, in a network namespace of its own.
func TestFirewall(t *testing.T) {
	need.Integration(t)
	m := fakeMachine(t, map[string]string{
		"proc/sys/net/bridge/bridge-nf-call-iptables": "1\n", "proc/net/ip_tables_names": "filter\n",
	})
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			expectFact(t, m.firewall()[0], true, "")
			c, err := nftables.New()
			if err != nil {
				return err
			}
			drops := nftables.ChainPolicyDrop
			table := c.AddTable(&nftables.Table{Name: "filter", Family: nftables.TableFamilyIPv4})
			chain := c.AddChain(&nftables.Chain{
				Name: "FORWARD", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward,
				Priority: nftables.ChainPriorityFilter, Policy: &drops,
			})
			if err := c.Flush(); err != nil {
				return err
			}
			facts := m.firewall()
			expectFact(t, facts[0], false, "ip filter FORWARD")
			expectFact(t, facts[1], true, "filter")
			expectFact(t, facts[2], false, "between the nodes of a network")
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
				&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte("orb")},
				&expr.Verdict{Kind: expr.VerdictAccept},
			}})
			if err := c.Flush(); err != nil {
				return err
			}
			expectFact(t, m.firewall()[0], true, "")
			return nil
		}()
	}()
	ok(t, <-done)
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestNeighbours checks that a nearly full neighbour table of either family is reported.
func TestNeighbours(t *testing.T) {
	const headings = "entries  allocs   destroys\n"
	of := func(four, six string) Fact {
		return fakeMachine(t, map[string]string{
			"proc/net/stat/arp_cache":                    headings + four + " 000007e6 00000898\n" + four + " 000006f6 0000063b",
			"proc/net/stat/ndisc_cache":                  headings + six + " 00000001 00000000",
			"proc/sys/net/ipv4/neigh/default/gc_thresh3": "8192\n", "proc/sys/net/ipv6/neigh/default/gc_thresh3": "1024\n",
		}).neighbourTables()
	}
	expectFact(t, of("0000010d", "00000034"), true, "269 of 8192 of IPv4, 52 of 1024 of IPv6")
	expectFact(t, of("00001800", "00000034"), false, "6144 of 8192 of IPv4")
	expectFact(t, of("00000001", "00000400"), false, "1024 of 1024 of IPv6")
	expectFact(t, fakeMachine(t, nil).neighbourTables(), true, "does not count")
}
