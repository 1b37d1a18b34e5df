package doctor

import (
	"errors"
	"io/fs"
	"testing"
)

// TestKVM checks that a failed trial is reported with its consequence and a cure.
func TestKVM(t *testing.T) {
	plain := fakeMachine(t, map[string]string{"proc/cpuinfo": "flags\t\t: fpu sse2\n"})
	capable := fakeMachine(t, map[string]string{"proc/cpuinfo": "flags\t\t: fpu svm\n"})
	expectFact(t, plain.kvm(nil), true, "run")
	expectFact(t, plain.kvm(&fs.PathError{Op: "open", Path: "/dev/kvm", Err: fs.ErrNotExist}), false, "software emulation")
	expectFact(t, plain.kvm(&fs.PathError{Op: "open", Path: "/dev/kvm", Err: fs.ErrPermission}), false, "/dev/kvm")
	expectFact(t, plain.kvm(errors.New("real mode: it stands still")), false, "real mode")
	if a, b := plain.kvm(errors.New("x")).Fix, capable.kvm(errors.New("x")).Fix; a == b {
		t.Errorf("the same cure for both: %s", a)
	}
}

// TestMachines checks that no fact about virtual machines is needed for containers.
func TestMachines(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, f := range fakeMachine(t, nil).virtualMachines() {
		if f.Level != Info || !f.OK && f.Fix == "" {
			t.Errorf("%+v", f)
		}
		if f.Name == "QEMU" && f.OK {
			t.Errorf("found in an empty PATH: %+v", f)
		}
	}
}
