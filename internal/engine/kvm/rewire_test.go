package kvm

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// cards plays the monitor of a machine with network cards and their backends. It refuses the same
// commands as QEMU.
type cards struct {
	mutex           sync.Mutex
	netdevs, slots  map[string]string // by ids of cards: the file of the backend, and the slot of the card
	handed, refuses []string
	begun           int
	// The connection ends after the command with this number is done, or never if it is 0.
	ends int
}

func newCards(t *testing.T, run string) *cards {
	t.Helper()
	c := &cards{netdevs: map[string]string{}, slots: map[string]string{}}
	serveMonitor(t, run, c.do)
	return c
}

func (c *cards) do(command string, of map[string]any) (answer, event string, last bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	text := func(key string) string { s, _ := of[key].(string); return s }
	refuse := func(class, why string) (string, string, bool) {
		return fmt.Sprintf(`"error":{"class":%q,"desc":%q}`, class, why), "", false
	}
	c.begun++
	answer, last = `"return":{}`, c.begun == c.ends
	id := text("id")
	if slices.Contains(c.refuses, command) {
		return refuse("GenericError", "no")
	}
	switch command {
	case "getfd":
		c.handed = append(c.handed, text("fdname"))
	case "netdev_add":
		if _, ok := c.netdevs[id]; ok || !slices.Contains(c.handed, text("fd")) {
			return refuse("GenericError", "Duplicate ID or no such file "+id)
		}
		c.netdevs[id] = text("fd")
	case "device_add":
		if _, ok := c.netdevs[id]; !ok || c.slots[id] != "" {
			return refuse("GenericError", "Device needs netdev "+id)
		}
		c.slots[id] = text("bus")
	case "device_del":
		if c.slots[id] == "" {
			return refuse("DeviceNotFound", "Device '"+id+"' not found")
		}
		delete(c.slots, id)
		event = `{"event":"DEVICE_DELETED","data":{"path":"/machine/peripheral/` + id + `/virtio-backend"}}` + "\n" +
			`{"event":"DEVICE_DELETED","data":{"device":"` + id + `"}}` + "\n"
	case "netdev_del":
		if _, ok := c.netdevs[id]; !ok {
			return refuse("DeviceNotFound", "Device '"+id+"' not found")
		}
		delete(c.netdevs, id)
	case "query-pci":
		answer = `"return":` + c.pci()
	default:
		return refuse("CommandNotFound", command)
	}
	return answer, event, last
}

// pci returns the answer of a machine with four slots to query-pci.
func (c *cards) pci() string {
	var slots []string
	for i := range 4 {
		var in []string
		for id, slot := range c.slots {
			if slot == argv.Slot(i) {
				in = append(in, fmt.Sprintf(`{"qdev_id":%q}`, id))
			}
		}
		slots = append(slots, fmt.Sprintf(`{"qdev_id":%q,"pci_bridge":{"devices":[%s]}}`, argv.Slot(i),
			strings.Join(in, ",")))
	}
	return `[{"bus":0,"devices":[` + strings.Join(slots, ",") + `]}]`
}

// has returns a description of the cards.
func (c *cards) has() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return fmt.Sprint(c.netdevs, c.slots)
}

// until sets the command after which the connection ends, or 0 for none.
func (c *cards) until(command int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.begun, c.ends = 0, command
}

// refuse sets the commands that are refused.
func (c *cards) refuse(commands ...string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.refuses = commands
}

// occupy adds other devices to slots, or removes them.
func (c *cards) occupy(comes bool, devices ...string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for i, id := range devices {
		if delete(c.slots, id); comes {
			c.slots[id] = argv.Slot(i + 1)
		}
	}
}

