package qemu

import (
	"context"
	"strings"

	"orrery/internal/problem"
)

// The first versions that can migrate a running machine whose root is on virtiofsd. No version of
// the virtiofsd in C can.
const (
	oldestMoving  = "8.2"
	oldestSharing = "1.12"
)

// Stuck returns why this host cannot move a running machine to another QEMU, or nil if it can.
func (v Versions) Stuck(ctx context.Context) error {
	for _, p := range []struct {
		name string
		find func() (string, error)
		does func(version string) bool
	}{
		{"QEMU", System, func(version string) bool { return !before(version, oldestMoving) }},
		{"virtiofsd", Virtiofsd, func(version string) bool { return InRust(version) && !before(version, oldestSharing) }},
	} {
		program, err := p.find()
		if err != nil {
			return err
		}
		version, err := v.Of(ctx, program)
		if err != nil {
			return err
		}
		if !p.does(version) {
			return problem.New(problem.Unable, "%s %s cannot move a running machine", p.name, version).At(program).
				Try("install QEMU %s or later and the virtiofsd in Rust, %s or later: Debian 13 has both", oldestMoving,
					oldestSharing)
		}
	}
	return nil
}

// InRust reports whether a version is one of the virtiofsd in Rust, which began with 1 again. The
// virtiofsd in C has QEMU's version numbers.
func InRust(version string) bool { return strings.HasPrefix(version, "1.") }
