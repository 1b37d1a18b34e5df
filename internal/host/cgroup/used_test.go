package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUsed: what a group has used is read in both versions, and nothing else is a number.
func TestUsed(t *testing.T) {
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v1, v2 := t.TempDir(), t.TempDir()
	write(v1+"/blkio/cgroup.procs", "")
	write(v1+"/cpu/cgroup.procs", "")
	write(v1+"/blkio/orrery/a/1/blkio.throttle.io_service_bytes_recursive",
		"254:0 Read 10\n254:0 Write 20\n254:0 Total 30\n7:0 Read x\nTotal 30\n")
	write(v1+"/blkio/orrery/a/1/blkio.throttle.io_serviced", "254:0 Read 1\n254:0 Write 2\n")
	write(v1+"/cpu/orrery/a/1/cpu.stat", "nr_periods 7\nnr_throttled 6\nthrottled_time 9\n")
	write(v2+"/orrery/a/1/io.stat", "254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=x\nnothing\n")
	write(v2+"/orrery/a/1/cpu.stat", "usage_usec 5\nnr_periods 7\nnr_throttled 6\n")
	for _, at := range []string{v1, v2} {
		g := Group{mountPoint(at), "orrery/a/1"}
		if use := DiskUseOf(g)["254:0"]; use != (DiskUse{10, 20, 1, 2}) {
			t.Errorf("%s: %+v", at, use)
		}
		if all, stopped := PeriodsOf(g); all != 7 || stopped != 6 {
			t.Errorf("%s: %d of %d periods", at, stopped, all)
		}
		none := Group{mountPoint(at), "orrery/a/2"}
		if all, stopped := PeriodsOf(none); len(DiskUseOf(none)) != 0 || all != 0 || stopped != 0 {
			t.Errorf("%s: a missing group has used something", at)
		}
	}
}
