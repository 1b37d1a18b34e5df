package kvm

import (
	"strings"
	"testing"
)

// TestSharing: the two virtiofsd take their options in different words. A comma in a path is no end
// of an option.
func TestSharing(t *testing.T) {
	in := strings.Join(sharing("7.2.22", "/a,b", true), " ")
	if !strings.Contains(in, `source=/a\,b`) || !strings.Contains(in, "sandbox=namespace") ||
		!strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
	in = strings.Join(sharing("1.13.2", "/a,b", true), " ")
	if !strings.Contains(in, "--shared-dir=/a,b") || !strings.Contains(in, "--sandbox=namespace") ||
		!strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
}

// TestAnnounced: what is mounted in the root is a file system of its own to the guest, but to one
// that has an overlay above it.
func TestAnnounced(t *testing.T) {
	for _, version := range []string{"7.2.22", "1.13.2"} {
		for _, announce := range []bool{false, true} {
			in := strings.ReplaceAll(strings.Join(sharing(version, "/", announce), " "), "_", "-")
			if strings.Contains(in, "announce-submounts") && !strings.Contains(in, "no-announce-submounts") != announce ||
				version[0] == '1' && !strings.Contains(in, "announce-submounts") {
				t.Errorf("%s: %s", version, in)
			}
		}
	}
}
