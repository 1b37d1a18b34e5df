package facts

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is in bytes.
type Memory struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available,omitempty"`
	SwapTotal int64 `json:"swap_total,omitempty"`
	SwapUsed  int64 `json:"swap_used,omitempty"`
	// HugePages are the reserved pages by their size.
	HugePages   []HugePages `json:"huge_pages,omitempty"`
	Transparent string      `json:"transparent_huge_pages,omitempty"`
}

// HugePages are pages of one size.
type HugePages struct {
	Size  int64 `json:"size"`
	Pages int64 `json:"pages"`
	Free  int64 `json:"free"`
}

// NUMA is a memory node with its local processors.
type NUMA struct {
	ID         int    `json:"id"`
	Processors string `json:"processors"` // list in the kernel's format
	Memory     int64  `json:"memory,omitempty"`
	Distance   []int  `json:"distance,omitempty"` // to each node; 10 is the distance to itself
}

func (h host) memory(f *Facts) {
	m, err := h.proc.Meminfo()
	if err == nil {
		f.Memory.Total, f.Memory.Available, f.Memory.SwapTotal = value(m.MemTotalBytes), value(m.MemAvailableBytes),
			value(m.SwapTotalBytes)
		f.Memory.SwapUsed = f.Memory.SwapTotal - value(m.SwapFreeBytes)
	}
	f.Memory.Transparent = selectedWord(h.read("sys/kernel/mm/transparent_hugepage/enabled"), "[", "]")
	for _, dir := range h.find("sys/kernel/mm/hugepages/hugepages-*kB") {
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), "hugepages-"), "kB"), 10, 64)
		if pages := h.number(dir + "/nr_hugepages"); pages > 0 {
			f.Memory.HugePages = append(f.Memory.HugePages, HugePages{kib << 10, pages, h.number(dir + "/free_hugepages")})
		}
	}
}

func value(p *uint64) int64 {
	if p == nil {
		return 0
	}
	return int64(*p)
}

func (h host) numa(f *Facts) {
	for _, dir := range h.find("sys/devices/system/node/node[0-9]*") {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		n := NUMA{ID: id, Processors: h.read(dir + "/cpulist"),
			Distance: Numbers(strings.Join(strings.Fields(h.read(dir+"/distance")), ","))}
		for line := range strings.Lines(h.read(dir + "/meminfo")) {
			if _, after, ok := strings.Cut(line, "MemTotal:"); ok {
				kib, _ := strconv.ParseInt(strings.Fields(after + " 0")[0], 10, 64)
				n.Memory = kib << 10
			}
		}
		f.NUMA = append(f.NUMA, n)
	}
}
