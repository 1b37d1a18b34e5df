package doctor

import (
	"errors"
	"io/fs"
)

// kvm says whether virtual machines run, and not only whether there is a device.
func (m machine) kvm() Facts {
	const name = "KVM"
	err := tryKVM()
	switch {
	case err == nil:
		return Facts{{name, true, Info, "virtual machines run", ""}}
	case errors.Is(err, fs.ErrNotExist):
		return Facts{{name, false, Info, "no /dev/kvm", "turn on virtualization in the firmware, or nested virtualization of the machine above, and modprobe kvm_intel or kvm_amd"}}
	case errors.Is(err, fs.ErrPermission):
		return Facts{{name, false, Info, err.Error(), "run orrery as root"}}
	}
	fix := "virtual machines only run in software emulation here, which is slow"
	if !m.processorHas("vmx") && !m.processorHas("svm") {
		fix += "; the processor does not show VT-x or AMD-V: turn on nested virtualization of the machine above"
	}
	return Facts{{name, false, Info, "/dev/kvm opens, but virtual machines do not run: " + err.Error(), fix}}
}
