package experiment

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// TestOn: a setting that the host does not support says what is missing, and an emulated one is
// marked.
func TestOn(t *testing.T) {
	e, err := parse("x.toml", []byte(
		"again = \"none\"\n[setting.veth]\n[setting.kvm]\nengine = \"kvm\"\n[setting.docker]\nengine = \"docker\"\n[test.x]\nkind = \"echo\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	docker := e.Settings[2].Missing
	if e.Settings[1].Network != site.Virtio || e.Settings[1].Missing != "" || docker == "" {
		t.Fatalf("%+v", e.Settings)
	}
	type told struct {
		missing  string
		emulated bool
	}
	for _, c := range []struct {
		name    string
		engines map[string]observe.Capabilities
		want    told
	}{
		{"fast", map[string]observe.Capabilities{site.LXC: {}, site.KVM: {Accel: observe.KVM}}, told{}},
		{"slow", map[string]observe.Capabilities{site.LXC: {}, site.KVM: {Accel: observe.TCG}}, told{emulated: true}},
		{"unable", map[string]observe.Capabilities{site.LXC: {},
			site.KVM: {Accel: observe.TCG, Unable: observe.Missing{What: "no QEMU", Cure: "install it"}}},
			told{missing: "no QEMU; install it"}},
		{"none", map[string]observe.Capabilities{site.LXC: {}}, told{missing: "this host has no engine kvm"}},
	} {
		here := e.ForHost(c.engines)
		var got []told
		for _, s := range here.Settings {
			got = append(got, told{s.Missing, s.Emulated})
		}
		if want := []told{{}, c.want, {missing: docker}}; !slices.Equal(got, want) {
			t.Errorf("%s: %+v, not %+v", c.name, got, want)
		}
	}
	if e.Settings[1].Missing != "" || e.Settings[1].Emulated {
		t.Errorf("the experiment itself is another: %+v", e.Settings[1])
	}
}

// TestDisks: a setting with partitions has as many nodes as there are devices. Without devices it
// is marked as missing, as in the paper's table.
func TestDisks(t *testing.T) {
	const head = "[setting.file]\nengine = \"kvm\"\ndisk = \"file\"\ncache = \"writeback\"\n[setting.partition]\nengine = \"kvm\"\ndisk = \"partition\"\n"
	const test = "[test.x]\nkind = \"echo\"\ncopies = [1, 2]\n"
	e, err := parse("x.toml", []byte(head+test))
	if err != nil {
		t.Fatal(err)
	}
	if s := e.Settings[0]; s.Disk != File || s.Cache != "writeback" || s.Missing != "" {
		t.Errorf("%+v", s)
	}
	if s := e.Settings[2]; s.Name != "partition" || !strings.Contains(s.Missing, "devices = ") {
		t.Errorf("%+v", s)
	}
	e, err = parse("x.toml", []byte(head+"devices = [\"/dev/vg/a\", \"/dev/vg/b\"]\n"+test))
	if err != nil || e.Settings[2].Missing != "" {
		t.Errorf("%+v, %v", e, err)
	}
	_, err = parse("x.toml", []byte(head+"devices = [\"/dev/vg/a\"]\n"+test))
	if err == nil || !strings.Contains(err.Error(),
		`each node needs its own device, and devices has 1 (write only = ["file"] in the test)`) {
		t.Error(err)
	}
	_, err = parse("x.toml", []byte("again = \"partition\"\n"+head+"devices = [\"/dev/vg/a\", \"/dev/vg/b\"]\n"+test))
	if err == nil || !strings.Contains(err.Error(), "cannot exist twice") {
		t.Error(err)
	}
}

// TestCached: a setting with a disk does not use the host's cache unless it says so, and Cached
// returns the reason for any caching.
func TestCached(t *testing.T) {
	const head = "again = \"none\"\n[test.x]\nkind = \"echo\"\n[setting.a]\n"
	for keys, want := range map[string]struct{ cache, why string }{
		"":                                  {"", ""},
		"engine = \"kvm\"":                  {"", "virtiofs"},
		"engine = \"kvm\"\ndisk = \"file\"": {"none", ""},
		"engine = \"kvm\"\ndisk = \"qcow2\"\ncache = \"directsync\"": {"directsync", ""},
		"engine = \"kvm\"\ndisk = \"file\"\ncache = \"writeback\"":   {"writeback", "cache = writeback"},
	} {
		e, err := parse("x.toml", []byte(head+keys))
		if err != nil {
			t.Fatal(err)
		}
		s := e.Settings[0]
		if why := s.CacheReason(); s.Cache != want.cache || !strings.Contains(why, want.why) ||
			(why == "") != (want.why == "") {
			t.Errorf("%q: cache %q, %q", keys, s.Cache, why)
		}
	}
}
