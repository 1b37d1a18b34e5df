package kvm

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestHanded: QEMU receives exactly the files that its command line refers to, in that order.
func TestHanded(t *testing.T) {
	open := passedFiles{"record": os.Stdin, "share": os.Stdout}
	if all, err := open.inOrder([]string{"share", "record"}); err != nil ||
		!slices.Equal(all, []*os.File{os.Stdout, os.Stdin}) {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := open.inOrder([]string{"share", "record", "console"}); err == nil ||
		!strings.Contains(err.Error(), "console") {
		t.Errorf("without the console: %v", err)
	}
	if _, err := open.inOrder([]string{"share"}); err == nil {
		t.Error("QEMU is handed a file of which it is not told")
	}
}
