package boot

// A Module is a driver or file system that the initramfs has for the kernel.
type Module struct {
	Name  string   `json:"name"`
	File  string   `json:"file"`            // in Modules, uncompressed
	Needs []string `json:"needs,omitempty"` // names of modules, in the order in which they have to be loaded before it
	// patterns of devices that it drives, as modules.alias(5) has them, and "fs-NAME" of file systems
	Aliases []string `json:"aliases,omitempty"`
}

// Checksums is the module by which ext4 checks what it reads.
const Checksums = "crc32c_generic"

// Where the initramfs has what.
const (
	Init       = "init"         // orrery-guest
	ModuleDir  = "modules"      // files of modules
	ModuleList = "modules.json" // []Module
)

// Empty are the directories in which something is mounted.
var Empty = []string{"dev", "proc", "sys", newRoot, lowerRoot, ownDisk}

const (
	newRoot   = "root"  // on which the root of the node is mounted
	lowerRoot = "lower" // the root that the host offers, below what the node writes on a disk of its own
	ownDisk   = "disk"  // that
)
