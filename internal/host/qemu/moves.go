package qemu

import (
	"context"
	"strings"

	"orrery/internal/problem"
)

// The first versions that can give away a running machine, and take it over, with the root that
// virtiofsd gives it. The virtiofsd in C cannot, whatever its version.
const (
	oldestMoving  = "8.2"
	oldestSharing = "1.12"
)

// Stuck says why this host cannot let a running machine go on in another QEMU; nil: it can.
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

// InRust reports whether a version is of the virtiofsd in Rust, which began with 1 again. That in C
// has QEMU's versions.
func InRust(version string) bool { return strings.HasPrefix(version, "1.") }
