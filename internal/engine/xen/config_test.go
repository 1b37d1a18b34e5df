package xen

import (
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/guest/boot"
	"orrery/internal/host/xl"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

var update = flag.Bool("update", false, "write the golden files anew")

func aNode() *spec.Node {
	return &spec.Node{
		Site: "karoo", Name: "db1", ID: 7, Engine: Name, MachineID: site.MachineID("karoo", "db1"),
		Limits: site.Limits{Cpus: 1.5, Pin: "2-3", Memory: 300<<20 + 1},
		NICs: []spec.NIC{
			{Name: "eth0", Network: "lan", Bridge: "orb1", HostIfName: "orv1", MAC: "02:00:00:00:00:01",
				Address: netip.MustParsePrefix("10.8.0.7/24"), Gateway: "10.8.0.1", MTU: 1500},
			{Name: "eth1", Network: "data", Bridge: "orb2", HostIfName: "orv2", MAC: "02:00:00:00:00:02",
				Address: netip.MustParsePrefix("10.9.0.7/24"), MTU: 9000},
		},
	}
}

func aDomain() *domain {
	return &domain{
		name: "orrery-karoo-7", kernel: "/state/layers/k/vmlinux", initramfs: "/state/layers/k/initramfs-1",
		model: "/run/orrery/vm/karoo/7/model", run: "/run/orrery/vm/karoo/7",
		shares: []share{
			{"root", "/state/sites/karoo/nodes/7/rootfs", "/"},
			{"mount0", "/state/sites/karoo/nodes/7/binds/etc", "/etc/orrery"},
			{"mount1", "/state/sites/karoo/nodes/7/binds/0123", "/srv/data"},
		},
	}
}

// TestConfig: the complete configuration of a domain, for each type.
func TestConfig(t *testing.T) {
	for _, kind := range append(site.XenTypes, "") {
		n := aNode()
		n.Xen.Type = kind
		if kind == "" { // a node without any settings
			n.Limits, n.NICs = site.Limits{}, nil
		}
		got, err := aDomain().config(n)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "domain-"+kind+".cfg")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s", path, err, got)
		}
		for line := range strings.Lines(got) {
			if word, ok := strings.CutPrefix(line, "cmdline = "); ok {
				config, err := boot.Decode(strings.Trim(strings.TrimSpace(word), `"`))
				if err != nil || config.Root != boot.NinePXen || len(config.NICs) != len(n.NICs) || len(config.Mounts) != 2 ||
					config.Mounts[1] != (boot.Mount{Tag: "mount1", Path: "/srv/data"}) {
					t.Errorf("the guest is told %+v, %v", config, err)
				}
			}
		}
	}
}

// TestCap: a fraction of a processor becomes a cap, and whole processors become a number of
// processors.
func TestCap(t *testing.T) {
	for cpus, want := range map[float64]string{0: "vcpus = 1\non_", 0.5: "vcpus = 1\ncap = 50\n", 1: "vcpus = 1\non_",
		2: "vcpus = 2\non_", 2.25: "vcpus = 3\ncap = 225\n"} {
		n := aNode()
		n.Limits = site.Limits{Cpus: cpus}
		if got, err := aDomain().config(n); err != nil || !strings.Contains(got, want) {
			t.Errorf("%v processors: %v\n%s", cpus, err, got)
		}
	}
}

// TestConfigOfDisks: the complete configuration of a domain that boots a foreign disk, for each
// type.
func TestConfigOfDisks(t *testing.T) {
	for _, kind := range site.XenTypes {
		n := aNode()
		n.Xen.Type, n.Disk = kind, site.Disk{Firmware: site.BIOS, Guest: site.NoGuest}
		d := &domain{
			name: "orrery-karoo-7", kernel: xl.Loaders[kind], model: "/run/orrery/vm/karoo/7/model",
			run:    "/run/orrery/vm/karoo/7",
			drives: []drive{{bootDevice, "/state/sites/karoo/nodes/7/rootfs/disk.qcow2", "qcow2"}},
		}
		got, err := d.config(n)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "disk-"+kind+".cfg")
		if *update {
			must(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s", path, err, got)
		}
	}
}

// TestConfigRefuses: paths that the toolstack would misread, and lines that it would cut off, are
// refused before it is run.
//
// Promise (Virtual machines): No path or word of a site file becomes another setting of a guest of
// Xen.
func TestConfigRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		change func(n *spec.Node, d *domain)
		kind   problem.Kind
		want   string
	}{
		"a comma": {func(_ *spec.Node, d *domain) { d.shares[0].dir = "/state,path=/etc" }, problem.Unable, "ORRERY_STATE"},
		"a quote": {func(_ *spec.Node, d *domain) { d.run = `/run/"` }, problem.Unable, "ORRERY_RUN"},
		"a line":  {func(_ *spec.Node, d *domain) { d.kernel = "/x\ndisk = 1" }, problem.Unable, "does not accept"},
		"a disk": {func(_ *spec.Node, d *domain) { d.drives = []drive{{"xvde", "/state/a,script=/x", "raw"}} },
			problem.Unable, "ORRERY_STATE"},
		"too long": {func(_ *spec.Node, d *domain) { d.run = "/run/" + strings.Repeat("x", 100) }, problem.Unable,
			"too long"},
		"pv": {func(n *spec.Node, _ *domain) {
			n.Xen.Type = site.PV
			for range 6 {
				n.NICs = append(n.NICs, n.NICs[0])
			}
		}, problem.Mistake, "accepts 1023"},
	} {
		n, d := aNode(), aDomain()
		c.change(n, d)
		if _, err := d.config(n); problem.ExitCode(err) != int(c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestScripts: the complete scripts that the toolstack runs. A path in them may have any character.
func TestScripts(t *testing.T) {
	f := &environment{domain: *aDomain(), record: "/state/sites/karoo/nodes/7", orrery: "/opt/o'rrery/orrery"}
	if got, want := f.modelScript(), `#!/bin/sh
exec '/opt/o'\''rrery/orrery' xen-model '/run/orrery/vm/karoo/7/backend.json' "$@"
`; got != want {
		t.Errorf("got %s", got)
	}
	if got, want := f.linkScript(1), `#!/bin/sh -e
[ "$1" = online ] || exit 0
'/opt/o'\''rrery/orrery' xen-link '/state/sites/karoo/nodes/7' 1 "$vif"
exec xenstore-write "$XENBUS_PATH/hotplug-status" connected
`; got != want {
		t.Errorf("got %s", got)
	}
}

// TestBackendTravels: the toolstack's child reads the backend as it was written.
func TestBackendTravels(t *testing.T) {
	f := &environment{}
	f.backend.At, f.backend.User, f.backend.Shares, f.backend.Devices, f.backend.Program = "/cell", 65536,
		[]string{"/a"}, []string{"xen/privcmd"}, "/usr/libexec/xen-qemu-system-i386"
	text, err := json.Marshal(f.backend)
	if err != nil {
		t.Fatal(err)
	}
	want := f.backend
	f = &environment{}
	if err := json.Unmarshal(text, &f.backend); err != nil || spec.Digest(f.backend) != spec.Digest(want) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestEmulated(t *testing.T) {
	for text, want := range map[string]bool{
		"processor\t: 0\nmodel name\t: QEMU Virtual CPU version 2.5+\n": true,
		"model name : QEMU TCG CPU version 2.5+\n":                      true,
		"model name\t: AMD EPYC 7551 32-Core Processor\n":               false, "": false,
	} {
		if emulated(text) != want {
			t.Errorf("%q", text)
		}
	}
}
