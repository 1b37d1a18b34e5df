package boot

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/test/need"
)

// TestTold checks that a machine reads its interfaces from the host's file, and only within its
// root.
func TestTold(t *testing.T) {
	root := t.TempDir()
	if _, err := readNICs(root); err == nil ||
		!strings.Contains(err.Error(), "the host's list of network interfaces cannot be read") {
		t.Error(err)
	}
	file := filepath.Join(root, NICsFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"mac":"02:00:00:00:00:01","name":"eth0","address":"10.1.0.2/24","mtu":1500}]`)
	nics, err := readNICs(root)
	if err != nil || len(nics) != 1 ||
		nics[0] != (NIC{MAC: "02:00:00:00:00:01", Name: "eth0", Address: netip.MustParsePrefix("10.1.0.2/24"), MTU: 1500}) {
		t.Errorf("%+v, %v", nics, err)
	}
	write("no interfaces")
	if _, err := readNICs(root); err == nil || !strings.Contains(err.Error(), NICsFile) {
		t.Error(err)
	}
	if err := os.Rename(file, filepath.Join(filepath.Dir(root), "outside")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../outside", file); err != nil {
		t.Fatal(err)
	}
	if _, err := readNICs(root); err == nil {
		t.Error("it was read outside of the root")
	}
}

// TestJoin checks that interfaces that appear while the machine runs are configured, under any
// kernel name, and that a missing one is reported. It runs in a network namespace of its own.
func TestJoin(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	add := func(name, mac string) {
		must(exec.Command("ip", "link", "add", name, "address", mac, "type", "veth", "peer", "name", "of-"+name).Run())
	}
	add("eth0", "02:00:00:00:00:01")
	add("eth1", "02:00:00:00:00:03") // becomes eth2
	nics := []NIC{
		{MAC: "02:00:00:00:00:02", Name: "eth1", Address: netip.MustParsePrefix("10.2.0.2/24"), Gateway: "10.2.0.1",
			MTU: 9000},
		{MAC: "02:00:00:00:00:03", Name: "eth2", Address: netip.MustParsePrefix("10.3.0.2/24"), MTU: 1500},
	}
	done := make(chan error, 1)
	go func() { done <- Join(t.Context(), nics) }()
	time.Sleep(2 * joinInterval)
	select {
	case err := <-done:
		t.Fatalf("it does not wait for an interface: %v", err)
	default:
	}
	add("eth7", "02:00:00:00:00:02")
	must(<-done)
	must(Join(t.Context(), nics)) // a second call changes nothing
	for i, nic := range nics {
		l, err := netlink.LinkByName(nic.Name)
		must(err)
		addresses, err := netlink.AddrList(l, netlink.FAMILY_V4)
		must(err)
		if l.Attrs().HardwareAddr.String() != nic.MAC || l.Attrs().MTU != nic.MTU || len(addresses) != 1 ||
			addresses[0].IPNet.String() != nic.Address.String() {
			t.Errorf("interface %d is %+v with %v", i, l.Attrs(), addresses)
		}
		if text, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + nic.Name + "/accept_ra"); err == nil &&
			string(text) != "0\n" {
			t.Errorf("interface %d believes router advertisements: %s", i, text)
		}
	}
	routes, err := exec.Command("ip", "route", "show", "default").Output()
	if err != nil || !strings.HasPrefix(string(routes), "default via 10.2.0.1 dev eth1") {
		t.Errorf("%s, %v", routes, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*joinInterval)
	defer cancel()
	if err := Join(ctx, []NIC{{MAC: "02:00:00:00:00:09", Name: "eth3"}}); err == nil ||
		!strings.Contains(err.Error(), "eth3 (02:00:00:00:00:09): the machine has only") {
		t.Error(err)
	}
}
