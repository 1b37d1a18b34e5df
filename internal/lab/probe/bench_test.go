package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
)

// BenchmarkSecond reads this machine once per iteration.
func BenchmarkSecond(b *testing.B) { benchmark(b, "/", nil) }

// BenchmarkSecondCrowded reads the files of a machine with 128 processors, 500 interfaces, 100
// disks and 500 cgroups. It does not include the kernel's work, which TestCost does.
func BenchmarkSecondCrowded(b *testing.B) {
	root, cgroups := crowd(b)
	benchmark(b, root, cgroups)
}

func benchmark(b *testing.B, root string, cgroups map[string]string) {
	r := newReader(root, cgroups)
	defer r.close()
	r.read()
	b.ReportAllocs()
	for b.Loop() {
		r.read()
	}
}

// BenchmarkProcfs reads the same files as BenchmarkSecond with github.com/prometheus/procfs,
// without cgroups and differences.
func BenchmarkProcfs(b *testing.B) { benchmarkProcfs(b, "/") }

// BenchmarkProcfsCrowded reads the files of BenchmarkSecondCrowded.
func BenchmarkProcfsCrowded(b *testing.B) {
	root, _ := crowd(b)
	benchmarkProcfs(b, root)
}

func benchmarkProcfs(b *testing.B, root string) {
	proc, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		b.Fatal(err)
	}
	disks, err := blockdevice.NewFS(filepath.Join(root, "proc"), filepath.Join(root, "sys"))
	if err != nil {
		b.Fatal(err)
	}
	self, err := proc.Self()
	if err != nil && root == "/" {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = proc.Stat()
		_, _ = proc.NetDev()
		_, _ = proc.NetSoftnetStat()
		_, _ = self.Snmp()
		_, _ = disks.ProcDiskstats()
		for _, name := range []string{"cpu", "io", "memory"} {
			_, _ = proc.PSIStatsForResource(name)
		}
		_, _ = proc.LoadAvg()
	}
}

// crowd creates the files of a large machine.
func crowd(b *testing.B) (root string, cgroups map[string]string) {
	b.Helper()
	root = b.TempDir()
	lay(b, "testdata/before", root)
	write := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	var stat, dev, softnet, disks strings.Builder
	stat.WriteString("cpu  1000 20 300 40000 50 0 60 7 0 0\n")
	for i := range 128 {
		fmt.Fprintf(&stat, "cpu%d 7122345 1234 345678 987654321 4567 0 34567 8 0 0\n", i)
		fmt.Fprintf(&softnet, strings.Repeat("00df76e5 ", 12)+"%08x 00000000 00000000\n", i)
	}
	stat.WriteString("intr 71026354" + strings.Repeat(" 0", 4000) + "\nctxt 4711\nprocesses 99\n")
	dev.WriteString("Inter-| Receive\n face |bytes\n")
	for i := range 500 {
		fmt.Fprintf(&dev, "veth%d: 5302594854 157388 0 0 0 0 0 0 10109550 91052 0 0 0 0 0 0\n", i)
	}
	for i := range 100 {
		fmt.Fprintf(&disks, "  254 %d vd%d 6591834 786772 255250626 3165658 8341061 5097234 570089704 7461863 0 1368076 11252701 4268396 329 505260976 433931 19 20\n",
			i, i)
	}
	write("proc/stat", stat.String())
	write("proc/net/dev", dev.String())
	write("proc/net/softnet_stat", softnet.String())
	write("proc/diskstats", disks.String())
	cgroups = map[string]string{}
	for i := range 500 {
		name := fmt.Sprintf("node%d", i)
		cgroups[name] = name
		write("sys/fs/cgroup/cpuacct/"+name+"/cpuacct.usage", "5000000000\n")
		write("sys/fs/cgroup/cpuacct/"+name+"/cpuacct.usage_user", "3000000000\n")
	}
	return root, cgroups
}
