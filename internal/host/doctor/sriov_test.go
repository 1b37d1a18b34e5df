package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVirtualFunctions: the doctor says of each card how many functions it has, and what is missing.
func TestVirtualFunctions(t *testing.T) {
	m := machine{root: t.TempDir()}
	if got := virtualFunctions(m); len(got) != 1 || !got[0].OK || !strings.Contains(got[0].Value, "no network card") {
		t.Errorf("%+v", got)
	}
	const card = "sys/bus/pci/devices/0000:04:00.0/"
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(m.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(ok bool, words ...string) {
		t.Helper()
		got := virtualFunctions(m)
		if len(got) != 1 || got[0].OK != ok {
			t.Fatalf("%+v", got)
		}
		for _, word := range words {
			if text := got[0].Name + ": " + got[0].Value + " (" + got[0].Fix + ")"; !strings.Contains(text, word) {
				t.Errorf("no %q in %s", word, text)
			}
		}
	}
	write(card+"sriov_totalvfs", "0")
	write(card+"sriov_numvfs", "0")
	write(card+"net/p0/flags", "0x1002")
	expect(false, "SR-IOV p0", "0 of 0", "firmware", "pci=realloc")
	write(card+"sriov_totalvfs", "7")
	expect(false, "load the card's driver")
	if err := os.Symlink("../../drivers/igb", filepath.Join(m.root, card, "driver")); err != nil {
		t.Fatal(err)
	}
	expect(true, "driver igb", "0 of 7", "0 in use", "down until a network uses it", "IOMMU off", "iommu=pt")
	write(card+"net/p0/flags", "0x1003")
	expect(true, "check the cable")
	write("sys/class/net/p0/carrier", "1")
	write("sys/class/iommu/dmar0/x", "")
	expect(true, "link up", "IOMMU on")
}
