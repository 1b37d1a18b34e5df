package observe

// A Shortage is a resource of which little is left, in bytes.
type Shortage struct {
	Of     string `json:"of"`               // ShortDisk, ShortMemory or ShortVolume
	Volume string `json:"volume,omitempty"` // for ShortVolume
	Used   int64  `json:"used"`
	Size   int64  `json:"size"`
}

// What can be short.
const (
	ShortDisk   = "disk"   // the file system with the state of the node's host
	ShortMemory = "memory" // the memory that the node may use
	ShortVolume = "volume" // the file system of a volume of its own
)

// shortPercent is the share of a resource from which little is left.
const shortPercent = 90

// Short reports whether little is left. It is false if the size is unknown.
func (s Shortage) Short() bool { return s.Size > 0 && s.Percent() >= shortPercent }

// Percent returns how much is used. The numbers may come from another host.
func (s Shortage) Percent() int {
	return int(min(max(0, 100*(float64(s.Used)/float64(max(1, s.Size)))), 100))
}
