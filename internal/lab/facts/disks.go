package facts

import (
	"path/filepath"
	"strings"
)

// A Block is a block device with a nonzero size.
type Block struct {
	Name       string `json:"name"`
	Model      string `json:"model,omitempty"`
	Size       int64  `json:"size"` // bytes
	Rotational bool   `json:"rotational"`
	Scheduler  string `json:"scheduler,omitempty"`
	Cache      string `json:"cache,omitempty"`      // "write back" or "write through"
	Sector     int64  `json:"sector,omitempty"`     // logical, in bytes: the smallest unit of direct I/O
	Physical   int64  `json:"physical,omitempty"`   // bytes
	Requests   int64  `json:"requests,omitempty"`   // length of the queue
	ReadAhead  int64  `json:"read_ahead,omitempty"` // KiB
	Backing    string `json:"backing,omitempty"`    // file of a loop device
	Driver     string `json:"driver,omitempty"`
}

func (h host) blocks(f *Facts) {
	for _, name := range h.names("sys/block") {
		dir := filepath.Join("sys/block", name)
		size := h.number(dir+"/size") * 512 // the unit is 512 bytes for every device
		if size == 0 {                      // a loop device without a file, an empty drive
			continue
		}
		queue := dir + "/queue"
		f.Blocks = append(f.Blocks, Block{
			Name: name, Model: h.model(dir + "/device"), Size: size,
			Rotational: h.read(queue+"/rotational") == "1", Scheduler: scheduler(h.read(queue + "/scheduler")),
			Cache:  h.read(queue + "/write_cache"),
			Sector: h.number(queue + "/logical_block_size"), Physical: h.number(queue + "/physical_block_size"),
			Requests: h.number(queue + "/nr_requests"), ReadAhead: h.number(queue + "/read_ahead_kb"),
			Backing: h.read(dir + "/loop/backing_file"),
			Driver:  h.link(dir + "/device/driver"),
		})
	}
}

// model combines vendor and model. The vendor of a virtio disk is only a number.
func (h host) model(device string) string {
	maker := h.read(device + "/vendor")
	if strings.HasPrefix(maker, "0x") {
		maker = ""
	}
	return strings.TrimSpace(maker + " " + h.read(device+"/model"))
}

func scheduler(text string) string {
	if s := selectedWord(text, "[", "]"); s != "" {
		return s
	}
	return text // some schedulers have only "none"
}
