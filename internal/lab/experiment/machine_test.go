package experiment

import (
	"slices"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// TestOn: a host that cannot have a setting is told with what it lacks, and one that emulates processors with that.
func TestOn(t *testing.T) {
	e, err := parse("x.toml", []byte("again = \"none\"\n[setting.veth]\n[setting.kvm]\nengine = \"kvm\"\n[setting.docker]\nengine = \"docker\"\n[test.x]\nkind = \"echo\"\n"))
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
		{"unable", map[string]observe.Capabilities{site.LXC: {}, site.KVM: {Accel: observe.TCG, Unable: observe.Lack{What: "no QEMU", Cure: "install it"}}},
			told{missing: "no QEMU; the cure: install it"}},
		{"none", map[string]observe.Capabilities{site.LXC: {}}, told{missing: "this host has no engine kvm"}},
	} {
		here := e.On(c.engines)
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
