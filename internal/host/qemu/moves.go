package qemu

import (
	"context"
	"strings"

	"orrery/internal/problem"
)

// The first versions that can migrate a running machine whose root is on virtiofsd. No version of
// the virtiofsd in C can.
const (
	minMigrationQEMU      = "8.2"
	minMigrationVirtiofsd = "1.12"
)

// CheckMigration returns why this host cannot move a running machine to another QEMU, or nil if it can.
func (v Versions) CheckMigration(ctx context.Context) error {
	for _, p := range []struct {
		name string
		find func() (string, error)
		does func(version string) bool
	}{
		{"QEMU", System, func(version string) bool { return !olderThan(version, minMigrationQEMU) }},
		{"virtiofsd", Virtiofsd, func(version string) bool {
			return IsRustVirtiofsd(version) && !olderThan(version, minMigrationVirtiofsd)
		}},
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
				Try("install QEMU %s or later and the Rust virtiofsd, %s or later: Debian 13 has both", minMigrationQEMU,
					minMigrationVirtiofsd)
		}
	}
	return nil
}

// IsRustVirtiofsd reports whether a version is one of the virtiofsd in Rust, which began with 1 again. The
// virtiofsd in C has QEMU's version numbers.
func IsRustVirtiofsd(version string) bool { return strings.HasPrefix(version, "1.") }
