package xl

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// made is the configuration of a domain in a state file of xl.
const made = `{
    "c_info": { "type": "pv", "name": "orrery-y-1", "uuid": "1553313d-da5e-4d63-b651-7abbed07abee", "run_hotplug_scripts": "True" },
    "b_info": { "max_vcpus": 1, "max_memkb": 131072, "kernel": "/usr/lib/grub-xen/grub-x86_64-xen.bin", "type.pv": { } },
    "disks": [ { "pdev_path": "/x/disk.qcow2", "vdev": "xvda", "backend": "qdisk", "format": "qcow2", "readwrite": 1 } ],
    "nics": [ { "devid": 0, "mac": "02:00:00:00:00:01", "bridge": "orb1" } ]
}
`

// saved returns a state file of a domain, with a changed header.
func saved(t testing.TB, config string, change func(*savedHeader)) []byte {
	t.Helper()
	h := savedHeader{ByteOrder: savedOrder, Mandatory: savedJSON | savedStream2, Length: uint32(4 + len(config) + 1)}
	copy(h.Magic[:], savedMagic)
	if change != nil {
		change(&h)
	}
	text, err := binary.Append(nil, binary.LittleEndian, h)
	if err != nil {
		t.Fatal(err)
	}
	text = binary.LittleEndian.AppendUint32(text, uint32(len(config)+1))
	return append(append(text, config...), "\x00LibxlFmt and so on"...)
}

// TestSaved checks that the configuration is read from the beginning of a state file. Any other
// file is rejected, and lengths in it are limited.
func TestSaved(t *testing.T) {
	want := Details{ID: -1, Name: "orrery-y-1", UUID: "1553313d-da5e-4d63-b651-7abbed07abee", Type: "pv",
		Kernel: "/usr/lib/grub-xen/grub-x86_64-xen.bin", VCPUs: 1, Disks: 1, NICs: []string{"02:00:00:00:00:01"}}
	got, err := ParseSaved(bytes.NewReader(saved(t, made, nil)))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "saved", *got, err, want)
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":         {nil, "not a state"},
		"something else":  {[]byte(strings.Repeat("x", 100)), "not a state"},
		"another machine": {saved(t, made, func(h *savedHeader) { h.ByteOrder = 0x04030201 }), "another kind"},
		"a later version": {saved(t, made, func(h *savedHeader) { h.Mandatory |= 4 }), "unknown version of xl (0x7)"},
		"an old version":  {saved(t, made, func(h *savedHeader) { h.Mandatory = 0 }), "too old"},
		"much":            {saved(t, made, func(h *savedHeader) { h.Length = 1 << 31 }), "not a state"},
		"little":          {saved(t, made, func(h *savedHeader) { h.Length = 3 }), "not a state"},
		"cut short":       {saved(t, made, nil)[:200], "cut short"},
		"longer inside":   {saved(t, made, func(h *savedHeader) { h.Length = 50 }), "not a state"},
		"no JSON":         {saved(t, "name = x", nil), "is invalid"},
		"JSON beside":     {saved(t, `{}}, {"config": {"c_info": {"name": "x"}}`, nil), "is invalid"},
		"nobody":          {saved(t, `{"c_info": {}}`, nil), "is invalid"},
	} {
		if d, err := ParseSaved(bytes.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", what, d, err)
		}
	}
}

func FuzzSaved(f *testing.F) {
	f.Add(saved(f, made, nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := ParseSaved(bytes.NewReader(text)); err == nil && d.Name == "" {
			t.Errorf("%+v", d)
		}
	})
}