// TestCards: cards are plugged into a free slot and unplugged with commands that QEMU accepts.
// Unplugging a missing card is no error.
func TestCards(t *testing.T) {
	run := t.TempDir()
	c := newCards(t, run)
	c.netdevs["card-lan"], c.slots["card-lan"] = "tap lan 0", "slot0"
	q, err := qmp.Dial(t.Context(), filepath.Join(run, monitorSocket))
	must(t, err)
	defer q.Close()
	nic := spec.NIC{Network: "data", MAC: "02:00:00:00:00:02"}
	at, plugged, err := findFreeSlot(t.Context(), q, argv.CardID(nic))
	if err != nil || at != "slot1" || plugged {
		t.Fatal(at, plugged, err)
	}
	card := argv.CardOf(&spec.Node{}, nic, at, false)
	if err := addNIC(t.Context(), q, card); err == nil {
		t.Error("a card was plugged whose link QEMU was not handed")
	}
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	must(t, q.PassFile(t.Context(), argv.Tap(nic, 0), null))
	must(t, addNIC(t.Context(), q, card))
	if got := c.has(); got != "map[card-data:tap data 0 card-lan:tap lan 0] map[card-data:slot1 card-lan:slot0]" {
		t.Error(got)
	}
	for range 2 {
		must(t, unplugDevice(t.Context(), q, argv.CardID(nic)))
		must(t, removeNICBackend(t.Context(), q, nic))
	}
	if got := c.has(); got != "map[card-lan:tap lan 0] map[card-lan:slot0]" {
		t.Error(got)
	}
	c.refuse("device_del", "netdev_del")
	if unplugDevice(t.Context(), q, argv.CardID(nic)) == nil || removeNICBackend(t.Context(), q, nic) == nil {
		t.Error("what QEMU refuses to do has been done")
	}
}

