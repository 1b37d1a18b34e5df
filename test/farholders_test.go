package test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	model "orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/hosts"
)

// A holderWatch checks, as often as possible, which nodes on all hosts have which addresses and
// volumes. It checks from outside, so it also sees a host that is cut off or frozen. An instance of
// a node (live, or of a release) has an address if its link is up and on the bridge of the live
// network. It has a volume if it can write to it.
//
// The checks of two hosts happen at different times. So there are two holders only if both were
// seen, and one of them again after the other.
type holderWatch struct {
	t      *testing.T
	tell   func(format string, args ...any) // reports two holders
	key    string
	bridge string
	links  map[string]string // the host's end of a link -> node
	hosts  []hosts.Host
	stop   chan struct{}
	all    sync.WaitGroup
	looks  atomic.Int64
}

func watchHolders(t *testing.T, key, network string, nodes []string, releases []int, on []hosts.Host) *holderWatch {
	w := &holderWatch{t: t, tell: t.Errorf, key: key, bridge: model.BridgeName(key, network), links: map[string]string{},
		hosts: on, stop: make(chan struct{})}
	for _, node := range nodes {
		for _, r := range releases {
			w.links[spec.HostIfName(key, r, node, network)] = node
		}
	}
	return w
}

func (w *holderWatch) begin() *holderWatch {
	w.all.Go(w.watch)
	return w
}

func (w *holderWatch) end() {
	close(w.stop)
	w.all.Wait()
	if w.looks.Load() < 5 {
		w.t.Errorf("the holders of addresses and volumes were looked at only %d times", w.looks.Load())
	}
}

func (w *holderWatch) watch() {
	before := map[string]map[string]bool{}
	for {
		select {
		case <-w.stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		now := map[string]map[string]bool{} // address or volume -> holders
		hold := func(what, by string) {
			if now[what] == nil {
				now[what] = map[string]bool{}
			}
			now[what][by] = true
		}
		for _, h := range w.hosts {
			w.addresses(h, hold)
		}
		w.volumes(hold)
		for what, by := range now {
			still := slices.DeleteFunc(slices.Sorted(maps.Keys(by)), func(name string) bool { return !before[what][name] })
			if len(by) > 1 && len(still) > 1 {
				w.tell("%s is held by %s", what, strings.Join(still, " and "))
			}
		}
		before = now
		w.looks.Add(1)
	}
}

// addresses reports which links are up on the live network of a host.
func (w *holderWatch) addresses(h hosts.Host, hold func(what, by string)) {
	pid, err := h.Init()
	if err != nil {
		return // it is powered off
	}
	out, err := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid), "ip", "-o", "link", "show", "master",
		w.bridge, "up").Output()
	if err != nil {
		return // the network does not exist
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name, _, _ := strings.Cut(strings.TrimSuffix(fields[1], ":"), "@")
		if node := w.links[name]; node != "" {
			hold("the address of "+node, h.Name()+" "+name)
		}
	}
}

var volumeOf = regexp.MustCompile(`/orrery/[^/]+/(\d+)`)

// volumes reports which nodes, by their control groups, can write to a volume.
func (w *holderWatch) volumes(hold func(what, by string)) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	seen := map[string]bool{}
	for _, p := range processes {
		space, err := os.Readlink(p + "/ns/mnt")
		if err != nil || seen[space] {
			continue
		}
		seen[space] = true
		mounts, _ := os.ReadFile(p + "/mountinfo")
		for line := range strings.Lines(string(mounts)) {
			fields := strings.Fields(line)
			if len(fields) < 6 || !strings.Contains(fields[3], w.key+"/volumes/") || !strings.HasPrefix(fields[5], "rw") ||
				fields[4] != "/srv/data" {
				continue
			}
			groups, _ := os.ReadFile(p + "/cgroup")
			if group := volumeOf.FindString(string(groups)); group != "" {
				_, of, _ := strings.Cut(fields[3], w.key+"/volumes/")
				hold("volume "+of, group+" on disk "+fields[2]) // each host has its own disk
			}
		}
	}
}

// planted checks that two holders are detected, and that one is accepted: a host gets the address
// and the volume of a node, and then another host does, too.
func planted(t *testing.T, on []hosts.Host) {
	t.Helper()
	const key = "it-planted"
	told := make(chan string, 1000)
	w := watchHolders(t, key, "lan", []string{"b"}, []int{0, 701}, on)
	w.tell = func(format string, args ...any) {
		select {
		case told <- fmt.Sprintf(format, args...):
		default:
		}
	}
	w.begin()
	script := fmt.Sprintf(`set -e
ip link add %[1]s type bridge; ip link set %[1]s up
ip link add "$1" type veth peer name planted; ip link set "$1" master %[1]s up
dir=/var/lib/orrery/sites/%[2]s/volumes/data/b
for group in /sys/fs/cgroup/pids /sys/fs/cgroup; do [ ! -d $group ] || break; done
group=$group/orrery/%[2]s/$2
mkdir -p $dir $group /srv/data
nohup unshare -m sh -c "mount --bind $dir /srv/data; echo \$\$ >$group/cgroup.procs; exec sleep 600" >/dev/null 2>&1 &
echo $! >/run/planted`, w.bridge, key)
	plant := func(at hosts.Host, release, id int) {
		if out, err := at.Command("/bin/sh", "-c", script, "sh", spec.HostIfName(key, release, "b", "lan"),
			fmt.Sprint(id)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Cleanup(func() {
			_, _ = at.Output("/bin/sh", "-c", "kill -9 $(cat /run/planted); ip link del planted; ip link del "+w.bridge+
				"; sleep 0.1; rm -rf /var/lib/orrery/sites/"+key+"; true")
		})
	}
	plant(on[0], 0, 12)
	looked := w.looks.Load()
	for w.looks.Load() < looked+3 {
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case text := <-told:
		t.Errorf("of one holder, it is told that %s", text)
	default:
	}
	plant(on[1], 701, 701*1000+12)
	seen := map[string]bool{"the address of b": false, "volume data/b": false}
	for deadline := time.After(10 * time.Second); !seen["the address of b"] || !seen["volume data/b"]; {
		select {
		case text := <-told:
			what, _, _ := strings.Cut(text, " is held by ")
			seen[what] = true
		case <-deadline:
			t.Fatalf("of two holders, what is seen is %v", seen)
		}
	}
	w.end()
}
