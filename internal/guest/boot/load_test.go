package boot

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	for _, c := range []struct {
		pattern, alias string
		want           bool
	}{
		{"pci:v00001AF4d*sv*sd*bc*sc*i*", "pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00", true},
		{"pci:v00008086d0000100Esv*sd*bc*sc*i*", "pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00", false},
		{"virtio:d00000001v*", "virtio:d00000001v00001AF4", true},
		{"virtio:d00000001v*", "virtio:d0000001Av00001AF4", false},
		{"fs-virtiofs", "fs-virtiofs", true},
		{"acpi*:QEMU0001:*", "acpi:QEMU0001:", true},
		{"[", "[", false},
	} {
		if got := matchesAlias(c.pattern, c.alias); got != c.want {
			t.Errorf("%s fits %s: %v", c.alias, c.pattern, got)
		}
	}
}

// aLoader returns a loader with the modules of a small kernel, and records what it loads.
func aLoader(loaded *[]string) *loader {
	return &loader{
		modules: []Module{
			{Name: "ring"}, {Name: "virtio", Needs: []string{"ring"}},
			{Name: "net", Needs: []string{"ring", "virtio", "built_in"}, Aliases: []string{"virtio:d00000001v*"}},
			{Name: "share", Needs: []string{"virtio"}, Aliases: []string{"fs-virtiofs", "virtio:d0000001Av*"}},
			{Name: "bad", Aliases: []string{"pci:bad"}},
		},
		loaded: map[string]bool{},
		insert: func(m *Module) error {
			if m.Name == "bad" {
				return errors.New("Exec format error")
			}
			*loaded = append(*loaded, m.Name)
			return nil
		},
	}
}

// TestLoad checks that the driver of each device is loaded once, after the modules that it needs.
func TestLoad(t *testing.T) {
	var loaded []string
	l := aLoader(&loaded)
	for _, alias := range []string{"virtio:d00000001v00001AF4", "virtio:d00000001v00001AF4", "pci:unknown",
		"fs-virtiofs"} {
		if err := l.load(alias); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(loaded, []string{"ring", "virtio", "net", "share"}) {
		t.Errorf("%v", loaded)
	}
	if err := l.load("pci:bad"); err == nil || !strings.Contains(err.Error(), "module bad") {
		t.Error(err)
	}
}
