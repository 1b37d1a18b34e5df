// Package need declares what a test needs of the machine that it runs on.
package need

import (
	"os"
	"testing"
)

// Integration skips a test that makes containers, networks or mounts, unless integration tests were
// requested. So `go test ./...` is quick and changes nothing on the machine.
func Integration(t testing.TB) {
	t.Helper()
	if !Asked() {
		t.Skip("integration test: run make test as root")
	}
	if err := TakeTurn(); err != nil {
		t.Fatal(err)
	}
}

// SameIDs skips a test in which the ids of a node begin with this user's, if its group has another
// number. A node's root has both ids with the same number.
func SameIDs(t testing.TB) {
	t.Helper()
	if os.Geteuid() != os.Getegid() {
		t.Skip("the user and its group have different numbers")
	}
}

// Asked reports whether integration tests were requested.
func Asked() bool { return os.Getenv("ORRERY_INTEGRATION") == "1" && os.Geteuid() == 0 }

// Times returns how often a test with random or large input repeats: few in the quick run of `go
// test ./...`, and whole in make test.
func Times(few, whole int) int {
	if Asked() {
		return whole
	}
	return few
}

// Kills returns how often a test kills what it has started. In make test this is enough to notice a
// regression, and in make test-chaos as much as it takes to find unforeseen cases.
func Kills(some, many int) int {
	if os.Getenv("ORRERY_TEST_LONG") == "1" {
		return many
	}
	return some
}

// State is where integration tests keep layers from one run to the next, so that only the first run
// builds them.
func State() string {
	if dir := os.Getenv("ORRERY_TEST_STATE"); dir != "" {
		return dir
	}
	return "/var/cache/orrery-test"
}

// Run is where integration tests keep what must not outlive a reboot. Two simultaneous runs need
// separate State and Run directories.
func Run() string {
	if dir := os.Getenv("ORRERY_TEST_RUN"); dir != "" {
		return dir
	}
	return "/run/orrery-test"
}