// TestRewireKilled: a run that plugs or unplugs interfaces may be killed at any step. Then the
// record lists what is in doubt, and the links are removed when the node stops. The next run
// completes the change, whatever it wants. No link is left, and the guest's file never names an
// interface that the machine lacks. The test runs in namespaces of its own.
func TestRewireKilled(t *testing.T) {
	need.Integration(t)
	if !need.Alone(t, "--net", "--mount", "--propagation", "private") {
		return
	}
	must(t, unix.Mount("run", "/run", "tmpfs", 0, ""))
	must(t, unix.Mount("sys", "/sys", "sysfs", 0, "")) // shows the links of this network namespace
	must(t, exec.Command("ip", "link", "add", "orbdata", "type", "bridge").Run())
	e := New(host.Dirs{State: t.TempDir(), Run: t.TempDir()}, image.Open(t.TempDir()))
	lan := spec.NIC{Name: "eth0", Network: "lan", HostIfName: "orvlan", MAC: "02:00:00:00:00:01",
		Address: netip.MustParsePrefix("10.1.0.2/24"), MTU: 1500}
	data := spec.NIC{Name: "eth1", Network: "data", Bridge: "orbdata", HostIfName: "orvdata", MAC: "02:00:00:00:00:02",
		Address: netip.MustParsePrefix("10.2.0.2/24"), MTU: 1500}
	less := &spec.Node{Site: "s", Name: "n", ID: 1, Engine: Name, NICs: []spec.NIC{lan}}
	more := *less
	more.NICs = []spec.NIC{lan, data}
	ref := engine.RefOf(less)
	m := e.machine(ref)
	must(t, os.MkdirAll(m.Path(), 0o700))
	must(t, m.Write(&nodedir.Record{Node: *less}))
	must(t, writeGuestNICs(e.Dirs, ref, less.NICs))
	c := newCards(t, m.Run)
	c.netdevs["card-lan"], c.slots["card-lan"] = "tap lan 0", "slot0"

	// change does what Change does to a running node. It accepts the error of a guest without an
	// agent for added cards.
	change := func(node *spec.Node) error {
		t.Helper()
		old, err := e.Record(ref)
		must(t, err)
		err = rewire(t.Context(), e.guests, old, node)
		if err != nil && !strings.Contains(err.Error(), "its guest could not configure it") {
			return err
		}
		return m.Write(&nodedir.Record{Node: *node})
	}
	sound := func() {
		t.Helper()
		r, err := e.Record(ref)
		must(t, err)
		var tells []boot.NIC
		text, err := os.ReadFile(vm.GuestFilePath(e.Dirs, ref, boot.NICsFile))
		must(t, err)
		must(t, json.Unmarshal(text, &tells))
		for _, nic := range tells {
			if !strings.Contains(c.has(), "card-"+map[string]string{"eth0": "lan", "eth1": "data"}[nic.Name]+":slot") {
				t.Errorf("the guest is told of %s, and the machine has %s", nic.Name, c.has())
			}
		}
		_, laid := os.Lstat("/sys/class/net/orvdata")
		if laid == nil && !slices.Contains(r.NICs, data) {
			t.Errorf("there is a link that is not on record: %+v", r.NICs)
		}
		if surely := len(r.NICs) == 2 && len(r.Doubt) == 0; surely &&
			(ends.BridgeOf("orvdata") != "orbdata" || !strings.Contains(c.has(), "card-data:slot1") || len(tells) != 2) {
			t.Errorf("it is said to have two interfaces, and has %s; its guest is told of %+v", c.has(), tells)
		}
	}
	whole := func(node *spec.Node) {
		t.Helper()
		c.until(0)
		must(t, change(node))
		sound()
		want := "map[card-lan:tap lan 0] map[card-lan:slot0]"
		if len(node.NICs) == 2 {
			want = "map[card-data:tap data 0 card-lan:tap lan 0] map[card-data:slot1 card-lan:slot0]"
		} else if _, err := os.Lstat("/sys/class/net/orvdata"); err == nil {
			t.Error("the link is left")
		}
		if r, err := e.Record(ref); err != nil || len(r.NICs) != len(node.NICs) || len(r.Doubt) > 0 || c.has() != want {
			t.Errorf("%+v, %v; the machine has %s", r, err, c.has())
		}
	}
	kills := 0
	for _, to := range []*spec.Node{&more, less} {
		from := map[bool]*spec.Node{true: less, false: &more}[to == &more]
		for _, then := range []*spec.Node{to, from} {
			for kill := 1; ; kill++ {
				whole(from)
				c.until(kill)
				if err := change(to); err == nil {
					break // the change ended before
				}
				kills++
				sound()
				r, err := e.Record(ref)
				must(t, err)
				if !slices.Equal(r.Doubt, []string{"data"}) {
					t.Errorf("killed at %d: in doubt is %q", kill, r.Doubt)
				}
				whole(then)
			}
		}
	}
	if kills != 2*(4+2) { // query-pci, getfd, netdev_add, device_add; device_del, netdev_del
		t.Errorf("killed %d times", kills)
	}

	// What QEMU refuses is undone at once, except for the record.
	whole(less)
	c.refuse("device_add")
	err := change(&more)
	if problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "node n: network data cannot be plugged") {
		t.Error(err)
	}
	if _, err := os.Lstat("/sys/class/net/orvdata"); err == nil || strings.Contains(c.has(), "data") {
		t.Errorf("it is left: %s", c.has())
	}
	c.refuse()
	whole(less)

	// A machine whose slots are all taken, and one that an earlier version has started.
	c.occupy(true, "a", "b", "d")
	if err := change(&more); err == nil || !strings.Contains(err.Error(), "has no free slot") {
		t.Error(err)
	}
	c.occupy(false, "a", "b", "d")
	whole(less)
	must(t, os.Remove(vm.GuestFilePath(e.Dirs, ref, boot.NICsFile)))
	if err := change(&more); err == nil || !strings.Contains(err.Error(), "started by an earlier version") {
		t.Error(err)
	}
	r, err := e.Record(ref)
	must(t, err)
	must(t, recordInDoubt(m.Dir, r, more.NICs, []spec.NIC{data}))
	must(t, writeRecordedNICs(e.Dirs, m, r)) // as when it is started
	if r, err := e.Record(ref); err != nil || len(r.Doubt) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
