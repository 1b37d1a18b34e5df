package argv

import "fmt"

// pciFunctions returns the PCI functions that are lent to the machine. The guest does not learn their
// addresses on the host, and cannot boot from them.
func pciFunctions(lent []string) []string {
	var args []string
	for i, at := range lent {
		args = append(args, "-device", fmt.Sprintf("vfio-pci,id=pci%d,sysfsdev=%s,rombar=0", i, at))
	}
	return args
}
