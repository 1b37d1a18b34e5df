package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSample checks that both versions of control groups give the same sample, and that an
// uncounted value differs from zero.
func TestSample(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"version 1": {
			"cpuacct/orrery/a/11/cpuacct.usage": "2500000000\n", "memory/orrery/a/11/memory.usage_in_bytes": "3000\n",
			"memory/orrery/a/11/memory.stat": "cache 5\ninactive_file 7\ntotal_inactive_file 1000\n",
			"pids/orrery/a/11/pids.current":  "12\n",
		},
		"version 1 beside an empty version 2": {
			"cpuacct/orrery/a/11/cpuacct.usage": "2500000000\n", "memory/orrery/a/11/memory.usage_in_bytes": "3000\n",
			"memory/orrery/a/11/memory.stat": "total_inactive_file 1000\n", "pids/orrery/a/11/pids.current": "12\n",
			"unified/orrery/a/11/cgroup.procs": "1\n",
		},
		"version 2": {
			"orrery/a/11/cpu.stat": "usage_usec 2500000\nuser_usec 1\n", "orrery/a/11/memory.current": "3000\n",
			"orrery/a/11/memory.stat": "anon 7\ninactive_file 1000\n", "orrery/a/11/pids.current": "12\n",
		},
	} {
		root := t.TempDir()
		for file, text := range files {
			file = filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s := readSample(root, "orrery/a/11")
		if s.CPU != 2500*time.Millisecond || s.Memory != 2000 || s.Pids != 12 {
			t.Errorf("%s: %+v", name, s)
		}
		later := s
		later.At, later.CPU = s.At.Add(2*time.Second), s.CPU+time.Second
		if got := UsedCPUs(s, later); got != 0.5 {
			t.Errorf("%s: %g processors", name, got)
		}
		if none := readSample(root, "orrery/a/12"); none.CPU != -1 || none.Memory != -1 || none.Pids != -1 ||
			UsedCPUs(none, later) != -1 {
			t.Errorf("%s: of a group that is not there: %+v", name, none)
		}
	}
}
