package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Sample is what the kernel has counted for a control group up to a moment. A field is negative
// if the kernel does not count it.
type Sample struct {
	At     time.Time
	CPU    time.Duration // processor time, summed over all processors
	Memory int64         // bytes, without the page cache that is reclaimed when memory is needed
	Pids   int64         // processes and threads
}

// ReadSample returns a Sample of a control group of this machine, by its path from the root of a
// hierarchy. It reads the hierarchies of cgroup v1 where they exist, otherwise that of v2.
func ReadSample(path string) Sample { return readSample("/sys/fs/cgroup", path) }

func readSample(root, path string) Sample {
	s := Sample{At: time.Now(), CPU: -1, Memory: -1, Pids: -1}
	v1 := func(controller, file string) string { return filepath.Join(root, controller, path, file) }
	v2 := func(file string) string { return filepath.Join(root, path, file) }
	if n, ok := readCount(v1("cpuacct", "cpuacct.usage"), ""); ok {
		s.CPU = time.Duration(n)
	} else if n, ok := readCount(v2("cpu.stat"), "usage_usec"); ok {
		s.CPU = time.Duration(n) * time.Microsecond
	}
	if n, ok := readCount(v1("memory", "memory.usage_in_bytes"), ""); ok {
		cache, _ := readCount(v1("memory", "memory.stat"), "total_inactive_file")
		s.Memory = max(0, n-cache)
	} else if n, ok := readCount(v2("memory.current"), ""); ok {
		cache, _ := readCount(v2("memory.stat"), "inactive_file")
		s.Memory = max(0, n-cache)
	}
	if n, ok := readCount(v1("pids", "pids.current"), ""); ok {
		s.Pids = n
	} else if n, ok := readCount(v2("pids.current"), ""); ok {
		s.Pids = n
	}
	return s
}

// readCount returns a number from a file of a control group: the only one, or the one after a name.
func readCount(file, name string) (n int64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		value := strings.TrimSpace(line)
		if name != "" {
			key, rest, _ := strings.Cut(value, " ")
			if key != name {
				continue
			}
			value = rest
		}
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// UsedCPUs returns how many processors were used on average between two samples. It returns -1 if
// the kernel did not count that, or if there is no earlier sample.
func UsedCPUs(before, after Sample) float64 {
	took := after.At.Sub(before.At)
	if before.At.IsZero() || before.CPU < 0 || after.CPU < before.CPU || took <= 0 {
		return -1
	}
	return float64(after.CPU-before.CPU) / float64(took)
}
