package kvm

import (
	"strings"
	"testing"
)

// TestSharing: the two versions of virtiofsd have different options. A comma in a path does not end
// an option.
func TestSharing(t *testing.T) {
	in := strings.Join(virtiofsdArgs("7.2.22", "/a,b", true), " ")
	if !strings.Contains(in, `source=/a\,b`) || !strings.Contains(in, "sandbox=namespace") ||
		!strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
	in = strings.Join(virtiofsdArgs("1.13.2", "/a,b", true), " ")
	if !strings.Contains(in, "--shared-dir=/a,b") || !strings.Contains(in, "--sandbox=namespace") ||
		!strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
}

// TestAnnounced: mounts in the root are announced to the guest as file systems of their own, except
// to a guest with an overlay above the root.
func TestAnnounced(t *testing.T) {
	for _, version := range []string{"7.2.22", "1.13.2"} {
		for _, announce := range []bool{false, true} {
			in := strings.ReplaceAll(strings.Join(virtiofsdArgs(version, "/", announce), " "), "_", "-")
			if strings.Contains(in, "announce-submounts") && !strings.Contains(in, "no-announce-submounts") != announce ||
				version[0] == '1' && !strings.Contains(in, "announce-submounts") {
				t.Errorf("%s: %s", version, in)
			}
		}
	}
}
