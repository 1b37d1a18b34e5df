package argv

import "fmt"

// functions are those of the host's PCI bus that the machine is lent. What the host calls them, the
// guest does not learn; none boots anything.
func functions(lent []string) []string {
	var args []string
	for i, at := range lent {
		args = append(args, "-device", fmt.Sprintf("vfio-pci,id=pci%d,sysfsdev=%s,rombar=0", i, at))
	}
	return args
}
