package observe

// Hugepages are the huge pages of one size that a host has reserved.
type Hugepages struct {
	Size  int64 `json:"size"` // bytes
	Total int64 `json:"total"`
	Free  int64 `json:"free"` // neither in use nor promised
}

// Numa is a NUMA node of a host: memory with its processors.
type Numa struct {
	ID     int    `json:"id"`
	Online string `json:"online"` // processors in the kernel's format: "0-3,8"

	Hugepages []Hugepages `json:"hugepages,omitempty"` // huge pages in this node
}

// A PCIFunction is a PCI function.
type PCIFunction struct {
	Address string `json:"address"` // "0000:03:00.0"
	Driver  string `json:"driver,omitempty"`
	// IOMMU group, whose functions can access the same memory, or "" without an IOMMU
	Group  string `json:"group,omitempty"`
	Bridge bool   `json:"bridge,omitempty"`
	Holder string `json:"holder,omitempty"` // SITE/ID of the node that uses it
}

// A MemoryPool is memory for virtual machines that does not belong to the host itself, in bytes. On a Xen
// Dom0 it is Xen's memory.
type MemoryPool struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}
