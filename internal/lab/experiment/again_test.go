package experiment

import (
	"strings"
	"testing"
)

// TestAgain: the first setting that can exist twice is repeated, unless the file names another one
// or none.
func TestAgain(t *testing.T) {
	const settings = "[setting.vm]\nengine = \"kvm\"\n[setting.nic]\nnetwork = \"exclusive\"\ninterface = \"eth1\"\n[setting.veth]\n[setting.mac]\nnetwork = \"macvlan\"\n" +
		"[test.x]\nkind = \"echo\"\nonly = [\"veth\"]\n"
	for head, want := range map[string]string{"": "veth again", "again = \"mac\"\n": "mac again",
		"again = \"none\"\n": ""} {
		e, err := parse("x.toml", []byte(head+settings))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, s := range e.Settings {
			if s.Again != "" {
				if got = s.Name; e.Settings[i-1].Name != s.Again {
					t.Errorf("%s does not stand behind %s", s.Name, s.Again)
				}
			}
		}
		if got != want {
			t.Errorf("%q: twin %q, want %q", head, got, want)
		}
		if e.Tests[0].RunsIn("veth"+AgainSuffix) != true || e.Tests[0].RunsIn("mac"+AgainSuffix) {
			t.Errorf("%q: the twin is not in the tests of its setting only", head)
		}
	}
	for text, want := range map[string]string{
		"again = \"vet\"\n" + settings:      `x.toml:1: again = "vet": there is no such setting (did you mean "veth"?)`,
		"again = \"nic\"\n" + settings:      `x.toml:1: setting "nic" cannot exist twice`,
		settings + "[setting.veth-again]\n": `x.toml:12: setting "veth-again" has the name of a node of setting "veth again"`,
		"rounds_per_instance = \"many\"\n" +
			settings: `x.toml:1: rounds_per_instance: "many" is neither "auto" nor a number`,
		"rounds_per_instance = 0\n" + settings:                      `x.toml:1: rounds_per_instance: 0 is neither`,
		"disturbed = 0\n" + settings:                                `x.toml:1: disturbed = 0 is not a share`,
		"quiet = \"-1s\"\n" + settings:                              `x.toml:1: quiet: "-1s" is neither "none" nor a time`,
		"quiet = \"none\"\nrounds_per_instance = 2000\n" + settings: "x.toml:2: rounds_per_instance = 2000 is more than 1000",
	} {
		if _, err := parse("x.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestPinsBeyond: processors that the host lacks are reported with the other mistakes, if its
// processors are known.
func TestPinsBeyond(t *testing.T) {
	const text = "rounds = 3\nagain = \"none\"\n[setting.far]\npin = \"0,77\"\n[setting.near]\npin = \"1\"\n[test.x]\nkind = \"cpu\"\n"
	_, err := Parse("x.toml", []byte(text), "0-1")
	for _, says := range []string{"x.toml:1",
		"x.toml:4: setting far is pinned to processors 0,77, but this host has only 0-1 and lacks 77", "name processors from 0-1"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if err != nil && strings.Contains(err.Error(), "near") {
		t.Error(err)
	}
	if _, err := Parse("x.toml", []byte(text), ""); err == nil || strings.Contains(err.Error(), "pinned") {
		t.Errorf("of an unknown host: %v", err)
	}
}
