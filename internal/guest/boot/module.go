package boot

// A Module is a driver or file system that the initramfs has for the kernel.
type Module struct {
	Name    string   `json:"name"`
	File    string   `json:"file"`              // in Modules, uncompressed
	Needs   []string `json:"needs,omitempty"`   // names of modules, in the order in which they have to be loaded before it
	Aliases []string `json:"aliases,omitempty"` // patterns of devices that it drives, as modules.alias(5) has them, and "fs-NAME" of file systems
}

// Where the initramfs has what.
const (
	Init       = "init"         // orrery-guest
	ModuleDir  = "modules"      // files of modules
	ModuleList = "modules.json" // []Module
)

// Empty are the directories in which something is mounted.
var Empty = []string{"dev", "proc", "sys", newRoot}

const newRoot = "root"
