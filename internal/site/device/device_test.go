package device

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParse: what a site file may write, and how it is displayed.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{"/dev/fuse", "/dev/fuse"},
		{"/dev/disk/by-id/nvme-eui.0025_1-part1", "/dev/disk/by-id/nvme-eui.0025_1-part1"},
		{"block:8:*", "block:8:*"},
		{"char:195:255", "char:195:255"},
		{"usb:1d6b:0002", "usb:1d6b:0002"},
		{map[string]any{"path": "/dev/fuse", "mode": "rw", "shared": true}, "/dev/fuse, shared"},
		{map[string]any{"path": "/dev/sdb", "mode": "r"}, "/dev/sdb, only read"},
		{map[string]any{"path": "/dev/sdb", "mode": "w"}, "/dev/sdb, only written"},
		{map[string]any{"path": "/dev/sdb", "shared": false}, "/dev/sdb"},
	} {
		var d Device
		if p := d.Parse(c.value); p != nil || d.String() != c.want {
			t.Errorf("%v is %v, %v", c.value, d, p)
		}
	}
}

// TestMistakes: what is not a device, or one that no node gets.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{int64(8), "not a device"},
		{nil, "not a device"},
		{"", "not a device"},
		{"fuse", "not a device"},
		{"/dev/", "not a device"},
		{"/dev/../etc/shadow", "not a device"},
		{"/dev/a//b", "not a device"},
		{"/dev/a b", "not a device"},
		{"/dev/a\n", "not a device"},
		{"/dev/\x1b[31m", "not a device"},
		{"/dev/" + strings.Repeat("a", 300), "not a device"},
		{"/srv/data", "not a file below /dev"},
		{"block:8", "not a device"},
		{"block:*:*", "not a device"},
		{"block:99999:1", "not a device"},
		{"disk:8:1", "not a device"},
		{"usb:1D6B:0002", "not a device"},
		{"usb:1d6b:*", "not a device"},
		{"/dev/mem", "memory of the host"},
		{"/dev/kmem", "memory of the host"},
		{"/dev/port", "memory of the host"},
		{"/dev/null", "its own /dev/null"},
		{"/dev/pts/0", "its own /dev/pts/0"},
		{"/dev/shm/x", "its own /dev/shm/x"},
		{"/dev/console", "its own /dev/console"},
		{map[string]any{}, "no path"},
		{map[string]any{"path": int64(1)}, "path"},
		{map[string]any{"path": "/dev/fuse", "mode": "x"}, "not a mode"},
		{map[string]any{"path": "/dev/fuse", "mode": "rwm"}, "not a mode"},
		{map[string]any{"path": "/dev/fuse", "mode": ""}, "not a mode"},
		{map[string]any{"path": "/dev/fuse", "mode": int64(7)}, "not a mode"},
		{map[string]any{"path": "/dev/fuse", "shared": "yes"}, "shared"},
		{map[string]any{"path": "/dev/fuse", "owner": "x"}, "unknown key"},
	} {
		var d Device
		if p := d.Parse(c.value); p == nil || !strings.Contains(p.What, c.want) || p.Cure == "" {
			t.Errorf("%v: %v", c.value, p)
		}
	}
}

// TestClass: the numbers of classes and USB devices.
func TestClass(t *testing.T) {
	for path, want := range map[string]Class{
		"block:8:*": {Block: true, Major: 8, All: true}, "char:195:255": {Major: 195, Minor: 255},
		"block:7:0": {Block: true, Major: 7},
	} {
		if c, ok := (Device{Path: path}).Class(); !ok || c != want {
			t.Errorf("%s: %+v, %v", path, c, ok)
		}
	}
	if v, p, ok := (Device{Path: "usb:1d6b:0002"}).USB(); v != "1d6b" || p != "0002" || !ok {
		t.Error(v, p, ok)
	}
	if _, ok := (Device{Path: "/dev/fuse"}).Class(); ok {
		t.Error("a file is a class")
	}
}

// TestEncode: a word is read as the device that it was made from, and no other word is.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Device{
			Path: rapid.SampledFrom([]string{"/dev/fuse", "block:8:*", "usb:1d6b:0002", "/dev/disk/by-id/a=b"}).
				Draw(t, "path"),
			Mode:   rapid.SampledFrom([]string{"", Read, Write}).Draw(t, "mode"),
			Shared: rapid.Bool().Draw(t, "shared"),
		}
		if got, ok := Decode(d.Encode()); !ok || got != d {
			t.Fatalf("%s is read as %v, %v", d.Encode(), got, ok)
		}
	})
	for _, word := range []string{"", ";;", "rw;;", "rw;;/etc/shadow", "x;;/dev/fuse", "rw;yes;/dev/fuse", "rw;;/dev/mem",
		"rw;;/dev/fuse\n"} {
		if d, ok := Decode(word); ok {
			t.Errorf("%q is %v", word, d)
		}
	}
}
