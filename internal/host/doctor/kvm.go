package doctor

import (
	"context"
	"errors"
	"io/fs"

	"orrery/internal/host/qemu"
	"orrery/internal/problem"
)

// virtualMachines returns the facts about virtual machines. Containers do not need them.
func (m machine) virtualMachines() Facts {
	return Facts{qemuFact(), virtiofsd(), guestProgram(), m.kvm(qemu.ProbeKVM()), xen()}
}

func qemuFact() Fact {
	const name = "QEMU"
	path, err := qemu.System()
	if err != nil {
		return missingFact(name, err)
	}
	version, err := qemu.Version(context.Background(), path)
	if err == nil {
		err = qemu.CheckVersion(version)
	}
	if err != nil {
		return missingFact(name, err)
	}
	return Fact{name, true, Info, version, ""}
}

func virtiofsd() Fact {
	const name = "virtiofsd"
	path, err := qemu.Virtiofsd()
	if err != nil {
		return missingFact(name, err)
	}
	version, err := qemu.Version(context.Background(), path)
	if err != nil {
		return missingFact(name, err)
	}
	return Fact{name, true, Info, version + " (" + path + ")", ""}
}

func guestProgram() Fact {
	path, err := qemu.Guest()
	if err != nil {
		return missingFact(qemu.GuestName, err)
	}
	return Fact{qemu.GuestName, true, Info, path, ""}
}

// missingFact returns the fact about a missing requirement that only virtual machines have.
func missingFact(name string, err error) Fact {
	f := Fact{name, false, Info, err.Error(), "install it to run virtual machines"}
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		f.Value, f.Fix = p.What+": no virtual machines", p.Cure
	}
	return f
}

// kvm checks whether virtual machines run with hardware acceleration, which the device alone does
// not prove. The argument is the result of a trial.
func (m machine) kvm(err error) Fact {
	const name, slow = "KVM", "; virtual machines run in software emulation, which is many times slower"
	switch {
	case err == nil:
		return Fact{name, true, Info, "virtual machines run", ""}
	case errors.Is(err, fs.ErrNotExist):
		return Fact{name, false, Info, "no /dev/kvm" + slow,
			"turn on virtualization in the firmware, or nested virtualization on the outer machine, and modprobe kvm_intel or kvm_amd"}
	case errors.Is(err, fs.ErrPermission):
		return Fact{name, false, Info, err.Error(), "run orrery as root"}
	}
	fix := "use another machine for virtual machines"
	if !m.processorHas("vmx") && !m.processorHas("svm") {
		fix = "the processor has no VT-x or AMD-V: turn on nested virtualization on the outer machine"
	}
	return Fact{name, false, Info, "/dev/kvm opens, but virtual machines do not run: " + err.Error() + slow, fix}
}
