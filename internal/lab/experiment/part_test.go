package experiment

import (
	"slices"
	"strings"
	"testing"
)

// TestOf: a part of an experiment has the named tests in the order of the file, the settings in
// which they run, and a twin of a container.
func TestOf(t *testing.T) {
	const text = "[setting.veth]\n[setting.mac]\nnetwork = \"macvlan\"\n[setting.none]\nmissing = \"it is not here\"\n" +
		"[test.a]\nkind = \"echo\"\nonly = [\"veth\"]\n[test.b]\nkind = \"echo\"\nonly = [\"mac\"]\n[test.c]\nkind = \"echo\"\n"
	e, err := parse("x.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]struct{ part, settings string }{
		"":      {"", "veth, veth again, mac, none"},
		"c,a,b": {"", "veth, veth again, mac, none"},
		"b":     {"b", "mac, mac again"},
		"b,a":   {"a, b", "veth, veth again, mac"},
		"c":     {"c", "veth, veth again, mac, none"},
	} {
		part, err := e.WithTests(strings.FieldsFunc(names, func(c rune) bool { return c == ',' }))
		if err != nil {
			t.Fatal(err)
		}
		var settings []string
		for _, s := range part.Settings {
			settings = append(settings, s.Name)
		}
		if got := strings.Join(settings, ", "); got != want.settings || strings.Join(part.Part, ", ") != want.part {
			t.Errorf("%q: tests %v in settings %s, want %s in %s", names, part.Part, got, want.part, want.settings)
		}
		if want.part != "" && len(part.Tests) != len(part.Part) {
			t.Errorf("%q: %d tests", names, len(part.Tests))
		}
	}
	if len(e.Tests) != 3 || len(e.Settings) != 4 || e.Part != nil {
		t.Errorf("the experiment itself was changed: %+v", e)
	}
	e.Settings = slices.DeleteFunc(e.Settings, Setting.isTwin)
	if part, err := e.WithTests([]string{"b"}); err != nil || len(part.Settings) != 1 {
		t.Errorf("a part of an experiment without a twin has one: %+v %v", part.Settings, err)
	}
	for name, want := range map[string]string{"aa": "did you mean a?", "disk": "its tests: a, b, c"} {
		if _, err := e.WithTests([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", name, err, want)
		}
	}
}
