package argv

import (
	"cmp"
	"strconv"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// memory is that of the guest, which virtiofsd shares.
func (m *Machine) memory() []string {
	size := strconv.FormatInt(memoryOf(m.Node)>>10, 10) + "K"
	return []string{"-m", size, "-object", "memory-backend-memfd,id=memory,share=on,size=" + size}
}

// memoryOf is the memory of a guest, in bytes: whole MiB, of which each processor has pages.
func memoryOf(n *spec.Node) int64 {
	const whole = 1 << 20
	return (cmp.Or(n.Limits.Memory, int64(site.DefaultVMMemory)) + whole - 1) / whole * whole
}
