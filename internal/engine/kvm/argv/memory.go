package argv

import (
	"fmt"
	"strconv"
)

// memory returns the guest's memory, which virtiofsd shares. The guest's kernel returns unused
// memory through the balloon by itself.
func (m *Machine) memory() []string {
	size := strconv.FormatInt(m.Node.GuestMemory()>>10, 10) + "K"
	memory := "memory-backend-memfd,id=memory,share=on,size=" + size
	if page := m.Node.VM.Hugepages; page != 0 {
		// Without prealloc, the guest would be killed when it touches a page that the host lacks.
		memory += fmt.Sprintf(",hugetlb=on,hugetlbsize=%dM,prealloc=on", page>>20)
	}
	if numa := m.Node.VM.Numa; numa != nil {
		memory += fmt.Sprintf(",host-nodes=%d,policy=bind", *numa)
	}
	return []string{"-m", size, "-object", memory, "-device", "virtio-balloon-pci,free-page-reporting=on"}
}
