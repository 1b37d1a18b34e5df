package spec

import (
	"testing"

	"orrery/internal/site"
)

// TestDisk: a node with a disk image has no other layer. What roles would put in layers is part of
// its configuration.
func TestDisk(t *testing.T) {
	s := observatory()
	s.Images = append(s.Images, site.Image{Name: "cloud", Import: "/srv/cloud.qcow2", Stamp: "1"})
	s.Nodes[0].Image, s.Nodes[0].Engine = "cloud", site.KVM
	m := NewBuilder(s)
	n, err := m.Node(&s.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	chain := m.Layers(&s.Nodes[0])
	if len(chain) != 1 || !chain[0].IsDisk() || chain[0].Digest != n.Base || n.Kernel != "" || n.Layer != "" ||
		len(n.Layers()) != 1 {
		t.Errorf("%+v on %d layers", n, len(chain))
	}
	if want := (site.Disk{Firmware: site.BIOS, Guest: site.CloudInit, Login: site.DefaultLogin,
		Bus: site.Virtio}); n.Disk != want || !n.Imported() {
		t.Errorf("%+v", n.Disk)
	}
	for _, part := range []string{"base: apt", "receptor: apt", "receptor: pip", "receptor: requirements",
		"receptor: file /usr/bin/receptor", "receptor: step compile", "receptor: step seed"} {
		if n.Config.Parts[part] == "" {
			t.Errorf("%s is no part of %v", part, n.Config.Parts)
		}
	}
	s.Nodes[0].Requirements.Text = "aiokatcp==1.9\n"
	again, err := NewBuilder(s).Node(&s.Nodes[0])
	if err != nil || again.Base != n.Base ||
		DescribeChanges(n.Config.Parts, again.Config.Parts) != "receptor: requirements changed" {
		t.Errorf("%s, %v", DescribeChanges(n.Config.Parts, again.Config.Parts), err)
	}
	s.Images[1].Stamp = "2"
	if other := NewBuilder(s).Base(&s.Nodes[0]); other.Digest == n.Base {
		t.Error("another file is the same image")
	}
	if plain := nodeOf(t, s, 1); plain.Imported() {
		t.Errorf("%+v", plain)
	}
}
