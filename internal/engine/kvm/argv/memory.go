package argv

import (
	"fmt"
	"strconv"
)

// memory is that of the guest, which virtiofsd shares. What the guest does not use any more, it
// gives back by the balloon: the kernel of the guest tells, and nobody has to ask.
func (m *Machine) memory() []string {
	size := strconv.FormatInt(m.Node.GuestMemory()>>10, 10) + "K"
	memory := "memory-backend-memfd,id=memory,share=on,size=" + size
	if page := m.Node.VM.Hugepages; page != 0 {
		// or the guest ends when it comes to a page that its host has not
		memory += fmt.Sprintf(",hugetlb=on,hugetlbsize=%dM,prealloc=on", page>>20)
	}
	if numa := m.Node.VM.Numa; numa != nil {
		memory += fmt.Sprintf(",host-nodes=%d,policy=bind", *numa)
	}
	return []string{"-m", size, "-object", memory, "-device", "virtio-balloon-pci,free-page-reporting=on"}
}
