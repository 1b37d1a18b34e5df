package numa

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"orrery/internal/observe"
)

// put writes files of a fake sysfs.
func put(t *testing.T, files map[string]string) (sys string) {
	t.Helper()
	sys = t.TempDir()
	for name, text := range files {
		path := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return sys
}

// TestNodes checks that only nodes with processors are returned, by number. The memory of a card
// has none.
func TestNodes(t *testing.T) {
	sys := put(t, map[string]string{
		"devices/system/node/node10/cpulist": "8-11", "devices/system/node/node2/cpulist": "0-7,12",
		"devices/system/node/node3/cpulist":                                    "",
		"devices/system/node/online":                                           "2-3,10",
		"devices/system/node/node10/hugepages/hugepages-2048kB/nr_hugepages":   "7",
		"devices/system/node/node10/hugepages/hugepages-2048kB/free_hugepages": "5",
	})
	want := []observe.Numa{{ID: 2, Online: "0-7,12"},
		{ID: 10, Online: "8-11", Hugepages: []observe.Hugepages{{Size: 2 << 20, Total: 7, Free: 5}}}}
	if got := Nodes(sys); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Nodes(t.TempDir()); got != nil {
		t.Errorf("a kernel without has %+v", got)
	}
}

// TestHugepages checks that reserved pages do not count as free.
func TestHugepages(t *testing.T) {
	sys := put(t, map[string]string{
		"kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":    "512",
		"kernel/mm/hugepages/hugepages-2048kB/free_hugepages":  "103",
		"kernel/mm/hugepages/hugepages-2048kB/resv_hugepages":  "100",
		"kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0",
	})
	want := []observe.Hugepages{{Size: 2 << 20, Total: 512, Free: 3}, {Size: 1 << 30}}
	if got := Hugepages(sys); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Hugepages(t.TempDir()); got != nil {
		t.Errorf("a kernel without has %+v", got)
	}
}
