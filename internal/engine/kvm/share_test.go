package kvm

import (
	"strings"
	"testing"
)

// TestSharing: the two virtiofsd take their options in different words. A comma in a path is no end of an option.
func TestSharing(t *testing.T) {
	in := strings.Join(sharing("7.2.22", "/a,b"), " ")
	if !strings.Contains(in, `source=/a\,b`) || !strings.Contains(in, "sandbox=namespace") || !strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
	in = strings.Join(sharing("1.13.2", "/a,b"), " ")
	if !strings.Contains(in, "--shared-dir=/a,b") || !strings.Contains(in, "--sandbox=namespace") || !strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
}
