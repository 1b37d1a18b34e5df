package process

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// TestThreads checks the ids of threads in a PID namespace, which QEMU reports.
func TestThreads(t *testing.T) {
	table := Table(t.TempDir())
	for tid, status := range map[string]string{"610": "Name:\tqemu\nNSpid:\t610\t1\n",
		"613": "Name:\tCPU 0/KVM\nNSpid:\t613\t4\nVmRSS:\t1\n", "614": "Name:\tCPU 1/KVM\nNSpid:\t614\t5\n", "615": ""} {
		dir := table.File(610, filepath.Join("task", tid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := table.Threads(610); err != nil || !maps.Equal(got, map[int]int{1: 610, 4: 613, 5: 614}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := table.Threads(611); err == nil {
		t.Error("a process that is not there has threads")
	}
}
