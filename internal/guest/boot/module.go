package boot

// A Module is a driver or file system in the initramfs.
type Module struct {
	Name  string   `json:"name"`
	File  string   `json:"file"`            // file name in ModuleDir, uncompressed
	Needs []string `json:"needs,omitempty"` // names of modules that must be loaded before it, in this order
	// patterns of the devices it drives, as in modules.alias(5), and "fs-NAME" for file systems
	Aliases []string `json:"aliases,omitempty"`
}

// Checksums is the module with the checksums of ext4.
const Checksums = "crc32c_generic"

// Paths in the initramfs.
const (
	Init       = "init"         // orrery-guest
	ModuleDir  = "modules"      // files of modules
	ModuleList = "modules.json" // []Module
)

// MountPoints are the directories that serve as mount points.
var MountPoints = []string{"dev", "proc", "sys", newRoot, lowerRoot, ownDisk}

const (
	newRoot   = "root"  // mount point of the node's root
	lowerRoot = "lower" // the root that the host shares, as lower layer below the machine's disk
	ownDisk   = "disk"  // mount point of the machine's disk
)
